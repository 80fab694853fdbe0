//! Limits of the IC's HTTP interface. The values are the IC's unless a comment says otherwise.

use std::time::Duration;

/// Bytes of a request's body.
pub(super) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an update call as it is sent: arguments, signatures and all.
pub(super) const CALL_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a nonce.
pub(super) const NONCE_BYTES_MAX: usize = 32;
/// Delegations between the sender's key and the key that signed the request.
pub(super) const DELEGATIONS_MAX: usize = 20;
/// Canisters that one delegation may name.
pub(super) const DELEGATION_TARGETS_MAX: usize = 1_000;
/// Paths of one `read_state` request.
pub(super) const PATHS_MAX: usize = 1_000;
/// Labels of one path.
pub(super) const PATH_LABELS_MAX: usize = 127;

/// How far in the future a request may expire.
pub(super) const INGRESS_TTL: Duration = Duration::from_secs(5 * 60);
/// What clocks may differ, on top of [`INGRESS_TTL`].
pub(super) const CLOCK_DRIFT: Duration = Duration::from_secs(60);
/// How long a synchronous call waits for its answer before it is only accepted.
pub(super) const CALL_WAIT: Duration = Duration::from_secs(10);
/// How long a call's status can be read after it was answered and has expired.
pub(super) const STATUS_KEPT: Duration = Duration::from_secs(5 * 60);

/// Calls that may wait for their answers. This replica's own.
pub(super) const PENDING_CALLS_MAX: usize = 10_000;
/// Bytes of replies that are kept for readers; beyond them the oldest are forgotten. This replica's own.
pub(super) const REPLIES_BYTES_MAX: usize = 256 << 20;

const _: () = assert!(CALL_BYTES_MAX <= BODY_BYTES_MAX);
const _: () = assert!(CALL_WAIT.as_secs() < INGRESS_TTL.as_secs());
const _: () = assert!(REPLIES_BYTES_MAX >= 2 * crate::types::REPLY_BYTES_MAX);
