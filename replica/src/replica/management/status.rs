//! What `canister_status` reports.

use super::{settings, snapshots};
use crate::replica::canister::Canister;
use crate::types::Status;
use candid::Nat;
use ic_management_canister_types as ic;

/// Sizes are what this replica holds in memory. It keeps no count of globals, custom sections, the history or of
/// queries, and takes no rent: these figures are 0.
pub(super) fn report(canister: &Canister) -> ic::CanisterStatusResult {
    let zero = || Nat::from(0u32);
    let installed = canister.installed.as_ref();
    let heap = installed.map_or(0, |i| i.instance.heap_bytes());
    let wasm = installed.map_or(0, |i| i.module.wasm.len() as u64);
    let stable = canister.stable.bytes();
    let chunks: u64 = canister.chunks.values().map(|c| c.len() as u64).sum();
    let snapshots: u64 = canister.snapshots.iter().map(|(id, s)| snapshots::describe(id, s).total_size).sum();
    let log = canister.log_bytes as u64;
    ic::CanisterStatusResult {
        status: match canister.status {
            Status::Running => ic::CanisterStatusType::Running,
            Status::Stopping => ic::CanisterStatusType::Stopping,
            Status::Stopped => ic::CanisterStatusType::Stopped,
        },
        ready_for_migration: canister.status == Status::Stopped,
        version: canister.version,
        settings: settings::report(canister),
        module_hash: installed.map(|i| i.module.hash.to_vec()),
        memory_size: Nat::from(heap + wasm + stable + chunks + snapshots + log),
        memory_metrics: ic::MemoryMetrics {
            wasm_memory_size: Nat::from(heap),
            stable_memory_size: Nat::from(stable),
            global_memory_size: zero(),
            wasm_binary_size: Nat::from(wasm),
            custom_sections_size: zero(),
            canister_history_size: zero(),
            wasm_chunk_store_size: Nat::from(chunks),
            snapshots_size: Nat::from(snapshots),
            log_memory_store_size: Nat::from(log),
        },
        cycles: Nat::from(canister.balance),
        reserved_cycles: zero(),
        idle_cycles_burned_per_day: zero(),
        query_stats: ic::QueryStats {
            num_calls_total: zero(),
            num_instructions_total: zero(),
            request_payload_bytes_total: zero(),
            response_payload_bytes_total: zero(),
        },
    }
}
