//! Fees in cycles, those of a 13-node application subnet.

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

/// What a call must be able to pay before it is made: its transmission, the longest possible reply's, and the
/// execution of its callback without the instructions.
pub(crate) fn call(method_bytes: u64, argument_bytes: u64) -> u128 {
    260_000 + 1_000 * (u128::from(method_bytes) + u128::from(argument_bytes)) + EXECUTION
}

/// An HTTP request of the management canister.
pub(crate) fn http_request(request_bytes: u64, reply_bytes: u64) -> u128 {
    let nodes = u128::from(NODES);
    nodes * (3_000_000 + 60_000 * nodes + 400 * u128::from(request_bytes) + 800 * u128::from(reply_bytes))
}
