//! The replica: canisters, a clock, and the messages between them.

mod canister;
mod image;
mod install;
mod management;
mod query;
mod schedule;

use crate::profile::Profile;
use crate::runtime::{StableMemory, with_stack};
use crate::types::{Config, Cost, ErrorCode, Fault, InstallMode, LogLine, MessageCost, Outcome, Reject, Status};
use crate::wasm::{Module, ModuleCache};
use candid::Principal;
use canister::{CallResult, Canister};
pub(crate) use image::{Captured, HeapImage, Memories, MemoryRecord, Record, SEGMENT_BYTES};
use management::Sender;
pub(crate) use query::Certify;
use query::Scope;
use schedule::Job;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Cycles of a canister that is created without saying how many.
const DEFAULT_CYCLES: u128 = 100_000_000_000_000;
/// Number of the first canister's id: the start of a range of application subnets in PocketIC.
const FIRST_CANISTER: u64 = 0xFFFF_FFFF_FFC0_0000;
/// Canister ids per subnet.
const CANISTERS_MAX: u64 = 1 << 20;
/// Messages of which the costs are kept.
const TRACE_MAX: usize = 100_000;

/// How a canister is created.
#[derive(Clone, Debug)]
pub struct CanisterSettings {
    /// Who may change and upgrade it.
    pub controllers: Vec<Principal>,
    /// Its balance.
    pub cycles: u128,
    /// An id of its own choosing, or the next free one.
    pub id: Option<Principal>,
}

impl Default for CanisterSettings {
    /// Controlled by the anonymous principal, with 100 T cycles.
    fn default() -> Self {
        Self { controllers: vec![Principal::anonymous()], cycles: DEFAULT_CYCLES, id: None }
    }
}

/// An update call on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IngressId(u64);

impl IngressId {
    /// The number behind the id, unique within its replica.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The id with this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// What the state tree says of a canister.
pub(crate) struct CertifiedCanister<'a> {
    pub id: Principal,
    pub controllers: &'a [Principal],
    pub certified_data: &'a [u8],
    pub module: Option<&'a Module>,
}

/// What all canisters see.
struct Shared {
    config: Config,
    /// Nanoseconds since 1970.
    time: u64,
    subnet: Principal,
    root_key: Arc<Vec<u8>>,
    fault: Option<Fault>,
    /// Messages record where their instructions go.
    profiling: bool,
}

/// A replica of its own: nothing in it depends on anything outside, and the same calls give the same results.
///
/// # Examples
/// ```
/// use icsql_replica::{CanisterSettings, InstallMode, Principal, Replica};
///
/// // Any canister will do; this one answers "hi" and writes to its stable memory.
/// let wasm = wat::parse_str(r#"(module
///     (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
///     (import "ic0" "msg_reply" (func $reply))
///     (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
///     (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
///     (memory 1) (data (i32.const 0) "hi")
///     (func (export "canister_update greet")
///         (drop (call $grow (i64.const 1)))
///         (call $write (i64.const 0) (i64.const 0) (i64.const 2))
///         (call $append (i32.const 0) (i32.const 2))
///         (call $reply)))"#)?;
///
/// let me = Principal::anonymous();
/// let mut replica = Replica::new(Default::default());
/// let canister = replica.create_canister(CanisterSettings::default());
/// replica.install(canister, InstallMode::Install, &wasm, b"", me).reply();
/// let outcome = replica.update(canister, me, "greet", b"");
/// assert_eq!(outcome.result.unwrap(), b"hi");
/// assert_eq!((outcome.cost.stable_pages, outcome.cost.stable_bytes_written), (1, 2));
/// # Ok::<(), wat::Error>(())
/// ```
pub struct Replica {
    shared: Shared,
    modules: ModuleCache,
    canisters: BTreeMap<Principal, Canister>,
    next_canister: u64,
    next_ingress: u64,
    next_random: u64,
    queue: VecDeque<Job>,
    /// Answers that nobody has fetched yet, with the cost of the first message.
    answers: BTreeMap<u64, (CallResult, Cost)>,
    /// Costs of the first messages of calls that are not answered yet.
    first_costs: BTreeMap<u64, Cost>,
    trace: Vec<MessageCost>,
    /// Grows with everything that changes the state; the clock alone does not.
    changes: u64,
}

impl Replica {
    /// A replica without canisters.
    pub fn new(config: Config) -> Self {
        let subnet = match config.root_key.as_slice() {
            [] => Principal::self_authenticating(b"icsql replica subnet"),
            root_key => Principal::self_authenticating(root_key),
        };
        Self {
            modules: ModuleCache::new(config.module_cache.clone()).for_profiles(config.profile),
            shared: Shared {
                time: config.time_nanos,
                root_key: Arc::new(config.root_key.clone()),
                subnet,
                fault: None,
                profiling: false,
                config,
            },
            canisters: BTreeMap::new(),
            next_canister: 0,
            next_ingress: 0,
            next_random: 0,
            queue: VecDeque::new(),
            answers: BTreeMap::new(),
            first_costs: BTreeMap::new(),
            trace: Vec::new(),
            changes: 0,
        }
    }

    /// Id of the one subnet.
    pub fn subnet(&self) -> Principal {
        self.shared.subnet
    }

    /// The root key in DER; empty when there is none.
    pub fn root_key(&self) -> &[u8] {
        &self.shared.root_key
    }

    /// First and last id that canisters of this replica get.
    pub fn canister_ids(&self) -> (Principal, Principal) {
        (canister_id(0), canister_id(CANISTERS_MAX - 1))
    }

    /// Creates an empty canister.
    ///
    /// # Panics
    /// When the id is taken; [`canister_exists`](Self::canister_exists) tells before.
    pub fn create_canister(&mut self, settings: CanisterSettings) -> Principal {
        match self.try_create_canister(settings, Sender::User(Principal::anonymous())) {
            Ok(id) => id,
            Err(reject) => panic!("{reject}"),
        }
    }

    fn try_create_canister(&mut self, settings: CanisterSettings, sender: Sender) -> Result<Principal, Reject> {
        let id = match settings.id {
            Some(id) if self.canisters.contains_key(&id) => {
                return Err(Reject::new(ErrorCode::CanisterIdAlreadyExists, format!("Canister {id} exists already")));
            }
            Some(id) => id,
            None => loop {
                let id = canister_id(self.next_canister);
                self.next_canister += 1;
                if !self.canisters.contains_key(&id) {
                    break id;
                }
            },
        };
        let mut canister = Canister::new(id, settings.controllers, settings.cycles);
        let change = management::creation(&canister.controllers);
        canister.note_change(self.shared.time, sender, change);
        self.changes += 1;
        self.canisters.insert(id, canister);
        Ok(id)
    }

    /// Whether there is a canister with this id.
    pub fn canister_exists(&self, id: Principal) -> bool {
        self.canisters.contains_key(&id)
    }

    /// Installs code, as `install_code` of the management canister does. A step that fails takes all of them back.
    pub fn install(
        &mut self,
        id: Principal,
        mode: InstallMode,
        wasm: &[u8],
        argument: &[u8],
        sender: Principal,
    ) -> Outcome {
        with_stack(|| {
            self.begin();
            let before = self.trace.len();
            let installed = self.install_code(id, mode, wasm, argument.to_vec(), Sender::User(sender));
            let messages = self.trace[before..].to_vec();
            let mut cost = Cost::default();
            messages.iter().for_each(|m| cost.add(&m.cost));
            Outcome { result: installed.map(|()| Vec::new()), cost, messages }
        })
    }

    /// Calls a method as an update, and runs messages until the call is answered. A query method runs replicated:
    /// its changes are lost, and its heap pages not charged.
    pub fn update(&mut self, id: Principal, sender: Principal, method: &str, argument: &[u8]) -> Outcome {
        with_stack(|| match self.submit_ingress(id, sender, method, argument.to_vec()) {
            Ok(ingress) => self.await_ingress(ingress),
            Err(reject) => Outcome::rejected(reject),
        })
    }

    /// Takes an update call in without running it; `canister_inspect_message` is asked.
    ///
    /// # Errors
    /// When the call is refused at once.
    pub fn submit(
        &mut self,
        id: Principal,
        sender: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<IngressId, Reject> {
        with_stack(|| self.submit_ingress(id, sender, method, argument.to_vec()))
    }

    /// Runs messages until this call is answered. The answer is given once. A call that is not answered within 100
    /// rounds gives [`ErrorCode::IngressMessageTimeout`], and can be waited for again.
    pub fn wait(&mut self, ingress: IngressId) -> Outcome {
        with_stack(|| self.await_ingress(ingress))
    }

    /// Takes the answer of this call, if there is one.
    pub fn answer(&mut self, ingress: IngressId) -> Option<Outcome> {
        let (result, cost) = self.answers.remove(&ingress.0)?;
        Some(Outcome { result, cost, messages: self.trace.clone() })
    }

    /// Takes the answer of this call without what it cost.
    pub(crate) fn take_result(&mut self, ingress: IngressId) -> Option<Result<Vec<u8>, Reject>> {
        self.answers.remove(&ingress.0).map(|(result, _)| result)
    }

    /// Calls a query method. Nothing that it does stays.
    pub fn query(&mut self, id: Principal, sender: Principal, method: &str, argument: &[u8]) -> Outcome {
        with_stack(|| {
            self.begin();
            let before = self.trace.len();
            let result = self.query_call(id, sender, method, argument.to_vec(), &mut Scope::new(None));
            let messages = self.trace[before..].to_vec();
            Outcome { result, cost: messages.first().map(|m| m.cost).unwrap_or_default(), messages }
        })
    }

    /// The same with certificates for the canisters that read them.
    pub(crate) fn certified_query(
        &mut self,
        id: Principal,
        sender: Principal,
        method: &str,
        argument: Vec<u8>,
        certify: Certify<'_>,
    ) -> Result<Vec<u8>, Reject> {
        with_stack(|| {
            self.begin();
            self.query_call(id, sender, method, argument, &mut Scope::new(Some(certify)))
        })
    }

    /// Runs a round: the clock goes on by a nanosecond, timers and heartbeats that are due run, and all messages
    /// that were waiting or that these cause.
    pub fn tick(&mut self) {
        with_stack(|| {
            self.begin();
            self.round(true, None);
        });
    }

    /// Lets the clock go on. Timers run at the next [`tick`](Self::tick) or call.
    pub fn advance_time(&mut self, nanos: u64) {
        self.shared.time = self.shared.time.saturating_add(nanos);
    }

    /// Nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        self.shared.time
    }

    /// Sets the clock, nanoseconds since 1970.
    pub fn set_time(&mut self, nanos: u64) {
        self.shared.time = nanos;
    }

    /// What the next message is made to suffer.
    pub fn set_fault(&mut self, fault: Fault) {
        self.shared.fault = Some(fault);
    }

    /// The fault that no message has met yet is taken back.
    pub fn clear_fault(&mut self) -> Option<Fault> {
        self.shared.fault.take()
    }

    /// From now on, or no longer, every message records where its instructions go. Needs
    /// [`Config::profile`](crate::Config::profile); without it profiles have no frame but the message's own.
    pub fn set_profiling(&mut self, on: bool) {
        self.shared.profiling = on;
    }

    /// The profiles of the messages of a canister that ran since the last such call, in order; its inspections of
    /// messages too. At most 10,000 are kept.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn take_profiles(&mut self, id: Principal) -> Result<Vec<Profile>, Reject> {
        Ok(std::mem::take(&mut self.canister_mut(&id)?.profiles))
    }

    /// The messages that ran since the last call, install or tick began.
    pub fn messages(&self) -> &[MessageCost] {
        &self.trace
    }

    /// What the state tree says of every canister.
    pub(crate) fn certified_canisters(&self) -> impl Iterator<Item = CertifiedCanister<'_>> {
        self.canisters.values().map(|canister| CertifiedCanister {
            id: canister.id,
            controllers: &canister.controllers,
            certified_data: &canister.certified_data,
            module: canister.installed.as_ref().map(|installed| &*installed.module),
        })
    }

    fn canister(&self, id: &Principal) -> Result<&Canister, Reject> {
        self.canisters.get(id).ok_or_else(|| not_found(id))
    }

    fn canister_mut(&mut self, id: &Principal) -> Result<&mut Canister, Reject> {
        self.changes += 1;
        self.canisters.get_mut(id).ok_or_else(|| not_found(id))
    }

    /// The bytes of a canister's stable memory, zeros included.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn stable_memory(&self, id: Principal) -> Result<Vec<u8>, Reject> {
        Ok(self.canister(&id)?.stable.to_bytes())
    }

    /// Replaces a canister's stable memory; the size is rounded up to whole 64 KiB pages.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn set_stable_memory(&mut self, id: Principal, bytes: &[u8]) -> Result<(), Reject> {
        self.canister_mut(&id)?.stable = StableMemory::from_bytes(bytes);
        Ok(())
    }

    /// Bytes of a canister's heap; 0 without code.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn heap_bytes(&self, id: Principal) -> Result<u64, Reject> {
        Ok(self.canister(&id)?.installed.as_ref().map_or(0, |i| i.instance.heap_bytes()))
    }

    /// The lines that a canister has printed, oldest first; as many bytes of them as its `log_memory_limit` says.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn logs(&self, id: Principal) -> Result<Vec<LogLine>, Reject> {
        Ok(self.canister(&id)?.log.iter().cloned().collect())
    }

    /// A canister's balance.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn cycles(&self, id: Principal) -> Result<u128, Reject> {
        Ok(self.canister(&id)?.balance)
    }

    /// Adds to a canister's balance; the balance then.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn add_cycles(&mut self, id: Principal, amount: u128) -> Result<u128, Reject> {
        let canister = self.canister_mut(&id)?;
        canister.balance = canister.balance.saturating_add(amount);
        Ok(canister.balance)
    }

    /// A canister's controllers.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn controllers(&self, id: Principal) -> Result<Vec<Principal>, Reject> {
        Ok(self.canister(&id)?.controllers.to_vec())
    }

    /// Replaces a canister's controllers.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn set_controllers(&mut self, id: Principal, controllers: Vec<Principal>) -> Result<(), Reject> {
        let canister = self.canister_mut(&id)?;
        canister.controllers = Arc::new(controllers);
        canister.version += 1;
        Ok(())
    }

    /// Whether a canister runs.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn status(&self, id: Principal) -> Result<Status, Reject> {
        Ok(self.canister(&id)?.status)
    }

    /// What a canister has certified with `certified_data_set`.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn certified_data(&self, id: Principal) -> Result<Vec<u8>, Reject> {
        Ok(self.canister(&id)?.certified_data.clone())
    }

    /// SHA-256 of the installed Wasm as it was given, `None` without code.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn module_hash(&self, id: Principal) -> Result<Option<[u8; 32]>, Reject> {
        Ok(self.canister(&id)?.installed.as_ref().map(|i| i.module.hash))
    }

    /// A metadata section of the installed code, e.g. `candid:service`.
    ///
    /// # Errors
    /// When there is no such canister.
    pub fn metadata(&self, id: Principal, name: &str) -> Result<Option<Vec<u8>>, Reject> {
        let installed = self.canister(&id)?.installed.as_ref();
        Ok(installed.and_then(|i| i.module.metadata.section(name)).map(<[u8]>::to_vec))
    }

    /// A new list of messages begins, unless calls are under way whose messages belong on the old one.
    fn begin(&mut self) {
        if self.queue.is_empty() || self.trace.len() > TRACE_MAX {
            self.trace.clear();
        }
    }
}

fn not_found(id: &Principal) -> Reject {
    Reject::new(ErrorCode::CanisterNotFound, format!("Canister {id} not found"))
}

fn canister_id(number: u64) -> Principal {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&(FIRST_CANISTER + number).to_be_bytes());
    bytes[8..].copy_from_slice(&[1, 1]);
    Principal::from_slice(&bytes)
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica")
            .field("time", &self.shared.time)
            .field("canisters", &self.canisters.keys().map(Principal::to_text).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
