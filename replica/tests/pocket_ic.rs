//! The PocketIC protocol, spoken by the unmodified `pocket-ic` crate.

mod common;

use common::{me, module};
use icsql_replica::Principal;
use pocket_ic::common::rest::{BlobCompression, RawEffectivePrincipal};
use pocket_ic::{ErrorCode, PocketIc, PocketIcBuilder, RejectCode, RejectResponse, Time};
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_icsql-replica");

fn instance() -> PocketIc {
    PocketIcBuilder::new().with_server_binary(BINARY.into()).with_application_subnet().build()
}

/// Keeps a number in the heap and in stable memory, and knows a few things about itself.
fn canister() -> Vec<u8> {
    module(
        r#"(import "ic0" "time" (func $time (result i64)))
        (import "ic0" "canister_version" (func $version (result i64)))
        (memory 1) (data (i32.const 1000) "hello")
        (func $init (if (i64.eqz (call $stable_size)) (then (drop (call $stable_grow (i64.const 1))))))
        (func (export "canister_init") (call $init))
        (func (export "canister_post_upgrade") (call $init))
        (func (export "canister_update add")
            (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
            (call $stable_read (i64.const 8) (i64.const 0) (i64.const 8))
            (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
            (call $stable_write (i64.const 0) (i64.const 8) (i64.const 8))
            (call $print (i32.const 1000) (i32.const 5))
            (call $reply (i32.const 0) (i32.const 16)))
        (func (export "canister_query numbers")
            (call $stable_read (i64.const 8) (i64.const 0) (i64.const 8))
            (call $reply (i32.const 0) (i32.const 16)))
        (func (export "canister_query time") (i64.store (i32.const 0) (call $time)) (call $reply (i32.const 0) (i32.const 8)))
        (func (export "canister_update fail") (call $trap (i32.const 1000) (i32.const 5)))
        (func (export "canister_query echo")
            (drop (memory.grow (i32.const 48))) (call $arg_copy (i32.const 2000) (i32.const 0) (call $arg_size))
            (call $reply (i32.const 2000) (call $arg_size)))"#,
    )
}

fn deploy(pic: &PocketIc) -> Principal {
    let id = pic.create_canister();
    pic.add_cycles(id, 2_000_000_000_000);
    pic.install_canister(id, canister(), vec![], None);
    id
}

fn pair(reply: Result<Vec<u8>, RejectResponse>) -> (u64, u64) {
    let reply = reply.expect("a reply");
    let number = |at: usize| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap());
    (number(0), number(8))
}

#[test]
fn the_binary_passes_for_a_pocket_ic_server() {
    let version = Command::new(BINARY).arg("--version").output().unwrap();
    assert!(version.status.success());
    assert_eq!(version.stdout, b"pocket-ic-server 16.1.0\n");
    let file = std::env::temp_dir().join(format!("icsql-replica-{}.port", std::process::id()));
    std::fs::write(&file, "1234\n").unwrap();
    let second = Command::new(BINARY).arg("--port-file").arg(&file).output().unwrap();
    assert!(second.status.success() && second.stdout.is_empty() && second.stderr.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1234\n");
    std::fs::remove_file(&file).unwrap();
    // It ends by itself, and takes the file with it.
    let mut short = Command::new(BINARY).args(["--ttl", "1", "--port-file"]).arg(&file).spawn().unwrap();
    assert!(short.wait().unwrap().success());
    assert!(!file.exists());
}

#[test]
fn updates_queries_and_upgrades() {
    let pic = instance();
    let id = deploy(&pic);
    assert_eq!(pair(pic.update_call(id, me(), "add", vec![])), (1, 1));
    assert_eq!(pair(pic.update_call(id, me(), "add", vec![])), (2, 2));
    assert_eq!(pair(pic.query_call(id, me(), "numbers", vec![])), (2, 2));
    pic.upgrade_canister(id, canister(), vec![], None).unwrap();
    assert_eq!(pair(pic.query_call(id, me(), "numbers", vec![])), (0, 2));
    pic.reinstall_canister(id, canister(), vec![], None).unwrap();
    assert_eq!(pair(pic.query_call(id, me(), "numbers", vec![])), (0, 0));
    let failed = pic.update_call(id, me(), "fail", vec![]).unwrap_err();
    assert_eq!((failed.reject_code, failed.error_code), (RejectCode::CanisterError, ErrorCode::CanisterCalledTrap));
    assert!(failed.reject_message.contains("Canister called `ic0.trap` with message: 'hello'"), "{failed}");
    let missing = pic.query_call(id, me(), "nothing", vec![]).unwrap_err();
    assert_eq!(missing.error_code, ErrorCode::CanisterMethodNotFound);
    // Submitted now, answered later; the answer can be had again.
    let message = pic.submit_call(id, me(), "add", vec![]).unwrap();
    assert!(pic.ingress_status(message.clone()).is_none());
    pic.tick();
    assert_eq!(pair(pic.ingress_status(message.clone()).unwrap()), (1, 1));
    assert_eq!(pair(pic.await_call(message)), (1, 1));
}

#[test]
fn stopping_settings_and_status() {
    let pic = instance();
    let controller = Principal::from_slice(&[5; 29]);
    let id = pic.create_canister_with_settings(Some(controller), None);
    pic.add_cycles(id, 2_000_000_000_000);
    assert_eq!(pic.get_controllers(id), [controller]);
    pic.install_canister(id, canister(), vec![], Some(controller));
    assert!(pic.stop_canister(id, None).is_err());
    pic.stop_canister(id, Some(controller)).unwrap();
    let stopped = pic.update_call(id, me(), "add", vec![]).unwrap_err();
    assert_eq!(stopped.error_code, ErrorCode::CanisterStopped);
    let status = pic.canister_status(id, Some(controller)).unwrap();
    assert!(status.module_hash.is_some() && status.memory_metrics.stable_memory_size == 65_536u32);
    pic.start_canister(id, Some(controller)).unwrap();
    pic.update_call(id, me(), "add", vec![]).unwrap();
    pic.set_controllers(id, Some(controller), vec![controller, me()]).unwrap();
    assert_eq!(pic.get_controllers(id).len(), 2);
    pic.uninstall_canister(id, None).unwrap();
    assert_eq!(pic.update_call(id, me(), "add", vec![]).unwrap_err().error_code, ErrorCode::CanisterWasmModuleNotFound);
    pic.stop_canister(id, None).unwrap();
    pic.delete_canister(id, None).unwrap();
    assert!(!pic.canister_exists(id) && pic.get_subnet(id).is_none());
}

#[test]
fn logs_cycles_time_and_stable_memory() {
    let pic = instance();
    let id = deploy(&pic);
    let before = pic.cycle_balance(id);
    pic.update_call(id, me(), "add", vec![]).unwrap();
    let spent = before - pic.cycle_balance(id);
    assert!((5_000_000..10_000_000).contains(&spent), "{spent} cycles");
    assert_eq!(pic.add_cycles(id, 7), before - spent + 7);
    pic.update_call(id, me(), "fail", vec![]).unwrap_err();
    let lines = pic.fetch_canister_logs(id, me()).unwrap();
    let lines: Vec<_> = lines.into_iter().map(|l| String::from_utf8(l.content).unwrap()).collect();
    assert_eq!(lines, ["hello", "[TRAP]: hello"]);
    pic.set_time(Time::from_nanos_since_unix_epoch(1_800_000_000_000_000_000));
    pic.advance_time(Duration::from_secs(5));
    assert_eq!(pic.get_time().as_nanos_since_unix_epoch(), 1_800_000_005_000_000_000);
    let seen = pic.query_call(id, me(), "time", vec![]).unwrap();
    assert_eq!(u64::from_le_bytes(seen.try_into().unwrap()), 1_800_000_005_000_000_000);
    let mut stable = pic.get_stable_memory(id);
    assert_eq!((stable.len(), stable[0]), (65_536, 1));
    stable[0] = 41;
    pic.set_stable_memory(id, stable.clone(), BlobCompression::NoCompression);
    assert_eq!(pair(pic.update_call(id, me(), "add", vec![])), (2, 42));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&stable).unwrap();
    pic.set_stable_memory(id, gzip.finish().unwrap(), BlobCompression::Gzip);
    assert_eq!(pair(pic.query_call(id, me(), "numbers", vec![])), (2, 41));
}

#[test]
fn snapshots_and_big_modules() {
    let pic = instance();
    let id = deploy(&pic);
    pic.update_call(id, me(), "add", vec![]).unwrap();
    let snapshot = pic.take_canister_snapshot(id, None, None).unwrap();
    pic.update_call(id, me(), "add", vec![]).unwrap();
    pic.load_canister_snapshot(id, None, snapshot.id.clone()).unwrap();
    assert_eq!(pair(pic.update_call(id, me(), "add", vec![])), (2, 2));
    assert_eq!(pic.list_canister_snapshots(id, None).unwrap().len(), 1);
    pic.delete_canister_snapshot(id, None, snapshot.id).unwrap();
    // A module of more than 2 MB goes through the chunk store: the same one with a long custom section.
    let mut big = canister();
    let content = 2_500_000u32;
    big.push(0);
    big.extend_from_slice(&leb128(content + 2));
    big.extend_from_slice(&[1, b'x']);
    big.resize(big.len() + content as usize, 0);
    pic.upgrade_canister(id, big, vec![], None).unwrap();
    assert_eq!(pair(pic.query_call(id, me(), "numbers", vec![])), (0, 2));
}

fn leb128(mut n: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

#[test]
fn sizes_of_arguments_and_replies() {
    let pic = instance();
    let id = deploy(&pic);
    let most = 2 * 1024 * 1024;
    assert_eq!(pic.query_call(id, me(), "echo", vec![7; most]).unwrap().len(), most);
    assert_eq!(pic.update_call(id, me(), "echo", vec![7; most]).unwrap().len(), most);
    assert!(pic.update_call(id, me(), "echo", vec![7; most + 1]).is_err());
    assert!(pic.query_call(id, me(), "echo", vec![7; 3 * 1024 * 1024 + 1]).is_err());
}

#[test]
fn instances_do_not_share_anything() {
    let (a, b) = (instance(), instance());
    let (in_a, in_b) = (deploy(&a), deploy(&b));
    assert_eq!(in_a, in_b);
    assert_eq!(pair(a.update_call(in_a, me(), "add", vec![])), (1, 1));
    assert_eq!(pair(b.query_call(in_b, me(), "numbers", vec![])), (0, 0));
    drop(a);
    assert_eq!(pair(b.update_call(in_b, me(), "add", vec![])), (1, 1));
    let effective = RawEffectivePrincipal::CanisterId(in_b.as_slice().to_vec());
    let message = b.submit_call_with_effective_principal(in_b, effective, me(), "add", vec![]).unwrap();
    assert_eq!(pair(b.await_call(message)), (2, 2));
    let topology = b.topology();
    assert_eq!(topology.get_app_subnets().len(), 1);
    assert_eq!(topology.get_subnet(in_b), b.get_subnet(in_b));
}

#[test]
fn an_instance_can_progress_by_itself() {
    let pic = instance();
    let id = deploy(&pic);
    pic.auto_progress();
    assert!(pic.auto_progress_enabled());
    let message = pic.submit_call(id, me(), "add", vec![]).unwrap();
    assert_eq!(pair(pic.await_call_no_ticks(message)), (1, 1));
    pic.stop_progress();
    assert!(!pic.auto_progress_enabled());
}

/// One request of HTTP/1.1 by hand; gives the body.
fn request(pic: &PocketIc, verb: &str, path: &str, body: &str) -> serde_json::Value {
    let url = pic.get_server_url();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", url.port().unwrap())).unwrap();
    let head =
        format!("{verb} /instances/{}/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close", pic.instance_id());
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[test]
fn costs_and_faults_over_http() {
    let pic = instance();
    let id = deploy(&pic);
    pic.update_call(id, me(), "add", vec![]).unwrap();
    let costs = request(&pic, "GET", "icsql/cost", "");
    let messages = costs["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!((&messages[0]["entry"], &messages[0]["canister"]), (&"add".into(), &id.to_text().into()));
    let cost = &messages[0]["cost"];
    assert_eq!(
        (&cost["stable_bytes_written"], &cost["heap_pages"], &cost["reply_bytes"]),
        (&8.into(), &1.into(), &16.into())
    );
    request(&pic, "POST", "icsql/fault", r#"{"fail_stable_write": 1}"#);
    let failed = pic.update_call(id, me(), "add", vec![]).unwrap_err();
    assert!(failed.reject_message.contains("injected fault"), "{failed}");
    assert_eq!(pair(pic.update_call(id, me(), "add", vec![])), (2, 2));
}
