//! Says where the instructions of one benchmark case go: a table by function, folded stacks, a flame graph.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use icsql_benches::results::thousands;
use icsql_benches::subject::ICSQL;
use icsql_benches::{cases, data, engine, flame, subject};
use icsql_replica::{Config, Profile};

const USAGE: &str = "\
Usage: cargo run -p icsql-benches --bin profile -- CASE [OPTIONS]

Prints what one call of the case costs, by function: instructions of its own code, those with all that it calls, the
calls, the name. The system's functions and dirty heap pages have rows of their own. The sum is what the benchmarks
report for the case, and equals what the call costs in a second run without profiling. Of bulk work on the engine only
what lies between its readings of the counter is shown, since that is what the benchmarks report.

Options:
  --rows N           rows stored before the call (cases of the service; default 2000)
  --wasm FILE        the canister; it says names if it has a name section. Default: target/icsql.named.wasm, for bulk
                     work on the engine target/engine-bench.wasm
  --subject NAME     another canister of the benchmarks, with its own Wasm; for bulk work also sqlite-heap
  --top N            rows of the table (default 40; 0: all)
  --calls-of TEXT    who calls the functions with this in their name, in place of the table
  --whole            bulk work: the whole message, with arguments, reply and dirty heap pages
  --folded FILE      writes the stacks, one a line, for flame graph tools
  --svg FILE         writes a flame graph
  --no-check         leaves out the second run
";

struct Options {
    case: String,
    rows: u32,
    wasm: Option<PathBuf>,
    subject: String,
    top: usize,
    calls_of: Option<String>,
    whole: bool,
    folded: Option<PathBuf>,
    svg: Option<PathBuf>,
    check: bool,
}

fn parse_options() -> Result<Options, String> {
    let mut options = Options {
        case: String::new(),
        rows: 2_000,
        wasm: None,
        subject: ICSQL.to_string(),
        top: 40,
        calls_of: None,
        whole: false,
        folded: None,
        svg: None,
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
            "--calls-of" => options.calls_of = Some(value()?),
            "--whole" => options.whole = true,
            "--folded" => options.folded = Some(value()?.into()),
            "--svg" => options.svg = Some(value()?.into()),
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

fn read(path: &Path, built_by: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| match built_by {
        "" => format!("{}: {error}", path.display()),
        _ => format!("{}: {error}. Build it with `{built_by}`.", path.display()),
    })
}

/// The profile, and what the benchmarks report as its instructions.
fn measure(options: &Options) -> Result<(Profile, u64), String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    // Compiling takes longer than running.
    let module_cache = Some(root.join("target/profile-modules"));
    let config = |profile| Config { profile, module_cache: module_cache.clone(), ..Config::default() };
    let lost = || "the call left no profile".to_string();
    let differs = |with: u64, without: u64| {
        format!("{with} instructions with profiling, {without} without: the canisters differ, or the replica has a bug")
    };

    let unknown = || format!("--subject {}: there is none of that name for this case", options.subject);
    if engine::names().any(|name| name == options.case) {
        let subjects = engine::all(&root);
        let bulk = subjects.iter().find(|bulk| bulk.subject == options.subject).ok_or_else(unknown)?;
        let wasm = match &options.wasm {
            Some(file) => read(file, "")?,
            None => bulk.load()?,
        };
        let (cost, counted, profile) = engine::run_one(bulk, &wasm, &options.case, config(true))?;
        if options.check {
            let (without, _, _) = engine::run_one(bulk, &wasm, &options.case, config(false))?;
            if without != cost {
                return Err(differs(cost.instructions, without.instructions));
            }
        }
        let profile = profile.ok_or_else(lost)?;
        return Ok(match options.whole {
            true => (profile, cost.instructions),
            false => (profile.counted(), counted),
        });
    }

    let subjects = subject::all(&root);
    let subject = subjects.iter().find(|s| s.name == options.subject).ok_or_else(unknown)?;
    // What the benchmarks measure has no names.
    let (wasm, measured) = match &options.wasm {
        Some(file) => (read(file, "")?, None),
        None if subject.name == ICSQL => {
            (read(&root.join("target/icsql.named.wasm"), "scripts/build")?, Some(subject.load()?))
        }
        None => (subject.load()?, None),
    };
    let (cost, profile) = cases::run_one(subject, &wasm, options.rows, &options.case, config(true))?;
    if options.check {
        let measured = measured.as_ref().unwrap_or(&wasm);
        let (without, _) = cases::run_one(subject, measured, options.rows, &options.case, config(false))?;
        if without != cost {
            return Err(differs(cost.instructions, without.instructions));
        }
    }
    Ok((profile.ok_or_else(lost)?, cost.instructions))
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn table(profile: &Profile, top: usize) -> String {
    let total = profile.instructions();
    let functions = profile.functions();
    let shown = if top == 0 { functions.len() } else { top.min(functions.len()) };
    let mut out = format!("{:>13} {:>6} {:>13} {:>6} {:>9}  name\n", "exclusive", "%", "inclusive", "%", "calls");
    for f in &functions[..shown] {
        out += &format!(
            "{:>13} {:>6.2} {:>13} {:>6.2} {:>9}  {}\n",
            thousands(f.exclusive),
            percent(f.exclusive, total),
            thousands(f.inclusive),
            percent(f.inclusive, total),
            thousands(f.calls),
            f.name
        );
    }
    if shown < functions.len() {
        let rest = functions[shown..].iter().map(|f| f.exclusive).sum();
        let count = functions.len() - shown;
        out += &format!("{:>13} {:>6.2} {:>31}  {count} more\n", thousands(rest), percent(rest, total), "");
    }
    out + &format!("{:>13} {:>6.2} {:>31}  together\n", thousands(total), 100.0, "")
}

fn callers(profile: &Profile, text: &str, top: usize) -> String {
    let total = profile.instructions();
    let calls = profile.calls_of(|name| name.contains(text));
    let shown = if top == 0 { calls.len() } else { top.min(calls.len()) };
    let mut out = format!("{:>13} {:>6} {:>9}  caller -> function\n", "inclusive", "%", "calls");
    for call in &calls[..shown] {
        out += &format!(
            "{:>13} {:>6.2} {:>9}  {} -> {}\n",
            thousands(call.inclusive),
            percent(call.inclusive, total),
            thousands(call.calls),
            call.caller,
            call.function,
        );
    }
    out
}

fn run() -> Result<(), String> {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let options = parse_options()?;
    let (profile, reported) = measure(&options)?;
    let sum = profile.instructions();
    if sum != reported {
        return Err(format!("the functions take {sum} instructions together and the call {reported}: a bug"));
    }
    match &options.calls_of {
        Some(text) => print!("{}", callers(&profile, text, options.top)),
        None => print!("{}", table(&profile, options.top)),
    }
    let write =
        |file: &Path, text: String| std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()));
    if let Some(file) = &options.folded {
        write(file, profile.folded())?;
    }
    if let Some(file) = &options.svg {
        write(file, flame::svg(&profile, &options.case))?;
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
