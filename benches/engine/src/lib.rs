//! Bulk work on the engine, measured from inside the message: every method answers the instructions that the work took
//! by `performance_counter(0)`, without arguments, reply and dirty heap pages. Texts are made before the count begins.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;
use std::ops::ControlFlow;

use ic_cdk::api::performance_counter;
use icsql_engine::stable::ic0::Ic0Memory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Budget, Database, Error, Migration, OpenOptions, Reader, Sql};

static INSERT: Sql = Sql::new("INSERT INTO main.kv(key, value) VALUES (?1, ?2)");
static UPDATE: Sql = Sql::new("UPDATE main.kv SET value = ?2 WHERE key = ?1");
static SCAN: Sql = Sql::new("SELECT key, value FROM main.kv ORDER BY key");

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "kv",
    sql: "CREATE TABLE kv(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
}];

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

#[ic_cdk::init]
fn init() {
    let opened = (|| {
        let manager = MemoryManager::open(Ic0Memory).map_err(|error| error.to_string())?;
        let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
        let mut database = Database::open(image, hashes, OpenOptions::default()).map_err(|error| error.to_string())?;
        database.migrate(MIGRATIONS).map_err(|error| error.to_string())?;
        database.keep(&[&INSERT, &UPDATE, &SCAN]).map_err(|error| error.to_string())?;
        Ok::<_, String>(database)
    })();
    match opened {
        Ok(database) => DATABASE.set(Some(database)),
        Err(error) => ic_cdk::trap(error),
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    init();
}

/// Runs `work` and answers what it took.
fn measure(work: impl FnOnce(&mut Database) -> Result<(), Error>) -> Result<u64, String> {
    DATABASE.with_borrow_mut(|database| {
        let database = database.as_mut().ok_or("the database is not open")?;
        let start = performance_counter(0);
        work(database).map_err(|error| error.to_string())?;
        Ok(performance_counter(0) - start)
    })
}

/// Runs SQL as one transaction, VACUUM among it, for tests of faults. Answers the instructions that COMMIT took and the
/// pages that it wrote.
#[ic_cdk::update]
fn run(sql: String) -> Result<(u64, u64), String> {
    DATABASE.with_borrow_mut(|database| {
        let database = database.as_mut().ok_or("the database is not open")?;
        if sql == "VACUUM" {
            return database.vacuum().map(|()| (0, 0)).map_err(|error| error.to_string());
        }
        let (outcome, metrics) = database.write_within(&Budget::UNLIMITED, |tx| {
            // What stands behind the mark is done in a savepoint and undone.
            let (first, undone) = sql.split_once("--undone--").unwrap_or((&sql, ""));
            tx.execute_batch(first)?;
            let done_for_nothing = tx.savepoint(|tx| {
                tx.execute_batch(undone)?;
                Err::<(), _>(Error::NotOneStatement { offset: 0 })
            });
            match done_for_nothing {
                Err(Error::NotOneStatement { .. }) => Ok(()),
                other => other,
            }
        });
        outcome.map(|()| (metrics.commit_instructions, metrics.pages_written)).map_err(|error| error.to_string())
    })
}

/// The digest, the transaction's id, and what a check of the structure and of every page finds: `ok` if nothing.
#[ic_cdk::update]
fn state() -> Result<(u64, u64, String), String> {
    DATABASE.with_borrow_mut(|database| {
        let database = database.as_mut().ok_or("the database is not open")?;
        let check = |reader: &Reader<'_>| {
            reader.query_row("PRAGMA main.integrity_check", (), |row| Ok::<_, Error>(row.text(0)?.to_owned()))
        };
        let mut found = database.read(check).map_err(|error| error.to_string())?.unwrap_or_default();
        let scan = database.verify_chunk(u64::MAX).map_err(|error| error.to_string())?;
        if scan.damaged_total > 0 || scan.digest_matches != Some(true) {
            found = format!("{found}; {scan:?}");
        }
        let meta = database.meta();
        Ok((meta.digest, meta.transaction_id, found))
    })
}

/// Keys of 10 bytes, values of 100 bytes that differ by row and revision.
fn rows(range: std::ops::Range<u32>, revision: u32) -> Vec<(String, String)> {
    range
        .map(|row| (format!("key-{row:06}"), format!("{:0100}", u64::from(row) * 1_000 + u64::from(revision))))
        .collect()
}

/// Inserts rows 0 to `count` in one transaction; the table must be empty.
#[ic_cdk::update]
fn insert(count: u32) -> Result<u64, String> {
    let rows = rows(0..count, 0);
    measure(|database| {
        database.write(|tx| {
            for (key, value) in &rows {
                tx.execute(&INSERT, (key.as_str(), value.as_str()))?;
            }
            Ok(())
        })
    })
}

/// Updates `count` rows from the first on, each in a transaction of its own.
#[ic_cdk::update]
fn update_each(count: u32) -> Result<u64, String> {
    let rows = rows(0..count, 1);
    measure(|database| {
        for (key, value) in &rows {
            database.execute(&UPDATE, (key.as_str(), value.as_str()))?;
        }
        Ok(())
    })
}

/// Reads every row in the order of the keys, both columns; `expected` rows must be there.
#[ic_cdk::query]
fn scan(expected: u32) -> Result<u64, String> {
    let (mut found, mut bytes) = (0, 0);
    let instructions = measure(|database| {
        database.read(|reader| {
            reader.query(&SCAN, (), |row| {
                found += 1;
                bytes += row.text(0)?.len() + row.text(1)?.len();
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
        })
    })?;
    if (found, bytes) != (expected, expected as usize * 110) {
        return Err(format!("{found} rows with {bytes} bytes"));
    }
    Ok(instructions)
}
