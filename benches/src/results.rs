//! The results: JSON, table, and what changed since they were committed.

use std::fmt::Write;
use std::path::Path;

use icsql_replica::Cost;
use serde::{Deserialize, Serialize};

use crate::subject::{ICSQL, NAMES};
use crate::{cases, engine, growth};

/// How far a figure may be off the committed one, in percent and either direction.
const DRIFT_PERCENT_MAX: f64 = 2.0;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What the drift check measures again.
    Check,
    /// All but growth.
    Full,
    /// What takes many rows.
    Growth,
}

impl Scope {
    /// Whether a measurement belongs to it. The check leaves to the full run what takes long: many rows, and churn but for
    /// icsql's.
    pub fn measures(self, case: &str, subject: &str, rows: u32) -> bool {
        let grows = case.starts_with(growth::PREFIX);
        match self {
            Self::Check => {
                let long = rows == cases::ROWS[1] || (case == engine::CHURN && subject != ICSQL);
                !grows && !long
            }
            Self::Full => !grows,
            Self::Growth => grows,
        }
    }

    /// Those of the committed results that this scope measures.
    pub fn of(self, committed: Vec<Measurement>) -> Vec<Measurement> {
        self.split(committed).0
    }

    fn split(self, committed: Vec<Measurement>) -> (Vec<Measurement>, Vec<Measurement>) {
        committed.into_iter().partition(|m| self.measures(&m.case, &m.subject, m.rows))
    }

    /// The committed results with those in place that a run of this scope has measured. Those of a subject that it has not
    /// measured stay.
    pub fn merge(self, committed: Vec<Measurement>, measured: Vec<Measurement>) -> Vec<Measurement> {
        let (mut ours, others) = self.split(committed);
        ours.retain(|old| measured.iter().all(|new| new.subject != old.subject));
        let mut merged = match self {
            Self::Growth => [others, measured].concat(),
            Self::Check | Self::Full => [measured, ours, others].concat(),
        };
        // By subject, so that a run of one subject leaves the order as it is.
        merged.sort_by_key(|m| NAMES.iter().position(|name| *name == m.subject));
        merged
    }
}

/// What one call cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The name of the case.
    pub case: String,
    /// The canister measured.
    pub subject: String,
    /// Rows stored before the call.
    pub rows: u32,
    /// Instructions of the whole message, dirty heap pages among them.
    pub instructions: u64,
    /// 4 KiB heap pages that the message left with other bytes than before it.
    pub heap_pages: u64,
    /// 4 KiB stable pages written.
    pub stable_pages: u64,
    /// Bytes read from stable memory.
    pub stable_bytes_read: u64,
    /// Bytes written to stable memory.
    pub stable_bytes_written: u64,
    /// Bytes of the image afterwards, in cases that are about its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_bytes: Option<u64>,
    /// Milliseconds on the machine that measured, where a person waits for them. They drift by nature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
}

impl Measurement {
    /// A case with what its message cost. `instructions` are those that the case reports.
    pub fn new(case: &str, subject: &str, rows: u32, instructions: u64, cost: &Cost) -> Self {
        Self {
            case: case.to_string(),
            subject: subject.to_string(),
            rows,
            instructions,
            heap_pages: cost.heap_pages,
            stable_pages: cost.stable_pages,
            stable_bytes_read: cost.stable_bytes_read,
            stable_bytes_written: cost.stable_bytes_written,
            image_bytes: None,
            millis: None,
        }
    }

    fn key(&self) -> (&str, &str, u32) {
        (&self.case, &self.subject, self.rows)
    }

    fn figures(&self) -> [(&'static str, u64); 6] {
        [
            ("instructions", self.instructions),
            ("heap_pages", self.heap_pages),
            ("stable_pages", self.stable_pages),
            ("stable_bytes_read", self.stable_bytes_read),
            ("stable_bytes_written", self.stable_bytes_written),
            ("image_bytes", self.image_bytes.unwrap_or(0)),
        ]
    }
}

/// An array with one measurement a line, so that a diff shows which changed.
pub fn to_json(measured: &[Measurement]) -> String {
    let lines: Vec<String> =
        measured.iter().map(|m| serde_json::to_string(m).expect("a measurement can be serialised")).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// Reads committed results.
pub fn load(path: &Path) -> Result<Vec<Measurement>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compares the instructions of the subjects, then lists every figure.
pub fn to_table(measured: &[Measurement]) -> String {
    let mut subjects: Vec<&str> = Vec::new();
    let mut lines: Vec<(&str, u32)> = Vec::new();
    for m in measured {
        if !subjects.contains(&m.subject.as_str()) {
            subjects.push(&m.subject);
        }
        if !lines.contains(&(&m.case, m.rows)) {
            lines.push((&m.case, m.rows));
        }
    }
    lines.sort_by_key(|&(_, rows)| rows);

    let mut out = String::from("Instructions of the whole message\n\n");
    let _ = write!(out, "| {:<22} | {:>7} |", "case", "rows");
    for subject in &subjects {
        let _ = write!(out, " {subject:>14} |");
    }
    let _ = write!(out, "\n|{:-<24}|{:->8}:|", "", "");
    for _ in &subjects {
        let _ = write!(out, "{:->15}:|", "");
    }
    out.push('\n');
    for (case, rows) in lines {
        let _ = write!(out, "| {case:<22} | {:>7} |", thousands(rows.into()));
        for subject in &subjects {
            let found = measured.iter().find(|m| m.key() == (case, subject, rows));
            let _ = write!(out, " {:>14} |", found.map_or("-".to_string(), |m| thousands(m.instructions)));
        }
        out.push('\n');
    }

    out.push_str("\nEvery figure\n\n");
    let columns = ["instructions", "heap pages", "stable pages", "bytes read", "bytes written", "image bytes"];
    let _ = write!(out, "| {:<13} | {:<22} | {:>7} |", "subject", "case", "rows");
    for column in columns {
        let _ = write!(out, " {column:>13} |");
    }
    let _ = write!(out, "\n|{:-<15}|{:-<24}|{:->8}:|", "", "", "");
    for _ in columns {
        let _ = write!(out, "{:->14}:|", "");
    }
    out.push('\n');
    for m in measured {
        let _ = write!(out, "| {:<13} | {:<22} | {:>7} |", m.subject, m.case, thousands(m.rows.into()));
        for (_, figure) in m.figures() {
            let _ = write!(out, " {:>13} |", thousands(figure));
        }
        out.push('\n');
    }
    out
}

/// A number with commas between the thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One line for each figure that is off by more than the limit, and for each measurement that is on one side only.
pub fn drifts(committed: &[Measurement], measured: &[Measurement]) -> Vec<String> {
    let mut drifts = Vec::new();
    for new in measured {
        let (case, subject, rows) = new.key();
        let Some(old) = committed.iter().find(|old| old.key() == new.key()) else {
            drifts.push(format!("{case}, {subject}, {rows} rows: not among the committed results"));
            continue;
        };
        for ((name, old), (_, new)) in old.figures().into_iter().zip(new.figures()) {
            let percent = (new as f64 - old as f64) / (old as f64) * 100.0;
            // From 0 to anything is an infinite drift; from 0 to 0 it is not a number and none.
            if percent.abs() > DRIFT_PERCENT_MAX {
                drifts.push(format!("{case}, {subject}, {rows} rows: {name} {old} -> {new} ({percent:+.1} %)"));
            }
        }
    }
    for old in committed {
        let (case, subject, rows) = old.key();
        if measured.iter().all(|new| new.key() != old.key()) {
            drifts.push(format!("{case}, {subject}, {rows} rows: committed, but no longer measured"));
        }
    }
    drifts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(case: &str, instructions: u64, heap_pages: u64) -> Measurement {
        Measurement::new(case, ICSQL, 2_000, instructions, &Cost { heap_pages, ..Cost::default() })
    }

    #[test]
    fn only_more_than_two_percent_is_a_drift() {
        let committed = [measurement("kv_get", 10_000, 0)];
        assert_eq!(drifts(&committed, &[measurement("kv_get", 10_200, 0)]), [""; 0]);
        assert_eq!(drifts(&committed, &[measurement("kv_get", 9_800, 0)]), [""; 0]);
        assert_eq!(
            drifts(&committed, &[measurement("kv_get", 10_201, 0)]),
            ["kv_get, icsql, 2000 rows: instructions 10000 -> 10201 (+2.0 %)"]
        );
        assert_eq!(
            drifts(&committed, &[measurement("kv_get", 9_000, 0)]),
            ["kv_get, icsql, 2000 rows: instructions 10000 -> 9000 (-10.0 %)"]
        );
        assert_eq!(
            drifts(&committed, &[measurement("kv_get", 10_000, 1)]),
            ["kv_get, icsql, 2000 rows: heap_pages 0 -> 1 (+inf %)"]
        );
    }

    #[test]
    fn cases_on_one_side_only_are_drifts() {
        let committed = [measurement("kv_get", 1, 0), measurement("kv_put_new", 1, 0)];
        let measured = [measurement("kv_get", 1, 0), measurement("kv_get_many_100", 1, 0)];
        assert_eq!(
            drifts(&committed, &measured),
            [
                "kv_get_many_100, icsql, 2000 rows: not among the committed results",
                "kv_put_new, icsql, 2000 rows: committed, but no longer measured"
            ]
        );
    }

    #[test]
    fn the_check_leaves_out_what_takes_long() {
        let many = Measurement { rows: 20_000, ..measurement("kv_get", 1, 0) };
        let churn = |subject: &str| Measurement { subject: subject.to_string(), ..measurement(engine::CHURN, 1, 0) };
        let committed = vec![measurement("kv_get", 1, 0), many, churn("btreemap"), measurement("growth_kv_get", 2, 0)];
        assert_eq!(Scope::Check.of(committed), [measurement("kv_get", 1, 0)]);
        assert_eq!(Scope::Check.of(vec![churn(ICSQL)]), [churn(ICSQL)]);
    }

    #[test]
    fn a_run_replaces_what_it_measures_and_nothing_else() {
        let committed =
            vec![measurement("kv_get", 1, 0), measurement("gone", 1, 0), measurement("growth_kv_get", 2, 0)];
        let full = Scope::Full.merge(committed.clone(), vec![measurement("kv_get", 3, 0)]);
        assert_eq!(full, [measurement("kv_get", 3, 0), measurement("growth_kv_get", 2, 0)]);
        let absent = Measurement { subject: "btreemap".to_string(), ..measurement("insert_1000", 5, 0) };
        let full = Scope::Full.merge(vec![absent.clone()], vec![measurement("kv_get", 3, 0)]);
        assert_eq!(full, [measurement("kv_get", 3, 0), absent]);
        let growth = Scope::Growth.merge(committed, vec![measurement("growth_kv_put", 4, 0)]);
        assert_eq!(
            growth,
            [measurement("kv_get", 1, 0), measurement("gone", 1, 0), measurement("growth_kv_put", 4, 0)]
        );
    }

    #[test]
    fn json_reads_back() {
        let measured = vec![measurement("kv_get", 12_345, 3), measurement("kv_put_new", 6, 7)];
        assert_eq!(serde_json::from_str::<Vec<Measurement>>(&to_json(&measured)).unwrap(), measured);
    }
}
