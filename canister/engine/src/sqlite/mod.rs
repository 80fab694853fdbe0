//! SQLite: raw bindings (`sys`), and over them small handles that release what they hold when dropped.
//!
//! Knows nothing of where the bytes of a database are: it opens a file through a VFS that somebody registered.

mod alloc;
mod authorizer;
mod connection;
mod error;
mod keyed;
pub(crate) mod lock;
mod pcache;
mod statement;
pub(crate) mod sys;
mod value;

#[cfg(not(target_arch = "wasm32"))]
pub use alloc::fault as heap_fault;
pub(crate) use authorizer::Authority;
pub use authorizer::{Changes, Policy};
pub(crate) use connection::{Connection, Watch, initialize};
pub use error::SqliteError;
pub(crate) use keyed::{CachedPages, Change, Keyed, Which};
pub(crate) use statement::{Counts, Statement, Step};
pub use value::{Named, Params, ToValue, Value, ValueRef};

/// SQLite's version, for example `3.54.1`.
pub fn version() -> &'static str {
    sys::VERSION
}
