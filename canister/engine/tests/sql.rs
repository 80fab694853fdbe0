//! What the vendored SQLite is compiled to do: the same answers as a stock SQLite, functions of mathematics with the
//! same bits everywhere, full-text search, JSON and UTC dates; and what it is compiled to leave out.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, Value};
use rusqlite::types::Value as Stock;
use support::{open, rows};

/// The first row of the answer.
fn ask(database: &Database, sql: &str) -> Result<Vec<Value>, Error> {
    let mut answer = database.read(|tx| rows(tx, sql))?;
    Ok(if answer.is_empty() { Vec::new() } else { answer.swap_remove(0) })
}

/// Answers that must equal those of a SQLite that was built by somebody else with its own options.
const SAME: &[&str] = &[
    "SELECT 1, -2.5, 'text', x'00ff', NULL, 9223372036854775807 + 1, 7 / 2, 7 % -3, -7 / 2, 1 << 62",
    "SELECT 1e400, -1e400, 0.1 + 0.2, 1e15 + 0.3, 123456789012345678, 5e-324, 1.7976931348623157e308",
    "SELECT CAST('12abc' AS INTEGER), CAST('1.5e3x' AS REAL), CAST(1e300 AS INTEGER), CAST(x'4142' AS TEXT), '3' + 4",
    "SELECT typeof(1), typeof(1.0), typeof('1'), typeof(x'31'), typeof(NULL), typeof(1 + '1'), typeof('1' || 1)",
    "SELECT format('%d %5.2f %e %g %s %q %Q %x %08d', 42, 3.14159, 1234.5, 0.0001, 'it''s', 'it''s', NULL, 255, -7)",
    "SELECT substr('héllo', 2, 3), length('héllo'), length(x'c3a9'), upper('é a'), instr('abcabc', 'ca'), hex('é'), unicode('é')",
    "SELECT replace('aXbX', 'X', '--'), trim('  a '), ltrim('xxa', 'x'), rtrim('axx', 'x'), quote('a''b'), quote(x'01'), char(233, 8364)",
    "SELECT 'abc' LIKE 'A%', 'a%c' LIKE 'a\\%c' ESCAPE '\\', 'abc' GLOB 'a?c', x'616263' LIKE 'abc', 'É' LIKE 'é'",
    "SELECT round(2.5), round(-2.5), round(1.005, 2), abs(-9223372036854775807), max(1, 'a', 2.5), min(x'00', 'a'), nullif(1, 1)",
    "SELECT date('2024-02-29', '+1 year'), time('23:59:59', '+2 seconds'), datetime(0, 'unixepoch'), julianday('2000-01-01')",
    "SELECT strftime('%Y-%m-%dT%H:%M:%f %j %w %s', '2021-03-04 05:06:07.891'), unixepoch('1969-12-31'), timediff('2024-03-01', '2024-02-01')",
    "SELECT json('{\"a\" : [1, 2.50, \"x\"]}'), json_extract('{\"a\":[1,{\"b\":null}]}', '$.a[1]'), '{\"a\":3}' ->> 'a', json_array(1, 'é', NULL)",
    "SELECT json_set('{}', '$.a', json('[1]')), json_group_array(value) FROM json_each('[3,1,2]')",
    "SELECT hex(jsonb('{\"a\":[1,2,3]}')), json_type('[1.0]', '$[0]'), json_valid('{a:1}'), json('{a:1,}')",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT sum(i), avg(i), total(i), group_concat(i, '') FROM n",
    "SELECT group_concat(a || ':' || r) FROM (SELECT a, row_number() OVER (PARTITION BY a % 2 ORDER BY a DESC) AS r FROM (SELECT 1 AS a UNION SELECT 2 UNION SELECT 3))",
    "SELECT 'a' < 'B', 'a' < 'B' COLLATE NOCASE, 'a ' = 'a' COLLATE RTRIM, 2 < '10', x'61' > 'z', NULL IS NOT DISTINCT FROM NULL",
    "SELECT iif(0, 1, 2), coalesce(NULL, 3), 5 BETWEEN 1 AND 5, 3 IN (1, NULL, 3), 4 IN (1, NULL), EXISTS (SELECT 1 WHERE 0), 5 NOT IN ()",
];

#[test]
fn answers_are_those_of_a_stock_sqlite() {
    let database = open(&HeapMemory::new());
    let stock = rusqlite::Connection::open_in_memory().unwrap();
    for sql in SAME {
        let ours = ask(&database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let theirs: Vec<Value> = stock
            .query_row(sql, [], |row| {
                (0..row.as_ref().column_count())
                    .map(|column| {
                        Ok(match row.get(column)? {
                            Stock::Null => Value::Null,
                            Stock::Integer(integer) => Value::Integer(integer),
                            Stock::Real(real) => Value::Real(real),
                            Stock::Text(text) => Value::Text(text),
                            Stock::Blob(blob) => Value::Blob(blob),
                        })
                    })
                    .collect()
            })
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(ours, theirs, "{sql}");
    }
}

#[test]
fn mathematics_have_the_bits_of_libm() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function); 17] = [
        ("acos", libm::acos),
        ("acosh", libm::acosh),
        ("asin", libm::asin),
        ("asinh", libm::asinh),
        ("atan", libm::atan),
        ("atanh", libm::atanh),
        ("cos", libm::cos),
        ("cosh", libm::cosh),
        ("exp", libm::exp),
        ("ln", libm::log),
        ("log10", libm::log10),
        ("log2", libm::log2),
        ("sin", libm::sin),
        ("sinh", libm::sinh),
        ("sqrt", libm::sqrt),
        ("tan", libm::tan),
        ("tanh", libm::tanh),
    ];
    let database = open(&HeapMemory::new());
    let mut compared = 0;
    for (name, function) in functions {
        for x in [0.1, 0.7, 1.5, 2.25, 17.0, 300.5] {
            let expected = function(x);
            // SQLite answers NULL for NaN.
            let expected = if expected.is_nan() { Value::Null } else { Value::Real(expected) };
            compared += usize::from(expected != Value::Null);
            assert_eq!(ask(&database, &format!("SELECT {name}({x:?})")).unwrap(), [expected], "{name}({x:?})");
        }
    }
    assert!(compared > 80);
    let two = "SELECT pow(1.1, 30.3), atan2(-1.0, 0.3), mod(17.7, 3.1), ceil(-1.5), floor(-1.5), trunc(-1.5)";
    let expected = [libm::pow(1.1, 30.3), libm::atan2(-1.0, 0.3), libm::fmod(17.7, 3.1), -1.0, -2.0, -1.0];
    assert_eq!(ask(&database, two).unwrap(), expected.map(Value::Real));
}

#[test]
fn full_text_search_survives_a_reopening() {
    let raw = HeapMemory::new();
    {
        let mut database = open(&raw);
        database
            .write(|tx| {
                tx.execute_batch(
                    "CREATE VIRTUAL TABLE main.note USING fts5(title, body, tokenize = 'porter unicode61')",
                )?;
                tx.execute("INSERT INTO main.note VALUES ('Zürich', 'the lake is freezing')", ())?;
                tx.execute("INSERT INTO main.note VALUES ('Bern', 'the river flows around the old town')", ())
            })
            .unwrap();
    }
    let database = open(&raw);
    let found = |query: &str| {
        ask(&database, &format!("SELECT title, highlight(note, 1, '[', ']') FROM main.note WHERE note MATCH '{query}'"))
            .unwrap()
    };
    assert_eq!(found("freeze"), [Value::Text("Zürich".into()), Value::Text("the lake is [freezing]".into())]);
    assert_eq!(found("zurich"), [Value::Text("Zürich".into()), Value::Text("the lake is freezing".into())]);
    assert_eq!(found("ocean"), []);
}

#[test]
fn what_is_left_out_is_not_there() {
    let database = open(&HeapMemory::new());
    for (sql, why) in [
        ("SELECT \"no such column\"", "no such column"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT name FROM pragma_wal_checkpoint", "pragma_wal_checkpoint"),
    ] {
        let error = ask(&database, sql).expect_err(sql).to_string();
        assert!(error.contains(why), "{sql}: {error}");
    }
    // There is no time zone but UTC: an unknown modifier makes the date NULL.
    assert_eq!(ask(&database, "SELECT datetime('2024-01-01', 'localtime')").unwrap(), [Value::Null]);
}
