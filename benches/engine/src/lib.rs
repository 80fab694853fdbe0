//! Bulk work on the engine, measured from inside the message: `work` and `read` answer the instructions that the work took by
//! `performance_counter(0)`, without arguments, reply and dirty heap pages.
//!
//! The table of keys and values is used by key where that is enough, and by SQL elsewhere. Installed with the argument `sql`, the
//! canister does everything by SQL, as the relatives do.
//!
//! Installed with the argument `heap`, it does that too, and the canister keeps its memories on the heap in place of stable memory. All else is the
//! same, the commit protocol and the page hashes too, so that the difference is what stable memory costs. Such a database
//! is empty after an upgrade.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;
use std::ops::ControlFlow;

use ic_cdk::api::{msg_arg_data, performance_counter};
use icsql_bench_workload::{Found, Pair, Store, sql};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::ic0::Ic0Memory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID};
use icsql_engine::{
    Budget, Database, Error, KeyRange, KeyedRow, KeyedTable, Migration, OpenOptions, Params, Reader, Row, Sql, SqlText,
    ValueRef, Writer,
};

static INSERT: Sql = Sql::new(sql::INSERT);
static UPSERT: Sql = Sql::new(sql::UPSERT);
static UPDATE: Sql = Sql::new(sql::UPDATE);
static DELETE: Sql = Sql::new(sql::DELETE);
static CLEAR: Sql = Sql::new(sql::CLEAR);
static GET: Sql = Sql::new(sql::GET);
static SCAN: Sql = Sql::new(sql::SCAN);
static COUNT: Sql = Sql::new(sql::COUNT);
static FILE_INSERT: Sql = Sql::new(sql::FILE_INSERT);
static FILE_GET: Sql = Sql::new(sql::FILE_GET);
static SORT: Sql = Sql::new(sql::SORT);
static JOIN: Sql = Sql::new(sql::JOIN);

const KEPT: &[&Sql] =
    &[&INSERT, &UPSERT, &UPDATE, &DELETE, &CLEAR, &GET, &SCAN, &COUNT, &FILE_INSERT, &FILE_GET, &SORT, &JOIN];

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "kv", sql: sql::KV },
    Migration { version: 2, name: "files and items", sql: sql::TABLES },
];

thread_local! {
    static STORE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

#[ic_cdk::init]
fn init() {
    let argument = msg_arg_data();
    open(argument == b"heap", argument == b"heap" || argument == b"sql");
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    init();
}

fn open(on_heap: bool, by_sql: bool) {
    let opened = (|| {
        let text = |error: Error| error.to_string();
        let mut database = if on_heap {
            Database::open(HeapMemory::new(), HeapMemory::new(), OpenOptions::default()).map_err(text)?
        } else {
            let manager = MemoryManager::open(Ic0Memory).map_err(|error| error.to_string())?;
            let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
            Database::open(image, hashes, OpenOptions::default()).map_err(text)?
        };
        database.migrate(MIGRATIONS).map_err(text)?;
        database.keep(KEPT).map_err(text)?;
        let table = if by_sql { None } else { Some(database.keyed("kv").map_err(text)?) };
        Ok::<_, String>(Engine(database, table))
    })();
    match opened {
        Ok(store) => STORE.set(Some(store)),
        Err(error) => ic_cdk::trap(error),
    }
}

fn with<T>(body: impl FnOnce(&mut Engine) -> Result<T, String>) -> Result<T, String> {
    STORE.with_borrow_mut(|store| body(store.as_mut().ok_or("the database is not open")?))
}

#[ic_cdk::update]
fn work(name: String, first: u32, count: u32) -> Result<u64, String> {
    with(|store| icsql_bench_workload::work(store, &name, first, count, || performance_counter(0)))
}

#[ic_cdk::query]
fn read(name: String, first: u32, count: u32) -> Result<u64, String> {
    work(name, first, count)
}

#[ic_cdk::query]
fn image() -> Result<(u64, u64), String> {
    with(Store::image)
}

/// Runs SQL as one transaction, VACUUM among it, for preparations and tests of faults. Answers the instructions that COMMIT
/// took and the pages that it wrote.
#[ic_cdk::update]
fn run(sql: String) -> Result<(u64, u64), String> {
    with(|Engine(database, _)| {
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
    with(|Engine(database, _)| {
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

/// The database, and the table of keys and values if it is to be used by key.
struct Engine(Database, Option<KeyedTable>);

/// A row of it.
fn row((key, value): &Pair) -> [ValueRef<'_>; 2] {
    [key.as_str().into(), value.as_str().into()]
}

/// Writes rows by key, or else by a statement of a key and a value.
fn each_pair(tx: &Writer<'_>, table: Option<&KeyedTable>, sql: &'static Sql, rows: &[Pair]) -> Result<(), Error> {
    match table {
        Some(table) => rows.iter().try_for_each(|pair| tx.put(table, &row(pair))),
        None => rows.iter().try_for_each(|(key, value)| tx.execute(sql, (key.as_str(), value.as_str())).map(drop)),
    }
}

impl Engine {
    fn write(
        &mut self,
        body: impl FnOnce(&Writer<'_>, Option<&KeyedTable>) -> Result<(), Error>,
    ) -> Result<(), String> {
        let Self(database, table) = self;
        database.write(|tx| body(tx, table.as_ref())).map_err(|error| error.to_string())
    }

    /// Goes through up to `rows` rows in the order of their keys.
    fn scan_by(
        &self,
        rows: u64,
        by_sql: impl Fn(&Row<'_>) -> Result<usize, Error>,
        by_key: impl Fn(&KeyedRow<'_>) -> Result<usize, Error>,
    ) -> Result<Found, String> {
        let Self(database, Some(table)) = self else { return self.each_row(&SCAN, (), rows, by_sql) };
        let mut found = Found::default();
        let each = |row: &KeyedRow<'_>| {
            found.row(by_key(row)?);
            Ok::<_, Error>(if found.rows < rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        };
        database.read(|reader| reader.scan(table, &KeyRange::default(), each)).map_err(|error| error.to_string())?;
        Ok(found)
    }

    /// Runs a query, up to `rows` of its rows.
    fn each_row<'s>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        rows: u64,
        bytes: impl Fn(&Row<'_>) -> Result<usize, Error>,
    ) -> Result<Found, String> {
        let mut found = Found::default();
        let each = |row: &Row<'_>| {
            found.row(bytes(row)?);
            Ok::<_, Error>(if found.rows < rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        };
        self.0.read(|reader| reader.query(sql, params, each)).map_err(|error| error.to_string())?;
        Ok(found)
    }
}

fn two_texts(row: &Row<'_>) -> Result<usize, Error> {
    Ok(row.text(0)?.len() + row.text(1)?.len())
}

impl Store for Engine {
    fn reset(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.write(|tx, table| {
            tx.execute(&CLEAR, ())?;
            each_pair(tx, table, &INSERT, rows)
        })
    }

    fn insert(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.write(|tx, table| each_pair(tx, table, &INSERT, rows))
    }

    fn upsert(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.write(|tx, table| each_pair(tx, table, &UPSERT, rows))
    }

    fn update(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.write(|tx, table| each_pair(tx, table, &UPDATE, rows))
    }

    fn update_each(&mut self, rows: &[Pair]) -> Result<(), String> {
        let Self(database, table) = self;
        let update = |pair: &Pair| match table {
            Some(table) => database.put(table, &row(pair)),
            None => database.execute(&UPDATE, (pair.0.as_str(), pair.1.as_str())).map(drop),
        };
        rows.iter().try_for_each(update).map_err(|error| error.to_string())
    }

    fn delete(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.write(|tx, table| {
            rows.iter().try_for_each(|(key, _)| match table {
                Some(table) => tx.remove(table, key).map(drop),
                None => tx.execute(&DELETE, (key.as_str(),)).map(drop),
            })
        })
    }

    fn get_each(&mut self, keys: &[String]) -> Result<Found, String> {
        let mut found = Found::default();
        let Self(database, table) = self;
        let outcome = database.read(|reader| {
            keys.iter().try_for_each(|key| {
                let bytes = match table {
                    Some(table) => reader.get(table, key, |row| Ok::<_, Error>(row.text(1)?.len()))?,
                    None => reader.query_row(&GET, (key.as_str(),), |row| Ok::<_, Error>(row.text(0)?.len()))?,
                };
                bytes.into_iter().for_each(|bytes| found.row(bytes));
                Ok::<_, Error>(())
            })
        });
        outcome.map(|()| found).map_err(|error| error.to_string())
    }

    fn scan(&mut self, rows: u64) -> Result<Found, String> {
        self.scan_by(rows, two_texts, |row| Ok(row.text(0)?.len() + row.text(1)?.len()))
    }

    fn scan_lengths(&mut self, rows: u64) -> Result<Found, String> {
        let length = |row: &Row<'_>, column| Ok::<_, Error>(row.value(column)?.as_bytes().map_or(0, <[u8]>::len));
        let keyed = |row: &KeyedRow<'_>, column| Ok::<_, Error>(row.value(column)?.as_bytes().map_or(0, <[u8]>::len));
        self.scan_by(rows, |row| Ok(length(row, 0)? + length(row, 1)?), |row| Ok(keyed(row, 0)? + keyed(row, 1)?))
    }

    fn count(&mut self) -> Result<u64, String> {
        let counted = self.0.read(|reader| reader.query_row(&COUNT, (), |row| row.integer(0)));
        counted.map(|count| count.unwrap_or(0).cast_unsigned()).map_err(|error| error.to_string())
    }

    fn get_in(&mut self, sql: &str, keys: &[String]) -> Result<Found, String> {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.each_row(sql, keys.as_slice(), u64::MAX, two_texts)
    }

    fn blob_write(&mut self, id: u32, bytes: &[u8]) -> Result<(), String> {
        self.0.execute(&FILE_INSERT, (i64::from(id), bytes)).map(drop).map_err(|error| error.to_string())
    }

    fn blob_read(&mut self, id: u32) -> Result<Found, String> {
        self.each_row(&FILE_GET, (i64::from(id),), u64::MAX, |row| Ok(row.blob(0)?.len()))
    }

    fn sort(&mut self) -> Result<Found, String> {
        self.each_row(&SORT, (), u64::MAX, |row| {
            row.integer(0)?;
            Ok(row.text(1)?.len())
        })
    }

    fn join(&mut self) -> Result<Found, String> {
        self.each_row(&JOIN, (), u64::MAX, two_texts)
    }

    fn insert_refused(&mut self, rows: &[Pair]) -> Result<String, String> {
        match self.0.write(|tx| each_pair(tx, None, &INSERT, rows)) {
            Err(Error::Sqlite(error)) if error.primary() == CONSTRAINT => Ok(error.to_string()),
            other => Err(format!("answered {other:?}")),
        }
    }

    fn image(&mut self) -> Result<(u64, u64), String> {
        let meta = self.0.meta();
        Ok((meta.image_pages.into(), meta.page_bytes.into()))
    }
}

/// `SQLITE_CONSTRAINT`.
const CONSTRAINT: i32 = 19;
