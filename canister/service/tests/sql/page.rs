//! `sql_query`: values, pages and what they may use.
use crate::common::{Canister, Who, code, int, statement, text, with};
use icsql_canister::limits::{SQL_RESULT_BYTES_MAX, SQL_ROWS_MAX};
use icsql_types::{Error, Params, ReadOptions, RowSet, Statement, Stop, Value};
use serde_bytes::ByteBuf;

fn options() -> ReadOptions {
    ReadOptions::default()
}

#[test]
fn every_value_survives_the_trip() {
    let mut canister = Canister::install();
    let values = vec![
        Value::Null,
        int(i64::MIN),
        int(i64::MAX),
        int(0),
        Value::Real(f64::INFINITY),
        Value::Real(f64::NEG_INFINITY),
        Value::Real(f64::MIN_POSITIVE / 2.0),
        Value::Real(-1e308),
        text(""),
        text("a\0b — ü"),
        Value::Blob(ByteBuf::new()),
        Value::Blob(ByteBuf::from(vec![0, 255, 0])),
    ];
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v ANY) STRICT");
    for value in &values {
        let insert = with("INSERT INTO t(v) VALUES (?1) RETURNING v", vec![value.clone()]);
        let done: icsql_types::Executed = canister.call_sql_execute(Who::Writer, (insert,)).unwrap();
        assert_eq!(done.rows, [[value.clone()]]);
        let echoed = canister.query(Who::Reader, with("SELECT ?1", vec![value.clone()]), None).unwrap();
        assert_eq!(echoed.rows, [[value.clone()]]);
    }
    let stored: Vec<Value> = canister.rows("SELECT v FROM t ORDER BY id").into_iter().flatten().collect();
    assert_eq!(stored, values);
    // SQLite has no NaN.
    assert_eq!(
        canister.query(Who::Reader, with("SELECT ?1", vec![Value::Real(f64::NAN)]), None).unwrap().rows,
        [[Value::Null]]
    );
    // Nor does it look at what is called text.
    let odd = canister.rows("SELECT CAST(x'61ff' AS TEXT), CAST(x'61' AS TEXT)");
    assert_eq!(odd, [[Value::InvalidText(ByteBuf::from(vec![0x61, 0xff])), text("a")]]);
    let refused = canister.query(Who::Reader, with("SELECT ?1", vec![odd[0][0].clone()]), None);
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
}

#[test]
fn columns_are_by_position_and_known_without_rows() {
    let mut canister = Canister::install();
    let found = canister.query(Who::Reader, statement("SELECT 1 AS a, 2 AS a, 3 AS \"\" WHERE 0"), None).unwrap();
    assert_eq!(found.columns, ["a", "a", ""]);
    assert_eq!((found.rows.len(), found.stop, found.cursor), (0, Stop::End, None));
}

#[test]
fn parameters_by_name_and_by_position() {
    let mut canister = Canister::install();
    let named = |names: &[&str]| Statement {
        sql: "SELECT :a, @b".into(),
        params: Some(Params::Named(
            names.iter().zip(1..).map(|(name, value)| ((*name).to_owned(), int(value))).collect(),
        )),
    };
    for names in [["a", "b"], [":a", "@b"]] {
        assert_eq!(canister.query(Who::Reader, named(&names), None).unwrap().rows, [[int(1), int(2)]]);
    }
    let wrong = [
        named(&["a"]),
        named(&["a", "c"]),
        named(&["a", "a"]),
        statement("SELECT ?1"),
        with("SELECT 1", vec![int(1)]),
        with("SELECT ?2", vec![int(1)]),
    ];
    for wrong in wrong {
        let refused = canister.query(Who::Reader, wrong.clone(), None);
        assert!(
            matches!(&refused, Err(Error::InvalidArgument { argument, .. }) if argument == "params"),
            "{wrong:?}: {refused:?}"
        );
    }
}

#[test]
fn only_one_statement_that_reads() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    for sql in ["", " -- nothing", "SELECT 1; SELECT 2"] {
        let refused = canister.query(Who::Admin, statement(sql), None);
        assert!(
            matches!(&refused, Err(Error::InvalidArgument { argument, .. }) if argument == "sql"),
            "{sql}: {refused:?}"
        );
    }
    for sql in ["INSERT INTO t VALUES (1)", "DROP TABLE t", "PRAGMA user_version = 3", "DELETE FROM t RETURNING x"] {
        assert_eq!(code(&canister.query(Who::Admin, statement(sql), None)), 23, "{sql}");
    }
    let Err(Error::Sqlite { code: 1, offset: Some(7), cost: Some(_), .. }) =
        canister.query(Who::Reader, statement("SELECT nonsense"), None)
    else {
        panic!("an error with its place and cost")
    };
}

const COUNT: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?1) SELECT x, 'row ' || x FROM n";

/// All rows of a statement, page by page, with why each page but the last ended.
fn pages(canister: &mut Canister, statement: &Statement, mut options: ReadOptions) -> (Vec<Vec<Value>>, Vec<Stop>) {
    let (mut rows, mut stops) = (Vec::new(), Vec::new());
    loop {
        let page: RowSet = canister.query(Who::Reader, statement.clone(), Some(options.clone())).unwrap();
        assert_eq!(page.cost.rows as usize, page.rows.len());
        rows.extend(page.rows);
        assert_eq!(page.cursor.is_none(), page.stop == Stop::End);
        if page.stop == Stop::End {
            return (rows, stops);
        }
        stops.push(page.stop);
        options.cursor = page.cursor;
    }
}

#[test]
fn pages_by_rows_bytes_and_instructions_join_to_the_whole() {
    let mut canister = Canister::install();
    let count = with(COUNT, vec![int(95)]);
    let (whole, stops) = pages(&mut canister, &count, options());
    assert_eq!((whole.len(), stops.len()), (95, 0));
    for (max_rows, ended) in [(95, 0), (94, 1), (10, 9), (1, 94)] {
        let (rows, stops) = pages(&mut canister, &count, ReadOptions { max_rows: Some(max_rows), ..options() });
        assert_eq!(rows, whole);
        assert_eq!(stops, vec![Stop::Rows; ended], "{max_rows}");
    }
    let (rows, stops) = pages(&mut canister, &count, ReadOptions { max_bytes: Some(100), ..options() });
    assert_eq!(rows, whole);
    assert!(stops.len() > 10 && stops.iter().all(|stop| *stop == Stop::Bytes), "{stops:?}");
    // The statement runs again up to where the page before ended, so that each page needs more than the one before.
    let many = with(COUNT, vec![int(20_000)]);
    let ask = |canister: &mut Canister, max_instructions, cursor| {
        let max_instructions = Some(max_instructions);
        let options = ReadOptions { max_instructions, cursor, max_rows: Some(100_000), ..options() };
        canister.query(Who::Reader, many.clone(), Some(options))
    };
    let first = ask(&mut canister, 1_000_000, None).unwrap();
    assert!(first.stop == Stop::Instructions && first.rows.len() > 1_000, "{:?}", first.cost);
    let again = ask(&mut canister, first.cost.instructions / 2, first.cursor.clone());
    assert!(matches!(&again, Err(Error::BudgetExceeded { what, .. }) if what == "instructions"), "{again:?}");
    let second = ask(&mut canister, 2_000_000, first.cursor).unwrap();
    assert_eq!(second.rows[0][0], int(first.rows.len() as i64 + 1));
}

#[test]
fn a_page_without_progress_is_an_error_and_no_loop() {
    let mut canister = Canister::install();
    let limited = |max_bytes, max_instructions| ReadOptions { max_bytes, max_instructions, ..options() };
    let count = with(COUNT, vec![int(1_000_000)]);
    let stopped = canister.query(Who::Reader, count.clone(), Some(limited(Some(12), None)));
    assert!(
        matches!(&stopped, Err(Error::BudgetExceeded { what, limit: 12, cost: Some(_) }) if what == "bytes of rows"),
        "{stopped:?}"
    );
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    let stopped = canister.query(Who::Reader, statement(endless), Some(limited(None, Some(1_000_000))));
    let Err(Error::BudgetExceeded { what, limit: 1_000_000, cost: Some(cost) }) = stopped else {
        panic!("{stopped:?}")
    };
    assert!(what == "instructions" && cost.instructions >= 1_000_000, "{cost:?}");
    for argument in [ReadOptions { max_rows: Some(0), ..options() }, limited(Some(0), None), limited(None, Some(0))] {
        let refused = canister.query(Who::Reader, statement("SELECT 1"), Some(argument));
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
}

#[test]
fn options_end_at_their_ceilings() {
    let mut canister = Canister::install();
    let rows = |max_rows| ReadOptions { max_rows: Some(max_rows), ..options() };
    let bytes = |max_bytes| ReadOptions { max_bytes: Some(max_bytes), ..options() };
    let max = SQL_ROWS_MAX as u32;
    for fine in [rows(max - 1), rows(max), bytes(SQL_RESULT_BYTES_MAX - 1), bytes(SQL_RESULT_BYTES_MAX)] {
        canister.query(Who::Reader, statement("SELECT 1"), Some(fine)).unwrap();
    }
    for (above, name) in [(rows(max + 1), "max_rows"), (bytes(SQL_RESULT_BYTES_MAX + 1), "max_bytes")] {
        let refused = canister.query(Who::Reader, statement("SELECT 1"), Some(above));
        assert!(matches!(&refused, Err(Error::TooLarge { what, .. }) if what == name), "{refused:?}");
    }
}

#[test]
fn a_cursor_belongs_to_its_statement_and_its_data() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    canister.run("INSERT INTO t VALUES (1), (2), (3)");
    let one = || ReadOptions { max_rows: Some(1), ..options() };
    let select = statement("SELECT x FROM t ORDER BY x");
    let first = canister.query(Who::Reader, select.clone(), Some(one())).unwrap();
    let next = ReadOptions { cursor: first.cursor.clone(), ..one() };
    let other = canister.query(Who::Reader, statement("SELECT x FROM t ORDER BY -x"), Some(next.clone()));
    assert!(matches!(&other, Err(Error::InvalidArgument { argument, .. }) if argument == "cursor"), "{other:?}");
    for bytes in [vec![], vec![1], vec![0; 33], vec![1; 34]] {
        let forged = ReadOptions { cursor: Some(ByteBuf::from(bytes)), ..options() };
        let refused = canister.query(Who::Reader, select.clone(), Some(forged));
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert_eq!(canister.query(Who::Reader, select.clone(), Some(next.clone())).unwrap().rows, [[int(2)]]);
    canister.run("INSERT INTO t VALUES (0)");
    let changed = canister.query(Who::Reader, select.clone(), Some(next.clone()));
    assert!(matches!(&changed, Err(Error::Conflict { what, .. }) if what == "cursor"), "{changed:?}");
    let allowed = ReadOptions { allow_changed: Some(true), ..next };
    assert_eq!(canister.query(Who::Reader, select, Some(allowed)).unwrap().rows, [[int(1)]]);
}

#[test]
fn a_reply_is_never_too_large() {
    let mut canister = Canister::install();
    let wide = statement(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT zeroblob(500000) FROM n",
    );
    let (rows, stops) = pages(&mut canister, &wide, options());
    assert_eq!((rows.len(), stops.len()), (9, 2));
    let fits = format!("SELECT zeroblob({})", SQL_RESULT_BYTES_MAX - 100);
    assert_eq!(canister.rows(&fits).len(), 1);
    let above = format!("SELECT zeroblob({})", SQL_RESULT_BYTES_MAX + 1);
    let refused = canister.query(Who::Reader, statement(&above), None);
    assert!(matches!(refused, Err(Error::BudgetExceeded { .. })), "{refused:?}");
    // NULLs have no bytes of their own and still take room.
    let nulls = vec!["NULL"; 400].join(", ");
    let nulls =
        format!("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000) SELECT {nulls} FROM n");
    let options = ReadOptions { max_rows: Some(100_000), ..options() };
    let (rows, stops) = pages(&mut canister, &statement(&nulls), options);
    assert!(rows.len() == 3_000 && !stops.is_empty());
    let names: Vec<_> = (0..20).map(|place| format!("t.* , {place}")).collect();
    canister.run(&format!("CREATE TABLE t(\"{}\" INT)", "n".repeat(200_000)));
    let refused = canister.query(Who::Reader, statement(&format!("SELECT {} FROM t", names.join(", "))), None);
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
}

#[test]
fn corner_cases_are_answers_and_no_traps() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(a INT, b TEXT)");
    canister.run("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)");
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let sum = vec!["1"; 400].join(" + ");
    let terms = |count: usize| vec!["SELECT 1"; count].join(" UNION ALL ");
    let like = format!("SELECT '{}' LIKE '{}'", "a".repeat(2_000), "%a".repeat(501));
    for sql in [deep.as_str(), &format!("SELECT {sum}"), &terms(501), &like] {
        let refused = canister.query(Who::Reader, statement(sql), None);
        assert_ne!(code(&refused), 0, "{}: {refused:?}", &sql[..40]);
    }
    assert_eq!(canister.rows(&terms(500)).len(), 500);
    let cross =
        "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m, t n, t o, t p, t q";
    let stopped = canister.query(
        Who::Reader,
        statement(cross),
        Some(ReadOptions { max_instructions: Some(5_000_000), ..options() }),
    );
    assert!(matches!(stopped, Err(Error::BudgetExceeded { .. })), "{stopped:?}");
    let joins = (0..65).map(|place| format!("t AS t{place}")).collect::<Vec<_>>().join(", ");
    assert_ne!(code(&canister.query(Who::Reader, statement(&format!("SELECT 1 FROM {joins}")), None)), 0);
    assert_eq!(
        canister.rows("SELECT json_extract('{\"a\":[1,2]}', '$.a[1]'), date('2024-02-29', '+1 year')"),
        [[int(2), text("2025-03-01")]]
    );
    let overflow = canister.query(Who::Reader, statement("SELECT abs(-9223372036854775808)"), None);
    assert_eq!(code(&overflow), 1, "{overflow:?}");
    let columns = vec!["1"; 501].join(", ");
    assert_eq!(code(&canister.query(Who::Reader, statement(&format!("SELECT {columns}")), None)), 1);
    let long = "x".repeat(1_000_001);
    let refused = canister.query(Who::Reader, statement(&long), None);
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 1_000_000, actual: 1_000_001 }) if what == "sql"),
        "{refused:?}"
    );
    let fits = format!("SELECT 1 -- {}", "x".repeat(1_000_000 - 12));
    assert_eq!(canister.rows(&fits), [[int(1)]]);
}
