//! The database as a whole: its structure checked, its image described and scanned.
use crate::codec::general::cut;
use crate::limits::{DAMAGED_PAGES_LISTED_MAX, PROBLEM_BYTES_MAX, PROBLEM_TEXT_BYTES_MAX, TABLE_NAMES_BYTES_MAX};
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

/// Checks table by table, then the database as a whole, until `instructions` are used up.
///
/// Tables come first: when the budget ends, what they have shown stands. The check of the whole database repeats
/// theirs and adds the free list and the pages that belong to nothing, so its findings take the place of theirs.
///
/// # Errors
/// The engine's, if not even the list of tables can be read.
pub fn integrity_check(
    reader: &Reader<'_>,
    transaction: u64,
    instructions: u64,
) -> Result<IntegrityReport, EngineError> {
    reader.limit_instructions(instructions);
    let mut tables = vec!["sqlite_schema".to_owned()];
    reader.query("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name", (), |row| {
        tables.push(row.text(0)?.to_owned());
        Ok::<_, EngineError>(ControlFlow::Continue(()))
    })?;

    let (mut problems, mut checked, mut unchecked) = (Problems::default(), Names::default(), Names::default());
    let mut complete = true;
    for table in tables {
        // SQLite would read such a name as a number of problems. The check of the whole database covers the table.
        let like_a_number = table.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first));
        if !complete || like_a_number {
            unchecked.add(table);
            continue;
        }
        match problems.check(reader, &format!("PRAGMA main.integrity_check('{}')", table.replace('\'', "''"))) {
            Ok(()) => checked.add(table),
            Err(EngineError::Budget { .. }) => {
                complete = false;
                unchecked.add(table);
            }
            Err(error) => {
                problems.add(format!("table {table} cannot be read: {error}"));
                checked.add(table);
            }
        }
    }
    if complete {
        let mut whole = Problems::default();
        match whole.check(reader, &format!("PRAGMA main.integrity_check({PROBLEMS_MAX})")) {
            Ok(()) => {
                problems = whole;
                unchecked.names.drain(..).for_each(|name| checked.add(name));
            }
            Err(EngineError::Budget { .. }) => complete = false,
            Err(error) => problems.add(format!("the database cannot be read as a whole: {error}")),
        }
    }
    if !complete {
        unchecked.add(PAGE_USE.to_owned());
    }
    Ok(IntegrityReport {
        complete,
        problems: problems.texts,
        problems_total: problems.total,
        checked: checked.names,
        unchecked: unchecked.names,
        transaction,
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
