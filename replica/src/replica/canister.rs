//! A canister's state, and the execution of one message on it.

use super::Shared;
use super::management::{History, Settings};
use crate::cycles;
use crate::profile::{Profile, Profiler};
use crate::runtime::{Context, Entry, Environment, Instance, Message, OutgoingCall, StableMemory, Trap};
use crate::types::{Cost, ErrorCode, LogLine, Reject, Status};
use crate::wasm::Module;
use candid::Principal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Profiles that a canister keeps.
const PROFILES_MAX: usize = 10_000;

/// A reply's bytes or the reject.
pub(crate) type CallResult = Result<Vec<u8>, Reject>;

/// Who waits for the answer of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// Someone outside; the number of the ingress message.
    Ingress(u64),
    /// A callback of a canister.
    Canister { canister: Principal, callback: u64 },
    /// Nobody: timers, heartbeats.
    System,
}

/// A call that this canister works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CallContext {
    pub origin: Origin,
    pub caller: Principal,
    pub method: String,
    pub responded: bool,
    /// Cycles that came with the call and are not accepted yet.
    pub available: u128,
    /// Instructions that the call's messages have used.
    pub instructions: u64,
    /// Calls of its own that are not answered yet.
    pub outstanding: usize,
    pub deadline: u64,
}

/// A call that this canister waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Callback {
    pub context: u64,
    pub method: String,
    pub reply: (u32, u32),
    pub reject: (u32, u32),
    pub cleanup: Option<(u32, u32)>,
}

/// Code and its instance.
pub(super) struct Installed {
    pub module: Arc<Module>,
    pub instance: Instance,
}

/// A saved state.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub module: Arc<Module>,
    pub heap: Arc<Vec<u8>>,
    pub globals: Vec<wasmtime::Val>,
    pub stable: StableMemory,
    pub certified_data: Vec<u8>,
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    pub taken_at: u64,
    pub version: u64,
    pub global_timer: u64,
}

pub(super) struct Canister {
    pub id: Principal,
    pub controllers: Arc<Vec<Principal>>,
    pub variables: Arc<Vec<(String, String)>>,
    pub settings: Settings,
    pub history: History,
    pub balance: u128,
    pub status: Status,
    /// Who asked for it to stop and waits until it has.
    pub stop_waiters: Vec<Origin>,
    pub installed: Option<Installed>,
    pub stable: StableMemory,
    pub certified_data: Vec<u8>,
    /// Nanoseconds since 1970, 0 for none.
    pub global_timer: u64,
    pub version: u64,
    pub log: VecDeque<LogLine>,
    pub log_bytes: usize,
    pub next_log_index: u64,
    pub contexts: BTreeMap<u64, CallContext>,
    pub callbacks: BTreeMap<u64, Callback>,
    pub next_number: u64,
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    pub snapshots: BTreeMap<Vec<u8>, Snapshot>,
    pub next_snapshot: u64,
    /// Profiles that nobody has taken yet, oldest first.
    pub profiles: Vec<Profile>,
}

/// What becomes of a message's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// They stay, unless it traps.
    Keep,
    /// They go.
    Discard,
    /// They stay open for the next message of the same composite query or upgrade.
    Hold,
}

/// What a message did.
pub(super) struct Executed {
    pub result: Result<(), Trap>,
    pub cost: Cost,
    pub response: Option<Result<Vec<u8>, String>>,
    pub calls: Vec<OutgoingCall>,
    pub available: u128,
    pub accepted: bool,
}

impl Canister {
    pub fn new(id: Principal, controllers: Vec<Principal>, cycles: u128) -> Self {
        Self {
            id,
            controllers: Arc::new(controllers),
            variables: Arc::default(),
            settings: Settings::default(),
            history: History::default(),
            balance: cycles,
            status: Status::Running,
            stop_waiters: Vec::new(),
            installed: None,
            stable: StableMemory::default(),
            certified_data: Vec::new(),
            global_timer: 0,
            version: 0,
            log: VecDeque::new(),
            log_bytes: 0,
            next_log_index: 0,
            contexts: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            next_number: 0,
            chunks: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            next_snapshot: 0,
            profiles: Vec::new(),
        }
    }

    pub fn is_controller(&self, principal: &Principal) -> bool {
        self.controllers.contains(principal)
    }

    pub fn installed(&mut self) -> Result<&mut Installed, Reject> {
        let id = self.id;
        self.installed.as_mut().ok_or_else(|| {
            Reject::new(
                ErrorCode::CanisterWasmModuleNotFound,
                format!("Error from Canister {id}: Attempted to execute a message, but the canister contains no Wasm module."),
            )
        })
    }

    pub fn module(&mut self) -> Result<Arc<Module>, Reject> {
        Ok(Arc::clone(&self.installed()?.module))
    }

    /// Refuses what a canister that is not running does not take.
    pub fn check_running(&self) -> Result<(), Reject> {
        match self.status {
            Status::Running => Ok(()),
            Status::Stopping => {
                Err(Reject::new(ErrorCode::CanisterStopping, format!("Canister {} is stopping", self.id)))
            }
            Status::Stopped => Err(Reject::new(ErrorCode::CanisterStopped, format!("Canister {} is stopped", self.id))),
        }
    }

    /// Refuses a message whose instructions the canister could not pay, were it to use all that it may.
    pub fn check_cycles(&self, instructions_max: u64) -> Result<(), Reject> {
        let needed = cycles::EXECUTION + u128::from(instructions_max);
        if self.balance >= needed {
            return Ok(());
        }
        Err(Reject::new(
            ErrorCode::CanisterOutOfCycles,
            format!(
                "Canister {} is out of cycles: please top up the canister with at least {} additional cycles",
                self.id,
                needed - self.balance
            ),
        ))
    }

    /// A message for this canister; takes its stable memory along.
    pub fn message(&mut self, shared: &mut Shared, context: Context, limit: u64) -> Message {
        let environment = Environment {
            canister: self.id,
            controllers: Arc::clone(&self.controllers),
            subnet: shared.subnet,
            status: self.status,
            version: self.version,
            time_nanos: shared.time,
            root_key: Arc::clone(&shared.root_key),
            variables: Arc::clone(&self.variables),
            stable_bytes_max: shared.config.stable_bytes_max,
        };
        let mut message = Message::new(context, environment, std::mem::take(&mut self.stable), limit);
        message.balance = self.balance;
        message.global_timer = self.global_timer;
        message.profiler = shared.profiling.then(Profiler::default);
        if context != Context::Inspect {
            message.fault = shared.fault.take().unwrap_or_default();
        }
        message
    }

    /// Runs a message on the installed code.
    pub fn execute(&mut self, entry: &Entry, message: Message, effect: Effect) -> Executed {
        let Some(mut installed) = self.installed.take() else {
            // The callers look for code first; without it nothing runs and nothing is lost but the message.
            self.stable = message.stable;
            let result = Err(Trap::NoFunction("the canister contains no Wasm module".into()));
            return Executed {
                result,
                cost: Cost::default(),
                response: None,
                calls: Vec::new(),
                available: message.available,
                accepted: false,
            };
        };
        let executed = self.execute_on(&mut installed.instance, entry, message, effect);
        self.installed = Some(installed);
        executed
    }

    /// Runs a message on an instance that may not be installed yet.
    pub fn execute_on(&mut self, instance: &mut Instance, entry: &Entry, message: Message, effect: Effect) -> Executed {
        let (context, time, available) = (message.context, message.environment.time_nanos, message.available);
        let (mut message, result, cost) = instance.run(entry, message);
        if let Some(profiler) = message.profiler.take()
            && self.profiles.len() < PROFILES_MAX
        {
            self.profiles.push(profiler.finish(entry, cost, &instance.metadata().functions));
        }
        match (effect, &result) {
            (Effect::Hold, _) => {}
            (Effect::Keep, Ok(())) => {
                instance.commit();
                message.stable.commit();
            }
            _ => {
                instance.rollback();
                message.stable.rollback();
            }
        }
        self.stable = std::mem::take(&mut message.stable);
        if context.replicated() {
            for line in std::mem::take(&mut message.log) {
                self.append_log(time, line);
            }
            if let Err(trap) = &result {
                self.append_log(time, trap.log_line().into_bytes());
            }
        }
        let keep = effect != Effect::Discard && result.is_ok();
        if keep && context.replicated() {
            self.balance = message.balance;
            self.global_timer = message.global_timer;
            if let Some(data) = message.certified_data.take() {
                self.certified_data = data;
            }
        }
        if context.replicated() {
            self.balance = self.balance.saturating_sub(cycles::EXECUTION + u128::from(cost.instructions));
        }
        if result.is_err() {
            return Executed { result, cost, response: None, calls: Vec::new(), available, accepted: false };
        }
        Executed {
            result,
            cost,
            response: message.response,
            calls: message.calls,
            available: if keep { message.available } else { available },
            accepted: message.accepted,
        }
    }

    /// Bytes of log that the canister keeps.
    fn log_bytes_max(&self) -> usize {
        usize::try_from(self.settings.log_memory_limit).unwrap_or(usize::MAX)
    }

    pub fn append_log(&mut self, time_nanos: u64, mut content: Vec<u8>) {
        content.truncate(self.log_bytes_max());
        self.log_bytes += content.len();
        self.log.push_back(LogLine { index: self.next_log_index, time_nanos, content });
        self.next_log_index += 1;
        self.shorten_log();
    }

    /// Drops the oldest lines until the log is as short as the settings say.
    pub fn shorten_log(&mut self) {
        while self.log_bytes > self.log_bytes_max() {
            match self.log.pop_front() {
                Some(line) => self.log_bytes -= line.content.len(),
                None => break,
            }
        }
    }

    /// A number that no context and no callback of this canister has had.
    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}
