//! Limits of the management canister and of the HTTP gateway, those of the IC unless their comment says otherwise.

use crate::types::INGRESS_BYTES_MAX;

/// Controllers of a canister.
pub(crate) const CONTROLLERS_MAX: usize = 10;
/// Principals in a list of allowed viewers.
pub(crate) const ALLOWED_VIEWERS_MAX: usize = 10;
/// Percent of a core that a canister can reserve.
pub(crate) const COMPUTE_ALLOCATION_MAX: u64 = 100;
/// Bytes in settings about memory.
pub(crate) const MEMORY_SETTING_MAX: u64 = 1 << 48;
/// Bytes of log that a canister can ask to keep.
pub(crate) const LOG_MEMORY_BYTES_MAX: u64 = 2 << 20;
/// Environment variables of a canister.
pub(crate) const VARIABLES_MAX: usize = 20;
/// Bytes of an environment variable's name.
pub(crate) const VARIABLE_NAME_BYTES_MAX: usize = 128;
/// Bytes of an environment variable's value.
pub(crate) const VARIABLE_VALUE_BYTES_MAX: usize = 128;
/// Bytes of a chunk of the chunk store.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Chunks of a canister's chunk store.
pub(crate) const CHUNKS_MAX: usize = 100;
/// Snapshots of a canister.
pub(crate) const SNAPSHOTS_MAX: usize = 10;
/// Bytes that one call reads of a snapshot.
pub(crate) const SNAPSHOT_SLICE_BYTES_MAX: u64 = 2_000_000;
/// Changes that a canister's history keeps; older ones are only counted.
pub(crate) const HISTORY_CHANGES_MAX: usize = 20;
/// Bytes of the body of a request to the HTTP gateway; that of the call it becomes may not be longer either.
pub(crate) const GATEWAY_REQUEST_BYTES_MAX: usize = INGRESS_BYTES_MAX;
/// Parts of a streamed response behind the first. Not the IC's: it leaves that to the gateway.
pub(crate) const GATEWAY_CALLBACKS_MAX: usize = 1_000;
