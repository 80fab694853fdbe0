//! The management canister, `aaaaa-aa`.

use super::canister::{CallResult, Canister, Origin, Snapshot};
use super::install::check_controller;
use super::schedule::Request;
use super::{CanisterSettings, DEFAULT_CYCLES, Replica, canister_id};
use crate::cycles;
use crate::runtime::Instance;
use crate::types::{Cost, ErrorCode, InstallMode, Reject, Status};
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Nat, Principal};
use ic_management_canister_types as ic;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The Candid of `()`.
pub(super) const EMPTY_REPLY: &[u8] = b"DIDL\x00\x00";
/// Bytes of a chunk of the chunk store.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;
/// Controllers of a canister.
const CONTROLLERS_MAX: usize = 10;
/// Snapshots of a canister.
const SNAPSHOTS_MAX: usize = 10;

/// Settings that are kept and reported, but change nothing here.
#[derive(Clone, Debug)]
pub(super) struct StoredSettings {
    compute_allocation: Nat,
    memory_allocation: Nat,
    freezing_threshold: Nat,
    reserved_cycles_limit: Nat,
    log_visibility: ic::LogVisibility,
    log_memory_limit: Nat,
    snapshot_visibility: ic::SnapshotVisibility,
    wasm_memory_limit: Nat,
    wasm_memory_threshold: Nat,
}

impl Default for StoredSettings {
    fn default() -> Self {
        Self {
            compute_allocation: Nat::from(0u32),
            memory_allocation: Nat::from(0u32),
            freezing_threshold: Nat::from(2_592_000u32),
            reserved_cycles_limit: Nat::from(5_000_000_000_000u64),
            log_visibility: ic::LogVisibility::default(),
            log_memory_limit: Nat::from(4_096u32),
            snapshot_visibility: ic::SnapshotVisibility::default(),
            wasm_memory_limit: Nat::from(3_221_225_472u64),
            wasm_memory_threshold: Nat::from(0u32),
        }
    }
}

/// `install_code`'s argument; the module as a blob, so that it is not decoded byte by byte.
#[derive(CandidType, Deserialize)]
struct InstallCode {
    mode: ic::CanisterInstallMode,
    canister_id: Principal,
    #[serde(with = "serde_bytes")]
    wasm_module: Vec<u8>,
    #[serde(with = "serde_bytes")]
    arg: Vec<u8>,
}

fn decode<T: for<'a> ArgumentDecoder<'a>>(argument: &[u8]) -> Result<T, Reject> {
    candid::decode_args(argument)
        .map_err(|e| Reject::new(ErrorCode::InvalidManagementPayload, format!("Error decoding candid: {e}")))
}

fn encode<T: ArgumentEncoder>(reply: T) -> CallResult {
    candid::encode_args(reply)
        .map_err(|e| Reject::new(ErrorCode::InvalidManagementPayload, format!("Error encoding candid: {e}")))
}

fn invalid(message: impl Into<String>) -> Reject {
    Reject::new(ErrorCode::InvalidManagementPayload, message)
}

fn unknown(method: &str) -> Reject {
    Reject::new(ErrorCode::UnknownManagementMessage, format!("Management canister has no method '{method}'"))
}

fn mode_of(mode: ic::CanisterInstallMode) -> Result<InstallMode, Reject> {
    Ok(match mode {
        ic::CanisterInstallMode::Install => InstallMode::Install,
        ic::CanisterInstallMode::Reinstall => InstallMode::Reinstall,
        ic::CanisterInstallMode::Upgrade(flags) => {
            let flags = flags.unwrap_or_default();
            if flags.wasm_memory_persistence == Some(ic::WasmMemoryPersistence::Keep) {
                return Err(invalid("wasm_memory_persistence: keep is not supported by this replica"));
            }
            InstallMode::Upgrade { skip_pre_upgrade: flags.skip_pre_upgrade.unwrap_or(false) }
        }
    })
}

impl Replica {
    /// Runs a call of the management canister.
    pub(super) fn run_management(&mut self, request: Request) {
        if let Origin::Ingress(id) = request.origin {
            self.first_costs.insert(id, Cost::default());
        }
        let mut cycles = request.cycles;
        if request.method == "stop_canister" {
            match self.stop(&request) {
                Ok(None) => {}
                Ok(Some(reply)) => self.respond(request.origin, Ok(reply), cycles),
                Err(reject) => self.respond(request.origin, Err(reject), cycles),
            }
            return;
        }
        let from = self.trace.len();
        let result = self.management(request.caller, &request.method, &request.argument, &mut cycles, &request.origin);
        if let Origin::Ingress(id) = request.origin {
            let mut cost = Cost::default();
            self.trace[from.min(self.trace.len())..].iter().for_each(|m| cost.add(&m.cost));
            self.first_costs.insert(id, cost);
        }
        self.respond(request.origin, result, cycles);
    }

    fn management(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        cycles: &mut u128,
        origin: &Origin,
    ) -> CallResult {
        match method {
            "provisional_create_canister_with_cycles" => {
                let (args,): (ic::ProvisionalCreateCanisterWithCyclesArgs,) = decode(argument)?;
                let amount = args.amount.map_or(Ok(DEFAULT_CYCLES), |n| amount(&n))?;
                self.create(caller, amount, args.settings, args.specified_id)
            }
            "create_canister" => {
                let (args,): (ic::CreateCanisterArgs,) = decode(argument)?;
                if *origin == Origin::System || matches!(origin, Origin::Ingress(_)) {
                    return self.create(caller, DEFAULT_CYCLES, args.settings, None);
                }
                if *cycles < cycles::CREATE_CANISTER {
                    return Err(Reject::new(
                        ErrorCode::InsufficientCyclesForCreateCanister,
                        format!(
                            "Creating a canister requires a fee of {} cycles, but only {cycles} came",
                            cycles::CREATE_CANISTER
                        ),
                    ));
                }
                let balance = *cycles - cycles::CREATE_CANISTER;
                let reply = self.create(caller, balance, args.settings, None)?;
                *cycles = 0;
                Ok(reply)
            }
            "provisional_top_up_canister" => {
                let (args,): (ic::ProvisionalTopUpCanisterArgs,) = decode(argument)?;
                self.add_cycles(args.canister_id, amount(&args.amount)?)?;
                Ok(EMPTY_REPLY.to_vec())
            }
            "deposit_cycles" => {
                let (args,): (ic::CanisterIdRecord,) = decode(argument)?;
                self.add_cycles(args.canister_id, *cycles)?;
                *cycles = 0;
                Ok(EMPTY_REPLY.to_vec())
            }
            "update_settings" => {
                let (args,): (ic::UpdateSettingsArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                apply(canister, args.settings)?;
                canister.version += 1;
                Ok(EMPTY_REPLY.to_vec())
            }
            "install_code" => {
                let (args,): (InstallCode,) = decode(argument)?;
                self.install_code(args.canister_id, mode_of(args.mode)?, &args.wasm_module, args.arg, caller)?;
                Ok(EMPTY_REPLY.to_vec())
            }
            "uninstall_code" => {
                let (args,): (ic::UninstallCodeArgs,) = decode(argument)?;
                self.controlled(&args.canister_id, &caller)?;
                self.uninstall_code(args.canister_id)
            }
            "start_canister" => {
                let (args,): (ic::CanisterIdRecord,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                canister.status = Status::Running;
                canister.version += 1;
                for origin in std::mem::take(&mut canister.stop_waiters) {
                    let reject = Reject::new(
                        ErrorCode::CanisterStoppingCancelled,
                        format!("Canister {}'s stop request was cancelled", args.canister_id),
                    );
                    self.respond(origin, Err(reject), 0);
                }
                Ok(EMPTY_REPLY.to_vec())
            }
            "delete_canister" => {
                let (args,): (ic::DeleteCanisterArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                if canister.status != Status::Stopped {
                    return Err(Reject::new(
                        ErrorCode::CanisterNotStopped,
                        format!("Canister {} must be stopped before it is deleted.", args.canister_id),
                    ));
                }
                self.canisters.remove(&args.canister_id);
                Ok(EMPTY_REPLY.to_vec())
            }
            "canister_status" => {
                let (args,): (ic::CanisterStatusArgs,) = decode(argument)?;
                if caller != args.canister_id {
                    self.controlled(&args.canister_id, &caller)?;
                }
                encode((status(self.canister(&args.canister_id)?),))
            }
            "canister_info" => {
                let (args,): (ic::CanisterInfoArgs,) = decode(argument)?;
                let canister = self.canister(&args.canister_id)?;
                encode((ic::CanisterInfoResult {
                    total_num_changes: 0,
                    recent_changes: Vec::new(),
                    module_hash: canister.installed.as_ref().map(|i| i.module.hash.to_vec()),
                    controllers: canister.controllers.to_vec(),
                },))
            }
            "canister_metadata" => {
                let (args,): (ic::CanisterMetadataArgs,) = decode(argument)?;
                let value = self.metadata(args.canister_id, &args.name)?.ok_or_else(|| {
                    invalid(format!("Canister {} has no metadata section '{}'", args.canister_id, args.name))
                })?;
                encode((ic::CanisterMetadataResult { value },))
            }
            "raw_rand" => {
                decode::<()>(argument)?;
                self.next_random += 1;
                let bytes = Sha256::new()
                    .chain_update(b"icsql replica raw_rand")
                    .chain_update(self.next_random.to_le_bytes())
                    .finalize();
                encode((serde_bytes::ByteBuf::from(bytes.to_vec()),))
            }
            "fetch_canister_logs" => self.fetch_logs(caller, argument),
            "upload_chunk" | "clear_chunk_store" | "stored_chunks" | "install_chunked_code" => {
                self.chunks(caller, method, argument)
            }
            "take_canister_snapshot"
            | "load_canister_snapshot"
            | "list_canister_snapshots"
            | "delete_canister_snapshot" => self.snapshots(caller, method, argument),
            _ => Err(unknown(method)),
        }
    }

    /// What can be asked of the management canister as a query.
    pub(super) fn management_query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> CallResult {
        match method {
            "fetch_canister_logs" => self.fetch_logs(caller, argument),
            "canister_status" | "list_canister_snapshots" => {
                self.management(caller, method, argument, &mut 0, &Origin::System)
            }
            _ => Err(unknown(method)),
        }
    }

    fn controlled(&mut self, id: &Principal, caller: &Principal) -> Result<&mut Canister, Reject> {
        let canister = self.canister_mut(id)?;
        check_controller(canister, caller)?;
        Ok(canister)
    }

    fn create(
        &mut self,
        caller: Principal,
        cycles: u128,
        settings: Option<ic::CanisterSettings>,
        id: Option<Principal>,
    ) -> CallResult {
        let settings = settings.unwrap_or_default();
        let mut probe = Canister::new(canister_id(0), vec![caller], 0);
        apply(&mut probe, settings.clone())?;
        let id = self.try_create_canister(CanisterSettings { controllers: probe.controllers.to_vec(), cycles, id })?;
        apply(self.canister_mut(&id)?, settings)?;
        encode((ic::CanisterIdRecord { canister_id: id },))
    }

    /// Stops a canister; no reply yet when it still works on calls.
    fn stop(&mut self, request: &Request) -> Result<Option<Vec<u8>>, Reject> {
        let (args,): (ic::StopCanisterArgs,) = decode(&request.argument)?;
        let canister = self.controlled(&args.canister_id, &request.caller)?;
        if canister.status == Status::Stopped {
            return Ok(Some(EMPTY_REPLY.to_vec()));
        }
        canister.status = Status::Stopping;
        canister.stop_waiters.push(request.origin.clone());
        self.finish_stopping(args.canister_id);
        Ok(None)
    }

    fn fetch_logs(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::FetchCanisterLogsArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        let allowed = match &canister.settings.log_visibility {
            ic::LogVisibility::Public => true,
            ic::LogVisibility::Controllers => canister.is_controller(&caller),
            ic::LogVisibility::AllowedViewers(viewers) => viewers.contains(&caller) || canister.is_controller(&caller),
        };
        if !allowed {
            return Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("Caller {caller} is not allowed to access canister logs"),
            ));
        }
        let wanted = |index: u64, time: u64| match &args.filter {
            None => true,
            Some(ic::CanisterLogFilter::ByIdx { start, end }) => (*start..*end).contains(&index),
            Some(ic::CanisterLogFilter::ByTimestampNanos { start, end }) => (*start..*end).contains(&time),
        };
        let lines = canister.log.iter().filter(|line| wanted(line.index, line.time_nanos));
        let canister_log_records = lines
            .map(|line| ic::CanisterLogRecord {
                idx: line.index,
                timestamp_nanos: line.time_nanos,
                content: line.content.clone(),
            })
            .collect();
        encode((ic::FetchCanisterLogsResult { canister_log_records },))
    }

    fn chunks(&mut self, caller: Principal, method: &str, argument: &[u8]) -> CallResult {
        match method {
            "upload_chunk" => {
                let (args,): (ic::UploadChunkArgs,) = decode(argument)?;
                if args.chunk.len() > CHUNK_BYTES_MAX {
                    return Err(invalid(format!(
                        "The chunk has {} bytes, more than {CHUNK_BYTES_MAX}",
                        args.chunk.len()
                    )));
                }
                let hash: [u8; 32] = Sha256::digest(&args.chunk).into();
                self.controlled(&args.canister_id, &caller)?.chunks.insert(hash, Arc::new(args.chunk));
                encode((ic::ChunkHash { hash: hash.to_vec() },))
            }
            "clear_chunk_store" => {
                let (args,): (ic::ClearChunkStoreArgs,) = decode(argument)?;
                self.controlled(&args.canister_id, &caller)?.chunks.clear();
                Ok(EMPTY_REPLY.to_vec())
            }
            "stored_chunks" => {
                let (args,): (ic::StoredChunksArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                let hashes: Vec<_> = canister.chunks.keys().map(|h| ic::ChunkHash { hash: h.to_vec() }).collect();
                encode((hashes,))
            }
            _ => {
                let (args,): (ic::InstallChunkedCodeArgs,) = decode(argument)?;
                let store = args.store_canister.unwrap_or(args.target_canister);
                let canister = self.controlled(&store, &caller)?;
                let mut wasm = Vec::new();
                for chunk in &args.chunk_hashes_list {
                    let stored = <[u8; 32]>::try_from(chunk.hash.as_slice()).ok().and_then(|h| canister.chunks.get(&h));
                    let stored = stored.ok_or_else(|| {
                        invalid(format!("Chunk {} is not in the store of {store}", hex::encode(&chunk.hash)))
                    })?;
                    wasm.extend_from_slice(stored);
                }
                if Sha256::digest(&wasm).as_slice() != args.wasm_module_hash {
                    return Err(invalid("The chunks do not add up to a module with wasm_module_hash"));
                }
                self.install_code(args.target_canister, mode_of(args.mode)?, &wasm, args.arg, caller)?;
                Ok(EMPTY_REPLY.to_vec())
            }
        }
    }

    fn snapshots(&mut self, caller: Principal, method: &str, argument: &[u8]) -> CallResult {
        let time = self.shared.time;
        match method {
            "take_canister_snapshot" => {
                let (args,): (ic::TakeCanisterSnapshotArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                if let Some(replaced) = &args.replace_snapshot {
                    find_snapshot(canister, replaced)?;
                } else if canister.snapshots.len() >= SNAPSHOTS_MAX {
                    return Err(invalid(format!("Canister {} has {SNAPSHOTS_MAX} snapshots", args.canister_id)));
                }
                let (id, snapshot) = take_snapshot(canister, time)?;
                if let Some(replaced) = &args.replace_snapshot {
                    canister.snapshots.remove(replaced);
                }
                let described = describe(&id, &snapshot);
                canister.snapshots.insert(id, snapshot);
                if args.uninstall_code == Some(true) {
                    self.uninstall_code(args.canister_id)?;
                }
                encode((described,))
            }
            "load_canister_snapshot" => {
                let (args,): (ic::LoadCanisterSnapshotArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                let snapshot = find_snapshot(canister, &args.snapshot_id)?;
                let instance = Instance::load(&snapshot.module, &snapshot.heap, &snapshot.globals)
                    .map_err(|trap| trap.reject(&args.canister_id))?;
                canister.installed = Some(super::canister::Installed { module: snapshot.module, instance });
                canister.stable = snapshot.stable;
                canister.certified_data = snapshot.certified_data;
                canister.chunks = snapshot.chunks;
                canister.global_timer = 0;
                canister.version += 1;
                Ok(EMPTY_REPLY.to_vec())
            }
            "list_canister_snapshots" => {
                let (args,): (ic::ListCanisterSnapshotsArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                let all: Vec<_> = canister.snapshots.iter().map(|(id, s)| describe(id, s)).collect();
                encode((all,))
            }
            _ => {
                let (args,): (ic::DeleteCanisterSnapshotArgs,) = decode(argument)?;
                let canister = self.controlled(&args.canister_id, &caller)?;
                find_snapshot(canister, &args.snapshot_id)?;
                canister.snapshots.remove(&args.snapshot_id);
                Ok(EMPTY_REPLY.to_vec())
            }
        }
    }
}

fn find_snapshot(canister: &Canister, id: &[u8]) -> Result<Snapshot, Reject> {
    canister.snapshots.get(id).cloned().ok_or_else(|| {
        Reject::new(
            ErrorCode::CanisterSnapshotNotFound,
            format!("Could not find the snapshot {} of canister {}", hex::encode(id), canister.id),
        )
    })
}

fn take_snapshot(canister: &mut Canister, time: u64) -> Result<(Vec<u8>, Snapshot), Reject> {
    let installed = canister.installed()?;
    let module = Arc::clone(&installed.module);
    let (heap, globals) = installed.instance.save();
    canister.next_snapshot += 1;
    let id = [&canister.next_snapshot.to_be_bytes()[..], canister.id.as_slice()].concat();
    let snapshot = Snapshot {
        module,
        heap: Arc::new(heap),
        globals,
        stable: canister.stable.clone(),
        certified_data: canister.certified_data.clone(),
        chunks: canister.chunks.clone(),
        taken_at: time,
    };
    Ok((id, snapshot))
}

fn describe(id: &[u8], snapshot: &Snapshot) -> ic::Snapshot {
    let chunks: usize = snapshot.chunks.values().map(|c| c.len()).sum();
    ic::Snapshot {
        id: id.to_vec(),
        taken_at_timestamp: snapshot.taken_at,
        total_size: snapshot.heap.len() as u64 + snapshot.stable.bytes() + chunks as u64,
    }
}

fn amount(n: &Nat) -> Result<u128, Reject> {
    u128::try_from(n.0.clone()).map_err(|_| invalid(format!("{n} cycles do not fit into 128 bits")))
}

/// Changes the settings that are given.
fn apply(canister: &mut Canister, settings: ic::CanisterSettings) -> Result<(), Reject> {
    if let Some(controllers) = settings.controllers {
        if controllers.len() > CONTROLLERS_MAX {
            return Err(invalid(format!("{} controllers, more than {CONTROLLERS_MAX}", controllers.len())));
        }
        canister.controllers = Arc::new(controllers);
    }
    if let Some(variables) = settings.environment_variables {
        canister.variables = Arc::new(variables.into_iter().map(|v| (v.name, v.value)).collect());
    }
    let stored = &mut canister.settings;
    let set = |to: &mut Nat, from: Option<Nat>| {
        if let Some(value) = from {
            *to = value;
        }
    };
    set(&mut stored.compute_allocation, settings.compute_allocation);
    set(&mut stored.memory_allocation, settings.memory_allocation);
    set(&mut stored.freezing_threshold, settings.freezing_threshold);
    set(&mut stored.reserved_cycles_limit, settings.reserved_cycles_limit);
    set(&mut stored.log_memory_limit, settings.log_memory_limit);
    set(&mut stored.wasm_memory_limit, settings.wasm_memory_limit);
    set(&mut stored.wasm_memory_threshold, settings.wasm_memory_threshold);
    if let Some(visibility) = settings.log_visibility {
        stored.log_visibility = visibility;
    }
    if let Some(visibility) = settings.snapshot_visibility {
        stored.snapshot_visibility = visibility;
    }
    Ok(())
}

fn status(canister: &Canister) -> ic::CanisterStatusResult {
    let settings = canister.settings.clone();
    let heap = canister.installed.as_ref().map_or(0, |i| i.instance.heap_bytes());
    let stable = canister.stable.bytes();
    let chunks: u64 = canister.chunks.values().map(|c| c.len() as u64).sum();
    let snapshots: u64 = canister.snapshots.iter().map(|(id, s)| describe(id, s).total_size).sum();
    ic::CanisterStatusResult {
        status: match canister.status {
            Status::Running => ic::CanisterStatusType::Running,
            Status::Stopping => ic::CanisterStatusType::Stopping,
            Status::Stopped => ic::CanisterStatusType::Stopped,
        },
        ready_for_migration: false,
        version: canister.version,
        settings: ic::DefiniteCanisterSettings {
            controllers: canister.controllers.to_vec(),
            compute_allocation: settings.compute_allocation,
            memory_allocation: settings.memory_allocation,
            freezing_threshold: settings.freezing_threshold,
            reserved_cycles_limit: settings.reserved_cycles_limit,
            log_visibility: settings.log_visibility,
            log_memory_limit: settings.log_memory_limit,
            snapshot_visibility: settings.snapshot_visibility,
            wasm_memory_limit: settings.wasm_memory_limit,
            wasm_memory_threshold: settings.wasm_memory_threshold,
            environment_variables: canister
                .variables
                .iter()
                .map(|(name, value)| ic::EnvironmentVariable { name: name.clone(), value: value.clone() })
                .collect(),
        },
        module_hash: canister.installed.as_ref().map(|i| i.module.hash.to_vec()),
        memory_size: Nat::from(heap + stable + chunks + snapshots),
        memory_metrics: ic::MemoryMetrics {
            wasm_memory_size: Nat::from(heap),
            stable_memory_size: Nat::from(stable),
            global_memory_size: Nat::from(0u32),
            wasm_binary_size: Nat::from(0u32),
            custom_sections_size: Nat::from(0u32),
            canister_history_size: Nat::from(0u32),
            wasm_chunk_store_size: Nat::from(chunks),
            snapshots_size: Nat::from(snapshots),
            log_memory_store_size: Nat::from(canister.log_bytes as u64),
        },
        cycles: Nat::from(canister.balance),
        reserved_cycles: Nat::from(0u32),
        idle_cycles_burned_per_day: Nat::from(0u32),
        query_stats: ic::QueryStats {
            num_calls_total: Nat::from(0u32),
            num_instructions_total: Nat::from(0u32),
            request_payload_bytes_total: Nat::from(0u32),
            response_payload_bytes_total: Nat::from(0u32),
        },
    }
}
