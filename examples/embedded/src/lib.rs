//! A notebook: a canister of one's own with a SQL database in stable memory.
//!
//!     cargo build --release --target wasm32-unknown-unknown
//!
//! It needs no C compiler: without one the engine links the SQLite that it brings along.

// The engine reaches the platform only on wasm32.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;
use std::ops::ControlFlow;

use icsql_engine::stable::ic0::Ic0Memory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, Error, Migration, OpenOptions, Sql};

/// Steps of the schema. One that has been deployed never changes; new ones are appended.
const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "note", sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT" }];

/// Statements that are prepared once and kept.
static INSERT: Sql = Sql::new("INSERT INTO main.note(text) VALUES (?1)");
static SELECT: Sql = Sql::new("SELECT id, text FROM main.note WHERE id > ?1 ORDER BY id LIMIT 100");

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

/// Opens the database, and makes it at the first start.
fn open() -> Result<Database, Box<dyn std::error::Error>> {
    // One manager for the whole canister. Its other memories, ids 0 to 119 and 122 to 254, are free for other uses.
    let manager = MemoryManager::open(Ic0Memory)?;
    let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
    let mut database = Database::open(image, hashes, OpenOptions::default())?;
    database.migrate(MIGRATIONS)?;
    database.keep(&[&INSERT, &SELECT])?;
    Ok(database)
}

#[ic_cdk::init]
fn init() {
    match open() {
        Ok(database) => DATABASE.set(Some(database)),
        // The platform takes the installation or upgrade back, and the Wasm of before goes on.
        Err(error) => ic_cdk::trap(error.to_string()),
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    init();
}

fn with_database<T>(body: impl FnOnce(&mut Database) -> Result<T, Error>) -> Result<T, String> {
    DATABASE.with_borrow_mut(|database| {
        let database = database.as_mut().ok_or("the database is not open")?;
        body(database).map_err(|error| error.to_string())
    })
}

/// Appends a note and answers its number.
#[ic_cdk::update]
fn add(text: String) -> Result<i64, String> {
    with_database(|database| {
        database.write(|tx| {
            tx.execute(&INSERT, (text.as_str(),))?;
            Ok(tx.last_insert_rowid())
        })
    })
}

/// The first 100 notes behind the one with this number.
#[ic_cdk::query]
fn list(after: i64) -> Result<Vec<(i64, String)>, String> {
    with_database(|database| {
        let mut notes = Vec::new();
        database.read(|reader| {
            reader.query(&SELECT, (after,), |row| {
                notes.push((row.integer(0)?, row.text(1)?.to_owned()));
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
        })?;
        Ok(notes)
    })
}
