//! What messages leave behind: rollback, queries, upgrades, calls between canisters.

mod common;

use common::{deploy, me, module};
use icsql_replica::{CanisterSettings, Config, ErrorCode, Fault, InstallMode, Outcome, Principal, Replica};

fn number(outcome: Outcome) -> u64 {
    u64::from_le_bytes(outcome.reply().try_into().expect("eight bytes"))
}

fn error(outcome: Outcome) -> ErrorCode {
    outcome.result.expect_err("the call should have been rejected").code
}

/// Counts in a global, in the heap, and in stable memory at once, and answers the three, 8 bytes each. Other methods
/// count too and then fail in one way or another.
fn counter() -> Vec<u8> {
    module(
        r#"
        (memory 1 20) (global $g (mut i64) (i64.const 0)) (table 1 funcref)
        (data (i32.const 1000) "told")
        (func $count
            (if (i64.eqz (call $stable_size)) (then (drop (call $stable_grow (i64.const 1)))))
            (global.set $g (i64.add (global.get $g) (i64.const 1)))
            (i64.store (i32.const 0) (global.get $g))
            (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
            (call $stable_read (i64.const 16) (i64.const 60000) (i64.const 8))
            (i64.store (i32.const 16) (i64.add (i64.load (i32.const 16)) (i64.const 1)))
            (call $stable_write (i64.const 60000) (i64.const 16) (i64.const 8)))
        (func (export "canister_update count") (call $count) (call $reply (i32.const 0) (i32.const 24)))
        (func (export "canister_query count_in_query") (call $count) (call $reply (i32.const 0) (i32.const 24)))
        (func (export "canister_update trap") (call $count) unreachable)
        (func (export "canister_update told") (call $count) (call $trap (i32.const 1000) (i32.const 4)))
        (func (export "canister_update grow_and_trap") (call $count)
            (drop (memory.grow (i32.const 2))) (memory.fill (i32.const 65536) (i32.const 7) (i32.const 100000))
            (table.set 0 (i32.const 0) (ref.func $count)) (drop (call $stable_grow (i64.const 5)))
            unreachable)
        (elem declare func $count)
        (func (export "canister_query grow_in_query") (call $count) (drop (memory.grow (i32.const 2)))
            (call $reply (i32.const 0) (i32.const 24)))
        (func (export "canister_query past_end") (drop (i32.load (i32.const 65536))))
        (func (export "canister_query heap_pages") (i64.store (i32.const 0) (i64.extend_i32_u (memory.size)))
            (call $reply (i32.const 0) (i32.const 8)))
        (func (export "canister_update grow") (drop (memory.grow (i32.const 1)))
            (i32.store (i32.const 65536) (i32.const 1)) (call $msg_reply))
        (func (export "canister_update set_table") (table.set 0 (i32.const 0) (ref.func $count)) (call $msg_reply))
        (func (export "canister_query call_table") (call_indirect (i32.const 0)) (call $msg_reply))
        (func (export "canister_update silent") (call $count))
        (func (export "canister_update endless") (call $count) (loop (br 0)))
        (func (export "canister_update print") (call $print (i32.const 1000) (i32.const 4)) (call $msg_reply))
        (func $deep (param i64) (result i64)
            (i64.add (i64.const 1) (call $deep (i64.add (local.get 0) (i64.const 1)))))
        (func (export "canister_update deep") (call $count) (drop (call $deep (i64.const 1))))
        (func (export "canister_update big_reply") (call $count)
            (drop (memory.grow (i32.const 16))) (call $reply (i32.const 0) (i32.const 1048577))
            (call $reply (i32.const 0) (i32.const 1048577)))
        (func (export "canister_update last_byte_past_stable_end")
            (call $count) (call $stable_write (i64.const 65535) (i64.const 0) (i64.const 2)))
        "#,
    )
}

fn counts(outcome: Outcome) -> [u64; 3] {
    let reply = outcome.reply();
    assert_eq!(reply.len(), 24);
    [0, 8, 16].map(|at| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap()))
}

#[test]
fn updates_stay_and_everything_else_goes() {
    let mut replica = Replica::new(Config { update_instructions_max: 200_000_000, ..Config::default() });
    let canister = deploy(&mut replica, &counter());
    let mut call = |method: &str| replica.update(canister, me(), method, b"");
    assert_eq!(counts(call("count")), [1, 1, 1]);
    assert_eq!(counts(call("count")), [2, 2, 2]);
    let failing = [
        ("trap", ErrorCode::CanisterTrapped),
        ("told", ErrorCode::CanisterCalledTrap),
        ("grow_and_trap", ErrorCode::CanisterTrapped),
        ("silent_query", ErrorCode::CanisterMethodNotFound),
        ("endless", ErrorCode::CanisterInstructionLimitExceeded),
        ("deep", ErrorCode::CanisterTrapped),
        ("big_reply", ErrorCode::CanisterContractViolation),
        ("last_byte_past_stable_end", ErrorCode::CanisterTrapped),
    ];
    for (method, code) in failing {
        assert_eq!(error(call(method)), code, "{method}");
        // A replicated query sees the state and adds to it, and leaves nothing.
        assert_eq!(counts(call("count_in_query")), [3, 3, 3], "after {method}");
    }
    // Without a reply the changes stay all the same.
    assert_eq!(error(call("silent")), ErrorCode::CanisterDidNotReply);
    assert_eq!(counts(call("count")), [4, 4, 4]);
    assert_eq!(replica.stable_memory(canister).unwrap().len(), 65_536);
}

#[test]
fn a_rollback_takes_memory_and_tables_back() {
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &counter());
    assert_eq!(error(replica.update(canister, me(), "grow_and_trap", b"")), ErrorCode::CanisterTrapped);
    assert_eq!(number(replica.query(canister, me(), "heap_pages", b"")), 1);
    assert_eq!(error(replica.query(canister, me(), "past_end", b"")), ErrorCode::CanisterTrapped);
    assert_eq!(counts(replica.query(canister, me(), "grow_in_query", b"")), [1, 1, 1]);
    assert_eq!(number(replica.query(canister, me(), "heap_pages", b"")), 1);
    // Grown memory stays, and is part of what a later trap restores.
    replica.update(canister, me(), "grow", b"").reply();
    assert_eq!(error(replica.update(canister, me(), "grow_and_trap", b"")), ErrorCode::CanisterTrapped);
    assert_eq!(number(replica.query(canister, me(), "heap_pages", b"")), 2);
    // A table is as the module says at the start of every message.
    replica.update(canister, me(), "set_table", b"").reply();
    assert_eq!(error(replica.query(canister, me(), "call_table", b"")), ErrorCode::CanisterTrapped);
    assert_eq!(counts(replica.update(canister, me(), "count", b"")), [1, 1, 1]);
}

#[test]
fn messages_say_what_happened() {
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &counter());
    let told = replica.update(canister, me(), "told", b"").result.unwrap_err();
    assert_eq!(told.reject_code(), 5);
    assert!(
        told.message
            .contains(&format!("Error from Canister {canister}: Canister called `ic0.trap` with message: 'told'")),
        "{told}"
    );
    assert!(told.to_string().starts_with("IC0503: "), "{told}");
    let missing = replica.update(canister, me(), "nothing", b"").result.unwrap_err();
    assert!(missing.message.contains("Canister has no update method 'nothing'"), "{missing}");
    replica.update(canister, me(), "print", b"").reply();
    let lines: Vec<_> =
        replica.logs(canister).unwrap().into_iter().map(|l| String::from_utf8(l.content).unwrap()).collect();
    assert_eq!(lines, ["[TRAP]: told", "told"]);
    let nobody = Principal::from_slice(&[1, 2, 3]);
    assert_eq!(error(replica.query(nobody, me(), "count", b"")), ErrorCode::CanisterNotFound);
    let empty = replica.create_canister(CanisterSettings::default());
    assert_eq!(error(replica.query(empty, me(), "count", b"")), ErrorCode::CanisterWasmModuleNotFound);
    assert_eq!(
        error(replica.install(empty, InstallMode::Install, b"\0asm\x01\0\0\0junk", b"", me())),
        ErrorCode::CanisterInvalidWasm
    );
    let foreign = wat::parse_str(r#"(module (import "env" "f" (func)))"#).unwrap();
    let refused = replica.install(empty, InstallMode::Install, &foreign, b"", me()).result.unwrap_err();
    assert!(refused.message.contains("'f' from 'env'"), "{refused}");
}

#[test]
fn faults_hit_the_next_message_and_only_that() {
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &counter());
    assert_eq!(counts(replica.update(canister, me(), "count", b"")), [1, 1, 1]);
    replica.set_fault(Fault { fail_stable_write: Some(1), ..Fault::default() });
    let failed = replica.update(canister, me(), "count", b"").result.unwrap_err();
    assert!(failed.message.contains("injected fault: stable write 1"), "{failed}");
    replica.set_fault(Fault { trap_after_instructions: Some(20), ..Fault::default() });
    let failed = replica.update(canister, me(), "count", b"").result.unwrap_err();
    assert!(failed.message.contains("stopped after 20 instructions"), "{failed}");
    assert_eq!(counts(replica.update(canister, me(), "count", b"")), [2, 2, 2]);
    let fresh = deploy(&mut replica, &counter());
    replica.set_fault(Fault { fail_stable_grow: Some(1), ..Fault::default() });
    // Growth answers -1, which this canister ignores; the write behind the end then traps.
    assert_eq!(error(replica.update(fresh, me(), "count", b"")), ErrorCode::CanisterTrapped);
    assert_eq!(counts(replica.update(fresh, me(), "count", b"")), [1, 1, 1]);
}

#[test]
fn the_fault_stops_a_message_at_any_number_of_instructions() {
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &counter());
    replica.update(canister, me(), "count", b"").reply();
    let whole = replica.update(canister, me(), "count", b"").cost;
    let ran = whole.instructions - whole.heap_pages * 1_000;
    let mut stopped = 0;
    for instructions in (0..ran).step_by(37) {
        replica.set_fault(Fault { trap_after_instructions: Some(instructions), ..Fault::default() });
        stopped += u64::from(replica.update(canister, me(), "count", b"").result.is_err());
        replica.clear_fault();
        assert_eq!(
            counts(replica.update(canister, me(), "count_in_query", b""))[0],
            counts(replica.query(canister, me(), "count_in_query", b""))[2]
        );
    }
    assert!(stopped >= ran / 37, "{stopped} of {ran} / 37");
}

/// Keeps its init argument in the heap and the number of upgrades in stable memory. An argument "x" makes
/// post_upgrade trap; a first stable byte of 200 makes pre_upgrade trap.
fn upgradable() -> Vec<u8> {
    module(
        r#"(memory 1)
        (func $keep (call $arg_copy (i32.const 100) (i32.const 0) (call $arg_size)))
        (func (export "canister_init") (call $keep) (drop (call $stable_grow (i64.const 1))))
        (func (export "canister_pre_upgrade")
            (call $stable_read (i64.const 0) (i64.const 0) (i64.const 1))
            (if (i32.eq (i32.load8_u (i32.const 0)) (i32.const 200)) (then unreachable))
            (i32.store8 (i32.const 0) (i32.add (i32.const 1) (i32.load8_u (i32.const 0))))
            (call $stable_write (i64.const 0) (i64.const 0) (i64.const 1)))
        (func (export "canister_post_upgrade") (call $keep)
            (if (i32.eq (i32.load8_u (i32.const 100)) (i32.const 120)) (then unreachable)))
        (func (export "canister_query state")
            (call $stable_read (i64.const 99) (i64.const 0) (i64.const 1)) (call $reply (i32.const 99) (i32.const 4)))"#,
    )
}

#[test]
fn upgrades_keep_stable_memory_and_failures_change_nothing() {
    let mut replica = Replica::new(Config::default());
    let wasm = upgradable();
    let canister = replica.create_canister(CanisterSettings::default());
    replica.install(canister, InstallMode::Install, &wasm, b"abc", me()).reply();
    let state = |replica: &mut Replica| replica.query(canister, me(), "state", b"").reply();
    assert_eq!(state(&mut replica), b"\0abc");
    replica.install(canister, InstallMode::UPGRADE, &wasm, b"def", me()).reply();
    assert_eq!(state(&mut replica), b"\x01def");
    // post_upgrade traps: what pre_upgrade wrote goes too, and the old code runs on.
    assert_eq!(error(replica.install(canister, InstallMode::UPGRADE, &wasm, b"x", me())), ErrorCode::CanisterTrapped);
    assert_eq!(state(&mut replica), b"\x01def");
    assert_eq!(error(replica.install(canister, InstallMode::Install, &wasm, b"", me())), ErrorCode::CanisterNonEmpty);
    replica.set_stable_memory(canister, &[200]).unwrap();
    assert_eq!(error(replica.install(canister, InstallMode::UPGRADE, &wasm, b"ghi", me())), ErrorCode::CanisterTrapped);
    assert_eq!(state(&mut replica), b"\xc8def");
    replica
        .install(canister, InstallMode::Upgrade { skip_pre_upgrade: true, keep_heap: None }, &wasm, b"ghi", me())
        .reply();
    assert_eq!(state(&mut replica), b"\xc8ghi");
    let stranger = Principal::from_slice(&[7; 29]);
    assert_eq!(
        error(replica.install(canister, InstallMode::UPGRADE, &wasm, b"", stranger)),
        ErrorCode::CanisterInvalidController
    );
    replica.install(canister, InstallMode::Reinstall, &wasm, b"new", me()).reply();
    assert_eq!(state(&mut replica), b"\0new");
}

/// Calls the method named in its argument's bytes 11.. on the canister in bytes 1..11 (byte 0 is its length, 10) and
/// counts before and after. The reply is the callee's, the reject code when it rejects.
fn caller() -> Vec<u8> {
    module(
        r#"
        (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
        (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
        (memory 1) (table 4 funcref) (elem (i32.const 0) $on_reply $on_reject $cleanup $trap_on_reply)
        (func $call (param $reply_fun i32)
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
            (call $arg_copy (i32.const 1000) (i32.const 0) (call $arg_size))
            (call $call_new (i32.const 1001) (i32.load8_u (i32.const 1000)) (i32.const 1011)
                (i32.sub (call $arg_size) (i32.const 11)) (local.get $reply_fun) (i32.const 5) (i32.const 1) (i32.const 6))
            (call $on_cleanup (i32.const 2) (i32.const 7))
            (if (call $perform) (then unreachable)))
        (func (export "canister_update forward") (call $call (i32.const 0)))
        (func (export "canister_update trap_after") (call $call (i32.const 3)))
        (func $on_reply (param $env i32)
            (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (local.get $env)))
            (call $arg_copy (i32.const 2000) (i32.const 0) (call $arg_size))
            (call $reply (i32.const 2000) (call $arg_size)))
        (func $on_reject (param $env i32)
            (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (local.get $env)))
            (i32.store (i32.const 2000) (call $reject_code)) (call $reply (i32.const 2000) (i32.const 4)))
        (func $trap_on_reply (param $env i32)
            (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (local.get $env))) unreachable)
        (func $cleanup (param $env i32)
            (i32.store (i32.const 12) (i32.add (i32.load (i32.const 12)) (local.get $env))))
        (func (export "canister_query state") (call $reply (i32.const 0) (i32.const 16)))
        (func (export "canister_composite_query ask") (call $call (i32.const 0)))
        "#,
    )
}

fn target(canister: Principal, method: &str) -> Vec<u8> {
    [&[10], canister.as_slice(), method.as_bytes()].concat()
}

#[test]
fn calls_between_canisters() {
    let mut replica = Replica::new(Config::default());
    let counter = deploy(&mut replica, &counter());
    let caller = deploy(&mut replica, &caller());
    let state = |replica: &mut Replica| {
        let reply = replica.query(caller, me(), "state", b"").reply();
        [0, 4, 8, 12].map(|at| u32::from_le_bytes(reply[at..at + 4].try_into().unwrap()))
    };
    let outcome = replica.update(caller, me(), "forward", &target(counter, "count"));
    let entries: Vec<_> = outcome.messages.iter().map(|m| m.entry.clone()).collect();
    assert_eq!(entries, ["forward", "count", "reply of count"]);
    assert_eq!(outcome.cost, outcome.messages[0].cost);
    assert_eq!(counts(outcome), [1, 1, 1]);
    assert_eq!(state(&mut replica), [1, 5, 0, 0]);
    // The callee traps: the reject callback sees code 5, the callee has changed nothing.
    assert_eq!(replica.update(caller, me(), "forward", &target(counter, "trap")).reply(), 5u32.to_le_bytes());
    assert_eq!(replica.update(caller, me(), "forward", &target(counter, "missing")).reply(), 5u32.to_le_bytes());
    let nobody = Principal::from_slice(&[9; 10]);
    assert_eq!(replica.update(caller, me(), "forward", &target(nobody, "count")).reply(), 3u32.to_le_bytes());
    assert_eq!(state(&mut replica), [4, 5, 18, 0]);
    // The callback traps: what came before the call stays, the callback goes, the cleanup callback runs.
    let outcome = replica.update(caller, me(), "trap_after", &target(counter, "count"));
    assert_eq!(outcome.messages.last().unwrap().entry, "cleanup of count");
    assert_eq!(error(outcome), ErrorCode::CanisterTrapped);
    assert_eq!(state(&mut replica), [5, 5, 18, 7]);
    assert_eq!(counts(replica.query(counter, me(), "count_in_query", b"")), [3, 3, 3]);
    // A call to itself.
    let reply = replica.update(caller, me(), "forward", &target(caller, "state")).reply();
    assert_eq!(u32::from_le_bytes(reply[..4].try_into().unwrap()), 6);
    // Composite queries call queries, change nothing, and do not run replicated.
    let before = state(&mut replica);
    assert_eq!(counts(replica.query(caller, me(), "ask", &target(counter, "count_in_query"))), [3, 3, 3]);
    assert_eq!(replica.query(caller, me(), "ask", &target(counter, "count")).reply(), 5u32.to_le_bytes());
    assert_eq!(replica.query(caller, me(), "ask", &target(caller, "state")).reply(), 5u32.to_le_bytes());
    assert_eq!(error(replica.update(caller, me(), "ask", b"")), ErrorCode::CompositeQueryCalledInReplicatedMode);
    assert_eq!(state(&mut replica), before);
}

#[test]
fn inspect_message_decides_about_ingress() {
    let wasm = module(
        r#"(import "ic0" "accept_message" (func $accept))
        (import "ic0" "msg_method_name_size" (func $name_size (result i32)))
        (func (export "canister_inspect_message") (if (i32.eq (call $name_size) (i32.const 4)) (then (call $accept))))
        (func (export "canister_update open") (call $msg_reply))
        (func (export "canister_update closed") (call $msg_reply))"#,
    );
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &wasm);
    assert_eq!(replica.update(canister, me(), "open", b"").reply(), b"");
    assert_eq!(error(replica.update(canister, me(), "closed", b"")), ErrorCode::CanisterRejectedMessage);
}

#[test]
fn timers_run_when_they_are_due() {
    let wasm = module(
        r#"(import "ic0" "global_timer_set" (func $set (param i64) (result i64)))
        (import "ic0" "time" (func $time (result i64)))
        (memory 1)
        (func (export "canister_init") (drop (call $set (i64.add (call $time) (i64.const 1000)))))
        (func (export "canister_global_timer") (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))))
        (func (export "canister_query fired") (call $reply (i32.const 0) (i32.const 8)))"#,
    );
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &wasm);
    replica.tick();
    assert_eq!(number(replica.query(canister, me(), "fired", b"")), 0);
    replica.advance_time(1_000);
    replica.tick();
    replica.tick();
    assert_eq!(number(replica.query(canister, me(), "fired", b"")), 1);
}

#[test]
fn contexts_limit_the_system_api() {
    let wasm = module(r#"(func (export "canister_init") (call $msg_reply))"#);
    let mut replica = Replica::new(Config::default());
    let canister = replica.create_canister(CanisterSettings::default());
    let refused = replica.install(canister, InstallMode::Install, &wasm, b"", me()).result.unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterContractViolation);
    assert!(refused.message.contains("\"ic0_msg_reply\" cannot be executed in init mode"), "{refused}");
    assert_eq!(replica.module_hash(canister).unwrap(), None);
}

#[test]
fn ten_thousand_updates_are_quick() {
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &counter());
    let start = std::time::Instant::now();
    for _ in 0..10_000 {
        replica.update(canister, me(), "count", b"").reply();
    }
    assert_eq!(counts(replica.update(canister, me(), "count", b"")), [10_001; 3]);
    let took = start.elapsed();
    assert!(took.as_secs() < 30, "10,000 updates took {took:?}");
}

#[test]
fn the_caller_is_known_in_init_and_in_callbacks() {
    let wasm = module(
        r#"(import "ic0" "msg_caller_size" (func $caller_size (result i32)))
        (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
        (import "ic0" "canister_self_copy" (func $self_copy (param i32 i32 i32)))
        (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (memory 1) (table 1 funcref) (elem (i32.const 0) $answer) (data (i32.const 500) "creator")
        (func (export "canister_init") (call $caller_copy (i32.const 0) (i32.const 0) (call $caller_size)))
        (func (export "canister_query creator") (call $reply (i32.const 0) (i32.const 29)))
        (func (export "canister_update ask_myself")
            (call $self_copy (i32.const 100) (i32.const 0) (i32.const 10))
            (call $call_new (i32.const 100) (i32.const 10) (i32.const 500) (i32.const 7)
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (drop (call $perform)))
        (func $answer (param i32)
            (call $caller_copy (i32.const 200) (i32.const 0) (call $caller_size))
            (call $reply (i32.const 200) (call $caller_size)))"#,
    );
    let (creator, asker) = (Principal::from_slice(&[3; 29]), Principal::from_slice(&[4; 29]));
    let mut replica = Replica::new(Config::default());
    let canister = replica.create_canister(CanisterSettings { controllers: vec![creator], ..Default::default() });
    replica.install(canister, InstallMode::Install, &wasm, b"", creator).reply();
    assert_eq!(replica.query(canister, me(), "creator", b"").reply(), creator.as_slice());
    assert_eq!(replica.update(canister, asker, "ask_myself", b"").reply(), asker.as_slice());
}

#[test]
fn a_canister_without_cycles_does_nothing() {
    let mut replica = Replica::new(Config::default());
    let canister = replica.create_canister(CanisterSettings { cycles: 0, ..Default::default() });
    let install = |replica: &mut Replica| replica.install(canister, InstallMode::Install, &counter(), b"", me());
    assert_eq!(error(install(&mut replica)), ErrorCode::CanisterOutOfCycles);
    replica.add_cycles(canister, 400_000_000_000).unwrap();
    install(&mut replica).reply();
    let before = replica.cycles(canister).unwrap();
    let outcome = replica.update(canister, me(), "count", b"");
    // The base fee, the ingress message with its 5 bytes of method name, and a cycle for each instruction.
    let fees = 5_000_000 + 1_200_000 + 2_000 * 5;
    assert_eq!(before - replica.cycles(canister).unwrap(), fees + u128::from(outcome.cost.instructions));
}

/// `give` calls a method with 1,000,000 cycles and answers what came back; `take` accepts 400,000 of them.
fn cycles_canister() -> Vec<u8> {
    module(
        r#"(import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_cycles_add128" (func $add (param i64 i64)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (import "ic0" "msg_cycles_available128" (func $available (param i32)))
        (import "ic0" "msg_cycles_accept128" (func $accept (param i64 i64 i32)))
        (import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
        (memory 1) (table 1 funcref) (elem (i32.const 0) $answer)
        (func (export "canister_update give")
            (call $arg_copy (i32.const 100) (i32.const 0) (call $arg_size))
            (call $call_new (i32.const 101) (i32.const 10) (i32.const 111) (i32.sub (call $arg_size) (i32.const 11))
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (call $add (i64.const 0) (i64.const 1000000))
            (if (call $perform) (then unreachable)))
        (func $answer (param i32) (call $refunded (i32.const 0)) (call $reply (i32.const 0) (i32.const 16)))
        (func (export "canister_update take") (call $accept (i64.const 0) (i64.const 400000) (i32.const 0))
            (call $available (i32.const 16)) (call $reply (i32.const 0) (i32.const 32)))
        (func (export "canister_update take_and_trap")
            (call $accept (i64.const 0) (i64.const 400000) (i32.const 0)) unreachable)"#,
    )
}

#[test]
fn cycles_travel_with_calls_and_what_is_not_taken_returns() {
    let mut replica = Replica::new(Config::default());
    let giver = deploy(&mut replica, &cycles_canister());
    let taker = deploy(&mut replica, &cycles_canister());
    for (method, refund) in [("take", 600_000u128), ("take_and_trap", 1_000_000), ("missing", 1_000_000)] {
        let (before, taken_before) = (replica.cycles(giver).unwrap(), replica.cycles(taker).unwrap());
        let argument = target(taker, method);
        let outcome = replica.update(giver, me(), "give", &argument);
        assert_eq!(outcome.result.as_deref(), Ok(&refund.to_le_bytes()[..]), "{method}");
        let fees = |canister: Principal| -> u128 {
            let messages = outcome.messages.iter().filter(|m| m.canister == canister);
            messages.map(|m| 5_000_000 + u128::from(m.cost.instructions)).sum()
        };
        let spent = before - replica.cycles(giver).unwrap();
        let ingress = 1_200_000 + 2_000 * (argument.len() + 4) as u128;
        let transmission = 260_000 + 1_000 * method.len() as u128;
        assert_eq!(spent, 1_000_000 - refund + fees(giver) + ingress + transmission, "{method}");
        assert_eq!(taken_before + 1_000_000 - refund - fees(taker), replica.cycles(taker).unwrap(), "{method}");
    }
}

#[test]
fn stopping_waits_for_calls_under_way() {
    let mut replica = Replica::new(Config::default());
    let caller = deploy(&mut replica, &caller());
    let counter = deploy(&mut replica, &counter());
    let management = Principal::management_canister();
    let argument =
        candid::encode_args((ic_management_canister_types::CanisterIdRecord { canister_id: caller },)).unwrap();
    let call = replica.submit(caller, me(), "forward", &target(counter, "count")).unwrap();
    let stop = replica.submit(management, me(), "stop_canister", &argument).unwrap();
    let late = replica.submit(caller, me(), "forward", &target(counter, "count")).unwrap();
    replica.tick();
    assert_eq!(counts(replica.answer(call).unwrap()), [1, 1, 1]);
    assert!(replica.answer(stop).unwrap().result.is_ok());
    assert_eq!(error(replica.answer(late).unwrap()), ErrorCode::CanisterStopping);
    assert_eq!(replica.status(caller).unwrap(), icsql_replica::Status::Stopped);
    assert_eq!(error(replica.query(caller, me(), "state", b"")), ErrorCode::CanisterStopped);
    replica.update(management, me(), "start_canister", &argument).reply();
    assert!(replica.query(caller, me(), "state", b"").result.is_ok());
}
