//! Keys, values and notes.
pub mod changes;
pub mod entry;
pub mod list;
mod parts;

use crate::error::Failure;
use changes::stored_now;
use icsql_engine::{Database, Error as EngineError, KeyedTable, Reader, Sql, ValueRef};
use icsql_types::Error;

// With a condition, though every key meets it: SQLite counts a whole b-tree in a single step of its virtual machine,
// and a step cannot be stopped by a budget.
static COUNT: Sql = Sql::new("SELECT count(*) FROM main.kv WHERE key >= ''");
static COUNT_EXPIRED: Sql = Sql::new("SELECT count(*) FROM main.kv_expiry WHERE expires_at <= ?1");
static NEXT_EXPIRY: Sql = Sql::new("SELECT expires_at FROM main.kv_expiry ORDER BY expires_at LIMIT 1");

/// Statements to keep prepared.
pub static STATEMENTS: &[&[&Sql]] =
    &[&[&COUNT, &COUNT_EXPIRED, &NEXT_EXPIRY], entry::STATEMENTS, parts::STATEMENTS, changes::STATEMENTS];

/// The tables that are used by their keys, past SQL: a get or a put costs half as much.
pub struct Tables {
    /// `kv`: key, version, value.
    pub entries: KeyedTable,
    /// `kv_note`: key, note.
    pub notes: KeyedTable,
}

/// Columns of `kv`.
const VERSION: usize = 1;
const VALUE: usize = 2;
/// Column of `kv_note`.
const NOTE: usize = 1;

impl Tables {
    /// Looks at them once their migrations are applied.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(database: &Database) -> Result<Self, EngineError> {
        Ok(Self { entries: database.keyed("kv")?, notes: database.keyed("kv_note")? })
    }
}

/// What the heap knows of the entries: whether the cheapest ways to read and write will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the next entry expires or has expired, in nanoseconds since 1970; none: no entry expires.
    pub next_expiry: Option<u64>,
    /// Whether a value is in parts.
    pub parts: bool,
}

impl State {
    /// What is safe to take for the state when it cannot be read.
    const UNKNOWN: Self = Self { next_expiry: Some(0), parts: true };

    /// Reads it from the database.
    ///
    /// # Errors
    /// The engine's.
    pub fn of(reader: &Reader<'_>) -> Result<Self, EngineError> {
        Ok(Self { next_expiry: next_expiry(reader)?, parts: parts::any(reader)? })
    }

    /// The same when the service starts. A damaged table does not keep it from starting: what is whole can be read, and
    /// the damage can be looked for.
    pub fn load(reader: &Reader<'_>) -> Self {
        Self::of(reader).unwrap_or(Self::UNKNOWN)
    }

    /// Whether no entry expires and no value is in parts.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.next_expiry.is_none() && !self.parts
    }
}

fn next_expiry(reader: &Reader<'_>) -> Result<Option<u64>, EngineError> {
    let at = reader.query_row(&NEXT_EXPIRY, (), |row| row.integer(0))?;
    Ok(at.map(|at| u64::try_from(at).unwrap_or(0)))
}

/// Hands the text of a key to `found`; `None` if there is no such key. `now`, in nanoseconds since 1970, need be given
/// only if entries expire.
///
/// # Errors
/// The engine's; a value that is no text.
#[inline]
pub fn get<T>(
    reader: &Reader<'_>,
    tables: &Tables,
    key: &str,
    now: Option<u64>,
    found: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, Failure> {
    match now {
        None => reader.get(&tables.entries, key, |row| text(row.value(VALUE)?, found)),
        Some(now) => get_unless_expired(reader, tables, key, now, found),
    }
}

#[inline(never)]
fn get_unless_expired<T>(
    reader: &Reader<'_>,
    tables: &Tables,
    key: &str,
    now: u64,
    found: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, Failure> {
    let value = reader.get(&tables.entries, key, |row| {
        if row.integer(VERSION)? < 0 && entry::expires_at(reader, key)? <= now {
            return Ok(None);
        }
        text(row.value(VALUE)?, found).map(Some)
    })?;
    Ok(value.flatten())
}

#[inline(always)]
fn text<T>(value: ValueRef<'_>, found: impl FnOnce(&[u8]) -> T) -> Result<T, Failure> {
    match value {
        ValueRef::Text(text) => Ok(found(text)),
        other => Err(not_text(other)),
    }
}

#[cold]
fn not_text(value: ValueRef<'_>) -> Failure {
    let method = if matches!(value, ValueRef::Integer(_)) { "kv_read" } else { "kv_get_entry or kv_read" };
    let message = format!("the key's value is a blob, not text; read it with {method}");
    Error::Other { code: "not text".to_owned(), message }.into()
}

/// The id of a transaction as a version is stored.
fn stored_version(version: u64) -> Result<i64, Error> {
    // SQLite's integers are signed. At a billion transactions a second it is 292 years until this fails.
    i64::try_from(version).map_err(|_| Error::Other {
        code: "transactions".to_owned(),
        message: format!("transaction {version} is the last that can be numbered; move the data to a new canister"),
    })
}

/// Writes the value of a key as a transaction of its own and answers the transaction's id. Only for entries whose
/// [`State::is_plain`].
///
/// # Errors
/// The engine's; nothing has changed then.
#[inline]
pub fn put(database: &mut Database, tables: &Tables, key: &str, value: ValueRef<'_>) -> Result<u64, Failure> {
    let version = database.next_transaction_id();
    let stored = stored_version(version)?;
    database.put(&tables.entries, &[key.into(), stored.into(), value])?;
    Ok(version)
}

/// The note of a key, in an outer `None` if there is no such key.
///
/// # Errors
/// The engine's.
pub fn get_note(reader: &Reader<'_>, tables: &Tables, key: &str, now: u64) -> Result<Option<Option<String>>, Failure> {
    if entry::version(reader, tables, key, now)?.is_none() {
        return Ok(None);
    }
    Ok(Some(entry::note(reader, tables, key)?))
}

/// The number of keys. It takes about 250 instructions a key.
///
/// # Errors
/// The engine's; its budget's above all.
pub fn count(reader: &Reader<'_>, now: u64) -> Result<u64, EngineError> {
    let all = reader.query_row(&COUNT, (), |row| row.integer(0))?.unwrap_or(0);
    let expired = reader.query_row(&COUNT_EXPIRED, (stored_now(now),), |row| row.integer(0))?.unwrap_or(0);
    Ok(u64::try_from(all - expired).unwrap_or(0))
}
