//! The pages that show the results: what stands between their markers is made here, from `benches/results.json` alone.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::results::{Measurement, thousands};
use crate::subject::{BTREEMAP, IC_SQLITE_VFS, ICSQL, ICSQL_SQL, NAMES, SQLITE_HEAP};
use crate::{cases, chart, growth};

/// Cases of one kind, each with what is done.
struct Group {
    title: &'static str,
    cases: &'static [(&'static str, &'static str)],
}

/// In the order of the table.
const GROUPS: [Group; 4] = [
    Group {
        title: "A call to a key-value canister (whole message)",
        cases: &[
            ("kv_get", "one value"),
            ("kv_get_after_put", "one value, right after a put of another"),
            ("kv_get_after_upgrade", "one value, first after an upgrade"),
            ("kv_get_many_100", "100 values"),
            ("kv_put_existing", "another value for a key"),
            ("kv_put_new", "a new key"),
            ("kv_put_after_upgrade", "another value, first after an upgrade"),
            ("kv_list_100", "a page of 100 entries with values"),
            ("kv_write_100", "100 puts in one transaction"),
            ("kv_delete", "removes a key"),
        ],
    },
    Group {
        title: "A call after something else (whole message)",
        cases: &[
            ("seq_get_after_commit", "a get after 100 keys were written"),
            ("seq_get_after_upgrade", "a get after 100 keys were written and an upgrade"),
            ("seq_get_after_refused_write", "a get after a write that was refused"),
            ("seq_get_after_trapped_write", "a get after a put that trapped"),
            ("seq_get_after_schema_change", "a get after a table was made"),
            ("seq_get_beside_large_values", "a get of 100 bytes where every tenth value has 60,000"),
            ("upgrade", "an upgrade itself, after 100 keys were written"),
            ("seq_mix_95_5", "95 % gets, 5 % puts, mean of 200 calls"),
        ],
    },
    Group {
        title: "Other calls to icsql (whole message)",
        cases: &[
            ("sql_query_1", "a row by primary key"),
            ("sql_query_100", "100 rows by primary key, in order"),
            ("query_call_1", "the same row by a named query"),
            ("query_call_100", "the same 100 rows by a named query"),
            ("sql_execute_insert", "inserts a row"),
            ("sql_execute_update", "updates a row"),
            ("sql_execute_returning", "updates a row and answers it"),
            ("sql_batch_100", "inserts 100 rows, a statement each"),
            ("kv_get_entry", "a value with version, size, note"),
            ("kv_set_note", "a note for a key"),
            ("kv_put_idempotent", "a put with an idempotency key"),
            ("kv_put_repeated", "the same put again, which answers what was remembered"),
            ("db_meta", "versions, sizes, digest"),
        ],
    },
    Group {
        title: "Work inside one message (performance counter)",
        cases: &[
            ("insert_1000", "1,000 rows into an empty table"),
            ("insert_5000", "5,000 rows into an empty table"),
            ("reset_insert_1000", "deletes all rows, inserts 1,000"),
            ("append_1000", "1,000 rows behind 5,000"),
            ("upsert_1000", "1,000 upserts, half of them new"),
            ("update_1000", "1,000 updates by primary key"),
            ("update_5000", "5,000 updates by primary key"),
            ("update_20_commits", "20 updates, a commit each"),
            ("delete_1000", "1,000 deletes by primary key"),
            ("churn_100_cycles", "deletes 1,000 rows and inserts 1,000 others; mean of 100 cycles"),
            ("read_1", "1 row by primary key"),
            ("read_10", "10 rows, a query each"),
            ("read_100", "100 rows, a query each"),
            ("read_1000", "1,000 rows, a query each"),
            ("read_1_warm", "1 row, read before in the same message"),
            ("read_10_warm", "10 rows, read before in the same message"),
            ("read_100_warm", "100 rows, read before in the same message"),
            ("read_1000_warm", "1,000 rows, read before in the same message"),
            ("in_100", "100 keys in one `IN (…)`"),
            ("in_1000", "1,000 keys in one `IN (…)`"),
            ("in_100_warm", "100 keys in one `IN (…)`, asked before in the same message"),
            ("in_1000_warm", "1,000 keys in one `IN (…)`, asked before in the same message"),
            ("scan_100", "the first 100 rows in order, as text"),
            ("scan_1000", "the first 1,000 rows in order, as text"),
            ("scan_5000", "5,000 rows in order, as text"),
            ("scan_5000_warm", "5,000 rows in order, as text, read before in the same message"),
            ("scan_5000_lengths", "5,000 rows in order, only the lengths"),
            ("scan_5000_lengths_warm", "5,000 rows in order, only the lengths, read before in the same message"),
            ("count_5000", "`count(*)` of 5,000 rows"),
            ("count_5000_warm", "`count(*)` of 5,000 rows, counted before in the same message"),
            ("sort_5000", "5,000 rows `ORDER BY` a column without index"),
            ("join_2000", "2,000 rows joined with 100"),
            ("blob_write_64k", "writes a blob of 64 KiB"),
            ("blob_write_256k", "writes a blob of 256 KiB"),
            ("blob_read_64k", "reads a blob of 64 KiB"),
            ("blob_read_256k", "reads a blob of 256 KiB"),
            ("seq_read_after_refused_insert", "1 row, after ten inserts of which the last was refused"),
            ("seq_read_after_schema_change", "1 row, after a table was made"),
            ("seq_read_after_upgrade", "1 row, after an upgrade"),
        ],
    },
];

/// Names of the subjects as pages write them, with the versions that are measured.
const TITLES: [(&str, &str); 5] = [
    (ICSQL, "icsql"),
    (ICSQL_SQL, "icsql by SQL"),
    (IC_SQLITE_VFS, "ic-sqlite-vfs 2.1.0"),
    (BTREEMAP, "StableBTreeMap 0.7.2"),
    (SQLITE_HEAP, "icsql on the heap"),
];

/// The name of a subject as pages write it.
pub fn title(subject: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == subject).map_or(subject, |(_, title)| title)
}

/// A page, the name in the markers, and what stands between them.
type Block = (&'static str, &'static str, fn(&[Measurement]) -> String);

/// What pages show.
const BLOCKS: [Block; 4] = [
    ("README.md", "calls", calls),
    ("docs/performance.md", "all", table),
    ("docs/performance.md", "others", others),
    ("docs/performance.md", "growth", grown),
];

/// Where the chart is.
const CHART: &str = "docs/performance.svg";

/// Every page with its text as the results want it. What is not between markers stays.
///
/// # Errors
/// A page that cannot be read, or that has no markers.
pub fn pages(root: &Path, measured: &[Measurement]) -> Result<Vec<(PathBuf, String)>, String> {
    let mut pages: Vec<(PathBuf, String)> = Vec::new();
    for (file, name, block) in BLOCKS {
        let path = root.join(file);
        let index = match pages.iter().position(|(known, _)| *known == path) {
            Some(index) => index,
            None => {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                pages.push((path, text));
                pages.len() - 1
            }
        };
        let text = &mut pages[index].1;
        *text = between(text, name, &block(measured)).map_err(|error| format!("{file}: {error}"))?;
    }
    pages.push((root.join(CHART), chart::svg(measured)?));
    Ok(pages)
}

/// Brings every page up to date.
///
/// # Errors
/// As [`pages`]; a page that cannot be written.
pub fn write(root: &Path, measured: &[Measurement]) -> Result<(), String> {
    for (path, text) in pages(root, measured)? {
        std::fs::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    Ok(())
}

/// The text with `block` between the markers of this name.
fn between(text: &str, name: &str, block: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- figures: {name} -->\n"), format!("<!-- end of figures: {name} -->"));
    let missing = |marker: &str| format!("the line `{}` is missing", marker.trim_end());
    let start = text.find(&begin).ok_or_else(|| missing(&begin))? + begin.len();
    let stop = text[start..].find(&end).ok_or_else(|| missing(&end))? + start;
    Ok(format!("{}\n{}\n\n{}", &text[..start], block.trim_end(), &text[stop..]))
}

fn find<'m>(measured: &'m [Measurement], case: &str, subject: &str, rows: u32) -> Option<&'m Measurement> {
    measured.iter().find(|m| m.case == case && m.subject == subject && m.rows == rows)
}

/// The row counts of a case, ascending.
fn row_counts(measured: &[Measurement], case: &str) -> Vec<u32> {
    let mut rows: Vec<u32> = measured.iter().filter(|m| m.case == case).map(|m| m.rows).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Whether a subject is compared; the engine on the heap only says how far one could get.
fn compared(subject: &str) -> bool {
    subject != SQLITE_HEAP
}

/// The lowest figure of those that are compared, if there are several.
fn lowest(measured: &[Measurement], case: &str, rows: u32) -> Option<u64> {
    let figures = NAMES.iter().filter(|name| compared(name)).filter_map(|name| find(measured, case, name, rows));
    let figures: Vec<u64> = figures.map(|m| m.instructions).collect();
    if figures.len() > 1 { figures.into_iter().min() } else { None }
}

/// The README's table.
fn calls(measured: &[Measurement]) -> String {
    const LINES: [(&str, &str); 7] = [
        ("`kv_get`", "kv_get"),
        ("`kv_get`, first after an upgrade", "kv_get_after_upgrade"),
        ("`kv_get` right after a put", "kv_get_after_put"),
        ("`kv_put`, existing key", "kv_put_existing"),
        ("`kv_put`, new key", "kv_put_new"),
        ("`kv_put`, first after an upgrade", "kv_put_after_upgrade"),
        ("`kv_get_many`, 100 keys", "kv_get_many_100"),
    ];
    let subjects = [ICSQL, IC_SQLITE_VFS, BTREEMAP];
    let [few, many] = cases::ROWS;
    let figure = |case, subject, rows| {
        find(measured, case, subject, rows).map_or("-".to_string(), |m| thousands(m.instructions))
    };
    let mut out = format!("| case | {} |\n|---|---:|---:|---:|\n", subjects.map(title).join(" | "));
    for (line, case) in LINES {
        let _ = writeln!(out, "| {line} | {} |", subjects.map(|subject| figure(case, subject, few)).join(" | "));
    }
    let _ = write!(
        out,
        "\nWith {} rows a get costs {} and a put {}.",
        thousands(many.into()),
        figure("kv_get", ICSQL, many),
        figure("kv_put_existing", ICSQL, many)
    );
    out
}

/// Every case but growth.
fn table(measured: &[Measurement]) -> String {
    let titles: Vec<&str> = TITLES.iter().map(|(_, title)| *title).collect();
    let figures = "---:|".repeat(titles.len());
    let mut out = format!("| case | what it does | rows | {} |\n|---|---|---:|{figures}\n", titles.join(" | "));
    for group in &GROUPS {
        let _ = writeln!(out, "| **{}** | | |{}", group.title, " |".repeat(titles.len()));
        for (case, what) in group.cases {
            for rows in row_counts(measured, case) {
                let lowest = lowest(measured, case, rows);
                let _ = write!(out, "| `{case}` | {what} | {} |", thousands(rows.into()));
                for (subject, _) in TITLES {
                    let figure = find(measured, case, subject, rows).map(|m| m.instructions);
                    let text = figure.map_or(String::new(), thousands);
                    let _ = match figure.is_some() && figure == lowest && compared(subject) {
                        true => write!(out, " **{text}** |"),
                        false => write!(out, " {text} |"),
                    };
                }
                out.push('\n');
            }
        }
    }
    out
}

/// The cases in which another subject costs less than icsql.
fn others(measured: &[Measurement]) -> String {
    let mut out = String::new();
    for (case, _) in GROUPS.iter().flat_map(|group| group.cases) {
        for rows in row_counts(measured, case) {
            // By key a case can be cheaper than by SQL, which is what some subjects do.
            let ours = [ICSQL, ICSQL_SQL].into_iter().filter_map(|ours| find(measured, case, ours, rows));
            for (ours, subject) in ours.flat_map(|ours| NAMES.iter().map(move |name| (ours, name))) {
                if !compared(subject) || [ICSQL, ICSQL_SQL].contains(subject) {
                    continue;
                }
                let Some(theirs) = find(measured, case, subject, rows) else { continue };
                if theirs.instructions < ours.instructions {
                    let _ = write!(
                        out,
                        "- `{case}`, {} rows: {} {}, {} {}",
                        thousands(rows.into()),
                        title(subject),
                        thousands(theirs.instructions),
                        title(&ours.subject),
                        thousands(ours.instructions)
                    );
                    if theirs.instructions > 0 {
                        let times = ours.instructions as f64 / theirs.instructions as f64;
                        let _ = write!(out, " ({times:.2} times)");
                    }
                    out.push('\n');
                }
            }
        }
    }
    if out.is_empty() { "None of the cases.".to_string() } else { out }
}

/// Growth: a column for each number of rows, then the large database.
fn grown(measured: &[Measurement]) -> String {
    const LINES: [(&str, &str); 5] = [
        ("growth_kv_get", "one value"),
        ("growth_kv_put", "another value for a key"),
        ("growth_kv_list_100", "a page of 100 entries with values"),
        ("growth_sql_indexed", "a row of the table by an indexed column, with `sql_query`"),
        ("growth_upgrade", "an upgrade, in which the page cache is read"),
    ];
    const LARGE: [(&str, &str); 4] = [
        ("growth_large_upgrade", "an upgrade"),
        ("growth_large_kv_get", "the first get"),
        ("growth_large_sql_indexed", "the first SQL query, by an indexed column"),
        ("growth_large_kv_put", "the first put"),
    ];
    let counts = growth::ROWS.map(|rows| format!("{} rows", thousands(rows.into())));
    let mut out = format!("| case | what it does | {} |\n|---|---|---:|---:|---:|\n", counts.join(" | "));
    for (case, what) in LINES {
        let figure = |rows| find(measured, case, ICSQL, rows).map_or("-".to_string(), |m| thousands(m.instructions));
        let _ = writeln!(out, "| `{case}` | {what} | {} |", growth::ROWS.map(figure).join(" | "));
    }
    let sizes = growth::ROWS.map(|rows| {
        let found = find(measured, "growth_upgrade", ICSQL, rows).and_then(|m| m.image_bytes);
        found.map_or("-".to_string(), |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)))
    });
    let _ = writeln!(out, "| | size of the image | {} |", sizes.join(" | "));

    let large: Vec<_> = LARGE
        .iter()
        .filter_map(|(case, what)| measured.iter().find(|m| m.case == *case).map(|m| (*case, *what, m)))
        .collect();
    if let Some(bytes) = large.first().and_then(|(_, _, m)| m.image_bytes) {
        let _ = writeln!(out, "\nA database of {:.2} GiB:\n", bytes as f64 / f64::from(1 << 30));
        out.push_str("| case | what it does | instructions | time on the measuring machine |\n|---|---|---:|---:|\n");
        for (case, what, m) in large {
            let millis = m.millis.map_or("-".to_string(), |millis| format!("{} ms", thousands(millis)));
            let _ = writeln!(out, "| `{case}` | {what} | {} | {millis} |", thousands(m.instructions));
        }
    }
    out
}

/// Cases of these results that no page says anything about.
pub fn unexplained(measured: &[Measurement]) -> Vec<&str> {
    let known = |case: &str| {
        case.starts_with(growth::PREFIX) || GROUPS.iter().flat_map(|group| group.cases).any(|(name, _)| *name == case)
    };
    measured.iter().map(|m| m.case.as_str()).filter(|case| !known(case)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use icsql_replica::Cost;

    fn measurement(case: &str, subject: &str, instructions: u64) -> Measurement {
        Measurement::new(case, subject, 1_000, instructions, &Cost::default())
    }

    #[test]
    fn what_is_not_between_markers_stays() {
        let text = "before\n<!-- figures: a -->\nold\n<!-- end of figures: a -->\nafter\n";
        let new = between(text, "a", "new\n").unwrap();
        assert_eq!(new, "before\n<!-- figures: a -->\n\nnew\n\n<!-- end of figures: a -->\nafter\n");
        assert_eq!(between(&new, "a", "new").unwrap(), new);
        assert_eq!(between(text, "b", "new").unwrap_err(), "the line `<!-- figures: b -->` is missing");
        assert_eq!(
            between("<!-- figures: a -->\n", "a", "new").unwrap_err(),
            "the line `<!-- end of figures: a -->` is missing"
        );
    }

    #[test]
    fn a_case_that_another_wins_is_named() {
        let measured = [
            measurement("read_1", ICSQL, 3_000),
            measurement("read_1", BTREEMAP, 2_000),
            measurement("read_1", SQLITE_HEAP, 1_000),
            measurement("in_100", ICSQL, 5_000),
            measurement("in_100", IC_SQLITE_VFS, 6_000),
        ];
        let expected = "- `read_1`, 1,000 rows: StableBTreeMap 0.7.2 2,000, icsql 3,000 (1.50 times)\n";
        assert_eq!(others(&measured), expected);
        assert_eq!(others(&measured[3..]), "None of the cases.");
    }

    #[test]
    fn the_lowest_figure_is_bold_but_not_that_of_the_heap() {
        let measured = [
            measurement("read_1", ICSQL, 3_000),
            measurement("read_1", BTREEMAP, 2_000),
            measurement("read_1", SQLITE_HEAP, 1_000),
        ];
        let table = table(&measured);
        let line = table.lines().find(|line| line.starts_with("| `read_1`")).unwrap();
        assert_eq!(line, "| `read_1` | 1 row by primary key | 1,000 | 3,000 |  |  | **2,000** | 1,000 |");
    }
}
