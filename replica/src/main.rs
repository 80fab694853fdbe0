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
    #[arg(long, alias = "gateway-port", default_value_t = 0)]
    port: u16,
    /// File that gets the port and a newline. If it exists already, another server runs, and this one ends.
    #[arg(long)]
    port_file: Option<PathBuf>,
    /// Serve the IC's HTTP interface too, for agents and icp-cli, until the server is stopped.
    #[arg(long)]
    ic: bool,
    /// Keep the state of the IC's HTTP interface in this folder, over restarts: canisters, time, keys. It is saved within
    /// seconds of a change, and when the server is stopped with Ctrl-C or SIGTERM; then nothing that was answered is lost.
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// Write a file status.json into this folder once the IC's HTTP interface is ready, as icp-cli's network launchers do.
    #[arg(long)]
    status_dir: Option<PathBuf>,
    /// Version of icp-cli's interface of network launchers. icp-cli starts this program in place of its own launcher if
    /// ICP_CLI_NETWORK_LAUNCHER_PATH names it. Implies --ic.
    #[arg(long)]
    interface_version: Option<String>,
    /// Address to listen on. There is no other than 127.0.0.1.
    #[arg(long, hide = true)]
    bind: Option<std::net::IpAddr>,
    /// Further domain of the HTTP gateway. There is no other than localhost.
    #[arg(long, hide = true)]
    domain: Vec<String>,
    /// Accepted and not needed: the server logs nothing.
    #[arg(long, hide = true)]
    verbose: bool,
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
    let ic = args.ic || args.interface_version.is_some();
    check(args, ic)?;
    // Made before anything else, so that of several servers started with the same file one stays.
    let mut port_file = match &args.port_file {
        Some(path) => match std::fs::File::create_new(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error),
        },
        None => None,
    };
    let ttl = args.ttl.unwrap_or(if ic { 0 } else { DEFAULT_TTL });
    let config = ServerConfig {
        replica: Config { module_cache: args.module_cache.clone(), ..Config::default() },
        ttl: (ttl > 0).then(|| Duration::from_secs(ttl)),
        hard_ttl: args.hard_ttl.map(Duration::from_secs),
        ic: ic.then(|| IcConfig {
            state_dir: args.state_dir.clone(),
            status_dir: args.status_dir.clone(),
            ..IcConfig::default()
        }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(SOCKET_THREADS).enable_all().build()?;
    let served = runtime.block_on(async {
        let stop = stopped()?;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port)).await?;
        let port = listener.local_addr()?.port();
        match &mut port_file {
            Some(file) => file.write_all(format!("{port}\n").as_bytes())?,
            None => eprintln!("icsql-replica listens on http://127.0.0.1:{port}/"),
        }
        serve(listener, config, stop).await
    });
    runtime.shutdown_background();
    if let Some(path) = &args.port_file {
        let _ = std::fs::remove_file(path);
    }
    served
}

/// Refuses what this server cannot do and its caller might rely on.
fn check(args: &Args, ic: bool) -> std::io::Result<()> {
    let refused = |message: String| Err(std::io::Error::other(message));
    if !ic && (args.state_dir.is_some() || args.status_dir.is_some()) {
        return refused("--state-dir and --status-dir are for the IC's HTTP interface: add --ic".into());
    }
    if let Some(version) = args.interface_version.as_ref().filter(|version| !version.starts_with("1.")) {
        return refused(format!("--interface-version {version}: only versions 1.x are known"));
    }
    if let Some(address) = args.bind.filter(|address| *address != std::net::Ipv4Addr::LOCALHOST) {
        return refused(format!("--bind {address}: the server listens on 127.0.0.1 only"));
    }
    match args.domain.iter().find(|domain| *domain != "localhost") {
        Some(domain) => refused(format!("--domain {domain}: the gateway's only domain is localhost")),
        None => Ok(()),
    }
}

/// Is ready at Ctrl-C or SIGTERM. From the call on, not from when it is first awaited, these do not end the process.
#[cfg(unix)]
fn stopped() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// Is ready at Ctrl-C.
#[cfg(not(unix))]
fn stopped() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
