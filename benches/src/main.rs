//! Measures what calls cost in IC instructions, on icsql and on its relatives, with the same data in one run.
//!
//! `cargo run -p icsql-benches` runs everything but growth, prints a table, writes `benches/results.json`, and brings
//! `docs/performance.md` and other pages up to date. The canisters must have been built before: `scripts/build --bench`
//! makes icsql's, `scripts/build-fixtures` the others.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use icsql_benches::results::{self, Measurement, Scope};
use icsql_benches::subject::{self, ICSQL};
use icsql_benches::{cases, data, engine, growth, report, sequences, service};

const USAGE: &str = "\
Usage: cargo run -p icsql-benches -- [OPTIONS]

Without options: measures everything but growth, prints a table, writes benches/results.json, and brings the figures in
docs/performance.md, docs/performance.svg and README.md up to date.

Options:
  --check            measure what does not take long again and fail if a figure is more than 2 % off the committed one
  --growth           measure growth instead (up to minutes), and write its rows and the pages
  --report           measure nothing; only bring the pages up to date with the committed results
  --rows N[,N]       only calls to key-value stores, with these row counts; nothing is written
  --subject NAME     only this subject (icsql, icsql-sql, ic-sqlite-vfs, sqlite-heap, btreemap); may be repeated; the
                     committed figures of the others stay
  --json             print the results as JSON in place of the table
";

struct Options {
    check: bool,
    growth: bool,
    report: bool,
    json: bool,
    rows: Option<Vec<u32>>,
    subjects: Vec<String>,
}

fn parse_options() -> Result<Options, String> {
    let mut options =
        Options { check: false, growth: false, report: false, json: false, rows: None, subjects: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--check" => options.check = true,
            "--growth" => options.growth = true,
            "--report" => options.report = true,
            "--json" => options.json = true,
            "--rows" => {
                let list = value()?;
                let rows = list.split(',').map(|n| n.parse().ok().filter(|n| data::ROWS_RANGE.contains(n)));
                options.rows = Some(rows.collect::<Option<_>>().ok_or(format!(
                    "--rows {list}: expected row counts from {} to {}",
                    data::ROWS_RANGE.start(),
                    data::ROWS_RANGE.end()
                ))?);
            }
            "--subject" => {
                let name = value()?;
                if !subject::NAMES.contains(&name.as_str()) {
                    return Err(format!("--subject {name}: expected one of {}", subject::NAMES.join(", ")));
                }
                options.subjects.push(name);
            }
            other => return Err(format!("unknown argument {other}\n\n{USAGE}")),
        }
    }
    if options.rows.is_some() && options.check {
        return Err("--check has its own row counts: leave out --rows".to_string());
    }
    let modes = [options.check || options.rows.is_some(), options.growth, options.report];
    if modes.into_iter().filter(|mode| *mode).count() > 1 {
        return Err("--check, --growth, --report and --rows exclude each other".to_string());
    }
    if options.growth && options.subjects.iter().any(|name| name != ICSQL) {
        return Err(format!("--growth measures {ICSQL} alone"));
    }
    Ok(options)
}

fn run() -> Result<bool, String> {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        print!("{USAGE}");
        return Ok(true);
    }
    let options = parse_options()?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let committed = root.join("benches/results.json");
    if options.report {
        report::write(&root, &results::load(&committed)?)?;
        return Ok(true);
    }

    let scope = match (options.check, options.growth) {
        (true, _) => Scope::Check,
        (_, true) => Scope::Growth,
        _ => Scope::Full,
    };
    let measured = measure(&root, &options, scope)?;
    if options.json {
        print!("{}", results::to_json(&measured));
    } else {
        print!("{}", results::to_table(&measured));
    }
    if options.check {
        let mut expected = scope.of(results::load(&committed)?);
        expected.retain(|m| chosen(&options, &m.subject));
        let drifts = results::drifts(&expected, &measured);
        for drift in &drifts {
            eprintln!("drift: {drift}");
        }
        if !drifts.is_empty() {
            eprintln!(
                "{} figures drifted. If the change is meant, run `cargo run -p icsql-benches` and commit what it writes.",
                drifts.len()
            );
        }
        return Ok(drifts.is_empty());
    }
    if options.rows.is_none() {
        let results = scope.merge(results::load(&committed)?, measured);
        std::fs::write(&committed, results::to_json(&results))
            .map_err(|error| format!("writing {}: {error}", committed.display()))?;
        report::write(&root, &results)?;
    }
    Ok(true)
}

fn chosen(options: &Options, subject: &str) -> bool {
    options.subjects.is_empty() || options.subjects.iter().any(|name| name == subject)
}

fn measure(root: &Path, options: &Options, scope: Scope) -> Result<Vec<Measurement>, String> {
    let mut measured = Vec::new();
    for subject in subject::all(root).iter().filter(|subject| chosen(options, subject.name)) {
        let wasm = subject.load()?;
        let told = |error| format!("{}: {error}", subject.name);
        if scope == Scope::Growth {
            if subject.name == ICSQL {
                measured.extend(growth::run(&wasm).map_err(told)?);
            }
            continue;
        }
        let rows = match &options.rows {
            Some(rows) => rows.clone(),
            None if scope == Scope::Check => vec![cases::ROWS[0]],
            None => cases::ROWS.to_vec(),
        };
        for rows in rows {
            eprintln!("{}: {rows} rows", subject.name);
            measured.extend(cases::run(subject, &wasm, rows).map_err(told)?);
        }
        if options.rows.is_none() {
            if subject.name == ICSQL {
                eprintln!("{}: SQL, entries and writes with a key", subject.name);
                measured.extend(service::run(&wasm).map_err(told)?);
            }
            eprintln!("{}: sequences", subject.name);
            measured.extend(sequences::run(subject, &wasm).map_err(told)?);
        }
    }
    if options.rows.is_none() && scope != Scope::Growth {
        for bulk in engine::all(root).iter().filter(|bulk| chosen(options, bulk.subject)) {
            eprintln!("{}: bulk work", bulk.subject);
            measured.extend(engine::run(bulk, scope).map_err(|error| format!("{}: {error}", bulk.subject))?);
        }
    }
    Ok(measured)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
