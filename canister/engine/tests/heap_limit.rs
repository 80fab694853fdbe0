//! A heap that is full: what needs more than there is (the building of a large index, a large transaction, a sort) is
//! refused with an error that says so, nothing has changed, and the next calls work, also while the heap is still full.
//!
//! Alone in its binary, since it limits the heap of the whole process.
#![allow(unsafe_code)]
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, OpenOptions, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use support::{assert_whole, open_with, rows};

/// Bytes that are allocated now, and how many may be.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIVE_MAX: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Refuses what SQLite's heap and page cache ask for beyond the limit. What else is allocated is small, and there a
/// refusal would end the message, which the platform then takes back.
struct Limited;

fn is_of_sqlite(layout: Layout) -> bool {
    const ARENA_CHUNK: (usize, usize) = (65_536, 16);
    const LARGE_BYTES: usize = 16_384;
    match (layout.size(), layout.align()) {
        ARENA_CHUNK | (_, 4_096) => true,
        // Blocks of SQLite have a header; vectors that grow are of a power of two.
        (bytes, 8) => bytes > LARGE_BYTES && !bytes.is_power_of_two(),
        _ => false,
    }
}

// SAFETY: each call is handed on to the system's allocator as it is, or answered with null, which callers expect.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        if live > LIVE_MAX.load(Relaxed) && is_of_sqlite(layout) {
            LIVE.fetch_sub(layout.size(), Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static LIMITED: Limited = Limited;

/// Runs `body` with this much more heap than is in use now.
fn with_heap<T>(bytes: usize, body: impl FnOnce() -> T) -> T {
    LIVE_MAX.store(LIVE.load(Relaxed) + bytes, Relaxed);
    let outcome = body();
    LIVE_MAX.store(usize::MAX, Relaxed);
    outcome
}

const CACHE_BYTES: u64 = 1 << 20;

fn open(raw: &HeapMemory) -> Database {
    open_with(raw, OpenOptions { cache_bytes: CACHE_BYTES, ..OpenOptions::default() }).unwrap()
}

/// A table of many pages, and room in stable memory for what is built later.
fn filled(rows: usize) -> HeapMemory {
    let raw = HeapMemory::new();
    let mut database = open(&raw);
    let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, body BLOB);
        CREATE TABLE room(x); CREATE VIRTUAL TABLE note USING fts5(body)";
    database.write(|tx| tx.execute_batch(schema)).unwrap();
    let generate = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows})
         INSERT INTO item SELECT i, printf('name %06d', i * 7919 % {rows}), zeroblob(300 + i % 50) FROM n"
    );
    database.execute(&generate, ()).unwrap();
    database.execute("INSERT INTO room VALUES (zeroblob(?1))", ((rows * 400) as i64,)).unwrap();
    database.execute("DELETE FROM room", ()).unwrap();
    raw
}

fn assert_says_that_the_heap_is_full(error: &Error, context: &str) {
    assert!(error.is_full(), "{context}: {error:?}");
    assert!(error.to_string().contains("the heap is full"), "{context}: {error}");
}

fn state(database: &mut Database) -> (u64, u64, Vec<Vec<Value>>) {
    let meta = database.meta();
    let sums = "SELECT count(*), sum(id), sum(length(body)), (SELECT count(*) FROM note) FROM item";
    (meta.digest, meta.transaction_id, database.read(|tx| rows(tx, sums)).unwrap())
}

#[test]
fn what_does_not_fit_the_heap_is_refused_whole() {
    an_index_that_does_not_fit_is_refused_and_the_database_goes_on();
    with_any_heap_each_call_happens_whole_or_not_at_all();
}

fn an_index_that_does_not_fit_is_refused_and_the_database_goes_on() {
    let raw = filled(40_000);
    let mut database = open(&raw);
    assert!(database.meta().image_bytes > 12 << 20);
    let before = state(&mut database);
    let index = "CREATE INDEX item_body ON item(body, name)";
    with_heap(4 << 20, || {
        for attempt in 0..3 {
            let outcomes = [database.execute(index, ()), database.write(|tx| tx.execute(index, ()))];
            for error in outcomes.into_iter().map(Result::unwrap_err) {
                assert_says_that_the_heap_is_full(&error, &format!("attempt {attempt}"));
            }
            // The heap is still full, and whoever needs little is served.
            database.execute("UPDATE item SET name = 'other' WHERE id = 17", ()).unwrap();
            database.write(|tx| tx.execute("UPDATE item SET name = ?1 WHERE id = 17", (before.0 as i64,))).unwrap();
            let name = "SELECT name FROM item WHERE id = 17";
            let found = database.read(|tx| rows(tx, name)).unwrap();
            assert_eq!(found, [[Value::Text((before.0 as i64).to_string())]]);
        }
    });
    assert_eq!(state(&mut database).2, before.2);
    assert_whole(&mut database);
    database.execute(index, ()).unwrap();
    assert_whole(&mut database);
}

type Call = fn(&mut Database) -> Result<(), Error>;

const CALLS: &[(&str, Call)] = &[
    ("an index", |db| db.execute("CREATE INDEX item_name ON item(name)", ()).map(|_| ())),
    ("an index in a transaction", |db| db.write(|tx| tx.execute_batch("CREATE INDEX item_name ON item(name, body)"))),
    ("many rows", |db| db.execute("UPDATE item SET name = name || 'x'", ()).map(|_| ())),
    ("many rows in a transaction", |db| {
        db.write(|tx| {
            tx.execute("DELETE FROM item WHERE id % 3 = 0", ())?;
            tx.execute("INSERT INTO item(name, body) SELECT name || 'y', body FROM item", ()).map(|_| ())
        })
    }),
    ("one large value", |db| db.execute("INSERT INTO item(body) VALUES (randomblob(1000000))", ()).map(|_| ())),
    ("a sort", |db| {
        db.read(|tx| rows(tx, "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY body, name) AS n FROM item)"))
            .map(|_| ())
    }),
    ("a large group", |db| db.read(|tx| rows(tx, "SELECT length(group_concat(hex(body))) FROM item")).map(|_| ())),
    ("full-text search", |db| {
        db.write(|tx| {
            let insert = "INSERT INTO note SELECT printf('word%d common %s', id % 700, name) FROM item";
            tx.execute(insert, ())?;
            tx.execute("INSERT INTO note(note) VALUES ('optimize')", ()).map(|_| ())
        })
    }),
];

fn with_any_heap_each_call_happens_whole_or_not_at_all() {
    let template = filled(4_000).to_bytes();
    for (name, call) in CALLS {
        let mut refused = 0;
        for step in 0.. {
            let heap = step * 61_000;
            let context = format!("{name} with {heap} bytes of heap");
            assert!(heap < 64 << 20, "{context}");
            let raw = HeapMemory::from_bytes(template.clone());
            let mut database = open(&raw);
            let before = state(&mut database);
            let outcome = with_heap(heap, || call(&mut database));
            let done = outcome.is_ok();
            if let Err(error) = outcome {
                assert_says_that_the_heap_is_full(&error, &context);
                assert_eq!(state(&mut database), before, "{context}");
                refused += 1;
            }
            assert_whole(&mut database);
            database
                .execute("INSERT INTO item(name) VALUES ('last')", ())
                .unwrap_or_else(|error| panic!("{context}: {error}"));
            let in_memory = state(&mut database);
            drop(database);
            assert_eq!(state(&mut open(&raw)), in_memory, "{context}");
            if done {
                break;
            }
        }
        println!("{name}: refused with {refused} sizes of the heap");
        assert!(refused > 0, "{name} needed no heap");
    }
}
