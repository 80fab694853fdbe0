//! Says where the instructions of one benchmark case go: a table by function, folded stacks, a flame graph.

use std::path::PathBuf;
use std::process::ExitCode;

use icsql_benches::results::thousands;
use icsql_benches::{cases, data, engine, subject};
use icsql_replica::Profile;

const USAGE: &str = "\
Usage: cargo run -p icsql-benches --bin profile -- CASE [OPTIONS]

Prints what one call of the case costs, by function: instructions of its own code, those with all that it calls, the
calls, percent, the name. Functions of the system have rows of their own. The sum is what the benchmarks report for the
case, which is checked in a second run without profile.

Options:
  --rows N           rows stored before the call (cases of the service; default 2000)
  --wasm FILE        the canister; it needs a name section to say names. Default: target/icsql.named.wasm, for bulk
                     work the benchmark canister that cargo left in target
  --subject NAME     another canister of the benchmarks, with its own Wasm
  --top N            rows of the table (default 40; 0: all)
  --folded FILE      writes the stacks, one a line, for flame graph tools
  --no-check         leaves the second run out
";

struct Options {
    case: String,
    rows: u32,
    wasm: Option<PathBuf>,
    subject: String,
    top: usize,
    folded: Option<PathBuf>,
    check: bool,
}

fn parse_options() -> Result<Options, String> {
    let mut options = Options {
        case: String::new(),
        rows: 2_000,
        wasm: None,
        subject: "icsql".to_string(),
        top: 40,
        folded: None,
        check: true,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--rows" => {
                let rows = value()?;
                options.rows = rows.parse().ok().filter(|n| data::ROWS_RANGE.contains(n)).ok_or(format!(
                    "--rows {rows}: expected a number from {} to {}",
                    data::ROWS_RANGE.start(),
                    data::ROWS_RANGE.end()
                ))?;
            }
            "--wasm" => options.wasm = Some(value()?.into()),
            "--subject" => options.subject = value()?,
            "--top" => {
                let top = value()?;
                options.top = top.parse().map_err(|_| format!("--top {top}: expected a number"))?;
            }
            "--folded" => options.folded = Some(value()?.into()),
            "--no-check" => options.check = false,
            case if options.case.is_empty() && !case.starts_with('-') => options.case = case.to_string(),
            other => return Err(format!("unknown argument {other}\n\n{USAGE}")),
        }
    }
    let known: Vec<_> = cases::names().chain(engine::names()).collect();
    if !known.contains(&options.case.as_str()) {
        return Err(format!("expected a case, one of: {}", known.join(", ")));
    }
    Ok(options)
}

fn read(path: &std::path::Path, built_by: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}. {built_by}", path.display()))
}

/// The profile; instructions of the same message without profiling, if they are wanted; a remark.
fn measure(options: &Options) -> Result<(Profile, Option<u64>, String), String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    if engine::names().any(|name| name == options.case) {
        let default = root.join("target/icsql_engine_bench.wasm");
        let wasm = read(options.wasm.as_ref().unwrap_or(&default), engine::BUILT_BY)?;
        let (profile, counted) = engine::profile(&wasm, &options.case)?;
        let unprofiled = match options.check {
            true => Some(engine::cost(&wasm, &options.case)?.instructions),
            false => None,
        };
        let remark = format!(
            "The benchmarks report {} of it, what the work itself took by the counter: without arguments, reply and dirty heap pages.",
            thousands(counted)
        );
        return Ok((profile, unprofiled, remark));
    }
    let subjects = subject::all(&root);
    let subject = subjects
        .iter()
        .find(|s| s.name == options.subject)
        .ok_or_else(|| format!("--subject {}: there is none of that name", options.subject))?;
    let (wasm, reported) = match &options.wasm {
        Some(file) => (read(file, "")?, None),
        None if subject.name == "icsql" => {
            let named = read(&root.join("target/icsql.named.wasm"), "scripts/build leaves it.")?;
            (named, Some(subject.load()?))
        }
        None => (subject.load()?, None),
    };
    let profile = cases::profile(subject, &wasm, options.rows, &options.case)?;
    let unprofiled = match options.check {
        true => {
            let measured = cases::run(subject, reported.as_ref().unwrap_or(&wasm), options.rows)?;
            measured.iter().find(|m| m.case == options.case).map(|m| m.instructions)
        }
        false => None,
    };
    Ok((profile, unprofiled, String::new()))
}

fn table(profile: &Profile, top: usize) -> String {
    let total = profile.cost.instructions;
    let percent = |part: u64| part as f64 * 100.0 / total.max(1) as f64;
    let functions = profile.functions();
    let shown = if top == 0 { functions.len() } else { top.min(functions.len()) };
    let mut out = format!("{:>13} {:>6} {:>13} {:>6} {:>9}  name\n", "exclusive", "%", "inclusive", "%", "calls");
    for f in &functions[..shown] {
        out += &format!(
            "{:>13} {:>6.2} {:>13} {:>6.2} {:>9}  {}\n",
            thousands(f.exclusive),
            percent(f.exclusive),
            thousands(f.inclusive),
            percent(f.inclusive),
            thousands(f.calls),
            f.name
        );
    }
    let rest: u64 = functions[shown..].iter().map(|f| f.exclusive).sum();
    if shown < functions.len() {
        let count = functions.len() - shown;
        out += &format!("{:>13} {:>6.2} {:>31}  {count} more functions\n", thousands(rest), percent(rest), "");
    }
    out + &format!("{:>13} {:>6.2} {:>31}  the whole message\n", thousands(total), 100.0, "")
}

fn run() -> Result<(), String> {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let options = parse_options()?;
    let (profile, unprofiled, remark) = measure(&options)?;
    let sum: u64 = profile.frames.iter().map(|frame| frame.instructions).sum();
    let total = profile.cost.instructions;
    assert_eq!(sum, total, "the frames' instructions must add up to the message's");
    if unprofiled.is_some_and(|n| n != total) {
        return Err(format!("{total} instructions with profile, {unprofiled:?} without: not the same canister?"));
    }
    print!("{}", table(&profile, options.top));
    if !remark.is_empty() {
        println!("{remark}");
    }
    if let Some(file) = &options.folded {
        std::fs::write(file, profile.folded()).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
