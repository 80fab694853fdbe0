//! Keys, values and notes.
use crate::error::Failure;
use icsql_engine::{Database, Error as EngineError, Reader, Sql, ValueRef, Writer};
use icsql_types::Error;

static GET: Sql = Sql::new("SELECT value FROM main.kv WHERE key = ?1");
static PUT: Sql = Sql::new("INSERT OR REPLACE INTO main.kv(key, version, value) VALUES (?1, ?2, ?3)");
static EXISTS: Sql = Sql::new("SELECT 1 FROM main.kv WHERE key = ?1");
static GET_NOTE: Sql =
    Sql::new("SELECT n.note FROM main.kv AS k LEFT JOIN main.kv_note AS n ON n.key = k.key WHERE k.key = ?1");
static SET_NOTE: Sql = Sql::new("INSERT OR REPLACE INTO main.kv_note(key, note) VALUES (?1, ?2)");
static REMOVE_NOTE: Sql = Sql::new("DELETE FROM main.kv_note WHERE key = ?1");
// With a condition, though every key meets it: SQLite counts a whole b-tree in a single step of its virtual machine,
// and a step cannot be stopped by a budget.
static COUNT: Sql = Sql::new("SELECT count(*) FROM main.kv WHERE key >= ''");

/// Statements to keep prepared.
pub static STATEMENTS: &[&Sql] = &[&GET, &PUT, &EXISTS, &GET_NOTE, &SET_NOTE, &REMOVE_NOTE, &COUNT];

/// Hands the value of a key to `found`; `None` if there is no such key.
///
/// # Errors
/// The engine's; a value that is no text.
#[inline]
pub fn get<T>(reader: &Reader<'_>, key: &str, found: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Failure> {
    reader.query_row(&GET, (key,), |row| match row.value(0)? {
        ValueRef::Text(text) => Ok(found(text)),
        other => Err(not_text(other.kind())),
    })
}

#[cold]
fn not_text(kind: &str) -> Failure {
    Error::Other { code: "not text".to_owned(), message: format!("the key's value is of type {kind}, not text") }.into()
}

/// Writes the value of a key as a transaction of its own and answers the transaction's id.
///
/// # Errors
/// The engine's; nothing has changed then.
#[inline]
pub fn put(database: &mut Database, key: &str, value: &str) -> Result<u64, Failure> {
    let version = database.next_transaction_id();
    database.execute(&PUT, (key, stored(version)?, value))?;
    Ok(version)
}

/// The same in a transaction that does more.
///
/// # Errors
/// The engine's.
pub fn put_within(writer: &Writer<'_>, key: &str, value: &str) -> Result<u64, Failure> {
    let version = writer.id();
    writer.execute(&PUT, (key, stored(version)?, value))?;
    Ok(version)
}

/// SQLite's integers are signed. At a billion transactions a second it is 292 years until this fails.
#[inline]
fn stored(version: u64) -> Result<i64, Error> {
    i64::try_from(version).map_err(|_| Error::Other {
        code: "transactions".to_owned(),
        message: format!("transaction {version} is the last that can be numbered; move the data to a new canister"),
    })
}

/// Sets the note of a key, or removes it. `false`: there is no such key.
///
/// # Errors
/// The engine's.
pub fn set_note(writer: &Writer<'_>, key: &str, note: Option<&str>) -> Result<bool, EngineError> {
    if writer.query_row(&EXISTS, (key,), |_| Ok::<_, EngineError>(()))?.is_none() {
        return Ok(false);
    }
    match note {
        Some(note) => writer.execute(&SET_NOTE, (key, note))?,
        None => writer.execute(&REMOVE_NOTE, (key,))?,
    };
    Ok(true)
}

/// The note of a key, in an outer `None` if there is no such key.
///
/// # Errors
/// The engine's.
pub fn get_note(reader: &Reader<'_>, key: &str) -> Result<Option<Option<String>>, EngineError> {
    reader.query_row(&GET_NOTE, (key,), |row| match row.value(0)? {
        ValueRef::Null => Ok(None),
        _ => Ok(Some(row.text(0)?.to_owned())),
    })
}

/// The number of keys. It takes about 250 instructions a key.
///
/// # Errors
/// The engine's; its budget's above all.
pub fn count(reader: &Reader<'_>) -> Result<u64, EngineError> {
    let count = reader.query_row(&COUNT, (), |row| row.integer(0))?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}
