//! A message that is stopped anywhere leaves everything as it was before or as it is after, and the next call works.
//!
//! These run in process: the PocketIC protocol has no faults.

use icsql_replica::{Cost, Fault, InstallMode};
use icsql_tests::{Local, icsql_wasm};
use icsql_types::method::KV_PUT;
use icsql_types::{Answer, Written};

fn put(canister: &mut Local, key: &str, value: &str) -> (Option<Answer<Written>>, Cost) {
    canister.try_call(&KV_PUT, (key.to_owned(), value.to_owned(), None))
}

/// A value that needs overflow pages, so that the commit writes several pages and grows the image.
fn long(revision: u64) -> String {
    format!("{revision:08}").repeat(3_000)
}

/// Puts under each fault until one is not met any more; answers how many were.
fn put_under(canister: &mut Local, key: &str, fault: impl Fn(u64) -> Fault) -> u64 {
    let before = canister.get(key);
    let (written, met) =
        canister.under_faults(fault, |canister| canister.get(key), |canister, n| put(canister, key, &long(n)).0);
    assert_eq!(canister.get(key), Some(long(met + 1)));
    assert_ne!(canister.get(key), before);
    assert_eq!(canister.checksum().transaction, written.version);
    canister.expect_clean_scan();
    met
}

#[test]
fn a_put_that_is_stopped_after_any_number_of_instructions() {
    let mut canister = Local::deploy();
    for row in 0..200 {
        canister.put(&format!("key-{row:06}"), "value");
    }
    // Steps of about 1 % of the put, so that every phase is met.
    let cost = put(&mut canister, "key-000100", &long(0)).1.instructions;
    let met = put_under(&mut canister, "key-000100", |n| Fault {
        trap_after_instructions: Some(n * cost / 100),
        ..Fault::default()
    });
    assert!((50..=150).contains(&met), "{met} puts were stopped");
    assert_eq!(canister.get("key-000099").as_deref(), Some("value"));
}

#[test]
fn a_put_whose_nth_stable_write_traps() {
    let mut canister = Local::deploy();
    canister.put("key", "value");
    let met = put_under(&mut canister, "key", |n| Fault { fail_stable_write: Some(n), ..Fault::default() });
    assert!(met >= 3, "only {met} stable writes: a page, its hash and the superblock at least");
}

#[test]
fn a_put_whose_stable_memory_cannot_grow() {
    let mut canister = Local::deploy();
    canister.put("key", "value");
    // Put until the first growth is due, then refuse it.
    let mut refused = false;
    for row in 0..2_000 {
        let key = format!("key-{row:06}");
        let before = (canister.checksum(), canister.stable_memory());
        canister.replica.set_fault(Fault { fail_stable_grow: Some(1), ..Fault::default() });
        let answer = put(&mut canister, &key, &long(row)).0.expect("a growth that fails is no trap");
        canister.replica.clear_fault();
        if let Err(error) = answer {
            assert!(matches!(error, icsql_types::Error::StorageFull { .. }), "{error:?}");
            assert_eq!(canister.checksum(), before.0);
            assert!(canister.stable_memory() == before.1, "stable memory has changed");
            assert_eq!(canister.get(&key), None);
            assert_eq!(canister.get("key").as_deref(), Some("value"));
            canister.put(&key, &long(row));
            canister.expect_clean_scan();
            refused = true;
            break;
        }
    }
    assert!(refused, "48 MB were stored and nothing had to grow");
}

/// An upgrade that is stopped leaves the old code running on the old data.
#[test]
fn an_upgrade_that_is_stopped() {
    let mut canister = Local::deploy();
    canister.put("key", "value");
    let wasm = icsql_wasm();
    let before = canister.stable_memory();
    canister.replica.set_fault(Fault { trap_after_instructions: Some(20_000), ..Fault::default() });
    let outcome = canister.replica.install(canister.id, InstallMode::UPGRADE, &wasm, &[], canister.controller);
    assert!(outcome.result.is_err(), "the upgrade took fewer than 20,000 instructions");
    assert!(canister.stable_memory() == before);
    assert_eq!(canister.get("key").as_deref(), Some("value"));
    canister.replica.install(canister.id, InstallMode::UPGRADE, &wasm, &[], canister.controller).reply();
    assert_eq!(canister.get("key").as_deref(), Some("value"));
    canister.put("key", "another");
    canister.expect_clean_scan();
}
