//! Values at the ends of their types, what is not allowed to be one, and what changes under a query.
use crate::{code, int, text, without_a_trace};
use icsql_tests::Local;
use icsql_tests::local::{statement, with};
use icsql_types::method::{QUERY_CALL, QUERY_DEFINE, QUERY_LIST, SQL_BATCH, SQL_EXECUTE, SQL_MIGRATE};
use icsql_types::{
    Callers, Error, Params, QueryDefinition, ReadOptions, RowSet, SqlMigration, SqlWriteOptions, Stop, Value,
};

/// A value with its very bits: 0.0 is not -0.0.
fn bits(value: &Value) -> String {
    match value {
        Value::Real(real) => format!("real {:016x}", real.to_bits()),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_value_survives_parameters_tables_and_pages() {
    let mut canister = Local::deploy();
    let reals = [
        0.1,
        1e308,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
        9_007_199_254_740_993.0,
        9.223372036854775e18,
    ];
    let texts = ["", "\0", "a\0b", "\u{feff}x", "\u{10ffff}", "é", "e\u{301}", "'\"`;--", "NULL", "0x10", " 1"];
    let mut values: Vec<Value> = reals.into_iter().map(Value::Real).chain(texts.map(text)).collect();
    values.extend([i64::MIN, i64::MIN + 1, -1, 0, 1, 127, 128, 1 << 47, i64::MAX - 1, i64::MAX].map(int));
    values.extend(
        [vec![], vec![0], vec![255; 3], b"text".to_vec(), vec![7; 100_000]].map(|blob| Value::Blob(blob.into())),
    );
    values.push(Value::Null);
    canister.run("CREATE TABLE plain(id INTEGER PRIMARY KEY, v)");
    canister.run("CREATE TABLE strict(id INTEGER PRIMARY KEY, v ANY) STRICT");
    for value in &values {
        for table in ["plain", "strict"] {
            let insert =
                with(&format!("INSERT INTO {table}(v) VALUES (?1) RETURNING v, typeof(v)"), vec![value.clone()]);
            let done = canister.call(&SQL_EXECUTE, (insert, None));
            assert_eq!(bits(&done.rows[0][0]), bits(value), "{:?}", done.rows);
        }
        let echo = canister.query(&with("SELECT ?1", vec![value.clone()]), ReadOptions::default()).unwrap();
        assert_eq!(bits(&echo.rows[0][0]), bits(value));
    }
    canister.upgrade();
    for table in ["plain", "strict"] {
        let found = canister.rows(&format!("SELECT v FROM {table} ORDER BY id")).unwrap();
        let found: Vec<String> = found.iter().map(|row| bits(&row[0])).collect();
        assert_eq!(found, values.iter().map(bits).collect::<Vec<_>>(), "{table}");
    }
    // SQLite has no NaN, whatever its bits.
    for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::from_bits(0xffff_ffff_ffff_ffff)] {
        let echo = canister.query(&with("SELECT ?1", vec![Value::Real(nan)]), ReadOptions::default()).unwrap();
        assert_eq!(echo.rows, [[Value::Null]]);
    }
}

#[test]
fn text_that_is_not_utf_8_keeps_its_bytes() {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT UNIQUE)");
    let odd = ["ff", "61ff", "c3", "eda080", "f4908080", "00ff00", "c080"];
    for hex in odd {
        canister.run(&format!("INSERT INTO t(v) VALUES (CAST(x'{hex}' AS TEXT))"));
    }
    assert_eq!(code(&canister.execute("INSERT INTO t(v) VALUES (CAST(x'ff' AS TEXT))")), 2067, "it is there");
    canister.upgrade();
    let rows = canister.rows("SELECT v, lower(hex(v)), typeof(v) FROM t ORDER BY id").unwrap();
    for (row, hex) in rows.iter().zip(odd) {
        let Value::InvalidText(bytes) = &row[0] else { panic!("{row:?}") };
        let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((found.as_str(), &row[1], &row[2]), (hex, &text(hex), &text("text")));
        let back = canister.query(&with("SELECT ?1", vec![row[0].clone()]), ReadOptions::default());
        assert!(matches!(&back, Err(Error::InvalidArgument { argument, .. }) if argument == "params"), "{back:?}");
    }
    // What functions make of such text is theirs, but no trap.
    for function in ["upper", "length", "trim", "quote", "unicode", "json_quote", "date", "soundex", "abs", "round"] {
        let answer = canister.rows(&format!("SELECT {function}(v) FROM t"));
        assert!(answer.is_ok() || code(&answer) == 1, "{function}: {answer:?}");
    }
    for sql in [
        "SELECT count(*) FROM t WHERE v LIKE '%a%'",
        "SELECT count(*) FROM t WHERE v GLOB '[a-z]*'",
        "SELECT printf('%10s|%q|%-5.2s', v, v, v) FROM t",
        "SELECT replace(v, 'a', 'bb'), substr(v, 2), instr(v, 'a') FROM t",
        "SELECT group_concat(v, v) FROM t",
    ] {
        canister.rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn what_a_table_does_not_take_is_refused_with_its_code() {
    let mut canister = Local::deploy();
    for sql in [
        "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price INTEGER CHECK (price >= 0), bytes BLOB,
            weight REAL, double INTEGER AS (price * 2) STORED, label TEXT AS (name || '!')) STRICT",
        "CREATE TABLE part(item INTEGER NOT NULL REFERENCES item, n INTEGER, PRIMARY KEY (item, n)) WITHOUT ROWID",
        "INSERT INTO item(name, price) VALUES ('lamp', 5)",
        "INSERT INTO part VALUES (1, 1)",
    ] {
        canister.run(sql);
    }
    let refused = [
        ("INSERT INTO item(name, price) VALUES ('x', 'five')", 3091),
        ("INSERT INTO item(name, price) VALUES (x'00', 5)", 3091),
        ("INSERT INTO item(name, price) VALUES ('x', 5.5)", 3091),
        ("INSERT INTO item(name, bytes) VALUES ('x', 'text')", 3091),
        ("INSERT INTO item(name, price) VALUES ('x', -1)", 275),
        ("INSERT INTO item(price) VALUES (1)", 1299),
        ("INSERT INTO item(name) VALUES ('lamp')", 2067),
        ("INSERT INTO item(id, name) VALUES (1, 'y')", 1555),
        ("INSERT INTO item(id, name) VALUES ('one', 'y')", 20),
        ("INSERT INTO part VALUES (1, 1)", 1555),
        ("INSERT INTO part VALUES (2, 1)", 787),
        ("DELETE FROM item WHERE id = 1", 787),
        ("INSERT INTO item(name, double) VALUES ('y', 3)", 1),
        ("UPDATE item SET label = 'z'", 1),
        ("ALTER TABLE item ADD COLUMN more TEXT NOT NULL", 1),
        ("ALTER TABLE item DROP COLUMN name", 1),
        ("CREATE TABLE item(x)", 1),
        ("CREATE TABLE typed(x VARCHAR) STRICT", 1),
        ("INSERT INTO item SELECT * FROM part", 1),
        ("UPDATE item SET bytes = zeroblob(268435457)", 18),
    ];
    for (sql, expected) in refused {
        let answer = without_a_trace(&mut canister, |canister| canister.execute(sql));
        assert_eq!(code(&answer), expected, "{sql}: {answer:?}");
    }
    assert_eq!(
        canister.rows("SELECT *, (SELECT count(*) FROM part) FROM item"),
        Ok(vec![vec![int(1), text("lamp"), int(5), Value::Null, Value::Null, int(10), text("lamp!"), int(1)]])
    );
}

#[test]
fn numbers_that_overflow_and_dates_at_their_ends() {
    let mut canister = Local::deploy();
    let two_to_63 = 2f64.powi(63);
    let answers = [
        (
            "SELECT 9223372036854775807 + 1, -9223372036854775808 - 1, 9223372036854775807 * 2",
            vec![Value::Real(two_to_63), Value::Real(-two_to_63), Value::Real(2.0 * two_to_63)],
        ),
        (
            "SELECT 1 / 0, 1 % 0, 1.0 / 0, -9223372036854775808 / -1, -9223372036854775808 % -1",
            vec![Value::Null, Value::Null, Value::Null, Value::Real(two_to_63), int(0)],
        ),
        (
            "SELECT 1 << 64, 1 << -1, -1 >> 100, 1e999, -1e999, 1e999 - 1e999",
            vec![int(0), int(0), int(-1), Value::Real(f64::INFINITY), Value::Real(f64::NEG_INFINITY), Value::Null],
        ),
        (
            "SELECT CAST(1e300 AS INTEGER), CAST(-1e300 AS INTEGER), CAST('99999999999999999999' AS INTEGER), CAST(x'' AS INTEGER)",
            vec![int(i64::MAX), int(i64::MIN), int(i64::MAX), int(0)],
        ),
        (
            "SELECT date('9999-12-31', '+1 day'), date(0.0), date('2024-02-30'), date('2023-02-29', '+1 month'), date('now', 'localtime')",
            vec![Value::Null, text("-4713-11-24"), text("2024-03-01"), text("2023-03-29"), Value::Null],
        ),
        (
            "SELECT date(1e18), datetime(253402300799, 'unixepoch'), unixepoch('0000-01-01'), strftime('%J', 0.5), time('24:01')",
            vec![Value::Null, text("9999-12-31 23:59:59"), int(-62_167_219_200), text("0.5"), Value::Null],
        ),
    ];
    for (sql, expected) in answers {
        assert_eq!(canister.rows(sql), Ok(vec![expected]), "{sql}");
    }
    let refused = [
        "SELECT abs(-9223372036854775808)",
        "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS v(x)",
        "SELECT json_extract('{', '$')",
        "SELECT json_extract('{}', 'a')",
        "SELECT round()",
        "SELECT 'a' LIKE 'b' ESCAPE 'cd'",
        "SELECT * FROM json_each('[1', '$')",
        "SELECT unistr('\\u00')",
    ];
    for sql in refused {
        let answer = canister.rows(sql);
        assert_eq!(code(&answer), 1, "{sql}: {answer:?}");
    }
    // The time is that of the message.
    canister.replica.set_time(1_709_164_800_123_456_789);
    let now = "SELECT unixepoch('now'), strftime('%Y-%m-%d %H:%M:%f', 'now'), CURRENT_DATE";
    let expected = vec![int(1_709_164_800), text("2024-02-29 00:00:00.123"), text("2024-02-29")];
    assert_eq!(canister.rows(now), Ok(vec![expected.clone()]));
    assert_eq!(canister.run(now).rows, [expected]);
}

#[test]
fn a_batch_whose_returning_fails_names_the_statement_and_changes_nothing() {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, x)");
    canister.run("CREATE TABLE log(x)");
    canister.run("CREATE TRIGGER t_log AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.x); END");
    let batches = [
        (vec!["INSERT INTO t(x) VALUES (1)", "INSERT INTO t(x) VALUES ('[2]'), ('[') RETURNING json(x)"], 1, 1),
        (vec!["INSERT INTO t(x) VALUES (1) RETURNING abs(-9223372036854775808)", "SELECT 1"], 0, 1),
        (vec!["SELECT 1", "CREATE TABLE u(x)", "INSERT INTO u VALUES (3) RETURNING id", "DROP TABLE u"], 2, 1),
        (vec!["DROP TABLE log", "INSERT INTO t(x) VALUES (1) RETURNING x"], 1, 1),
        (vec!["CREATE TABLE u(x UNIQUE)", "INSERT INTO u VALUES (1), (2)", "UPDATE u SET x = 3 RETURNING x"], 2, 2067),
    ];
    for (batch, place, expected) in batches {
        let statements: Vec<_> = batch.iter().map(|sql| statement(sql)).collect();
        let failed = without_a_trace(&mut canister, |canister| canister.answer(&SQL_BATCH, (statements, None)));
        match &failed {
            Err(Error::Sqlite { code, statement: Some(statement), .. }) => {
                assert_eq!((*code, *statement), (expected, place), "{batch:?}: {failed:?}");
            }
            other => panic!("{batch:?}: {other:?}"),
        }
    }
    // RETURNING that meets a limit too.
    let options = SqlWriteOptions { max_rows: Some(3), ..SqlWriteOptions::default() };
    let statements = ["INSERT INTO t(x) VALUES (1), (2) RETURNING id", "INSERT INTO t(x) VALUES (3), (4) RETURNING id"];
    let failed = without_a_trace(&mut canister, |canister| {
        canister.answer(&SQL_BATCH, (statements.map(statement).to_vec(), Some(options)))
    });
    assert!(matches!(&failed, Err(Error::BudgetExceeded { what, limit: 3, .. }) if what == "rows"), "{failed:?}");
    assert_eq!(canister.rows("SELECT count(*) FROM t, log"), Ok(vec![vec![int(0)]]));
    canister.run("INSERT INTO t(x) VALUES (1) RETURNING x");
    assert_eq!(canister.rows("SELECT count(*) FROM t, log"), Ok(vec![vec![int(1)]]));
}

#[test]
fn a_named_query_of_all_columns_has_those_that_there_are() {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)");
    canister.run("INSERT INTO t(a) VALUES ('x'), ('y')");
    let definition = QueryDefinition {
        name: "all".to_owned(),
        sql: "SELECT * FROM t".to_owned(),
        params: Vec::new(),
        callers: Callers::Public,
        max_rows: Some(1),
        max_bytes: None,
        max_instructions: None,
        allow_full_scan: Some(true),
    };
    canister.call(&QUERY_DEFINE, (definition, None));
    let call = |canister: &mut Local, options: Option<ReadOptions>| {
        canister.answer(&QUERY_CALL, ("all".to_owned(), Params::None, options))
    };
    let expect = |page: RowSet, columns: &[&str], row: Vec<Value>| {
        assert_eq!((page.columns, page.rows), (columns.iter().map(|name| (*name).to_owned()).collect(), vec![row]));
    };
    let first = call(&mut canister, None).unwrap();
    assert_eq!(first.stop, Stop::Rows);
    let cursor = first.cursor.clone();
    expect(first, &["id", "a"], vec![int(1), text("x")]);
    canister.run("ALTER TABLE t ADD COLUMN b INT DEFAULT 7");
    let next = || Some(ReadOptions { cursor: cursor.clone(), ..ReadOptions::default() });
    let changed = call(&mut canister, next());
    assert!(matches!(&changed, Err(Error::Conflict { what, .. }) if what == "cursor"), "{changed:?}");
    let allowed = ReadOptions { allow_changed: Some(true), ..next().unwrap() };
    expect(call(&mut canister, Some(allowed)).unwrap(), &["id", "a", "b"], vec![int(2), text("y"), int(7)]);
    expect(call(&mut canister, None).unwrap(), &["id", "a", "b"], vec![int(1), text("x"), int(7)]);
    assert_eq!(canister.call(&QUERY_LIST, ())[0].columns, ["id", "a", "b"]);
    canister.run("ALTER TABLE t RENAME COLUMN a TO c");
    canister.upgrade();
    expect(call(&mut canister, None).unwrap(), &["id", "c", "b"], vec![int(1), text("x"), int(7)]);
    canister.run("ALTER TABLE t DROP COLUMN c");
    expect(call(&mut canister, None).unwrap(), &["id", "b"], vec![int(1), int(7)]);
    canister.run("DROP TABLE t");
    assert_eq!(code(&call(&mut canister, None)), 1);
    assert!(canister.call(&QUERY_LIST, ())[0].broken.is_some());
    canister.run("CREATE VIEW t(only) AS SELECT 'again'");
    expect(call(&mut canister, None).unwrap(), &["only"], vec![text("again")]);
}

#[test]
fn full_text_and_json_over_the_key_value_store() {
    let mut canister = Local::deploy();
    canister.put("lake/1", r#"{"name":"Zürichsee","depth":136,"towns":["Zürich","Rapperswil"]}"#);
    canister.put("lake/2", r#"{"name":"Thunersee","depth":217,"towns":["Thun","Spiez"]}"#);
    canister.put("river/1", "no JSON {");
    let towns = "SELECT kv.key, town.value FROM kv, json_each(kv.value, '$.towns') AS town
        WHERE kv.key GLOB 'lake/*' ORDER BY 2 LIMIT 2";
    let expected = vec![vec![text("lake/1"), text("Rapperswil")], vec![text("lake/2"), text("Spiez")]];
    assert_eq!(canister.rows(towns), Ok(expected));
    let broken = canister.rows("SELECT value ->> '$.name' FROM kv");
    assert_eq!(code(&broken), 1, "{broken:?}");
    canister
        .run("CREATE VIRTUAL TABLE lake USING fts5(key UNINDEXED, name, tokenize = 'unicode61 remove_diacritics 2')");
    canister.run("INSERT INTO lake SELECT key, value ->> '$.name' FROM kv WHERE json_valid(value)");
    let found = "SELECT key, highlight(lake, 1, '<', '>') FROM lake('zuri*') ORDER BY rank";
    assert_eq!(canister.rows(found), Ok(vec![vec![text("lake/1"), text("<Zürichsee>")]]));
    for wrong in ["\"", "name:", "AND", "nobody:x", "a NEAR(", "*", "^"] {
        let answer = canister.query(&with("SELECT * FROM lake(?1)", vec![text(wrong)]), ReadOptions::default());
        assert!(code(&answer) == 1, "{wrong}: {answer:?}");
    }
    assert_eq!(code(&canister.execute("INSERT INTO kv VALUES ('k', 1, 'v')")), 23);
}

#[test]
fn a_nul_in_the_text_of_a_statement_is_refused() {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(x)");
    for sql in
        ["\0", "INSERT INTO t VALUES (1);\0", "INSERT INTO t VALUES ('a\0b')", "INSERT INTO t VALUES (1) \0 -- x"]
    {
        let refused = without_a_trace(&mut canister, |canister| canister.execute(sql));
        assert!(refused.is_err(), "{sql:?}: {refused:?}");
        assert!(canister.rows(sql).is_err(), "{sql:?}");
        let list = vec![SqlMigration { version: 1, name: "nul".to_owned(), sql: sql.to_owned() }];
        let refused = without_a_trace(&mut canister, |canister| canister.answer(&SQL_MIGRATE, (list, None)));
        assert_eq!(code(&refused), 1, "{sql:?}: {refused:?}");
    }
}
