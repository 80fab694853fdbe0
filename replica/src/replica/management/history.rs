//! A canister's history: who created it, changed its code or its controllers, and when.

use super::{Sender, decode, encode};
use crate::limits::HISTORY_CHANGES_MAX;
use crate::replica::Replica;
use crate::replica::canister::{CallResult, Canister};
use crate::types::InstallMode;
use candid::Principal;
use ic_management_canister_types as ic;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The last changes of a canister, and how many there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::replica) struct History {
    changes: VecDeque<ic::Change>,
    total: u64,
}

impl Canister {
    /// Notes a change that has just been made. The canister's version grows with every one but its creation.
    pub fn note_change(&mut self, time_nanos: u64, sender: Sender, details: ic::ChangeDetails) {
        if !matches!(details, ic::ChangeDetails::Creation(_)) {
            self.version += 1;
        }
        let origin = match sender {
            Sender::User(user_id) => ic::ChangeOrigin::FromUser(ic::FromUserRecord { user_id }),
            Sender::Canister(canister_id) => {
                ic::ChangeOrigin::FromCanister(ic::FromCanisterRecord { canister_id, canister_version: None })
            }
        };
        let change =
            ic::Change { timestamp_nanos: time_nanos, canister_version: self.version, origin, details: Some(details) };
        let history = &mut self.history;
        history.changes.push_back(change);
        history.total += 1;
        if history.changes.len() > HISTORY_CHANGES_MAX {
            history.changes.pop_front();
        }
    }
}

/// The change that putting code in is.
pub(in crate::replica) fn code_deployment(mode: InstallMode, module_hash: [u8; 32]) -> ic::ChangeDetails {
    let mode = match mode {
        InstallMode::Install => ic::CodeDeploymentMode::Install,
        InstallMode::Reinstall => ic::CodeDeploymentMode::Reinstall,
        InstallMode::Upgrade { .. } => ic::CodeDeploymentMode::Upgrade,
    };
    ic::ChangeDetails::CodeDeployment(ic::CodeDeploymentRecord { mode, module_hash: module_hash.to_vec() })
}

/// The change that creating a canister is.
pub(in crate::replica) fn creation(controllers: &[Principal]) -> ic::ChangeDetails {
    ic::ChangeDetails::Creation(ic::CreationRecord {
        controllers: controllers.to_vec(),
        environment_variables_hash: None,
    })
}

impl Replica {
    pub(super) fn canister_info(&mut self, argument: &[u8]) -> CallResult {
        let (args,): (ic::CanisterInfoArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        let changes = &canister.history.changes;
        let wanted = usize::try_from(args.num_requested_changes.unwrap_or(0)).unwrap_or(usize::MAX);
        encode((ic::CanisterInfoResult {
            total_num_changes: canister.history.total,
            recent_changes: changes.range(changes.len().saturating_sub(wanted)..).cloned().collect(),
            module_hash: canister.installed.as_ref().map(|i| i.module.hash.to_vec()),
            controllers: canister.controllers.to_vec(),
        },))
    }
}
