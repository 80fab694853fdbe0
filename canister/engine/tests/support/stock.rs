//! A stock SQLite, built by somebody else with options of its own, to compare with.
#![allow(dead_code, reason = "each test uses its part")]
use icsql_engine::{Error, Value};
use rusqlite::types::Value as Stock;
use rusqlite::{Connection, Statement, params_from_iter};

/// What a statement changed or answered, or SQLite's extended result code.
pub type Outcome<T> = Result<T, i32>;

fn to_stock(value: &Value) -> Stock {
    match value {
        Value::Null => Stock::Null,
        Value::Integer(integer) => Stock::Integer(*integer),
        Value::Real(real) => Stock::Real(*real),
        Value::Text(text) => Stock::Text(text.clone()),
        Value::Blob(blob) => Stock::Blob(blob.clone()),
    }
}

fn from_stock(value: Stock) -> Value {
    match value {
        Stock::Null => Value::Null,
        Stock::Integer(integer) => Value::Integer(integer),
        Stock::Real(real) => Value::Real(real),
        Stock::Text(text) => Value::Text(text),
        Stock::Blob(blob) => Value::Blob(blob),
    }
}

fn code(error: rusqlite::Error, sql: &str) -> i32 {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => error.extended_code,
        rusqlite::Error::SqlInputError { error, .. } => error.extended_code,
        error => panic!("{sql}: {error}"),
    }
}

/// A new stock database in memory.
pub fn in_memory() -> Connection {
    let stock = Connection::open_in_memory().expect("stock SQLite opens");
    stock.execute_batch("PRAGMA foreign_keys=ON").expect("it runs");
    stock
}

/// Runs one statement, which may answer rows, to its end; answers the rows that it changed.
pub fn execute(stock: &Connection, sql: &str, params: &[Value]) -> Outcome<u64> {
    rows(stock, sql, params).map(|_| stock.changes())
}

/// Runs one statement and answers its rows.
pub fn rows(stock: &Connection, sql: &str, params: &[Value]) -> Outcome<Vec<Vec<Value>>> {
    let run = |mut statement: Statement<'_>| {
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(params.iter().map(to_stock)))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let row = (0..columns).map(|column| row.get(column).map(from_stock));
            found.push(row.collect::<rusqlite::Result<_>>()?);
        }
        Ok(found)
    };
    stock.prepare(sql).and_then(run).map_err(|error| code(error, sql))
}

/// The extended result code of an error that is SQLite's.
pub fn engine_code(error: &Error) -> i32 {
    match error {
        Error::Sqlite(error) => error.code,
        error => panic!("an error that stock SQLite does not know: {error:?}"),
    }
}
