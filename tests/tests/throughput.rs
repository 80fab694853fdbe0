//! The replica is quick enough to be worth using.

use std::time::{Duration, Instant};

use candid::Principal;
use icsql_replica::{CanisterSettings, InstallMode};
use icsql_tests::{encode, icsql_wasm, replica};

#[test]
fn ten_thousand_updates_take_less_than_a_minute() {
    let controller = Principal::anonymous();
    let mut replica = replica();
    let id = replica.create_canister(CanisterSettings::default());
    replica.install(id, InstallMode::Install, &icsql_wasm(), &[], controller).reply();
    let value = "v".repeat(100);
    let start = Instant::now();
    for row in 0..10_000 {
        replica.update(id, controller, "kv_put", &encode((format!("key-{row:06}"), &value))).reply();
    }
    let took = start.elapsed();
    println!("10,000 updates took {took:.1?}");
    assert!(took < Duration::from_secs(60), "{took:?}");
}
