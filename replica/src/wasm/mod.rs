//! From the bytes of a canister's Wasm to a compiled module that counts its instructions.

mod artifact;
mod function;
mod instrument;
mod module;
mod weights;

pub(crate) use instrument::{COUNTER, HEAP, HOST_MODULE, MARKS, START, TABLE, TABLES_CHANGED, global_export};
pub use module::{Metadata, Module, ModuleCache, ModuleError};
pub(crate) use module::{MethodKind, engine};
pub(crate) use weights::api_cost;
