//! Calls from outside, calls between canisters, their answers.

use super::canister::{CallContext, CallResult, Callback, Canister, Effect, Executed, Origin};
use super::{IngressId, Replica, not_found};
use crate::cycles;
use crate::runtime::{Context, Entry, OutgoingCall};
use crate::types::{
    Cost, ErrorCode, INGRESS_BYTES_MAX, INSPECT_INSTRUCTIONS_MAX, MessageCost, Outcome, Reject, Status,
};
use crate::wasm::MethodKind;
use candid::Principal;
use serde::{Deserialize, Serialize};

/// Rounds after which a call counts as not answered.
const ROUNDS_MAX: u32 = 100;
/// Messages of one round; what is left waits for the next.
const ROUND_MESSAGES_MAX: usize = 1_000;

/// What the system does with a canister by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    GlobalTimer,
    Heartbeat,
}

impl Task {
    /// The export that it runs.
    fn export(self) -> &'static str {
        match self {
            Self::GlobalTimer => "canister_global_timer",
            Self::Heartbeat => "canister_heartbeat",
        }
    }
}

/// A message that waits for its turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    Request(Request),
    Response {
        canister: Principal,
        callback: u64,
        result: CallResult,
        /// Cycles that come back.
        refund: u128,
    },
    Task {
        canister: Principal,
        task: Task,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub origin: Origin,
    pub caller: Principal,
    pub callee: Principal,
    pub method: String,
    pub argument: Vec<u8>,
    pub cycles: u128,
    pub deadline: u64,
}

impl Replica {
    pub(super) fn submit_ingress(
        &mut self,
        callee: Principal,
        caller: Principal,
        method: &str,
        argument: Vec<u8>,
    ) -> Result<IngressId, Reject> {
        self.begin();
        if argument.len() > INGRESS_BYTES_MAX {
            return Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!(
                    "The argument has {} bytes, more than the {INGRESS_BYTES_MAX} of an ingress message",
                    argument.len()
                ),
            ));
        }
        if callee == Principal::management_canister() {
            self.inspect_management(caller, method, &argument)?;
        } else {
            self.inspect(callee, caller, method, &argument)?;
            let fee = cycles::ingress((argument.len() + method.len()) as u64);
            let canister = self.canister_mut(&callee)?;
            canister.balance = canister.balance.saturating_sub(fee);
        }
        self.changes += 1;
        self.next_ingress += 1;
        let id = self.next_ingress;
        self.queue.push_back(Job::Request(Request {
            origin: Origin::Ingress(id),
            caller,
            callee,
            method: method.to_owned(),
            argument,
            cycles: 0,
            deadline: 0,
        }));
        Ok(IngressId(id))
    }

    /// Asks the canister whether it takes the message, if it wants to be asked.
    fn inspect(&mut self, callee: Principal, caller: Principal, method: &str, argument: &[u8]) -> Result<(), Reject> {
        let limit = INSPECT_INSTRUCTIONS_MAX;
        let canister = self.canisters.get_mut(&callee).ok_or_else(|| not_found(&callee))?;
        canister.check_running()?;
        let module = canister.module()?;
        if !module.metadata.exports("canister_inspect_message") {
            return Ok(());
        }
        let mut message = canister.message(&mut self.shared, Context::Inspect, limit);
        message.caller = caller;
        message.method = method.to_owned();
        message.argument = argument.to_vec();
        let executed = canister.execute(&Entry::Export("canister_inspect_message".into()), message, Effect::Discard);
        executed.result.map_err(|trap| trap.reject(&callee))?;
        if executed.accepted {
            Ok(())
        } else {
            Err(Reject::new(ErrorCode::CanisterRejectedMessage, format!("Canister {callee} rejected the message")))
        }
    }

    /// Runs rounds until the message is answered, and what is left of the last round.
    pub(super) fn await_ingress(&mut self, ingress: IngressId) -> Outcome {
        if let Some(outcome) = self.answer(ingress) {
            return outcome;
        }
        for _ in 0..ROUNDS_MAX {
            if let Some(outcome) = self.round(false, Some(ingress)) {
                return outcome;
            }
        }
        Outcome::rejected(Reject::new(
            ErrorCode::IngressMessageTimeout,
            format!("the call was not answered within {ROUNDS_MAX} rounds"),
        ))
    }

    /// One round: timers and heartbeats first, then all messages that wait and those that they cause. Gives the
    /// answer of `ingress` as soon as it is known, and still ends the round.
    pub(super) fn round(&mut self, heartbeats: bool, ingress: Option<IngressId>) -> Option<Outcome> {
        self.shared.time += 1;
        self.queue_tasks(heartbeats);
        let mut outcome = None;
        for _ in 0..ROUND_MESSAGES_MAX {
            let Some(job) = self.queue.pop_front() else { break };
            self.run(job);
            if outcome.is_none() {
                outcome = ingress.and_then(|i| self.answer(i));
            }
        }
        outcome
    }

    /// Puts the timers that are due, and heartbeats, before all messages.
    pub(super) fn queue_tasks(&mut self, heartbeats: bool) {
        let now = self.shared.time;
        let mut tasks = Vec::new();
        for (id, canister) in &mut self.canisters {
            let Some(installed) = canister.installed.as_ref().filter(|_| canister.status == Status::Running) else {
                continue;
            };
            let metadata = &installed.module.metadata;
            if canister.global_timer != 0 && canister.global_timer <= now {
                canister.global_timer = 0;
                if metadata.exports("canister_global_timer") {
                    tasks.push(Job::Task { canister: *id, task: Task::GlobalTimer });
                }
            }
            if heartbeats && metadata.exports("canister_heartbeat") {
                tasks.push(Job::Task { canister: *id, task: Task::Heartbeat });
            }
        }
        tasks.into_iter().rev().for_each(|task| self.queue.push_front(task));
    }

    pub(super) fn run(&mut self, job: Job) {
        self.changes += 1;
        match job {
            Job::Request(request) => self.run_request(request),
            Job::Response { canister, callback, result, refund } => {
                self.run_response(canister, callback, result, refund)
            }
            Job::Task { canister, task } => self.run_task(canister, task.export()),
        }
    }

    fn run_request(&mut self, request: Request) {
        if request.callee == Principal::management_canister() || self.is_for_ledger(&request) {
            return self.run_management(request);
        }
        let limit = self.shared.config.update_instructions_max;
        let callee = request.callee;
        let found = self.canisters.get_mut(&callee).ok_or_else(|| not_found(&callee));
        let checked = found.and_then(|canister| {
            check_cycles_brought(canister, &request)?;
            canister.check_running()?;
            let kind = replicated_method(canister, &request.method)?;
            canister.check_cycles(limit)?;
            Ok((canister, kind))
        });
        let (canister, kind) = match checked {
            Ok(checked) => checked,
            Err(reject) => return self.respond(request.origin, Err(reject), request.cycles),
        };
        let (context, effect) = match kind {
            MethodKind::Update => (Context::Update, Effect::Keep),
            _ => (Context::ReplicatedQuery, Effect::Discard),
        };
        let mut message = canister.message(&mut self.shared, context, limit);
        message.caller = request.caller;
        message.argument = request.argument;
        message.available = request.cycles;
        message.deadline = request.deadline;
        message.may_respond = true;
        let entry = Entry::Export(format!("{}{}", kind.prefix(), request.method));
        let executed = canister.execute(&entry, message, effect);
        let number = canister.number();
        canister.contexts.insert(
            number,
            CallContext {
                origin: request.origin.clone(),
                caller: request.caller,
                method: request.method.clone(),
                responded: false,
                available: request.cycles,
                instructions: 0,
                outstanding: 0,
                deadline: request.deadline,
            },
        );
        if let Origin::Ingress(id) = request.origin {
            self.first_costs.insert(id, executed.cost);
        }
        self.record(callee, request.method, executed.cost);
        self.after(callee, number, executed);
    }

    fn run_task(&mut self, id: Principal, export: &'static str) {
        let limit = self.shared.config.update_instructions_max;
        let Some(canister) = self.canisters.get_mut(&id) else { return };
        let ready =
            canister.check_running().and_then(|()| canister.module()).and_then(|_| canister.check_cycles(limit));
        if ready.is_err() {
            return;
        }
        let message = canister.message(&mut self.shared, Context::System, limit);
        let executed = canister.execute(&Entry::Export(export.into()), message, Effect::Keep);
        let number = canister.number();
        canister.contexts.insert(
            number,
            CallContext {
                origin: Origin::System,
                caller: Principal::management_canister(),
                method: export.into(),
                responded: true,
                available: 0,
                instructions: 0,
                outstanding: 0,
                deadline: 0,
            },
        );
        self.record(id, export.into(), executed.cost);
        self.after(id, number, executed);
    }

    fn run_response(&mut self, id: Principal, callback: u64, result: CallResult, refund: u128) {
        let limit = self.shared.config.update_instructions_max;
        let Some(canister) = self.canisters.get_mut(&id) else { return };
        canister.balance = canister.balance.saturating_add(refund);
        let Some(callback) = canister.callbacks.remove(&callback) else { return };
        let Some(context) = canister.contexts.get_mut(&callback.context) else { return };
        context.outstanding = context.outstanding.saturating_sub(1);
        let context = context.clone();
        let (kind, (function, env)) = match &result {
            Ok(_) => (Context::Reply, callback.reply),
            Err(_) => (Context::Reject, callback.reject),
        };
        let mut message = canister.message(&mut self.shared, kind, limit);
        match result {
            Ok(reply) => message.argument = reply,
            Err(reject) => message.reject = as_seen_by_canister(reject),
        }
        let reject = message.reject.clone();
        message.caller = context.caller;
        message.refunded = refund;
        message.available = if context.responded { 0 } else { context.available };
        message.may_respond = !context.responded;
        message.deadline = context.deadline;
        message.call_instructions = context.instructions;
        let executed = canister.execute(&Entry::Callback(function, env), message, Effect::Keep);
        let mut entries = vec![(
            format!("{} of {}", if kind == Context::Reply { "reply" } else { "reject" }, callback.method),
            executed.cost,
        )];
        if let (Err(_), Some((function, env))) = (&executed.result, callback.cleanup) {
            let mut message = canister.message(&mut self.shared, Context::Cleanup, limit);
            message.caller = context.caller;
            message.reject = reject;
            message.call_instructions = context.instructions + executed.cost.instructions;
            let cleaned = canister.execute(&Entry::Callback(function, env), message, Effect::Keep);
            entries.push((format!("cleanup of {}", callback.method), cleaned.cost));
        }
        for (entry, cost) in entries {
            self.record(id, entry, cost);
        }
        self.after(id, callback.context, executed);
    }

    fn record(&mut self, canister: Principal, entry: String, cost: Cost) {
        self.trace.push(MessageCost { canister, entry, cost });
    }

    /// What follows from a message that ran: its calls go out, its call is answered if it can be.
    fn after(&mut self, id: Principal, number: u64, executed: Executed) {
        let time = self.shared.time;
        let Some(canister) = self.canisters.get_mut(&id) else { return };
        let requests: Vec<_> =
            executed.calls.into_iter().map(|call| request_of(canister, number, call, time)).collect();
        let Some(context) = canister.contexts.get_mut(&number) else { return };
        context.outstanding += requests.len();
        context.instructions += executed.cost.instructions;
        if !context.responded {
            context.available = executed.available;
        }
        let response = match (executed.response, &executed.result) {
            (Some(Ok(reply)), _) => Some(Ok(reply)),
            (Some(Err(text)), _) => Some(Err(Reject::new(ErrorCode::CanisterRejectedMessage, text))),
            (None, Err(trap)) if context.outstanding == 0 => Some(Err(trap.reject(&id))),
            (None, Ok(())) if context.outstanding == 0 => Some(Err(Reject::new(
                ErrorCode::CanisterDidNotReply,
                format!("Error from Canister {id}: Canister did not reply to the call"),
            ))),
            _ => None,
        };
        let response = response.filter(|_| !context.responded);
        let (origin, refund) = (context.origin.clone(), context.available);
        if response.is_some() {
            context.responded = true;
            context.available = 0;
        }
        if context.outstanding == 0 {
            canister.contexts.remove(&number);
        }
        self.queue.extend(requests.into_iter().map(Job::Request));
        if let Some(response) = response {
            self.respond(origin, response, refund);
        }
        self.finish_stopping(id);
    }

    pub(super) fn respond(&mut self, origin: Origin, result: CallResult, refund: u128) {
        match origin {
            Origin::Ingress(id) => {
                let cost = self.first_costs.remove(&id).unwrap_or_default();
                self.answers.insert(id, (result, cost));
            }
            Origin::Canister { canister, callback } => {
                self.queue.push_back(Job::Response { canister, callback, result, refund });
            }
            Origin::System => {}
        }
    }

    /// A canister that is stopping has stopped when it works on no call any more.
    pub(super) fn finish_stopping(&mut self, id: Principal) {
        let Some(canister) = self.canisters.get_mut(&id) else { return };
        if canister.status != Status::Stopping || !canister.contexts.is_empty() {
            return;
        }
        canister.status = Status::Stopped;
        canister.version += 1;
        for origin in std::mem::take(&mut canister.stop_waiters) {
            self.respond(origin, Ok(super::management::EMPTY_REPLY.to_vec()), 0);
        }
    }
}

/// Refuses another canister's call that brings fewer cycles than the callee's settings ask for.
fn check_cycles_brought(canister: &Canister, request: &Request) -> Result<(), Reject> {
    let least = canister.settings.minimum_incoming_canister_call_cycles;
    let from_another = matches!(request.origin, Origin::Canister { .. }) && request.caller != canister.id;
    if !from_another || request.cycles >= least {
        return Ok(());
    }
    Err(Reject::new(
        ErrorCode::InsufficientCyclesInCall,
        format!(
            "Canister {} takes calls of other canisters with at least {least} cycles, but only {} came",
            canister.id, request.cycles
        ),
    ))
}

/// How this method runs when it is called as an update or by a canister.
fn replicated_method(canister: &mut Canister, method: &str) -> Result<MethodKind, Reject> {
    match canister.module()?.metadata.methods.get(method) {
        Some(MethodKind::CompositeQuery) => Err(Reject::new(
            ErrorCode::CompositeQueryCalledInReplicatedMode,
            "Composite query cannot be called in replicated mode",
        )),
        Some(kind) => Ok(*kind),
        None => Err(no_method(&canister.id, "update", method)),
    }
}

/// Turns a call of a canister into a request, and notes its callbacks.
fn request_of(canister: &mut Canister, context: u64, call: OutgoingCall, time: u64) -> Request {
    let callback = canister.number();
    canister.callbacks.insert(
        callback,
        Callback {
            context,
            method: call.method.clone(),
            reply: call.reply,
            reject: call.reject,
            cleanup: call.cleanup,
        },
    );
    Request {
        origin: Origin::Canister { canister: canister.id, callback },
        caller: canister.id,
        callee: call.callee,
        method: call.method,
        argument: call.argument,
        cycles: call.cycles,
        deadline: call.timeout_seconds.map_or(0, |s| time.saturating_add(u64::from(s) * 1_000_000_000)),
    }
}

/// A reject as a callback sees it: code 1 to 6, and the message with the error code unless a canister wrote it.
pub(super) fn as_seen_by_canister(reject: Reject) -> (u32, String) {
    let code = reject.reject_code();
    let text = match reject.code {
        ErrorCode::CanisterRejectedMessage => reject.message,
        _ => reject.to_string(),
    };
    (code, text)
}

pub(super) fn no_method(canister: &Principal, kind: &str, method: &str) -> Reject {
    Reject::new(
        ErrorCode::CanisterMethodNotFound,
        format!("Error from Canister {canister}: Canister has no {kind} method '{method}'."),
    )
}
