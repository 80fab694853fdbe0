//! Bulk work on the engine and its relatives, in canisters that do nothing else (`benches/engine`, `benches/relatives`).
//!
//! The instructions of these cases are those that the work took by `performance_counter(0)`, since that is what others
//! publish for it: without arguments, reply, and the charge for dirty heap pages. The other figures are those of the
//! whole message.

use std::path::{Path, PathBuf};

use candid::Decode;
use icsql_bench_workload::{self as workload, sql};
use icsql_replica::{Config, Cost, Profile};

use crate::canister::{Deployed, encode};
use crate::results::{Measurement, Scope};
use crate::subject::{self, read_built};

/// How the canister on the engine is built.
pub const BUILT_BY: &str = "scripts/build --bench";

/// A canister that does the work.
pub struct Bulk {
    /// What its cases are filed under.
    pub subject: &'static str,
    wasm: PathBuf,
    built_by: &'static str,
    /// What it is installed with.
    argument: &'static [u8],
    sql: bool,
    stable: bool,
}

/// The subjects in the order of the table.
pub fn all(root: &Path) -> Vec<Bulk> {
    const FIXTURES: &str = "scripts/build-fixtures";
    let engine = root.join("target/engine-bench.wasm");
    let relative = |name: &str| root.join("benches/relatives/target/wasm32-unknown-unknown/release").join(name);
    vec![
        Bulk {
            subject: subject::ICSQL,
            wasm: engine.clone(),
            built_by: BUILT_BY,
            argument: b"",
            sql: true,
            stable: true,
        },
        Bulk {
            subject: subject::ICSQL_SQL,
            wasm: engine.clone(),
            built_by: BUILT_BY,
            argument: b"sql",
            sql: true,
            stable: true,
        },
        Bulk {
            subject: subject::IC_SQLITE_VFS,
            wasm: relative("sqlite_vfs_bench.wasm"),
            built_by: FIXTURES,
            argument: b"",
            sql: true,
            stable: true,
        },
        Bulk {
            subject: subject::SQLITE_HEAP,
            wasm: engine,
            built_by: BUILT_BY,
            argument: b"heap",
            sql: true,
            stable: false,
        },
        Bulk {
            subject: subject::BTREEMAP,
            wasm: relative("btreemap_bench.wasm"),
            built_by: FIXTURES,
            argument: b"",
            sql: false,
            stable: true,
        },
    ]
}

impl Bulk {
    /// Reads the Wasm.
    ///
    /// # Errors
    /// That it is missing, and what builds it.
    pub fn load(&self) -> Result<Vec<u8>, String> {
        read_built(&format!("bulk work on {}", self.subject), &self.wasm, self.built_by)
    }

    fn has(&self, case: &Case) -> bool {
        match case.on {
            // Only these can be done by key, and so in two ways.
            on if self.subject == subject::ICSQL_SQL => on == On::All && !case.name.starts_with("blob"),
            On::All => true,
            On::Sql => self.sql,
            On::Stable => self.sql && self.stable,
        }
    }
}

/// What is called: `work` as an update, `read` as a query; the kind of work with its two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Work(&'static str, u32, u32),
    Read(&'static str, u32, u32),
    /// Runs SQL as one transaction.
    Sql(&'static str),
    /// Fills the tables of items.
    Items(u32),
    Upgrade,
}

/// Which subjects can do a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    All,
    Sql,
    /// SQL on a database that outlives an upgrade.
    Stable,
}

struct Case {
    name: &'static str,
    /// Rows stored before it.
    rows: u32,
    on: On,
    /// What is done in an empty canister to get there.
    before: &'static [Step],
    /// The call that is measured.
    call: Step,
}

const fn case(name: &'static str, rows: u32, on: On, before: &'static [Step], call: Step) -> Case {
    Case { name, rows, on, before, call }
}

const ROWS_1000: &[Step] = &[Step::Work("insert", 0, 1_000)];
const ROWS_5000: &[Step] = &[Step::Work("insert", 0, 5_000)];
const BLOB_64: u32 = 64 * 1_024;
const BLOB_256: u32 = 256 * 1_024;

/// Cases that only read stand together if they begin with the same state.
const CASES: &[Case] = &[
    case("insert_1000", 0, On::All, &[], Step::Work("insert", 0, 1_000)),
    case("insert_5000", 0, On::All, &[], Step::Work("insert", 0, 5_000)),
    case("reset_insert_1000", 1_000, On::All, ROWS_1000, Step::Work("reset", 0, 1_000)),
    case("append_1000", 5_000, On::All, ROWS_5000, Step::Work("insert", 5_000, 1_000)),
    case("upsert_1000", 1_000, On::All, ROWS_1000, Step::Work("upsert", 500, 1_000)),
    case("update_1000", 1_000, On::All, ROWS_1000, Step::Work("update", 0, 1_000)),
    case("update_5000", 5_000, On::All, ROWS_5000, Step::Work("update", 0, 5_000)),
    case("update_20_commits", 5_000, On::All, ROWS_5000, Step::Work("update_each", 0, 20)),
    case("delete_1000", 5_000, On::All, ROWS_5000, Step::Work("delete", 0, 1_000)),
    case("read_1", 1_000, On::All, ROWS_1000, Step::Read("read", 1_000, 1)),
    case("read_10", 1_000, On::All, ROWS_1000, Step::Read("read", 1_000, 10)),
    case("read_100", 1_000, On::All, ROWS_1000, Step::Read("read", 1_000, 100)),
    case("read_1000", 1_000, On::All, ROWS_1000, Step::Read("read", 1_000, 1_000)),
    case("read_1_warm", 1_000, On::All, ROWS_1000, Step::Read("read_warm", 1_000, 1)),
    case("read_10_warm", 1_000, On::All, ROWS_1000, Step::Read("read_warm", 1_000, 10)),
    case("read_100_warm", 1_000, On::All, ROWS_1000, Step::Read("read_warm", 1_000, 100)),
    case("read_1000_warm", 1_000, On::All, ROWS_1000, Step::Read("read_warm", 1_000, 1_000)),
    case("in_100", 1_000, On::Sql, ROWS_1000, Step::Read("in", 1_000, 100)),
    case("in_1000", 1_000, On::Sql, ROWS_1000, Step::Read("in", 1_000, 1_000)),
    case("in_100_warm", 1_000, On::Sql, ROWS_1000, Step::Read("in_warm", 1_000, 100)),
    case("in_1000_warm", 1_000, On::Sql, ROWS_1000, Step::Read("in_warm", 1_000, 1_000)),
    case("scan_100", 5_000, On::All, ROWS_5000, Step::Read("scan", 5_000, 100)),
    case("scan_1000", 5_000, On::All, ROWS_5000, Step::Read("scan", 5_000, 1_000)),
    case("scan_5000", 5_000, On::All, ROWS_5000, Step::Read("scan", 5_000, 5_000)),
    case("scan_5000_warm", 5_000, On::All, ROWS_5000, Step::Read("scan_warm", 5_000, 5_000)),
    case("scan_5000_lengths", 5_000, On::Sql, ROWS_5000, Step::Read("scan_lengths", 5_000, 5_000)),
    case("scan_5000_lengths_warm", 5_000, On::Sql, ROWS_5000, Step::Read("scan_lengths_warm", 5_000, 5_000)),
    case("count_5000", 5_000, On::Sql, ROWS_5000, Step::Read("count", 5_000, 5_000)),
    case("count_5000_warm", 5_000, On::Sql, ROWS_5000, Step::Read("count_warm", 5_000, 5_000)),
    case("sort_5000", 5_000, On::Sql, &[Step::Items(5_000)], Step::Read("sort", 5_000, 5_000)),
    case("join_2000", 2_000, On::Sql, &[Step::Items(2_000)], Step::Read("join", 2_000, 2_000)),
    case("blob_write_64k", 0, On::All, &[], Step::Work("blob_write", 1, BLOB_64)),
    case("blob_write_256k", 0, On::All, &[], Step::Work("blob_write", 1, BLOB_256)),
    case("blob_read_64k", 1, On::All, &[Step::Work("blob_write", 1, BLOB_64)], Step::Read("blob_read", 1, BLOB_64)),
    case("blob_read_256k", 1, On::All, &[Step::Work("blob_write", 1, BLOB_256)], Step::Read("blob_read", 1, BLOB_256)),
    case(
        "seq_read_after_refused_insert",
        1_000,
        On::Sql,
        &[Step::Work("insert", 0, 1_000), Step::Work("insert_refused", 999, 10)],
        Step::Read("read", 1_000, 1),
    ),
    case(
        "seq_read_after_schema_change",
        1_000,
        On::Sql,
        &[Step::Work("insert", 0, 1_000), Step::Sql("CREATE TABLE added(id INTEGER PRIMARY KEY)")],
        Step::Read("read", 1_000, 1),
    ),
    case(
        "seq_read_after_upgrade",
        1_000,
        On::Stable,
        &[Step::Work("insert", 0, 1_000), Step::Upgrade],
        Step::Read("read", 1_000, 1),
    ),
];

/// The case of many messages: rows are deleted at one end and inserted at the other, as a queue does.
pub const CHURN: &str = "churn_100_cycles";
const CHURN_ROWS: u32 = 5_000;
const CHURN_CYCLE_ROWS: u32 = 1_000;
const CHURN_CYCLES: u32 = 100;
/// Cycles after which the image must not grow any more: by then its pages are as full as they get.
const CHURN_SETTLING_CYCLES: u32 = 25;

/// The names of the cases that are one message.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Measures every case that the subject can do.
///
/// # Errors
/// What went wrong in which case, in words.
pub fn run(bulk: &Bulk, scope: Scope) -> Result<Vec<Measurement>, String> {
    let wasm = bulk.load()?;
    let mut bench = Bench(Deployed::new(&wasm, bulk.argument, crate::replica_config())?);
    let mut measured = Vec::new();
    // What the canister holds; nothing before the first case and after one that has written.
    let mut state = None;
    for case in CASES.iter().filter(|case| bulk.has(case)) {
        let inner = |bench: &mut Bench| {
            if state != Some(case.before) {
                bench.prepare(case)?;
            }
            bench.step(case.call)
        };
        let (instructions, cost) = inner(&mut bench).map_err(|error| format!("{}: {error}", case.name))?;
        state = matches!(case.call, Step::Read(..)).then_some(case.before);
        measured.push(Measurement::new(case.name, bulk.subject, case.rows, instructions, &cost));
    }
    if scope.measures(CHURN, bulk.subject, CHURN_ROWS) {
        measured.push(bench.churn(bulk).map_err(|error| format!("{CHURN}: {error}"))?);
    }
    Ok(measured)
}

/// One case: the cost of the whole message, what the work itself took by the counter, and the message's profile if the
/// replica's `config` has profiles.
///
/// # Errors
/// What went wrong, in words.
pub fn run_one(bulk: &Bulk, wasm: &[u8], case: &str, config: Config) -> Result<(Cost, u64, Option<Profile>), String> {
    let case = CASES
        .iter()
        .find(|c| c.name == case && bulk.has(c))
        .ok_or_else(|| format!("{} has no case {case}", bulk.subject))?;
    let profiles = config.profile;
    let mut bench = Bench(Deployed::new(wasm, bulk.argument, config)?);
    bench.prepare(case)?;
    bench.0.replica.set_profiling(profiles);
    let (instructions, cost) = bench.step(case.call)?;
    // The message may have been inspected before.
    let profile = bench.0.take_profiles()?.pop();
    Ok((cost, instructions, profile))
}

struct Bench(Deployed);

impl Bench {
    /// Brings the canister into the state that a case begins with.
    fn prepare(&mut self, case: &Case) -> Result<(), String> {
        self.0.reinstall()?;
        case.before.iter().try_for_each(|step| self.step(*step).map(drop))
    }

    /// What the call answers, the instructions by the counter, and what the message cost.
    fn step(&mut self, step: Step) -> Result<(u64, Cost), String> {
        let (method, (name, first, count)) = match step {
            Step::Work(name, first, count) => ("work", (name, first, count)),
            Step::Read(name, first, count) => ("read", (name, first, count)),
            Step::Sql(sql) => return self.run_sql(sql),
            Step::Items(count) => return self.run_sql(&sql::fill_items(count)),
            Step::Upgrade => return self.0.upgrade().map(|cost| (0, cost)),
        };
        let (reply, cost) = self.0.call(method, &encode((name, first, count)))?;
        let answer = Decode!(&reply, Result<u64, String>).map_err(|error| format!("{name}: {error}"))?;
        Ok((answer.map_err(|error| format!("{name} {first} {count}: {error}"))?, cost))
    }

    fn run_sql(&mut self, sql: &str) -> Result<(u64, Cost), String> {
        let (reply, cost) = self.0.call("run", &encode((sql,)))?;
        let answer = Decode!(&reply, Result<(u64, u64), String>).map_err(|error| format!("run: {error}"))?;
        answer.map(|_| (0, cost)).map_err(|error| format!("{sql}: {error}"))
    }

    /// Bytes of the image.
    fn image_bytes(&mut self) -> Result<u64, String> {
        let reply = self.0.query("image", &encode(()))?;
        let answer = Decode!(&reply, Result<(u64, u64), String>).map_err(|error| format!("image: {error}"))?;
        answer.map(|(pages, page_bytes)| pages * page_bytes)
    }

    /// Deletes and inserts over and over, the row count staying the same. Answers the mean of a cycle and the size of the
    /// image, which must not grow once it has settled.
    fn churn(&mut self, bulk: &Bulk) -> Result<Measurement, String> {
        self.0.reinstall()?;
        self.step(Step::Work("insert", 0, CHURN_ROWS))?;
        let (mut instructions, mut total) = (0, Cost::default());
        let mut settled_bytes = 0;
        for cycle in 0..CHURN_CYCLES {
            let first = cycle * CHURN_CYCLE_ROWS;
            for step in [
                Step::Work("delete", first, CHURN_CYCLE_ROWS),
                Step::Work("insert", first + CHURN_ROWS, CHURN_CYCLE_ROWS),
            ] {
                let (counted, cost) = self.step(step)?;
                instructions += counted;
                total.add(&cost);
            }
            let bytes = self.image_bytes()?;
            if cycle < CHURN_SETTLING_CYCLES {
                settled_bytes = settled_bytes.max(bytes);
            } else if bytes > settled_bytes {
                return Err(format!("cycle {cycle}: the image has {bytes} bytes, it had {settled_bytes} at most"));
            }
        }
        // The last rows are those that must be there.
        self.step(Step::Read("scan", 0, CHURN_ROWS))?;
        let cycles = u64::from(CHURN_CYCLES);
        let mean = Cost {
            heap_pages: total.heap_pages / cycles,
            stable_pages: total.stable_pages / cycles,
            stable_bytes_read: total.stable_bytes_read / cycles,
            stable_bytes_written: total.stable_bytes_written / cycles,
            ..Cost::default()
        };
        let image_bytes = Some(self.image_bytes()?);
        let measured = Measurement::new(CHURN, bulk.subject, CHURN_ROWS, instructions / cycles, &mean);
        Ok(Measurement { image_bytes, ..measured })
    }
}

const _: () = assert!(CHURN_SETTLING_CYCLES < CHURN_CYCLES);
// The keys of the last cycle have the length of all.
const _: () = assert!(CHURN_ROWS + CHURN_CYCLES * CHURN_CYCLE_ROWS <= workload::ROWS_MAX);
