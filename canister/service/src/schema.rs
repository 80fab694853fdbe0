//! The service's own tables.
//!
//! `kv` and `kv_note` have no triggers, foreign keys or further indexes: `ops::kv` depends on it.
//! - Without rowid, a key is found in one b-tree, and INSERT OR REPLACE is the cheapest way to put.
//! - A value may be of any type and is kept as it was given. It is the last column, so that the version of a large one
//!   is read without it. The version is the id of the transaction that wrote the value.
//! - REPLACE drops a whole row, so what it must keep, the note, has a table of its own.
//! - An entry that expires has its version negated in `kv`, and the time in `kv_expiry`: most have none, and then nothing
//!   has to be looked up.
//! - A blob in parts has its size as an INTEGER in `kv.value`, and its bytes in `kv_part`: 65,536 in each part but the
//!   last, numbered from 0.
use icsql_engine::Migration;

/// The tables' history. The text of a step that was ever released never changes.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "key-value store",
        sql: "
CREATE TABLE kv(
    key TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE kv_note(
    key TEXT PRIMARY KEY NOT NULL,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
",
    },
    Migration {
        version: 2,
        name: "roles and settings",
        sql: "
CREATE TABLE icsql_role(
    principal BLOB PRIMARY KEY NOT NULL,
    role TEXT NOT NULL CHECK(role IN ('reader', 'writer', 'admin'))
) STRICT, WITHOUT ROWID;
CREATE TABLE icsql_setting(
    name TEXT PRIMARY KEY NOT NULL,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
",
    },
    Migration {
        version: 3,
        name: "expiry and values in parts",
        sql: "
CREATE TABLE kv_expiry(
    key TEXT PRIMARY KEY NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX kv_expiry_by_time ON kv_expiry(expires_at);
CREATE TABLE kv_part(
    key TEXT NOT NULL,
    number INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY(key, number)
) STRICT, WITHOUT ROWID;
",
    },
    Migration {
        version: 4,
        name: "migrations by SQL, named queries",
        sql: "
CREATE TABLE icsql_sql_migration(
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE icsql_query(
    name TEXT PRIMARY KEY NOT NULL,
    sql TEXT NOT NULL,
    callers TEXT NOT NULL CHECK(callers IN ('public', 'reader', 'writer', 'admin')),
    max_rows INTEGER,
    max_bytes INTEGER,
    max_instructions INTEGER,
    allow_full_scan INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE icsql_query_parameter(
    query TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    nullable INTEGER NOT NULL,
    PRIMARY KEY(query, number)
) STRICT, WITHOUT ROWID;
",
    },
    Migration {
        version: 5,
        name: "idempotency keys",
        sql: "
CREATE TABLE icsql_idempotency(
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    caller BLOB NOT NULL,
    method TEXT NOT NULL,
    key TEXT NOT NULL,
    content BLOB NOT NULL,
    reply BLOB NOT NULL,
    UNIQUE(caller, method, key)
) STRICT;
INSERT INTO icsql_setting VALUES ('idempotency keys', 0);
",
    },
];

/// Number of the last migration.
pub const SCHEMA_VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;
