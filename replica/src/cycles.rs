//! Fees in cycles, those of a 13-node application subnet.

use crate::types::{REPLY_BYTES_MAX, UPDATE_INSTRUCTIONS_MAX};

/// Nodes of the subnet whose fees these are.
pub(crate) const NODES: u32 = 13;
/// Creating a canister.
pub(crate) const CREATE_CANISTER: u128 = 500_000_000_000;
/// Every executed message, beside one cycle per instruction.
pub(crate) const EXECUTION: u128 = 5_000_000;

/// Receiving an ingress message; `bytes` of its argument and its method's name.
pub(crate) fn ingress(bytes: u64) -> u128 {
    1_200_000 + 2_000 * u128::from(bytes)
}

/// Sending a call: `bytes` of its argument and its method's name.
pub(crate) fn transmission(bytes: u64) -> u128 {
    260_000 + 1_000 * u128::from(bytes)
}

/// What a canister must have to make a call: its transmission, and what the longest reply and the dearest callback
/// would cost. All but the transmission is only set aside on the IC, and not taken here.
pub(crate) fn call(method_bytes: u64, argument_bytes: u64) -> u128 {
    transmission(method_bytes.saturating_add(argument_bytes))
        + 1_000 * REPLY_BYTES_MAX as u128
        + EXECUTION
        + u128::from(UPDATE_INSTRUCTIONS_MAX)
}

/// An HTTP request of the management canister.
pub(crate) fn http_request(request_bytes: u64, reply_bytes: u64) -> u128 {
    let nodes = u128::from(NODES);
    nodes * (3_000_000 + 60_000 * nodes + 400 * u128::from(request_bytes) + 800 * u128::from(reply_bytes))
}
