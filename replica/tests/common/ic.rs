//! A replica that serves the IC's HTTP interface, its clients, and a canister for them.
#![allow(dead_code)] // Each suite compiles this file and uses a part of it.

use crate::common::module;
use candid::{CandidType, Encode, Principal};
use ic_agent::identity::{AnonymousIdentity, BasicIdentity};
use ic_agent::{Agent, Identity};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A server of one's own, which ends with this value.
pub struct Server {
    child: Child,
    port: u16,
    file: std::path::PathBuf,
}

impl Server {
    /// Starts `icsql-replica --ic` on a free port.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further arguments.
    pub fn start_with(arguments: &[&std::ffi::OsStr]) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("icsql-replica-ic-{}-{number}.port", std::process::id()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_icsql-replica"));
        command.args(["--ic", "--ttl", "120"]).args(arguments).arg("--port-file").arg(&file);
        let child = command.spawn().expect("the binary runs");
        let deadline = Instant::now() + Duration::from_secs(30);
        let port = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => break text.trim().parse().expect("a port"),
                _ if Instant::now() > deadline => panic!("the replica does not start"),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Self { child, port, file }
    }

    /// Sends a signal, e.g. `TERM`, and waits for the end.
    pub fn signal(mut self, name: &str) -> std::process::ExitStatus {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("the process ends")
    }

    /// An agent with this identity, which knows the root key.
    pub async fn agent(&self, identity: Arc<dyn Identity>) -> Agent {
        let agent = Agent::builder()
            .with_url(format!("http://127.0.0.1:{}/", self.port))
            .with_arc_identity(identity)
            .with_max_concurrent_requests(1_000)
            .build()
            .expect("an agent");
        agent.fetch_root_key().await.expect("the root key");
        agent
    }

    /// An agent of nobody.
    pub async fn anonymous(&self) -> Agent {
        self.agent(Arc::new(AnonymousIdentity)).await
    }

    /// Creates a canister with code, controlled by `agent`'s identity alone.
    pub async fn deploy(&self, agent: &Agent, wasm: &[u8]) -> Principal {
        let management = Principal::management_canister();
        let (start, _) = icsql_replica::Replica::new(Default::default()).canister_ids();
        let created = agent
            .update(&management, "provisional_create_canister_with_cycles")
            .with_effective_canister_id(start)
            .with_arg(Encode!(&Nothing {}).unwrap())
            .await
            .expect("a canister");
        let canister_id = candid::decode_one::<Id>(&created).unwrap().canister_id;
        let argument = Install { mode: Mode::install, canister_id, wasm_module: wasm.to_vec(), arg: Vec::new() };
        agent
            .update(&management, "install_code")
            .with_effective_canister_id(canister_id)
            .with_arg(Encode!(&argument).unwrap())
            .await
            .expect("the code is installed");
        canister_id
    }

    /// One request by hand: status and body of the answer.
    pub fn post(&self, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        self.request("POST", path, "content-type: application/cbor\r\n", body)
    }

    /// The same with a method and headers, each with its line end.
    pub fn request(&self, verb: &str, path: &str, headers: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = self.send(verb, path, headers, body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("the end of the head");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        (status, answer[end + 4..].to_vec())
    }

    /// Sends a request and does not read the answer.
    pub fn send(&self, verb: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        let host = if headers.starts_with("host:") { "" } else { "host: localhost\r\n" };
        let head = format!("{verb} {path} HTTP/1.1\r\n{host}connection: close\r\n{headers}");
        write!(stream, "{head}content-length: {}\r\n\r\n", body.len()).expect("sent");
        // A server that refuses a long body may close before it has all of it.
        let _ = stream.write_all(body);
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

#[derive(CandidType)]
struct Nothing {}

#[derive(CandidType, candid::Deserialize)]
struct Id {
    canister_id: Principal,
}

#[allow(non_camel_case_types)]
#[derive(CandidType)]
enum Mode {
    install,
}

#[derive(CandidType)]
struct Install {
    mode: Mode,
    canister_id: Principal,
    wasm_module: Vec<u8>,
    arg: Vec<u8>,
}

/// An identity that depends on this byte alone.
pub fn basic(key: u8) -> Arc<BasicIdentity> {
    Arc::new(BasicIdentity::from_raw_key(&[key; 32]))
}

/// This long from now, nanoseconds since 1970.
pub fn in_seconds(seconds: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as i64;
    (now + seconds * 1_000_000_000) as u64
}

/// Counts its updates, certifies data, says who calls, traps, sets a timer, and has metadata.
pub fn canister() -> Vec<u8> {
    let mut wasm = module(
        r#"(import "ic0" "msg_caller_size" (func $caller_size (result i32)))
        (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
        (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
        (import "ic0" "data_certificate_present" (func $certificate_present (result i32)))
        (import "ic0" "data_certificate_size" (func $certificate_size (result i32)))
        (import "ic0" "data_certificate_copy" (func $certificate_copy (param i32 i32 i32)))
        (import "ic0" "global_timer_set" (func $timer_set (param i64) (result i64)))
        (import "ic0" "accept_message" (func $accept))
        (import "ic0" "msg_method_name_size" (func $name_size (result i32)))
        (memory 2) (data (i32.const 1000) "boom")
        (func $count (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1))))
        (func $say_count (call $reply (i32.const 0) (i32.const 8)))
        (func $say_caller
            (call $caller_copy (i32.const 2000) (i32.const 0) (call $caller_size))
            (call $reply (i32.const 2000) (call $caller_size)))
        (func (export "canister_inspect_message") (if (i32.ne (call $name_size) (i32.const 11)) (then (call $accept))))
        (func (export "canister_update turned_away") (call $say_count))
        (func (export "canister_update count") (call $count) (call $say_count))
        (func (export "canister_update count_slowly") (local $left i32)
            (call $count) (local.set $left (i32.const 100_000_000))
            (loop $on (br_if $on (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
            (call $say_count))
        (func (export "canister_query counted") (call $say_count))
        (func (export "canister_update caller") (call $say_caller))
        (func (export "canister_query caller_query") (call $say_caller))
        (func (export "canister_update fail") (call $trap (i32.const 1000) (i32.const 4)))
        (func (export "canister_query fail_query") (call $trap (i32.const 1000) (i32.const 4)))
        (func (export "canister_update silent"))
        (func (export "canister_update certify")
            (call $arg_copy (i32.const 3000) (i32.const 0) (call $arg_size))
            (call $certify (i32.const 3000) (call $arg_size))
            (call $reply (i32.const 0) (i32.const 0)))
        (func (export "canister_query certificate")
            (if (i32.eqz (call $certificate_present)) (then (call $trap (i32.const 1000) (i32.const 4))))
            (call $certificate_copy (i32.const 4000) (i32.const 0) (call $certificate_size))
            (call $reply (i32.const 4000) (call $certificate_size)))
        (func (export "canister_update arm") (drop (call $timer_set (i64.const 1))) (call $reply (i32.const 0) (i32.const 0)))
        (func (export "canister_global_timer") (call $count))"#,
    );
    for (name, content) in [("icp:public candid:service", "service : {}"), ("icp:private plan", "hidden")] {
        let payload = [&[name.len() as u8], name.as_bytes(), content.as_bytes()].concat();
        wasm.extend_from_slice(&[&[0, payload.len() as u8], &payload[..]].concat());
    }
    wasm
}
