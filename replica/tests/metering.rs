//! What a message costs, computed by hand for small modules.
//!
//! Every figure is the sum of the operators' weights in `data/instruction-weights.tsv`, one for each function that
//! is entered, and the fees in `data/system-api-costs.tsv`.

mod common;

use common::{deploy, me, module, profiled};
use icsql_replica::{Cost, Replica};

/// Runs `code` as the body of an update with two i32 locals, and gives its cost. The module has a memory of two
/// pages, a table with `$double` in it, and the canister answers nothing.
fn cost(code: &str) -> Cost {
    cost_with("", code)
}

fn cost_with(fields: &str, code: &str) -> Cost {
    cost_in("update", fields, code)
}

fn cost_in(kind: &str, fields: &str, code: &str) -> Cost {
    let wasm = module(&format!(
        r#"(memory 2) (table 2 funcref) (elem (i32.const 0) $double) (type $unary (func (param i32) (result i32)))
        (func $double (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
        {fields}
        (func (export "canister_{kind} run") (local $a i32) (local $b i32) {code})"#
    ));
    let mut replica = Replica::new(Default::default());
    let canister = deploy(&mut replica, &wasm);
    let cost = replica.update(canister, me(), "run", b"").cost;
    assert_eq!(profiled(&wasm, "run").cost, cost, "with profiling: {code}");
    cost
}

#[track_caller]
fn expect(code: &str, instructions: u64) {
    assert_eq!(cost(code).instructions, instructions, "{code}");
}

#[test]
fn straight_line() {
    // Entering 1.
    expect("", 1);
    // Entering 1, const 1, set 1, get 1, get 1, add 1, drop 1.
    expect("(local.set $a (i32.const 5)) (drop (i32.add (local.get $a) (local.get $a)))", 7);
    // Entering 1, const 1, const 1, division 10, drop 1.
    expect("(drop (i32.div_u (i32.const 7) (i32.const 2)))", 14);
}

#[test]
fn calls() {
    // Entering 1, const 1, call 5, drop 1; in $double: entering 1, get 1, const 1, mul 1.
    expect("(drop (call $double (i32.const 3)))", 12);
    // The same through the table: const 1, const 1, call_indirect 10, drop 1, entering 1; $double 4.
    expect("(drop (call_indirect (type $unary) (i32.const 3) (i32.const 0)))", 18);
}

#[test]
fn loops() {
    // Entering 1. Set up: const 1, set 1. Each of 10 rounds: get 1, const 1, sub 1, tee 1, br_if 2.
    expect(
        "(local.set $a (i32.const 10)) (loop (br_if 0 (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))",
        3 + 10 * 6,
    );
}

#[test]
fn branches() {
    // Entering 1, const 1, if 2; then-arm: nop 1; behind: nop 1.
    expect("(if (i32.const 1) (then nop) (else nop nop nop)) nop", 6);
    expect("(if (i32.const 0) (then nop) (else nop nop nop)) nop", 8);
    // A return in the middle: entering 1, const 1, if 2, return 1; what follows is not paid.
    expect("(if (i32.const 1) (then return)) nop nop nop", 5);
    // Behind a br nothing runs: entering 1, nop 1, br 2; behind the block: nop 1.
    expect("nop (block (br 0) nop nop nop) nop", 5);
    // br_table 2 to the outer block: entering 1, const 1, br_table 2; behind the inner block nothing, behind the outer nop 1.
    expect("(block (block (br_table 0 1 (i32.const 1))) nop nop) nop", 5);
    // To the inner: nop nop before the outer block's end.
    expect("(block (block (br_table 0 1 (i32.const 0))) nop nop) nop", 7);
}

#[test]
fn a_trap_pays_for_what_ran() {
    // Entering 1, nop 1, unreachable 1.
    expect("nop unreachable nop", 3);
    // The block is paid on entry though the division traps in its middle: entering 1, const 2, div 10, drop 1, nop 2.
    expect("(drop (i32.div_u (i32.const 1) (i32.const 0))) nop nop", 16);
}

#[test]
fn heap_pages() {
    // Entering 1, const 2, store 1; one page differs: 1,000.
    let one = cost("(i32.store (i32.const 0) (i32.const 1))");
    assert_eq!((one.instructions, one.heap_pages), (1_004, 1));
    // The same bytes as before: no page differs.
    let same = cost("(i32.store (i32.const 0) (i32.const 0))");
    assert_eq!((same.instructions, same.heap_pages), (4, 0));
    // Across the border of two pages, by offset and by address.
    assert_eq!(cost("(i64.store offset=4092 (i32.const 0) (i64.const -1))").heap_pages, 2);
    assert_eq!(cost("(i64.store (i32.const 4090) (i64.const -1))").heap_pages, 2);
    // An offset that is itself larger than a page.
    assert_eq!(cost("(i64.store offset=70000 (i32.const 4090) (i64.const -1))").heap_pages, 1);
    // Charged on a trap as well: entering 1, const 2, store 1, unreachable 1.
    assert_eq!(cost("(i32.store (i32.const 0) (i32.const 1)) unreachable").instructions, 1_005);
    // Not charged to a query method that is called replicated.
    let query = cost_in("query", "", "(i32.store (i32.const 0) (i32.const 1))");
    assert_eq!((query.instructions, query.heap_pages), (4, 0));
    // Memory that is new counts when it is not zero: entering 1, const 1, grow 300, drop 1, const 2, store 1.
    let grown = cost("(drop (memory.grow (i32.const 1))) (i32.store (i32.const 131072) (i32.const 1))");
    assert_eq!((grown.instructions, grown.heap_pages), (306 + 1_000, 1));
}

#[test]
fn bulk_memory() {
    // Entering 1, const 3, fill 100, and 1 for each of 5,000 bytes; two pages.
    let fill = cost("(memory.fill (i32.const 0) (i32.const 7) (i32.const 5000))");
    assert_eq!((fill.instructions, fill.heap_pages), (5_104 + 2_000, 2));
    let copy = cost("(memory.copy (i32.const 8192) (i32.const 0) (i32.const 5000))");
    assert_eq!((copy.instructions, copy.heap_pages), (5_104, 0));
    // An active segment is not dropped until start has run; a passive one can be copied from.
    let init = cost_with(r#"(data $d "abcd")"#, "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 4))");
    assert_eq!((init.instructions, init.heap_pages), (108 + 1_000, 1));
    // Out of bounds: paid, then trapped.
    expect("(memory.fill (i32.const 131072) (i32.const 7) (i32.const 1))", 105);
    // Tables: entering 1, const 3, copy 100, 1 for each element.
    expect("(table.copy (i32.const 0) (i32.const 1) (i32.const 1))", 105);
}

#[test]
fn simd() {
    // Entering 1, const 1, v128.load 1, v128.const 1, shuffle 3, drop 1.
    expect(
        "(drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 (v128.load (i32.const 0)) (v128.const i64x2 1 2)))",
        8,
    );
    // Entering 1, const 2, v128.store 1; over two pages.
    let store = cost("(v128.store (i32.const 4088) (v128.const i64x2 1 2))");
    assert_eq!((store.instructions, store.heap_pages), (4 + 2_000, 2));
}

#[test]
fn stable_memory() {
    let cost = cost(
        "(drop (call $stable_grow (i64.const 1)))
        (call $stable_write (i64.const 4090) (i64.const 0) (i64.const 10))
        (call $stable_write (i64.const 0) (i64.const 0) (i64.const 10))
        (call $stable_read (i64.const 0) (i64.const 0) (i64.const 100))
        (drop (call $stable_size))",
    );
    // Entering 1. Grow: const 1, call 5, 100, drop 1. First write: const 3, call 5, 20, 10 bytes, two pages.
    // Second: const 3, call 5, 20, 10 bytes, page known. Read: const 3, call 5, 20, 100 bytes. Size: call 5, drop 1.
    assert_eq!(cost.instructions, 1 + 107 + (38 + 2_000) + 38 + 128 + 6);
    assert_eq!((cost.stable_pages, cost.stable_bytes_written, cost.stable_bytes_read), (2, 20, 100));
    assert_eq!(cost.heap_pages, 0);
}

#[test]
fn replies_and_the_counter() {
    // A canister that only replies: entering 1, call 5, msg_reply 500.
    expect("(call $msg_reply)", 506);
    // Entering 1, const 2, call 5; in $reply entering 1, get 2, call 5, 500 and 50 for each byte, call 5, 500.
    expect("(call $reply (i32.const 0) (i32.const 12))", 8 + 8 + 500 + 600 + 505);
    // The counter shows the block that reads it and its own price: entering 1, const 2, call 5, store 1, then 200.
    let wasm = module(
        r#"(memory 1) (func (export "canister_update run")
            (i64.store (i32.const 0) (call $counter (i32.const 0))) (call $reply (i32.const 0) (i32.const 8)))"#,
    );
    let mut replica = Replica::new(Default::default());
    let canister = deploy(&mut replica, &wasm);
    let outcome = replica.update(canister, me(), "run", b"");
    // const 1, const 1, call 5, store 1, const 2, call 5, entering 1.
    assert_eq!(u64::from_le_bytes(outcome.result.unwrap().try_into().unwrap()), 16 + 200);
    assert_eq!(outcome.cost.reply_bytes, 8);
}

#[test]
fn start_is_an_execution_of_its_own() {
    let wasm = module(
        r#"(memory 1) (global $ran (mut i32) (i32.const 0))
        (func $start (global.set $ran (i32.const 1)) (i32.store (i32.const 0) (i32.const 1)))
        (start $start)
        (func (export "canister_init") (i32.store (i32.const 0) (global.get $ran)))"#,
    );
    let mut replica = Replica::new(Default::default());
    let canister = replica.create_canister(Default::default());
    let outcome = replica.install(canister, icsql_replica::InstallMode::Install, &wasm, b"", me());
    outcome.result.unwrap();
    let steps: Vec<_> = outcome.messages.iter().map(|m| (m.entry.as_str(), m.cost.instructions)).collect();
    // Start: entering 1, const 1, global.set 2, const 2, store 1, one page. Init: entering 1, const 1, global.get 2,
    // store 1, and the page is as start left it. Compilation is listed apart.
    assert_eq!(steps, [("compilation", 0), ("start", 1_007), ("canister_init", 5)]);
    assert!(outcome.cost.compilation > 0 && outcome.cost.compilation.is_multiple_of(6_000));
}
