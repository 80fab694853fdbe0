//! A canister's settings: what they may be, and who may see what because of them.

use super::{contract, invalid};
use crate::limits::*;
use crate::replica::canister::Canister;
use crate::types::{ErrorCode, Reject};
use candid::{Nat, Principal};
use ic_management_canister_types as ic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings beside controllers and environment variables. The visibilities, `minimum_incoming_canister_call_cycles`
/// and `log_memory_limit` are obeyed; the others are kept and reported, and change nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::replica) struct Settings {
    /// Percent of a core.
    pub compute_allocation: u64,
    /// Bytes.
    pub memory_allocation: u64,
    /// Seconds.
    pub freezing_threshold: u64,
    /// Cycles.
    pub reserved_cycles_limit: u128,
    /// Cycles that a call of another canister must bring.
    pub minimum_incoming_canister_call_cycles: u128,
    pub log_visibility: ic::LogVisibility,
    /// Bytes.
    pub log_memory_limit: u64,
    pub snapshot_visibility: ic::SnapshotVisibility,
    pub status_visibility: ic::StatusVisibility,
    /// Bytes.
    pub wasm_memory_limit: u64,
    /// Bytes.
    pub wasm_memory_threshold: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            compute_allocation: 0,
            memory_allocation: 0,
            freezing_threshold: 2_592_000,
            reserved_cycles_limit: 5_000_000_000_000,
            minimum_incoming_canister_call_cycles: 0,
            log_visibility: ic::LogVisibility::Controllers,
            log_memory_limit: 4_096,
            snapshot_visibility: ic::SnapshotVisibility::Controllers,
            status_visibility: ic::StatusVisibility::Controllers,
            wasm_memory_limit: 3_221_225_472,
            wasm_memory_threshold: 0,
        }
    }
}

/// Replaces `to` by a number that was given, if it is at most `most`.
fn set(to: &mut u64, given: Option<&Nat>, name: &str, most: u64) -> Result<(), Reject> {
    let Some(given) = given else { return Ok(()) };
    *to = u64::try_from(given.0.clone())
        .ok()
        .filter(|value| *value <= most)
        .ok_or_else(|| contract(format!("{name} expected to be in the range [0..{most}], got {given}")))?;
    Ok(())
}

fn set_cycles(to: &mut u128, given: Option<&Nat>, name: &str) -> Result<(), Reject> {
    let Some(given) = given else { return Ok(()) };
    *to = u128::try_from(given.0.clone())
        .map_err(|_| contract(format!("{name} expected to be in the range [0..2^128-1], got {given}")))?;
    Ok(())
}

fn check_viewers(name: &str, viewers: &[Principal]) -> Result<(), Reject> {
    if viewers.len() > ALLOWED_VIEWERS_MAX {
        return Err(invalid(format!("{name}: {} allowed viewers, more than {ALLOWED_VIEWERS_MAX}", viewers.len())));
    }
    Ok(())
}

/// Environment variables by name.
fn variables_of(given: Vec<ic::EnvironmentVariable>) -> Result<Vec<(String, String)>, Reject> {
    let count = given.len();
    if count > VARIABLES_MAX {
        return Err(invalid(format!("Too many environment variables: {count} (max: {VARIABLES_MAX})")));
    }
    for variable in &given {
        let (name, value) = (&variable.name, &variable.value);
        if name.len() > VARIABLE_NAME_BYTES_MAX {
            return Err(invalid(format!(
                "Environment variable name {name:?} exceeds the maximum allowed length of {VARIABLE_NAME_BYTES_MAX}."
            )));
        }
        if value.len() > VARIABLE_VALUE_BYTES_MAX {
            return Err(invalid(format!(
                "Environment variable value {value:?} exceeds the maximum allowed length of {VARIABLE_VALUE_BYTES_MAX}."
            )));
        }
    }
    let sorted: BTreeMap<_, _> = given.into_iter().map(|v| (v.name, v.value)).collect();
    if sorted.len() != count {
        return Err(invalid("Duplicate environment variables are not allowed"));
    }
    Ok(sorted.into_iter().collect())
}

/// Changes the settings that are given: all of them, or with an error none.
pub(super) fn apply(canister: &mut Canister, given: ic::CanisterSettings) -> Result<(), Reject> {
    let mut settings = canister.settings.clone();
    set(
        &mut settings.compute_allocation,
        given.compute_allocation.as_ref(),
        "ComputeAllocation",
        COMPUTE_ALLOCATION_MAX,
    )?;
    set(&mut settings.memory_allocation, given.memory_allocation.as_ref(), "MemoryAllocation", MEMORY_SETTING_MAX)?;
    set(&mut settings.freezing_threshold, given.freezing_threshold.as_ref(), "Freezing threshold", u64::MAX)?;
    set(&mut settings.log_memory_limit, given.log_memory_limit.as_ref(), "Log memory limit", LOG_MEMORY_BYTES_MAX)?;
    set(&mut settings.wasm_memory_limit, given.wasm_memory_limit.as_ref(), "Wasm memory limit", MEMORY_SETTING_MAX)?;
    set(
        &mut settings.wasm_memory_threshold,
        given.wasm_memory_threshold.as_ref(),
        "Wasm memory threshold",
        MEMORY_SETTING_MAX,
    )?;
    set_cycles(&mut settings.reserved_cycles_limit, given.reserved_cycles_limit.as_ref(), "Reserved cycles limit")?;
    set_cycles(
        &mut settings.minimum_incoming_canister_call_cycles,
        given.minimum_incoming_canister_call_cycles.as_ref(),
        "Minimum incoming canister call cycles",
    )?;
    if let Some(visibility) = given.log_visibility {
        if let ic::LogVisibility::AllowedViewers(viewers) = &visibility {
            check_viewers("log_visibility", viewers)?;
        }
        settings.log_visibility = visibility;
    }
    if let Some(visibility) = given.snapshot_visibility {
        if let ic::SnapshotVisibility::AllowedViewers(viewers) = &visibility {
            check_viewers("snapshot_visibility", viewers)?;
        }
        settings.snapshot_visibility = visibility;
    }
    if let Some(visibility) = given.status_visibility {
        if let ic::StatusVisibility::AllowedViewers(viewers) = &visibility {
            check_viewers("status_visibility", viewers)?;
        }
        settings.status_visibility = visibility;
    }
    let variables = given.environment_variables.map(variables_of).transpose()?;
    if let Some(controllers) = given.controllers {
        if controllers.len() > CONTROLLERS_MAX {
            return Err(invalid(format!("{} controllers, more than {CONTROLLERS_MAX}", controllers.len())));
        }
        let mut unique = Vec::with_capacity(controllers.len());
        for controller in controllers {
            if !unique.contains(&controller) {
                unique.push(controller);
            }
        }
        canister.controllers = Arc::new(unique);
    }
    if let Some(variables) = variables {
        canister.variables = Arc::new(variables);
    }
    canister.settings = settings;
    canister.shorten_log();
    Ok(())
}

/// The settings as `canister_status` reports them.
pub(super) fn report(canister: &Canister) -> ic::DefiniteCanisterSettings {
    let settings = canister.settings.clone();
    let variables = canister.variables.iter();
    ic::DefiniteCanisterSettings {
        controllers: canister.controllers.to_vec(),
        compute_allocation: settings.compute_allocation.into(),
        memory_allocation: settings.memory_allocation.into(),
        freezing_threshold: settings.freezing_threshold.into(),
        reserved_cycles_limit: settings.reserved_cycles_limit.into(),
        minimum_incoming_canister_call_cycles: settings.minimum_incoming_canister_call_cycles.into(),
        log_visibility: settings.log_visibility,
        log_memory_limit: settings.log_memory_limit.into(),
        snapshot_visibility: settings.snapshot_visibility,
        status_visibility: settings.status_visibility,
        wasm_memory_limit: settings.wasm_memory_limit.into(),
        wasm_memory_threshold: settings.wasm_memory_threshold.into(),
        environment_variables: variables
            .map(|(name, value)| ic::EnvironmentVariable { name: name.clone(), value: value.clone() })
            .collect(),
    }
}

/// Refuses who may not see the canister's status. The canister itself may.
pub(super) fn check_status_viewer(canister: &Canister, caller: &Principal) -> Result<(), Reject> {
    let allowed = match &canister.settings.status_visibility {
        ic::StatusVisibility::Public => true,
        ic::StatusVisibility::Controllers => false,
        ic::StatusVisibility::AllowedViewers(viewers) => viewers.contains(caller),
    };
    if allowed || *caller == canister.id || canister.is_controller(caller) {
        return Ok(());
    }
    Err(Reject::new(
        ErrorCode::CanisterStatusAccessDenied,
        format!("Caller {caller} is not allowed to call canister_status of canister {}", canister.id),
    ))
}

/// Refuses who may not list or read the canister's snapshots.
pub(super) fn check_snapshot_viewer(canister: &Canister, caller: &Principal) -> Result<(), Reject> {
    let allowed = match &canister.settings.snapshot_visibility {
        ic::SnapshotVisibility::Public => true,
        ic::SnapshotVisibility::Controllers => false,
        ic::SnapshotVisibility::AllowedViewers(viewers) => viewers.contains(caller),
    };
    if allowed || canister.is_controller(caller) {
        return Ok(());
    }
    Err(Reject::new(
        ErrorCode::CanisterInvalidController,
        format!("Caller {caller} is not allowed to access the snapshots of canister {}", canister.id),
    ))
}

/// Refuses who may not read the canister's logs.
pub(super) fn check_log_viewer(canister: &Canister, caller: &Principal) -> Result<(), Reject> {
    let allowed = match &canister.settings.log_visibility {
        ic::LogVisibility::Public => true,
        ic::LogVisibility::Controllers => false,
        ic::LogVisibility::AllowedViewers(viewers) => viewers.contains(caller),
    };
    if allowed || canister.is_controller(caller) {
        return Ok(());
    }
    Err(Reject::new(
        ErrorCode::CanisterRejectedMessage,
        format!("Caller {caller} is not allowed to access canister logs"),
    ))
}
