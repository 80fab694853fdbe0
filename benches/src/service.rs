//! Methods that only icsql has: SQL, named queries, entries, writes that are safe to repeat.
//!
//! As in [`cases`](crate::cases): whole messages, all calls by the controller and replicated, each case the median of
//! calls about rows that are apart. The canister is one of its own, with the rows of the drift check in `kv` and as many in
//! a table `item` of a number, a name of 10 bytes and a text of 100.

use icsql_replica::Cost;
use icsql_types::method::{
    DB_META, KV_GET_ENTRY, KV_PUT, KV_SET_NOTE, KV_WRITE, QUERY_CALL, QUERY_DEFINE, SQL_BATCH, SQL_EXECUTE,
    SQL_MIGRATE, SQL_QUERY,
};
use icsql_types::{
    Callers, KvOperation, KvValue, Params, QueryDefinition, QueryParameter, RowSet, SqlMigration, Statement, Value,
    WriteOptions,
};

use crate::canister::Deployed;
use crate::cases::{self, KEYS_MANY};
use crate::data::{self, SAMPLES, sample_row};
use crate::results::Measurement;
use crate::subject::ICSQL;

/// Entries of one `kv_write` when data is loaded: the most that it takes.
pub(crate) const LOAD_ENTRIES: u32 = 1_000;

const TABLE: &str = "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL) STRICT";
const SELECT_ONE: &str = "SELECT id, name, text FROM item WHERE id = ?1";
const SELECT_MANY: &str = "SELECT id, name, text FROM item WHERE id >= ?1 ORDER BY id LIMIT 100";
const INSERT: &str = "INSERT INTO item(name, text) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE item SET text = ?2 WHERE id = ?1";
const UPDATE_RETURNING: &str = "UPDATE item SET text = ?2 WHERE id = ?1 RETURNING id, name, text";

/// Makes one sample of a case.
type Measure = fn(&mut Deployed, u32) -> Result<Cost, String>;

/// In the order in which they run on one canister.
const CASES: [(&str, Measure); 13] = [
    ("db_meta", |icsql, _| icsql.own(&DB_META, ()).map(|(_, cost)| cost)),
    ("kv_get_entry", |icsql, sample| {
        let key = data::key(row(sample));
        let (entry, cost) = icsql.own(&KV_GET_ENTRY, (key.clone(),))?;
        match entry {
            Some(entry) if entry.key == key && entry.value.is_some() => Ok(cost),
            other => Err(format!("{key}: {other:?}")),
        }
    }),
    ("sql_query_1", |icsql, sample| {
        let (set, cost) = icsql.own(&SQL_QUERY, (statement(SELECT_ONE, vec![id(sample)]), None))?;
        expect_rows(&set, sample, 1).map(|()| cost)
    }),
    ("sql_query_100", |icsql, sample| {
        let (set, cost) = icsql.own(&SQL_QUERY, (statement(SELECT_MANY, vec![id(sample)]), None))?;
        expect_rows(&set, sample, KEYS_MANY).map(|()| cost)
    }),
    ("query_call_1", |icsql, sample| {
        let (set, cost) = icsql.own(&QUERY_CALL, ("one".to_string(), Params::Positional(vec![id(sample)]), None))?;
        expect_rows(&set, sample, 1).map(|()| cost)
    }),
    ("query_call_100", |icsql, sample| {
        let (set, cost) = icsql.own(&QUERY_CALL, ("many".to_string(), Params::Positional(vec![id(sample)]), None))?;
        expect_rows(&set, sample, KEYS_MANY).map(|()| cost)
    }),
    ("kv_put_idempotent", |icsql, sample| {
        let options = WriteOptions { idempotency_key: Some(format!("request-{sample:06}")) };
        let row = row(sample);
        icsql.own(&KV_PUT, (data::key(row), data::value(row, 1), Some(options))).map(|(_, cost)| cost)
    }),
    ("kv_put_repeated", |icsql, sample| {
        let options = WriteOptions { idempotency_key: Some(format!("request-{sample:06}")) };
        let row = row(sample);
        icsql.own(&KV_PUT, (data::key(row), data::value(row, 1), Some(options))).map(|(_, cost)| cost)
    }),
    ("kv_set_note", |icsql, sample| {
        let note = Some(format!("note of row {:08}", row(sample)));
        icsql.own(&KV_SET_NOTE, (data::key(row(sample)), note, None)).map(|(_, cost)| cost)
    }),
    ("sql_execute_update", |icsql, sample| {
        let text = Value::Text(data::value(row(sample), 1));
        let (executed, cost) = icsql.own(&SQL_EXECUTE, (statement(UPDATE, vec![id(sample), text]), None))?;
        expect(executed.changes, 1).map(|()| cost)
    }),
    ("sql_execute_returning", |icsql, sample| {
        let text = Value::Text(data::value(row(sample), 2));
        let (executed, cost) = icsql.own(&SQL_EXECUTE, (statement(UPDATE_RETURNING, vec![id(sample), text]), None))?;
        expect(executed.rows.len() as u64, 1).map(|()| cost)
    }),
    ("sql_execute_insert", |icsql, sample| {
        let (executed, cost) = icsql.own(&SQL_EXECUTE, (insert(cases::ROWS[0] + sample), None))?;
        expect(executed.changes, 1).map(|()| cost)
    }),
    ("sql_batch_100", |icsql, sample| {
        let first = cases::ROWS[0] + SAMPLES + sample * KEYS_MANY;
        let statements: Vec<_> = (first..first + KEYS_MANY).map(insert).collect();
        let (executed, cost) = icsql.own(&SQL_BATCH, (statements, None))?;
        expect(executed.results.iter().map(|result| result.changes).sum(), KEYS_MANY.into()).map(|()| cost)
    }),
];

/// Loads the data into a new canister and measures every case.
///
/// # Errors
/// What went wrong in which case, in words.
pub fn run(wasm: &[u8]) -> Result<Vec<Measurement>, String> {
    let rows = cases::ROWS[0];
    let mut icsql = Deployed::new(wasm, &[], crate::replica_config())?;
    load_kv(&mut icsql, rows)?;
    migrate(&mut icsql, TABLE)?;
    for first in (0..rows).step_by(LOAD_ENTRIES as usize) {
        let statements: Vec<_> = (first..rows.min(first + LOAD_ENTRIES)).map(insert).collect();
        icsql.own(&SQL_BATCH, (statements, None))?;
    }
    define(&mut icsql, "one", &SELECT_ONE.replace("?1", ":id"))?;
    define(&mut icsql, "many", &SELECT_MANY.replace("?1", ":id"))?;

    let mut measured = Vec::new();
    for (case, measure) in CASES {
        let mut samples = Vec::new();
        for sample in 0..SAMPLES {
            samples.push(measure(&mut icsql, sample).map_err(|error| format!("{case}: {error}"))?);
        }
        samples.sort_by_key(|cost| cost.instructions);
        let median = samples[samples.len() / 2];
        measured.push(Measurement::new(case, ICSQL, rows, median.instructions, &median));
    }
    Ok(measured)
}

/// Puts rows into `kv`, as many with a call as it takes.
pub(crate) fn load_kv(icsql: &mut Deployed, rows: u32) -> Result<(), String> {
    let put = |row| KvOperation::Put {
        key: data::key(row),
        value: KvValue::Text(data::value(row, 0)),
        expires_at: None,
        condition: None,
    };
    for first in (0..rows).step_by(LOAD_ENTRIES as usize) {
        let operations: Vec<_> = (first..rows.min(first + LOAD_ENTRIES)).map(put).collect();
        icsql.own(&KV_WRITE, (operations, None))?;
    }
    Ok(())
}

/// Applies a first migration.
pub(crate) fn migrate(icsql: &mut Deployed, sql: &str) -> Result<(), String> {
    let migration = SqlMigration { version: 1, name: "benchmarks".to_string(), sql: sql.to_string() };
    icsql.own(&SQL_MIGRATE, (vec![migration], None)).map(drop)
}

fn define(icsql: &mut Deployed, name: &str, sql: &str) -> Result<(), String> {
    let definition = QueryDefinition {
        name: name.to_string(),
        sql: sql.to_string(),
        params: vec![QueryParameter { name: "id".to_string(), type_name: "integer".to_string(), nullable: false }],
        callers: Callers::Public,
        max_rows: None,
        max_bytes: None,
        max_instructions: None,
        allow_full_scan: None,
    };
    icsql.own(&QUERY_DEFINE, (definition, None)).map(drop)
}

/// A statement with parameters by position.
pub(crate) fn statement(sql: &str, params: Vec<Value>) -> Statement {
    Statement { sql: sql.to_string(), params: Some(Params::Positional(params)) }
}

fn insert(row: u32) -> Statement {
    statement(INSERT, vec![Value::Text(data::key(row)), Value::Text(data::value(row, 0))])
}

/// The row that a sample is about; so many rows follow it.
fn row(sample: u32) -> u32 {
    sample_row(cases::ROWS[0] - KEYS_MANY, sample)
}

/// Its number in the table, which counts from 1.
fn id(sample: u32) -> Value {
    Value::Integer(i64::from(row(sample)) + 1)
}

fn expect(found: u64, expected: u64) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found} rows in place of {expected}")) }
}

/// Whether the rows are those from the sample's on.
fn expect_rows(set: &RowSet, sample: u32, count: u32) -> Result<(), String> {
    expect(set.rows.len() as u64, count.into())?;
    let first = set.rows.first().and_then(|row| row.get(1));
    match first {
        Some(Value::Text(name)) if *name == data::key(row(sample)) => Ok(()),
        other => Err(format!("the first row has the name {other:?}")),
    }
}
