//! The id in a request's URL, which says where the request is routed to, and whether it fits the request.

use super::Failure;
use candid::{CandidType, Principal};
use serde::Deserialize;

/// The id in the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectiveId {
    Canister(Principal),
    Subnet(Principal),
}

/// Methods that create canisters: any id is right for them, since there is none yet.
const CREATING: &[&str] = &["create_canister", "provisional_create_canister_with_cycles"];

/// Methods that only canisters may call, by their beginnings.
const FOR_CANISTERS: &[&str] = &[
    "bitcoin_",
    "deposit_cycles",
    "ecdsa_",
    "flexible_http_request",
    "http_request",
    "node_metrics_history",
    "raw_rand",
    "schnorr_",
    "sign_with_",
    "subnet_info",
    "vetkd_",
];

#[derive(CandidType, Deserialize)]
struct NamesCanister {
    canister_id: Principal,
}

#[derive(CandidType, Deserialize)]
struct NamesTarget {
    target_canister: Principal,
}

impl EffectiveId {
    /// Whether a call or query of this method fits the URL.
    pub fn check(&self, subnet: Principal, callee: Principal, method: &str, argument: &[u8]) -> Result<(), Failure> {
        let management = callee == Principal::management_canister();
        match self {
            Self::Subnet(id) if *id != subnet => {
                Err(Failure::bad(format!("the subnet {id} in the URL is not this replica's, which is {subnet}")))
            }
            Self::Subnet(_) if management && CREATING.contains(&method) => Ok(()),
            Self::Subnet(_) => {
                let message = "only calls that create canisters go to a subnet: use the URL of the canister";
                Err(Failure::bad(message))
            }
            Self::Canister(effective) if !management => {
                if callee == *effective {
                    return Ok(());
                }
                let message =
                    format!("Specified CanisterId {callee} does not match effective canister id in URL {effective}");
                Err(Failure::bad(message))
            }
            Self::Canister(effective) => check_management(effective, method, argument),
        }
    }
}

fn check_management(effective: &Principal, method: &str, argument: &[u8]) -> Result<(), Failure> {
    if CREATING.contains(&method) {
        return Ok(());
    }
    if FOR_CANISTERS.iter().any(|start| method.starts_with(start)) {
        return Err(Failure::bad(format!("the management canister's method {method} can be called by canisters only")));
    }
    let named = if method == "install_chunked_code" {
        candid::decode_one::<NamesTarget>(argument).map(|names| names.target_canister)
    } else {
        candid::decode_one::<NamesCanister>(argument).map(|names| names.canister_id)
    };
    match named {
        Ok(named) if named == *effective => Ok(()),
        Ok(named) => Err(Failure::bad(format!(
            "the call of {method} is for canister {named}, but the effective canister id in the URL is {effective}"
        ))),
        Err(error) => Err(Failure::bad(format!("the argument of {method} names no canister: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_must_fit_the_call() {
        let (subnet, canister) = (Principal::from_slice(&[1; 29]), Principal::from_slice(&[0, 1, 1]));
        let management = Principal::management_canister();
        let other = Principal::from_slice(&[0, 2, 1]);
        let record = candid::encode_one(NamesCanister { canister_id: canister }).unwrap();
        let target = candid::encode_one(NamesTarget { target_canister: canister }).unwrap();
        let fits =
            |id: EffectiveId, callee, method, argument: &[u8]| id.check(subnet, callee, method, argument).is_ok();
        let (here, there) = (EffectiveId::Canister(canister), EffectiveId::Canister(other));
        assert!(fits(here, canister, "anything", b"") && !fits(there, canister, "anything", b""));
        assert!(fits(here, management, "install_code", &record) && !fits(there, management, "install_code", &record));
        assert!(fits(here, management, "install_chunked_code", &target));
        assert!(!fits(here, management, "install_chunked_code", &record));
        assert!(!fits(here, management, "install_code", b"DIDL"));
        assert!(fits(there, management, "provisional_create_canister_with_cycles", b""));
        assert!(!fits(here, management, "raw_rand", b"DIDL\0\0"));
        let at_subnet = EffectiveId::Subnet(subnet);
        assert!(fits(at_subnet, management, "create_canister", b"") && !fits(at_subnet, canister, "anything", b""));
        assert!(!fits(EffectiveId::Subnet(other), management, "create_canister", b""));
    }
}
