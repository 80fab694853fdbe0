//! Shared by the suites: canisters written by hand.
#![allow(dead_code)] // Each suite compiles this file and uses a part of it.

use icsql_replica::{CanisterSettings, Config, InstallMode, Principal, Profile, Replica};

/// The controller of every canister here.
pub fn me() -> Principal {
    Principal::anonymous()
}

/// Imports that most modules here use.
const IMPORTS: &str = r#"
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $msg_reply))
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
    (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
    (import "ic0" "stable64_size" (func $stable_size (result i64)))
    (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
"#;

const REPLY: &str = r#"
    (func $reply (param $start i32) (param $length i32)
        (call $append (local.get $start) (local.get $length))
        (call $msg_reply))
"#;

/// A module from text, with imports that most need and `$reply`, which answers `length` bytes from `start`.
pub fn module(fields: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {IMPORTS} {fields} {REPLY})")).expect("the text is a module")
}

/// Puts a module into a new canister.
pub fn deploy(replica: &mut Replica, wasm: &[u8]) -> Principal {
    let canister = replica.create_canister(CanisterSettings::default());
    replica.install(canister, InstallMode::Install, wasm, b"", me()).reply();
    canister
}

/// The profile of an update of a new canister. Its frames must add up to its cost.
pub fn profiled(wasm: &[u8], method: &str) -> Profile {
    let mut replica = Replica::new(Config { profile: true, ..Config::default() });
    let canister = deploy(&mut replica, wasm);
    replica.set_profiling(true);
    let outcome = replica.update(canister, me(), method, b"");
    let profile = replica.take_profiles(canister).expect("the canister is there").pop().expect("one message ran");
    assert_eq!(profile.cost, outcome.cost, "{method}");
    assert_eq!(profile.instructions(), outcome.cost.instructions, "{method}: {}", profile.folded());
    profile
}
