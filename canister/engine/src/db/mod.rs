//! The database: what a canister works with.

mod adopt;
mod budget;
mod database;
mod error;
mod keyed;
mod meter;
mod migrate;
mod row;
mod run;
mod schema;
mod sql;
mod statements;
mod transaction;

pub use crate::vfs::Cause;
pub use adopt::{Adoption, AdoptionError, AdoptionProgress};
pub use budget::{Budget, Exceeded, Limited, Metrics};
pub use database::{Database, Meta, OpenOptions};
pub use error::{Error, MigrationError};
pub use keyed::{KeyRange, KeyedRow, KeyedTable};
pub use migrate::{Migration, sha256, sha256_of};
pub use row::Row;
pub use sql::{Sql, SqlText};
pub use transaction::{Description, Reader, Writer};
