//! What a call costs after others: a get behind a commit, an upgrade, a write that failed; and calls as they come mixed.
//!
//! A get by its key is measured on a canister with the rows of the drift check; each sample first does what the case is
//! about. What a subject has no method for is left out.

use candid::{Decode, Principal, Reserved};
use icsql_replica::{Cost, Fault};
use icsql_types::method::{KV_WRITE, SQL_EXECUTE};
use icsql_types::{Condition, KvOperation, KvValue, Statement};

use crate::canister::{controller, encode};
use crate::cases::{self, Bench, KEYS_MANY, Measure};
use crate::data::{self, SAMPLES, sample_row};
use crate::results::Measurement;
use crate::subject::{BTREEMAP, IC_SQLITE_VFS, ICSQL, Subject};

/// The sequences. A write that fails follows one that succeeds, so that what an upgrade has left to do is done before.
const CASES: [(&str, Measure); 6] = [
    ("seq_get_after_commit", |bench, sample| {
        bench.commit_many(sample)?;
        bench.get(far_row(bench, sample))
    }),
    ("seq_get_after_upgrade", |bench, sample| {
        bench.commit_many(sample)?;
        bench.upgrade()?;
        bench.get(far_row(bench, sample))
    }),
    ("upgrade", |bench, sample| {
        bench.commit_many(sample)?;
        bench.canister.upgrade()
    }),
    ("seq_get_after_refused_write", |bench, sample| {
        bench.put(sample_row(bench.rows(), sample))?;
        bench.refuse(sample_row(bench.rows(), sample))?;
        bench.get(far_row(bench, sample))
    }),
    ("seq_get_after_trapped_write", |bench, sample| {
        bench.put(sample_row(bench.rows(), sample))?;
        bench.trap(sample_row(bench.rows(), sample))?;
        bench.get(far_row(bench, sample))
    }),
    ("seq_get_after_schema_change", |bench, sample| {
        let sql = format!("CREATE TABLE added_{sample}(id INTEGER PRIMARY KEY)");
        bench.canister.own(&SQL_EXECUTE, (Statement { sql, params: None }, None))?;
        bench.get(far_row(bench, sample))
    }),
];

/// The case that only icsql has a method for.
const SCHEMA_CHANGE: &str = "seq_get_after_schema_change";

/// Calls as they come: one in twenty is a put.
const MIX: &str = "seq_mix_95_5";
const MIX_CALLS: u32 = 200;
const MIX_PUT_EVERY: u32 = 20;

/// A small value among large ones, of which the relatives take up to 64 KiB.
const LARGE: &str = "seq_get_beside_large_values";
const LARGE_BYTES: usize = 60_000;
const LARGE_EVERY: u32 = 10;

/// A row away from those that the sample has written.
fn far_row(bench: &Bench, sample: u32) -> u32 {
    sample_row(bench.rows(), (sample + SAMPLES / 2) % SAMPLES)
}

/// Loads the data into a new canister and measures every sequence.
///
/// # Errors
/// What went wrong in which case, in words.
pub fn run(subject: &Subject, wasm: &[u8]) -> Result<Vec<Measurement>, String> {
    let rows = cases::ROWS[0];
    let mut bench = Bench::new(subject, wasm, rows, crate::replica_config())?;
    let mut measured = Vec::new();
    for (case, measure) in CASES {
        if case == SCHEMA_CHANGE && subject.name != ICSQL {
            continue;
        }
        let samples = bench.samples(case, measure)?;
        let (_, median) = samples[samples.len() / 2];
        measured.push(Measurement::new(case, subject.name, rows, median.instructions, &median));
    }
    let mean = bench.mix().map_err(|error| format!("{MIX}: {error}"))?;
    measured.push(Measurement::new(MIX, subject.name, rows, mean.instructions, &mean));

    bench.put_large().map_err(|error| format!("{LARGE}: {error}"))?;
    let small = |bench: &mut Bench, sample| {
        let row = sample_row(bench.rows(), sample);
        bench.get(row - row % LARGE_EVERY + LARGE_EVERY / 2)
    };
    let samples = bench.samples(LARGE, small)?;
    let (_, median) = samples[samples.len() / 2];
    measured.push(Measurement::new(LARGE, subject.name, rows, median.instructions, &median));
    Ok(measured)
}

impl Bench<'_> {
    /// Puts other values in place of those of neighbouring rows: in one transaction where there is one.
    fn commit_many(&mut self, sample: u32) -> Result<(), String> {
        if self.subject.name == ICSQL {
            return self.write(sample).map(drop);
        }
        let first = sample_row(self.rows() - KEYS_MANY, sample);
        (first..first + KEYS_MANY).try_for_each(|row| self.put(row).map(drop))
    }

    /// A write that the canister answers with an error. icsql undoes a transaction; the others refuse before they have begun,
    /// as they have no other way to refuse: ic-sqlite-vfs a value that is too large, the map a caller without the right.
    fn refuse(&mut self, row: u32) -> Result<(), String> {
        let key = data::key(row);
        let (who, method, argument) = match self.subject.name {
            ICSQL => {
                let put = |condition| KvOperation::Put {
                    key: key.clone(),
                    value: KvValue::Text("not to stay".to_string()),
                    expires_at: None,
                    condition,
                };
                let operations = vec![put(None), put(Some(Condition::Absent))];
                (controller(), KV_WRITE.name, encode((operations, None::<icsql_types::WriteOptions>)))
            }
            IC_SQLITE_VFS => {
                let value = "x".repeat(64 * 1_024 + 1);
                (controller(), "kv_put", Subject::put_argument(&key, &value))
            }
            BTREEMAP => (Principal::anonymous(), "kv_put", Subject::put_argument(&key, "not to stay")),
            other => return Err(format!("no write is known that {other} refuses")),
        };
        let (reply, _) = self.canister.call_as(who, method, &argument)?;
        match Decode!(&reply, Result<Reserved, Reserved>) {
            Ok(Err(Reserved)) => Ok(()),
            Ok(Ok(_)) => Err(format!("{method} was not refused")),
            Err(error) => Err(format!("{method}: the reply has another shape: {error}")),
        }
    }

    /// A put that traps at its first write to stable memory.
    fn trap(&mut self, row: u32) -> Result<(), String> {
        self.canister.replica.set_fault(Fault { fail_stable_write: Some(1), ..Fault::default() });
        let outcome = self.canister.call("kv_put", &Subject::put_argument(&data::key(row), "not to stay"));
        self.canister.replica.clear_fault();
        match outcome {
            Err(_) => Ok(()),
            Ok(_) => Err("the put did not trap".to_string()),
        }
    }

    /// Puts large values in place of every tenth; those rows are not asked for any more.
    fn put_large(&mut self) -> Result<(), String> {
        for row in (0..self.rows()).step_by(LARGE_EVERY as usize) {
            let argument = Subject::put_argument(&data::key(row), &"large ".repeat(LARGE_BYTES / 6));
            let (reply, _) = self.canister.call("kv_put", &argument)?;
            Subject::check_put(&reply)?;
        }
        Ok(())
    }

    /// The mean of gets and puts of rows in no order.
    fn mix(&mut self) -> Result<Cost, String> {
        let mut total = Cost::default();
        // A linear congruential generator: the same rows in every run.
        let mut state = 0x9E37_79B9_u32;
        for call in 0..MIX_CALLS {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let row = (state >> 8) % self.rows();
            let cost = match call % MIX_PUT_EVERY {
                0 => self.put(row)?,
                _ => self.get(row)?,
            };
            total.add(&cost);
        }
        let calls = u64::from(MIX_CALLS);
        Ok(Cost {
            instructions: total.instructions / calls,
            heap_pages: total.heap_pages / calls,
            stable_pages: total.stable_pages / calls,
            stable_bytes_read: total.stable_bytes_read / calls,
            stable_bytes_written: total.stable_bytes_written / calls,
            ..Cost::default()
        })
    }
}
