//! A replica's state in a directory: what survives, and what is refused.

mod common;

use candid::{Nat, encode_args};
use common::{deploy, me, module};
use ic_management_canister_types as ic;
use icsql_replica::{CanisterSettings, Config, InstallMode, Outcome, Principal, Replica, StateDir, StateError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MANAGEMENT: Principal = Principal::management_canister();

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("icsql-replica-state-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> Result<(StateDir, Replica), StateError> {
        StateDir::open(&self.0, Config::default())
    }

    fn refused(&self) -> String {
        let before = files(&self.0);
        let refused = self.open().map(drop).expect_err("the directory was opened").to_string();
        let mut after = files(&self.0);
        after.remove(Path::new("lock"));
        let before: BTreeMap<_, _> = before.into_iter().filter(|(name, _)| name != Path::new("lock")).collect();
        assert_eq!(before, after, "what is refused is left as it was");
        refused
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

fn put(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (name, bytes) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

/// Counts in globals of every type, in a heap that grows, and in a stable memory of 3 MiB; certifies, prints, and sets its
/// timer, which counts too.
fn counter() -> Vec<u8> {
    module(
        r#"
        (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
        (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
        (import "ic0" "time" (func $time (result i64)))
        (memory 40) (global $a (mut i32) (i32.const 0)) (global $b (mut i64) (i64.const 0))
        (global $c (mut f32) (f32.const 0)) (global $d (mut f64) (f64.const 0)) (global $e (mut v128) (v128.const i64x2 0 0))
        (func $count
            (if (i64.eqz (call $stable_size)) (then (drop (call $stable_grow (i64.const 48)))))
            (global.set $a (i32.add (global.get $a) (i32.const 1)))
            (global.set $b (i64.add (global.get $b) (i64.const 1)))
            (global.set $c (f32.add (global.get $c) (f32.const 1)))
            (global.set $d (f64.add (global.get $d) (f64.const 1)))
            (global.set $e (i64x2.add (global.get $e) (v128.const i64x2 1 1)))
            (i64.store (i32.const 2600000) (i64.add (i64.load (i32.const 2600000)) (i64.const 1)))
            (call $stable_read (i64.const 0) (i64.const 3000000) (i64.const 8))
            (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
            (call $stable_write (i64.const 3000000) (i64.const 0) (i64.const 8))
            (call $certify (i32.const 0) (i32.const 8)) (call $print (i32.const 0) (i32.const 8)))
        (func $answer
            (call $stable_read (i64.const 0) (i64.const 3000000) (i64.const 8))
            (i64.store (i32.const 8) (i64.load (i32.const 2600000)))
            (i64.store (i32.const 16) (i64.extend_i32_u (global.get $a))) (i64.store (i32.const 24) (global.get $b))
            (i64.store (i32.const 32) (i64.trunc_f32_u (global.get $c))) (i64.store (i32.const 40) (i64.trunc_f64_u (global.get $d)))
            (v128.store (i32.const 48) (global.get $e))
            (call $reply (i32.const 0) (i32.const 64)))
        (func (export "canister_update count") (call $count) (call $answer))
        (func (export "canister_update grow") (drop (memory.grow (i32.const 2))) (call $answer))
        (func (export "canister_update later")
            (drop (call $timer (i64.add (call $time) (i64.const 1000000000)))) (call $answer))
        (func (export "canister_global_timer") (call $count))
        (func (export "canister_query counts") (call $answer))
        "#,
    )
}

/// The number that all counters agree on.
fn counted(outcome: Outcome) -> u64 {
    let reply = outcome.reply();
    let counts: Vec<u64> = reply.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    assert!(counts.iter().all(|n| *n == counts[0]), "{counts:?}");
    counts[0]
}

fn manage(replica: &mut Replica, method: &str, argument: Vec<u8>) -> Vec<u8> {
    replica.update(MANAGEMENT, me(), method, &argument).reply()
}

/// All that the public interface shows of a canister.
fn seen(replica: &mut Replica, id: Principal) -> impl PartialEq + std::fmt::Debug + use<> {
    let status = manage(replica, "canister_status", encode_args((ic::CanisterIdRecord { canister_id: id },)).unwrap());
    let status: ic::CanisterStatusResult = candid::decode_one(&status).unwrap();
    let snapshots =
        manage(replica, "list_canister_snapshots", encode_args((ic::CanisterIdRecord { canister_id: id },)).unwrap());
    let chunks = manage(replica, "stored_chunks", encode_args((ic::CanisterIdRecord { canister_id: id },)).unwrap());
    let logs: Vec<_> = replica.logs(id).unwrap().into_iter().map(|l| (l.index, l.time_nanos, l.content)).collect();
    let counts = status.module_hash.is_some().then(|| replica.query(id, me(), "counts", b"").reply());
    (status, snapshots, chunks, logs, replica.certified_data(id).unwrap(), replica.stable_memory(id).unwrap(), counts)
}

#[test]
fn everything_survives() {
    let folder = Folder::new("everything");
    let (mut directory, mut replica) = folder.open().unwrap();
    let empty = replica.create_canister(CanisterSettings { cycles: u128::MAX - 5, ..Default::default() });
    let id = deploy(&mut replica, &counter());
    let settings = ic::CanisterSettings {
        status_visibility: Some(ic::StatusVisibility::Public),
        reserved_cycles_limit: Some(Nat::from(u128::MAX)),
        log_visibility: Some(ic::LogVisibility::AllowedViewers(vec![empty])),
        environment_variables: Some(vec![ic::EnvironmentVariable { name: "N".into(), value: "v".into() }]),
        ..Default::default()
    };
    let settings = ic::UpdateSettingsArgs { canister_id: id, settings, sender_canister_version: None };
    manage(&mut replica, "update_settings", encode_args((settings,)).unwrap());
    manage(
        &mut replica,
        "upload_chunk",
        encode_args((ic::UploadChunkArgs { canister_id: id, chunk: vec![1, 2, 3] },)).unwrap(),
    );
    assert_eq!(counted(replica.update(id, me(), "count", b"")), 1);
    let take = ic::TakeCanisterSnapshotArgs {
        canister_id: id,
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    let snapshot: ic::Snapshot =
        candid::decode_one(&manage(&mut replica, "take_canister_snapshot", encode_args((take,)).unwrap())).unwrap();
    assert_eq!(counted(replica.update(id, me(), "count", b"")), 2);
    replica.update(id, me(), "grow", b"").reply();
    replica.update(id, me(), "later", b"").reply();
    let before = (seen(&mut replica, id), seen(&mut replica, empty), replica.heap_bytes(id).unwrap());
    let time = replica.time();
    directory.save(&mut replica).unwrap();
    // What is not saved is not there.
    replica.update(id, me(), "count", b"").reply();
    drop((directory, replica));

    let (mut directory, mut replica) = folder.open().unwrap();
    assert_eq!((replica.time(), replica.heap_bytes(id).unwrap()), (time, 42 * 65_536));
    let after = (seen(&mut replica, id), seen(&mut replica, empty), replica.heap_bytes(id).unwrap());
    assert_eq!(format!("{:?}", after.0), format!("{:?}", before.0));
    assert!(after == before);
    // Ids go on from where they were, and so does the timer.
    let next = replica.create_canister(CanisterSettings::default());
    assert!(next != id && next != empty);
    replica.advance_time(2_000_000_000);
    replica.tick();
    assert_eq!(counted(replica.update(id, me(), "count", b"")), 4);
    // The snapshot is whole, and it outlives a second round.
    directory.save(&mut replica).unwrap();
    drop((directory, replica));
    let (mut directory, mut replica) = folder.open().unwrap();
    assert_eq!(counted(replica.query(id, me(), "counts", b"")), 4);
    let load =
        ic::LoadCanisterSnapshotArgs { canister_id: id, snapshot_id: snapshot.id, sender_canister_version: None };
    manage(&mut replica, "load_canister_snapshot", encode_args((load,)).unwrap());
    assert_eq!(counted(replica.query(id, me(), "counts", b"")), 1);
    let before = seen(&mut replica, id);
    directory.save(&mut replica).unwrap();
    drop((directory, replica));
    let (_directory, mut replica) = folder.open().unwrap();
    assert!(seen(&mut replica, id) == before);
    replica.install(id, InstallMode::UPGRADE, &counter(), b"", me()).reply();
}

#[test]
fn calls_under_way_go_on() {
    let folder = Folder::new("calls");
    let (mut directory, mut replica) = folder.open().unwrap();
    let (id, sender) = (deploy(&mut replica, &counter()), deploy(&mut replica, &common::forwarder()));
    let forward = common::forwarded(id, "count", 1_000, b"");
    let call = replica.submit(sender, me(), "forward", &forward).unwrap();
    directory.save(&mut replica).unwrap();
    drop((directory, replica));
    let (_directory, mut replica) = folder.open().unwrap();
    let answer = replica.wait(call);
    assert_eq!(common::came_back(answer).unwrap()[..8], 1u64.to_le_bytes());
}

#[test]
fn a_save_writes_what_has_changed() {
    let folder = Folder::new("changed");
    let (mut directory, mut replica) = folder.open().unwrap();
    let (id, other) = (deploy(&mut replica, &counter()), deploy(&mut replica, &counter()));
    for id in [id, other] {
        let mut stable = vec![0; 48 * 65_536];
        stable.iter_mut().enumerate().for_each(|(i, b)| *b = (i / 65_536) as u8 + 1);
        replica.set_stable_memory(id, &stable).unwrap();
    }
    directory.save(&mut replica).unwrap();
    let blobs = |folder: &Folder| -> BTreeMap<PathBuf, Vec<u8>> { files(&folder.0.join("blobs")) };
    // The module once, and three segments of the two stable memories, which are equal; the heaps are zero.
    let first = blobs(&folder);
    assert_eq!(first.len(), 1 + 3, "{:?}", first.keys());
    directory.save(&mut replica).unwrap();
    assert_eq!(blobs(&folder), first);
    replica.update(id, me(), "count", b"").reply();
    directory.save(&mut replica).unwrap();
    // One segment of stable memory and two of the heap; the other canister still has what was there.
    let second = blobs(&folder);
    assert!(
        first.keys().all(|name| second.contains_key(name)) && second.len() == first.len() + 3,
        "{:?}",
        second.keys()
    );
    drop((directory, replica));
    // After opening, too; and what nothing needs goes.
    let (mut directory, mut replica) = folder.open().unwrap();
    directory.save(&mut replica).unwrap();
    assert_eq!(blobs(&folder), second);
    replica.install(id, InstallMode::Reinstall, &counter(), b"", me()).reply();
    directory.save(&mut replica).unwrap();
    assert_eq!(blobs(&folder), first);
}

#[test]
fn a_crash_leaves_the_old_state_or_the_new_one() {
    let folder = Folder::new("crash");
    let (mut directory, mut replica) = folder.open().unwrap();
    let id = deploy(&mut replica, &counter());
    replica.update(id, me(), "count", b"").reply();
    directory.save(&mut replica).unwrap();
    let old = files(&folder.0);
    replica.update(id, me(), "count", b"").reply();
    directory.save(&mut replica).unwrap();
    let new = files(&folder.0);
    drop((directory, replica));
    assert_ne!(old, new);
    let state = PathBuf::from("state");
    // A save adds blobs, one by one; writes the state beside the old one; puts it in its place; removes blobs.
    let mut steps = vec![(old.clone(), 1)];
    let mut between = old.clone();
    for (name, bytes) in new.iter().filter(|(name, _)| name.starts_with("blobs")) {
        let half = PathBuf::from(format!("{}.partial", name.display()));
        steps.push((
            between
                .iter()
                .chain([(&half, &bytes[..bytes.len() / 2].to_vec())])
                .map(|(n, b)| (n.clone(), b.clone()))
                .collect(),
            1,
        ));
        between.insert(name.clone(), bytes.clone());
        steps.push((between.clone(), 1));
    }
    between.insert("state.partial".into(), new[&state][..100].to_vec());
    steps.push((between.clone(), 1));
    between.insert("state.partial".into(), new[&state].clone());
    steps.push((between.clone(), 1));
    between.remove(Path::new("state.partial"));
    between.insert(state.clone(), new[&state].clone());
    steps.push((between.clone(), 2));
    steps.push((new, 2));
    for (step, (contents, count)) in steps.iter().enumerate() {
        let copy = Folder::new(&format!("crash-{step}"));
        put(&copy.0, contents);
        let (mut directory, mut replica) = copy.open().unwrap_or_else(|e| panic!("step {step}: {e}"));
        assert_eq!(counted(replica.query(id, me(), "counts", b"")), *count, "step {step}");
        directory.save(&mut replica).unwrap();
        assert!(files(&copy.0).keys().all(|name| name.extension().is_none()), "step {step} left something behind");
    }
    // A first save that was cut off is no state yet.
    let copy = Folder::new("crash-first");
    put(&copy.0, &between.into_iter().filter(|(name, _)| *name != state).collect());
    assert!(!copy.open().unwrap().1.canister_exists(id));
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    let folder = Folder::new("refused");
    let (mut directory, mut replica) = folder.open().unwrap();
    let id = deploy(&mut replica, &counter());
    replica.update(id, me(), "count", b"").reply();
    directory.save(&mut replica).unwrap();
    let in_use = folder.refused();
    assert!(in_use.contains("in use by another replica"), "{in_use}");
    drop((directory, replica));
    folder.open().unwrap();

    let good = files(&folder.0);
    for (name, bytes) in good.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let file = folder.0.join(name);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, damaged).unwrap();
            let words = folder.refused();
            assert!(words.contains("damaged") || words.contains("other files"), "{} at {at}: {words}", name.display());
        }
        for length in [0, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&file, &bytes[..length]).unwrap();
            folder.refused();
        }
        std::fs::write(&file, bytes).unwrap();
        if name.starts_with("blobs") {
            std::fs::remove_file(&file).unwrap();
            let words = folder.refused();
            assert!(words.contains("is missing"), "{words}");
            std::fs::write(&file, bytes).unwrap();
        }
    }
    folder.open().unwrap();

    let state = folder.0.join("state");
    let text = String::from_utf8(good[Path::new("state")].clone()).unwrap();
    std::fs::write(&state, text.replacen("state 1 ", "state 2 ", 1)).unwrap();
    let newer = folder.refused();
    assert!(newer.contains("newer replica (layout 2; this one reads up to 1)"), "{newer}");

    let foreign = Folder::new("foreign");
    std::fs::create_dir_all(&foreign.0).unwrap();
    std::fs::write(foreign.0.join("letter.txt"), "dear").unwrap();
    assert!(foreign.refused().contains("holds other files"));
    assert_eq!(files(&foreign.0).len(), 1, "not even a lock is put there");
    std::fs::write(foreign.0.join("state"), "dear").unwrap();
    assert!(foreign.refused().contains("holds other files"));
}
