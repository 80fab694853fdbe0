//! SQLite: raw bindings (`sys`), and over them small handles that release what they hold when dropped.
//!
//! Knows nothing of where the bytes of a database are: it opens a file through a VFS that somebody registered.

mod alloc;
mod authorizer;
mod connection;
mod error;
pub(crate) mod lock;
mod pcache;
mod statement;
pub(crate) mod sys;
mod value;

pub(crate) use connection::{Connection, initialize};
pub use error::SqliteError;
pub(crate) use statement::{Statement, Step};
pub use value::{Params, ToValue, Value, ValueRef};

/// SQLite's version, for example `3.54.1`.
pub fn version() -> &'static str {
    sys::VERSION
}
