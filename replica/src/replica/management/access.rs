//! Who may send which management call from outside. Checked before the message is taken in, so that what would be
//! refused costs nothing; the calls themselves check again, since canisters do not pass here.

use super::{decode, settings};
use crate::replica::canister::Canister;
use crate::replica::{Replica, not_found};
use crate::types::{ErrorCode, Reject};
use candid::{CandidType, Principal};
use serde::Deserialize;

/// Senders from outside that a method takes calls from.
enum Senders {
    Anyone,
    /// Those that the canister's settings let see what the method reads.
    Viewers(fn(&Canister, &Principal) -> Result<(), Reject>),
    Controllers,
    /// None: only canisters call it.
    Canisters,
    /// None: it is a query.
    Queries,
}

fn senders(method: &str) -> Option<Senders> {
    Some(match method {
        "create_canister" | "provisional_create_canister_with_cycles" | "provisional_top_up_canister" => {
            Senders::Anyone
        }
        "canister_info" | "canister_metadata" | "deposit_cycles" | "raw_rand" => Senders::Canisters,
        "fetch_canister_logs" => Senders::Queries,
        "canister_status" => Senders::Viewers(settings::check_status_viewer),
        "list_canister_snapshots" | "read_canister_snapshot_metadata" | "read_canister_snapshot_data" => {
            Senders::Viewers(settings::check_snapshot_viewer)
        }
        "update_settings"
        | "install_code"
        | "install_chunked_code"
        | "uninstall_code"
        | "start_canister"
        | "stop_canister"
        | "delete_canister"
        | "upload_chunk"
        | "clear_chunk_store"
        | "stored_chunks"
        | "take_canister_snapshot"
        | "load_canister_snapshot"
        | "delete_canister_snapshot" => Senders::Controllers,
        _ => return None,
    })
}

/// The canister that a call is about; most arguments name it so.
#[derive(CandidType, Deserialize)]
struct OfCanister {
    canister_id: Principal,
}

/// The canister that `install_chunked_code` is about.
#[derive(CandidType, Deserialize)]
struct OfTarget {
    target_canister: Principal,
}

/// The canister that a call from outside is about.
fn target(method: &str, argument: &[u8]) -> Result<Principal, Reject> {
    if method == "install_chunked_code" {
        return decode(argument).map(|(args,): (OfTarget,)| args.target_canister);
    }
    decode(argument).map(|(args,): (OfCanister,)| args.canister_id)
}

impl Replica {
    /// Refuses a call from outside that may not be sent.
    pub(in crate::replica) fn inspect_management(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<(), Reject> {
        match senders(method).ok_or_else(|| super::unknown(method))? {
            Senders::Anyone => Ok(()),
            Senders::Canisters => Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("Only canisters can call ic00 method {method}"),
            )),
            Senders::Queries => Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("{method} API is only accessible in non-replicated mode"),
            )),
            Senders::Viewers(check) => {
                let id = target(method, argument)?;
                check(self.canisters.get(&id).ok_or_else(|| not_found(&id))?, &caller)
            }
            Senders::Controllers => {
                let id = target(method, argument)?;
                if self.canister(&id)?.is_controller(&caller) {
                    return Ok(());
                }
                Err(Reject::new(
                    ErrorCode::CanisterInvalidController,
                    format!("Only controllers of canister {id} can call ic00 method {method}"),
                ))
            }
        }
    }
}
