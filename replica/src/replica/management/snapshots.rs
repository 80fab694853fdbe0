//! Snapshots: taking, loading, listing, deleting, reading them. They cannot be uploaded.

use super::{EMPTY_REPLY, Sender, decode, encode, invalid, settings};
use crate::limits::{SNAPSHOT_SLICE_BYTES_MAX, SNAPSHOTS_MAX};
use crate::replica::Replica;
use crate::replica::canister::{CallResult, Canister, Installed, Snapshot};
use crate::runtime::Instance;
use crate::types::{ErrorCode, Reject};
use candid::{Nat, Principal, Reserved};
use ic_management_canister_types as ic;
use std::sync::Arc;

fn rejected(message: String) -> Reject {
    Reject::new(ErrorCode::CanisterRejectedMessage, message)
}

fn find<'a>(canister: &'a Canister, id: &[u8]) -> Result<&'a Snapshot, Reject> {
    canister.snapshots.get(id).ok_or_else(|| {
        Reject::new(
            ErrorCode::CanisterSnapshotNotFound,
            format!("Could not find the snapshot ID {} for canister {}", hex::encode(id), canister.id),
        )
    })
}

fn take(canister: &mut Canister, time: u64) -> Result<(Vec<u8>, Snapshot), Reject> {
    let id = canister.id;
    let installed = canister
        .installed
        .as_mut()
        .ok_or_else(|| rejected(format!("Failed to create snapshot for empty canister {id}")))?;
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
        version: canister.version,
        global_timer: canister.global_timer,
    };
    Ok((id, snapshot))
}

pub(super) fn describe(id: &[u8], snapshot: &Snapshot) -> ic::Snapshot {
    let chunks: usize = snapshot.chunks.values().map(|c| c.len()).sum();
    let total_size = snapshot.module.wasm.len() + snapshot.heap.len() + chunks;
    ic::Snapshot {
        id: id.to_vec(),
        taken_at_timestamp: snapshot.taken_at,
        total_size: total_size as u64 + snapshot.stable.bytes(),
    }
}

/// `bytes[offset..offset + size]`.
fn slice(bytes: &[u8], offset: u64, size: u64) -> Result<Vec<u8>, Reject> {
    let part = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
    let part = part.and_then(|(from, size)| bytes.get(from..from.checked_add(size)?));
    part.map(<[u8]>::to_vec).ok_or_else(|| invalid_slice(offset, size))
}

fn invalid_slice(offset: u64, size: u64) -> Reject {
    invalid(format!("Invalid subslice into wasm module / main memory / stable memory: offset: {offset}, size: {size}"))
}

fn global(value: &wasmtime::Val) -> Option<ic::SnapshotMetadataGlobal> {
    use ic::SnapshotMetadataGlobal as Global;
    match value {
        wasmtime::Val::I32(value) => Some(Global::I32(*value)),
        wasmtime::Val::I64(value) => Some(Global::I64(*value)),
        wasmtime::Val::F32(bits) => Some(Global::F32(f32::from_bits(*bits))),
        wasmtime::Val::F64(bits) => Some(Global::F64(f64::from_bits(*bits))),
        wasmtime::Val::V128(bits) => Some(Global::V128(Nat::from(bits.as_u128()))),
        _ => None,
    }
}

impl Replica {
    pub(super) fn take_canister_snapshot(&mut self, sender: Sender, argument: &[u8]) -> CallResult {
        let (args,): (ic::TakeCanisterSnapshotArgs,) = decode(argument)?;
        let time = self.shared.time;
        let canister = self.controlled(&args.canister_id, &sender.principal())?;
        if let Some(replaced) = &args.replace_snapshot {
            find(canister, replaced)?;
        } else if canister.snapshots.len() >= SNAPSHOTS_MAX {
            return Err(rejected(format!(
                "Canister {} has reached the maximum number of snapshots allowed: {SNAPSHOTS_MAX}",
                args.canister_id
            )));
        }
        let (id, snapshot) = take(canister, time)?;
        if let Some(replaced) = &args.replace_snapshot {
            canister.snapshots.remove(replaced);
        }
        let described = describe(&id, &snapshot);
        canister.snapshots.insert(id, snapshot);
        if args.uninstall_code == Some(true) {
            self.uninstall_code(args.canister_id, sender)?;
        }
        encode((described,))
    }

    pub(super) fn load_canister_snapshot(&mut self, sender: Sender, argument: &[u8]) -> CallResult {
        let (args,): (ic::LoadCanisterSnapshotArgs,) = decode(argument)?;
        let time = self.shared.time;
        let canister = self.controlled(&args.canister_id, &sender.principal())?;
        let snapshot = find(canister, &args.snapshot_id)?.clone();
        let instance = Instance::load(&snapshot.module, &snapshot.heap, &snapshot.globals)
            .map_err(|trap| trap.reject(&args.canister_id))?;
        canister.installed = Some(Installed { module: snapshot.module, instance });
        canister.stable = snapshot.stable;
        canister.certified_data = snapshot.certified_data;
        canister.chunks = snapshot.chunks;
        canister.global_timer = 0;
        let details = ic::ChangeDetails::LoadSnapshot(ic::LoadSnapshotRecord {
            from_canister_id: None,
            snapshot_id: args.snapshot_id,
            canister_version: snapshot.version,
            taken_at_timestamp: snapshot.taken_at,
            source: ic::SnapshotSource::TakenFromCanister(Reserved),
        });
        canister.note_change(time, sender, details);
        Ok(EMPTY_REPLY.to_vec())
    }

    pub(super) fn list_canister_snapshots(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::ListCanisterSnapshotsArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        settings::check_snapshot_viewer(canister, &caller)?;
        encode((canister.snapshots.iter().map(|(id, s)| describe(id, s)).collect::<Vec<_>>(),))
    }

    pub(super) fn delete_canister_snapshot(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::DeleteCanisterSnapshotArgs,) = decode(argument)?;
        let canister = self.controlled(&args.canister_id, &caller)?;
        find(canister, &args.snapshot_id)?;
        canister.snapshots.remove(&args.snapshot_id);
        Ok(EMPTY_REPLY.to_vec())
    }

    /// `globals` holds the mutable globals, in the order of the module.
    pub(super) fn read_canister_snapshot_metadata(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::ReadCanisterSnapshotMetadataArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        settings::check_snapshot_viewer(canister, &caller)?;
        let snapshot = find(canister, &args.snapshot_id)?;
        let timer = match snapshot.global_timer {
            0 => ic::CanisterTimer::Inactive,
            at => ic::CanisterTimer::Active(at),
        };
        encode((ic::ReadCanisterSnapshotMetadataResult {
            source: Some(ic::SnapshotSource::TakenFromCanister(Reserved)),
            taken_at_timestamp: snapshot.taken_at,
            wasm_module_size: snapshot.module.wasm.len() as u64,
            globals: snapshot.globals.iter().map(global).collect(),
            wasm_memory_size: snapshot.heap.len() as u64,
            stable_memory_size: snapshot.stable.bytes(),
            wasm_chunk_store: snapshot.chunks.keys().map(|h| ic::ChunkHash { hash: h.to_vec() }).collect(),
            canister_version: snapshot.version,
            certified_data: snapshot.certified_data.clone(),
            global_timer: Some(timer),
            on_low_wasm_memory_hook_status: Some(ic::OnLowWasmMemoryHookStatus::ConditionNotSatisfied),
        },))
    }

    pub(super) fn read_canister_snapshot_data(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::ReadCanisterSnapshotDataArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        settings::check_snapshot_viewer(canister, &caller)?;
        let snapshot = find(canister, &args.snapshot_id)?;
        use ic::SnapshotDataKind as Kind;
        if let Kind::WasmModule { size, .. } | Kind::WasmMemory { size, .. } | Kind::StableMemory { size, .. } =
            args.kind
            && size > SNAPSHOT_SLICE_BYTES_MAX
        {
            return Err(invalid(format!("Requested slice too large: {size} > {SNAPSHOT_SLICE_BYTES_MAX}")));
        }
        let chunk = match args.kind {
            Kind::WasmModule { offset, size } => slice(&snapshot.module.wasm, offset, size)?,
            Kind::WasmMemory { offset, size } => slice(&snapshot.heap, offset, size)?,
            Kind::StableMemory { offset, size } => {
                snapshot.stable.slice(offset, size).ok_or_else(|| invalid_slice(offset, size))?
            }
            Kind::WasmChunk { hash } => {
                let stored = <[u8; 32]>::try_from(hash.as_slice()).ok().and_then(|h| snapshot.chunks.get(&h));
                let stored = stored
                    .ok_or_else(|| invalid(format!("Chunk hash {} is not in the snapshot", hex::encode(&hash))))?;
                stored.to_vec()
            }
        };
        encode((ic::ReadCanisterSnapshotDataResult { chunk },))
    }
}
