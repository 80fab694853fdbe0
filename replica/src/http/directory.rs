//! What icp-cli asks the IC's own canisters before it creates a canister.

use candid::{Principal, encode_one};

/// The canister that sells cycles for ICP on the IC, and knows on which subnets canisters are created.
const CYCLES_MINTING: Principal = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 4, 1, 1]);

/// The answer in the place of a canister that this replica has not.
pub(super) fn answer(subnet: Principal, canister: Principal, method: &str) -> Option<Vec<u8>> {
    match method {
        "get_default_subnets" if canister == CYCLES_MINTING => encode_one(vec![subnet]).ok(),
        _ => None,
    }
}
