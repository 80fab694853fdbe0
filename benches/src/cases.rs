//! The cases: what is called, in which state of the canister.
//!
//! All calls are made by the controller and replicated, queries too: a query method that is called as an update is
//! charged like one, save for dirty heap pages. A case is the median, by instructions, of calls with keys that are
//! spread over the key range, so that neither a lucky place in a page nor a split decides.

use icsql_replica::{Config, Cost, Profile};

use crate::canister::Deployed;
use crate::data::{self, SAMPLES, sample_row};
use crate::results::Measurement;
use crate::subject::{ICSQL, Subject};

/// The row counts of a full run; the drift check measures the first again.
pub const ROWS: [u32; 2] = [2_000, 20_000];

/// Keys of a call about many.
pub(crate) const KEYS_MANY: u32 = 100;

/// A canister with the data in it.
pub(crate) struct Bench<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) canister: Deployed,
    /// How often each row was put after the first time; the revision tells the value stored.
    revisions: Vec<u32>,
}

/// Makes one sample of a case.
pub(crate) type Measure = fn(&mut Bench, u32) -> Result<Cost, String>;

/// The cases in the order in which they run on one canister: each finds what the ones before it left.
const CASES: [(&str, Measure); 7] = [
    ("kv_get", |bench, sample| bench.get(sample_row(bench.rows(), sample))),
    ("kv_get_many_100", |bench, sample| bench.get_many(sample)),
    ("kv_get_after_put", |bench, sample| {
        bench.put(sample_row(bench.rows(), sample))?;
        bench.get(sample_row(bench.rows(), (sample + SAMPLES / 2) % SAMPLES))
    }),
    ("kv_put_existing", |bench, sample| bench.put(sample_row(bench.rows(), sample))),
    ("kv_get_after_upgrade", |bench, sample| {
        bench.upgrade()?;
        bench.get(sample_row(bench.rows(), sample))
    }),
    ("kv_put_after_upgrade", |bench, sample| {
        bench.upgrade()?;
        bench.put(sample_row(bench.rows(), sample))
    }),
    ("kv_put_new", |bench, _| bench.put(bench.rows())),
];

/// What the relatives have no method for; on the same canister, after the others.
const OWN_CASES: [(&str, Measure); 3] = [
    ("kv_list_100", |bench, sample| bench.list(sample)),
    ("kv_write_100", |bench, sample| bench.write(sample)),
    // The last: each sample leaves a row less.
    ("kv_delete", |bench, sample| bench.delete(sample_row(bench.rows(), sample))),
];

/// The names of the cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().chain(&OWN_CASES).map(|(case, _)| *case)
}

fn cases(subject: &Subject) -> impl Iterator<Item = (&'static str, Measure)> {
    let own = if subject.name == ICSQL { OWN_CASES.as_slice() } else { &[] };
    CASES.iter().chain(own).copied()
}

/// Loads the data into a new canister and measures every case.
pub fn run(subject: &Subject, wasm: &[u8], rows: u32) -> Result<Vec<Measurement>, String> {
    let mut bench = Bench::new(subject, wasm, rows, crate::replica_config())?;
    let mut measured = Vec::new();
    for (case, measure) in cases(subject) {
        let samples = bench.samples(case, measure)?;
        let (_, median) = samples[samples.len() / 2];
        measured.push(Measurement::new(case, subject.name, rows, median.instructions, &median));
    }
    Ok(measured)
}

/// The call that [`run`] reports for this case: its cost, and its profile if the replica's `config` has profiles.
pub fn run_one(
    subject: &Subject,
    wasm: &[u8],
    rows: u32,
    case: &str,
    config: Config,
) -> Result<(Cost, Option<Profile>), String> {
    let profiles = config.profile;
    let mut bench = Bench::new(subject, wasm, rows, config)?;
    for (name, measure) in cases(subject) {
        bench.canister.replica.set_profiling(profiles && name == case);
        let samples = bench.samples(name, measure)?;
        if name == case {
            let (sample, cost) = samples[samples.len() / 2];
            if !profiles {
                return Ok((cost, None));
            }
            let mut profiles = bench.canister.take_profiles()?;
            // Every sample ends with the call that is measured.
            let per_sample = profiles.len() / samples.len();
            let profile = profiles.swap_remove(per_sample * (sample as usize + 1) - 1);
            return match profile.cost == cost {
                true => Ok((cost, Some(profile))),
                false => Err(format!("{case}: the call cost {cost:?}, its profile {:?}", profile.cost)),
            };
        }
    }
    Err(format!("there is no case {case}"))
}

impl<'a> Bench<'a> {
    pub(crate) fn new(subject: &'a Subject, wasm: &[u8], rows: u32, config: Config) -> Result<Self, String> {
        let no_argument = candid::encode_args(()).expect("nothing can be encoded");
        let canister = Deployed::new(wasm, &no_argument, config)?;
        let mut bench = Bench { subject, canister, revisions: Vec::new() };
        for row in 0..rows {
            bench.put(row).map_err(|error| format!("loading row {row}: {error}"))?;
        }
        Ok(bench)
    }

    /// Costs of the samples of a case with their numbers, cheapest first.
    pub(crate) fn samples(&mut self, case: &str, measure: Measure) -> Result<Vec<(u32, Cost)>, String> {
        let mut samples = Vec::new();
        for sample in 0..SAMPLES {
            let cost = measure(self, sample).map_err(|error| format!("{case}, {} rows: {error}", self.rows()))?;
            samples.push((sample, cost));
        }
        samples.sort_by_key(|(_, cost)| cost.instructions);
        Ok(samples)
    }

    /// Puts a value that differs from the stored one; a row that is not stored yet must be the next one.
    pub(crate) fn put(&mut self, row: u32) -> Result<Cost, String> {
        let index = row as usize;
        if index == self.revisions.len() {
            self.revisions.push(0);
        } else {
            self.revisions[index] += 1;
        }
        let argument = Subject::put_argument(&data::key(row), &self.value(row));
        let (reply, cost) = self.canister.call("kv_put", &argument)?;
        Subject::check_put(&reply).map_err(|error| format!("kv_put: {error}"))?;
        Ok(cost)
    }

    pub(crate) fn get(&mut self, row: u32) -> Result<Cost, String> {
        let (reply, cost) = self.canister.call("kv_get", &Subject::get_argument(&data::key(row)))?;
        let value = Subject::decode_get(&reply).map_err(|error| format!("kv_get: {error}"))?;
        if value != Some(self.value(row)) {
            return Err(format!("kv_get of row {row} answered {value:?}"));
        }
        Ok(cost)
    }

    /// Gets keys that are spread over the key range.
    fn get_many(&mut self, sample: u32) -> Result<Cost, String> {
        // An odd step, since in a B-tree that was loaded in order every sixth key or so is nearer to the root.
        let step = (self.rows() / KEYS_MANY - 1) | 1;
        let rows: Vec<u32> = (0..KEYS_MANY).map(|i| i * step + sample % step).collect();
        let keys: Vec<String> = rows.iter().map(|&row| data::key(row)).collect();
        let (reply, cost) = self.canister.call("kv_get_many", &Subject::get_many_argument(&keys))?;
        let values = self.subject.decode_get_many(&reply).map_err(|error| format!("kv_get_many: {error}"))?;
        if !values.iter().eq(rows.iter().map(|&row| Some(self.value(row))).collect::<Vec<_>>().iter()) {
            return Err("kv_get_many answered other values".to_string());
        }
        Ok(cost)
    }

    /// Lists entries with their values from the sample's row on.
    fn list(&mut self, sample: u32) -> Result<Cost, String> {
        let first = sample_row(self.rows() - KEYS_MANY, sample);
        let (reply, cost) = self.canister.call("kv_list", &Subject::list_argument(&data::key(first), KEYS_MANY))?;
        let values = Subject::decode_list(&reply).map_err(|error| format!("kv_list: {error}"))?;
        if !values.into_iter().eq((first..first + KEYS_MANY).map(|row| (data::key(row), self.value(row)))) {
            return Err("kv_list answered other entries".to_string());
        }
        Ok(cost)
    }

    /// Puts other values in place of those of neighbouring rows, in one call.
    pub(crate) fn write(&mut self, sample: u32) -> Result<Cost, String> {
        let first = sample_row(self.rows() - KEYS_MANY, sample);
        let rows: Vec<u32> = (first..first + KEYS_MANY).collect();
        for &row in &rows {
            self.revisions[row as usize] += 1;
        }
        let puts: Vec<_> = rows.iter().map(|&row| (data::key(row), self.value(row))).collect();
        let (reply, cost) = self.canister.call("kv_write", &Subject::write_argument(puts))?;
        Subject::check_put(&reply).map_err(|error| format!("kv_write: {error}"))?;
        Ok(cost)
    }

    fn delete(&mut self, row: u32) -> Result<Cost, String> {
        let (reply, cost) = self.canister.call("kv_delete", &Subject::get_argument(&data::key(row)))?;
        match Subject::decode_delete(&reply).map_err(|error| format!("kv_delete: {error}"))? {
            1 => Ok(cost),
            deleted => Err(format!("kv_delete of row {row} deleted {deleted}")),
        }
    }

    pub(crate) fn upgrade(&mut self) -> Result<(), String> {
        self.canister.upgrade().map(drop)
    }

    pub(crate) fn rows(&self) -> u32 {
        self.revisions.len() as u32
    }

    pub(crate) fn value(&self, row: u32) -> String {
        data::value(row, self.revisions[row as usize])
    }
}
