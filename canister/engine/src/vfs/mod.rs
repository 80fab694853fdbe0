//! A `sqlite3_vfs` whose `/main.db` is a range of a virtual stable memory.
//!
//! `file` is the safe half: what a read, a write and a commit do to stable memory. `shim` is the half that SQLite
//! calls. Journals and temporary tables never come here: SQLite keeps them in heap.

mod file;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod shim;

pub use file::Cause;
pub(crate) use file::{DatabaseFile, Operations};
pub(crate) use shim::Registration;
