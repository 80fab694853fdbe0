//! 350,000 calls on one open database: the heap is at the end what it was after the first few thousand. A canister lives
//! for months between upgrades, and its heap never shrinks.
//!
//! One test alone in its binary, since it counts the allocations of the whole process.
#![allow(unsafe_code)]
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, OpenOptions, Sql};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use support::open_with;
use support::rng::Rng;

/// Bytes that are allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: each call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
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
static COUNTING: Counting = Counting;

const CALLS: usize = 350_000;
/// Calls after which every sort of call has been made often, and every key and size has been seen.
const CALLS_SETTLED: usize = 50_000;
/// SQLite's arena takes 64 KiB at a time, and blocks that lie otherwise than before may need one more now and then.
const GROWTH_BYTES_MAX: usize = 4 * 65_536;
const KEYS: usize = 2_000;

static GET: Sql = Sql::new("SELECT value FROM main.kv WHERE key = ?1");
static PUT: Sql = Sql::new("INSERT OR REPLACE INTO main.kv VALUES (?1, ?2)");

/// One call, of the sorts that a canister serves.
fn call(database: &mut Database, rng: &mut Rng, number: usize) -> Result<(), Error> {
    let key = format!("key {:05}", rng.below(KEYS));
    match rng.below(12) {
        0..3 => database.execute(&PUT, (key, rng.bytes(100).as_slice())).map(|_| ()),
        3..6 => database.read(|tx| tx.query_row(&GET, (key,), |row| row.blob(0).map(<[u8]>::len))).map(|_| ()),
        // A query whose text is new each time.
        6 => database.read(|tx| {
            let sql =
                format!("SELECT key, length(value) AS bytes{number} FROM kv WHERE key > '{key}' ORDER BY key LIMIT 5");
            tx.query(&sql, (), |row| row.integer(1).map(|_| ControlFlow::Continue(())))
        }),
        7 => database.write(|tx| {
            tx.execute("INSERT OR REPLACE INTO kv VALUES (?1, zeroblob(?2))", (key, rng.below(9_000) as i64))?;
            tx.execute("UPDATE counter SET n = n + 1", ()).map(|_| ())
        }),
        8 => database.execute("DELETE FROM kv WHERE key = ?1", (key,)).map(|_| ()),
        // Calls that fail: at once, half way with and without a journal, and by the closure's own choice.
        9 => expect_error(database.read(|tx| tx.query_row("SELECT nothing FROM kv", (), |_| Ok::<_, Error>(())))),
        10 => {
            let twice = "INSERT INTO kv SELECT 'new ' || column1, 1 FROM (VALUES (1), (2), (1))";
            if rng.one_in(2) {
                expect_error(database.execute(twice, ()))
            } else {
                expect_error(database.write(|tx| tx.execute(twice, ())))
            }
        }
        _ => expect_error(database.write(|tx| {
            tx.execute("UPDATE kv SET value = ?1 WHERE key < 'key 00020'", (number as i64,))?;
            Err::<(), _>(Error::NotOneStatement { offset: 0 })
        })),
    }
}

fn expect_error<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Result<(), Error> {
    assert!(outcome.is_err(), "{outcome:?}");
    Ok(())
}

#[test]
fn three_hundred_and_fifty_thousand_calls_do_not_grow_the_heap() {
    let mut rng = Rng::new(121);
    let raw = HeapMemory::new();
    // A cache below the image's size, so that eviction goes on all the time.
    let options = OpenOptions { cache_bytes: 512 * 1024, ..OpenOptions::default() };
    let mut database = open_with(&raw, options).unwrap();
    let schema = "CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID; CREATE TABLE counter(n INT);
        INSERT INTO counter VALUES (0)";
    database.write(|tx| tx.execute_batch(schema)).unwrap();
    // The largest that the image and the transactions can become comes first.
    for key in 0..KEYS {
        let sql = "INSERT INTO kv VALUES (?1, zeroblob(9000))";
        database.execute(sql, (format!("key {key:05}"),)).unwrap();
    }
    // Stable memory is not the heap: it is here only because this runs natively.
    let heap = |raw: &HeapMemory| LIVE.load(Relaxed) - raw_bytes(raw);
    let mut settled = 0;
    for number in 0..CALLS {
        if number == CALLS_SETTLED {
            settled = heap(&raw);
        }
        call(&mut database, &mut rng, number).unwrap_or_else(|error| panic!("call {number}, {rng}: {error}"));
    }
    let end = heap(&raw);
    println!("{settled} bytes of heap after {CALLS_SETTLED} calls, {end} after {CALLS}");
    assert!(end <= settled + GROWTH_BYTES_MAX, "the heap grew from {settled} to {end} bytes, {rng}");
    assert!(database.meta().transaction_id > CALLS as u64 / 4);
}

fn raw_bytes(raw: &HeapMemory) -> usize {
    use icsql_engine::stable::{Memory, WASM_PAGE_BYTES};
    (raw.size() * WASM_PAGE_BYTES) as usize
}
