//! Values in parts: part `n` holds the bytes from `n * VALUE_PART_BYTES` on, each part but the last is full.
use super::entry::damaged;
use crate::error::Failure;
use crate::limits::VALUE_PART_BYTES;
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Reader, Sql, Writer};

static READ: Sql = Sql::new("SELECT number, bytes FROM main.kv_part WHERE key = ?1 AND number >= ?2 ORDER BY number");
static WRITE: Sql = Sql::new("INSERT OR REPLACE INTO main.kv_part(key, number, bytes) VALUES (?1, ?2, ?3)");
static LAST: Sql = Sql::new("SELECT number FROM main.kv_part WHERE key = ?1 ORDER BY number DESC LIMIT 1");
static REMOVE: Sql = Sql::new("DELETE FROM main.kv_part WHERE key = ?1 AND number >= ?2");
static ANY: Sql = Sql::new("SELECT 1 FROM main.kv_part LIMIT 1");

/// Statements to keep prepared.
pub static STATEMENTS: &[&Sql] = &[&READ, &WRITE, &LAST, &REMOVE, &ANY];

const PART: u64 = VALUE_PART_BYTES as u64;

/// Up to `length` bytes from `offset` on of a value of `size` bytes.
///
/// # Errors
/// The engine's; `Corrupt` if a part is not there.
pub fn read(reader: &Reader<'_>, key: &str, size: u64, offset: u64, length: usize) -> Result<Vec<u8>, Failure> {
    let end = offset.saturating_add(length as u64).min(size);
    let Some(wanted) = end.checked_sub(offset).filter(|wanted| *wanted > 0) else { return Ok(Vec::new()) };
    let mut bytes = Vec::with_capacity(wanted as usize);
    let mut next = (offset / PART) as i64;
    let mut skip = (offset % PART) as usize;
    reader.query(&READ, (key, next), |row| {
        if row.integer(0)? != next {
            return Ok(ControlFlow::Break(()));
        }
        next += 1;
        let part = row.blob(1)?.get(skip..).unwrap_or(&[]);
        skip = 0;
        let missing = wanted as usize - bytes.len();
        bytes.extend_from_slice(&part[..part.len().min(missing)]);
        let more = bytes.len() < wanted as usize;
        Ok::<_, Failure>(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    if bytes.len() as u64 != wanted {
        return Err(damaged(key, "a part of its value is missing"));
    }
    Ok(bytes)
}

/// Writes `bytes` as the parts from `number` on, which all are full but the last.
///
/// # Errors
/// The engine's.
pub fn write(writer: &Writer<'_>, key: &str, number: u64, bytes: &[u8]) -> Result<(), EngineError> {
    (number as i64..)
        .zip(bytes.chunks(VALUE_PART_BYTES))
        .try_for_each(|(number, part)| writer.execute(&WRITE, (key, number, part)).map(drop))
}

/// Removes the last parts of a value, at most `parts_max`. Answers how many there were and whether none is left.
///
/// # Errors
/// The engine's.
pub fn remove_last(writer: &Writer<'_>, key: &str, parts_max: u64) -> Result<(u64, bool), EngineError> {
    let last = writer.query_row(&LAST, (key,), |row| row.integer(0))?;
    let from = last.map_or(0, |last| last.saturating_add(1).saturating_sub_unsigned(parts_max)).max(0);
    Ok((writer.execute(&REMOVE, (key, from))?, from == 0))
}

/// Whether any value is in parts.
///
/// # Errors
/// The engine's.
pub fn any(reader: &Reader<'_>) -> Result<bool, EngineError> {
    Ok(reader.query_row(&ANY, (), |_| Ok::<_, EngineError>(()))?.is_some())
}
