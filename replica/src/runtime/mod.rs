//! Runs one message on one canister: its instance, its heap, the system API.

mod host;
mod instance;
mod message;
mod stable;
mod system_api;
mod trap;

pub(crate) use host::Host;
pub(crate) use instance::{Entry, HEAP_PAGE_INSTRUCTIONS, Instance, with_stack};
pub(crate) use message::{Context, Environment, Message, OutgoingCall};
pub use stable::StableMemory;
pub(crate) use stable::{Chunk, WASM_PAGE};
pub(crate) use system_api::linker;
pub(crate) use trap::Trap;
