//! Deploys icsql on a running icsql-replica, loads the airports of the world and shows what calls answer and cost.
//! `scripts/run` builds and starts everything that this needs. The canister stays on the server when this ends.

mod airports;
mod deployed;
mod error;
mod load;
mod progress;
mod show;
mod sql;

use candid::Principal;
use clap::Parser;
use deployed::{Deployed, Price};
use error::Error;
use icsql_types::method::{DB_CHECKSUM, DB_META, KV_COUNT, KV_GET, KV_GET_MANY, QUERY_CALL, SQL_QUERY};
use icsql_types::{Checksum, DefinedQuery, Meta, Migrated, Params, ReadOptions, RowSet, Statement, Values};
use load::Loaded;
use serde::Serialize;
use show::{megabytes, millions, thousands};
use sql::LoadedRows;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// The key that is read by itself.
const KEY: &str = "LSZH";
/// The keys that are read in one call.
const KEYS: [&str; 3] = ["LSZH", "KJFK", "RJTT"];
/// The IATA code that SQL asks for.
const CODE: &str = "ZRH";

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
    sql_migrate: Call<Migrated>,
    sql_batch: LoadedRows,
    sql_query_by_code: Call<RowSet>,
    sql_query_joined: Call<RowSet>,
    sql_query_countries: Call<RowSet>,
    query_define: Call<DefinedQuery>,
    /// Two pages, one after the other.
    query_call: [Call<RowSet>; 2],
    db_meta: Call<Meta>,
    db_checksum: Call<Checksum>,
}

/// A reply and what it costs.
#[derive(Serialize)]
struct Call<R> {
    reply: R,
    #[serde(flatten)]
    price: Price,
}

impl<R> From<(R, Price)> for Call<R> {
    fn from((reply, price): (R, Price)) -> Self {
        Self { reply, price }
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
    let airports = airports::read(&args.data)?;
    let data_bytes = airports.iter().map(|airport| (airport.key.len() + airport.value.len()) as u64).sum();
    let wasm =
        std::fs::read(&args.wasm).map_err(|e| Error::Wasm { path: args.wasm.clone(), message: e.to_string() })?;
    let wasm_bytes = wasm.len() as u64;

    say(format!("Deploying icsql ({}); the replica compiles it the first time", megabytes(wasm_bytes)));
    let started = Instant::now();
    let deployed = progress::waiting("deploying", || Deployed::new(&args.server, wasm))?;
    let deploy_seconds = started.elapsed().as_secs_f64();
    say(format!("  canister {}, in {deploy_seconds:.1} s", deployed.canister));

    let from = if args.source.is_empty() { String::new() } else { format!(" from {}", args.source) };
    let count = thousands(airports.len() as u64);
    say(format!("\nPutting {count} airports{from}: the ICAO code is the key, the row as JSON the value"));
    let loaded = load::load(&deployed, &airports)?;
    say(format!(
        "  {} calls of kv_put, {} of keys and values, in {:.1} s ({} calls a second on this machine)\n  \
         a call took {} instructions on average, {} at most (key {}), and {} cycles",
        thousands(loaded.calls),
        megabytes(data_bytes),
        loaded.seconds,
        thousands((loaded.calls as f64 / loaded.seconds) as u64),
        thousands(loaded.instructions_average),
        thousands(loaded.instructions_max),
        loaded.dearest_key,
        thousands(loaded.cycles / loaded.calls.max(1)),
    ));

    say(format!("\nInserting {count} airports by SQL: sql_migrate makes the table, sql_batch fills it"));
    let migrated = sql::migrate(&deployed)?;
    let inserted = sql::load(&deployed, &airports)?;
    say(format!(
        "  sql_migrate took {} instructions and {} cycles\n  \
         {} calls of sql_batch with an idempotency key each, in {:.1} s ({} rows a second on this machine)\n  \
         a row took {} instructions; all together took {} cycles, and the puts {}\n  \
         the last call again, with its key: the same answer, nothing done twice, {} instructions",
        thousands(migrated.1.instructions),
        thousands(migrated.1.cycles),
        inserted.calls,
        inserted.seconds,
        thousands((inserted.rows as f64 / inserted.seconds) as u64),
        thousands(inserted.instructions_per_row),
        millions(inserted.cycles),
        millions(loaded.cycles),
        thousands(inserted.repeated.instructions),
    ));

    let controller = deployed.controller;
    let sql_query = |sql: &str, params: Option<Params>| {
        deployed.query(controller, &SQL_QUERY, (Statement { sql: sql.into(), params }, None)).map(Call::from)
    };
    let query_define = sql::define(&deployed)?.into();
    let page = |cursor| {
        let options = ReadOptions { max_rows: Some(sql::PAGE_ROWS), cursor, ..ReadOptions::default() };
        let call = (sql::QUERY.into(), sql::country(), Some(options));
        deployed.query(Principal::anonymous(), &QUERY_CALL, call).map(Call::from)
    };
    let first = page(None)?;
    let second = page(first.reply.cursor.clone())?;
    let figures = Figures {
        instance: deployed.url.clone(),
        canister: deployed.canister.to_text(),
        controller: controller.to_text(),
        wasm_bytes,
        deploy_seconds,
        data_bytes,
        kv_put: loaded,
        kv_get: deployed.query(controller, &KV_GET, (KEY.into(),))?.into(),
        kv_get_many: deployed.query(controller, &KV_GET_MANY, (KEYS.map(String::from).to_vec(),))?.into(),
        kv_count: deployed.query(controller, &KV_COUNT, ())?.into(),
        sql_migrate: migrated.into(),
        sql_batch: inserted,
        sql_query_by_code: sql_query(sql::BY_CODE, Some(sql::with(CODE)))?,
        sql_query_joined: sql_query(sql::JOINED, Some(sql::with(CODE)))?,
        sql_query_countries: sql_query(sql::COUNTRIES, None)?,
        query_define,
        query_call: [first, second],
        db_meta: deployed.query(controller, &DB_META, ())?.into(),
        db_checksum: deployed.query(controller, &DB_CHECKSUM, ())?.into(),
    };
    if figures.kv_count.reply != figures.kv_put.calls || figures.sql_batch.rows != figures.kv_put.calls {
        let message = format!(
            "{} keys and {} rows after {} calls of kv_put",
            figures.kv_count.reply, figures.sql_batch.rows, figures.kv_put.calls
        );
        return Err(Error::Unexpected { call: KV_COUNT.name.into(), message });
    }
    deployed.hand_over();
    if args.json {
        let json = serde_json::to_string_pretty(&figures);
        println!("{}", json.map_err(|e| Error::Unexpected { call: "--json".into(), message: e.to_string() })?);
    } else {
        print_replies(&figures);
        println!("\nHow to call it\n");
        println!("{}", show::calls(&args.server, &deployed.url, deployed.canister, controller));
    }
    Ok(())
}

/// Prints a call with its price.
fn print_call(name: &str, price: Price) {
    println!("  {name:<48}{:>13} instructions{:>14} cycles", thousands(price.instructions), thousands(price.cycles));
}

/// Prints a statement with its price and its rows.
fn print_rows(name: &str, call: &Call<RowSet>) {
    print_call(name, call.price);
    for line in sql::table(&call.reply) {
        println!("    {line}");
    }
}

fn print_replies(figures: &Figures) {
    let absent = "there is no such key";
    println!(
        "\nReading. A query may use 5,000,000,000 instructions, and is free; the cycles are what the same call takes when\n\
         it is made as an update, which goes through consensus"
    );
    print_call(&format!("kv_get {KEY:?}"), figures.kv_get.price);
    println!("    {}", figures.kv_get.reply.as_deref().unwrap_or(absent));
    let keys = KEYS.map(|key| format!("{key:?}")).join(" ");
    print_call(&format!("kv_get_many {keys}"), figures.kv_get_many.price);
    for value in &figures.kv_get_many.reply.values {
        println!("    {}", value.as_deref().unwrap_or(absent));
    }
    print_call("kv_count", figures.kv_count.price);
    println!("    {} keys", thousands(figures.kv_count.reply));

    println!("\nSQL");
    for (sql, call) in [
        (sql::BY_CODE, &figures.sql_query_by_code),
        (sql::JOINED, &figures.sql_query_joined),
        (sql::COUNTRIES, &figures.sql_query_countries),
    ] {
        println!("  {}{}", sql, if sql.contains("?1") { format!("    -- ?1 is {CODE:?}") } else { String::new() });
        print_rows("sql_query", call);
    }

    println!("\nA named query, which anybody may call: defined by an admin, with its limits and its parameters' types");
    let defined = &figures.query_define.reply;
    println!("  {}", defined.definition.sql);
    print_call(&format!("query_define {:?}", sql::QUERY), figures.query_define.price);
    for line in &defined.plan.lines {
        println!("    {line}");
    }
    let [first, second] = &figures.query_call;
    print_rows(&format!("query_call, country {:?}, by the anonymous caller", sql::COUNTRY), first);
    print_rows("query_call with the cursor of that page", second);

    println!("\nThe database");
    print_call("db_meta", figures.db_meta.price);
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
    print_call("db_checksum", figures.db_checksum.price);
    println!("    {}, kept up to date by every commit", figures.db_checksum.reply.digest);
}
