//! Statements that would never end, or fill everything: they are stopped near their budget and change nothing.
use crate::without_a_trace;
use icsql_replica::Cost as Measured;
use icsql_tests::Local;
use icsql_tests::local::statement;
use icsql_types::method::{SQL_EXECUTE, SQL_QUERY};
use icsql_types::{Answer, Error, ReadOptions, SqlWriteOptions, Value};

const NUMBERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
/// A part of what a message may take, so that the tests are quick.
const BUDGET: u64 = 50_000_000;

/// The answer must say that more instructions than `limit` were needed, and the message itself took few more.
fn expect_stopped<T: std::fmt::Debug>(sql: &str, answer: &Answer<T>, cost: Measured, limit: u64) {
    match answer {
        Err(Error::BudgetExceeded { what, limit: said, cost: Some(used) }) => {
            assert_eq!((what.as_str(), *said), ("instructions", limit), "{sql}");
            assert!(used.instructions >= limit, "{sql}: {used:?}");
            assert!(cost.instructions < limit * 3 / 2, "{sql}: the message took {} of {limit}", cost.instructions);
        }
        other => panic!("{sql}: {other:?}"),
    }
}

fn with_rows() -> Local {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)");
    canister.run(&format!("INSERT INTO t SELECT i, 'name ' || i FROM ({NUMBERS} SELECT i FROM n LIMIT 1000)"));
    canister
}

#[test]
fn reads() {
    let mut canister = with_rows();
    let like = format!("'{}'", "%a".repeat(400));
    let endless = [
        format!("{NUMBERS} SELECT count(*) FROM n"),
        format!("{NUMBERS} SELECT max(x) FROM (SELECT (SELECT sum(id) FROM t WHERE id > i % 7) AS x FROM n)"),
        "SELECT count(*) FROM t a, t b, t c, t d WHERE a.id + b.id + c.id + d.id = 0".to_owned(),
        "SELECT count(*) FROM t a JOIN t b ON a.name < b.name JOIN t c ON c.name || a.name > b.name".to_owned(),
        "SELECT DISTINCT a.id * b.id % 1000003 FROM t a, t b, t c ORDER BY 1 LIMIT 1".to_owned(),
        "SELECT sum(count(*)) OVER (ORDER BY a.id % 17) FROM t a, t b, t c GROUP BY a.id + b.id".to_owned(),
        format!("{NUMBERS} SELECT count(*) FROM n WHERE printf('%01000d', i) LIKE {like}"),
        format!("{NUMBERS} SELECT count(*) FROM n, json_each('[1,2,3]') WHERE value > 3"),
        "WITH RECURSIVE n(i) AS (SELECT 'a' UNION SELECT i || 'b' FROM n) SELECT count(*) FROM n".to_owned(),
    ];
    for sql in &endless {
        let options = ReadOptions { max_instructions: Some(BUDGET), ..ReadOptions::default() };
        let (answer, cost) = canister.try_call(&SQL_QUERY, (statement(sql), Some(options)));
        expect_stopped(sql, &answer.unwrap_or_else(|| panic!("{sql}: a trap")), cost, BUDGET);
    }
    // With what a query has unless told otherwise.
    let (answer, cost) = canister.try_call(&SQL_QUERY, (statement(&endless[0]), None));
    expect_stopped(&endless[0], &answer.expect("no trap"), cost, 1_000_000_000);
    assert_eq!(canister.rows("SELECT count(*) FROM t").unwrap().len(), 1);
}

#[test]
fn writes() {
    let mut canister = with_rows();
    canister.run("CREATE TABLE log(x)");
    canister.run("CREATE TABLE plain(x)");
    canister.run("CREATE TRIGGER t_new AFTER INSERT ON log BEGIN INSERT INTO log SELECT x FROM log; END");
    let options =
        |max_instructions, max_pages| SqlWriteOptions { max_instructions, max_pages, ..SqlWriteOptions::default() };
    let endless = [
        format!("INSERT INTO t SELECT i + 1000, 'n' FROM ({NUMBERS} SELECT i FROM n)"),
        format!("CREATE TABLE copy AS {NUMBERS} SELECT i FROM n"),
        "UPDATE t SET name = (SELECT max(a.name || b.name) FROM t a, t b, t c)".to_owned(),
        "DELETE FROM t WHERE (SELECT count(*) FROM t a, t b, t c) = 1".to_owned(),
        format!("INSERT INTO log SELECT 1 FROM ({NUMBERS} SELECT i FROM n LIMIT 40)"),
        format!(
            "{NUMBERS} INSERT INTO t SELECT i, 'other' FROM n WHERE true ON CONFLICT DO UPDATE SET name = name || 'x'"
        ),
    ];
    for sql in &endless {
        without_a_trace(&mut canister, |canister| {
            let arguments = (statement(sql), Some(options(Some(BUDGET), None)));
            let (answer, cost) = canister.try_call(&SQL_EXECUTE, arguments);
            expect_stopped(sql, &answer.unwrap_or_else(|| panic!("{sql}: a trap")), cost, BUDGET);
        });
    }
    let fill = format!("INSERT INTO plain SELECT zeroblob(3000) FROM ({NUMBERS} SELECT i FROM n)");
    without_a_trace(&mut canister, |canister| {
        let answer = canister.answer(&SQL_EXECUTE, (statement(&fill), Some(options(None, Some(200)))));
        let what = matches!(&answer, Err(Error::BudgetExceeded { what, limit: 200, .. }) if what == "changed pages");
        assert!(what, "{answer:?}");
    });
    canister.run("DELETE FROM t WHERE id = 1");
    canister.expect_clean_scan();
}

/// SQLite looks at the budget at the end of BEGIN too, once in some hundred times. One that is used up by then must leave
/// no transaction open, or later writes would be part of it and never be committed.
#[test]
fn a_budget_that_is_used_up_from_the_start() {
    let mut canister = with_rows();
    let before = canister.checksum();
    let nothing = SqlWriteOptions { max_instructions: Some(1), ..SqlWriteOptions::default() };
    for n in 0..1_000 {
        let stopped = canister.answer(&SQL_EXECUTE, (statement("DELETE FROM t"), Some(nothing.clone())));
        let exceeded = matches!(&stopped, Err(Error::BudgetExceeded { what, limit: 1, .. }) if what == "instructions");
        assert!(exceeded, "call {n}: {stopped:?}");
    }
    assert_eq!(canister.checksum(), before);
    canister.run("DELETE FROM t WHERE id = 1");
    assert_eq!(canister.put("key", "value"), before.transaction + 2);
    canister.upgrade();
    assert_eq!(canister.get("key").as_deref(), Some("value"));
    assert_eq!(canister.rows("SELECT count(*) FROM t"), Ok(vec![vec![Value::Integer(999)]]));
}
