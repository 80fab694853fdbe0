//! What stays: across upgrades, across stop and start, and that a reinstall starts anew.

use icsql_tests::{Icsql, controller, encode};
use icsql_types::method::{DB_CHECKSUM, DB_INTEGRITY_CHECK, DB_META, DB_REFRESH_CHECKSUM_CHUNK};
use icsql_types::method::{KV_COUNT, KV_GET_MANY, KV_GET_NOTE, KV_PUT, KV_SET_NOTE};
use icsql_types::{InitArg, Values};

const ROWS: usize = 1_000;

fn keys() -> Vec<String> {
    (0..ROWS).map(|i| format!("key-{i:06}")).collect()
}

/// Lengths from 0 to 4 KB, so that some values need overflow pages.
fn value(i: usize) -> String {
    format!("{i}:").repeat(i % 1_000)
}

fn expect_rows(icsql: &Icsql, rows: usize) {
    let Values { values, next } = icsql.ok(&KV_GET_MANY, (keys(),));
    let answered = next.map_or(ROWS, |next| next as usize);
    assert_eq!(values.len(), answered);
    for (i, found) in values.into_iter().enumerate() {
        assert_eq!(found, (i < rows).then(|| value(i)), "key {i} by kv_get_many");
    }
    for (i, key) in keys().iter().enumerate() {
        assert_eq!(icsql.get(key), (i < rows).then(|| value(i)), "key {i} by kv_get");
    }
}

fn scan_is_clean(icsql: &Icsql) {
    loop {
        let scan = icsql.ok(&DB_REFRESH_CHECKSUM_CHUNK, (Some(1 << 20),));
        assert_eq!((scan.damaged_total, &scan.damaged[..]), (0, &[][..]));
        if scan.complete {
            assert_eq!((scan.pages_done, scan.digest_matches), (scan.pages_total, Some(true)));
            return;
        }
    }
}

#[test]
fn a_thousand_puts_are_read_back_after_an_upgrade() {
    let icsql = Icsql::deploy();
    let mut version = 0;
    for (i, key) in keys().iter().enumerate() {
        let next = icsql.put(key, &value(i));
        assert!(next > version, "version {next} after {version}");
        version = next;
    }
    icsql.ok(&KV_SET_NOTE, ("key-000007".to_string(), Some("a note".to_string()), None));
    let before = (icsql.ok(&DB_CHECKSUM, ()), icsql.ok(&DB_META, ()));

    icsql.upgrade(encode(())).unwrap();

    expect_rows(&icsql, ROWS);
    assert_eq!(icsql.ok(&KV_COUNT, ()), ROWS as u64);
    assert_eq!(icsql.ok(&KV_GET_NOTE, ("key-000007".to_string(),)), Some("a note".to_string()));
    assert_eq!(icsql.ok(&KV_GET_NOTE, ("key-000008".to_string(),)), None);
    assert_eq!((icsql.ok(&DB_CHECKSUM, ()), icsql.ok(&DB_META, ())), before);
    scan_is_clean(&icsql);
    let check = icsql.ok(&DB_INTEGRITY_CHECK, ());
    assert_eq!((check.complete, check.problems_total, check.unchecked), (true, 0, vec![]));

    assert!(icsql.put("key-000000", "after the upgrade") > version);
    assert_eq!(icsql.get("key-000000").as_deref(), Some("after the upgrade"));
}

#[test]
fn every_form_of_the_init_argument_is_accepted_on_upgrade() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    for argument in [vec![], encode(()), encode((None::<InitArg>,)), encode((Some(InitArg::default()),))] {
        icsql.upgrade(argument.clone()).unwrap_or_else(|reject| panic!("argument {argument:02x?}: {reject}"));
        assert_eq!(icsql.get("key").as_deref(), Some("value"));
    }
}

#[test]
fn a_stopped_canister_refuses_and_answers_again_when_started() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    icsql.pic.stop_canister(icsql.id, Some(controller())).unwrap();
    let put = encode(("key".to_string(), "lost".to_string()));
    icsql.call_raw(controller(), &KV_PUT, put).expect_err("a stopped canister took a put");
    icsql.pic.start_canister(icsql.id, Some(controller())).unwrap();
    assert_eq!(icsql.get("key").as_deref(), Some("value"));
    icsql.put("key", "kept");
    assert_eq!(icsql.get("key").as_deref(), Some("kept"));
}

#[test]
fn an_upgrade_while_stopped_keeps_everything() {
    let icsql = Icsql::deploy();
    for (i, key) in keys().iter().enumerate().take(50) {
        icsql.put(key, &value(i));
    }
    icsql.pic.stop_canister(icsql.id, Some(controller())).unwrap();
    icsql.upgrade(vec![]).unwrap();
    icsql.pic.start_canister(icsql.id, Some(controller())).unwrap();
    expect_rows(&icsql, 50);
}

#[test]
fn a_reinstall_starts_with_an_empty_database() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    icsql.pic.reinstall_canister(icsql.id, icsql_tests::icsql_wasm(), vec![], Some(controller())).unwrap();
    assert_eq!(icsql.ok(&KV_COUNT, ()), 0);
    assert_eq!(icsql.get("key"), None);
    icsql.put("key", "anew");
    assert_eq!(icsql.get("key").as_deref(), Some("anew"));
}
