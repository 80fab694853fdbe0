//! Every write and growth of a commit fails in turn, as an error and as a trap. Afterwards the database is as it was
//! before the transaction or as it is after it, never in between; it is whole; and the next transaction works.
mod support;

use icsql_engine::stable::fault::{Fault, FaultMemory, message};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::{Memory, Operation};
use icsql_engine::{Database, Error};
use support::{contents, open};

/// A write, done as a transaction of one statement or inside a closure.
type Write = fn(&mut Database) -> Result<u64, Error>;

const SINGLE_ROW_WRITES: &[(&str, Write)] = &[
    ("insert", |db| db.execute("INSERT INTO main.kv VALUES ('new', 'x')", ())),
    ("insert, journalled", |db| db.write(|tx| tx.execute("INSERT INTO main.kv VALUES ('new', 'x')", ()))),
    ("update", |db| db.execute("UPDATE main.kv SET value = 'y' WHERE key = '0007'", ())),
    ("update, journalled", |db| db.write(|tx| tx.execute("UPDATE main.kv SET value = 'y' WHERE key = '0007'", ()))),
    ("replace", |db| db.execute("INSERT OR REPLACE INTO main.kv VALUES ('0007', 'y')", ())),
    ("delete", |db| db.execute("DELETE FROM main.kv WHERE key = '0007'", ())),
    ("overflow pages", |db| db.execute("INSERT INTO main.kv VALUES ('large', zeroblob(50000))", ())),
    // Larger than a bucket of virtual memory, so that both memories must grow.
    ("growth", |db| db.execute("INSERT INTO main.kv VALUES ('huge', zeroblob(9000000))", ())),
    ("growth, journalled", |db| {
        db.write(|tx| tx.execute("INSERT INTO main.kv VALUES ('huge', zeroblob(9000000))", ()))
    }),
    ("splitting a page", |db| db.execute("INSERT INTO main.kv VALUES ('0007a', zeroblob(900))", ())),
];

/// A database with rows enough for a tree of three levels and a free page.
fn template() -> Vec<u8> {
    let raw = HeapMemory::new();
    let mut database = open(&raw);
    database
        .write(|tx| {
            tx.execute_batch("CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID")?;
            for n in 0..2_000 {
                tx.execute("INSERT INTO main.kv VALUES (?1, ?2)", (format!("{n:04}"), "v".repeat(100)))?;
            }
            tx.execute("DELETE FROM main.kv WHERE key BETWEEN '1000' AND '1400'", ())
        })
        .expect("the template is written");
    raw.to_bytes()
}

/// Which of `total` operations are made to fail: all, or of many the first, the last and some between.
fn places(total: u64) -> Vec<u64> {
    (1..=total).filter(|nth| *nth <= 12 || *nth + 12 > total || nth.is_multiple_of(total / 8)).collect()
}

#[test]
fn a_write_that_is_cut_off_anywhere_happens_whole_or_not_at_all() {
    let template = template();
    let before = contents(&mut open(&HeapMemory::from_bytes(template.clone())));
    let mut injected = 0;
    for (name, write) in SINGLE_ROW_WRITES {
        let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
        let mut database = open(&memory);
        let start = memory.counts();
        write(&mut database).expect("it works undisturbed");
        let end = memory.counts();
        let after = contents(&mut database);
        assert_ne!(before, after, "{name}");
        let totals = [(Operation::Write, end.writes - start.writes), (Operation::Grow, end.growths - start.growths)];
        for (operation, total) in totals {
            for nth in places(total) {
                for fault in [Fault::Error, Fault::Trap, Fault::TrapAfter(3)] {
                    let context = format!("{name}: {operation:?} {nth} of {total} fails with {fault:?}");
                    let memory = FaultMemory::new(HeapMemory::from_bytes(template.clone()));
                    let mut database = open(&memory);
                    memory.fail(operation, nth, fault);
                    let outcome = message(&memory, || write(&mut database));
                    assert!(!memory.disarm(), "{context}: the fault did not fire");
                    injected += 1;
                    match outcome {
                        Ok(Ok(_)) => panic!("{context}: it was said to have worked"),
                        Ok(Err(error)) => assert!(contents(&mut database) == before, "{context}: {error}"),
                        Err(trap) => {
                            // The platform takes the heap back too; here the database is opened again.
                            drop(database);
                            database = open(&memory);
                            assert!(contents(&mut database) == before, "{context}: {}", trap.reason);
                        }
                    }
                    write(&mut database).unwrap_or_else(|error| panic!("{context}: the next write failed: {error}"));
                    assert!(contents(&mut database) == after, "{context}: after the next write");
                }
            }
        }
    }
    assert!(injected > 200, "only {injected} faults fired");
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
