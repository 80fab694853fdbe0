//! The same data by SQL: a migration makes the table, batches fill it, and a named query lets anybody ask.

use crate::airports::Airport;
use crate::deployed::{Deployed, Price};
use crate::error::Error;
use crate::progress::Progress;
use icsql_types::method::{QUERY_DEFINE, SQL_BATCH, SQL_MIGRATE};
use icsql_types::{
    BatchExecuted, Callers, DefinedQuery, Migrated, Params, QueryDefinition, QueryParameter, RowSet, SqlMigration,
    SqlWriteOptions, Statement, Value,
};
use serde::Serialize;
use std::time::Instant;

/// The table, and what it is asked for by. The columns are in the order of [`Airport::row`].
const TABLE: &str = "\
CREATE TABLE airport(
  icao TEXT PRIMARY KEY,
  iata TEXT,
  name TEXT NOT NULL,
  city TEXT,
  region TEXT,
  country TEXT NOT NULL,
  elevation REAL NOT NULL,
  latitude REAL NOT NULL,
  longitude REAL NOT NULL,
  time_zone TEXT NOT NULL,
  faa TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX airport_iata ON airport(iata) WHERE iata IS NOT NULL;
CREATE INDEX airport_country ON airport(country, icao);
";
const COLUMNS: usize = 11;
/// Rows of a statement: a statement has up to 1,000 parameters.
const ROWS: usize = 90;
/// Rows of a call. Sending a byte costs 2,000 cycles and a message 6 million, so long statements in few calls are cheapest.
const BATCH: usize = 50 * ROWS;

/// The statement that is shown. It goes through the whole table.
pub const COUNTRIES: &str = "SELECT country, count(*) AS airports, max(elevation) AS highest_feet \
    FROM airport GROUP BY country ORDER BY airports DESC LIMIT 3";
/// One that an index answers.
pub const BY_CODE: &str = "SELECT name, city, country, elevation FROM airport WHERE iata = ?1";
/// A join of the table with the key-value store, whose values are JSON.
pub const JOINED: &str = "SELECT a.name, kv.value ->> 'tz' AS time_zone, kv.version \
    FROM airport AS a JOIN kv ON kv.key = a.icao WHERE a.iata = ?1";

/// The named query.
pub const QUERY: &str = "airports_of_country";
/// What it is asked for.
pub const COUNTRY: &str = "CH";
/// Rows of a page that is shown.
pub const PAGE_ROWS: u32 = 3;

/// What loading cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadedRows {
    /// Calls of `sql_batch`.
    pub calls: u64,
    /// Rows that they inserted.
    pub rows: u64,
    /// Seconds on this machine.
    pub seconds: f64,
    /// Instructions of all calls.
    pub instructions: u64,
    /// Cycles that the canister paid for all calls.
    pub cycles: u64,
    /// Instructions for a row, rounded.
    pub instructions_per_row: u64,
    /// The last call, made again with the same key: nothing is done twice.
    pub repeated: Price,
}

/// Creates the table.
///
/// # Errors
/// When the call fails.
pub fn migrate(deployed: &Deployed) -> Result<(Migrated, Price), Error> {
    let migration = SqlMigration { version: 1, name: "airports".into(), sql: TABLE.into() };
    deployed.update(&SQL_MIGRATE, (vec![migration], None))
}

/// Inserts all airports, each batch with an idempotency key of its own.
///
/// # Errors
/// At the first call that fails; those before it stay. When a repeated call does something.
pub fn load(deployed: &Deployed, airports: &[Airport]) -> Result<LoadedRows, Error> {
    let progress = Progress::new(airports.len());
    let started = Instant::now();
    let (mut calls, mut rows, mut total) = (0, 0, Price::default());
    let mut last = None;
    for batch in airports.chunks(BATCH) {
        let (done, price) = insert(deployed, batch, calls)?;
        calls += 1;
        rows += done.results.iter().map(|result| result.changes).sum::<u64>();
        total.instructions += price.instructions;
        total.cycles += price.cycles;
        progress.reached(usize::try_from(rows).unwrap_or(usize::MAX));
        last = Some((batch, done));
    }
    progress.end();
    let seconds = started.elapsed().as_secs_f64();
    let mut repeated = Price::default();
    if let Some((batch, first)) = last {
        let (again, price) = insert(deployed, batch, calls - 1)?;
        if again != first {
            let message = "a call that was made again with its key did not answer the same".into();
            return Err(Error::Unexpected { call: SQL_BATCH.name.into(), message });
        }
        repeated = price;
    }
    Ok(LoadedRows {
        calls,
        rows,
        seconds,
        instructions: total.instructions,
        cycles: total.cycles,
        instructions_per_row: (total.instructions + rows / 2).checked_div(rows).unwrap_or(0),
        repeated,
    })
}

fn insert(deployed: &Deployed, airports: &[Airport], number: u64) -> Result<(BatchExecuted, Price), Error> {
    let insert = |airports: &[Airport]| Statement {
        sql: insert_of(airports.len()),
        params: Some(Params::Positional(airports.iter().flat_map(|airport| airport.row.iter().cloned()).collect())),
    };
    let key = Some(format!("airports {number}"));
    let options = SqlWriteOptions { idempotency_key: key, ..SqlWriteOptions::default() };
    deployed.update(&SQL_BATCH, (airports.chunks(ROWS).map(insert).collect(), Some(options)))
}

/// The statement that inserts so many rows.
fn insert_of(rows: usize) -> String {
    let row = format!("({})", ["?"; COLUMNS].join(","));
    format!("INSERT INTO airport VALUES {}", vec![row; rows].join(","))
}

/// Defines the query that anybody may call.
///
/// # Errors
/// When the call fails.
pub fn define(deployed: &Deployed) -> Result<(DefinedQuery, Price), Error> {
    let definition = QueryDefinition {
        name: QUERY.into(),
        sql: "SELECT icao, iata, name, elevation FROM airport WHERE country = :country ORDER BY icao".into(),
        params: vec![QueryParameter { name: "country".into(), type_name: "text".into(), nullable: false }],
        callers: Callers::Public,
        max_rows: Some(100),
        max_bytes: None,
        max_instructions: Some(50_000_000),
        allow_full_scan: None,
    };
    deployed.update(&QUERY_DEFINE, (definition, None))
}

/// One parameter, by position.
pub fn with(value: &str) -> Params {
    Params::Positional(vec![Value::Text(value.into())])
}

/// The parameters of the named query.
pub fn country() -> Params {
    Params::Named(vec![("country".into(), Value::Text(COUNTRY.into()))])
}

/// A page as lines of text: its columns' names and its rows, in columns.
pub fn table(page: &RowSet) -> Vec<String> {
    let head = page.columns.clone();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(page.rows.iter().map(|row| row.iter().map(cell).collect())).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..page.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
        Value::InvalidText(bytes) => format!("{} bytes that are no UTF-8", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use icsql_types::{Cost, Stop};

    #[test]
    fn rows_stand_in_columns() {
        let page = RowSet {
            columns: vec!["name".into(), "elevation".into()],
            rows: vec![vec![Value::Text("Zürich".into()), Value::Real(1416.0)], vec![Value::Null, Value::Integer(-7)]],
            stop: Stop::End,
            cursor: None,
            transaction: 1,
            cost: Cost::default(),
        };
        assert_eq!(table(&page), ["name    elevation", "Zürich  1416", "NULL    -7"]);
    }

    #[test]
    fn a_statement_has_a_place_for_each_column_and_stays_within_the_limit() {
        assert_eq!(TABLE.lines().filter(|line| line.starts_with("  ")).count(), COLUMNS);
        assert_eq!(insert_of(2).matches('?').count(), 2 * COLUMNS);
        assert!(insert_of(ROWS).matches('?').count() <= 1_000);
    }
}
