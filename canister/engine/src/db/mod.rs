//! The database: what a canister works with.

mod adopt;
mod database;
mod error;
mod migrate;
mod row;
mod sql;
mod transaction;

pub use crate::vfs::Cause;
pub use adopt::{Adoption, AdoptionError, AdoptionProgress};
pub use database::{Database, Meta, OpenOptions};
pub use error::{Error, MigrationError};
pub use migrate::{Migration, sha256};
pub use row::Row;
pub use sql::{Sql, SqlText};
pub use transaction::{Reader, Writer};
