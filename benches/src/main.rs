//! Measures what calls cost in IC instructions, on icsql and on its relatives, with the same data in one run.
//!
//! `cargo run -p icsql-benches` runs everything, prints a table and writes `benches/results.json`. The canisters must
//! have been built before: `scripts/build --bench` makes icsql's, `scripts/build-fixtures` the others.

use std::path::PathBuf;
use std::process::ExitCode;

use icsql_benches::results::{self, Measurement};
use icsql_benches::subject::{self, Subject};
use icsql_benches::{cases, data, engine};

/// The row counts of a full run; the drift check reruns the first.
const ROWS: [u32; 2] = [2_000, 20_000];

const USAGE: &str = "\
Usage: cargo run -p icsql-benches -- [OPTIONS]

Without options: runs everything, prints a table and writes benches/results.json.

Options:
  --check            rerun the 2,000-row cases and fail if a figure is more than 2 % off the committed one
  --rows N[,N]       only these row counts; nothing is written
  --subject NAME     only this subject (icsql, ic-sqlite-vfs, btreemap); may be repeated; nothing is written
  --json             print the results as JSON in place of the table
";

struct Options {
    check: bool,
    json: bool,
    rows: Option<Vec<u32>>,
    subjects: Vec<String>,
}

fn parse_options() -> Result<Options, String> {
    let mut options = Options { check: false, json: false, rows: None, subjects: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--check" => options.check = true,
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
            "--subject" => options.subjects.push(value()?),
            other => return Err(format!("unknown argument {other}\n\n{USAGE}")),
        }
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

    let mut subjects = subject::all(&root);
    if let Some(unknown) = options.subjects.iter().find(|name| subjects.iter().all(|s| s.name != **name)) {
        return Err(format!("--subject {unknown}: there is none of that name"));
    }
    subjects.retain(|s| options.subjects.is_empty() || options.subjects.iter().any(|name| name == s.name));

    let rows = match (&options.rows, options.check) {
        (Some(rows), _) => rows.clone(),
        (None, true) => vec![ROWS[0]],
        (None, false) => ROWS.to_vec(),
    };
    let mut measured = measure(&subjects, &rows)?;
    if options.rows.is_none() && subjects.iter().any(|s| s.name == engine::SUBJECT) {
        eprintln!("{}: bulk work on the engine", engine::SUBJECT);
        measured.extend(engine::run(&root)?);
    }

    if options.json {
        print!("{}", results::to_json(&measured));
    } else {
        print!("{}", results::to_table(&measured));
    }
    if options.check {
        let expected = results::load(&committed)?;
        let drifts = results::drifts(&expected, &measured);
        for drift in &drifts {
            eprintln!("drift: {drift}");
        }
        if !drifts.is_empty() {
            eprintln!(
                "{} figures drifted. If the change is meant, run `cargo run -p icsql-benches` and commit the results.",
                drifts.len()
            );
        }
        return Ok(drifts.is_empty());
    }
    if options.rows.is_none() && options.subjects.is_empty() {
        std::fs::write(&committed, results::to_json(&measured))
            .map_err(|error| format!("writing {}: {error}", committed.display()))?;
    }
    Ok(true)
}

fn measure(subjects: &[Subject], rows: &[u32]) -> Result<Vec<Measurement>, String> {
    let mut measured = Vec::new();
    for subject in subjects {
        let wasm = subject.load()?;
        for &rows in rows {
            eprintln!("{}: {rows} rows", subject.name);
            measured.extend(cases::run(subject, &wasm, rows).map_err(|error| format!("{}: {error}", subject.name))?);
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
