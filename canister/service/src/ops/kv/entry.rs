//! An entry as it is stored, and whether it has expired.
//!
//! Invariants, kept by [`super::changes`]:
//! - `kv.version` is negative exactly for the entries that have a row in `kv_expiry`.
//! - `kv.value` is an INTEGER, the value's size, exactly for the entries whose value is in `kv_part`.
//! - Each note belongs to a key in `kv`.
use super::parts;
use crate::error::Failure;
use crate::limits::VALUE_BYTES_MAX;
use icsql_engine::{Reader, Row, Sql, ValueRef};
use icsql_types::{Entry, Error, KvValue};

static FIND: Sql = Sql::new(
    "SELECT version, typeof(value), CASE typeof(value) WHEN 'integer' THEN value ELSE octet_length(value) END \
     FROM main.kv WHERE key = ?1",
);
static EXPIRES_AT: Sql = Sql::new("SELECT expires_at FROM main.kv_expiry WHERE key = ?1");
static VALUE: Sql = Sql::new("SELECT value FROM main.kv WHERE key = ?1");
static NOTE: Sql = Sql::new("SELECT note FROM main.kv_note WHERE key = ?1");

/// Statements to keep prepared.
pub static STATEMENTS: &[&Sql] = &[&FIND, &EXPIRES_AT, &VALUE, &NOTE];

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In `kv`, as text.
    Text,
    /// In `kv`, as a blob.
    Blob,
    /// A blob in `kv_part`.
    Parts,
}

/// An entry without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Id of the transaction that wrote the value.
    pub version: u64,
    /// When it expires, in nanoseconds since 1970.
    pub expires_at: Option<u64>,
    /// Where the value is.
    pub stored: Stored,
    /// Bytes of the value.
    pub size: u64,
}

impl Found {
    /// What three columns from `first` on say of the entry `key`: version, type and size of the value.
    ///
    /// # Errors
    /// The engine's; [`Error::Corrupt`].
    pub fn of_row(reader: &Reader<'_>, row: &Row<'_>, first: usize, key: &str) -> Result<Self, Failure> {
        let version = row.integer(first)?;
        let stored = match row.text(first + 1)? {
            "text" => Stored::Text,
            "blob" => Stored::Blob,
            "integer" => Stored::Parts,
            other => return Err(damaged(key, &format!("its value is of type {other}"))),
        };
        let size = row.integer(first + 2)?;
        let size = u64::try_from(size).map_err(|_| damaged(key, &format!("its size is {size}")))?;
        let expires_at = if version < 0 { Some(expires_at(reader, key)?) } else { None };
        Ok(Self { version: version.unsigned_abs(), expires_at, stored, size })
    }

    /// Whether it is gone for all who ask.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// When an entry expires that has a negative version.
pub fn expires_at(reader: &Reader<'_>, key: &str) -> Result<u64, Failure> {
    let found = reader.query_row(&EXPIRES_AT, (key,), |row| row.integer(0))?;
    found.and_then(|at| u64::try_from(at).ok()).ok_or_else(|| damaged(key, "its time of expiry is missing"))
}

/// The entry of a key, also one that has expired.
///
/// # Errors
/// The engine's; [`Error::Corrupt`].
pub fn find(reader: &Reader<'_>, key: &str) -> Result<Option<Found>, Failure> {
    reader.query_row(&FIND, (key,), |row| Found::of_row(reader, row, 0, key))
}

/// The entry of a key unless it has expired at `now`, in nanoseconds since 1970.
///
/// # Errors
/// As [`find`].
pub fn visible(reader: &Reader<'_>, key: &str, now: u64) -> Result<Option<Found>, Failure> {
    Ok(find(reader, key)?.filter(|found| !found.is_expired(now)))
}

/// The whole entry of a key unless it has expired at `now`; without its value if that is above [`VALUE_BYTES_MAX`].
///
/// # Errors
/// As [`find`].
pub fn get(reader: &Reader<'_>, key: &str, now: u64) -> Result<Option<Entry>, Failure> {
    let Some(found) = visible(reader, key, now)? else { return Ok(None) };
    let value = if found.size <= VALUE_BYTES_MAX as u64 { Some(value(reader, key, &found)?) } else { None };
    let note = reader.query_row(&NOTE, (key,), |row| Ok::<_, Failure>(row.text(0)?.to_owned()))?;
    Ok(Some(found.into_entry(key, value, note)))
}

impl Found {
    /// The entry in the interface's terms.
    pub fn into_entry(self, key: &str, value: Option<KvValue>, note: Option<String>) -> Entry {
        let Self { version, expires_at, size, .. } = self;
        Entry { key: key.to_owned(), value, size, version, expires_at, note }
    }
}

/// Up to `length` bytes of a value from `offset` on; fewer at its end.
///
/// # Errors
/// As [`find`].
pub fn read(reader: &Reader<'_>, key: &str, found: &Found, offset: u64, length: usize) -> Result<Vec<u8>, Failure> {
    if found.stored == Stored::Parts {
        return parts::read(reader, key, found.size, offset, length);
    }
    let bytes = reader.query_row(&VALUE, (key,), |row| {
        let bytes = row.value(0)?.as_bytes().unwrap_or(&[]);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        Ok::<_, Failure>(bytes[start..end].to_vec())
    })?;
    bytes.ok_or_else(|| damaged(key, "it is gone"))
}

/// The whole value of an entry.
fn value(reader: &Reader<'_>, key: &str, found: &Found) -> Result<KvValue, Failure> {
    let bytes = read(reader, key, found, 0, found.size as usize)?;
    match found.stored {
        Stored::Text => text(key, bytes),
        Stored::Blob | Stored::Parts => Ok(KvValue::Blob(bytes)),
    }
}

/// The value in a row of `kv`, with parts of it read if it is in parts.
///
/// # Errors
/// As [`find`].
pub fn value_of_row(reader: &Reader<'_>, key: &str, found: &Found, column: ValueRef<'_>) -> Result<KvValue, Failure> {
    match column {
        ValueRef::Text(bytes) => text(key, bytes.to_vec()),
        ValueRef::Blob(bytes) => Ok(KvValue::Blob(bytes.to_vec())),
        _ => Ok(KvValue::Blob(parts::read(reader, key, found.size, 0, found.size as usize)?)),
    }
}

fn text(key: &str, bytes: Vec<u8>) -> Result<KvValue, Failure> {
    String::from_utf8(bytes).map(KvValue::Text).map_err(|_| damaged(key, "its text is not UTF-8"))
}

/// The error for an entry that no write of the service's leaves behind.
#[cold]
pub fn damaged(key: &str, what: &str) -> Failure {
    Error::Corrupt { message: format!("the entry {key:?} is damaged: {what}") }.into()
}
