//! How SQLite would run a statement.
use crate::error::Failure;
use core::ops::ControlFlow;
use icsql_engine::{Reader, ValueRef};
use icsql_types::Plan;
use std::collections::BTreeSet;

/// A line of the plan.
struct Line {
    id: i64,
    parent: i64,
    text: String,
}

/// The plan of a statement. It is not run.
///
/// # Errors
/// SQLite's; what the reader's policy refuses.
pub fn explain(reader: &Reader<'_>, sql: &str) -> Result<Plan, Failure> {
    let description = reader.describe(sql)?;
    let explain = format!("EXPLAIN QUERY PLAN {sql}");
    let parameters = vec![ValueRef::Null; description.parameters.len()];
    let mut lines = Vec::new();
    reader.query(&explain, parameters.as_slice(), |row| {
        lines.push(Line { id: row.integer(0)?, parent: row.integer(1)?, text: row.text(3)?.to_owned() });
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    let mut drawn = Vec::with_capacity(lines.len());
    draw(&lines, 0, "", &mut drawn);
    Ok(Plan { full_scans: full_scans(&lines), lines: drawn, read_only: description.read_only })
}

/// Draws what is below the line `parent`. A line's id is above that of its parent, so that this ends.
fn draw(lines: &[Line], parent: i64, indent: &str, drawn: &mut Vec<String>) {
    let mut below = lines.iter().filter(|line| line.parent == parent && line.id > parent).peekable();
    while let Some(line) = below.next() {
        let (branch, deeper) = if below.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        drawn.push(format!("{indent}{branch}{}", line.text));
        draw(lines, line.id, &format!("{indent}{deeper}"), drawn);
    }
}

/// The tables, by the name that the statement has for them, of which every row is looked at. Rows that come from a
/// subquery or from a function are no table's.
fn full_scans(lines: &[Line]) -> Vec<String> {
    let made: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.text.strip_prefix("CO-ROUTINE ").or_else(|| line.text.strip_prefix("MATERIALIZE ")))
        .collect();
    let mut scans = Vec::new();
    for line in lines {
        let text = line.text.as_str();
        let scanned = match text.strip_prefix("SCAN ") {
            Some(rest)
                if ["CONSTANT ROW", "CONSTANT ROWS", "-ROW VALUES CLAUSE"].iter().any(|end| rest.ends_with(end)) =>
            {
                continue;
            }
            // Index 0 of FTS5 without a constraint is a walk over all documents.
            Some(rest) => match rest.split_once(" VIRTUAL TABLE INDEX ") {
                Some((name, "0:")) => name,
                Some(_) => continue,
                None => rest.split_once(" USING ").map_or(rest, |(name, _)| name),
            },
            None => match text.strip_prefix("SEARCH ") {
                // An index that is made for this statement looks at every row.
                Some(rest) if rest.contains(" USING AUTOMATIC ") => rest.split_once(' ').map_or(rest, |(name, _)| name),
                // A largest or smallest value without an index. (That of the rowid would not be one.)
                Some(rest) if !rest.contains(" USING ") && !rest.contains(" VIRTUAL TABLE ") => rest,
                _ => continue,
            },
        };
        if !made.contains(scanned) && !scanned.starts_with('(') && !scans.iter().any(|known| known == scanned) {
            scans.push(scanned.to_owned());
        }
    }
    scans
}
