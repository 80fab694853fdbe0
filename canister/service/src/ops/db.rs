//! The database as a whole: its structure checked, its image described and scanned.
use crate::error::cut;
use crate::limits::{
    CHECK_INSTRUCTIONS_PER_PAGE, DAMAGED_PAGES_LISTED_MAX, PROBLEM_BYTES_MAX, PROBLEM_TEXT_BYTES_MAX,
    TABLE_NAMES_BYTES_MAX,
};
use core::ops::ControlFlow;
use icsql_engine::stable::verify::Progress;
use icsql_engine::{Error as EngineError, Meta, Reader, ValueRef};
use icsql_types::{Checksum, DamagedPage, IntegrityReport, ScanProgress};

/// Problems after which SQLite ends a check of the whole database. It collects them in the heap first.
const PROBLEMS_MAX: u32 = 100_000;
/// The name under which a report lists what no single table's check covers.
pub const PAGE_USE: &str = "page use";

/// What a check has found so far.
#[derive(Default)]
struct Problems {
    texts: Vec<String>,
    bytes: usize,
    total: u64,
}

impl Problems {
    fn add(&mut self, text: String) {
        self.total += 1;
        let text = cut(text, PROBLEM_TEXT_BYTES_MAX);
        if self.bytes + text.len() <= PROBLEM_BYTES_MAX {
            self.bytes += text.len();
            self.texts.push(text);
        }
    }

    /// Runs one of SQLite's checks. Each row holds one problem or several lines of them.
    fn check(&mut self, reader: &Reader<'_>, pragma: &str) -> Result<(), EngineError> {
        reader.query(pragma, (), |row| {
            // The words of SQLite quote what the database holds, which need not be UTF-8 when it is damaged.
            let words = match row.value(0)? {
                ValueRef::Text(words) => String::from_utf8_lossy(words).into_owned(),
                _ => String::new(),
            };
            for line in words.lines().filter(|line| *line != "ok" && !line.starts_with("*** in database")) {
                self.add(line.to_owned());
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// Names up to [`TABLE_NAMES_BYTES_MAX`]; a schema can hold more of them than a reply.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    bytes: usize,
}

impl Names {
    fn add(&mut self, name: String) {
        self.bytes = self.bytes.saturating_add(name.len());
        if self.bytes <= TABLE_NAMES_BYTES_MAX {
            self.names.push(name);
        }
    }
}

/// A check in progress.
struct Check<'r> {
    reader: &'r Reader<'r>,
    problems: Problems,
    checked: Names,
    unchecked: Names,
}

impl Check<'_> {
    /// Checks everything at once, the free list and the pages that belong to nothing included. `false`: the budget ended
    /// first. What was found until then counts for nothing: SQLite hands it out at the end.
    fn whole(&mut self) -> bool {
        let mut problems = Problems::default();
        match problems.check(self.reader, &format!("PRAGMA main.integrity_check({PROBLEMS_MAX})")) {
            Err(EngineError::Budget(_)) => return false,
            Err(error) => self.problems.add(format!("the database cannot be read as a whole: {error}")),
            // It repeats what the tables' checks have found.
            Ok(()) => self.problems = problems,
        }
        true
    }

    /// Checks the tables one by one. `false`: the budget ended before the last.
    fn each(&mut self, tables: Vec<String>) -> bool {
        let mut tables = tables.into_iter();
        for table in tables.by_ref() {
            // SQLite would read such a name as a number of problems. The check of the whole covers the table.
            if table.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first)) {
                self.unchecked.add(table);
                continue;
            }
            let pragma = format!("PRAGMA main.integrity_check('{}')", table.replace('\'', "''"));
            match self.problems.check(self.reader, &pragma) {
                Ok(()) => self.checked.add(table),
                Err(EngineError::Budget(_)) => {
                    self.unchecked.add(table);
                    tables.for_each(|rest| self.unchecked.add(rest));
                    return false;
                }
                Err(error) => {
                    self.problems.add(format!("table {table} cannot be read: {error}"));
                    self.checked.add(table);
                }
            }
        }
        true
    }
}

/// Checks the structure of the database that `meta` describes, within the `instructions` of the call's budget.
///
/// A small database is checked as a whole. A larger one is checked table by table, so that what was done when the budget
/// ends stands, and then as a whole if there is budget left.
///
/// # Errors
/// The engine's, if not even the list of tables can be read.
pub fn integrity_check(reader: &Reader<'_>, meta: &Meta, instructions: u64) -> Result<IntegrityReport, EngineError> {
    let mut tables = vec!["sqlite_schema".to_owned()];
    reader.query("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name", (), |row| {
        tables.push(row.text(0)?.to_owned());
        Ok::<_, EngineError>(ControlFlow::Continue(()))
    })?;

    let mut check =
        Check { reader, problems: Problems::default(), checked: Names::default(), unchecked: Names::default() };
    let small = u64::from(meta.image_pages).saturating_mul(CHECK_INSTRUCTIONS_PER_PAGE) <= instructions;
    let complete = if small && check.whole() {
        tables.into_iter().for_each(|table| check.checked.add(table));
        true
    } else if check.each(tables) && check.whole() {
        for table in core::mem::take(&mut check.unchecked.names) {
            check.checked.add(table);
        }
        true
    } else {
        check.unchecked.add(PAGE_USE.to_owned());
        false
    };
    Ok(IntegrityReport {
        complete,
        problems: check.problems.texts,
        problems_total: check.problems.total,
        checked: check.checked.names,
        unchecked: check.unchecked.names,
        transaction: meta.transaction_id,
    })
}

/// A digest or page hash as the interface shows it.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The digest and what it is the digest of.
pub fn checksum(meta: &Meta) -> Checksum {
    Checksum {
        digest: hex(meta.digest),
        transaction: meta.transaction_id,
        pages: meta.image_pages.into(),
        page_size: meta.page_bytes,
        image_bytes: meta.image_bytes,
    }
}

/// A scan's progress in the interface's terms.
pub fn progress(progress: Progress) -> ScanProgress {
    let damaged = progress.damaged.iter().take(DAMAGED_PAGES_LISTED_MAX).map(|page| DamagedPage {
        page: page.page_number,
        expected: hex(page.expected),
        found: hex(page.found),
    });
    ScanProgress {
        pages_done: progress.pages_done.into(),
        pages_total: progress.pages_total.into(),
        complete: progress.complete,
        damaged: damaged.collect(),
        damaged_total: progress.damaged_total,
        digest_matches: progress.digest_matches,
    }
}
