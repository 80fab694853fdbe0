//! A key-value store as it is commonly written today: `StableBTreeMap` under a `MemoryManager`, set up at first use.

use std::cell::RefCell;

use ic_cdk::api::{is_controller, msg_caller};
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, StableBTreeMap};

type Map = StableBTreeMap<String, String, VirtualMemory<DefaultMemoryImpl>>;

thread_local! {
    static MAP: RefCell<Map> =
        RefCell::new(StableBTreeMap::init(MemoryManager::init(DefaultMemoryImpl::default()).get(MemoryId::new(1))));
}

#[ic_cdk::update]
fn kv_put(key: String, value: String) -> Result<(), String> {
    if !is_controller(&msg_caller()) {
        return Err("only a controller may write".to_string());
    }
    MAP.with_borrow_mut(|map| map.insert(key, value));
    Ok(())
}

#[ic_cdk::query]
fn kv_get(key: String) -> Result<Option<String>, String> {
    Ok(MAP.with_borrow(|map| map.get(&key)))
}

#[ic_cdk::query]
fn kv_get_many(keys: Vec<String>) -> Result<Vec<Option<String>>, String> {
    Ok(MAP.with_borrow(|map| keys.iter().map(|key| map.get(key)).collect()))
}
