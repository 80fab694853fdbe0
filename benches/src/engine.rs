//! Bulk work on the engine, in a canister of its own (`benches/engine`).
//!
//! The instructions of these cases are those that the work took by `performance_counter(0)`, since that is what others
//! publish for it: without arguments, reply, and the charge for dirty heap pages. The other figures are those of the
//! whole message.

use candid::{Decode, Encode, Principal};
use icsql_replica::{CanisterSettings, Config, InstallMode, Replica};

use crate::results::Measurement;
use crate::subject::read_built;

/// What the cases are filed under.
pub const SUBJECT: &str = "icsql";

const BUILT_BY: &str = "cargo build --profile canister --target wasm32-unknown-unknown -p icsql-engine-bench";

/// Case, rows stored before it, what is called in an empty canister to get there, and the call that is measured.
const CASES: [(&str, u32, &[(&str, u32)], (&str, u32)); 4] = [
    ("insert_1000", 0, &[], ("insert", 1_000)),
    ("insert_5000", 0, &[], ("insert", 5_000)),
    ("update_20_commits", 5_000, &[("insert", 5_000)], ("update_each", 20)),
    ("scan_5000", 5_000, &[("insert", 5_000)], ("scan", 5_000)),
];

/// Measures every case, each in a new canister.
pub fn run(root: &std::path::Path) -> Result<Vec<Measurement>, String> {
    let wasm = read_built(
        "the engine's canister",
        &root.join("target/wasm32-unknown-unknown/canister/icsql_engine_bench.wasm"),
        BUILT_BY,
    )?;
    let sender = Principal::anonymous();
    let mut measured = Vec::new();
    for (case, rows, before, call) in CASES {
        let mut replica = Replica::new(Config::default());
        let canister = replica.create_canister(CanisterSettings::default());
        let installed = replica.install(canister, InstallMode::Install, &wasm, &[], sender);
        installed.result.map_err(|reject| format!("{case}: install: {reject}"))?;
        for &(method, count) in before.iter().chain([&call]) {
            let argument = Encode!(&count).expect("a number can be encoded");
            let outcome = replica.update(canister, sender, method, &argument);
            let reply = outcome.result.map_err(|reject| format!("{case}: {method}: {reject}"))?;
            let answer = Decode!(&reply, Result<u64, String>).map_err(|error| format!("{case}: {method}: {error}"))?;
            let instructions = answer.map_err(|error| format!("{case}: {method}: {error}"))?;
            if (method, count) == call {
                measured.push(Measurement {
                    case: case.to_string(),
                    subject: SUBJECT.to_string(),
                    rows,
                    instructions,
                    heap_pages: outcome.cost.heap_pages,
                    stable_pages: outcome.cost.stable_pages,
                    stable_bytes_read: outcome.cost.stable_bytes_read,
                    stable_bytes_written: outcome.cost.stable_bytes_written,
                });
            }
        }
    }
    Ok(measured)
}
