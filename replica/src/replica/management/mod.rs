//! The management canister, `aaaaa-aa`.

mod access;
mod chunks;
mod cycles_ledger;
mod history;
mod logs;
mod settings;
mod snapshots;
mod status;

use super::canister::{CallResult, Canister, Origin};
use super::install::check_controller;
use super::schedule::Request;
use super::{CanisterSettings, DEFAULT_CYCLES, Replica, canister_id};
use crate::cycles;
use crate::types::{Cost, ErrorCode, InstallMode, Reject, Status};
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Nat, Principal};
use ic_management_canister_types as ic;
use serde::Deserialize;
use sha2::{Digest, Sha256};

pub(super) use history::{History, code_deployment, creation};
pub(super) use settings::Settings;

/// The Candid of `()`.
pub(super) const EMPTY_REPLY: &[u8] = b"DIDL\x00\x00";

/// Who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Someone outside.
    User(Principal),
    /// A canister.
    Canister(Principal),
}

impl Sender {
    pub fn principal(self) -> Principal {
        match self {
            Self::User(principal) | Self::Canister(principal) => principal,
        }
    }
}

/// `install_code`'s argument; the module as a blob, so that it is not decoded byte by byte.
#[derive(CandidType, Deserialize)]
struct InstallCode {
    mode: ic::CanisterInstallMode,
    canister_id: Principal,
    #[serde(with = "serde_bytes")]
    wasm_module: Vec<u8>,
    #[serde(with = "serde_bytes")]
    arg: Vec<u8>,
}

fn decode<T: for<'a> ArgumentDecoder<'a>>(argument: &[u8]) -> Result<T, Reject> {
    candid::decode_args(argument).map_err(|e| invalid(format!("Error decoding candid: {e}")))
}

fn encode<T: ArgumentEncoder>(reply: T) -> CallResult {
    candid::encode_args(reply).map_err(|e| invalid(format!("Error encoding candid: {e}")))
}

fn invalid(message: impl Into<String>) -> Reject {
    Reject::new(ErrorCode::InvalidManagementPayload, message)
}

fn contract(message: impl Into<String>) -> Reject {
    Reject::new(ErrorCode::CanisterContractViolation, message)
}

fn unknown(method: &str) -> Reject {
    Reject::new(ErrorCode::CanisterMethodNotFound, format!("Management canister has no method '{method}'"))
}

fn mode_of(mode: ic::CanisterInstallMode) -> InstallMode {
    match mode {
        ic::CanisterInstallMode::Install => InstallMode::Install,
        ic::CanisterInstallMode::Reinstall => InstallMode::Reinstall,
        ic::CanisterInstallMode::Upgrade(flags) => {
            let flags = flags.unwrap_or_default();
            InstallMode::Upgrade {
                skip_pre_upgrade: flags.skip_pre_upgrade.unwrap_or(false),
                keep_heap: flags.wasm_memory_persistence.map(|p| p == ic::WasmMemoryPersistence::Keep),
            }
        }
    }
}

fn amount(n: &Nat) -> Result<u128, Reject> {
    u128::try_from(n.0.clone()).map_err(|_| invalid(format!("{n} cycles do not fit into 128 bits")))
}

impl Replica {
    /// Runs a call of the management canister.
    pub(super) fn run_management(&mut self, request: Request) {
        if let Origin::Ingress(id) = request.origin {
            self.first_costs.insert(id, Cost::default());
        }
        let mut cycles = request.cycles;
        if request.method == "stop_canister" {
            match self.stop(&request) {
                Ok(None) => {}
                Ok(Some(reply)) => self.respond(request.origin, Ok(reply), cycles),
                Err(reject) => self.respond(request.origin, Err(reject), cycles),
            }
            return;
        }
        let from = self.trace.len();
        let sender = match request.origin {
            Origin::Canister { .. } => Sender::Canister(request.caller),
            Origin::Ingress(_) | Origin::System => Sender::User(request.caller),
        };
        let result = if self.is_for_ledger(&request) {
            self.create_from_ledger(sender, &request.argument)
        } else {
            self.management(sender, &request.method, &request.argument, &mut cycles)
        };
        if let Origin::Ingress(id) = request.origin {
            let mut cost = Cost::default();
            self.trace[from.min(self.trace.len())..].iter().for_each(|m| cost.add(&m.cost));
            self.first_costs.insert(id, cost);
        }
        self.respond(request.origin, result, cycles);
    }

    fn management(&mut self, sender: Sender, method: &str, argument: &[u8], cycles: &mut u128) -> CallResult {
        let caller = sender.principal();
        match method {
            "provisional_create_canister_with_cycles" => {
                let (args,): (ic::ProvisionalCreateCanisterWithCyclesArgs,) = decode(argument)?;
                let amount = args.amount.map_or(Ok(DEFAULT_CYCLES), |n| amount(&n))?;
                self.create(sender, amount, args.settings, args.specified_id)
            }
            "create_canister" => self.create_canister_for(sender, argument, cycles),
            "provisional_top_up_canister" => {
                let (args,): (ic::ProvisionalTopUpCanisterArgs,) = decode(argument)?;
                self.add_cycles(args.canister_id, amount(&args.amount)?)?;
                Ok(EMPTY_REPLY.to_vec())
            }
            "deposit_cycles" => {
                let (args,): (ic::DepositCyclesArgs,) = decode(argument)?;
                self.add_cycles(args.canister_id, *cycles)?;
                *cycles = 0;
                Ok(EMPTY_REPLY.to_vec())
            }
            "update_settings" => self.update_settings(sender, argument),
            "install_code" => {
                let (args,): (InstallCode,) = decode(argument)?;
                self.install_code(args.canister_id, mode_of(args.mode), &args.wasm_module, args.arg, sender)?;
                Ok(EMPTY_REPLY.to_vec())
            }
            "install_chunked_code" => self.install_chunked_code(sender, argument),
            "upload_chunk" => self.upload_chunk(caller, argument),
            "clear_chunk_store" => self.clear_chunk_store(caller, argument),
            "stored_chunks" => self.stored_chunks(caller, argument),
            "uninstall_code" => {
                let (args,): (ic::UninstallCodeArgs,) = decode(argument)?;
                self.controlled(&args.canister_id, &caller)?;
                self.uninstall_code(args.canister_id, sender)
            }
            "start_canister" => self.start(caller, argument),
            "delete_canister" => self.delete(caller, argument),
            "canister_status" => {
                let (args,): (ic::CanisterStatusArgs,) = decode(argument)?;
                let canister = self.canister(&args.canister_id)?;
                settings::check_status_viewer(canister, &caller)?;
                encode((status::report(canister),))
            }
            "canister_info" => self.canister_info(argument),
            "canister_metadata" => {
                let (args,): (ic::CanisterMetadataArgs,) = decode(argument)?;
                self.canister_metadata(&caller, args)
            }
            "raw_rand" => {
                decode::<()>(argument)?;
                self.next_random += 1;
                let bytes = Sha256::new()
                    .chain_update(b"icsql replica raw_rand")
                    .chain_update(self.next_random.to_le_bytes())
                    .finalize();
                encode((serde_bytes::ByteBuf::from(bytes.to_vec()),))
            }
            "fetch_canister_logs" => self.fetch_logs(caller, argument),
            "take_canister_snapshot" => self.take_canister_snapshot(sender, argument),
            "load_canister_snapshot" => self.load_canister_snapshot(sender, argument),
            "list_canister_snapshots" => self.list_canister_snapshots(caller, argument),
            "delete_canister_snapshot" => self.delete_canister_snapshot(caller, argument),
            "read_canister_snapshot_metadata" => self.read_canister_snapshot_metadata(caller, argument),
            "read_canister_snapshot_data" => self.read_canister_snapshot_data(caller, argument),
            _ => Err(unknown(method)),
        }
    }

    /// What can be asked of the management canister as a query.
    pub(super) fn management_query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> CallResult {
        match method {
            "fetch_canister_logs" | "canister_status" | "list_canister_snapshots" => {
                self.management(Sender::User(caller), method, argument, &mut 0)
            }
            _ => Err(Reject::new(
                ErrorCode::CanisterMethodNotFound,
                format!("Query method {method} not found on the management canister"),
            )),
        }
    }

    fn controlled(&mut self, id: &Principal, caller: &Principal) -> Result<&mut Canister, Reject> {
        let canister = self.canister_mut(id)?;
        check_controller(canister, caller)?;
        Ok(canister)
    }

    /// Takes the cycles for the canister from the call; from outside none come, and none are asked for.
    fn create_canister_for(&mut self, sender: Sender, argument: &[u8], cycles: &mut u128) -> CallResult {
        let (args,): (ic::CreateCanisterArgs,) = decode(argument)?;
        if let Sender::User(_) = sender {
            return self.create(sender, DEFAULT_CYCLES, args.settings, None);
        }
        let fee = cycles::CREATE_CANISTER;
        let balance = cycles.checked_sub(fee).ok_or_else(|| {
            Reject::new(
                ErrorCode::InsufficientCyclesForCreateCanister,
                format!("Creating a canister requires a fee of {fee} cycles, but only {cycles} came"),
            )
        })?;
        let reply = self.create(sender, balance, args.settings, None)?;
        *cycles = 0;
        Ok(reply)
    }

    fn create(
        &mut self,
        sender: Sender,
        cycles: u128,
        settings: Option<ic::CanisterSettings>,
        id: Option<Principal>,
    ) -> CallResult {
        let canister_id = self.create_with(sender, cycles, settings, id)?;
        encode((ic::CanisterIdRecord { canister_id },))
    }

    fn create_with(
        &mut self,
        sender: Sender,
        cycles: u128,
        settings: Option<ic::CanisterSettings>,
        id: Option<Principal>,
    ) -> Result<Principal, Reject> {
        let mut probe = Canister::new(canister_id(0), vec![sender.principal()], 0);
        settings::apply(&mut probe, settings.unwrap_or_default())?;
        let Canister { controllers, variables, settings, .. } = probe;
        let id =
            self.try_create_canister(CanisterSettings { controllers: controllers.to_vec(), cycles, id }, sender)?;
        let canister = self.canister_mut(&id)?;
        canister.variables = variables;
        canister.settings = settings;
        Ok(id)
    }

    fn update_settings(&mut self, sender: Sender, argument: &[u8]) -> CallResult {
        let (args,): (ic::UpdateSettingsArgs,) = decode(argument)?;
        let time = self.shared.time;
        let canister = self.controlled(&args.canister_id, &sender.principal())?;
        let new_controllers = args.settings.controllers.is_some();
        settings::apply(canister, args.settings)?;
        if new_controllers {
            let controllers = canister.controllers.to_vec();
            let details = ic::ChangeDetails::ControllersChange(ic::ControllersChangeRecord { controllers });
            canister.note_change(time, sender, details);
        } else {
            canister.version += 1;
        }
        Ok(EMPTY_REPLY.to_vec())
    }

    fn start(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::StartCanisterArgs,) = decode(argument)?;
        let canister = self.controlled(&args.canister_id, &caller)?;
        canister.status = Status::Running;
        canister.version += 1;
        for origin in std::mem::take(&mut canister.stop_waiters) {
            let reject = Reject::new(
                ErrorCode::CanisterStoppingCancelled,
                format!("Canister {}'s stop request was cancelled", args.canister_id),
            );
            self.respond(origin, Err(reject), 0);
        }
        Ok(EMPTY_REPLY.to_vec())
    }

    /// Stops a canister; no reply yet when it still works on calls.
    fn stop(&mut self, request: &Request) -> Result<Option<Vec<u8>>, Reject> {
        let (args,): (ic::StopCanisterArgs,) = decode(&request.argument)?;
        let canister = self.controlled(&args.canister_id, &request.caller)?;
        if canister.status == Status::Stopped {
            return Ok(Some(EMPTY_REPLY.to_vec()));
        }
        canister.status = Status::Stopping;
        canister.stop_waiters.push(request.origin.clone());
        self.finish_stopping(args.canister_id);
        Ok(None)
    }

    fn delete(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::DeleteCanisterArgs,) = decode(argument)?;
        let id = args.canister_id;
        if caller == id {
            return Err(Reject::new(
                ErrorCode::CanisterInvalidController,
                format!("Canister {id} cannot delete itself."),
            ));
        }
        if self.controlled(&id, &caller)?.status != Status::Stopped {
            return Err(Reject::new(
                ErrorCode::CanisterNotStopped,
                format!("Canister {id} must be stopped before it is deleted."),
            ));
        }
        self.canisters.remove(&id);
        Ok(EMPTY_REPLY.to_vec())
    }

    /// A metadata section; a private one is there for controllers only.
    fn canister_metadata(&mut self, caller: &Principal, args: ic::CanisterMetadataArgs) -> CallResult {
        let canister = self.canister(&args.canister_id)?;
        let metadata = canister.installed.as_ref().map(|i| &i.module.metadata);
        let section = metadata.and_then(|m| {
            let visible = canister.is_controller(caller) || !m.is_private(&args.name);
            m.section(&args.name).filter(|_| visible)
        });
        let value = section
            .ok_or_else(|| invalid(format!("Canister {} has no metadata section '{}'", args.canister_id, args.name)))?;
        encode((ic::CanisterMetadataResult { value: value.to_vec() },))
    }
}
