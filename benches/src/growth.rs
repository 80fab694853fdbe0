//! What many rows change: the same calls with 1,000, 100,000 and 1,000,000 of them, and a large database that is opened.
//!
//! It takes minutes, and so is no part of the drift check: `icsql-benches --growth` measures it and replaces these rows of
//! the results.

use std::time::Instant;

use icsql_replica::Cost;
use icsql_types::method::{DB_META, KV_GET, KV_LIST, KV_PUT, KV_PUT_BLOB, SQL_EXECUTE, SQL_QUERY};
use icsql_types::{ByteBuf, KvList, Value};

use crate::canister::Deployed;
use crate::data::{self, SAMPLES, sample_row};
use crate::results::Measurement;
use crate::service::{load_kv, migrate, statement};
use crate::subject::ICSQL;

/// What the names of these cases begin with.
pub const PREFIX: &str = "growth_";
/// The row counts, of `kv` and of a table with an index each.
pub const ROWS: [u32; 3] = [1_000, 100_000, 1_000_000];

/// Entries of a page.
const LIST_ENTRIES: u32 = 100;

const TABLE: &str = "\
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX item_name ON item(name)";
/// Rows of the table that one call makes.
const FILL_ROWS: u32 = 10_000;
/// Parameters: the first and the last row. The names of rows that follow each other are far apart in the index: 7,919 and
/// 1,000,003 are prime, so that no two are equal.
const FILL: &str = "\
INSERT INTO item WITH RECURSIVE n(i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2) \
SELECT i, printf('name-%07d', i * 7919 % 1000003), printf('%0100d', i) FROM n";
const SELECT: &str = "SELECT id, text FROM item WHERE name = ?1";

/// Bytes of each value of the large database: the most that a value has.
const LARGE_VALUE_BYTES: usize = 1_900_000;
/// So many of them fill more than 2 GiB, which is what a message may touch of stable memory.
const LARGE_VALUES: u32 = 1_180;
/// Bytes that the large database must have.
const LARGE_BYTES: u64 = 2 << 30;
/// Small rows beside the large values.
const LARGE_ROWS: u32 = 1_000;

/// Makes one sample of a case on a canister with so many rows.
type Measure = fn(&mut Deployed, u32, u32) -> Result<Cost, String>;

const CASES: [(&str, Measure); 4] = [
    ("growth_kv_get", |icsql, rows, sample| get(icsql, sample_row(rows, sample))),
    ("growth_kv_list_100", |icsql, rows, sample| {
        let first = sample_row(rows - LIST_ENTRIES, sample);
        let list =
            KvList { from: Some(data::key(first)), limit: Some(LIST_ENTRIES), values: Some(true), ..KvList::default() };
        let (page, cost) = icsql.own(&KV_LIST, (list,))?;
        match page.entries.as_slice() {
            entries if entries.len() == LIST_ENTRIES as usize && entries[0].key == data::key(first) => Ok(cost),
            entries => Err(format!("a page of {} entries", entries.len())),
        }
    }),
    ("growth_sql_indexed", |icsql, rows, sample| select(icsql, sample_row(rows, sample))),
    ("growth_kv_put", |icsql, rows, sample| {
        let row = sample_row(rows, sample);
        icsql.own(&KV_PUT, (data::key(row), data::value(row, 1), None)).map(|(_, cost)| cost)
    }),
];

/// Loads each number of rows into a new canister and measures every case; then the large database.
///
/// # Errors
/// What went wrong in which case, in words.
pub fn run(wasm: &[u8]) -> Result<Vec<Measurement>, String> {
    let mut measured = Vec::new();
    for rows in ROWS {
        eprintln!("growth: {rows} rows");
        measured.extend(with_rows(wasm, rows).map_err(|error| format!("{rows} rows: {error}"))?);
    }
    eprintln!("growth: a large database");
    measured.extend(large(wasm).map_err(|error| format!("the large database: {error}"))?);
    Ok(measured)
}

fn with_rows(wasm: &[u8], rows: u32) -> Result<Vec<Measurement>, String> {
    let mut icsql = Deployed::new(wasm, &[], crate::replica_config())?;
    load_kv(&mut icsql, rows)?;
    migrate(&mut icsql, TABLE)?;
    for first in (1..=rows).step_by(FILL_ROWS as usize) {
        let last = rows.min(first + FILL_ROWS - 1);
        let ends = vec![Value::Integer(first.into()), Value::Integer(last.into())];
        icsql.own(&SQL_EXECUTE, (statement(FILL, ends), None))?;
    }
    let mut measured = Vec::new();
    for (case, measure) in CASES {
        let mut samples = Vec::new();
        for sample in 0..SAMPLES {
            samples.push(measure(&mut icsql, rows, sample).map_err(|error| format!("{case}: {error}"))?);
        }
        samples.sort_by_key(|cost| cost.instructions);
        let median = samples[samples.len() / 2];
        measured.push(Measurement::new(case, ICSQL, rows, median.instructions, &median));
    }
    measured.push(opened(&mut icsql, "growth_upgrade", rows)?);
    Ok(measured)
}

/// A large database is opened by an upgrade and asked at once.
fn large(wasm: &[u8]) -> Result<Vec<Measurement>, String> {
    let mut icsql = Deployed::new(wasm, &[], crate::replica_config())?;
    load_kv(&mut icsql, LARGE_ROWS)?;
    migrate(&mut icsql, TABLE)?;
    let ends = vec![Value::Integer(1), Value::Integer(LARGE_ROWS.into())];
    icsql.own(&SQL_EXECUTE, (statement(FILL, ends), None))?;
    for number in 0..LARGE_VALUES {
        // No page is equal to another.
        let mut value = number.to_le_bytes().repeat(LARGE_VALUE_BYTES / 4);
        for (page, bytes) in value.chunks_mut(1_024).enumerate() {
            bytes[..4].copy_from_slice(&(page as u32).to_le_bytes());
        }
        icsql.own(&KV_PUT_BLOB, (format!("large-{number:04}"), ByteBuf::from(value), None))?;
    }
    let rows = LARGE_ROWS + LARGE_VALUES;
    let upgraded = opened(&mut icsql, "growth_large_upgrade", rows)?;
    match upgraded.image_bytes {
        Some(bytes) if bytes >= LARGE_BYTES => {}
        other => return Err(format!("the image has {other:?} bytes")),
    }
    let mut measured = vec![upgraded];
    let calls: [(&str, Measure); 3] = [
        ("growth_large_kv_get", |icsql, rows, _| get(icsql, rows / 2)),
        ("growth_large_sql_indexed", |icsql, rows, _| select(icsql, rows / 2)),
        ("growth_large_kv_put", |icsql, rows, _| {
            icsql.own(&KV_PUT, (data::key(rows / 2), data::value(rows / 2, 1), None)).map(|(_, cost)| cost)
        }),
    ];
    for (case, call) in calls {
        let started = Instant::now();
        let cost = call(&mut icsql, LARGE_ROWS, 0).map_err(|error| format!("{case}: {error}"))?;
        let millis = Some(started.elapsed().as_millis() as u64);
        measured.push(Measurement { millis, ..Measurement::new(case, ICSQL, rows, cost.instructions, &cost) });
    }
    Ok(measured)
}

/// What an upgrade costs, and how long it takes here.
fn opened(icsql: &mut Deployed, case: &str, rows: u32) -> Result<Measurement, String> {
    let started = Instant::now();
    let cost = icsql.upgrade()?;
    let millis = Some(started.elapsed().as_millis() as u64);
    let (meta, _) = icsql.own(&DB_META, ())?;
    let measured = Measurement::new(case, ICSQL, rows, cost.instructions, &cost);
    Ok(Measurement { image_bytes: Some(meta.image_bytes), millis, ..measured })
}

fn get(icsql: &mut Deployed, row: u32) -> Result<Cost, String> {
    let (value, cost) = icsql.own(&KV_GET, (data::key(row),))?;
    match value {
        Some(value) if value == data::value(row, 0) => Ok(cost),
        other => Err(format!("row {row} has the value {other:?}")),
    }
}

/// Finds a row by its name.
fn select(icsql: &mut Deployed, row: u32) -> Result<Cost, String> {
    let id = u64::from(row) + 1;
    let name = Value::Text(format!("name-{:07}", id * 7_919 % 1_000_003));
    let (set, cost) = icsql.own(&SQL_QUERY, (statement(SELECT, vec![name]), None))?;
    match set.rows.as_slice() {
        [row] if row.first() == Some(&Value::Integer(id as i64)) => Ok(cost),
        rows => Err(format!("found {rows:?}")),
    }
}
