//! SQLite on the stable memory of an Internet Computer canister.
//!
//! Calls go one way: `db` → {`vfs`, `sqlite`} → `stable`. `vfs` and `sqlite` never meet; `db` joins them by the
//! VFS's name. Nothing here knows of Candid or of the service.
//!
//! ```
//! use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID, heap::HeapMemory, manager::MemoryManager};
//! use icsql_engine::{Database, Error, Migration, OpenOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In a canister: `Ic0Memory` in place of `HeapMemory`.
//! let manager = MemoryManager::open(HeapMemory::new())?;
//! let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
//! let mut database = Database::open(image, hashes, OpenOptions::default())?;
//! database.migrate(&[Migration { version: 1, name: "city", sql: "CREATE TABLE city(name TEXT PRIMARY KEY, people INT)" }])?;
//! database.write(|tx| tx.execute("INSERT INTO main.city VALUES (?1, ?2)", ("Zug", 30_934)))?;
//! let people = database.read(|tx| {
//!     tx.query_row("SELECT people FROM main.city WHERE name = ?1", ("Zug",), |row| row.integer(0))
//! })?;
//! assert_eq!(people, Some(30_934));
//! # Ok(())
//! # }
//! ```

mod db;
mod env;
#[cfg(target_arch = "wasm32")]
mod ic0;
pub mod limits;
mod sqlite;
pub mod stable;
mod text;
mod vfs;

pub use db::{
    Adoption, AdoptionError, AdoptionProgress, Cause, Database, Error, Meta, Migration, MigrationError, OpenOptions,
    Reader, Row, Sql, SqlText, Writer, sha256,
};
#[cfg(target_arch = "wasm32")]
pub use env::IcEnv;
pub use env::{Env, HostEnv};
pub use sqlite::{Params, SqliteError, ToValue, Value, ValueRef, version as sqlite_version};
pub use text::utf8;
