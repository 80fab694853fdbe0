//! The management canister: what its methods do, who may call them, and what they refuse.

mod common;

use candid::utils::{ArgumentEncoder, decode_one, encode_args};
use candid::{CandidType, Nat};
use common::{came_back, deploy, forwarded, forwarder, me, module};
use ic_management_canister_types as ic;
use icsql_replica::{CanisterSettings, Config, ErrorCode, InstallMode, Principal, Reject, Replica};
use sha2::{Digest, Sha256};

const MANAGEMENT: Principal = Principal::management_canister();

fn call_as<A: ArgumentEncoder>(
    replica: &mut Replica,
    sender: Principal,
    method: &str,
    args: A,
) -> Result<Vec<u8>, Reject> {
    replica.update(MANAGEMENT, sender, method, &encode_args(args).unwrap()).result
}

fn call<A: ArgumentEncoder>(replica: &mut Replica, method: &str, args: A) -> Result<Vec<u8>, Reject> {
    call_as(replica, me(), method, args)
}

/// Calls as the controller; the reply decoded.
fn ask<A: ArgumentEncoder, R: CandidType + for<'a> candid::Deserialize<'a>>(
    replica: &mut Replica,
    method: &str,
    args: A,
) -> R {
    decode_one(&call(replica, method, args).unwrap()).unwrap()
}

fn of(canister_id: Principal) -> (ic::CanisterIdRecord,) {
    (ic::CanisterIdRecord { canister_id },)
}

fn stranger() -> Principal {
    Principal::from_slice(&[9; 29])
}

fn status(replica: &mut Replica, id: Principal) -> ic::CanisterStatusResult {
    ask(replica, "canister_status", of(id))
}

fn update_settings(
    replica: &mut Replica,
    canister_id: Principal,
    settings: ic::CanisterSettings,
) -> Result<(), Reject> {
    let args = ic::UpdateSettingsArgs { canister_id, settings, sender_canister_version: None };
    call(replica, "update_settings", (args,)).map(drop)
}

/// Counts in its heap; remembers nothing else.
fn counter() -> Vec<u8> {
    counter_with("")
}

fn counter_with(section: &str) -> Vec<u8> {
    module(&format!(
        r#"{section} (memory 1)
        (func (export "canister_update count")
            (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
            (if (i64.eqz (call $stable_size)) (then (drop (call $stable_grow (i64.const 1)))))
            (call $stable_write (i64.const 65528) (i64.const 8) (i64.const 8))
            (call $print (i32.const 8) (i32.const 8))
            (call $reply (i32.const 8) (i32.const 8)))"#
    ))
}

fn count(replica: &mut Replica, id: Principal) -> u64 {
    u64::from_le_bytes(replica.update(id, me(), "count", b"").reply().try_into().unwrap())
}

#[test]
fn every_setting_is_kept_and_reported() {
    let mut replica = Replica::new(Config::default());
    let friend = stranger();
    let settings = ic::CanisterSettings {
        controllers: Some(vec![me(), friend]),
        compute_allocation: Some(Nat::from(1u32)),
        memory_allocation: Some(Nat::from(2u32)),
        freezing_threshold: Some(Nat::from(3u32)),
        reserved_cycles_limit: Some(Nat::from(4u32)),
        minimum_incoming_canister_call_cycles: Some(Nat::from(5u32)),
        log_visibility: Some(ic::LogVisibility::Public),
        log_memory_limit: Some(Nat::from(6u32)),
        snapshot_visibility: Some(ic::SnapshotVisibility::AllowedViewers(vec![friend])),
        status_visibility: Some(ic::StatusVisibility::Public),
        wasm_memory_limit: Some(Nat::from(7u32)),
        wasm_memory_threshold: Some(Nat::from(8u32)),
        environment_variables: Some(vec![ic::EnvironmentVariable { name: "A".into(), value: "b".into() }]),
    };
    let expected = ic::DefiniteCanisterSettings {
        controllers: vec![me(), friend],
        compute_allocation: Nat::from(1u32),
        memory_allocation: Nat::from(2u32),
        freezing_threshold: Nat::from(3u32),
        reserved_cycles_limit: Nat::from(4u32),
        minimum_incoming_canister_call_cycles: Nat::from(5u32),
        log_visibility: ic::LogVisibility::Public,
        log_memory_limit: Nat::from(6u32),
        snapshot_visibility: ic::SnapshotVisibility::AllowedViewers(vec![friend]),
        status_visibility: ic::StatusVisibility::Public,
        wasm_memory_limit: Nat::from(7u32),
        wasm_memory_threshold: Nat::from(8u32),
        environment_variables: settings.environment_variables.clone().unwrap(),
    };
    // The same whether they are given at creation or later; what is not given stays.
    let create = ic::CreateCanisterArgs { settings: Some(settings.clone()), sender_canister_version: None };
    let created: ic::CanisterIdRecord = ask(&mut replica, "create_canister", (create,));
    assert_eq!(status(&mut replica, created.canister_id).settings, expected);
    let later = replica.create_canister(CanisterSettings::default());
    assert_eq!(status(&mut replica, later).settings.freezing_threshold, 2_592_000u32);
    update_settings(&mut replica, later, settings).unwrap();
    update_settings(&mut replica, later, ic::CanisterSettings::default()).unwrap();
    assert_eq!(status(&mut replica, later).settings, expected);
}

#[test]
fn settings_outside_their_range_change_nothing() {
    let mut replica = Replica::new(Config::default());
    let id = replica.create_canister(CanisterSettings::default());
    let before = status(&mut replica, id);
    let nat = |n: u128| Some(Nat::from(n));
    let base = ic::CanisterSettings { freezing_threshold: nat(1), controllers: Some(vec![]), ..Default::default() };
    let variables = |count: usize, name: usize, value: usize| {
        let variable = |i: usize| ic::EnvironmentVariable { name: format!("{i:0name$}"), value: "v".repeat(value) };
        Some((0..count).map(variable).collect::<Vec<_>>())
    };
    let viewers = |count: u8| (0..count).map(|i| Principal::from_slice(&[i])).collect::<Vec<_>>();
    type Set = fn(&mut ic::CanisterSettings, u128);
    let numbers: [(Set, u128); 6] = [
        (|s, n| s.compute_allocation = Some(Nat::from(n)), 100),
        (|s, n| s.memory_allocation = Some(Nat::from(n)), 1 << 48),
        (|s, n| s.freezing_threshold = Some(Nat::from(n)), u64::MAX.into()),
        (|s, n| s.log_memory_limit = Some(Nat::from(n)), 2 << 20),
        (|s, n| s.wasm_memory_limit = Some(Nat::from(n)), 1 << 48),
        (|s, n| s.wasm_memory_threshold = Some(Nat::from(n)), 1 << 48),
    ];
    for (at, (set, most)) in numbers.into_iter().enumerate() {
        let mut over = base.clone();
        set(&mut over, most + 1);
        let refused = update_settings(&mut replica, id, over).unwrap_err();
        assert_eq!(refused.code, ErrorCode::CanisterContractViolation, "{at}");
        assert!(refused.message.contains(&format!("{}", Nat::from(most + 1))), "{refused}");
        assert_eq!(status(&mut replica, id), before, "{at}");
        let fresh = replica.create_canister(CanisterSettings::default());
        for n in [most - 1, most] {
            let mut within = ic::CanisterSettings::default();
            set(&mut within, n);
            update_settings(&mut replica, fresh, within).unwrap();
        }
    }
    let too_much = [
        ic::CanisterSettings { reserved_cycles_limit: Some(Nat::from(u128::MAX) + 1u32), ..base.clone() },
        ic::CanisterSettings {
            minimum_incoming_canister_call_cycles: Some(Nat::from(u128::MAX) + 1u32),
            ..base.clone()
        },
        ic::CanisterSettings { environment_variables: variables(21, 2, 1), ..base.clone() },
        ic::CanisterSettings { environment_variables: variables(1, 129, 1), ..base.clone() },
        ic::CanisterSettings { environment_variables: variables(1, 1, 129), ..base.clone() },
        ic::CanisterSettings {
            environment_variables: Some([variables(1, 1, 1).unwrap(), variables(1, 1, 1).unwrap()].concat()),
            ..base.clone()
        },
        ic::CanisterSettings { controllers: Some(viewers(11)), ..base.clone() },
        ic::CanisterSettings { log_visibility: Some(ic::LogVisibility::AllowedViewers(viewers(11))), ..base.clone() },
        ic::CanisterSettings {
            snapshot_visibility: Some(ic::SnapshotVisibility::AllowedViewers(viewers(11))),
            ..base.clone()
        },
        ic::CanisterSettings {
            status_visibility: Some(ic::StatusVisibility::AllowedViewers(viewers(11))),
            ..base.clone()
        },
    ];
    for (at, settings) in too_much.into_iter().enumerate() {
        update_settings(&mut replica, id, settings).expect_err(&format!("{at}"));
        assert_eq!(status(&mut replica, id), before, "{at}");
    }
    let all = ic::CanisterSettings {
        reserved_cycles_limit: Some(Nat::from(u128::MAX)),
        environment_variables: variables(20, 128, 128),
        controllers: Some([viewers(9), vec![me()]].concat()),
        log_visibility: Some(ic::LogVisibility::AllowedViewers(viewers(10))),
        ..Default::default()
    };
    update_settings(&mut replica, id, all).unwrap();
    assert_eq!(status(&mut replica, id).settings.environment_variables.len(), 20);
}

#[test]
fn only_controllers_and_those_they_allow_get_in() {
    let mut replica = Replica::new(Config::default());
    let id = deploy(&mut replica, &counter());
    let refused = |replica: &mut Replica, method: &str| {
        let reject = call_as(replica, stranger(), method, of(id)).expect_err(method);
        (reject.code, reject.message)
    };
    let for_controllers = [
        "start_canister",
        "stop_canister",
        "delete_canister",
        "uninstall_code",
        "upload_chunk",
        "clear_chunk_store",
        "stored_chunks",
        "take_canister_snapshot",
        "load_canister_snapshot",
        "delete_canister_snapshot",
        "update_settings",
        "install_code",
    ];
    for method in for_controllers {
        let (code, message) = refused(&mut replica, method);
        assert_eq!(code, ErrorCode::CanisterInvalidController, "{method}");
        assert_eq!(message, format!("Only controllers of canister {id} can call ic00 method {method}"));
    }
    for method in ["canister_info", "canister_metadata", "deposit_cycles", "raw_rand"] {
        let (code, message) = refused(&mut replica, method);
        assert_eq!(code, ErrorCode::CanisterRejectedMessage, "{method}");
        assert_eq!(message, format!("Only canisters can call ic00 method {method}"));
    }
    assert_eq!(refused(&mut replica, "make_coffee").0, ErrorCode::CanisterMethodNotFound);
    assert_eq!(
        call_as(&mut replica, me(), "stop_canister", of(stranger())).unwrap_err().code,
        ErrorCode::CanisterNotFound
    );
    let malformed = replica.update(MANAGEMENT, me(), "stop_canister", b"DIDL").result.unwrap_err();
    assert_eq!(malformed.code, ErrorCode::InvalidManagementPayload);

    // Status, snapshots and logs have settings of their own.
    let logs = |replica: &mut Replica| {
        let args = encode_args((ic::FetchCanisterLogsArgs { canister_id: id, filter: None },)).unwrap();
        replica.query(MANAGEMENT, stranger(), "fetch_canister_logs", &args).result
    };
    assert_eq!(refused(&mut replica, "canister_status").0, ErrorCode::CanisterStatusAccessDenied);
    assert_eq!(refused(&mut replica, "list_canister_snapshots").0, ErrorCode::CanisterInvalidController);
    assert_eq!(logs(&mut replica).unwrap_err().code, ErrorCode::CanisterRejectedMessage);
    let open = ic::CanisterSettings {
        status_visibility: Some(ic::StatusVisibility::AllowedViewers(vec![stranger()])),
        snapshot_visibility: Some(ic::SnapshotVisibility::AllowedViewers(vec![stranger()])),
        log_visibility: Some(ic::LogVisibility::AllowedViewers(vec![stranger()])),
        ..Default::default()
    };
    update_settings(&mut replica, id, open).unwrap();
    call_as(&mut replica, stranger(), "canister_status", of(id)).unwrap();
    call_as(&mut replica, stranger(), "list_canister_snapshots", of(id)).unwrap();
    logs(&mut replica).unwrap();
}

#[test]
fn a_canister_is_stopped_before_it_goes() {
    let mut replica = Replica::new(Config::default());
    let id = deploy(&mut replica, &counter());
    let running = call(&mut replica, "delete_canister", of(id)).unwrap_err();
    assert_eq!(running.code, ErrorCode::CanisterNotStopped);
    call(&mut replica, "stop_canister", of(id)).unwrap();
    assert_eq!(status(&mut replica, id).status, ic::CanisterStatusType::Stopped);
    call(&mut replica, "delete_canister", of(id)).unwrap();
    assert_eq!(call(&mut replica, "canister_status", of(id)).unwrap_err().code, ErrorCode::CanisterNotFound);
    // A canister may control itself, but not make itself disappear.
    let sender = deploy(&mut replica, &forwarder());
    update_settings(
        &mut replica,
        sender,
        ic::CanisterSettings { controllers: Some(vec![me(), sender]), ..Default::default() },
    )
    .unwrap();
    let delete = forwarded(MANAGEMENT, "delete_canister", 0, &encode_args(of(sender)).unwrap());
    let refused = came_back(replica.update(sender, me(), "forward", &delete)).unwrap_err();
    assert!(refused.contains("cannot delete itself"), "{refused}");
    let stop = forwarded(MANAGEMENT, "canister_status", 0, &encode_args(of(sender)).unwrap());
    came_back(replica.update(sender, me(), "forward", &stop)).unwrap();
}

#[test]
fn modules_arrive_in_chunks() {
    let mut replica = Replica::new(Config::default());
    let id = replica.create_canister(CanisterSettings::default());
    let upload = |replica: &mut Replica, chunk: Vec<u8>| {
        call(replica, "upload_chunk", (ic::UploadChunkArgs { canister_id: id, chunk },))
    };
    let wasm = counter();
    let (front, back) = wasm.split_at(wasm.len() / 2);
    let hash_of = |bytes: &[u8]| ic::ChunkHash { hash: Sha256::digest(bytes).to_vec() };
    for chunk in [back, front] {
        let reply: ic::ChunkHash = decode_one(&upload(&mut replica, chunk.to_vec()).unwrap()).unwrap();
        assert_eq!(reply, hash_of(chunk));
    }
    let mut stored: Vec<ic::ChunkHash> = ask(&mut replica, "stored_chunks", of(id));
    stored.sort();
    let mut expected = vec![hash_of(front), hash_of(back)];
    expected.sort();
    assert_eq!(stored, expected);
    let install = |replica: &mut Replica, chunks: Vec<ic::ChunkHash>, hash: &[u8]| {
        let args = ic::InstallChunkedCodeArgs {
            mode: ic::CanisterInstallMode::Install,
            target_canister: id,
            store_canister: None,
            chunk_hashes_list: chunks,
            wasm_module_hash: hash.to_vec(),
            arg: vec![],
            sender_canister_version: None,
        };
        call(replica, "install_chunked_code", (args,))
    };
    let whole = Sha256::digest(&wasm);
    let wrong_order = install(&mut replica, vec![hash_of(back), hash_of(front)], &whole).unwrap_err();
    assert!(wrong_order.message.contains(&format!("does not match the given hash {}", hex(&whole))), "{wrong_order}");
    let missing = install(&mut replica, vec![hash_of(b"no")], &whole).unwrap_err();
    assert!(missing.message.contains(&hex(&hash_of(b"no").hash)), "{missing}");
    install(&mut replica, vec![hash_of(front), hash_of(back)], &whole).unwrap();
    assert_eq!(count(&mut replica, id), 1);
    assert_eq!(status(&mut replica, id).module_hash.as_deref(), Some(whole.as_slice()));
    // A chunk has at most 1 MiB, a store at most 100 chunks.
    assert_eq!(upload(&mut replica, vec![0; (1 << 20) + 1]).unwrap_err().code, ErrorCode::CanisterContractViolation);
    upload(&mut replica, vec![0; 1 << 20]).unwrap();
    call(&mut replica, "clear_chunk_store", of(id)).unwrap();
    for i in 0..100u8 {
        upload(&mut replica, vec![i]).unwrap();
    }
    assert!(upload(&mut replica, vec![100]).unwrap_err().message.contains("maximum of 100 chunks"));
    upload(&mut replica, vec![99]).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn snapshots_can_be_read() {
    let mut replica = Replica::new(Config::default());
    let id = deploy(&mut replica, &counter());
    let take = ic::TakeCanisterSnapshotArgs {
        canister_id: id,
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    count(&mut replica, id);
    let snapshot: ic::Snapshot = ask(&mut replica, "take_canister_snapshot", (take.clone(),));
    assert_eq!(count(&mut replica, id), 2);
    let about = ic::ReadCanisterSnapshotMetadataArgs { canister_id: id, snapshot_id: snapshot.id.clone() };
    let metadata: ic::ReadCanisterSnapshotMetadataResult =
        ask(&mut replica, "read_canister_snapshot_metadata", (about,));
    let sizes = (metadata.wasm_module_size, metadata.wasm_memory_size, metadata.stable_memory_size);
    assert_eq!(sizes, (counter().len() as u64, 65_536, 65_536));
    assert_eq!(snapshot.total_size, sizes.0 + sizes.1 + sizes.2);
    let read = |replica: &mut Replica, kind: ic::SnapshotDataKind| {
        let args = ic::ReadCanisterSnapshotDataArgs { canister_id: id, snapshot_id: snapshot.id.clone(), kind };
        let reply = call(replica, "read_canister_snapshot_data", (args,))?;
        Ok::<_, Reject>(decode_one::<ic::ReadCanisterSnapshotDataResult>(&reply).unwrap().chunk)
    };
    use ic::SnapshotDataKind as Kind;
    assert_eq!(read(&mut replica, Kind::WasmModule { offset: 0, size: sizes.0 }).unwrap(), counter());
    assert_eq!(read(&mut replica, Kind::WasmMemory { offset: 8, size: 8 }).unwrap(), 1u64.to_le_bytes());
    assert_eq!(read(&mut replica, Kind::StableMemory { offset: 65_528, size: 8 }).unwrap(), 1u64.to_le_bytes());
    for kind in [
        Kind::WasmModule { offset: sizes.0, size: 1 },
        Kind::WasmMemory { offset: 65_529, size: 8 },
        Kind::StableMemory { offset: u64::MAX, size: 1 },
        Kind::StableMemory { offset: 0, size: 2_000_001 },
        Kind::WasmChunk { hash: vec![1; 32] },
    ] {
        assert_eq!(read(&mut replica, kind).unwrap_err().code, ErrorCode::InvalidManagementPayload);
    }
    // Ten at most; one can take the place of another.
    for _ in 1..10 {
        call(&mut replica, "take_canister_snapshot", (take.clone(),)).unwrap();
    }
    let eleventh = call(&mut replica, "take_canister_snapshot", (take.clone(),)).unwrap_err();
    assert!(eleventh.message.contains("maximum number of snapshots allowed: 10"), "{eleventh}");
    let replacing = ic::TakeCanisterSnapshotArgs { replace_snapshot: Some(snapshot.id.clone()), ..take };
    call(&mut replica, "take_canister_snapshot", (replacing,)).unwrap();
    let load =
        ic::LoadCanisterSnapshotArgs { canister_id: id, snapshot_id: snapshot.id, sender_canister_version: None };
    let gone = call(&mut replica, "load_canister_snapshot", (load,)).unwrap_err();
    assert_eq!(gone.code, ErrorCode::CanisterSnapshotNotFound);
}

#[test]
fn a_canister_can_ask_about_itself_and_others() {
    let mut replica = Replica::new(Config::default());
    let sender = deploy(&mut replica, &forwarder());
    let id =
        deploy(&mut replica, &counter_with(r#"(@custom "icp:private secret" "x") (@custom "icp:public open" "y")"#));
    replica.install(id, InstallMode::UPGRADE, &counter(), b"", me()).reply();
    replica
        .install(
            id,
            InstallMode::Reinstall,
            &counter_with(r#"(@custom "icp:private secret" "x") (@custom "icp:public open" "y")"#),
            b"",
            me(),
        )
        .reply();
    let controllers = vec![me(), stranger()];
    update_settings(
        &mut replica,
        id,
        ic::CanisterSettings { controllers: Some(controllers.clone()), ..Default::default() },
    )
    .unwrap();
    let mut forward = |method: &str, cycles: u64, argument: Vec<u8>| {
        came_back(replica.update(sender, me(), "forward", &forwarded(MANAGEMENT, method, cycles, &argument)))
    };
    let asked = encode_args((ic::CanisterInfoArgs { canister_id: id, num_requested_changes: Some(3) },)).unwrap();
    let info: ic::CanisterInfoResult = decode_one(&forward("canister_info", 0, asked).unwrap()).unwrap();
    assert_eq!((info.total_num_changes, &info.controllers), (5, &controllers));
    let modes: Vec<_> = info.recent_changes.iter().map(|c| (c.canister_version, c.details.clone().unwrap())).collect();
    let deployed = |mode, wasm: &[u8]| {
        ic::ChangeDetails::CodeDeployment(ic::CodeDeploymentRecord { mode, module_hash: Sha256::digest(wasm).to_vec() })
    };
    assert_eq!(modes[0], (2, deployed(ic::CodeDeploymentMode::Upgrade, &counter())));
    assert!(
        matches!(&modes[1], (3, ic::ChangeDetails::CodeDeployment(c)) if c.mode == ic::CodeDeploymentMode::Reinstall)
    );
    let changed = ic::ChangeDetails::ControllersChange(ic::ControllersChangeRecord { controllers });
    assert_eq!(modes[2], (4, changed));
    let section = |name: &str| encode_args((ic::CanisterMetadataArgs { canister_id: id, name: name.into() },)).unwrap();
    let open: ic::CanisterMetadataResult =
        decode_one(&forward("canister_metadata", 0, section("open")).unwrap()).unwrap();
    assert_eq!(open.value, b"y");
    assert!(forward("canister_metadata", 0, section("secret")).unwrap_err().contains("no metadata section 'secret'"));
    // Random bytes are 32, and never the same.
    let random = |reply: Vec<u8>| decode_one::<Vec<u8>>(&reply).unwrap();
    let first = random(forward("raw_rand", 0, encode_args(()).unwrap()).unwrap());
    let second = random(forward("raw_rand", 0, encode_args(()).unwrap()).unwrap());
    assert!(first.len() == 32 && first != second);
    // Cycles come out of the call.
    forward("deposit_cycles", 1_000, encode_args(of(id)).unwrap()).unwrap();
    let create = encode_args((ic::CreateCanisterArgs::default(),)).unwrap();
    assert!(forward("create_canister", 499_999_999_999, create.clone()).unwrap_err().contains("500000000000"));
    let created: ic::CanisterIdRecord =
        decode_one(&forward("create_canister", 500_000_000_007, create).unwrap()).unwrap();
    assert_eq!(replica.cycles(created.canister_id).unwrap(), 7);
    assert_eq!(replica.controllers(created.canister_id).unwrap(), [sender]);
}

#[test]
fn calls_bring_the_cycles_that_the_callee_asks_for() {
    let mut replica = Replica::new(Config::default());
    let sender = deploy(&mut replica, &forwarder());
    let id = deploy(&mut replica, &counter());
    let settings =
        ic::CanisterSettings { minimum_incoming_canister_call_cycles: Some(Nat::from(1_000u32)), ..Default::default() };
    update_settings(&mut replica, id, settings).unwrap();
    let mut forward =
        |cycles: u64| came_back(replica.update(sender, me(), "forward", &forwarded(id, "count", cycles, b"")));
    assert!(forward(999).unwrap_err().contains("at least 1000 cycles, but only 999 came"));
    assert_eq!(forward(1_000).unwrap(), 1u64.to_le_bytes());
    // Calls from outside carry none and are let in.
    assert_eq!(count(&mut replica, id), 2);
}

#[test]
fn a_log_is_as_long_as_it_may_be() {
    let mut replica = Replica::new(Config::default());
    let id = deploy(&mut replica, &counter());
    for _ in 0..5 {
        count(&mut replica, id);
    }
    let limit = |n: u32| ic::CanisterSettings { log_memory_limit: Some(Nat::from(n)), ..Default::default() };
    assert_eq!(replica.logs(id).unwrap().len(), 5);
    update_settings(&mut replica, id, limit(24)).unwrap();
    assert_eq!(replica.logs(id).unwrap().iter().map(|l| l.index).collect::<Vec<_>>(), [2, 3, 4]);
    count(&mut replica, id);
    assert_eq!(replica.logs(id).unwrap().iter().map(|l| l.index).collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn a_heap_outlives_upgrades_only_as_the_module_says() {
    let mut replica = Replica::new(Config::default());
    let persistent = counter_with(r#"(@custom "icp:private enhanced-orthogonal-persistence" "")"#);
    let upgrade = |keep_heap| InstallMode::Upgrade { skip_pre_upgrade: false, keep_heap };
    let id = deploy(&mut replica, &persistent);
    assert_eq!(count(&mut replica, id), 1);
    let mut install = |mode, wasm: &[u8]| replica.install(id, mode, wasm, b"", me()).result;
    let undecided = install(upgrade(None), &persistent).unwrap_err();
    assert!(undecided.message.starts_with("Missing upgrade option"), "{undecided}");
    let cannot = install(upgrade(Some(true)), &counter()).unwrap_err();
    assert!(cannot.message.starts_with("Invalid upgrade option"), "{cannot}");
    install(upgrade(Some(true)), &persistent).unwrap();
    assert_eq!(count(&mut replica, id), 2);
    replica.install(id, upgrade(Some(false)), &persistent, b"", me()).reply();
    assert_eq!(count(&mut replica, id), 1);
}
