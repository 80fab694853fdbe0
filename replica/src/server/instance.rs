//! One instance: a replica, and what its clients ask of it.

use super::protocol::*;
use crate::replica::{IngressId, Replica};
use crate::types::{ErrorCode, Fault, Reject};
use axum::http::StatusCode;
use candid::Principal;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::{Notify, watch};

/// Answers that are kept for clients who ask again.
const ANSWERS_MAX: usize = 256;
/// Bytes of those answers.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Status and message of a request that failed.
pub(super) type Failure = (StatusCode, String);
/// A body of JSON.
pub(super) type Answer = Result<Vec<u8>, Failure>;

pub(crate) struct Instance {
    state: Mutex<State>,
    kind: &'static str,
    /// The clock follows the machine's, and rounds run by themselves.
    pub auto_progress: AtomicBool,
    pub deleted: AtomicBool,
    /// Lets the next round begin at once, if rounds run by themselves.
    pub wake: Notify,
    /// Counts the rounds that ran by themselves.
    pub rounds: watch::Sender<u64>,
}

struct State {
    replica: Replica,
    /// Who sent the messages that are not answered yet.
    senders: BTreeMap<u64, Principal>,
    answers: VecDeque<Answered>,
    answer_bytes: usize,
}

struct Answered {
    number: u64,
    sender: Principal,
    result: RawCanisterResult,
    bytes: usize,
}

fn bad(message: impl std::fmt::Display) -> Failure {
    (StatusCode::BAD_REQUEST, message.to_string())
}

fn rejected(reject: Reject) -> Failure {
    bad(reject)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(bad)
}

fn json<T: Serialize>(value: &T) -> Answer {
    serde_json::to_vec(value).map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))
}

impl Instance {
    pub fn new(replica: Replica, kind: &'static str, auto_progress: bool) -> Self {
        let state = State { replica, senders: BTreeMap::new(), answers: VecDeque::new(), answer_bytes: 0 };
        Self {
            state: Mutex::new(state),
            kind,
            auto_progress: AtomicBool::new(auto_progress),
            deleted: AtomicBool::new(false),
            wake: Notify::new(),
            rounds: watch::Sender::new(0),
        }
    }

    /// Works on the replica; nobody else does meanwhile.
    pub fn replica<T>(&self, work: impl FnOnce(&mut Replica) -> T) -> T {
        self.with(|state| work(&mut state.replica))
    }

    /// Works on the replica for the last time: whoever comes later waits until the process ends.
    pub fn close<T>(&self, work: impl FnOnce(&mut Replica) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut state.replica);
        std::mem::forget(state);
        done
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A round at the machine's time.
    pub fn progress(&self, now_nanos: u64) {
        self.with(|state| {
            if now_nanos > state.replica.time() {
                state.replica.set_time(now_nanos);
            }
            state.replica.tick();
            state.collect();
        });
        self.rounds.send_modify(|rounds| *rounds = rounds.wrapping_add(1));
    }

    pub(super) fn topology(&self) -> Topology {
        let (subnet, (start, end)) = self.with(|s| (s.replica.subnet(), s.replica.canister_ids()));
        let id = |principal: Principal| RawCanisterId { canister_id: principal.into() };
        let config = SubnetConfig {
            subnet_kind: self.kind,
            subnet_admins: None,
            cost_schedule: "Normal",
            subnet_seed: [0; 32],
            instruction_config: "Production",
            canister_ranges: vec![CanisterIdRange { start: id(start), end: id(end) }],
        };
        Topology { subnet_configs: BTreeMap::from([(subnet, config)]), default_effective_canister_id: id(start) }
    }

    pub fn canister_exists(&self, id: Principal) -> bool {
        self.with(|s| s.replica.canister_exists(id))
    }

    /// Calls a query method.
    pub fn query_once(
        &self,
        id: Principal,
        sender: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Vec<u8>, Reject> {
        self.with(|s| s.replica.query(id, sender, method, argument).result)
    }

    /// Calls an update method and runs rounds until it is answered.
    pub fn update_once(
        &self,
        id: Principal,
        sender: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Vec<u8>, Reject> {
        self.with(|s| s.replica.update(id, sender, method, argument).result)
    }

    /// `GET /instances/{i}/{path}`.
    pub(super) fn get(&self, path: &str) -> Answer {
        match path {
            "read/get_time" => json(&RawTime { nanos_since_epoch: self.with(|s| s.replica.time()) }),
            "read/topology" | "_/topology" => json(&self.topology()),
            "auto_progress" => json(&self.auto_progress.load(Ordering::Relaxed)),
            "read/get_canister_http" => json(&[(); 0]),
            "icsql/cost" => self.with(|s| json(&Costs { messages: s.replica.messages() })),
            _ => Err((StatusCode::NOT_FOUND, format!("the replica has no endpoint GET {path}"))),
        }
    }

    /// `POST /instances/{i}/{path}`. `blob` finds what was uploaded.
    pub(super) fn post(&self, path: &str, body: &[u8], blob: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Answer {
        match path {
            "update/submit_ingress_message" => self.submit(parse(body)?),
            "update/await_ingress_message" => self.wait(&parse(body)?),
            "read/ingress_status" => self.ingress_status(&parse(body)?),
            "read/query" => {
                let call: RawCanisterCall = parse(body)?;
                let (id, sender) = (call.canister_id.principal(), call.sender.principal());
                let (id, sender) = (id.map_err(bad)?, sender.map_err(bad)?);
                json(&RawCanisterResult::new(self.query_once(id, sender, &call.method, &call.payload.0), false))
            }
            "update/tick" => {
                self.with(|state| {
                    state.replica.tick();
                    state.collect();
                });
                json(&())
            }
            "update/set_time" | "update/set_certified_time" => {
                let time: RawTime = parse(body)?;
                self.with(|s| {
                    if time.nanos_since_epoch < s.replica.time() {
                        return Err(bad(format!(
                            "the clock stands at {} ns and cannot be set back to {}",
                            s.replica.time(),
                            time.nanos_since_epoch
                        )));
                    }
                    s.replica.set_time(time.nanos_since_epoch);
                    json(&())
                })
            }
            "update/add_cycles" => {
                let add: RawAddCycles = parse(body)?;
                let id = add.canister_id.principal().map_err(bad)?;
                let cycles = self.with(|s| s.replica.add_cycles(id, add.amount)).map_err(rejected)?;
                json(&RawCycles { cycles })
            }
            "update/set_stable_memory" => {
                let set: RawSetStableMemory = parse(body)?;
                let id = set.canister_id.principal().map_err(bad)?;
                let bytes = blob(&set.blob_id.0).ok_or_else(|| bad("no blob with this id was uploaded"))?;
                self.with(|s| s.replica.set_stable_memory(id, &bytes)).map_err(rejected)?;
                json(&())
            }
            "icsql/fault" => {
                let fault: Fault = parse(body)?;
                self.with(|s| s.replica.set_fault(fault));
                json(&())
            }
            "auto_progress" => {
                self.auto_progress.store(true, Ordering::Relaxed);
                json(&())
            }
            "stop_progress" => {
                self.auto_progress.store(false, Ordering::Relaxed);
                json(&())
            }
            "read/pub_key" => match self.with(|s| s.replica.root_key().to_vec()) {
                key if key.is_empty() => Err(bad("this instance has no root key; the one of icsql-replica --ic has")),
                key => json(&key),
            },
            _ => self.of_canister(path, body),
        }
    }

    /// What is read of one canister.
    fn of_canister(&self, path: &str, body: &[u8]) -> Answer {
        if !matches!(path, "read/get_cycles" | "read/get_stable_memory" | "read/get_controllers" | "read/get_subnet") {
            return Err((StatusCode::NOT_FOUND, format!("the replica has no endpoint POST {path}")));
        }
        let raw: RawCanisterId = parse(body)?;
        let id = raw.canister_id.principal().map_err(bad)?;
        self.with(|s| match path {
            "read/get_cycles" => json(&RawCycles { cycles: s.replica.cycles(id).map_err(rejected)? }),
            "read/get_stable_memory" => {
                json(&RawStableMemory { blob: Bytes(s.replica.stable_memory(id).map_err(rejected)?) })
            }
            "read/get_controllers" => {
                let controllers = s.replica.controllers(id).map_err(rejected)?;
                let raw: Vec<_> = controllers.into_iter().map(|p| RawPrincipalId { principal_id: p.into() }).collect();
                json(&raw)
            }
            _ => {
                let subnet = RawSubnetId { subnet_id: s.replica.subnet().into() };
                json(&s.replica.canister_exists(id).then_some(subnet))
            }
        })
    }

    fn submit(&self, call: RawCanisterCall) -> Answer {
        let id = call.canister_id.principal().map_err(bad)?;
        let sender = call.sender.principal().map_err(bad)?;
        let submitted = self.with(|s| {
            let ingress = s.replica.submit(id, sender, &call.method, &call.payload.0)?;
            s.senders.insert(ingress.number(), sender);
            Ok(ingress)
        });
        let answer: Result<RawMessageId, RejectResponse> = match submitted {
            Ok(ingress) => Ok(RawMessageId {
                effective_principal: call.effective_principal,
                message_id: Bytes(ingress.number().to_be_bytes().to_vec()),
            }),
            Err(reject) => Err(RejectResponse::new(reject, false)),
        };
        json(&answer)
    }

    fn wait(&self, message: &RawMessageId) -> Answer {
        let number = number_of(message)?;
        self.with(|state| {
            if state.answered(number).is_none() && state.senders.contains_key(&number) {
                let outcome = state.replica.wait(IngressId::from_number(number));
                match outcome.result {
                    Err(reject) if reject.code == ErrorCode::IngressMessageTimeout => return Err(rejected(reject)),
                    result => state.keep(number, result),
                }
            }
            match state.answered(number) {
                Some(answered) => json(&answered.result),
                None => Err(bad(format!("there is no message {number}, or its answer is too old"))),
            }
        })
    }

    fn ingress_status(&self, args: &RawIngressStatusArgs) -> Answer {
        let number = number_of(&args.raw_message_id)?;
        let caller = match &args.raw_caller {
            Some(raw) => Some(raw.principal_id.principal().map_err(bad)?),
            None => None,
        };
        self.with(|state| {
            state.collect();
            let sender = state.answered(number).map(|a| a.sender).or_else(|| state.senders.get(&number).copied());
            if caller.is_some() && sender.is_some() && caller != sender {
                return Err((StatusCode::FORBIDDEN, "the message was sent by another principal".into()));
            }
            json(&state.answered(number).map(|a| &a.result))
        })
    }
}

fn number_of(message: &RawMessageId) -> Result<u64, Failure> {
    let bytes = <[u8; 8]>::try_from(message.message_id.0.as_slice());
    bytes.map(u64::from_be_bytes).map_err(|_| bad("a message id of this replica has 8 bytes"))
}

impl State {
    fn answered(&self, number: u64) -> Option<&Answered> {
        self.answers.iter().rev().find(|a| a.number == number)
    }

    /// Fetches the answers that rounds have brought.
    fn collect(&mut self) {
        let numbers: Vec<u64> = self.senders.keys().copied().collect();
        for number in numbers {
            if let Some(outcome) = self.replica.answer(IngressId::from_number(number)) {
                self.keep(number, outcome.result);
            }
        }
    }

    fn keep(&mut self, number: u64, result: Result<Vec<u8>, Reject>) {
        let Some(sender) = self.senders.remove(&number) else { return };
        let bytes = result.as_ref().map_or(0, Vec::len);
        self.answer_bytes += bytes;
        self.answers.push_back(Answered { number, sender, result: RawCanisterResult::new(result, true), bytes });
        while self.answers.len() > ANSWERS_MAX || (self.answer_bytes > ANSWER_BYTES_MAX && self.answers.len() > 1) {
            if let Some(oldest) = self.answers.pop_front() {
                self.answer_bytes -= oldest.bytes;
            }
        }
    }
}
