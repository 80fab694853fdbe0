//! Types of the methods `sql_…` and `query_…`.
use crate::access::Role;
use candid::CandidType;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// What a call used.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions that the canister counted up to its reply.
    pub instructions: u64,
    /// Rows handed out.
    pub rows: u64,
    /// Bytes of these rows: texts and blobs, 8 for each number.
    pub bytes: u64,
    /// Steps of SQLite's virtual machine.
    pub vm_steps: u64,
    /// Steps in scans of a whole table.
    pub full_scan_steps: u64,
    /// Sorts.
    pub sorts: u64,
    /// Pages read from stable memory.
    pub pages_read: u64,
    /// Pages written to stable memory.
    pub pages_written: u64,
}

/// A value of SQL.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB.
    Blob(ByteBuf),
    /// TEXT that is not UTF-8, in results.
    InvalidText(ByteBuf),
}

/// The parameters of a statement.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub enum Params {
    /// None.
    #[default]
    None,
    /// In order.
    Positional(Vec<Value>),
    /// By name.
    Named(Vec<(String, Value)>),
}

/// A statement with its parameters.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Statement {
    /// One SQL statement.
    pub sql: String,
    /// Its parameters.
    pub params: Option<Params>,
}

/// What a read may use, and where it goes on.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most rows of this page.
    pub max_rows: Option<u32>,
    /// Most bytes of this page.
    pub max_bytes: Option<u64>,
    /// Most instructions.
    pub max_instructions: Option<u64>,
    /// Where the page before ended.
    pub cursor: Option<ByteBuf>,
    /// Go on even if the data has changed since.
    pub allow_changed: Option<bool>,
}

/// Why a page ends.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There are no more rows.
    End,
    /// The limit of rows.
    Rows,
    /// The limit of bytes.
    Bytes,
    /// The limit of instructions.
    Instructions,
}

/// A page of rows.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct RowSet {
    /// Names of the columns, by position; names can repeat.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// Why the page ends here.
    pub stop: Stop,
    /// Where the next page goes on; none at the end.
    pub cursor: Option<ByteBuf>,
    /// Id of the transaction whose data this is.
    pub transaction: u64,
    /// What the call used.
    pub cost: Cost,
}

/// Options of a write by SQL.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlWriteOptions {
    /// Makes the call safe to repeat; see `WriteOptions`.
    pub idempotency_key: Option<String>,
    /// Most rows of RETURNING.
    pub max_rows: Option<u32>,
    /// Most bytes of these rows.
    pub max_bytes: Option<u64>,
    /// Most instructions.
    pub max_instructions: Option<u64>,
    /// Most pages that may be changed.
    pub max_pages: Option<u64>,
}

/// What a statement did.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct StatementResult {
    /// Rows inserted, updated or deleted.
    pub changes: u64,
    /// Rowid of the row that was inserted last.
    pub last_rowid: i64,
    /// Names of the columns of RETURNING.
    pub columns: Vec<String>,
    /// Rows of RETURNING.
    pub rows: Vec<Vec<Value>>,
}

/// What `sql_execute` did.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Executed {
    /// Rows inserted, updated or deleted.
    pub changes: u64,
    /// Rowid of the row that was inserted last.
    pub last_rowid: i64,
    /// Names of the columns of RETURNING.
    pub columns: Vec<String>,
    /// Rows of RETURNING.
    pub rows: Vec<Vec<Value>>,
    /// Id of the transaction; of the last one if nothing changed.
    pub transaction: u64,
    /// What the call used.
    pub cost: Cost,
}

/// What `sql_batch` did.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct BatchExecuted {
    /// One for each statement.
    pub results: Vec<StatementResult>,
    /// Id of the transaction; of the last one if nothing changed.
    pub transaction: u64,
    /// What the call used.
    pub cost: Cost,
}

/// How SQLite would run a statement.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// A tree, drawn in text.
    pub lines: Vec<String>,
    /// Tables that are scanned as a whole.
    pub full_scans: Vec<String>,
    /// Whether it changes nothing.
    pub read_only: bool,
}

/// A column of a table.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its declared type.
    pub type_name: String,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Its default, as SQL.
    pub default_sql: Option<String>,
    /// Its place in the primary key from 1; 0: not in it.
    pub primary_key: u32,
    /// Whether it is generated or hidden.
    pub hidden: bool,
}

/// An index of a table.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Whether it is unique.
    pub unique: bool,
    /// Its columns; `<expression>` for one that is none.
    pub columns: Vec<String>,
    /// Its text; none for those that SQLite made for a constraint.
    pub sql: Option<String>,
}

/// A trigger of a table.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// Its text.
    pub sql: String,
}

/// A table, view or virtual table.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// `table`, `view` or `virtual`.
    pub kind: String,
    /// Its text.
    pub sql: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Its triggers.
    pub triggers: Vec<Trigger>,
    /// About how many rows it has; none if ANALYZE has not been run.
    pub rows_estimate: Option<u64>,
}

/// The tables of the database.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The tables.
    pub tables: Vec<Table>,
    /// Id of the last transaction.
    pub transaction: u64,
}

/// A step of a schema's history.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct SqlMigration {
    /// Its place, ascending from 1 on.
    pub version: u32,
    /// A name for people.
    pub name: String,
    /// One or more statements.
    pub sql: String,
}

/// A step that was applied.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its place.
    pub version: u32,
    /// Its name.
    pub name: String,
    /// SHA-256 of its text, in hexadecimal digits.
    pub sha256: String,
    /// When, in nanoseconds since 1970.
    pub applied_at: u64,
}

/// A named query that does not work any more.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct BrokenQuery {
    /// Its name.
    pub name: String,
    /// Why.
    pub message: String,
}

/// What `sql_migrate` did.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Versions that were applied now.
    pub applied: Vec<u32>,
    /// Named queries that this broke.
    pub broken_queries: Vec<BrokenQuery>,
    /// Id of the transaction; of the last one if nothing was applied.
    pub transaction: u64,
    /// What the call used.
    pub cost: Cost,
}

/// Who may call a named query.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Anyone, also anonymously.
    Public,
    /// Who has this role or a higher one.
    Role(Role),
}

/// A parameter of a named query.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct QueryParameter {
    /// Its name, without `:`, `@` or `$`.
    pub name: String,
    /// `integer`, `real`, `text`, `blob` or `any`.
    pub type_name: String,
    /// Whether NULL may be given.
    pub nullable: bool,
}

/// A named query.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct QueryDefinition {
    /// Its name.
    pub name: String,
    /// One SELECT.
    pub sql: String,
    /// Its parameters.
    pub params: Vec<QueryParameter>,
    /// Who may call it.
    pub callers: Callers,
    /// Most rows of a page.
    pub max_rows: Option<u32>,
    /// Most bytes of a page.
    pub max_bytes: Option<u64>,
    /// Most instructions of a call.
    pub max_instructions: Option<u64>,
    /// Whether its plan may scan a whole table.
    pub allow_full_scan: Option<bool>,
}

/// A named query as it is defined.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DefinedQuery {
    /// What was defined.
    pub definition: QueryDefinition,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// How SQLite runs it.
    pub plan: Plan,
    /// Why it does not work any more, if so.
    pub broken: Option<String>,
}
