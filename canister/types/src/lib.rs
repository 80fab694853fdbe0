//! Candid types of the icsql canister, shared by the service, its clients and the tests.
//!
//! `candid/icsql.did` is the contract and says what each field means; these are the same types in Rust. [`method`]
//! lists the methods with their argument and reply types.
mod access;
mod error;
mod kv;
pub mod method;
mod sql;

pub use access::{AccessList, Grant, Role};
pub use error::Error;
pub use kv::{Appended, Condition, Deleted, Entry, KvList, KvOperation, KvPage, KvValue, Part};
pub use sql::{
    AppliedMigration, BatchExecuted, BrokenQuery, Callers, Column, Cost, DefinedQuery, Executed, Index, Migrated,
    Params, Plan, QueryDefinition, QueryParameter, ReadOptions, RowSet, Schema, SqlMigration, SqlWriteOptions,
    Statement, StatementResult, Stop, Table, Trigger, Value,
};

/// Bytes that Candid carries as a `blob`.
pub use serde_bytes::ByteBuf;

use candid::CandidType;
use serde::{Deserialize, Serialize};

/// What every method answers: `variant { Ok : T; Err : Error }`.
pub type Answer<T> = Result<T, Error>;

/// Settings of the canister, given at install and at upgrade.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct InitArg {
    /// Whether anyone may read the key-value store. If left out: as it was; at first yes.
    pub public_kv: Option<bool>,
}

/// Options of a write.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Makes the call safe to repeat: the same caller, method and key with the same arguments answer within 24 hours what
    /// the first call answered, without doing it again.
    pub idempotency_key: Option<String>,
}

/// A write that was committed.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The id of the transaction that wrote the value.
    pub version: u64,
}

/// The answer to `kv_get_many`.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// One entry for each key in the order asked.
    pub values: Vec<Option<String>>,
    /// The index of the first key that is not answered because the reply is full.
    pub next: Option<u32>,
}

/// Limits of the canister; sizes in bytes of UTF-8.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Limits {
    pub key_bytes_max: u32,
    pub value_bytes_max: u32,
    pub note_bytes_max: u32,
    pub keys_per_call_max: u32,
    pub reply_bytes_max: u32,
}

/// A limit by its name, which docs/limits.md explains.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name, which stays.
    pub name: String,
    /// Its value in this canister.
    pub value: u64,
}

/// What the canister is and what it holds.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Version of the icsql canister.
    pub icsql_version: String,
    /// Version of SQLite.
    pub sqlite_version: String,
    /// Version of the layout of stable memory.
    pub layout_version: u32,
    /// Number of the last migration of the service's own tables.
    pub schema_version: u32,
    /// Bytes of a database page.
    pub page_size: u32,
    /// Database pages in the image.
    pub pages: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Id of the last transaction that changed the database.
    pub transaction: u64,
    /// Digest of the image after that transaction, 16 hexadecimal digits.
    pub digest: String,
    /// Size of the canister's whole stable memory in pages of 64 KiB.
    pub stable_memory_pages: u64,
    /// Limits of this canister that every client of the key-value store meets.
    pub limits: Limits,
    /// All limits of this canister. Later versions have more.
    pub all_limits: Vec<Limit>,
}

/// What an integrity check found.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct IntegrityReport {
    /// Every table and the use of the pages was checked to the end.
    pub complete: bool,
    /// What is wrong, as SQLite words it; bounded, see `problems_total`.
    pub problems: Vec<String>,
    /// Number of problems found.
    pub problems_total: u64,
    /// Tables that were checked to the end.
    pub checked: Vec<String>,
    /// What the instruction budget did not reach.
    pub unchecked: Vec<String>,
    /// Id of the last transaction that changed what was checked.
    pub transaction: u64,
}

/// The digest of the database image.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// 16 hexadecimal digits.
    pub digest: String,
    /// Id of the last transaction that changed the database.
    pub transaction: u64,
    /// Database pages in the image.
    pub pages: u64,
    /// Bytes of a database page.
    pub page_size: u32,
    /// Bytes of the image.
    pub image_bytes: u64,
}

/// A page whose bytes do not match the hash that was stored when it was written.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DamagedPage {
    /// Number of the page; the first is 1.
    pub page: u32,
    /// Stored hash, 16 hexadecimal digits.
    pub expected: String,
    /// Hash of the bytes, 16 hexadecimal digits.
    pub found: String,
}

/// How far the scan of the image is.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    /// Pages compared with their hashes so far.
    pub pages_done: u64,
    /// Pages in the image.
    pub pages_total: u64,
    /// All pages were read; the next call starts a new scan.
    pub complete: bool,
    /// The first damaged pages found; bounded, see `damaged_total`.
    pub damaged: Vec<DamagedPage>,
    /// Number of damaged pages found.
    pub damaged_total: u64,
    /// Whether the hashes of all pages add up to the digest; `None` until the scan is complete.
    pub digest_matches: Option<bool>,
}
