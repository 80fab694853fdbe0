//! Where the instructions of small modules go, computed by hand like their totals in the suite on metering.

mod common;

use common::{deploy, me, module, profiled};
use icsql_replica::{Config, Fault, Profile, Replica};

fn run(fields: &str, code: &str) -> Profile {
    profiled(&module(&format!(r#"(memory 2) {fields} (func $run (export "canister_update run") {code})"#)), "run")
}

/// Each function: name, its own instructions, those with what it calls, calls.
#[track_caller]
fn expect(profile: &Profile, expected: &[(&str, u64, u64, u64)]) {
    let mut functions = profile.functions();
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    let found: Vec<_> = functions.iter().map(|f| (&*f.name, f.exclusive, f.inclusive, f.calls)).collect();
    assert_eq!(found, expected);
}

#[test]
fn calls_go_to_the_function_called() {
    // $run: entering 1, const 1, call 5, call 5. $outer: entering 1, get 1, call 5, get 1, call 5, add 1.
    // $inner: entering 1, get 1, const 1, mul 1.
    let profile = run(
        r#"(func $inner (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
           (func $outer (param i32) (result i32)
               (i32.add (call $inner (local.get 0)) (call $inner (local.get 0))))
           (func $sink (param i32))"#,
        "(call $sink (call $outer (i32.const 1)))",
    );
    expect(
        &profile,
        &[("inner", 8, 8, 2), ("message", 0, 35, 1), ("outer", 14, 22, 1), ("run", 12, 35, 1), ("sink", 1, 1, 1)],
    );
    assert_eq!(
        profile.folded(),
        "message;run 12\nmessage;run;outer 14\nmessage;run;outer;inner 8\nmessage;run;sink 1\n"
    );
    let calls = profile.calls_of(|name| name == "inner");
    let calls: Vec<_> = calls.iter().map(|c| (&*c.caller, &*c.function, c.inclusive, c.calls)).collect();
    assert_eq!(calls, [("outer", "inner", 8, 2)]);
}

#[test]
fn however_a_function_ends_its_caller_goes_on() {
    // $run: entering 1, const 1 and call 5 three times; then nop 1, with the rest of its one block.
    // $ends by a branch to its end, by a return, by its end: entering 1, get 1, br_table 2; return 1; nop 1.
    let profile = run(
        r#"(func $ends (param i32)
               (block $end (block $return (br_table $return 2 $end (local.get 0))) (return)) (nop))"#,
        "(call $ends (i32.const 0)) (call $ends (i32.const 1)) (call $ends (i32.const 2)) (nop)",
    );
    expect(&profile, &[("ends", 14, 14, 3), ("message", 0, 34, 1), ("run", 20, 34, 1)]);
}

#[test]
fn recursion_is_counted_once() {
    // Each $down: entering 1, get 1, if 2; all but the last: get 1, const 1, sub 1, call 5.
    let profile = run(
        "(func $down (param i32) (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1))))))",
        "(call $down (i32.const 9))",
    );
    let down = 10 * 4 + 9 * 8;
    expect(&profile, &[("down", down, down, 10), ("message", 0, down + 7, 1), ("run", 7, down + 7, 1)]);
}

#[test]
fn a_tail_call_takes_the_place_of_its_function() {
    // $run: entering 1, const 1, call 5. $hop: entering 1, get 1, if 2; then get 1, const 1, sub 1, return_call 3.
    let profile = run(
        r#"(func $hop (param i32)
               (if (local.get 0) (then (return_call $hop (i32.sub (local.get 0) (i32.const 1))))))"#,
        "(call $hop (i32.const 20000))",
    );
    let hops = 20_001 * 4 + 20_000 * 6;
    expect(&profile, &[("hop", hops, hops, 20_001), ("message", 0, hops + 7, 1), ("run", 7, hops + 7, 1)]);
    assert_eq!(profile.frames.len(), 3, "{}", profile.folded());
}

#[test]
fn the_systems_functions_and_heap_pages_have_frames() {
    // 4 bytes to a new stable page: the table of fees says what the write costs; the mark on the heap is a page.
    let profile = run(
        "",
        r#"(drop (call $stable_grow (i64.const 1))) (call $stable_write (i64.const 0) (i64.const 0) (i64.const 4))
           (i32.store (i32.const 0) (i32.const 7)) (call $append (i32.const 0) (i32.const 4)) (call $msg_reply)"#,
    );
    let functions = profile.functions();
    let of = |name: &str| functions.iter().find(|f| &*f.name == name).map(|f| (f.exclusive, f.calls));
    assert_eq!(of("ic0.stable64_write"), Some((20 + 4 + 1_000, 1)));
    assert_eq!(of("ic0.msg_reply_data_append"), Some((500 + 4 * 50, 1)));
    assert_eq!(of("dirty heap pages"), Some((1_000, 1)));
    // Through the table they do not report themselves: their cost is their caller's, and nothing else moves.
    let profile = run(
        r#"(type $get (func (result i32))) (table 1 funcref) (elem (i32.const 0) $arg_size) (func $after)"#,
        "(drop (call_indirect (type $get) (i32.const 0))) (call $after)",
    );
    let functions = profile.functions();
    let run = functions.iter().find(|f| &*f.name == "run").expect("run");
    assert_eq!((run.exclusive, run.inclusive), (1 + 1 + 10 + 1 + 5 + 500, 1 + 1 + 10 + 1 + 5 + 500 + 1));
}

#[test]
fn what_lies_between_two_readings_of_the_counter() {
    let wasm = module(
        r#"(memory 2) (func $work (param i32) (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
           (func $run (export "canister_update run")
               (call $work (i32.const 10))
               (i64.store (i32.const 0) (call $counter (i32.const 0)))
               (call $work (i32.const 20))
               (drop (call $counter (i32.const 0)))
               (call $work (i32.const 30))
               (i64.store (i32.const 8) (call $counter (i32.const 0)))
               (call $work (i32.const 40))
               (call $reply (i32.const 0) (i32.const 16)))"#,
    );
    let mut replica = Replica::new(Default::default());
    let canister = deploy(&mut replica, &wasm);
    let reply = replica.update(canister, me(), "run", b"").reply();
    let read = |at: usize| u64::from_le_bytes(reply[at..at + 8].try_into().expect("8 bytes"));
    let counted = profiled(&wasm, "run").counted();
    assert_eq!(counted.instructions(), read(8) - read(0));
    let functions = counted.functions();
    let work = functions.iter().find(|f| &*f.name == "work").expect("work");
    // Entering 1; each round get 1, const 1, sub 1, tee 1, br_if 2.
    assert_eq!((work.exclusive, work.calls), (2 + 50 * 6, 2));
}

#[test]
fn a_message_that_is_stopped_is_profiled_to_its_end() {
    let trapping = run("(func $deep (unreachable))", "(call $deep)");
    expect(&trapping, &[("deep", 2, 2, 1), ("message", 0, 8, 1), ("run", 6, 8, 1)]);

    let wasm = module(r#"(memory 1) (func $spin (loop (br 0))) (func (export "canister_update run") (call $spin))"#);
    let mut replica = Replica::new(Config { profile: true, ..Config::default() });
    let canister = deploy(&mut replica, &wasm);
    replica.set_profiling(true);
    replica.set_fault(Fault { trap_after_instructions: Some(1_000), ..Fault::default() });
    let outcome = replica.update(canister, me(), "run", b"");
    assert!(outcome.result.is_err());
    let profile = replica.take_profiles(canister).expect("the canister is there").pop().expect("one message ran");
    assert_eq!((profile.cost.instructions, profile.instructions()), (1_000, 1_000));
}

#[test]
fn only_what_is_asked_for_is_recorded() {
    let wasm = module(r#"(memory 1) (func (export "canister_update run"))"#);
    let mut replica = Replica::new(Config { profile: true, ..Config::default() });
    let canister = deploy(&mut replica, &wasm);
    let call = |replica: &mut Replica| drop(replica.update(canister, me(), "run", b""));
    call(&mut replica);
    replica.set_profiling(true);
    call(&mut replica);
    call(&mut replica);
    replica.set_profiling(false);
    call(&mut replica);
    let profiles = replica.take_profiles(canister).expect("the canister is there");
    assert_eq!(profiles.iter().map(|p| &*p.entry).collect::<Vec<_>>(), ["canister_update run"; 2]);
    assert!(replica.take_profiles(canister).expect("the canister is there").is_empty());
}
