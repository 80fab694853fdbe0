//! The heap after random writes of every kind, by updates, traps and queries, against a model of plain bytes: the
//! contents must agree, and so must the number of pages that are charged.

mod common;

use common::{deploy, me, module};
use icsql_replica::{Config, Replica};

const PAGE: usize = 4_096;
/// Three Wasm pages: two to write to, then the argument's.
const HEAP: usize = 3 * 65_536;
const WRITABLE: usize = 2 * 65_536;
const OP_BYTES: usize = 24;

/// Runs the operations in its argument: kind, address, length, source (4 bytes each), value (8 bytes).
fn canister() -> Vec<u8> {
    let run = r#"
        (local $op i32) (local $end i32) (local $a i32) (local $v i64)
        (call $arg_copy (i32.const 131072) (i32.const 0) (call $arg_size))
        (local.set $op (i32.const 131072))
        (local.set $end (i32.add (i32.const 131072) (call $arg_size)))
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $op) (local.get $end)))
            (local.set $a (i32.load offset=4 (local.get $op)))
            (local.set $v (i64.load offset=16 (local.get $op)))
            (block $grow (block $vector_lane (block $vector (block $far (block $copy (block $fill (block $float
            (block $eight (block $four (block $two (block $one
                (br_table $one $two $four $eight $float $fill $copy $far $vector $vector_lane $grow
                    (i32.load (local.get $op))))
            (i64.store8 (local.get $a) (local.get $v)) (br $grow))
            (i32.store16 (local.get $a) (i32.wrap_i64 (local.get $v))) (br $grow))
            (i32.store (local.get $a) (i32.wrap_i64 (local.get $v))) (br $grow))
            (i64.store (local.get $a) (local.get $v)) (br $grow))
            (f64.store (local.get $a) (f64.reinterpret_i64 (local.get $v))) (br $grow))
            (memory.fill (local.get $a) (i32.wrap_i64 (local.get $v)) (i32.load offset=8 (local.get $op))) (br $grow))
            (memory.copy (local.get $a) (i32.load offset=12 (local.get $op)) (i32.load offset=8 (local.get $op))) (br $grow))
            (i64.store offset=5000 (local.get $a) (local.get $v)) (br $grow))
            (v128.store offset=100 (local.get $a) (i64x2.splat (local.get $v))) (br $grow))
            (v128.store32_lane offset=4094 1 (local.get $a) (i64x2.splat (local.get $v))))
            (local.set $op (i32.add (local.get $op) (i32.const 24)))
            (br $next)))"#;
    module(&format!(
        r#"(memory 3) (func $run {run})
        (func (export "canister_update keep") (call $run) (call $msg_reply))
        (func (export "canister_update trap") (call $run) unreachable)
        (func (export "canister_update grow_and_trap")
            (drop (memory.grow (i32.const 1))) (i64.store (i32.const 196600) (i64.const 1)) (call $run) unreachable)
        (func (export "canister_query query") (call $run) (call $msg_reply))
        (func (export "canister_query dump") (call $reply (i32.const 0) (i32.const 196608)))"#
    ))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What an operation does to the model.
type Change = Box<dyn Fn(&mut [u8])>;

/// An operation for the canister, and what it does to the model.
fn operation(random: &mut Random, argument: &mut Vec<u8>, apply: &mut Vec<Change>) {
    let kind = random.below(10) as u32;
    // Mostly near a page's border; few pages, so that operations meet.
    let border = (1 + random.below(12)) as usize * PAGE;
    let address = border - 20 + random.below(40) as usize;
    let length_max = if random.below(4) == 0 { 9_000 } else { 30 };
    let length = random.below(length_max) as usize;
    let source = random.below(50_000) as usize;
    // Zeros often, so that bytes are overwritten with what they were.
    let value = if random.below(3) == 0 { 0 } else { random.below(u64::MAX) };
    for field in [kind, address as u32, length as u32, source as u32] {
        argument.extend_from_slice(&field.to_le_bytes());
    }
    argument.extend_from_slice(&value.to_le_bytes());
    let bytes = value.to_le_bytes();
    apply.push(Box::new(move |heap: &mut [u8]| match kind {
        0 => heap[address] = bytes[0],
        1 => heap[address..address + 2].copy_from_slice(&bytes[..2]),
        2 => heap[address..address + 4].copy_from_slice(&bytes[..4]),
        3 | 4 => heap[address..address + 8].copy_from_slice(&bytes),
        5 => heap[address..address + length].fill(bytes[0]),
        6 => heap.copy_within(source..source + length, address),
        7 => heap[address + 5_000..address + 5_008].copy_from_slice(&bytes),
        8 => heap[address + 100..address + 116].copy_from_slice(&[bytes, bytes].concat()),
        _ => heap[address + 4_094..address + 4_098].copy_from_slice(&bytes[4..]),
    }));
}

fn changed_pages(before: &[u8], after: &[u8]) -> u64 {
    before.chunks(PAGE).zip(after.chunks(PAGE)).filter(|(a, b)| a != b).count() as u64
}

#[test]
fn random_writes_agree_with_plain_bytes() {
    let seed = 0x9e37_79b9_7f4a_7c15;
    let mut random = Random(seed);
    let mut replica = Replica::new(Config::default());
    let canister = deploy(&mut replica, &canister());
    let mut model = vec![0u8; HEAP];
    for round in 0..600 {
        let mut argument = Vec::new();
        let mut apply = Vec::new();
        for _ in 0..1 + random.below(12) {
            operation(&mut random, &mut argument, &mut apply);
        }
        assert!(argument.len() % OP_BYTES == 0);
        let mut after = model.clone();
        after[WRITABLE..WRITABLE + argument.len()].copy_from_slice(&argument);
        apply.iter().for_each(|operation| operation(&mut after));
        let method = ["keep", "keep", "trap", "query", "grow_and_trap"][random.below(5) as usize];
        let context = format!("seed {seed:#x}, round {round}, {method}");
        match method {
            "keep" => {
                let outcome = replica.update(canister, me(), method, &argument);
                assert_eq!(outcome.result, Ok(vec![]), "{context}");
                assert_eq!(outcome.cost.heap_pages, changed_pages(&model, &after), "{context}");
                model = after;
            }
            "query" => {
                let outcome = replica.query(canister, me(), method, &argument);
                assert_eq!((outcome.result, outcome.cost.heap_pages), (Ok(vec![]), 0), "{context}");
            }
            _ => {
                let outcome = replica.update(canister, me(), method, &argument);
                assert!(outcome.result.is_err(), "{context}");
                if method == "trap" {
                    assert_eq!(outcome.cost.heap_pages, changed_pages(&model, &after), "{context}");
                }
            }
        }
        assert!(replica.query(canister, me(), "dump", b"").reply() == model, "{context}");
        assert_eq!(replica.heap_bytes(canister).unwrap(), HEAP as u64, "{context}");
    }
}
