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
//!
//! # A transaction ends with its message
//!
//! Transactions are closures that are not async, and nothing of a transaction outlives its closure. So none can span an
//! `await`, behind which another message could have come in between. Wait before it or after it:
//!
//! ```
//! # use icsql_engine::{Database, Error};
//! async fn pay(database: &mut Database) -> Result<u64, Error> {
//!     let price = core::future::ready(3).await;
//!     database.write(|tx| tx.execute("INSERT INTO main.payment VALUES (?1)", (price,)))?;
//!     database.write(|tx| Ok::<_, Error>(tx.id()))
//! }
//! ```
//! Neither of these compiles:
//!
//! ```compile_fail,E0728
//! # use icsql_engine::{Database, Error};
//! async fn pay(database: &mut Database) -> Result<u64, Error> {
//!     database.write(|tx| tx.execute("INSERT INTO main.payment VALUES (?1)", (core::future::ready(3).await,)))
//! }
//! ```
//! ```compile_fail
//! # use icsql_engine::{Database, Error};
//! async fn pay(database: &mut Database) -> Result<u64, Error> {
//!     Ok(database.write(|tx| Ok::<_, Error>(async move { tx.id() }))?.await)
//! }
//! ```

mod db;
mod env;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(target_arch = "wasm32")]
mod ic0;
pub mod limits;
#[cfg(test)]
#[path = "../tests/support/rng.rs"]
mod rng;
mod sqlite;
pub mod stable;
mod text;
mod vfs;

pub use db::{
    Adoption, AdoptionError, AdoptionProgress, Budget, Cause, Database, Description, Error, Exceeded, KeyRange,
    KeyedRow, KeyedTable, Limited, Meta, Metrics, Migration, MigrationError, OpenOptions, Reader, Row, Sql, SqlText,
    Writer, sha256, sha256_of,
};
#[cfg(target_arch = "wasm32")]
pub use env::IcEnv;
pub use env::{Env, HostEnv};
#[cfg(not(target_arch = "wasm32"))]
pub use sqlite::heap_fault;
pub use sqlite::{Changes, Named, Params, Policy, SqliteError, ToValue, Value, ValueRef, version as sqlite_version};
pub use text::utf8;
