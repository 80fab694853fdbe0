//! The replica as a server: speaks the PocketIC protocol, and the IC's HTTP interface, on this machine's loopback address.

use clap::Parser;
use icsql_replica::{Config, IcConfig, ServerConfig, serve};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What PocketIC clients accept as the server's name and version.
const VERSION: &str = "pocket-ic-server 16.1.0";
/// Threads that answer sockets; the work itself runs on others.
const SOCKET_THREADS: usize = 2;
/// Seconds without a request after which a server for tests ends.
const DEFAULT_TTL: u64 = 60;

/// A development replica that runs canisters on this machine: no consensus, not for production.
#[derive(Parser)]
#[command(name = "icsql-replica", disable_version_flag = true)]
struct Args {
    /// Print the PocketIC server version that this replica stands in for.
    #[arg(long)]
    version: bool,
    /// Port to listen on, on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// File that gets the port and a newline. If it exists already, another server runs, and this one ends.
    #[arg(long)]
    port_file: Option<PathBuf>,
    /// Serve the IC's HTTP interface too, for agents and icp-cli, until the server is stopped.
    #[arg(long)]
    ic: bool,
    /// Keep the state of the IC's HTTP interface in this folder, over restarts: canisters, time, keys. It is saved within
    /// seconds of a change, and when the server is stopped with Ctrl-C or SIGTERM; then nothing that was answered is lost.
    #[arg(long, requires = "ic")]
    state_dir: Option<PathBuf>,
    /// Seconds without a request after which the server ends; 0 for never. 60 unless --ic is given.
    #[arg(long)]
    ttl: Option<u64>,
    /// Seconds after which the server ends in any case.
    #[arg(long)]
    hard_ttl: Option<u64>,
    /// Folder for compiled modules. Only programs of yours may write to it.
    #[arg(long, env = "ICSQL_REPLICA_CACHE")]
    module_cache: Option<PathBuf>,
    /// Accepted and not needed: the server logs nothing.
    #[arg(long, hide = true)]
    log_levels: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.version {
        println!("{VERSION}");
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("icsql-replica: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> std::io::Result<()> {
    // Made before anything else, so that of several servers started with the same file one stays.
    let mut port_file = match &args.port_file {
        Some(path) => match std::fs::File::create_new(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error),
        },
        None => None,
    };
    let ttl = args.ttl.unwrap_or(if args.ic { 0 } else { DEFAULT_TTL });
    let config = ServerConfig {
        replica: Config { module_cache: args.module_cache.clone(), ..Config::default() },
        ttl: (ttl > 0).then(|| Duration::from_secs(ttl)),
        hard_ttl: args.hard_ttl.map(Duration::from_secs),
        ic: args.ic.then(|| IcConfig { state_dir: args.state_dir.clone(), ..IcConfig::default() }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(SOCKET_THREADS).enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port)).await?;
        let port = listener.local_addr()?.port();
        match &mut port_file {
            Some(file) => file.write_all(format!("{port}\n").as_bytes())?,
            None => eprintln!("icsql-replica listens on http://127.0.0.1:{port}/"),
        }
        serve(listener, config, stopped()).await
    });
    runtime.shutdown_background();
    if let Some(path) = &args.port_file {
        let _ = std::fs::remove_file(path);
    }
    served
}

/// Waits for Ctrl-C or, where there is such a thing, SIGTERM.
async fn stopped() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
