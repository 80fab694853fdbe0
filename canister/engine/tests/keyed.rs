//! A table by its key: random histories against a map and against SQL on the same table, in pages of every size, with a
//! cache that is too small, in transactions that are undone; the types of its columns; tables that it is not for.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Budget, Database, Error, KeyRange, KeyedTable, Limited, OpenOptions, Value, ValueRef};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use support::rng::Rng;

const SCHEMA: &str =
    "CREATE TABLE kv(key TEXT PRIMARY KEY NOT NULL, number INTEGER, value ANY NOT NULL) STRICT, WITHOUT ROWID";

type Rows = BTreeMap<String, (Option<i64>, Value)>;

fn open(raw: &HeapMemory, page_bytes: u32, cache_bytes: u64) -> Database {
    let manager = MemoryManager::open(raw.clone()).expect("the memory opens");
    let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
    let options = OpenOptions { page_bytes, cache_bytes, ..OpenOptions::default() };
    Database::open(image, hashes, options).expect("the database opens")
}

fn with_table(sql: &str) -> Database {
    let mut database = open(&HeapMemory::new(), 4_096, u64::MAX);
    database.write(|tx| tx.execute_batch(sql)).expect("the schema is made");
    database
}

/// Some keys are near each other, some alike up to their end, some long.
fn key(rng: &mut Rng, page_bytes: usize) -> String {
    let number = rng.below(400);
    match rng.below(12) {
        0 => "k".repeat(1 + number),
        1 => format!("{}{number}", "long".repeat(page_bytes / 64)),
        2 => format!("\u{e9}{number}"),
        3 => format!("k{number}\0"),
        _ => format!("k{number}"),
    }
}

fn value(rng: &mut Rng, page_bytes: usize) -> Value {
    let bytes = match rng.below(12) {
        0 => 0,
        1 => page_bytes / 4,
        // Around what still lies in its cell.
        2 => (page_bytes - 12) * 64 / 255 - 60 + rng.below(60),
        3 => page_bytes * 2 + rng.below(page_bytes),
        _ => rng.below(120),
    };
    match rng.below(10) {
        0 => Value::Blob(rng.bytes(bytes)),
        1 => Value::Real([0.0, -0.0, 1.5, f64::MAX, f64::INFINITY][rng.below(5)]),
        2 => Value::Integer(*rng.pick(&[0, 1, -1, 127, 128, -129, 1 << 23, -(1 << 31), 1 << 47, i64::MIN, i64::MAX])),
        _ => Value::Text((0..bytes).map(|_| (b'a' + rng.below(26) as u8) as char).collect()),
    }
}

fn row<'a>(key: &'a str, (number, value): &'a (Option<i64>, Value)) -> [ValueRef<'a>; 3] {
    let value = match value {
        Value::Null => ValueRef::Null,
        Value::Integer(integer) => ValueRef::Integer(*integer),
        Value::Real(real) => ValueRef::Real(*real),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(blob) => ValueRef::Blob(blob),
    };
    [key.into(), number.map_or(ValueRef::Null, ValueRef::Integer), value]
}

fn found(database: &Database, table: &KeyedTable, key: &str) -> Option<(Option<i64>, Value)> {
    let get = |row: &icsql_engine::KeyedRow<'_>| {
        assert_eq!(row.text(0)?, key);
        let number = if row.value(1)? == ValueRef::Null { None } else { Some(row.integer(1)?) };
        Ok::<_, Error>((number, row.value(2)?.to_value()))
    };
    database.read(|reader| reader.get(table, key, get)).expect("a key can be looked for")
}

fn scanned(database: &Database, table: &KeyedTable, range: &KeyRange<'_>) -> Vec<(String, (Option<i64>, Value))> {
    let mut rows = Vec::new();
    let scan = |row: &icsql_engine::KeyedRow<'_>| {
        let number = if row.value(1)? == ValueRef::Null { None } else { Some(row.integer(1)?) };
        rows.push((row.text(0)?.to_owned(), (number, row.value(2)?.to_value())));
        Ok::<_, Error>(ControlFlow::Continue(()))
    };
    database.read(|reader| reader.scan(table, range, scan)).expect("a range can be scanned");
    rows
}

/// What SQL sees in the table, and that nothing is damaged.
fn check(database: &mut Database, rows: &Rows, context: &str) {
    let mut seen = Rows::new();
    database
        .read(|reader| {
            let check =
                reader.query_row("PRAGMA main.integrity_check", (), |row| Ok::<_, Error>(row.text(0)?.to_owned()))?;
            assert_eq!(check.as_deref(), Some("ok"), "{context}");
            reader.query("SELECT key, number, value FROM main.kv ORDER BY key", (), |row| {
                let number = if row.value(1)? == ValueRef::Null { None } else { Some(row.integer(1)?) };
                seen.insert(row.text(0)?.to_owned(), (number, row.value(2)?.to_value()));
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
        })
        .expect("SQL reads the table");
    assert!(seen == *rows, "{context}: SQL sees {} rows and {} were written", seen.len(), rows.len());
    let scan = database.verify_chunk(u64::MAX).expect("pages can be checked");
    assert!(scan.damaged_total == 0 && scan.digest_matches == Some(true), "{context}: {scan:?}");
}

/// Changes by the key, and by SQL, for the same effect.
fn change(
    rng: &mut Rng,
    tx: &icsql_engine::Writer<'_>,
    table: &KeyedTable,
    rows: &mut Rows,
    page_bytes: usize,
) -> Result<(), Error> {
    let key = key(rng, page_bytes);
    if rng.one_in(3) {
        let removed = if rng.one_in(4) {
            tx.execute("DELETE FROM main.kv WHERE key = ?1", (&key,))? > 0
        } else {
            tx.remove(table, &key)?
        };
        assert_eq!(removed, rows.remove(&key).is_some(), "{rng}: {key}");
        return Ok(());
    }
    let number = [None, Some(0), Some(rng.next() as i64)][rng.below(3)];
    let new = (number, value(rng, page_bytes));
    if rng.one_in(4) {
        tx.execute("INSERT OR REPLACE INTO main.kv VALUES (?1, ?2, ?3)", (&key, number, &new.1))?;
    } else {
        tx.put(table, &row(&key, &new))?;
    }
    rows.insert(key, new);
    Ok(())
}

#[test]
fn histories_are_those_of_a_map_and_of_sql() {
    for (seed, page_bytes) in [(1, 512), (2, 1_024), (3, 4_096), (4, 4_096), (5, 16_384), (6, 65_536)] {
        let mut rng = Rng::new(seed);
        let raw = HeapMemory::new();
        // Most of the tree does not fit.
        let cache_bytes = if seed == 3 { u64::MAX } else { 0 };
        let mut database = open(&raw, page_bytes, cache_bytes);
        let page_bytes = page_bytes as usize;
        database.write(|tx| tx.execute_batch(SCHEMA)).expect("the schema is made");
        let mut table = database.keyed("kv").expect("the table can be used by its key");
        let mut rows = Rows::new();
        for step in 0..1_500 {
            let context = format!("{rng}, pages of {page_bytes}, step {step}");
            match rng.below(10) {
                0..4 => {
                    let key = key(&mut rng, page_bytes);
                    assert_eq!(found(&database, &table, &key), rows.get(&key).cloned(), "{context}");
                }
                4..6 => {
                    let key = key(&mut rng, page_bytes);
                    if rng.one_in(3) {
                        let removed = database.remove(&table, &key).expect("a row is removed");
                        assert_eq!(removed, rows.remove(&key).is_some(), "{context}");
                    } else {
                        let new = (Some(step), value(&mut rng, page_bytes));
                        database.put(&table, &row(&key, &new)).expect("a row is written");
                        rows.insert(key, new);
                    }
                }
                6 => {
                    // A transaction, some of them given up, with a savepoint that is undone.
                    let before = rows.clone();
                    let give_up = rng.one_in(3);
                    let outcome = database.write(|tx| {
                        for _ in 0..rng.below(20) {
                            change(&mut rng, tx, &table, &mut rows, page_bytes)?;
                        }
                        let kept = rows.clone();
                        let undone = tx.savepoint(|tx| {
                            for _ in 0..rng.below(10) {
                                change(&mut rng, tx, &table, &mut rows, page_bytes)?;
                            }
                            Err::<(), _>(Error::NotOneStatement { offset: 0 })
                        });
                        assert_eq!(undone, Err(Error::NotOneStatement { offset: 0 }), "{context}");
                        rows = kept;
                        for key in rows.keys().take(5) {
                            let number = tx.get(&table, key, |row| Ok::<_, Error>(row.value(1)?.to_value()))?;
                            let expected = rows[key].0.map_or(Value::Null, Value::Integer);
                            assert_eq!(number, Some(expected), "{context}: {key}");
                        }
                        if give_up { Err(Error::NotOneStatement { offset: 1 }) } else { Ok(()) }
                    });
                    if give_up {
                        assert_eq!(outcome, Err(Error::NotOneStatement { offset: 1 }), "{context}");
                        rows = before;
                    } else {
                        outcome.expect("the transaction is committed");
                    }
                }
                7 | 8 => {
                    let (low, high) = (key(&mut rng, page_bytes), key(&mut rng, page_bytes));
                    let from = if rng.one_in(3) { "" } else { &low };
                    let to = if rng.one_in(3) { None } else { Some(high.as_bytes()) };
                    let range = KeyRange { from: from.as_bytes(), to, reverse: rng.one_in(2) };
                    let within = |key: &str| key.as_bytes() >= range.from && to.is_none_or(|to| key.as_bytes() < to);
                    let mut expected: Vec<_> = rows
                        .iter()
                        .filter(|(key, _)| within(key))
                        .map(|(key, row)| (key.clone(), row.clone()))
                        .collect();
                    if range.reverse {
                        expected.reverse();
                    }
                    assert!(scanned(&database, &table, &range) == expected, "{context}: {range:?}");
                }
                _ if rng.one_in(8) => {
                    check(&mut database, &rows, &context);
                    drop(database);
                    database = open(&raw, 4_096, cache_bytes);
                    let other = table;
                    table = database.keyed("kv").expect("the table can be used by its key");
                    let refused = database.read(|reader| reader.get(&other, "k", |_| Ok::<_, Error>(())));
                    assert!(matches!(refused, Err(Error::NotKeyed { .. })), "{context}: {refused:?}");
                }
                _ if rng.one_in(4) => database.vacuum().expect("the image is rebuilt"),
                _ => {}
            }
        }
        check(&mut database, &rows, &format!("{rng}, pages of {page_bytes}, the end"));
    }
}

/// Rows behind all others, of many sizes, so that trees grow on every level, now and then one in between, and undone ones.
#[test]
fn rows_that_come_in_order_fill_their_pages() {
    for (seed, page_bytes, value_bytes) in
        [(11, 512, 60), (12, 4_096, 100), (13, 4_096, 900), (14, 65_536, 300), (15, 512, 1)]
    {
        let mut rng = Rng::new(seed);
        let raw = HeapMemory::new();
        let mut database = open(&raw, page_bytes, u64::MAX);
        database.write(|tx| tx.execute_batch(SCHEMA)).expect("the schema is made");
        let table = database.keyed("kv").expect("the table can be used by its key");
        let mut rows = Rows::new();
        let mut next = 0;
        for round in 0..12 {
            let context = format!("{rng}, pages of {page_bytes}, round {round}");
            let before = (rows.clone(), next);
            let give_up = rng.one_in(4);
            let outcome = database.write(|tx| {
                for _ in 0..400 {
                    let number = if rng.one_in(50) { rng.below(next + 1) } else { next };
                    next = next.max(number + 1);
                    let key = format!("{number:08}");
                    let len = value_bytes / 2 + rng.below(value_bytes / 2 + 1);
                    let new = (Some(round), Value::Text("v".repeat(len)));
                    tx.put(&table, &row(&key, &new))?;
                    rows.insert(key, new);
                }
                if give_up { Err(Error::NotOneStatement { offset: 1 }) } else { Ok(()) }
            });
            assert_eq!(outcome.is_err(), give_up, "{context}");
            if give_up {
                (rows, next) = before;
            }
            check(&mut database, &rows, &context);
        }
        // In order throughout they take about as many pages as by SQL: a row less in each leaf, of 16 or more.
        let fill = |by_key: bool| {
            let mut database = open(&HeapMemory::new(), page_bytes, u64::MAX);
            database.write(|tx| tx.execute_batch(SCHEMA)).expect("the schema is made");
            let table = database.keyed("kv").expect("the table can be used by its key");
            let filled = database.write(|tx| {
                rows.iter().try_for_each(|(key, new)| match by_key {
                    true => tx.put(&table, &row(key, new)),
                    false => tx.execute("INSERT INTO main.kv VALUES (?1, ?2, ?3)", (key, new.0, &new.1)).map(drop),
                })
            });
            filled.expect("the rows are written");
            check(&mut database, &rows, &format!("{rng}, pages of {page_bytes}, in order"));
            database.meta().image_pages
        };
        let (pages, sql_pages) = (fill(true), fill(false));
        println!("{rng}, pages of {page_bytes}: {pages} by key, {sql_pages} by SQL");
        assert!(pages <= sql_pages + sql_pages / 15 + 3, "{rng}, pages of {page_bytes}: {pages}, by SQL {sql_pages}");
    }
}

#[test]
fn a_closure_may_change_what_is_being_scanned() {
    let mut database = with_table(SCHEMA);
    let table = database.keyed("kv").expect("the table can be used by its key");
    database
        .write(|tx| {
            for n in 0..500 {
                tx.put(&table, &[format!("k{n:03}").as_str().into(), 1.into(), "v".repeat(100).as_str().into()])?;
            }
            let mut seen = 0;
            tx.scan(&table, &KeyRange::default(), |row| {
                let key = row.text(0)?;
                let number = tx.get(&table, key, |row| row.integer(1))?;
                assert!(number.is_some(), "{key} is there while it is looked at");
                tx.remove(&table, key)?;
                // Below what is still to come, so it is not met again.
                tx.put(&table, &[format!("a{key}").as_str().into(), 2.into(), "w".into()])?;
                assert_eq!(row.text(2)?, "v".repeat(100), "the row stays what it was");
                seen += 1;
                Ok::<_, Error>(ControlFlow::Continue(()))
            })?;
            assert_eq!(seen, 500);
            Ok::<_, Error>(())
        })
        .expect("it is committed");
    let all = database.read(|reader| {
        reader.query_row("SELECT count(*), sum(number) FROM main.kv WHERE key < 'b'", (), |row| {
            Ok::<_, Error>((row.integer(0)?, row.integer(1)?))
        })
    });
    assert_eq!(all, Ok(Some((500, 1_000))));
}

#[test]
fn only_values_that_fit_are_written() {
    let mut database = with_table(
        "CREATE TABLE kv(key TEXT PRIMARY KEY NOT NULL, i INTEGER, t TEXT NOT NULL, b BLOB, a ANY NOT NULL) STRICT, WITHOUT ROWID",
    );
    let table = database.keyed("kv").expect("the table can be used by its key");
    let id = database.meta().transaction_id;
    let good = [ValueRef::from("k"), 1.into(), "t".into(), ValueRef::Blob(b"b"), ValueRef::Real(1.0)];
    for (column, bad) in [
        (0, ValueRef::Null),
        (0, ValueRef::Integer(1)),
        (0, ValueRef::Blob(b"k")),
        (1, "1".into()),
        (1, ValueRef::Real(1.0)),
        (2, ValueRef::Null),
        (2, ValueRef::Real(f64::NAN)),
        (3, "b".into()),
        (4, ValueRef::Null),
        (4, ValueRef::Real(f64::NAN)),
    ] {
        let mut row = good;
        row[column] = bad;
        let refused = database.put(&table, &row);
        assert!(matches!(refused, Err(Error::ColumnType { column: c, .. }) if c == column), "{bad:?}: {refused:?}");
        // The transaction goes on.
        database
            .write(|tx| tx.put(&table, &row).map_or(Ok(()), |()| Err(Error::TransactionUndone)))
            .expect("nothing is written");
    }
    assert_eq!(database.put(&table, &good[..4]), Err(Error::Parameters { expected: 5, given: 4 }));
    assert_eq!(database.meta().transaction_id, id, "nothing was written");
    database.put(&table, &good).expect("it fits");
    let types = database.read(|reader| {
        let types = "SELECT typeof(i) || typeof(t) || typeof(b) || typeof(a) FROM main.kv";
        reader.query_row(types, (), |row| Ok::<_, Error>(row.text(0)?.to_owned()))
    });
    assert_eq!(types.expect("SQL reads it").as_deref(), Some("integertextblobreal"));
}

#[test]
fn tables_that_need_more_than_their_b_tree_are_refused() {
    let key = "key TEXT PRIMARY KEY NOT NULL";
    let many: String = (1..17).map(|n| format!(", c{n} ANY")).collect();
    for (sql, refused) in [
        (format!("CREATE TABLE t({key}, v ANY) WITHOUT ROWID"), "STRICT"),
        (format!("CREATE TABLE t({key}, v INTEGER) WITHOUT ROWID"), "STRICT"),
        (format!("CREATE TABLE t({key}, v ANY) STRICT"), "WITHOUT ROWID"),
        ("CREATE TABLE t(key INTEGER PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID".into(), "TEXT"),
        ("CREATE TABLE t(v ANY, key TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID".into(), "first column"),
        ("CREATE TABLE t(a TEXT, b TEXT, PRIMARY KEY(a, b)) STRICT, WITHOUT ROWID".into(), "alone"),
        ("CREATE TABLE t(key TEXT PRIMARY KEY COLLATE NOCASE, v ANY) STRICT, WITHOUT ROWID".into(), "PRIMARY KEY"),
        ("CREATE TABLE t(key TEXT, v ANY, PRIMARY KEY(key DESC)) STRICT, WITHOUT ROWID".into(), "PRIMARY KEY"),
        (format!("CREATE TABLE t({key}, v ANY UNIQUE) STRICT, WITHOUT ROWID"), "index"),
        (
            format!("CREATE TABLE t({key}, v ANY); CREATE INDEX i ON t(v)")
                .replace("); CREATE", ") STRICT, WITHOUT ROWID; CREATE"),
            "index",
        ),
        (format!("CREATE TABLE t({key}, v ANY CHECK(v > 1)) STRICT, WITHOUT ROWID"), "CHECK"),
        (format!("CREATE TABLE t({key}, v ANY DEFAULT 1) STRICT, WITHOUT ROWID"), "default"),
        (format!("CREATE TABLE t({key}, v INT GENERATED ALWAYS AS (1)) STRICT, WITHOUT ROWID"), "generated"),
        (format!("CREATE TABLE t({key}, v REAL) STRICT, WITHOUT ROWID"), "REAL"),
        (format!("CREATE TABLE t({key}, v TEXT REFERENCES t(key)) STRICT, WITHOUT ROWID"), "foreign key"),
        (
            format!("CREATE TABLE t({key}, v ANY) STRICT, WITHOUT ROWID; CREATE TABLE o(x TEXT REFERENCES t(key))"),
            "foreign key",
        ),
        (
            format!(
                "CREATE TABLE t({key}, v ANY) STRICT, WITHOUT ROWID; \
                 CREATE TRIGGER g AFTER DELETE ON t BEGIN SELECT 1; END"
            ),
            "trigger",
        ),
        (format!("CREATE TABLE t({key}{many}) STRICT, WITHOUT ROWID"), "16 columns"),
        ("CREATE VIEW t AS SELECT 1".into(), "no ordinary table"),
        ("SELECT 1".into(), "no ordinary table"),
    ] {
        let mut database = open(&HeapMemory::new(), 4_096, u64::MAX);
        if let Err(error) = database.write(|tx| tx.execute_batch(&sql)) {
            assert!(error.to_string().contains(refused), "{sql}: {error}");
            continue;
        }
        match database.keyed("t") {
            Err(Error::NotKeyed { why, .. }) => assert!(why.contains(refused), "{sql}: {why}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let database =
        with_table(&format!("CREATE TABLE t({key}{}) STRICT, WITHOUT ROWID", many.rsplit_once(',').unwrap().0));
    database.keyed("t").expect("16 columns");
}

#[test]
fn a_change_of_the_schema_is_noticed() {
    let mut database = with_table(SCHEMA);
    let table = database.keyed("kv").expect("the table can be used by its key");
    let row = |key: &'static str| [ValueRef::from(key), 1.into(), "v".into()];
    database.put(&table, &row("a")).expect("a row is written");
    // Another table moves the roots and leaves this one what it is.
    database.write(|tx| tx.execute_batch("CREATE TABLE other(x)")).expect("a table is made");
    database.put(&table, &row("b")).expect("a row is written");
    // A trigger is refused from inside the transaction that makes it, and once that is undone no more.
    let undone = database.write(|tx| {
        tx.execute_batch("CREATE TRIGGER g AFTER INSERT ON kv BEGIN INSERT INTO other VALUES (new.key); END")?;
        tx.put(&table, &row("c"))
    });
    assert!(matches!(undone, Err(Error::NotKeyed { .. })), "{undone:?}");
    database.put(&table, &row("c")).expect("the trigger is gone");
    // The table of that name is another one, on another page, inside a transaction that is undone, and then by one that is not.
    for commit in [false, true] {
        let outcome = database.write(|tx| {
            tx.execute_batch("ALTER TABLE kv RENAME TO old; CREATE TABLE kv(key TEXT PRIMARY KEY, number INTEGER, value ANY) STRICT, WITHOUT ROWID")?;
            assert_eq!(tx.get(&table, "a", |_| Ok::<_, Error>(()))?, None);
            tx.put(&table, &row("new"))?;
            if commit { Ok(()) } else { Err(Error::NotOneStatement { offset: 7 }) }
        });
        assert_eq!(outcome.is_ok(), commit, "{outcome:?}");
        let there = |key: &str| {
            database.read(|r| r.get(&table, key, |_| Ok::<_, Error>(()))).expect("it can be read").is_some()
        };
        assert_eq!((there("a"), there("new")), (!commit, commit));
    }
    database.write(|tx| tx.execute_batch("DROP TABLE kv")).expect("it is dropped");
    let gone = database.read(|reader| reader.get(&table, "a", |_| Ok::<_, Error>(())));
    assert!(matches!(gone, Err(Error::NotKeyed { .. })), "{gone:?}");
}

#[test]
fn budgets_hold() {
    let mut database = with_table(SCHEMA);
    let table = database.keyed("kv").expect("the table can be used by its key");
    let value = "v".repeat(900);
    let limited = |outcome: Result<(), Error>| match outcome {
        Err(Error::Budget(exceeded)) => Some(exceeded.what),
        Ok(()) => None,
        other => panic!("{other:?}"),
    };
    // What is stored already is not written again, and dirties nothing.
    for (number, (budget, what)) in [
        (Budget { value_bytes: 899, ..Budget::UNLIMITED }, Some(Limited::ValueBytes)),
        (Budget { value_bytes: 900, ..Budget::UNLIMITED }, None),
        (Budget { dirty_pages: 0, ..Budget::UNLIMITED }, Some(Limited::DirtyPages)),
        (Budget { dirty_pages: 1, ..Budget::UNLIMITED }, None),
    ]
    .into_iter()
    .enumerate()
    {
        let row = [ValueRef::from("k"), (number as i64).into(), value.as_str().into()];
        let (outcome, _) = database.write_within(&budget, |tx| tx.put(&table, &row));
        assert_eq!(limited(outcome), what);
    }
    for n in 0..20 {
        database.put(&table, &[format!("k{n}").as_str().into(), 1.into(), "v".into()]).expect("a row is written");
    }
    for (budget, what) in [
        (Budget { rows: 20, ..Budget::UNLIMITED }, Some(Limited::Rows)),
        (Budget { rows: 21, ..Budget::UNLIMITED }, None),
        (Budget { result_bytes: 1_000, ..Budget::UNLIMITED }, Some(Limited::ResultBytes)),
    ] {
        let all = |reader: &icsql_engine::Reader<'_>| {
            reader.scan(&table, &KeyRange::default(), |_| Ok::<_, Error>(ControlFlow::Continue(())))
        };
        let (outcome, metrics) = database.read_within(&budget, all);
        assert_eq!(limited(outcome), what, "{metrics:?}");
    }
}
