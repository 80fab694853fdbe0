//! Random schemas, data and queries through the canister and through stock SQLite: the same rows, the same errors.
//!
//! `ICSQL_SEED` runs one history, `ICSQL_MODEL_SECONDS` goes on for so long.
use crate::common::{Canister, Who, int, text, with};
use icsql_types::{Answer, Error, Executed, ReadOptions, Value};
use rusqlite::types::Value as Stock;
use rusqlite::{Connection, params_from_iter};
use std::time::{Duration, Instant};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => int(self.next() as i64),
            2 => int(*self.one(&[&i64::MIN, &i64::MAX, &0, &-1])),
            3 => Value::Real(self.below(64) as f64 / 4.0 - 8.0),
            4 => text(self.one(&["", "a", "A", "abc", "ü%_", "10", "1.5x", "a\0b"])),
            5 => Value::Blob(vec![0; self.below(4)].into()),
            _ => int(self.below(9) as i64 - 2),
        }
    }

    fn literal(&mut self) -> String {
        match self.value() {
            Value::Null => "NULL".to_owned(),
            Value::Integer(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => format!("{real:.2}"),
            Value::Text(text) => format!("'{}'", text.replace('\0', "")),
            Value::Blob(blob) => format!("x'{}'", "00".repeat(blob.len())),
            Value::InvalidText(_) => "0".to_owned(),
        }
    }

    fn expression(&mut self, columns: &[String], depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return if self.below(3) == 0 || columns.is_empty() {
                self.literal()
            } else {
                columns[self.below(columns.len())].clone()
            };
        }
        let (a, b) = (self.expression(columns, depth - 1), self.expression(columns, depth - 1));
        match self.below(10) {
            0..4 => {
                let operator = self.one(&[
                    "+", "-", "*", "/", "%", "||", "<", "<=", "=", "<>", "IS", "IS NOT", "AND", "OR", "&", ">>",
                ]);
                format!("({a} {operator} {b})")
            }
            4 => format!("{}({a})", self.one(&["abs", "length", "typeof", "upper", "hex", "quote", "unicode", "NOT "])),
            5 => format!("coalesce({a}, {b})"),
            6 => format!("CAST({a} AS {})", self.one(&["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC"])),
            7 => format!("CASE WHEN {a} THEN {b} ELSE {} END", self.literal()),
            8 => format!("({a} IN ({b}, {}, {}))", self.literal(), self.literal()),
            _ => format!("({a} {} {b})", self.one(&["LIKE", "GLOB", "BETWEEN 0 AND", "COLLATE NOCASE ="])),
        }
    }
}

/// Tables with their columns.
type Tables = Vec<(String, Vec<String>)>;

fn create(random: &mut Random, name: &str) -> (String, Vec<String>) {
    let columns: Vec<_> = (0..2 + random.below(3)).map(|place| format!("{name}_c{place}")).collect();
    let declared = columns.iter().map(|column| {
        let kind = random.one(&["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", ""]);
        let more = random.one(&["", "", "", "UNIQUE", "NOT NULL", "DEFAULT 7", "COLLATE NOCASE"]);
        format!("{column} {kind} {more}")
    });
    let declared = declared.collect::<Vec<_>>().join(", ");
    let check =
        if random.below(3) == 0 { format!(", CHECK({})", random.expression(&columns, 2)) } else { String::new() };
    (format!("CREATE TABLE {name}({declared}{check})"), columns)
}

fn write(random: &mut Random, tables: &Tables) -> (String, Vec<Value>) {
    let (table, columns) = &tables[random.below(tables.len())];
    let returning =
        if random.below(3) == 0 { format!(" RETURNING {}", random.expression(columns, 2)) } else { String::new() };
    match random.below(6) {
        0 => (format!("DELETE FROM {table} WHERE {}{returning}", random.expression(columns, 2)), Vec::new()),
        1 => {
            let column = &columns[random.below(columns.len())];
            let (new, which) = (random.expression(columns, 2), random.expression(columns, 2));
            (format!("UPDATE {table} SET {column} = {new} WHERE {which}{returning}"), Vec::new())
        }
        kind => {
            let verb = if kind == 2 { "INSERT OR REPLACE" } else { "INSERT" };
            let places = vec!["?"; columns.len()].join(", ");
            let values = columns.iter().map(|_| random.value()).collect();
            (format!("{verb} INTO {table} VALUES ({places}){returning}"), values)
        }
    }
}

fn query(random: &mut Random, tables: &Tables) -> (String, Vec<Value>) {
    let (first, columns) = &tables[random.below(tables.len())];
    let (second, others) = &tables[random.below(tables.len())];
    let both: Vec<String> = columns
        .iter()
        .map(|column| format!("x.{column}"))
        .chain(others.iter().map(|column| format!("y.{column}")))
        .collect();
    let sql = match random.below(5) {
        0 => {
            format!("SELECT {}, * FROM {first} WHERE {}", random.expression(columns, 3), random.expression(columns, 3))
        }
        1 => {
            let join = random.one(&["JOIN", "LEFT JOIN", "CROSS JOIN", "FULL JOIN"]);
            let on = random.expression(&both, 2);
            format!("SELECT {} FROM {first} AS x {join} {second} AS y ON {on}", random.expression(&both, 2))
        }
        2 => {
            let (group, inner) = (random.expression(columns, 1), random.expression(columns, 2));
            let aggregate = random.one(&["count", "sum", "total", "min", "max", "avg", "count(DISTINCT "]);
            let call =
                if aggregate.ends_with(' ') { format!("{aggregate}{inner})") } else { format!("{aggregate}({inner})") };
            format!("SELECT {call}, typeof({group}) FROM {first} GROUP BY {group} HAVING {}", random.expression(&[], 1))
        }
        3 => {
            let operator = random.one(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
            let (a, b) = (random.expression(columns, 2), random.expression(others, 2));
            format!("SELECT {a} FROM {first} {operator} SELECT {b} FROM {second}")
        }
        _ => format!(
            "SELECT (SELECT count(*) FROM {second} WHERE {}), {} FROM {first} WHERE ?1 IS NOT {}",
            random.expression(others, 2),
            random.expression(columns, 2),
            random.expression(columns, 1)
        ),
    };
    let params = if sql.contains("?1") { vec![random.value()] } else { Vec::new() };
    (sql, params)
}

/// Rows in an order of their own, or the code of an error.
fn comparable(rows: Vec<Vec<Value>>) -> Vec<String> {
    let mut rows: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort_unstable();
    rows
}

fn of_canister<T>(answer: Answer<T>, rows: impl FnOnce(T) -> Vec<Vec<Value>>, sql: &str) -> Result<Vec<String>, i32> {
    match answer {
        Ok(answer) => Ok(comparable(rows(answer))),
        Err(Error::Sqlite { code, .. }) => Err(code),
        Err(other) => panic!("{sql}: {other}"),
    }
}

fn of_stock(stock: &Connection, sql: &str, params: &[Value]) -> Result<Vec<String>, i32> {
    let to_stock = |value: &Value| match value {
        Value::Null => Stock::Null,
        Value::Integer(integer) => Stock::Integer(*integer),
        Value::Real(real) => Stock::Real(*real),
        Value::Text(text) => Stock::Text(text.clone()),
        Value::Blob(bytes) | Value::InvalidText(bytes) => Stock::Blob(bytes.to_vec()),
    };
    let run = || -> rusqlite::Result<Vec<Vec<Value>>> {
        let mut statement = stock.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(params.iter().map(to_stock)))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let value = |column| {
                Ok(match row.get_ref(column)? {
                    rusqlite::types::ValueRef::Null => Value::Null,
                    rusqlite::types::ValueRef::Integer(integer) => int(integer),
                    rusqlite::types::ValueRef::Real(real) => Value::Real(real),
                    rusqlite::types::ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                        Ok(valid) => text(valid),
                        Err(_) => Value::InvalidText(bytes.to_vec().into()),
                    },
                    rusqlite::types::ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec().into()),
                })
            };
            found.push((0..columns).map(value).collect::<rusqlite::Result<_>>()?);
        }
        Ok(found)
    };
    match run() {
        Ok(rows) => Ok(comparable(rows)),
        Err(rusqlite::Error::SqliteFailure(error, _)) => Err(error.extended_code),
        Err(rusqlite::Error::SqlInputError { error, .. }) => Err(error.extended_code),
        Err(other) => panic!("{sql}: {other}"),
    }
}

/// How many statements of a history succeeded and how many failed, in both alike.
fn history(seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let mut canister = Canister::install();
    let stock = Connection::open_in_memory().unwrap();
    stock.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    let mut tables = Tables::new();
    let (mut good, mut bad) = (0, 0);
    for step in 0..120 {
        let (sql, params, reads) = match step {
            0..3 => {
                let name = format!("t{step}");
                let (sql, columns) = create(&mut random, &name);
                tables.push((name, columns));
                (sql, Vec::new(), false)
            }
            3 | 40 => {
                let (table, columns) = &tables[random.below(tables.len())];
                (format!("CREATE INDEX i{step} ON {table}({})", random.expression(columns, 1)), Vec::new(), false)
            }
            _ if random.below(2) == 0 => {
                let (sql, params) = query(&mut random, &tables);
                (sql, params, true)
            }
            _ => {
                let (sql, params) = write(&mut random, &tables);
                (sql, params, false)
            }
        };
        let expected = of_stock(&stock, &sql, &params);
        let statement = with(&sql, params.clone());
        let found = if reads {
            let options = ReadOptions { max_rows: Some(100_000), ..ReadOptions::default() };
            of_canister(canister.query(Who::Reader, statement, Some(options)), |page| page.rows, &sql)
        } else {
            let answer: Answer<Executed> = canister.call_sql_execute(Who::Admin, (statement,));
            of_canister(answer, |done| done.rows, &sql)
        };
        assert_eq!(found, expected, "seed {seed}, step {step}: {sql} with {params:?}");
        if found.is_ok() {
            good += 1
        } else {
            bad += 1
        }
        // A table that could not be made is in neither.
        if step < 3 && expected.is_err() {
            return (good, bad);
        }
    }
    (good, bad)
}

#[test]
fn the_canister_answers_as_stock_sqlite_does() {
    if let Ok(seed) = std::env::var("ICSQL_SEED") {
        history(seed.parse().expect("ICSQL_SEED is a number"));
        return;
    }
    let seconds = std::env::var("ICSQL_MODEL_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut good, mut bad, mut seed) = (0, 0, 0);
    while seed < 40 || Instant::now() < end {
        let (more, failed) = history(seed);
        (good, bad, seed) = (good + more, bad + failed, seed + 1);
    }
    assert!(good > 2_000 && bad > 100, "{good} statements succeeded, {bad} failed: the histories say little");
}
