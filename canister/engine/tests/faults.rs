//! Every write and growth of stable memory and every allocation of a transaction fails in turn, and it traps at every
//! write. Afterwards the database is as it was before the transaction or as it is after it, never in between; it is
//! whole; and the next transaction works.
mod support;

use icsql_engine::stable::fault::{Fault, FaultMemory, message};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::superblock::SuperblockError;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, Operation, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, Error, OpenOptions, Value, heap_fault};
use support::{contents, open};

type Contents = Vec<(String, Vec<Vec<Value>>)>;

/// A transaction.
type Write = fn(&mut Database) -> Result<(), Error>;

fn one(sql: &'static str) -> impl Fn(&mut Database) -> Result<(), Error> {
    move |db| db.execute(sql, ()).map(|_| ())
}

fn batch(sql: &'static str) -> impl Fn(&mut Database) -> Result<(), Error> {
    move |db| db.write(|tx| tx.execute_batch(sql))
}

/// A row by its key.
fn put(key: &'static str, number: i64, bytes: usize) -> impl Fn(&mut Database) -> Result<(), Error> {
    move |db| {
        let table = db.keyed("keyed")?;
        db.put(&table, &[key.into(), number.into(), "w".repeat(bytes).as_str().into()])
    }
}

const WRITES: &[(&str, Write)] = &[
    ("insert", |db| one("INSERT INTO main.kv VALUES ('new', 'x')")(db)),
    ("insert, journalled", |db| batch("INSERT INTO main.kv VALUES ('new', 'x')")(db)),
    ("update", |db| one("UPDATE main.kv SET value = 'y' WHERE key = '0007'")(db)),
    ("update of many rows", |db| batch("UPDATE main.kv SET value = value || 'y' WHERE key LIKE '%7'")(db)),
    ("replace", |db| one("INSERT OR REPLACE INTO main.kv VALUES ('0007', 'y')")(db)),
    ("delete", |db| one("DELETE FROM main.kv WHERE key = '0007'")(db)),
    ("overflow pages", |db| one("INSERT INTO main.kv VALUES ('large', zeroblob(50000))")(db)),
    // Larger than a bucket of virtual memory, so that both memories must grow.
    ("growth", |db| one("INSERT INTO main.kv VALUES ('huge', zeroblob(9000000))")(db)),
    ("growth, journalled", |db| batch("INSERT INTO main.kv VALUES ('huge', zeroblob(9000000))")(db)),
    ("splitting a page", |db| one("INSERT INTO main.kv VALUES ('0007a', zeroblob(900))")(db)),
    ("a new table", |db| {
        batch("CREATE TABLE other(id INTEGER PRIMARY KEY, x); INSERT INTO other(x) VALUES (1), (2)")(db)
    }),
    ("dropping a table", |db| batch("DROP TABLE main.log")(db)),
    ("building an index", |db| one("CREATE INDEX main.by_value ON kv(value)")(db)),
    ("ALTER TABLE", |db| {
        batch("ALTER TABLE main.log ADD COLUMN more TEXT DEFAULT 'm'; ALTER TABLE main.log RENAME COLUMN key TO k")(db)
    }),
    ("VACUUM", Database::vacuum),
    ("full-text search", |db| batch("INSERT INTO main.note VALUES ('a new note', 'about the lake')")(db)),
    ("a cascade of triggers", |db| batch("DELETE FROM main.parent WHERE id <= 3")(db)),
    // A record of the same size as the one that is there.
    ("by key, in place", |db| put("0007", 1, 100)(db)),
    ("by key, a new row", |db| put("0007a", 8, 100)(db)),
    ("by key, splitting a page", |db| put("0007a", 8, 900)(db)),
    ("by key, overflow pages", |db| put("large", 8, 50_000)(db)),
    ("by key, growth", |db| put("huge", 8, 9_000_000)(db)),
    ("by key, a row less", |db| {
        let table = db.keyed("keyed")?;
        db.remove(&table, "0007").map(drop)
    }),
    ("by key, many rows", |db| {
        let table = db.keyed("keyed")?;
        db.write(|tx| {
            for n in 100..200 {
                tx.put(&table, &[format!("{n:04}").as_str().into(), n.into(), "w".repeat(120).as_str().into()])?;
                tx.remove(&table, &format!("{:04}", n + 100))?;
            }
            tx.execute("UPDATE main.keyed SET number = 9 WHERE key = '0100'", ()).map(drop)
        })
    }),
    ("a savepoint undone inside", |db| {
        db.write(|tx| {
            tx.execute("INSERT INTO main.kv VALUES ('kept', 'k')", ())?;
            // The cause is an error of ours, so that nothing injected is swallowed.
            let undone = tx.savepoint(|tx| {
                tx.execute_batch("DELETE FROM main.kv WHERE key < '0300'; CREATE TABLE gone(x)")?;
                Err::<(), _>(Error::NotOneStatement { offset: 0 })
            });
            match undone {
                Err(Error::NotOneStatement { .. }) => {}
                other => other?,
            }
            tx.execute("INSERT INTO main.kv VALUES ('last', 'l')", ()).map(|_| ())
        })
    }),
];

/// A database with rows enough for a tree of two levels and free pages, and something of everything.
fn template() -> Vec<u8> {
    let raw = HeapMemory::new();
    let mut database = open(&raw);
    database
        .write(|tx| {
            tx.execute_batch(
                "CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
                 CREATE TABLE keyed(key TEXT PRIMARY KEY NOT NULL, number INTEGER, value ANY NOT NULL)
                     STRICT, WITHOUT ROWID;
                 CREATE TABLE log(id INTEGER PRIMARY KEY, key TEXT);
                 CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
                 CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent(id) ON DELETE CASCADE);
                 CREATE TRIGGER child_gone AFTER DELETE ON child BEGIN INSERT INTO log(key) VALUES ('c' || old.id); END;
                 CREATE TRIGGER logged AFTER INSERT ON log BEGIN UPDATE parent SET name = name || 'x' WHERE id > 3; END;
                 CREATE VIRTUAL TABLE note USING fts5(title, body);
                 INSERT INTO note VALUES ('one', 'the lake is freezing'), ('two', 'the river flows');
                 INSERT INTO parent(name) VALUES ('a'), ('b'), ('c'), ('d');
                 INSERT INTO child(parent) SELECT 1 + value % 4 FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,11]');",
            )?;
            for n in 0..800 {
                tx.execute("INSERT INTO main.kv VALUES (?1, ?2)", (format!("{n:04}"), "v".repeat(100)))?;
                tx.execute("INSERT INTO main.keyed VALUES (?1, 1, ?2)", (format!("{n:04}"), "v".repeat(100)))?;
            }
            tx.execute("DELETE FROM main.kv WHERE key BETWEEN '0500' AND '0700'", ())
        })
        .expect("the template is written");
    raw.to_bytes()
}

/// The tables are the same; if not, says which differ.
#[track_caller]
fn assert_same(database: &mut Database, expected: &Contents, context: &str) {
    let found = contents(database);
    let differing: Vec<_> = found.iter().filter(|table| !expected.contains(table)).map(|(name, _)| name).collect();
    assert!(found == *expected, "{context}: these tables differ: {differing:?}");
}

/// Which of `total` operations are made to fail: all, or of many the first, the last and some between.
fn places(total: u64) -> Vec<u64> {
    (1..=total).filter(|nth| *nth <= 6 || *nth + 6 > total || nth.is_multiple_of(total / 6)).collect()
}

#[test]
fn a_write_that_is_cut_off_anywhere_happens_whole_or_not_at_all() {
    let template = template();
    let before = contents(&mut open(&HeapMemory::from_bytes(template.clone())));
    let mut injected = 0;
    for (name, write) in WRITES {
        let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
        let mut database = open(&memory);
        let start = memory.counts();
        let digest = database.meta().digest;
        write(&mut database).expect("it works undisturbed");
        let end = memory.counts();
        let after = contents(&mut database);
        assert_ne!(digest, database.meta().digest, "{name}");
        let totals = [(Operation::Write, end.writes - start.writes), (Operation::Grow, end.growths - start.growths)];
        for (operation, total) in totals {
            for nth in places(total) {
                for fault in [Fault::Error, Fault::Trap] {
                    let context = format!("{name}: {operation:?} {nth} of {total} fails with {fault:?}");
                    let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
                    let mut database = open(&memory);
                    memory.fail(operation, nth, fault);
                    let outcome = message(&memory, || write(&mut database));
                    assert!(!memory.disarm(), "{context}: the fault did not fire");
                    injected += 1;
                    match outcome {
                        Ok(Ok(())) => panic!("{context}: it was said to have worked"),
                        Ok(Err(error)) => assert_same(&mut database, &before, &format!("{context}: {error}")),
                        Err(trap) => {
                            // The platform takes the heap back too; here the database is opened again.
                            drop(database);
                            database = open(&memory);
                            assert_same(&mut database, &before, &format!("{context}: {}", trap.reason));
                        }
                    }
                    write(&mut database).unwrap_or_else(|error| panic!("{context}: the next write failed: {error}"));
                    assert_same(&mut database, &after, &format!("{context}: after the next write"));
                }
            }
        }
    }
    assert!(injected > 250, "only {injected} faults fired");
}

#[test]
fn an_allocation_that_fails_is_an_error_and_the_next_write_works() {
    let template = template();
    let mut injected = 0;
    for (name, write) in WRITES {
        let raw = HeapMemory::from_bytes(template.clone());
        let mut database = open(&raw);
        let before = contents(&mut database);
        let start = heap_fault::count();
        write(&mut database).expect("it works undisturbed");
        let total = heap_fault::count() - start;
        let after = contents(&mut database);
        // One failure, and a heap that stays full until the transaction has failed.
        for nth in places(total) {
            for last in [nth + 1, u64::MAX] {
                let context = format!("{name}: allocation {nth} of {total} fails, to {last}");
                let mut database = open(&HeapMemory::from_bytes(template.clone()));
                heap_fault::fail(nth..last);
                let outcome = write(&mut database);
                heap_fault::fail(0..0);
                injected += 1;
                match outcome {
                    // SQLite does without some allocations.
                    Ok(()) => assert_same(&mut database, &after, &format!("{context}: said to have worked")),
                    Err(error) => {
                        assert!(error.is_full(), "{context}: {error}");
                        assert_same(&mut database, &before, &format!("{context}: {error}"));
                        write(&mut database)
                            .unwrap_or_else(|error| panic!("{context}: the next write failed: {error}"));
                        assert_same(&mut database, &after, &format!("{context}: after the next write"));
                    }
                }
            }
        }
    }
    assert!(injected > 500, "only {injected} allocations failed");
}

#[test]
fn an_image_that_was_torn_is_recognised_and_refused() {
    let template = template();
    let mut torn = 0;
    for (name, write) in WRITES {
        let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
        let mut database = open(&memory);
        let start = memory.counts();
        let (before, published) = (contents(&mut database), database.meta().transaction_id);
        write(&mut database).expect("it works undisturbed");
        let total = memory.counts().writes - start.writes;
        for nth in places(total) {
            for fault in [Fault::Trap, Fault::TrapAfter(9)] {
                let context = format!("{name}: write {nth} of {total} is cut off with {fault:?}");
                let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
                // Memory that does not take a message back.
                memory.keep_on_trap(true);
                let mut database = open(&memory);
                memory.fail(Operation::Write, nth, fault);
                message(&memory, || write(&mut database)).expect_err(&context);
                drop(database);
                let image = memory.heap().to_bytes();
                let Ok(manager) = MemoryManager::open(memory.clone()) else {
                    // The table of virtual memories was torn.
                    torn += 1;
                    continue;
                };
                let (image_memory, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
                match Database::open(image_memory, hashes, OpenOptions::default()) {
                    Err(Error::Superblock(SuperblockError::TornCommit { published: last, in_flight })) => {
                        assert_eq!((last, in_flight), (published, published + 1), "{context}");
                        torn += 1;
                    }
                    // The mark or the superblock was torn itself.
                    Err(Error::Superblock(
                        SuperblockError::BadCommitMark { .. } | SuperblockError::BadChecksum { .. },
                    )) => torn += 1,
                    Err(error) => panic!("{context}: {error}"),
                    // Nothing was written yet (virtual memory that grew is no part of the image).
                    Ok(mut database) => assert_same(&mut database, &before, &context),
                }
                assert!(memory.heap().to_bytes() == image, "{context}: the refused memory was changed");
            }
        }
    }
    assert!(torn > 150, "only {torn} torn images");
}

#[test]
fn a_full_memory_is_an_error_that_says_so_and_the_rows_stay() {
    let raw = HeapMemory::with_limit(3 * 128 + 1);
    let mut database = open(&raw);
    database.write(|tx| tx.execute_batch("CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID")).unwrap();
    let mut written = 0_i64;
    let error = loop {
        match database.execute("INSERT INTO main.kv VALUES (?1, zeroblob(100000))", (written,)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains("grow stable memory"), "{error}");
    assert!(written > 50);
    let count = |database: &Database| {
        database.read(|tx| tx.query_row("SELECT count(*) FROM main.kv", (), |row| row.integer(0))).unwrap()
    };
    assert_eq!(count(&database), Some(written));
    // Room that is freed can be used again, with and without a journal.
    database.execute("DELETE FROM main.kv WHERE key = '1'", ()).unwrap();
    database.execute("INSERT INTO main.kv VALUES ('again', zeroblob(90000))", ()).unwrap();
    let error = database.write(|tx| tx.execute("INSERT INTO main.kv VALUES ('x', zeroblob(100000))", ())).unwrap_err();
    assert!(error.is_full(), "{error}");
    contents(&mut database);
    assert_eq!(raw.size(), 3 * 128 + 1);
}
