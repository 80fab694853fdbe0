//! Bulk work on the engine, in a canister of its own (`benches/engine`).
//!
//! The instructions of these cases are those that the work took by `performance_counter(0)`, since that is what others
//! publish for it: without arguments, reply, and the charge for dirty heap pages. The other figures are those of the
//! whole message.

use candid::{Decode, Encode, Principal};
use icsql_replica::{CanisterSettings, Config, Cost, InstallMode, Profile, Replica};

use crate::results::Measurement;
use crate::subject::read_built;

/// What the cases are filed under.
pub const SUBJECT: &str = "icsql";

/// How the canister is built.
pub const BUILT_BY: &str = "scripts/build --bench";

struct Case {
    name: &'static str,
    /// Rows stored before it.
    rows: u32,
    /// What is called in an empty canister to get there: method, argument.
    before: &'static [(&'static str, u32)],
    /// The call that is measured.
    call: (&'static str, u32),
}

const CASES: [Case; 4] = [
    Case { name: "insert_1000", rows: 0, before: &[], call: ("insert", 1_000) },
    Case { name: "insert_5000", rows: 0, before: &[], call: ("insert", 5_000) },
    Case { name: "update_20_commits", rows: 5_000, before: &[("insert", 5_000)], call: ("update_each", 20) },
    Case { name: "scan_5000", rows: 5_000, before: &[("insert", 5_000)], call: ("scan", 5_000) },
];

/// Measures every case, each in a new canister.
pub fn run(root: &std::path::Path) -> Result<Vec<Measurement>, String> {
    let wasm = read_built("the engine's canister", &root.join("target/engine-bench.wasm"), BUILT_BY)?;
    let mut measured = Vec::new();
    for case in CASES {
        let mut bench = Bench::new(&wasm, &case, crate::replica_config())?;
        let (instructions, cost) = bench.call(case.call)?;
        measured.push(Measurement {
            case: case.name.to_string(),
            subject: SUBJECT.to_string(),
            rows: case.rows,
            instructions,
            heap_pages: cost.heap_pages,
            stable_pages: cost.stable_pages,
            stable_bytes_read: cost.stable_bytes_read,
            stable_bytes_written: cost.stable_bytes_written,
        });
    }
    Ok(measured)
}

/// The names of the cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// One case: the cost of the whole message, what the work itself took by the counter, and the message's profile if the
/// replica's `config` has profiles.
pub fn run_one(wasm: &[u8], case: &str, config: Config) -> Result<(Cost, u64, Option<Profile>), String> {
    let case = CASES.iter().find(|c| c.name == case).ok_or_else(|| format!("there is no case {case}"))?;
    let profiles = config.profile;
    let mut bench = Bench::new(wasm, case, config)?;
    bench.replica.set_profiling(profiles);
    let (instructions, cost) = bench.call(case.call)?;
    // The message may have been inspected before.
    let profile = bench.replica.take_profiles(bench.canister).map_err(|reject| reject.to_string())?.pop();
    Ok((cost, instructions, profile))
}

/// A canister in the state that a case begins with.
struct Bench {
    replica: Replica,
    canister: Principal,
}

impl Bench {
    fn new(wasm: &[u8], case: &Case, config: Config) -> Result<Self, String> {
        let mut replica = Replica::new(config);
        let canister = replica.create_canister(CanisterSettings::default());
        let installed = replica.install(canister, InstallMode::Install, wasm, &[], Principal::anonymous());
        installed.result.map_err(|reject| format!("{}: install: {reject}", case.name))?;
        let mut bench = Self { replica, canister };
        for call in case.before {
            bench.call(*call)?;
        }
        Ok(bench)
    }

    /// What the call answers, the instructions by the counter, and what the message cost.
    fn call(&mut self, (method, count): (&str, u32)) -> Result<(u64, Cost), String> {
        let argument = Encode!(&count).expect("a number can be encoded");
        let outcome = self.replica.update(self.canister, Principal::anonymous(), method, &argument);
        let reply = outcome.result.map_err(|reject| format!("{method} {count}: {reject}"))?;
        let answer = Decode!(&reply, Result<u64, String>).map_err(|error| format!("{method} {count}: {error}"))?;
        Ok((answer.map_err(|error| format!("{method} {count}: {error}"))?, outcome.cost))
    }
}
