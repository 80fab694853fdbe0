//! Budgets let through exactly what they allow; what a call used is counted whether it succeeded or not.
mod support;

use icsql_engine::limits::{BUDGET_STEPS_BETWEEN_CHECKS, commit_reserve};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Budget, Database, Error, Exceeded, HostEnv, Limited, Metrics, Value};
use std::ops::ControlFlow;
use support::{assert_whole, contents, open, rows};

fn with_rows() -> Database {
    let mut database = open(&HeapMemory::new());
    database
        .write(|tx| {
            tx.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")?;
            for n in 0..500 {
                tx.execute("INSERT INTO main.t VALUES (?1, ?2)", (n, "x".repeat(100)))?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    database
}

fn met(outcome: Result<impl std::fmt::Debug, Error>) -> Exceeded {
    match outcome {
        Err(Error::Budget(exceeded)) => exceeded,
        other => panic!("no limit was met: {other:?}"),
    }
}

/// A call that uses exactly `n` of something: it works with a budget of `n` and of `n + 1`, and is refused with `n - 1`.
fn exact(what: Limited, n: u64, call: impl Fn(&mut Database, &Budget) -> Result<(), Error>) {
    let limit = |n| {
        let mut budget = Budget::UNLIMITED;
        *match what {
            Limited::Rows => &mut budget.rows,
            Limited::ResultBytes => &mut budget.result_bytes,
            Limited::SqlBytes => &mut budget.sql_bytes,
            Limited::ValueBytes => &mut budget.value_bytes,
            Limited::DirtyPages => &mut budget.dirty_pages,
            Limited::ChangedBytes => &mut budget.changed_bytes,
            _ => &mut budget.instructions,
        } = n;
        budget
    };
    for enough in [n, n + 1] {
        call(&mut with_rows(), &limit(enough)).unwrap_or_else(|error| panic!("{what:?} {enough}: {error}"));
    }
    let mut database = with_rows();
    let before = contents(&mut database);
    let exceeded = met(call(&mut database, &limit(n - 1)));
    assert_eq!((exceeded.what, exceeded.limit), (what, n - 1), "{exceeded:?}");
    assert!(exceeded.needed >= n, "{exceeded:?}");
    let words = exceeded.to_string();
    assert!(words.contains(&format!("the limit of {}", n - 1)), "{words}");
    assert_eq!(contents(&mut database), before, "{what:?}");
    database.execute("INSERT INTO main.t(name) VALUES ('next')", ()).unwrap();
}

fn read(sql: &'static str) -> impl Fn(&mut Database, &Budget) -> Result<(), Error> {
    move |database, budget| database.read_within(budget, |tx| rows(tx, sql)).0.map(|_| ())
}

fn write(sql: &'static str) -> impl Fn(&mut Database, &Budget) -> Result<(), Error> {
    move |database, budget| database.write_within(budget, |tx| tx.execute(sql, ())).0.map(|_| ())
}

#[test]
fn reads_get_exactly_what_is_allowed() {
    exact(Limited::Rows, 20, read("SELECT id FROM main.t LIMIT 20"));
    exact(Limited::Rows, 30, |database, budget| {
        // All statements of a closure count.
        let twice = database.read_within(budget, |tx| {
            rows(tx, "SELECT id FROM main.t LIMIT 15")?;
            rows(tx, "SELECT id FROM main.t LIMIT 15")
        });
        twice.0.map(|_| ())
    });
    exact(Limited::ResultBytes, 10 * 108, read("SELECT id, name FROM main.t LIMIT 10"));
    exact(Limited::ResultBytes, 8 + 8 + 3 + 4, read("SELECT 1, 2.5, NULL, 'abc', zeroblob(4)"));
    exact(Limited::ValueBytes, 100, read("SELECT name FROM main.t LIMIT 1"));
    exact(Limited::ValueBytes, 100, |database, budget| {
        let length =
            |tx: &icsql_engine::Reader<'_>| tx.query_row("SELECT length(?1)", ("y".repeat(100),), |row| row.integer(0));
        database.read_within(budget, length).0.map(|_| ())
    });
    let sql = "SELECT count(*) FROM main.t";
    exact(Limited::SqlBytes, sql.len() as u64, read(sql));
}

#[test]
fn writes_get_exactly_what_is_allowed() {
    const UPDATE: &str = "UPDATE main.t SET name = 'y' || substr(name, 2)";
    let mut database = with_rows();
    let (_, metrics) = database.write_within(&Budget::UNLIMITED, |tx| tx.execute(UPDATE, ()));
    let pages = metrics.pages_written;
    assert!(pages > 10, "{metrics:?}");
    exact(Limited::DirtyPages, pages, write(UPDATE));
    exact(Limited::ChangedBytes, pages * 4_096, write(UPDATE));
    exact(Limited::Rows, 3, |database, budget| {
        let sql = "DELETE FROM main.t WHERE id < 3 RETURNING id";
        database.write_within(budget, |tx| tx.query(sql, (), |_| Ok::<_, Error>(ControlFlow::Continue(())))).0
    });
    let batch = "DELETE FROM main.t WHERE id = 1; DELETE FROM main.t WHERE id = 2";
    exact(Limited::SqlBytes, batch.len() as u64, |database, budget| {
        database.write_within(budget, |tx| tx.execute_batch(batch)).0
    });
    // What COMMIT will take is kept aside: natively it is the only thing that a short write is charged for.
    exact(Limited::Instructions, commit_reserve(1, 4_096), write("DELETE FROM main.t WHERE id = 7"));
}

#[test]
fn a_limit_that_was_met_stands_even_if_the_closure_swallows_it() {
    let mut database = with_rows();
    let before = contents(&mut database);
    let budget = Budget { value_bytes: 10, ..Budget::UNLIMITED };
    let (outcome, _) = database.write_within(&budget, |tx| {
        tx.execute("DELETE FROM main.t WHERE id = 1", ())?;
        let swallowed = tx.execute("INSERT INTO main.t(name) VALUES (?1)", ("y".repeat(11),));
        assert_eq!(met(swallowed).what, Limited::ValueBytes);
        Ok::<_, Error>(())
    });
    assert_eq!(met(outcome).what, Limited::ValueBytes);
    assert_eq!(contents(&mut database), before);
}

#[test]
fn a_runaway_statement_is_stopped_within_one_look() {
    const RUNAWAY: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut database = with_rows();
    let before = contents(&mut database);
    let budget = Budget { instructions: 1_000_000, ..Budget::UNLIMITED };
    let look = BUDGET_STEPS_BETWEEN_CHECKS as u64 * HostEnv::INSTRUCTIONS_PER_STEP;
    let (outcome, metrics) = database.read_within(&budget, |tx| rows(tx, RUNAWAY));
    assert_eq!(met(outcome).limit, 1_000_000);
    assert!((1_000_000..=1_000_000 + look).contains(&metrics.instructions), "{metrics:?}");
    let (outcome, _) = database.write_within(&budget, |tx| {
        tx.execute("DELETE FROM main.t WHERE id = 1", ())?;
        rows(tx, RUNAWAY)
    });
    assert_eq!(met(outcome).what, Limited::Instructions);
    assert_eq!(contents(&mut database), before);
    // One that would fill the heap with changed pages is stopped long before COMMIT.
    let pages = Budget { dirty_pages: 100, ..Budget::UNLIMITED };
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n)
        INSERT INTO main.t SELECT i, zeroblob(2000) FROM n";
    let (outcome, metrics) = database.write_within(&pages, |tx| tx.execute(endless, ()));
    assert_eq!(met(outcome), Exceeded { what: Limited::DirtyPages, limit: 100, needed: 101 });
    assert!(metrics.vm_steps < 20_000, "{metrics:?}");
    assert_eq!(contents(&mut database), before);
    // The limit ends with its call.
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n";
    assert_eq!(database.read(|tx| rows(tx, many)).unwrap(), [[Value::Integer(100_000)]]);
}

#[test]
fn a_commit_is_never_reported_as_failed_however_often_it_is_looked_at() {
    // COMMIT is one statement whose steps add up over its life: every so many the progress handler falls due in it.
    let mut database = with_rows();
    let reserve = commit_reserve(1, 4_096);
    let budget = Budget { instructions: reserve, ..Budget::UNLIMITED };
    for n in 0..1_500_u64 {
        let before = database.meta().transaction_id;
        let sql = "UPDATE main.t SET name = ?1 WHERE id = 1";
        let (outcome, metrics) = database.write_within(&budget, |tx| tx.execute(sql, (n as i64,)));
        let committed = database.meta().transaction_id == before + 1;
        assert_eq!(outcome.is_ok(), committed, "{n}: {outcome:?}");
        assert_eq!(metrics.pages_written > 0, committed);
    }
    assert_whole(&mut database);
}

#[test]
fn a_budget_that_is_used_up_from_the_start_leaves_no_transaction_open() {
    // BEGIN is one statement too, and is looked at once in some hundred times.
    let mut database = with_rows();
    let before = contents(&mut database);
    let nothing = Budget { instructions: 0, ..Budget::UNLIMITED };
    for _ in 0..1_500 {
        let (outcome, _) = database.write_within(&nothing, |tx| tx.execute("DELETE FROM main.t", ()));
        assert_eq!(met(outcome).what, Limited::Instructions);
    }
    assert_eq!(contents(&mut database), before);
    let transaction = database.meta().transaction_id;
    database.execute("DELETE FROM main.t WHERE id = 1", ()).unwrap();
    assert_eq!(database.meta().transaction_id, transaction + 1, "it is committed and not part of another");
    assert_whole(&mut database);
}

#[test]
fn metrics_say_what_was_done() {
    let mut database = with_rows();
    let sorted = "SELECT id, name FROM main.t WHERE name != ?1 ORDER BY name DESC, id LIMIT 5";
    let (outcome, metrics) = database.read_within(&Budget::UNLIMITED, |tx| {
        let mut found = 0;
        tx.query(sorted, ("z",), |_| {
            found += 1;
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok::<_, Error>(found)
    });
    assert_eq!(outcome, Ok(5));
    assert_eq!((metrics.statements, metrics.rows, metrics.result_bytes), (1, 5, 5 * 108));
    assert_eq!((metrics.sorts, metrics.full_scan_steps), (1, 499));
    assert!(metrics.vm_steps > 1_500 && metrics.instructions > 0, "{metrics:?}");
    assert_eq!((metrics.pages_read, metrics.pages_written, metrics.stable_writes), (0, 0, 0), "the cache is warm");

    let (outcome, metrics) =
        database.write_within(&Budget::UNLIMITED, |tx| tx.execute("UPDATE main.t SET name = 'n' WHERE id = 3", ()));
    assert_eq!(outcome, Ok(1));
    // The mark, the page, its hash, the superblock.
    assert_eq!((metrics.pages_written, metrics.stable_writes, metrics.stable_reads), (1, 4, 1), "{metrics:?}");
    assert!(!metrics.over_budget);

    // A call that fails, one that is refused, and one whose closure does nothing.
    let (outcome, metrics) = database.write_within(&Budget::UNLIMITED, |tx| {
        tx.execute("DELETE FROM main.t WHERE id >= 0", ())?;
        tx.execute("INSERT INTO main.t VALUES (1, 'a'), (1, 'b')", ())
    });
    assert!(outcome.is_err());
    assert!(metrics.statements == 2 && metrics.vm_steps > 500 && metrics.pages_written == 0, "{metrics:?}");
    let (outcome, metrics) = database.read_within(&Budget::UNLIMITED, |tx| rows(tx, "DELETE FROM main.t"));
    assert!(matches!(outcome, Err(Error::NotReadOnly { .. })));
    assert_eq!(metrics.statements, 0);
    let (_, metrics) = database.read_within(&Budget::UNLIMITED, |_| Ok::<_, Error>(()));
    assert_eq!(metrics, Metrics::default());

    // A call inside another has its own budget and its own count, and the outer one goes on.
    let outer = Budget { rows: 10, ..Budget::UNLIMITED };
    let (outcome, metrics) = database.read_within(&outer, |tx| {
        rows(tx, "SELECT id FROM main.t LIMIT 6")?;
        let (inner, metrics) =
            database.read_within(&Budget { rows: 3, ..outer }, |tx| rows(tx, "SELECT 1 FROM main.t"));
        assert_eq!(met(inner).limit, 3);
        assert_eq!(metrics.rows, 3);
        rows(tx, "SELECT id FROM main.t LIMIT 4")
    });
    assert_eq!(outcome.map(|rows| rows.len()), Ok(4));
    assert_eq!((metrics.rows, metrics.statements), (10, 2));
}

#[test]
fn reads_from_stable_memory_are_counted() {
    let raw = HeapMemory::new();
    let mut database = open(&raw);
    database.write(|tx| tx.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(100000))")).unwrap();
    drop(database);
    let database = open(&raw);
    // Overflow pages are not warmed.
    let sum = |database: &Database| {
        database.read_within(&Budget::UNLIMITED, |tx| rows(tx, "SELECT length(hex(x)) FROM main.t")).1
    };
    let cold = sum(&database);
    assert!(cold.pages_read >= 24 && cold.stable_reads == cold.pages_read, "{cold:?}");
    assert_eq!(sum(&database).pages_read, 0);
}
