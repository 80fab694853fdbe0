//! Queries: on the state as it is, which they do not change.

use super::canister::{CallResult, Effect, Executed};
use super::schedule::{as_seen_by_canister, no_method};
use super::{Replica, not_found};
use crate::runtime::{Context, Entry, OutgoingCall};
use crate::types::{ErrorCode, MessageCost, QUERY_REPLY_BYTES_MAX, Reject};
use crate::wasm::MethodKind;
use candid::Principal;

/// Canisters that a composite query may pass through.
const DEPTH_MAX: usize = 16;
/// Calls that one composite query may make in a canister, so that it ends.
const CALLS_MAX: usize = 500;

/// Makes the certificate of a canister's certified data.
pub(crate) type Certify<'a> = &'a (dyn Fn(Principal) -> Vec<u8> + Sync);

/// What the canisters that take part in a query share.
pub(super) struct Scope<'a> {
    /// The canisters whose composite queries wait for an answer.
    path: Vec<Principal>,
    certify: Option<Certify<'a>>,
}

impl<'a> Scope<'a> {
    /// A query from outside.
    pub fn new(certify: Option<Certify<'a>>) -> Self {
        Self { path: Vec::new(), certify }
    }
}

impl Replica {
    /// Runs a query method.
    pub(super) fn query_call(
        &mut self,
        id: Principal,
        caller: Principal,
        method: &str,
        argument: Vec<u8>,
        scope: &mut Scope<'_>,
    ) -> CallResult {
        if id == Principal::management_canister() {
            return self.management_query(caller, method, &argument);
        }
        let limit = self.shared.config.query_instructions_max;
        let canister = self.canisters.get_mut(&id).ok_or_else(|| not_found(&id))?;
        canister.check_running()?;
        if scope.path.contains(&id) {
            return Err(Reject::new(
                ErrorCode::QueryCallGraphLoopDetected,
                format!("Canister {id} is called by a composite query that it is part of"),
            ));
        }
        if scope.path.len() >= DEPTH_MAX {
            return Err(Reject::new(
                ErrorCode::QueryCallGraphTooDeep,
                format!("Composite queries through more than {DEPTH_MAX} canisters"),
            ));
        }
        let module = canister.module()?;
        let certify = scope.certify.filter(|_| module.metadata.reads_certificate);
        let certificate = certify.map(|certify| certify(id));
        let kind = match module.metadata.methods.get(method) {
            Some(kind @ (MethodKind::Query | MethodKind::CompositeQuery)) => *kind,
            _ => return Err(no_method(&id, "query", method)),
        };
        let (context, effect) = match kind {
            MethodKind::CompositeQuery => (Context::CompositeQuery, Effect::Hold),
            _ => (Context::Query, Effect::Discard),
        };
        let mut message = canister.message(&mut self.shared, context, limit);
        message.caller = caller;
        message.argument = argument;
        message.may_respond = true;
        message.reply_bytes_max = QUERY_REPLY_BYTES_MAX;
        message.data_certificate = certificate.clone();
        let executed = canister.execute(&Entry::Export(format!("{}{method}", kind.prefix())), message, effect);
        self.trace.push(MessageCost { canister: id, entry: method.to_owned(), cost: executed.cost });
        if kind == MethodKind::Query {
            return answer(&id, executed).unwrap_or_else(|| Err(no_reply(&id)));
        }
        scope.path.push(id);
        let result = self.composite(id, executed, scope, certificate);
        scope.path.pop();
        if let Some(canister) = self.canisters.get_mut(&id) {
            if let Some(installed) = canister.installed.as_mut() {
                installed.instance.rollback();
            }
            canister.stable.rollback();
        }
        result
    }

    /// Answers the calls of a composite query until it has answered itself.
    fn composite(
        &mut self,
        id: Principal,
        mut executed: Executed,
        scope: &mut Scope<'_>,
        certificate: Option<Vec<u8>>,
    ) -> CallResult {
        let mut instructions = executed.cost.instructions;
        let mut waiting: std::collections::VecDeque<OutgoingCall> = std::mem::take(&mut executed.calls).into();
        let mut made = waiting.len();
        loop {
            if let Some(answer) = answer(&id, executed) {
                return answer;
            }
            let Some(call) = waiting.pop_front() else { return Err(no_reply(&id)) };
            let entry = call.method.clone();
            let result = self.query_call(call.callee, id, &call.method, call.argument, scope);
            let limit = self.shared.config.query_instructions_max.saturating_sub(instructions);
            let canister = self.canisters.get_mut(&id).ok_or_else(|| not_found(&id))?;
            let (context, (function, env)) = match &result {
                Ok(_) => (Context::CompositeReply, call.reply),
                Err(_) => (Context::CompositeReject, call.reject),
            };
            let mut message = canister.message(&mut self.shared, context, limit);
            match result {
                Ok(reply) => message.argument = reply,
                Err(reject) => message.reject = as_seen_by_canister(reject),
            }
            message.may_respond = true;
            message.reply_bytes_max = QUERY_REPLY_BYTES_MAX;
            message.call_instructions = instructions;
            message.data_certificate = certificate.clone();
            executed = canister.execute(&Entry::Callback(function, env), message, Effect::Hold);
            instructions = instructions.saturating_add(executed.cost.instructions);
            self.trace.push(MessageCost { canister: id, entry: format!("answer of {entry}"), cost: executed.cost });
            let calls = std::mem::take(&mut executed.calls);
            made += calls.len();
            if made > CALLS_MAX {
                return Err(Reject::new(
                    ErrorCode::QueryCallGraphTooDeep,
                    format!("Canister {id} makes more than {CALLS_MAX} calls in one composite query"),
                ));
            }
            waiting.extend(calls);
        }
    }
}

/// The answer of a message that gave one, or its trap.
fn answer(id: &Principal, executed: Executed) -> Option<CallResult> {
    match (executed.result, executed.response) {
        (Err(trap), _) => Some(Err(trap.reject(id))),
        (Ok(()), Some(Ok(reply))) => Some(Ok(reply)),
        (Ok(()), Some(Err(text))) => Some(Err(Reject::new(ErrorCode::CanisterRejectedMessage, text))),
        (Ok(()), None) => None,
    }
}

fn no_reply(id: &Principal) -> Reject {
    Reject::new(ErrorCode::CanisterDidNotReply, format!("Error from Canister {id}: Canister did not reply to the call"))
}
