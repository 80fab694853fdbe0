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

/// A canister that passes a call on: `forward` takes what [`forwarded`] makes and answers what came back, with a byte
/// before it that is 0 for a reply and 1 for a reject's message.
pub fn forwarder() -> Vec<u8> {
    module(
        r#"
        (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_data_append" (func $call_append (param i32 i32)))
        (import "ic0" "call_cycles_add128" (func $add_cycles (param i64 i64)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
        (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
        (memory 64) (table 2 funcref) (elem (i32.const 0) $on_reply $on_reject)
        ;; the callee's length and bytes, 8 bytes of cycles, the method's length and bytes, the argument
        (func (export "canister_update forward") (local $cycles i32) (local $method i32) (local $argument i32)
            (call $arg_copy (i32.const 1000) (i32.const 0) (call $arg_size))
            (local.set $cycles (i32.add (i32.const 1001) (i32.load8_u (i32.const 1000))))
            (local.set $method (i32.add (local.get $cycles) (i32.const 9)))
            (local.set $argument (i32.add (local.get $method) (i32.load8_u offset=8 (local.get $cycles))))
            (call $call_new (i32.const 1001) (i32.load8_u (i32.const 1000))
                (local.get $method) (i32.load8_u offset=8 (local.get $cycles))
                (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
            (call $call_append (local.get $argument)
                (i32.sub (i32.add (i32.const 1000) (call $arg_size)) (local.get $argument)))
            (call $add_cycles (i64.const 0) (i64.load (local.get $cycles)))
            (if (call $perform) (then unreachable)))
        (func $on_reply (param i32)
            (i32.store8 (i32.const 1000) (i32.const 0))
            (call $arg_copy (i32.const 1001) (i32.const 0) (call $arg_size))
            (call $reply (i32.const 1000) (i32.add (call $arg_size) (i32.const 1))))
        (func $on_reject (param i32)
            (i32.store8 (i32.const 1000) (i32.const 1))
            (call $reject_copy (i32.const 1001) (i32.const 0) (call $reject_size))
            (call $reply (i32.const 1000) (i32.add (call $reject_size) (i32.const 1))))
        "#,
    )
}

/// The argument that lets a [`forwarder`] call a method with so many cycles.
pub fn forwarded(callee: Principal, method: &str, cycles: u64, argument: &[u8]) -> Vec<u8> {
    let callee = callee.as_slice();
    [
        &[u8::try_from(callee.len()).unwrap()][..],
        callee,
        &cycles.to_le_bytes(),
        &[u8::try_from(method.len()).unwrap()],
        method.as_bytes(),
        argument,
    ]
    .concat()
}

/// What came back through a [`forwarder`]: the reply, or the reject's message.
pub fn came_back(outcome: icsql_replica::Outcome) -> Result<Vec<u8>, String> {
    let answer = outcome.reply();
    match answer[0] {
        0 => Ok(answer[1..].to_vec()),
        _ => Err(String::from_utf8(answer[1..].to_vec()).expect("a reject's message is text")),
    }
}
