//! Savepoints, parameters by name, texts that stay prepared, VACUUM, adopted histories, several databases at once.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, Migration, MigrationError, Named, Sql, Value, limits};
use std::ops::ControlFlow;
use support::{assert_whole, contents, open, rows};

fn with_table() -> Database {
    let mut database = open(&HeapMemory::new());
    database.write(|tx| tx.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE)")).unwrap();
    database
}

fn names(database: &Database) -> Vec<String> {
    let rows = database.read(|tx| rows(tx, "SELECT name FROM main.t ORDER BY id")).unwrap();
    rows.into_iter().map(|row| format!("{:?}", row[0])).collect()
}

const INSERT: &str = "INSERT INTO main.t(name) VALUES (?1)";

#[test]
fn a_savepoint_is_undone_alone_and_can_be_nested() {
    let mut database = with_table();
    let inner = database.write(|tx| {
        tx.execute(INSERT, ("kept",))?;
        let failed: Result<(), Error> = tx.savepoint(|tx| {
            tx.execute(INSERT, ("outer",))?;
            tx.savepoint(|tx| tx.execute(INSERT, ("inner",)))?;
            tx.execute(INSERT, ("kept",)).map(|_| ())
        });
        assert!(matches!(failed, Err(Error::Sqlite(_))), "{failed:?}");
        tx.savepoint(|tx| {
            tx.execute(INSERT, ("outer",))?;
            let undone: Result<u64, Error> = tx.savepoint(|tx| {
                tx.execute_batch("CREATE TABLE other(x); DROP TABLE main.t")?;
                Err(Error::TransactionUndone)
            });
            assert_eq!(undone, Err(Error::TransactionUndone));
            tx.execute(INSERT, ("after",))
        })
    });
    assert_eq!(inner, Ok(1));
    assert_eq!(names(&database), ["Text(\"kept\")", "Text(\"outer\")", "Text(\"after\")"]);
    assert_whole(&mut database);
    // The whole can still be undone.
    let before = contents(&mut database);
    let undone: Result<(), Error> = database.write(|tx| {
        tx.savepoint(|tx| tx.execute(INSERT, ("x",)))?;
        Err(Error::TransactionUndone)
    });
    assert!(undone.is_err());
    assert_eq!(contents(&mut database), before);
}

#[test]
fn a_panic_inside_a_savepoint_undoes_it_and_the_transaction_can_go_on() {
    let mut database = with_table();
    database
        .write(|tx| {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                tx.savepoint(|tx| -> Result<(), Error> {
                    tx.execute(INSERT, ("gone",))?;
                    std::panic::resume_unwind(Box::new("on purpose"))
                })
            }));
            assert!(panicked.is_err());
            tx.execute(INSERT, ("stays",))
        })
        .unwrap();
    assert_eq!(names(&database), ["Text(\"stays\")"]);
}

#[test]
fn a_row_closure_that_panics_leaves_a_database_that_works() {
    let mut database = with_table();
    database.execute("INSERT INTO main.t(name) VALUES ('a'), ('b')", ()).unwrap();
    static ALL: Sql = Sql::new("SELECT name FROM main.t WHERE id >= ?1");
    for _ in 0..3 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            database.read(|tx| -> Result<(), Error> {
                tx.query(&ALL, (1,), |_| -> Result<_, Error> { std::panic::resume_unwind(Box::new("on purpose")) })
            })
        }));
        assert!(panicked.is_err());
        database.execute("UPDATE main.t SET name = name || 'x' WHERE id = 1", ()).unwrap();
        let mut count = 0;
        database
            .read(|tx| {
                tx.query(&ALL, (1,), |_| {
                    count += 1;
                    Ok::<_, Error>(ControlFlow::Continue(()))
                })
            })
            .unwrap();
        assert_eq!(count, 2);
    }
    assert_whole(&mut database);
}

#[test]
fn a_closure_that_goes_on_after_its_transaction_was_undone_writes_nothing() {
    let raw = HeapMemory::with_limit(3 * 128 + 1);
    let mut database = open(&raw);
    database.write(|tx| tx.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, name)")).unwrap();
    let before = contents(&mut database);
    // A heap that is full undoes the whole transaction, not just the statement.
    let outcome = database.write(|tx| {
        tx.execute(INSERT, ("first",))?;
        icsql_engine::heap_fault::fail(1..u64::MAX);
        let failed = tx.execute("INSERT INTO main.t(name) SELECT zeroblob(100000) FROM (VALUES (1), (2), (3))", ());
        icsql_engine::heap_fault::fail(0..0);
        assert!(matches!(&failed, Err(error) if error.is_full()), "{failed:?}");
        let outcomes = [
            tx.execute(INSERT, ("second",)).map(|_| ()),
            tx.execute_batch("INSERT INTO main.t(name) VALUES ('third')"),
            tx.savepoint(|tx| tx.execute(INSERT, ("fourth",))).map(|_| ()),
            tx.query_row("SELECT 1", (), |_| Ok::<_, Error>(())).map(|_| ()),
        ];
        Ok::<_, Error>(outcomes)
    });
    match outcome {
        // SQLite undid the statement alone: then the rest has worked and is committed.
        Ok(outcomes) => assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}"),
        Err(error) => {
            assert_eq!(error, Error::TransactionUndone);
            assert_eq!(contents(&mut database), before);
        }
    }
    assert_whole(&mut database);
    database.execute(INSERT, ("next",)).unwrap();
}

#[test]
fn a_write_that_was_stopped_cannot_be_continued() {
    let mut database = with_table();
    let before = contents(&mut database);
    let budget = icsql_engine::Budget { instructions: 200_000, ..icsql_engine::Budget::UNLIMITED };
    let (outcome, _) = database.write_within(&budget, |tx| {
        tx.execute(INSERT, ("first",))?;
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            INSERT INTO main.t(name) SELECT i FROM n";
        let stopped = tx.execute(endless, ());
        assert!(matches!(stopped, Err(Error::Budget(_))), "{stopped:?}");
        let more = tx.execute(INSERT, ("second",));
        assert!(matches!(more, Err(Error::Budget(_))), "{more:?}");
        Ok::<_, Error>(())
    });
    assert!(matches!(outcome, Err(Error::Budget(_))), "{outcome:?}");
    assert_eq!(contents(&mut database), before);
}

#[test]
fn parameters_by_name() {
    let mut database = with_table();
    let insert = "INSERT INTO main.t(id, name) VALUES (:id, @name) RETURNING id, name";
    let named = [("name", Value::Text("a".into())), (":id", Value::Integer(7))];
    database.write(|tx| tx.query_row(insert, Named(&named), |row| row.integer(0))).unwrap();
    assert_eq!(names(&database), ["Text(\"a\")"]);
    let ask = |params: &[(&str, i64)]| {
        let sql = "SELECT $a + $b, $a";
        database.read(|tx| tx.query_row(sql, Named(params), |row| Ok::<_, Error>((row.integer(0)?, row.integer(1)?))))
    };
    assert_eq!(ask(&[("b", 2), ("$a", 1)]), Ok(Some((3, 1))));
    for (wrong, words) in [
        (&[("a", 1)][..], "2 parameters and 1 were given"),
        (&[("a", 1), ("$a", 2)], "parameter $b was not given"),
        (&[("a", 1), ("c", 2)], "no parameter named c; it has $a, $b"),
        (&[("a", 1), ("b\0", 2)], "no parameter named b"),
    ] {
        let error = ask(wrong).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
        // What an earlier call bound is not used.
        assert_eq!(ask(&[("a", 5), ("b", 6)]), Ok(Some((11, 5))));
    }
    let unnamed = database.read(|tx| tx.query_row("SELECT ?1", Named(&[("a", 1)]), |row| row.integer(0)));
    assert!(unnamed.is_err_and(|error| error.to_string().contains("no parameter named a; it has ?1")));
    // A gap in the numbers is a parameter too.
    let gap = database.read(|tx| tx.query_row("SELECT ?3", (1, 2, 3), |row| row.integer(0)));
    assert_eq!(gap, Ok(Some(3)));
}

#[test]
fn texts_stay_prepared_and_are_forgotten_in_order_of_use() {
    let mut database = with_table();
    database.execute(INSERT, ("a",)).unwrap();
    let prepared = |database: &Database, sql: &str| {
        let before = icsql_engine::heap_fault::count();
        database.read(|tx| tx.query_row(sql, (), |_| Ok::<_, Error>(()))).unwrap();
        // Preparing allocates ten times and more, running such a statement hardly ever.
        icsql_engine::heap_fault::count() - before > 5
    };
    let text = |n: usize| format!("SELECT id, name FROM main.t WHERE id = {n} OR name = 'a{n}' ORDER BY name");
    for n in 0..limits::CACHED_STATEMENTS_MAX {
        assert!(prepared(&database, &text(n)), "{n}");
    }
    assert!(!prepared(&database, &text(0)) && !prepared(&database, &text(1)));
    // One more pushes out the one that was not used for longest.
    assert!(prepared(&database, &text(1_000)));
    assert!(!prepared(&database, &text(0)) && !prepared(&database, &text(1)) && prepared(&database, &text(2)));
    let long = |bytes: usize| format!("SELECT name FROM main.t{}", " ".repeat(bytes - "SELECT name FROM main.t".len()));
    for (bytes, stays) in [
        (limits::CACHED_SQL_BYTES_MAX - 1, true),
        (limits::CACHED_SQL_BYTES_MAX, true),
        (limits::CACHED_SQL_BYTES_MAX + 1, false),
    ] {
        prepared(&database, &long(bytes));
        assert_eq!(!prepared(&database, &long(bytes)), stays, "{bytes}");
    }
    // A change of the schema makes them stale.
    let all = "SELECT * FROM main.t";
    let columns = |database: &Database| {
        database.read(|tx| tx.query_row(all, (), |row| Ok::<_, Error>(row.columns()))).unwrap().unwrap()
    };
    assert_eq!(columns(&database), 2);
    database.execute("ALTER TABLE main.t ADD COLUMN more", ()).unwrap();
    assert_eq!(columns(&database), 3);
    database
        .write(|tx| {
            assert_eq!(tx.query_row(all, (), |row| Ok::<_, Error>(row.columns()))?, Some(3));
            tx.execute_batch("ALTER TABLE main.t DROP COLUMN more")?;
            assert_eq!(tx.query_row(all, (), |row| Ok::<_, Error>(row.columns()))?, Some(2));
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn vacuum_gives_back_free_pages_and_keeps_everything() {
    let raw = HeapMemory::new();
    let mut database = open(&raw);
    database
        .write(|tx| {
            tx.execute_batch(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, name); CREATE INDEX by_name ON t(name);
                 CREATE VIRTUAL TABLE note USING fts5(body); INSERT INTO note VALUES ('the lake is freezing')",
            )?;
            for n in 0..2_000 {
                tx.execute(INSERT, (format!("{n:04} {}", "v".repeat(300)),))?;
            }
            tx.execute("DELETE FROM main.t WHERE id % 10 != 0", ())
        })
        .unwrap();
    static COUNT: Sql = Sql::new("SELECT count(*) FROM main.t");
    database.keep(&[&COUNT]).unwrap();
    let before = contents(&mut database);
    let pages = database.meta().image_pages;
    database.vacuum().unwrap();
    let after = database.meta();
    assert!(after.image_pages * 5 < pages, "{} of {pages} pages are left", after.image_pages);
    assert_eq!(contents(&mut database), before);
    assert_eq!(database.read(|tx| tx.query_row(&COUNT, (), |row| row.integer(0))).unwrap(), Some(200));
    database.execute(INSERT, ("more",)).unwrap();
    let expected = contents(&mut database);
    let mut reopened = open(&raw);
    assert_eq!(contents(&mut reopened), expected);
    let found = reopened.read(|tx| rows(tx, "SELECT body FROM main.note WHERE note MATCH 'lake'")).unwrap();
    assert_eq!(found.len(), 1);
    // Inside a transaction SQLite refuses, and says why.
    let inside = reopened.write(|tx| tx.execute_batch("VACUUM")).unwrap_err();
    assert!(inside.to_string().contains("within a transaction"), "{inside}");
}

#[test]
fn a_history_of_somebody_else_is_adopted_once() {
    let one = Migration { version: 1, name: "one", sql: "CREATE TABLE one(x)" };
    let two = Migration { version: 2, name: "two", sql: "CREATE TABLE two(x)" };
    let three = Migration { version: 3, name: "three", sql: "CREATE TABLE three(x)" };
    let all = [one, two, three];
    let foreign = |versions: &[(i64, Option<&str>)]| {
        let mut database = open(&HeapMemory::new());
        database
            .write(|tx| {
                tx.execute_batch(
                    "CREATE TABLE one(x); CREATE TABLE two(x);
                     CREATE TABLE __ic_sqlite_migrations(version INTEGER PRIMARY KEY NOT NULL);
                     CREATE TABLE __ic_sqlite_migration_checksums(version INTEGER PRIMARY KEY NOT NULL, checksum BLOB)",
                )?;
                for (version, text) in versions {
                    tx.execute("INSERT INTO __ic_sqlite_migrations VALUES (?1)", (version,))?;
                    if let Some(text) = text {
                        let hash = icsql_engine::sha256(text);
                        let sql = "INSERT INTO __ic_sqlite_migration_checksums VALUES (?1, ?2)";
                        tx.execute(sql, (version, hash.as_slice()))?;
                    }
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        database
    };
    let mut database = foreign(&[(1, None), (2, Some(two.sql))]);
    assert_eq!(database.adopt_migrations(&all, 2), Ok(2));
    assert_eq!(database.adopt_migrations(&all, 2), Ok(0));
    assert_eq!(database.migrate(&all), Ok(1));
    assert_eq!(database.migrate(&all), Ok(0));

    for (versions, through, words) in [
        (&[(1, None), (2, Some("CREATE TABLE two(y)"))][..], 2, "version 2 was applied by ic-sqlite-vfs with another"),
        (&[(1, None), (2, None)], 1, "version 2 was applied by ic-sqlite-vfs and is not among"),
        (&[(1, None)], 2, "version 2 was not applied"),
        (&[(0, None), (1, None)], 1, "version 0"),
        (&[(1, None)], 9, "version 9 is not in the list"),
    ] {
        let mut database = foreign(versions);
        let before = contents(&mut database);
        let outcome = database.adopt_migrations(&all, through);
        assert!(matches!(&outcome, Err(Error::Migration(MigrationError::Adopt { .. }))), "{outcome:?}");
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(contents(&mut database), before);
    }
    // A schema that was made by hand.
    let mut database = open(&HeapMemory::new());
    database.write(|tx| tx.execute_batch(one.sql)).unwrap();
    assert_eq!(database.adopt_migrations(&all, 1), Ok(1));
    assert_eq!(database.migrate(&all), Ok(2));
}

#[test]
fn closures_of_two_databases_nest() {
    let (mut one, two) = (with_table(), with_table());
    one.write(|tx| {
        tx.execute(INSERT, ("a",))?;
        // The same statement, kept by both, in the middle of a transaction of the other.
        static COUNT: Sql = Sql::new("SELECT count(*) FROM main.t");
        let mine = tx.query_row(&COUNT, (), |row| row.integer(0))?;
        let theirs = two.read(|other| other.query_row(&COUNT, (), |row| row.integer(0)))?;
        assert_eq!((mine, theirs), (Some(1), Some(0)));
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!((names(&one).len(), names(&two).len()), (1, 0));
}

#[test]
fn a_statement_that_would_keep_what_it_did_before_it_failed_keeps_nothing() {
    let mut database = with_table();
    database
        .write(|tx| {
            tx.execute_batch(
                "CREATE TABLE strict_name(name TEXT NOT NULL ON CONFLICT FAIL);
                 CREATE TABLE watched(x);
                 CREATE TRIGGER no_three BEFORE INSERT ON watched WHEN new.x = 3 BEGIN SELECT RAISE(FAIL, 'three'); END;
                 INSERT INTO main.t(name) VALUES ('b')",
            )
        })
        .unwrap();
    let before = contents(&mut database);
    for sql in [
        "INSERT OR FAIL INTO main.t(name) VALUES ('a'), ('b'), ('c')",
        "INSERT INTO main.strict_name VALUES ('a'), (NULL)",
        "INSERT INTO main.watched VALUES (1), (2), (3), (4)",
    ] {
        let id = database.meta().transaction_id;
        let error = database.execute(sql, ()).expect_err(sql);
        assert_eq!(database.meta().transaction_id, id, "{sql}: {error}");
        assert_eq!(contents(&mut database), before, "{sql}: {error}");
    }
    assert_eq!(database.execute("INSERT OR FAIL INTO main.t(name) VALUES ('a'), ('c')", ()), Ok(2));
    // Inside a transaction it is the closure that decides, as with any statement that failed.
    let kept = database.write(|tx| {
        assert!(tx.execute("INSERT INTO main.watched VALUES (1), (2), (3), (4)", ()).is_err());
        tx.query_row("SELECT count(*) FROM main.watched", (), |row| row.integer(0))
    });
    assert_eq!(kept, Ok(Some(2)));
}

#[test]
fn a_batch_with_a_nul_ends_in_an_error() {
    let mut database = with_table();
    let before = database.meta();
    for sql in ["\0", "INSERT INTO main.t VALUES (9, 'x');\0", "INSERT INTO main.t VALUES (9, 'x'); -- y\n \0 SELECT 1"]
    {
        let failed = database.write(|tx| tx.execute_batch(sql));
        let Err(Error::Sqlite(error)) = failed else { panic!("{sql:?}: {failed:?}") };
        assert!(error.message.contains("NUL"), "{sql:?}: {error:?}");
        assert_eq!(error.offset.map(|offset| sql.as_bytes()[offset as usize]), Some(0), "{sql:?}");
        assert_eq!(database.meta().digest, before.digest);
    }
}
