//! The replica's figures beside those that PocketIC 10.0 gave for the same canisters, keys of 10 bytes and values of
//! 100 bytes.

use candid::{Decode, Encode, Principal};
use icsql_benches::results::Measurement;
use icsql_benches::{cases, subject};
use icsql_replica::{CanisterSettings, Config, InstallMode, Replica};
use icsql_tests::{fixture_wasm, root};

fn off_percent(figure: u64, anchor: u64) -> f64 {
    (figure as f64 - anchor as f64) / anchor as f64 * 100.0
}

/// What decoding an argument costs, by the performance counter.
#[test]
fn decoding_costs_what_it_costs_on_pocket_ic() {
    let mut replica = Replica::new(Config::default());
    let controller = Principal::anonymous();
    let canister = replica.create_canister(CanisterSettings::default());
    let empty = Encode!().unwrap();
    replica.install(canister, InstallMode::Install, &fixture_wasm("anchor"), &empty, controller).result.unwrap();

    let keys: Vec<String> = (0..1_000).map(|i| format!("key-{i:06}")).collect();
    let mut counter = |method: &str, argument: Vec<u8>| {
        let outcome = replica.query(canister, controller, method, &argument);
        Decode!(&outcome.result.unwrap(), u64).unwrap()
    };
    for (figure, anchor) in [
        (counter("text", Encode!(&"key-000000").unwrap()), 12_060),
        (counter("texts", Encode!(&keys).unwrap()), 940_500),
    ] {
        let off = off_percent(figure, anchor);
        assert!(off.abs() <= 2.0, "{figure} instructions, PocketIC counted {anchor}: {off:+.2} %");
    }
}

fn compare(name: &str, anchors: [(&str, u64); 7]) {
    let subject = subject::all(&root()).into_iter().find(|s| s.name == name).unwrap();
    let wasm = subject.load().unwrap();
    let measured: Vec<Measurement> = cases::run(&subject, &wasm, 2_000).unwrap();
    let mut report = String::new();
    let mut far = Vec::new();
    for (case, anchor) in anchors {
        let figure = measured.iter().find(|m| m.case == case).unwrap().instructions;
        let off = off_percent(figure, anchor);
        report += &format!("{case}: {figure} instructions, PocketIC counted {anchor}: {off:+.2} %\n");
        if off.abs() > 3.0 {
            far.push(case);
        }
    }
    assert!(far.is_empty(), "{name}: too far off: {far:?}\n{report}");
}

#[test]
fn ic_sqlite_vfs_costs_what_it_costs_on_pocket_ic() {
    compare(
        "ic-sqlite-vfs",
        [
            ("kv_get", 599_570),
            ("kv_get_after_upgrade", 596_610),
            ("kv_get_after_put", 599_570),
            ("kv_put_existing", 301_079),
            ("kv_put_new", 375_911),
            ("kv_put_after_upgrade", 449_401),
            ("kv_get_many_100", 5_187_257),
        ],
    );
}

#[test]
fn btreemap_costs_what_it_costs_on_pocket_ic() {
    compare(
        "btreemap",
        [
            ("kv_get", 92_677),
            ("kv_get_after_upgrade", 690_691),
            ("kv_get_after_put", 92_677),
            ("kv_put_existing", 96_379),
            ("kv_put_new", 122_565),
            ("kv_put_after_upgrade", 715_358),
            ("kv_get_many_100", 4_933_499),
        ],
    );
}
