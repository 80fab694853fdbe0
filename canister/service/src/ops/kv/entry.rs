//! An entry as it is stored, and whether it has expired.
//!
//! Invariants, kept by [`super::changes`]:
//! - `kv.version` is negative exactly for the entries that have a row in `kv_expiry`.
//! - `kv.value` is an INTEGER, the value's size, exactly for the entries whose value is in `kv_part`.
//! - Each note belongs to a key in `kv`.
use super::{NOTE, Tables, VALUE, VERSION, parts};
use crate::error::Failure;
use crate::limits::VALUE_BYTES_MAX;
use icsql_engine::{KeyedRow, Reader, Sql, ValueRef};
use icsql_types::{Entry, Error, KvValue};

static EXPIRES_AT: Sql = Sql::new("SELECT expires_at FROM main.kv_expiry WHERE key = ?1");

/// Statements to keep prepared.
pub static STATEMENTS: &[&Sql] = &[&EXPIRES_AT];

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
    /// What a row of `kv` says of the entry `key`.
    ///
    /// # Errors
    /// The engine's; [`Error::Corrupt`].
    pub fn of_row(reader: &Reader<'_>, row: &KeyedRow<'_>, key: &str) -> Result<Self, Failure> {
        let version = row.integer(VERSION)?;
        let (stored, size) = match row.value(VALUE)? {
            ValueRef::Text(text) => (Stored::Text, text.len() as u64),
            ValueRef::Blob(blob) => (Stored::Blob, blob.len() as u64),
            ValueRef::Integer(size) => {
                let size = u64::try_from(size).map_err(|_| damaged(key, &format!("its size is {size}")))?;
                (Stored::Parts, size)
            }
            other => return Err(damaged(key, &format!("its value is of type {}", other.kind()))),
        };
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
pub fn find(reader: &Reader<'_>, tables: &Tables, key: &str) -> Result<Option<Found>, Failure> {
    reader.get(&tables.entries, key, |row| Found::of_row(reader, row, key))
}

/// The entry of a key unless it has expired at `now`, in nanoseconds since 1970.
///
/// # Errors
/// As [`find`].
pub fn visible(reader: &Reader<'_>, tables: &Tables, key: &str, now: u64) -> Result<Option<Found>, Failure> {
    Ok(find(reader, tables, key)?.filter(|found| !found.is_expired(now)))
}

/// The version of an entry unless it has expired.
///
/// # Errors
/// As [`find`].
pub fn version(reader: &Reader<'_>, tables: &Tables, key: &str, now: u64) -> Result<Option<u64>, Failure> {
    let version = reader.get(&tables.entries, key, |row| {
        let version = row.integer(VERSION)?;
        Ok::<_, Failure>(if version < 0 && expires_at(reader, key)? <= now {
            None
        } else {
            Some(version.unsigned_abs())
        })
    })?;
    Ok(version.flatten())
}

/// The note of a key, if it has one.
///
/// # Errors
/// The engine's.
pub fn note(reader: &Reader<'_>, tables: &Tables, key: &str) -> Result<Option<String>, Failure> {
    reader.get(&tables.notes, key, |row| Ok::<_, Failure>(row.text(NOTE)?.to_owned()))
}

/// The whole entry of a key unless it has expired at `now`; without its value if that is above [`VALUE_BYTES_MAX`].
///
/// # Errors
/// As [`find`].
pub fn get(reader: &Reader<'_>, tables: &Tables, key: &str, now: u64) -> Result<Option<Entry>, Failure> {
    let entry = reader.get(&tables.entries, key, |row| {
        let found = Found::of_row(reader, row, key)?;
        if found.is_expired(now) {
            return Ok::<_, Failure>(None);
        }
        let whole = found.size <= VALUE_BYTES_MAX as u64;
        let value = if whole { Some(value_of_row(reader, key, &found, row.value(VALUE)?)?) } else { None };
        Ok(Some((found, value)))
    })?;
    let Some((found, value)) = entry.flatten() else { return Ok(None) };
    Ok(Some(found.into_entry(key, value, note(reader, tables, key)?)))
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
pub fn read(
    reader: &Reader<'_>,
    tables: &Tables,
    key: &str,
    found: &Found,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, Failure> {
    if found.stored == Stored::Parts {
        return parts::read(reader, key, found.size, offset, length);
    }
    let bytes = reader.get(&tables.entries, key, |row| {
        let bytes = row.value(VALUE)?.as_bytes().unwrap_or(&[]);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        Ok::<_, Failure>(bytes[start..end].to_vec())
    })?;
    bytes.ok_or_else(|| damaged(key, "it is gone"))
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
