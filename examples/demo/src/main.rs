//! Deploys icsql on a running icsql-replica, loads the airports of the world and shows what calls answer and cost.
//! `scripts/run` builds and starts everything that this needs. The canister stays on the server when this ends.

mod airports;
mod deployed;
mod error;
mod load;
mod show;

use clap::Parser;
use deployed::Deployed;
use error::Error;
use icsql_types::method::{DB_CHECKSUM, DB_META, KV_COUNT, KV_GET, KV_GET_MANY};
use icsql_types::{Checksum, Meta, Values};
use load::Loaded;
use serde::Serialize;
use show::{megabytes, thousands};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// The key that is read by itself.
const KEY: &str = "LSZH";
/// The keys that are read in one call.
const KEYS: [&str; 3] = ["LSZH", "KJFK", "RJTT"];

/// Deploys icsql on a running icsql-replica, loads airports and shows what calls answer and cost.
#[derive(Parser)]
#[command(name = "icsql-demo")]
struct Args {
    /// Address of the server, for example http://127.0.0.1:8008/.
    #[arg(long)]
    server: reqwest::Url,
    /// The canister's Wasm, gzipped or not.
    #[arg(long)]
    wasm: PathBuf,
    /// airports.csv of the package airportsdata.
    #[arg(long)]
    data: PathBuf,
    /// Where the data comes from, in words.
    #[arg(long, default_value = "")]
    source: String,
    /// Print the figures as JSON and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Figures {
    /// Address of the instance on the server.
    instance: String,
    canister: String,
    controller: String,
    /// Bytes of the Wasm file as it was installed.
    wasm_bytes: u64,
    deploy_seconds: f64,
    /// Sum of the lengths of keys and values.
    data_bytes: u64,
    kv_put: Loaded,
    kv_get: Call<Option<String>>,
    kv_get_many: Call<Values>,
    kv_count: Call<u64>,
    db_meta: Call<Meta>,
    db_checksum: Call<Checksum>,
}

/// A reply and what it cost.
#[derive(Serialize)]
struct Call<R> {
    reply: R,
    instructions: u64,
}

impl<R> From<(R, u64)> for Call<R> {
    fn from((reply, instructions): (R, u64)) -> Self {
        Self { reply, instructions }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    // The pocket-ic crate panics when the server goes away or refuses to install; a backtrace would not help.
    let server = args.server.to_string();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or("unknown");
        eprintln!("error: the server at {server} stopped answering, or refused: {message}");
    }));
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
    // With --json only the figures at the end are printed.
    let say = |text: String| {
        if !args.json {
            println!("{text}");
        }
    };
    let entries = airports::read(&args.data)?;
    let data_bytes = entries.iter().map(|e| (e.key.len() + e.value.len()) as u64).sum();
    let wasm =
        std::fs::read(&args.wasm).map_err(|e| Error::Wasm { path: args.wasm.clone(), message: e.to_string() })?;
    let wasm_bytes = wasm.len() as u64;

    say(format!("Deploying icsql ({}); the replica compiles it the first time", megabytes(wasm_bytes)));
    let started = Instant::now();
    let deployed = Deployed::new(&args.server, wasm)?;
    let deploy_seconds = started.elapsed().as_secs_f64();
    say(format!("  canister {}, in {deploy_seconds:.1} s", deployed.canister));

    let from = if args.source.is_empty() { String::new() } else { format!(" from {}", args.source) };
    let count = thousands(entries.len() as u64);
    say(format!("\nLoading {count} airports{from}: the ICAO code is the key, the row as JSON the value"));
    let loaded = load::load(&deployed, &entries)?;
    say(format!(
        "  {} calls of kv_put, {} of keys and values, in {:.1} s ({} calls a second on this machine)\n  \
         a call took {} instructions on average, {} at most (key {})",
        thousands(loaded.calls),
        megabytes(data_bytes),
        loaded.seconds,
        thousands((loaded.calls as f64 / loaded.seconds) as u64),
        thousands(loaded.instructions_average),
        thousands(loaded.instructions_max),
        loaded.dearest_key,
    ));

    let figures = Figures {
        instance: deployed.url.clone(),
        canister: deployed.canister.to_text(),
        controller: deployed.controller.to_text(),
        wasm_bytes,
        deploy_seconds,
        data_bytes,
        kv_put: loaded,
        kv_get: deployed.query(&KV_GET, (KEY.into(),))?.into(),
        kv_get_many: deployed.query(&KV_GET_MANY, (KEYS.map(String::from).to_vec(),))?.into(),
        kv_count: deployed.query(&KV_COUNT, ())?.into(),
        db_meta: deployed.query(&DB_META, ())?.into(),
        db_checksum: deployed.query(&DB_CHECKSUM, ())?.into(),
    };
    if figures.kv_count.reply != figures.kv_put.calls {
        let message = format!("{} keys after {} calls of kv_put", figures.kv_count.reply, figures.kv_put.calls);
        return Err(Error::Unexpected { call: KV_COUNT.name.into(), message });
    }
    deployed.hand_over();
    if args.json {
        let json = serde_json::to_string_pretty(&figures);
        println!("{}", json.map_err(|e| Error::Unexpected { call: "--json".into(), message: e.to_string() })?);
    } else {
        print_replies(&figures);
        println!("\nHow to call it\n");
        println!("{}", show::calls(&args.server, &deployed.url, deployed.canister, deployed.controller));
    }
    Ok(())
}

fn print_replies(figures: &Figures) {
    let absent = "there is no such key";
    println!("\nReading. The Internet Computer meters calls in instructions; a query may use 5,000,000,000 of them");
    let call = |name: &str, instructions: u64| {
        println!("  {name:<42}{:>14} instructions", thousands(instructions));
    };
    call(&format!("kv_get {KEY:?}"), figures.kv_get.instructions);
    println!("    {}", figures.kv_get.reply.as_deref().unwrap_or(absent));
    call(&format!("kv_get_many {}", KEYS.map(|key| format!("{key:?}")).join(" ")), figures.kv_get_many.instructions);
    for value in &figures.kv_get_many.reply.values {
        println!("    {}", value.as_deref().unwrap_or(absent));
    }
    call("kv_count", figures.kv_count.instructions);
    println!("    {} keys", thousands(figures.kv_count.reply));
    call("db_meta", figures.db_meta.instructions);
    let meta = &figures.db_meta.reply;
    println!("    icsql {} on SQLite {}", meta.icsql_version, meta.sqlite_version);
    println!(
        "    {} pages of {} bytes = {}, in {} of stable memory",
        thousands(meta.pages),
        thousands(meta.page_size.into()),
        megabytes(meta.image_bytes),
        megabytes(meta.stable_memory_pages << 16)
    );
    println!("    {} transactions so far", thousands(meta.transaction));
    call("db_checksum", figures.db_checksum.instructions);
    println!("    {}, kept up to date by every commit", figures.db_checksum.reply.digest);
}
