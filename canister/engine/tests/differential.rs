//! Random histories, played on the engine and on stock SQLite side by side: after each step both have answered the same.
//! Mixed in: transactions that are given up, statements that fail half way, reopening, and a cache of a few pages.
//!
//! `ICSQL_SEED=n` plays one history again.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, OpenOptions, Value};
use std::ops::ControlFlow;
use support::{assert_whole, open_with};

const SCHEMA: &str = "
    CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE item(id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, name TEXT UNIQUE, size REAL, body BLOB);
    CREATE INDEX item_grp ON item(grp, size);
    CREATE TABLE log(what TEXT, id INTEGER);
    CREATE TRIGGER item_gone AFTER DELETE ON item BEGIN INSERT INTO log VALUES ('gone', old.id); END;
";

const CHECKS: &[&str] = &[
    "SELECT * FROM kv ORDER BY key",
    "SELECT * FROM item ORDER BY id",
    "SELECT grp, count(*), sum(size), max(name) FROM item GROUP BY grp ORDER BY grp",
    "SELECT what, id FROM log ORDER BY id, what",
    "SELECT k.key, i.id FROM kv AS k JOIN item AS i ON i.name = k.key ORDER BY 1, 2",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// One statement: its text, its parameters.
type Step = (String, Vec<Value>);

fn step(random: &mut Random) -> Step {
    let key = Value::Text(format!("k{:03}", random.below(300)));
    let number = Value::Integer(random.below(400) as i64);
    let group = Value::Integer(random.below(7) as i64);
    let size = Value::Real(random.below(1_000) as f64 / 8.0);
    let body = Value::Blob(vec![random.next() as u8; random.below(3_000) as usize]);
    let text = |sql: &str| sql.to_owned();
    match random.below(12) {
        0 | 1 => (text("INSERT OR REPLACE INTO kv VALUES (?1, ?2)"), vec![key, body]),
        2 => (text("INSERT INTO kv VALUES (?1, ?2)"), vec![key, number]),
        3 => (text("DELETE FROM kv WHERE key BETWEEN ?1 AND ?1 || '5'"), vec![key]),
        4 | 5 => (text("INSERT OR IGNORE INTO item VALUES (?1, ?2, ?3, ?4, ?5)"), vec![number, group, key, size, body]),
        6 => (text("INSERT INTO item(grp, name, size) VALUES (?1, ?2, ?3)"), vec![group, key, size]),
        7 => (text("UPDATE item SET size = size + 1, grp = ?2 WHERE grp = ?1"), vec![group.clone(), group]),
        // Fails at the first name that is taken, after others were changed.
        8 => (text("UPDATE item SET name = 'k' || substr('00' || id, -3) WHERE id > ?1"), vec![number]),
        9 => (text("DELETE FROM item WHERE id % 17 = ?1"), vec![group]),
        10 => (text("INSERT INTO item(grp, name) SELECT grp, name || 'x' FROM item WHERE grp = ?1"), vec![group]),
        _ => (text("UPDATE OR REPLACE item SET name = ?2 WHERE id = ?1"), vec![number, key]),
    }
}

fn to_stock(value: &Value) -> rusqlite::types::Value {
    match value {
        Value::Null => rusqlite::types::Value::Null,
        Value::Integer(integer) => rusqlite::types::Value::Integer(*integer),
        Value::Real(real) => rusqlite::types::Value::Real(*real),
        Value::Text(text) => rusqlite::types::Value::Text(text.clone()),
        Value::Blob(blob) => rusqlite::types::Value::Blob(blob.clone()),
    }
}

/// Rows changed, or SQLite's extended code.
fn run_stock(stock: &rusqlite::Connection, (sql, params): &Step) -> Result<u64, i32> {
    let params = rusqlite::params_from_iter(params.iter().map(to_stock));
    match stock.execute(sql, params) {
        Ok(changes) => Ok(changes as u64),
        Err(rusqlite::Error::SqliteFailure(error, _)) => Err(error.extended_code),
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn code(outcome: Result<u64, Error>) -> Result<u64, i32> {
    outcome.map_err(|error| match error {
        Error::Sqlite(error) => error.code,
        other => panic!("{other}"),
    })
}

fn stock_rows(stock: &rusqlite::Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = stock.prepare(sql).expect("it prepares");
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect("it runs");
    let mut found = Vec::new();
    while let Some(row) = rows.next().expect("it steps") {
        let row = (0..columns).map(|column| match row.get_unwrap::<_, rusqlite::types::Value>(column) {
            rusqlite::types::Value::Null => Value::Null,
            rusqlite::types::Value::Integer(integer) => Value::Integer(integer),
            rusqlite::types::Value::Real(real) => Value::Real(real),
            rusqlite::types::Value::Text(text) => Value::Text(text),
            rusqlite::types::Value::Blob(blob) => Value::Blob(blob),
        });
        found.push(row.collect());
    }
    found
}

fn play(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let page_bytes = 512 << random.below(4);
    let options = || OpenOptions { page_bytes, cache_bytes: 0, ..OpenOptions::default() };
    let raw = HeapMemory::new();
    let mut database: Database = open_with(&raw, options()).expect("it opens");
    let stock = rusqlite::Connection::open_in_memory().expect("it opens");
    stock.execute_batch("PRAGMA foreign_keys=ON").expect("it runs");
    stock.execute_batch(SCHEMA).expect("it runs");
    database.write(|tx| tx.execute_batch(SCHEMA)).expect("it runs");

    for turn in 0..300 {
        let context = format!("seed {seed}, turn {turn}, pages of {page_bytes}");
        match random.below(10) {
            0 => {
                drop(database);
                database = open_with(&raw, options()).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            1..=3 => {
                // Several statements in one transaction, which is kept or given up.
                let steps: Vec<Step> = (0..1 + random.below(6)).map(|_| step(&mut random)).collect();
                let keep = random.below(3) > 0;
                stock.execute_batch("BEGIN").expect("it runs");
                let expected: Vec<_> = steps.iter().map(|step| run_stock(&stock, step)).collect();
                stock.execute_batch(if keep { "COMMIT" } else { "ROLLBACK" }).expect("it runs");
                let mut found = Vec::new();
                let outcome = database.write(|tx| {
                    for (sql, params) in &steps {
                        found.push(code(tx.execute(sql, params.as_slice())));
                    }
                    if keep { Ok(()) } else { Err(Error::NotOneStatement { offset: 0 }) }
                });
                assert_eq!(outcome.is_ok(), keep, "{context}: {outcome:?}");
                assert_eq!(found, expected, "{context}: {steps:?}");
            }
            _ => {
                let step = step(&mut random);
                let expected = run_stock(&stock, &step);
                let found = code(database.execute(&step.0, step.1.as_slice()));
                assert_eq!(found, expected, "{context}: {step:?}");
            }
        }
        if turn % 10 == 0 {
            assert_whole(&mut database);
        }
        let check = CHECKS[turn % CHECKS.len()];
        let mut found = Vec::new();
        database
            .read(|tx| {
                tx.query(check, (), |row| {
                    let row: Result<Vec<_>, Error> =
                        (0..row.columns()).map(|column| Ok(row.value(column)?.to_value())).collect();
                    found.push(row?);
                    Ok::<_, Error>(ControlFlow::Continue(()))
                })
            })
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(found == stock_rows(&stock, check), "{context}: {check} differs");
    }
}

#[test]
fn random_histories_go_as_in_stock_sqlite() {
    if let Some(seed) = std::env::var("ICSQL_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return play(seed);
    }
    (1..=20).for_each(play);
}
