//! Entries of the key-value store in the deployed Wasm: a list of operations that is stopped anywhere, a value of 64 MB in
//! parts, entries that expire and the timer that removes them. In process: the PocketIC protocol has no faults or costs.

use icsql_replica::{Fault, InstallMode};
use icsql_tests::{Local, icsql_wasm};
use icsql_types::method::{
    KV_APPEND, KV_COUNT, KV_DELETE, KV_GET, KV_GET_ENTRY, KV_GET_NOTE, KV_LIST, KV_PUT, KV_READ, KV_SET_NOTE, KV_WRITE,
};
use icsql_types::{ByteBuf, Condition, Entry, Error, KvList, KvOperation, KvValue};

const SECOND: u64 = 1_000_000_000;
/// Instructions of an update, at most.
const UPDATE_INSTRUCTIONS_MAX: u64 = 40_000_000_000;

fn all(canister: &mut Local) -> Vec<Entry> {
    let list = KvList { values: Some(true), limit: Some(1_000), ..KvList::default() };
    canister.call(&KV_LIST, (list,)).entries
}

fn put(key: &str, value: KvValue, expires_at: Option<u64>, condition: Option<Condition>) -> KvOperation {
    KvOperation::Put { key: key.to_owned(), value, expires_at, condition }
}

fn text(text: &str) -> KvValue {
    KvValue::Text(text.to_owned())
}

/// Everything that an operation can touch: plain entries, one that expires, one in parts, notes.
fn prepared() -> Local {
    let mut canister = Local::deploy();
    for row in 0..100 {
        canister.put(&format!("key-{row:03}"), "value");
    }
    let later = canister.replica.time() + 1_000 * SECOND;
    canister.call(&KV_WRITE, (vec![put("expires", text("soon"), Some(later), None)], None));
    canister.call(&KV_APPEND, ("large".to_owned(), ByteBuf::from(vec![1; 200_000]), None));
    canister.call(&KV_SET_NOTE, ("key-001".to_owned(), Some("note".to_owned()), None));
    canister
}

fn operations(canister: &Local, round: u64) -> Vec<KvOperation> {
    let later = canister.replica.time() + 2_000 * SECOND;
    let note = |key: &str, note| KvOperation::Note { key: key.to_owned(), note, condition: Some(Condition::Present) };
    let delete = |key: &str| KvOperation::Delete { key: key.to_owned(), condition: None };
    vec![
        put("key-000", text(&format!("{round:08}").repeat(3_000)), None, Some(Condition::Present)),
        put("large", KvValue::Blob(vec![2; 10]), Some(later), None),
        put("expires", text("never"), None, None),
        put("new", text("new"), Some(later), Some(Condition::Absent)),
        note("key-001", None),
        note("key-002", Some("another".to_owned())),
        delete("key-003"),
        delete("key-003"),
        put("key-003", text("again"), None, Some(Condition::Absent)),
        delete("key-004"),
    ]
}

/// Runs the operations under each fault until one is not met any more; answers how many were.
fn write_under(fault: impl Fn(u64, u64) -> Fault) -> u64 {
    let mut canister = prepared();
    let cost = {
        let mut twin = prepared();
        let operations = operations(&twin, 0);
        let (answer, cost) = twin.try_call(&KV_WRITE, (operations, None));
        answer.unwrap().unwrap();
        cost.instructions
    };
    let entries = all(&mut canister).len();
    let (written, met) = canister.under_faults(
        |n| fault(n, cost),
        all,
        |canister, n| {
            let operations = operations(canister, n);
            canister.try_call(&KV_WRITE, (operations, None)).0
        },
    );
    let after = all(&mut canister);
    assert_eq!(after.len(), entries, "one more and one less");
    assert!(after.iter().filter(|entry| entry.version == written.version).count() == 5, "{after:?}");
    assert_eq!(canister.checksum().transaction, written.version);
    canister.expect_clean_scan();
    met
}

#[test]
fn operations_that_are_stopped_after_any_number_of_instructions() {
    let met = write_under(|n, cost| Fault { trap_after_instructions: Some(n * cost / 60), ..Fault::default() });
    assert!((40..=70).contains(&met), "{met} were stopped");
}

#[test]
fn operations_whose_nth_stable_write_traps() {
    let met = write_under(|n, _| Fault { fail_stable_write: Some(n), ..Fault::default() });
    assert!(met >= 10, "only {met} stable writes");
}

#[test]
fn operations_after_a_condition_that_is_not_met_leave_nothing() {
    let mut canister = prepared();
    let before = (all(&mut canister), canister.checksum());
    let mut operations = operations(&canister, 1);
    operations.push(put("key-050", text("x"), None, Some(Condition::Version(1))));
    let version = canister.call(&KV_GET_ENTRY, ("key-050".to_owned(),)).unwrap().version;
    let index = operations.len() as u32 - 1;
    let refused = canister.try_call(&KV_WRITE, (operations, None)).0.unwrap();
    assert_eq!(refused, Err(Error::ConditionFailed { index, key: "key-050".to_owned(), version: Some(version) }));
    assert!((all(&mut canister), canister.checksum()) == before);
}

#[test]
fn a_value_of_64_mb_in_parts() {
    const PART: usize = 1_900_000;
    const SIZE: usize = 64 * 1_024 * 1_024;
    let part = |from: usize| -> Vec<u8> {
        (from..SIZE.min(from + PART)).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
    };
    let mut canister = Local::deploy();
    canister.put("other", "value");
    for from in (0..SIZE).step_by(PART) {
        let bytes = ByteBuf::from(part(from));
        let (answer, cost) = canister.try_call(&KV_APPEND, ("film".to_owned(), bytes, None));
        assert_eq!(answer.unwrap().unwrap().size, SIZE.min(from + PART) as u64);
        assert!(cost.instructions < UPDATE_INSTRUCTIONS_MAX / 100, "an append costs {}", cost.instructions);
    }
    canister.replica.install(canister.id, InstallMode::UPGRADE, &icsql_wasm(), &[], canister.controller).reply();
    let mut version = None;
    for from in (0..SIZE).step_by(PART) {
        let found = canister.call(&KV_READ, ("film".to_owned(), from as u64, PART as u32)).unwrap();
        assert!(found.bytes == part(from), "the part from {from} on");
        assert_eq!((found.size, found.version), (SIZE as u64, *version.get_or_insert(found.version)));
    }
    canister.expect_clean_scan();
    let (put, put_cost) = canister.try_call(&KV_PUT, ("film".to_owned(), "a poster".to_owned(), None));
    put.unwrap().unwrap();
    assert!(put_cost.instructions < UPDATE_INSTRUCTIONS_MAX / 50, "writing over it costs {}", put_cost.instructions);
    assert_eq!(canister.call(&KV_GET, ("film".to_owned(),)).as_deref(), Some("a poster"));
    canister.expect_clean_scan();
    // Its pages are used again.
    let pages = canister.checksum().pages;
    for from in (0..SIZE / 2).step_by(PART) {
        canister.call(&KV_APPEND, ("film 2".to_owned(), ByteBuf::from(part(from)), None));
    }
    assert_eq!(canister.checksum().pages, pages);
    assert_eq!(canister.call(&KV_DELETE, ("film 2".to_owned(), None)).deleted, 1);
}

#[test]
fn entries_expire_and_the_timer_removes_them() {
    let mut canister = Local::deploy();
    canister.put("stays", "value");
    let at = canister.replica.time() + 100 * SECOND;
    for batch in 0..3 {
        let operations =
            (0..500).map(|row| put(&format!("key-{batch}-{row:03}"), text("v"), Some(at), None)).collect::<Vec<_>>();
        canister.call(&KV_WRITE, (operations, None));
    }
    canister.call(&KV_SET_NOTE, ("key-0-000".to_owned(), Some("note".to_owned()), None));
    assert_eq!(canister.call(&KV_COUNT, ()), 1_501);
    let pages = canister.checksum().pages;
    // The timer belongs to the Wasm that set it, so an upgrade has to set it again.
    canister.replica.install(canister.id, InstallMode::UPGRADE, &icsql_wasm(), &[], canister.controller).reply();

    canister.replica.advance_time(100 * SECOND);
    assert_eq!(canister.call(&KV_COUNT, ()), 1, "they are gone before anything ran");
    assert_eq!(canister.call(&KV_GET, ("key-0-000".to_owned(),)), None);
    let note = canister.try_call(&KV_GET_NOTE, ("key-0-000".to_owned(),)).0.unwrap();
    assert!(matches!(note, Err(Error::NotFound { .. })), "{note:?}");
    let before = canister.checksum().transaction;
    canister.replica.tick();
    assert_eq!(canister.checksum().transaction, before, "the timer waits for more to expire");

    let mut steps = 0;
    canister.replica.advance_time(60 * SECOND);
    loop {
        let before = canister.checksum().transaction;
        canister.replica.tick();
        let cost = canister.replica.messages().first().map_or(0, |message| message.cost.instructions);
        if canister.checksum().transaction == before {
            break;
        }
        assert!(cost < UPDATE_INSTRUCTIONS_MAX / 100, "a step costs {cost}");
        steps += 1;
        canister.replica.advance_time(SECOND);
    }
    assert_eq!(steps, 2, "a bounded number of entries at a time");
    canister.replica.advance_time(100_000 * SECOND);
    canister.replica.tick();
    assert!(canister.replica.messages().is_empty(), "the timer rests while nothing expires");
    assert_eq!(all(&mut canister).len(), 1);
    canister.expect_clean_scan();
    // Their room is used again.
    for batch in 0..3 {
        let operations =
            (0..500).map(|row| put(&format!("key-{batch}-{row:03}"), text("v"), None, None)).collect::<Vec<_>>();
        canister.call(&KV_WRITE, (operations, None));
    }
    assert!(canister.checksum().pages <= pages);
}
