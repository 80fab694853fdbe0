//! A replica's whole state, taken out so that it can be kept on disk, and put in again.
//!
//! Taking it out is quick, so that calls need not wait for the disk: memories are shared or copied, and everything else
//! becomes a [`Record`]. Whoever keeps it turns the memories into [`MemoryRecord`]s.

use super::Replica;
use super::canister::{CallContext, Callback, Canister, Installed, Origin, Snapshot};
use super::management::{History, Settings};
use super::schedule::Job;
use crate::runtime::{Instance, StableMemory, WASM_PAGE};
use crate::state::{Hash, StateError};
use crate::types::{Config, LogLine, Status};
use crate::wasm::Module;
use candid::Principal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a part of a memory that is kept under a hash of its own.
pub(crate) const SEGMENT_BYTES: u64 = 16 * WASM_PAGE;

/// Bytes of a 32-bit heap.
const HEAP_BYTES_MAX: u64 = 1 << 32;

/// A memory by the hashes of its segments, `None` for zeros. The last segment may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryRecord {
    pub bytes: u64,
    pub segments: Vec<Option<Hash>>,
}

/// The state without the bytes of memories and modules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Nanoseconds since 1970.
    pub time: u64,
    next_canister: u64,
    next_ingress: u64,
    next_random: u64,
    pub canisters: Vec<CanisterRecord>,
    queue: Vec<Job>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CanisterRecord {
    pub id: Principal,
    controllers: Vec<Principal>,
    variables: Vec<(String, String)>,
    settings: Settings,
    history: History,
    balance: u128,
    status: Status,
    stop_waiters: Vec<Origin>,
    pub code: Option<CodeRecord>,
    pub stable: MemoryRecord,
    certified_data: Vec<u8>,
    global_timer: u64,
    version: u64,
    log: Vec<LogLine>,
    next_log_index: u64,
    contexts: BTreeMap<u64, CallContext>,
    callbacks: BTreeMap<u64, Callback>,
    next_number: u64,
    chunks: Vec<Hash>,
    pub snapshots: Vec<SnapshotRecord>,
    next_snapshot: u64,
}

/// Installed code, or that of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CodeRecord {
    module: Hash,
    pub heap: MemoryRecord,
    globals: Vec<Global>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotRecord {
    pub id: Vec<u8>,
    pub code: CodeRecord,
    pub stable: MemoryRecord,
    certified_data: Vec<u8>,
    chunks: Vec<Hash>,
    taken_at: u64,
    version: u64,
    global_timer: u64,
}

/// A mutable global's value; floating-point numbers as their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Global {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    V128(u128),
}

impl Global {
    fn of(value: &wasmtime::Val) -> Result<Self, StateError> {
        Ok(match value {
            wasmtime::Val::I32(value) => Self::I32(*value),
            wasmtime::Val::I64(value) => Self::I64(*value),
            wasmtime::Val::F32(bits) => Self::F32(*bits),
            wasmtime::Val::F64(bits) => Self::F64(*bits),
            wasmtime::Val::V128(bits) => Self::V128(bits.as_u128()),
            _ => return Err(StateError::Unsupported("a mutable global of a canister's code holds a reference".into())),
        })
    }

    fn value(self) -> wasmtime::Val {
        match self {
            Self::I32(value) => value.into(),
            Self::I64(value) => value.into(),
            Self::F32(bits) => wasmtime::Val::F32(bits),
            Self::F64(bits) => wasmtime::Val::F64(bits),
            Self::V128(bits) => wasmtime::Val::V128(bits.into()),
        }
    }
}

/// A state taken out. The memory records in `record` are empty; `memories` has an entry for each canister, in order.
pub(crate) struct Captured {
    pub record: Record,
    pub memories: Vec<Memories>,
}

/// The bytes of a canister.
pub(crate) struct Memories {
    pub code: Option<(Arc<Module>, HeapImage)>,
    pub stable: StableMemory,
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    /// In the order of the record.
    pub snapshots: Vec<SnapshotMemories>,
}

/// The bytes of a snapshot.
pub(crate) struct SnapshotMemories {
    pub module: Arc<Module>,
    pub heap: Arc<Vec<u8>>,
    pub stable: StableMemory,
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
}

/// A heap, under the number that it has as long as it stays as it is.
pub(crate) struct HeapImage {
    pub revision: u64,
    /// `None` when whoever asked knows the heap of this revision.
    pub bytes: Option<Vec<u8>>,
}

impl Replica {
    /// A number that stays the same as long as nothing but the clock changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes the state out. Heaps of revisions that are `known` are not copied.
    ///
    /// # Errors
    /// When a canister's code is of a kind that cannot be kept.
    pub(crate) fn capture(&mut self, known: impl Fn(u64) -> bool) -> Result<Captured, StateError> {
        let mut captured = Captured {
            record: Record {
                time: self.shared.time,
                next_canister: self.next_canister,
                next_ingress: self.next_ingress,
                next_random: self.next_random,
                canisters: Vec::with_capacity(self.canisters.len()),
                queue: self.queue.iter().cloned().collect(),
            },
            memories: Vec::with_capacity(self.canisters.len()),
        };
        for canister in self.canisters.values_mut() {
            let (record, memories) = capture(canister, &known)?;
            captured.record.canisters.push(record);
            captured.memories.push(memories);
        }
        Ok(captured)
    }

    /// A replica with this state. `blob` finds the bytes with a hash, whole.
    ///
    /// # Errors
    /// When a blob is missing or the record contradicts itself.
    pub(crate) fn restore(
        config: Config,
        record: Record,
        blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
    ) -> Result<Self, StateError> {
        let mut replica = Self::new(config);
        replica.shared.time = record.time;
        replica.next_canister = record.next_canister;
        replica.next_ingress = record.next_ingress;
        replica.next_random = record.next_random;
        replica.queue = record.queue.into();
        for record in record.canisters {
            let canister = replica.restore_canister(record, blob)?;
            replica.canisters.insert(canister.id, canister);
        }
        Ok(replica)
    }

    fn restore_canister(
        &self,
        record: CanisterRecord,
        blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
    ) -> Result<Canister, StateError> {
        let mut canister = Canister::new(record.id, record.controllers, record.balance);
        if let Some(code) = &record.code {
            let (module, heap, globals) = self.restore_code(code, blob)?;
            let instance = Instance::load(&module, &heap, &globals).map_err(|trap| {
                StateError::Damaged(format!("the heap of canister {} does not fit its code: {trap}", record.id))
            })?;
            canister.installed = Some(Installed { module, instance });
        }
        for snapshot in record.snapshots {
            let (module, heap, globals) = self.restore_code(&snapshot.code, blob)?;
            canister.snapshots.insert(
                snapshot.id,
                Snapshot {
                    module,
                    heap: Arc::new(heap),
                    globals,
                    stable: restore_stable(&snapshot.stable, blob)?,
                    certified_data: snapshot.certified_data,
                    chunks: restore_chunks(&snapshot.chunks, blob)?,
                    taken_at: snapshot.taken_at,
                    version: snapshot.version,
                    global_timer: snapshot.global_timer,
                },
            );
        }
        canister.variables = Arc::new(record.variables);
        canister.settings = record.settings;
        canister.history = record.history;
        canister.status = record.status;
        canister.stop_waiters = record.stop_waiters;
        canister.stable = restore_stable(&record.stable, blob)?;
        canister.certified_data = record.certified_data;
        canister.global_timer = record.global_timer;
        canister.version = record.version;
        canister.log_bytes = record.log.iter().map(|line| line.content.len()).sum();
        canister.log = record.log.into();
        canister.next_log_index = record.next_log_index;
        canister.contexts = record.contexts;
        canister.callbacks = record.callbacks;
        canister.next_number = record.next_number;
        canister.chunks = restore_chunks(&record.chunks, blob)?;
        canister.next_snapshot = record.next_snapshot;
        Ok(canister)
    }

    #[allow(clippy::type_complexity)] // the three parts of code, used at once
    fn restore_code(
        &self,
        code: &CodeRecord,
        blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
    ) -> Result<(Arc<Module>, Vec<u8>, Vec<wasmtime::Val>), StateError> {
        let module = self.modules.compile(&blob(&code.module)?);
        let module = module.map_err(|e| StateError::Damaged(format!("the module {}: {e}", code.module)))?;
        if code.globals.len() != module.metadata.mutable_globals as usize {
            return Err(StateError::Damaged(format!(
                "{} globals are kept for the module {}, which has {}",
                code.globals.len(),
                code.module,
                module.metadata.mutable_globals
            )));
        }
        if code.heap.bytes > HEAP_BYTES_MAX {
            return Err(StateError::Damaged(format!(
                "a heap of {} bytes, more than {HEAP_BYTES_MAX}",
                code.heap.bytes
            )));
        }
        let mut heap = vec![0; code.heap.bytes as usize];
        each_part(&code.heap, blob, |offset, bytes| {
            heap[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        })?;
        Ok((module, heap, code.globals.iter().map(|g| g.value()).collect()))
    }
}

fn capture(canister: &mut Canister, known: &impl Fn(u64) -> bool) -> Result<(CanisterRecord, Memories), StateError> {
    let hashes = |chunks: &BTreeMap<[u8; 32], _>| chunks.keys().map(|hash| Hash(*hash)).collect();
    let code_record = |module: &Module, globals: &[wasmtime::Val]| {
        let globals = globals.iter().map(Global::of).collect::<Result<_, _>>()?;
        Ok(CodeRecord { module: Hash(module.hash), heap: MemoryRecord::default(), globals })
    };
    let (code, image) = match &mut canister.installed {
        None => (None, None),
        Some(Installed { module, instance }) => {
            let revision = instance.revision();
            let bytes = (!known(revision)).then(|| instance.save().0);
            let record = code_record(module, &instance.globals())?;
            (Some(record), Some((Arc::clone(module), HeapImage { revision, bytes })))
        }
    };
    let mut snapshots = Vec::with_capacity(canister.snapshots.len());
    let mut snapshot_memories = Vec::with_capacity(canister.snapshots.len());
    for (id, snapshot) in &canister.snapshots {
        snapshots.push(SnapshotRecord {
            id: id.clone(),
            code: code_record(&snapshot.module, &snapshot.globals)?,
            stable: MemoryRecord::default(),
            certified_data: snapshot.certified_data.clone(),
            chunks: hashes(&snapshot.chunks),
            taken_at: snapshot.taken_at,
            version: snapshot.version,
            global_timer: snapshot.global_timer,
        });
        snapshot_memories.push(SnapshotMemories {
            module: Arc::clone(&snapshot.module),
            heap: Arc::clone(&snapshot.heap),
            stable: snapshot.stable.clone(),
            chunks: snapshot.chunks.clone(),
        });
    }
    let record = CanisterRecord {
        id: canister.id,
        controllers: canister.controllers.to_vec(),
        variables: canister.variables.to_vec(),
        settings: canister.settings.clone(),
        history: canister.history.clone(),
        balance: canister.balance,
        status: canister.status,
        stop_waiters: canister.stop_waiters.clone(),
        code,
        stable: MemoryRecord::default(),
        certified_data: canister.certified_data.clone(),
        global_timer: canister.global_timer,
        version: canister.version,
        log: canister.log.iter().cloned().collect(),
        next_log_index: canister.next_log_index,
        contexts: canister.contexts.clone(),
        callbacks: canister.callbacks.clone(),
        next_number: canister.next_number,
        chunks: hashes(&canister.chunks),
        snapshots,
        next_snapshot: canister.next_snapshot,
    };
    let memories = Memories {
        code: image,
        stable: canister.stable.clone(),
        chunks: canister.chunks.clone(),
        snapshots: snapshot_memories,
    };
    Ok((record, memories))
}

/// Hands over the parts of a memory that are not zero, each with its offset. They fit into the memory.
fn each_part(
    record: &MemoryRecord,
    blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
    mut put: impl FnMut(u64, &[u8]),
) -> Result<(), StateError> {
    let segments = record.segments.len() as u64;
    if !record.bytes.is_multiple_of(WASM_PAGE) || segments != record.bytes.div_ceil(SEGMENT_BYTES) {
        return Err(StateError::Damaged(format!("{segments} segments are kept of a memory of {} bytes", record.bytes)));
    }
    for (number, hash) in record.segments.iter().enumerate() {
        let Some(hash) = hash else { continue };
        let offset = number as u64 * SEGMENT_BYTES;
        let (bytes, expected) = (blob(hash)?, SEGMENT_BYTES.min(record.bytes - offset));
        if bytes.len() as u64 != expected {
            return Err(StateError::Damaged(format!("the segment {hash} has {} bytes, not {expected}", bytes.len())));
        }
        put(offset, &bytes);
    }
    Ok(())
}

fn restore_stable(
    record: &MemoryRecord,
    blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
) -> Result<StableMemory, StateError> {
    let mut memory = StableMemory::zeros(record.bytes / WASM_PAGE);
    each_part(record, blob, |offset, bytes| memory.put(offset, bytes))?;
    Ok(memory)
}

fn restore_chunks(
    hashes: &[Hash],
    blob: &impl Fn(&Hash) -> Result<Vec<u8>, StateError>,
) -> Result<BTreeMap<[u8; 32], Arc<Vec<u8>>>, StateError> {
    hashes.iter().map(|hash| Ok((hash.0, Arc::new(blob(hash)?)))).collect()
}
