//! What icp-cli asks of the IC's cycles ledger when it starts a network: to create a canister. There is no ledger here. A
//! canister with as many cycles as were asked for is made for whoever asks, and nobody pays.

use super::{Sender, amount, decode, encode};
use crate::replica::canister::{CallResult, Origin};
use crate::replica::schedule::{Job, Request};
use crate::replica::{IngressId, Replica};
use candid::{CandidType, Nat, Principal};
use ic_management_canister_types as ic;
use serde::Deserialize;

/// The cycles ledger's id on the IC.
const CYCLES_LEDGER: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 2, 1, 1]);
const CREATE: &str = "create_canister";

#[derive(CandidType, Deserialize)]
struct CreateArgs {
    amount: Nat,
    creation_args: Option<CreationArgs>,
}

#[derive(CandidType, Deserialize)]
struct CreationArgs {
    settings: Option<ic::CanisterSettings>,
}

/// The case of the ledger's answer that there is here.
#[derive(CandidType)]
enum Created {
    Ok { block_id: Nat, canister_id: Principal },
}

impl Replica {
    /// Whether this is a call that the ledger would create a canister for.
    pub(crate) fn creates_from_ledger(&self, callee: Principal, method: &str) -> bool {
        callee == CYCLES_LEDGER && method == CREATE && !self.canisters.contains_key(&callee)
    }

    /// Takes in such a call.
    pub(crate) fn submit_to_ledger(&mut self, caller: Principal, argument: Vec<u8>) -> IngressId {
        self.begin();
        self.changes += 1;
        self.next_ingress += 1;
        let (callee, method) = (CYCLES_LEDGER, CREATE.to_owned());
        let origin = Origin::Ingress(self.next_ingress);
        self.queue.push_back(Job::Request(Request {
            origin,
            caller,
            callee,
            method,
            argument,
            cycles: 0,
            deadline: 0,
        }));
        IngressId(self.next_ingress)
    }

    /// Carries it out.
    pub(super) fn create_from_ledger(&mut self, sender: Sender, argument: &[u8]) -> CallResult {
        let (args,): (CreateArgs,) = decode(argument)?;
        let settings = args.creation_args.and_then(|args| args.settings);
        let canister_id = self.create_with(sender, amount(&args.amount)?, settings, None)?;
        encode((Created::Ok { block_id: Nat::from(0u8), canister_id },))
    }

    /// Whether the request came by [`submit_to_ledger`](Self::submit_to_ledger). Calls of canisters do not.
    pub(in crate::replica) fn is_for_ledger(&self, request: &Request) -> bool {
        matches!(request.origin, Origin::Ingress(_)) && self.creates_from_ledger(request.callee, &request.method)
    }
}
