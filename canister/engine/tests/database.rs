//! What somebody who embeds the engine relies on.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, Migration, MigrationError, OpenOptions, Sql, Value, ValueRef};
use std::ops::ControlFlow;
use support::{assert_whole, contents, open, open_with, rows};

const KV: &str = "CREATE TABLE kv(key TEXT PRIMARY KEY, value ANY) WITHOUT ROWID, STRICT";

fn with_kv(raw: &HeapMemory) -> Database {
    let mut database = open(raw);
    database.migrate(&[Migration { version: 1, name: "kv", sql: KV }]).unwrap();
    database
}

fn count(database: &Database) -> i64 {
    static COUNT: Sql = Sql::new("SELECT count(*) FROM main.kv");
    database.read(|tx| tx.query_row(&COUNT, (), |row| row.integer(0))).unwrap().unwrap()
}

#[test]
fn values_of_every_type_survive_a_reopening() {
    let raw = HeapMemory::new();
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Integer(i64::MAX),
        Value::Real(-0.0),
        Value::Real(f64::INFINITY),
        Value::Real(f64::MIN_POSITIVE),
        Value::Text(String::new()),
        Value::Text("a\0b \u{10ffff}é".into()),
        Value::Blob(Vec::new()),
        Value::Blob((0..=255).cycle().take(100_000).collect()),
    ];
    {
        let mut database = with_kv(&raw);
        database
            .write(|tx| {
                for (number, value) in values.iter().enumerate() {
                    tx.execute("INSERT INTO main.kv VALUES (?1, ?2)", (format!("{number:02}"), value))?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    let mut database = open(&raw);
    assert_whole(&mut database);
    let found = database.read(|tx| rows(tx, "SELECT value FROM main.kv ORDER BY key")).unwrap();
    let found: Vec<Value> = found.into_iter().flatten().collect();
    assert_eq!(found, values);
}

#[test]
fn a_write_that_fails_changes_nothing_and_the_next_works() {
    let raw = HeapMemory::new();
    let mut database = with_kv(&raw);
    database.execute("INSERT INTO main.kv VALUES ('a', 1)", ()).unwrap();
    let before = (contents(&mut database), database.meta().digest, database.meta().transaction_id);

    #[derive(Debug)]
    enum Mine {
        Engine,
        Changed,
    }
    impl From<Error> for Mine {
        fn from(_: Error) -> Self {
            Self::Engine
        }
    }
    let outcome = database.write(|tx| {
        tx.execute("UPDATE main.kv SET value = 2", ())?;
        tx.execute_batch("CREATE TABLE other(x); INSERT INTO other VALUES (1)")?;
        Err::<(), _>(Mine::Changed)
    });
    assert!(matches!(outcome, Err(Mine::Changed)), "{outcome:?}");
    assert_eq!((contents(&mut database), database.meta().digest, database.meta().transaction_id), before);

    // A statement that fails half way, with and without a transaction around it.
    database.execute("INSERT INTO main.kv VALUES ('c', 3)", ()).unwrap();
    let before = contents(&mut database);
    let failing = "INSERT INTO main.kv SELECT column1, 0 FROM (VALUES ('b'), ('c'))";
    for outcome in [database.execute(failing, ()), database.write(|tx| tx.execute(failing, ()))] {
        assert!(matches!(&outcome, Err(Error::Sqlite(error)) if error.code == 1555), "{outcome:?}");
        assert_eq!(contents(&mut database), before);
    }
    // The caller may go on after a statement that failed.
    database
        .write(|tx| {
            assert!(tx.execute(failing, ()).is_err());
            tx.execute("INSERT INTO main.kv VALUES ('d', 4)", ())
        })
        .unwrap();
    assert_eq!(count(&database), 3);
    assert_eq!(open(&raw).read(|tx| rows(tx, "SELECT count(*) FROM main.kv")).unwrap(), [[Value::Integer(3)]]);
}

#[test]
fn a_closure_that_panics_undoes_its_transaction() {
    let raw = HeapMemory::new();
    let mut database = with_kv(&raw);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        database.write(|tx| {
            tx.execute("INSERT INTO main.kv VALUES ('a', 1)", ())?;
            if tx.id() > 0 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            Ok::<_, Error>(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(count(&database), 0);
    database.execute("INSERT INTO main.kv VALUES ('b', 2)", ()).unwrap();
    assert_eq!(count(&database), 1);
}

#[test]
fn a_reader_cannot_write() {
    let mut database = with_kv(&HeapMemory::new());
    database.execute("INSERT INTO main.kv VALUES ('a', 1)", ()).unwrap();
    for sql in ["DELETE FROM main.kv", "INSERT INTO main.kv VALUES ('b', 2) RETURNING key", "CREATE TABLE t(x)"] {
        let outcome = database.read(|tx| tx.query_row(sql, (), |_| Ok::<_, Error>(())));
        assert!(matches!(outcome, Err(Error::NotReadOnly { .. })), "{sql}: {outcome:?}");
    }
    assert_eq!(count(&database), 1);
}

#[test]
fn what_would_reach_around_the_engine_is_refused() {
    let raw = HeapMemory::new();
    let mut database = with_kv(&raw);
    let refused = [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "CREATE TEMP TABLE kv(x)",
        "CREATE TEMP VIEW kv AS SELECT 1",
        "CREATE TABLE temp.t(x)",
        "CREATE TEMP TRIGGER t AFTER INSERT ON kv BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE temp.t USING fts5(x)",
        "PRAGMA journal_mode = DELETE",
        "/* */PRAGMA journal_mode=OFF",
        "PRAGMA locking_mode=NORMAL",
        "PRAGMA cache_size=1",
        "PRAGMA cache_spill=1",
        "PRAGMA synchronous=FULL",
        "PRAGMA writable_schema=1",
        "PRAGMA foreign_keys=0",
        "PRAGMA main.page_size=512",
        "PRAGMA encoding='UTF-16'",
        "PRAGMA schema_version=1",
        "SELECT * FROM pragma_journal_mode",
        "SELECT load_extension('x')",
        "VACUUM",
        "VACUUM INTO 'x'",
        "UPDATE main.sqlite_schema SET sql = ''",
        "UPDATE temp.sqlite_schema SET sql = ''",
        "UPDATE sqlite_temp_master SET sql = ''",
        "DELETE FROM sqlite_temp_master",
    ];
    let before = contents(&mut database);
    for sql in refused {
        let outcomes = [
            database.write(|tx| tx.execute_batch(sql)),
            database.write(|tx| tx.query(sql, (), |_| Ok::<_, Error>(ControlFlow::Continue(())))),
            database.execute(sql, ()).map(|_| ()),
            database.read(|tx| tx.query(sql, (), |_| Ok::<_, Error>(ControlFlow::Continue(())))),
        ];
        for outcome in outcomes {
            let error = outcome.expect_err(sql);
            // Some SQLite refuses by itself, whoever asks.
            let known = matches!(error, Error::Refused { .. } | Error::NotReadOnly { .. } | Error::Sqlite(_));
            assert!(known && !error.to_string().is_empty(), "{sql}: {error:?}");
        }
        assert_eq!(contents(&mut database), before, "after {sql}");
    }
    // What was asked for stands in the error, and for some what to do instead.
    for (sql, words) in [
        ("BEGIN", "BEGIN: transactions begin and end with Database::write"),
        ("SAVEPOINT s", "use Writer::savepoint"),
        ("ATTACH ':memory:' AS other", "ATTACH: a database stands alone"),
        ("/* */PRAGMA journal_mode=OFF", "not allowed: PRAGMA journal_mode = OFF"),
        ("SELECT * FROM pragma_cache_size", "not allowed: PRAGMA cache_size"),
        ("CREATE TEMP TABLE kv(x)", "would stand in front of the database's own"),
        ("VACUUM", "Database::vacuum"),
    ] {
        let error = database.execute(sql, ()).expect_err(sql).to_string();
        assert!(error.contains(words), "{sql}: {error}");
    }
    for allowed in ["PRAGMA table_info(kv)", "PRAGMA user_version", "SELECT name FROM pragma_table_info('kv')"] {
        database.read(|tx| rows(tx, allowed)).unwrap();
    }
    // Two statements where one is expected, none, and more or fewer parameters than the statement has.
    for (sql, params) in [("SELECT 1; DELETE FROM kv", 0), ("-- nothing", 0), ("SELECT ?1", 0), ("SELECT 1", 1)] {
        let params = vec![Value::Null; params];
        let outcome = database.read(|tx| tx.query_row(sql, params.as_slice(), |_| Ok::<_, Error>(())));
        assert!(matches!(outcome, Err(Error::NotOneStatement { .. } | Error::Parameters { .. })), "{sql}: {outcome:?}");
    }
}

#[test]
fn kept_statements_survive_changes_of_the_schema_and_nest() {
    static GET: Sql = Sql::new("SELECT * FROM main.kv WHERE key >= ?1 ORDER BY key");
    let mut database = with_kv(&HeapMemory::new());
    database.keep(&[&GET]).unwrap();
    database.execute("INSERT INTO main.kv VALUES ('a', 1), ('b', 2)", ()).unwrap();
    let columns = |database: &Database| {
        database.read(|tx| tx.query_row(&GET, ("a",), |row| Ok::<_, Error>(row.columns()))).unwrap().unwrap()
    };
    assert_eq!(columns(&database), 2);
    database.write(|tx| tx.execute_batch("ALTER TABLE main.kv ADD COLUMN more INTEGER")).unwrap();
    assert_eq!(columns(&database), 3);

    let mut pairs = Vec::new();
    database
        .read(|tx| {
            tx.query(&GET, ("a",), |outer| {
                let outer = outer.text(0)?.to_owned();
                tx.query(&GET, ("a",), |inner| {
                    pairs.push(format!("{outer}{}", inner.text(0)?));
                    Ok::<_, Error>(ControlFlow::Continue(()))
                })?;
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
        })
        .unwrap();
    assert_eq!(pairs, ["aa", "ab", "ba", "bb"]);
}

#[test]
fn migrations_are_applied_once_and_their_texts_checked() {
    let raw = HeapMemory::new();
    let first = Migration { version: 1, name: "one", sql: "CREATE TABLE one(x); INSERT INTO one VALUES (1)" };
    let second = Migration { version: 7, name: "two", sql: "CREATE TABLE two(x)" };
    let mut database = open(&raw);
    assert_eq!(database.migrate(&[first]).unwrap(), 1);
    drop(database);
    let mut database = open(&raw);
    assert_eq!(database.migrate(&[first, second]).unwrap(), 1);
    assert_eq!(database.migrate(&[first, second]).unwrap(), 0);
    assert_eq!(database.read(|tx| rows(tx, "SELECT count(*) FROM one")).unwrap(), [[Value::Integer(1)]]);

    let before = contents(&mut database);
    let broken = Migration { version: 9, name: "broken", sql: "CREATE TABLE three(x); CREATE TABLE one(x)" };
    let fourth = Migration { version: 8, name: "four", sql: "CREATE TABLE four(x)" };
    let changed = Migration { sql: "CREATE TABLE one(y)", ..first };
    type Check = fn(&MigrationError) -> bool;
    let refused: [(&[Migration], Check); 4] = [
        (&[changed, second], |error| matches!(error, MigrationError::Changed { version: 1, .. })),
        (&[first], |error| matches!(error, MigrationError::Unknown { version: 7, .. })),
        (&[first, second, fourth, broken], |error| matches!(error, MigrationError::Failed { version: 9, .. })),
        (&[first, second, first], |error| matches!(error, MigrationError::Order { version: 1 })),
    ];
    for (list, expected) in refused {
        let outcome = database.migrate(list);
        assert!(matches!(&outcome, Err(Error::Migration(error)) if expected(error)), "{outcome:?}");
        assert_eq!(contents(&mut database), before);
    }
}

#[test]
fn every_page_size_works_and_stays_with_the_database() {
    for log2 in 9..=16 {
        let page_bytes = 1 << log2;
        let raw = HeapMemory::new();
        let options = OpenOptions { page_bytes, ..OpenOptions::default() };
        let mut database = open_with(&raw, options).unwrap();
        database.write(|tx| tx.execute_batch(KV)).unwrap();
        for n in 0..300 {
            database.execute("INSERT INTO main.kv VALUES (?1, ?2)", (format!("{n}"), "v".repeat(n * 7))).unwrap();
        }
        drop(database);
        let mut database = open(&raw);
        assert_eq!(database.meta().page_bytes, page_bytes);
        assert_whole(&mut database);
        assert_eq!(count(&database), 300);
    }
    for page_bytes in [0, 256, 513, 131_072] {
        let options = OpenOptions { page_bytes, ..OpenOptions::default() };
        assert!(open_with(&HeapMemory::new(), options).is_err(), "{page_bytes}");
    }
}

#[test]
fn a_cache_smaller_than_the_database_reads_and_writes_it_whole() {
    let raw = HeapMemory::new();
    let options = || OpenOptions { cache_bytes: 0, ..OpenOptions::default() };
    let mut database = open_with(&raw, options()).unwrap();
    database.write(|tx| tx.execute_batch(KV)).unwrap();
    // One transaction that dirties many times the pages of the cache, then scattered updates.
    database
        .write(|tx| {
            for n in 0..5_000_i64 {
                tx.execute("INSERT INTO main.kv VALUES (?1, ?2)", (format!("{n:05}"), "v".repeat(200)))?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    for n in 0..500_u64 {
        let key = format!("{:05}", n * 7_919 % 5_000);
        database.execute("UPDATE main.kv SET value = ?2 WHERE key = ?1", (key, n as i64)).unwrap();
    }
    assert!(database.meta().image_pages > 250);
    assert!(database.meta().cached_pages < 100, "{:?}", database.meta());
    assert_whole(&mut database);
    let sum = "SELECT sum(value), count(*) FROM main.kv WHERE typeof(value) = 'integer'";
    let expected = [[Value::Integer((0..500).sum()), Value::Integer(500)]];
    assert_eq!(database.read(|tx| rows(tx, sum)).unwrap(), expected);
    drop(database);
    assert_eq!(open_with(&raw, options()).unwrap().read(|tx| rows(tx, sum)).unwrap(), expected);
}

#[test]
fn an_image_that_shrinks_and_grows_reads_as_zero_where_it_was_not_written() {
    let raw = HeapMemory::new();
    let mut database = with_kv(&raw);
    for round in 0..3 {
        let fill = "INSERT INTO main.kv SELECT printf('%d-%05d', ?1, value), zeroblob(3000) FROM generate";
        let numbers =
            "WITH RECURSIVE generate(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate LIMIT 500) ";
        database.execute(&format!("{numbers}{fill}"), (round,)).unwrap();
        assert_whole(&mut database);
        database.execute("DELETE FROM main.kv WHERE key LIKE '%7'", ()).unwrap();
        database.execute("DELETE FROM main.kv", ()).unwrap();
        assert_whole(&mut database);
    }
    assert_eq!(count(&database), 0);
}

#[test]
fn a_text_that_is_not_utf8_is_seen_and_does_not_break_anything() {
    let database = open(&HeapMemory::new());
    let outcome = database.read(|tx| {
        tx.query_row("SELECT CAST(x'61ff' AS TEXT)", (), |row| {
            assert_eq!(row.value(0)?, ValueRef::Text(b"a\xff"));
            assert_eq!(row.value(0)?.to_value(), Value::Text("a\u{fffd}".into()));
            row.text(0).map(str::to_owned)
        })
    });
    assert!(matches!(outcome, Err(Error::ColumnType { column: 0, .. })), "{outcome:?}");
}

#[test]
fn the_digest_follows_the_contents_and_the_transaction_counts() {
    let raw = HeapMemory::new();
    let mut database = with_kv(&raw);
    let start = database.meta();
    database.execute("INSERT INTO main.kv VALUES ('a', 1)", ()).unwrap();
    let one = database.meta();
    assert_eq!(one.transaction_id, start.transaction_id + 1);
    assert_ne!(one.digest, start.digest);
    // Neither a read nor a write that changes nothing is a transaction.
    database.execute("DELETE FROM main.kv WHERE key = 'b'", ()).unwrap();
    database.write(|_| Ok::<_, Error>(())).unwrap();
    count(&database);
    assert_eq!(database.meta(), one);
    drop(database);
    let reopened = open(&raw).meta();
    assert_eq!((reopened.digest, reopened.transaction_id), (one.digest, one.transaction_id));
}

#[test]
fn several_databases_live_side_by_side() {
    let (first, second) = (HeapMemory::new(), HeapMemory::new());
    let (mut one, mut two) = (with_kv(&first), with_kv(&second));
    one.execute("INSERT INTO main.kv VALUES ('a', 1)", ()).unwrap();
    for n in 0..10 {
        two.execute("INSERT INTO main.kv VALUES (?1, 1)", (format!("{n}"),)).unwrap();
    }
    assert_eq!((count(&one), count(&two)), (1, 10));
    drop(one);
    assert_eq!(count(&two), 10);
}
