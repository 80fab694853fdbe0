//! `sql_execute` and `sql_batch`.
use crate::common::{Canister, Who, code, int, statement, text, with};
use icsql_canister::limits::{SQL_STATEMENTS_MAX, SQL_WRITE_PAGES_MAX};
use icsql_types::{BatchExecuted, Error, Executed, SqlWriteOptions, Value};

fn options() -> SqlWriteOptions {
    SqlWriteOptions::default()
}

#[test]
fn a_statement_says_what_it_did() {
    let mut canister = Canister::install();
    let created = canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE)");
    assert_eq!((created.changes, created.last_rowid), (0, 0));
    let inserted = canister.execute(Who::Writer, "INSERT INTO t(name) VALUES ('a'), ('b') RETURNING id, name").unwrap();
    assert_eq!((inserted.changes, inserted.last_rowid), (2, 2));
    assert_eq!(inserted.columns, ["id", "name"]);
    assert_eq!(inserted.rows, [[int(1), text("a")], [int(2), text("b")]]);
    assert_eq!(inserted.transaction, created.transaction + 1);
    assert!(inserted.cost.pages_written > 0 && inserted.cost.rows == 2, "{:?}", inserted.cost);
    let nothing = canister.execute(Who::Writer, "DELETE FROM t WHERE id = 99").unwrap();
    assert_eq!((nothing.changes, nothing.transaction), (0, inserted.transaction));
    assert_eq!(canister.execute(Who::Writer, "SELECT count(*) FROM t").unwrap().rows, [[int(2)]]);
    let duplicate = canister.execute(Who::Writer, "INSERT INTO t(name) VALUES ('c'), ('a')");
    assert!(
        matches!(&duplicate, Err(Error::Sqlite { code: 2067, cost: Some(_), statement: None, .. })),
        "{duplicate:?}"
    );
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(2)]]);
}

#[test]
fn a_batch_happens_as_a_whole_and_its_error_names_the_statement() {
    let mut canister = Canister::install();
    let done = canister
        .batch(
            Who::Admin,
            &[
                "CREATE TABLE t(x UNIQUE)",
                "INSERT INTO t VALUES (1), (2)",
                "ALTER TABLE t ADD COLUMN y DEFAULT 5",
                "SELECT * FROM t",
                "UPDATE t SET x = x + 10 RETURNING x",
            ],
        )
        .unwrap();
    let changes: Vec<_> = done.results.iter().map(|result| result.changes).collect();
    assert_eq!(changes, [0, 2, 0, 0, 2]);
    assert_eq!(done.results[3].columns, ["x", "y"]);
    assert_eq!(done.results[4].rows, [[int(11)], [int(12)]]);
    let failing = [
        "INSERT INTO t(x) VALUES (20)",
        "INSERT INTO t(x) VALUES (30) RETURNING x",
        "INSERT INTO t(x) VALUES (20) RETURNING x",
    ];
    let failed = canister.batch(Who::Writer, &failing);
    assert!(matches!(&failed, Err(Error::Sqlite { code: 2067, statement: Some(2), .. })), "{failed:?}");
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(2)]]);
    let wrong: Result<BatchExecuted, _> =
        canister.call_sql_batch(Who::Writer, (vec![statement("SELECT 1"), with("SELECT 1", vec![int(1)])],));
    assert!(
        matches!(&wrong, Err(Error::InvalidArgument { argument, .. }) if argument == "params of statement 1"),
        "{wrong:?}"
    );
    assert_eq!(canister.batch(Who::Writer, &[]).unwrap().results, []);
}

#[test]
fn a_batch_has_a_number_of_statements_that_is_limited() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    for count in [SQL_STATEMENTS_MAX - 1, SQL_STATEMENTS_MAX] {
        assert_eq!(canister.batch(Who::Writer, &vec!["INSERT INTO t VALUES (1)"; count]).unwrap().results.len(), count);
    }
    let refused = canister.batch(Who::Writer, &vec!["INSERT INTO t VALUES (1)"; SQL_STATEMENTS_MAX + 1]);
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 1_000, actual: 1_001 }) if what == "statements"),
        "{refused:?}"
    );
}

#[test]
fn a_thousand_parameters_and_not_one_more() {
    let mut canister = Canister::install();
    let ask = |count: usize| {
        let places = vec!["?"; count].join(", ");
        with(&format!("VALUES ({})", places.replace(", ", "), (")), vec![Value::Null; count])
    };
    for count in [999, 1_000] {
        let many = icsql_types::ReadOptions { max_rows: Some(2_000), ..Default::default() };
        assert_eq!(canister.query(Who::Reader, ask(count), Some(many)).unwrap().rows.len(), count);
    }
    let refused = canister.query(Who::Reader, ask(1_001), None);
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 1_000, actual: 1_001 }) if what == "params"),
        "{refused:?}"
    );
}

#[test]
fn a_write_that_meets_a_limit_changes_nothing() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    canister.run("INSERT INTO t VALUES (1)");
    let before = canister.service.database.meta();
    let fill = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) SELECT zeroblob(100) FROM n RETURNING 1";
    let limits = [
        (SqlWriteOptions { max_rows: Some(10), ..options() }, "rows"),
        (SqlWriteOptions { max_bytes: Some(100), ..options() }, "bytes of rows"),
        (SqlWriteOptions { max_instructions: Some(1_000_000), ..options() }, "instructions"),
        (SqlWriteOptions { max_pages: Some(20), max_rows: Some(100_000), ..options() }, "changed pages"),
    ];
    for (options, name) in limits {
        let stopped: Result<Executed, _> = canister.call_sql_execute(Who::Writer, (statement(fill), Some(options)));
        assert!(
            matches!(&stopped, Err(Error::BudgetExceeded { what, cost: Some(_), .. }) if what == name),
            "{stopped:?}"
        );
        assert_eq!(canister.service.database.meta().digest, before.digest, "{name}");
    }
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(1)]]);
    let above = SqlWriteOptions { max_pages: Some(SQL_WRITE_PAGES_MAX + 1), ..options() };
    let refused: Result<Executed, _> = canister.call_sql_execute(Who::Writer, (statement("SELECT 1"), Some(above)));
    assert!(matches!(&refused, Err(Error::TooLarge { what, .. }) if what == "max_pages"), "{refused:?}");
}

#[test]
fn a_key_makes_a_write_safe_to_repeat() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    let keyed = || Some(SqlWriteOptions { idempotency_key: Some("k".into()), ..options() });
    let insert = || statement("INSERT INTO t VALUES (1) RETURNING x");
    let first: Executed = canister.call_sql_execute(Who::Writer, (insert(), keyed())).unwrap();
    let again: Executed = canister.call_sql_execute(Who::Writer, (insert(), keyed())).unwrap();
    assert_eq!(first, again);
    assert_eq!(first.transaction, canister.service.database.meta().transaction_id);
    let other: Result<Executed, _> = canister.call_sql_execute(Who::Writer, (statement("DELETE FROM t"), keyed()));
    assert!(matches!(other, Err(Error::Conflict { .. })), "{other:?}");
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(1)]]);
    // One that failed is not remembered.
    let failing = || {
        (
            vec![statement("INSERT INTO t VALUES (2)"), statement("nonsense")],
            Some(SqlWriteOptions { idempotency_key: Some("f".into()), ..options() }),
        )
    };
    for _ in 0..2 {
        let failed: Result<BatchExecuted, _> = canister.call_sql_batch(Who::Writer, failing());
        assert!(matches!(&failed, Err(Error::Sqlite { statement: Some(1), .. })), "{failed:?}");
    }
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(1)]]);
}

#[test]
fn features_of_sqlite_work_and_runaways_end() {
    let mut canister = Canister::install();
    canister
        .batch(
            Who::Admin,
            &[
                "CREATE TABLE g(a INT, b INT GENERATED ALWAYS AS (a * 2) STORED, c TEXT AS (a || '!'))",
                "CREATE VIRTUAL TABLE doc USING fts5(body)",
                "CREATE TABLE s(x INTEGER) STRICT",
                "CREATE TABLE loop(x)",
                "CREATE TRIGGER again AFTER INSERT ON loop BEGIN INSERT INTO loop VALUES (new.x + 1); END",
                "CREATE TABLE up(k PRIMARY KEY, n INT) WITHOUT ROWID",
            ],
        )
        .unwrap();
    canister.execute(Who::Writer, "INSERT INTO g(a) VALUES (4)").unwrap();
    assert_eq!(canister.rows("SELECT * FROM g"), [[int(4), int(8), text("4!")]]);
    canister.execute(Who::Writer, "INSERT INTO doc VALUES ('a stable canister'), ('sqlite')").unwrap();
    let found =
        canister.query(Who::Reader, statement("SELECT rowid FROM doc WHERE doc MATCH 'canister'"), None).unwrap();
    assert_eq!(found.rows, [[int(1)]]);
    assert_eq!(code(&canister.execute(Who::Writer, "INSERT INTO s VALUES ('text')")), 3091, "STRICT");
    // A trigger does not set itself off unless recursive triggers are on, and nobody can switch them on.
    assert_eq!(canister.execute(Who::Writer, "INSERT INTO loop VALUES (1)").unwrap().changes, 1);
    assert_eq!(canister.rows("SELECT count(*) FROM loop"), [[int(2)]]);
    assert_ne!(code(&canister.execute(Who::Admin, "PRAGMA recursive_triggers = 1")), 0);
    let upsert = "INSERT INTO up VALUES ('k', 1) ON CONFLICT DO UPDATE SET n = n + 1 RETURNING n";
    assert_eq!(canister.execute(Who::Writer, upsert).unwrap().rows, [[int(1)]]);
    assert_eq!(canister.execute(Who::Writer, upsert).unwrap().rows, [[int(2)]]);
    let star = statement("SELECT * FROM up");
    assert_eq!(canister.query(Who::Reader, star.clone(), None).unwrap().columns, ["k", "n"]);
    canister.run("ALTER TABLE up ADD COLUMN m DEFAULT 7");
    let after = canister.query(Who::Reader, star, None).unwrap();
    assert_eq!((after.columns.len(), &after.rows[0][2]), (3, &int(7)));
}

#[test]
fn two_megabytes_of_small_parameters_are_decoded() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    let places = vec!["(?)"; 1_000].join(", ");
    let insert = |value: Value| with(&format!("INSERT INTO t VALUES {places}"), vec![value; 1_000]);
    for value in [int(-1), Value::Null, Value::Real(0.5), text("some text")] {
        let statements: Vec<_> = (0..100).map(|_| insert(value.clone())).collect();
        let done: BatchExecuted = canister.call_sql_batch(Who::Writer, (statements,)).unwrap();
        assert_eq!(done.results.len(), 100);
    }
    assert_eq!(canister.rows("SELECT count(*) FROM t"), [[int(400_000)]]);
}
