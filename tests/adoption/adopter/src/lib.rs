//! What the reference canister of ic-sqlite-vfs is upgraded to: it adopts that canister's database and goes on with it.
//! Without an argument it does so in `post_upgrade`; with a number of bytes only the first chunk of so many, and the rest
//! by calls of `adopt_chunk`.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use std::cell::{Cell, RefCell};

use icsql_engine::stable::ic0::Ic0Memory;
use icsql_engine::stable::manager::{MemoryManager, VirtualMemory};
use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Adoption, Database, Error, OpenOptions};

/// How a message ended that adopted pages: pages done, pages in all, whether it is complete, instructions.
type Adopted = (u32, u32, bool, u64);

struct State {
    memories: (VirtualMemory<Ic0Memory>, VirtualMemory<Ic0Memory>),
    adoption: Option<Adoption>,
    database: Option<Database>,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    static LAST: Cell<Option<Adopted>> = const { Cell::new(None) };
}

fn with_state<T>(body: impl FnOnce(&mut State) -> Result<T, String>) -> Result<T, String> {
    STATE.with_borrow_mut(|state| body(state.as_mut().ok_or("not upgraded")?))
}

impl State {
    /// Hashes the next pages; after the last of them publishes the image and opens it.
    fn adopt_chunk(&mut self, bytes_max: u64) -> Result<Adopted, String> {
        let adoption = self.adoption.as_mut().ok_or("there is nothing to adopt")?;
        let progress = adoption.chunk(bytes_max).map_err(|error| error.to_string())?;
        let instructions = ic_cdk::api::performance_counter(0);
        if progress.complete {
            adoption.finish().map_err(|error| error.to_string())?;
            self.adoption = None;
            let (image, hashes) = self.memories.clone();
            let opened = Database::open(image, hashes, OpenOptions::default());
            self.database = Some(opened.map_err(|error| error.to_string())?);
        }
        Ok((progress.pages_done, progress.pages_total, progress.complete, instructions))
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade(bytes_max: Option<u64>) {
    let upgraded = (|| {
        let manager = MemoryManager::open(Ic0Memory).map_err(|error| error.to_string())?;
        let memories = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
        let (image, hashes) = memories.clone();
        let adoption = Adoption::begin(image, hashes).map_err(|error| error.to_string())?;
        let mut state = State { memories, adoption, database: None };
        let adopted = state.adopt_chunk(bytes_max.unwrap_or(u64::MAX))?;
        LAST.set(Some(adopted));
        STATE.set(Some(state));
        Ok::<_, String>(())
    })();
    if let Err(error) = upgraded {
        ic_cdk::trap(error);
    }
}

/// What `post_upgrade` did.
#[ic_cdk::query]
fn adopted() -> Option<Adopted> {
    LAST.get()
}

/// Goes on with the adoption.
#[ic_cdk::update]
fn adopt_chunk(bytes_max: u64) -> Result<Adopted, String> {
    with_state(|state| state.adopt_chunk(bytes_max))
}

#[ic_cdk::query]
fn kv_get(key: String) -> Result<Option<String>, String> {
    with_state(|state| {
        let database = state.database.as_ref().ok_or("the database is not adopted yet")?;
        let found = database.read(|reader| {
            reader.query_row("SELECT value FROM main.kv WHERE key = ?1", (key.as_str(),), |row| {
                Ok::<_, Error>(row.text(0)?.to_owned())
            })
        });
        found.map_err(|error| error.to_string())
    })
}

#[ic_cdk::update]
fn kv_put(key: String, value: String) -> Result<(), String> {
    with_state(|state| {
        let database = state.database.as_mut().ok_or("the database is not adopted yet")?;
        let sql =
            "INSERT INTO main.kv(key, value) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value";
        database.execute(sql, (key.as_str(), value.as_str())).map(drop).map_err(|error| error.to_string())
    })
}

/// Whether every page is what was hashed, and the hashes add up to the digest; and the transaction's id.
#[ic_cdk::update]
fn verify() -> Result<(bool, u64), String> {
    with_state(|state| {
        let database = state.database.as_mut().ok_or("the database is not adopted yet")?;
        let scan = database.verify_chunk(u64::MAX).map_err(|error| error.to_string())?;
        let whole = scan.complete && scan.damaged_total == 0 && scan.digest_matches == Some(true);
        Ok((whole, database.meta().transaction_id))
    })
}
