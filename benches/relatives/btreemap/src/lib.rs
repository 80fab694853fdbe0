//! Bulk work on StableBTreeMap. Every insert is final at once: there are no transactions, and what is one of SQLite's is
//! here one message.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;

use ic_cdk::api::performance_counter;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory, StableBTreeMap};
use icsql_bench_workload::{Found, Pair, Store};

type Stable = VirtualMemory<DefaultMemoryImpl>;

struct Maps {
    kv: StableBTreeMap<String, String, Stable>,
    kv_memory: Stable,
    files: StableBTreeMap<u32, Vec<u8>, Stable>,
}

thread_local! {
    static MAPS: RefCell<Maps> = RefCell::new({
        let manager = MemoryManager::init(DefaultMemoryImpl::default());
        let (kv, files) = (manager.get(MemoryId::new(1)), manager.get(MemoryId::new(2)));
        Maps { kv: StableBTreeMap::init(kv.clone()), kv_memory: kv, files: StableBTreeMap::init(files) }
    });
}

/// Sets the maps up, so that no later message has to.
#[ic_cdk::init]
fn init() {
    MAPS.with_borrow(|_| ());
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    init();
}

#[ic_cdk::update]
fn work(name: String, first: u32, count: u32) -> Result<u64, String> {
    MAPS.with_borrow_mut(|maps| icsql_bench_workload::work(maps, &name, first, count, || performance_counter(0)))
}

#[ic_cdk::query]
fn read(name: String, first: u32, count: u32) -> Result<u64, String> {
    work(name, first, count)
}

#[ic_cdk::query]
fn image() -> Result<(u64, u64), String> {
    MAPS.with_borrow_mut(Store::image)
}

impl Store for Maps {
    fn reset(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.kv.clear_new();
        self.insert(rows)
    }

    fn insert(&mut self, rows: &[Pair]) -> Result<(), String> {
        for (key, value) in rows {
            self.kv.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    fn upsert(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.insert(rows)
    }

    fn update(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.insert(rows)
    }

    fn update_each(&mut self, rows: &[Pair]) -> Result<(), String> {
        self.insert(rows)
    }

    fn delete(&mut self, rows: &[Pair]) -> Result<(), String> {
        for (key, _) in rows {
            self.kv.remove(key);
        }
        Ok(())
    }

    fn get_each(&mut self, keys: &[String]) -> Result<Found, String> {
        let mut found = Found::default();
        for key in keys {
            if let Some(value) = self.kv.get(key) {
                found.row(value.len());
            }
        }
        Ok(found)
    }

    fn scan(&mut self, rows: u64) -> Result<Found, String> {
        let mut found = Found::default();
        for entry in self.kv.iter().take(rows as usize) {
            let (key, value) = entry.into_pair();
            found.row(key.len() + value.len());
        }
        Ok(found)
    }

    fn scan_lengths(&mut self, rows: u64) -> Result<Found, String> {
        self.scan(rows)
    }

    fn blob_write(&mut self, id: u32, bytes: &[u8]) -> Result<(), String> {
        self.files.insert(id, bytes.to_vec());
        Ok(())
    }

    fn blob_read(&mut self, id: u32) -> Result<Found, String> {
        let mut found = Found::default();
        if let Some(bytes) = self.files.get(&id) {
            found.row(bytes.len());
        }
        Ok(found)
    }

    fn image(&mut self) -> Result<(u64, u64), String> {
        Ok((self.kv_memory.size(), 65_536))
    }
}
