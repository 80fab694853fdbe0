//! The message being executed, as the system API sees it.

use super::stable::StableMemory;
use crate::profile::Profiler;
use crate::types::{Fault, Status};
use candid::Principal;
use std::sync::Arc;

/// What kind of code runs; decides which system calls are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Start,
    /// `canister_init` and `canister_post_upgrade`.
    Init,
    PreUpgrade,
    Inspect,
    Update,
    ReplicatedQuery,
    Query,
    CompositeQuery,
    /// A callback of an update, a timer or the like.
    Reply,
    Reject,
    Cleanup,
    CompositeReply,
    CompositeReject,
    CompositeCleanup,
    /// Global timer and heartbeat.
    System,
}

impl Context {
    /// This context as a set of one.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Whether the heap pages that it changes are charged.
    pub fn charges_heap_pages(self) -> bool {
        matches!(
            self,
            Self::Start
                | Self::Init
                | Self::PreUpgrade
                | Self::Update
                | Self::Reply
                | Self::Reject
                | Self::Cleanup
                | Self::System
        )
    }

    /// Whether consensus would have to agree on it.
    pub fn replicated(self) -> bool {
        !matches!(
            self,
            Self::Inspect
                | Self::Query
                | Self::CompositeQuery
                | Self::CompositeReply
                | Self::CompositeReject
                | Self::CompositeCleanup
        )
    }

    /// The name in messages about calls that are not allowed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Init => "init",
            Self::PreUpgrade => "pre upgrade",
            Self::Inspect => "inspect message",
            Self::Update => "update",
            Self::ReplicatedQuery => "replicated query",
            Self::Query => "non replicated query",
            Self::CompositeQuery => "composite query",
            Self::Reply => "reply callback",
            Self::Reject => "reject callback",
            Self::Cleanup => "cleanup",
            Self::CompositeReply => "composite reply callback",
            Self::CompositeReject => "composite reject callback",
            Self::CompositeCleanup => "composite cleanup",
            Self::System => "system task",
        }
    }
}

/// What a canister can ask about itself and its surroundings; the same for all executions of a message.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub canister: Principal,
    pub controllers: Arc<Vec<Principal>>,
    pub subnet: Principal,
    pub status: Status,
    pub version: u64,
    pub time_nanos: u64,
    pub root_key: Arc<Vec<u8>>,
    pub variables: Arc<Vec<(String, String)>>,
    pub stable_bytes_max: u64,
}

/// A call that the message makes to a canister.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingCall {
    pub callee: Principal,
    pub method: String,
    pub argument: Vec<u8>,
    pub cycles: u128,
    pub reply: (u32, u32),
    pub reject: (u32, u32),
    pub cleanup: Option<(u32, u32)>,
    /// Seconds until a best-effort call times out.
    pub timeout_seconds: Option<u32>,
}

/// What is known before a message runs, and what it has done afterwards.
pub(crate) struct Message {
    pub context: Context,
    pub environment: Environment,
    pub caller: Principal,
    pub method: String,
    pub argument: Vec<u8>,
    /// Reject code and message; code 0 when the call was replied.
    pub reject: (u32, String),
    /// Best-effort calls: nanoseconds since 1970; otherwise 0.
    pub deadline: u64,
    /// The message answers a call that may still be answered.
    pub may_respond: bool,
    /// Instruction limit.
    pub limit: u64,
    /// Instructions of earlier messages of the same call.
    pub call_instructions: u64,
    /// Most bytes of the reply.
    pub reply_bytes_max: usize,
    /// Most bytes of stable memory touched.
    pub stable_access_max: u64,
    pub fault: Fault,
    pub data_certificate: Option<Vec<u8>>,

    pub stable: StableMemory,
    pub balance: u128,
    /// Cycles of the call that can still be accepted.
    pub available: u128,
    pub refunded: u128,
    pub global_timer: u64,

    pub reply: Vec<u8>,
    /// Set by `msg_reply` and `msg_reject`.
    pub response: Option<Result<Vec<u8>, String>>,
    pub accepted: bool,
    pub pending_call: Option<OutgoingCall>,
    pub calls: Vec<OutgoingCall>,
    /// Calls that the canister may still have outstanding.
    pub calls_left: usize,
    pub certified_data: Option<Vec<u8>>,
    pub log: Vec<Vec<u8>>,
    pub log_bytes: usize,
    pub stable_bytes_read: u64,
    pub stable_bytes_written: u64,
    pub stable_writes: u64,
    pub stable_grows: u64,
    /// Where the instructions go, if that is recorded.
    pub profiler: Option<Profiler>,
}

impl Message {
    /// A message without argument, on this stable memory; the caller fills in what it needs.
    pub fn new(context: Context, environment: Environment, stable: StableMemory, limit: u64) -> Self {
        Self {
            context,
            environment,
            caller: Principal::management_canister(),
            method: String::new(),
            argument: Vec::new(),
            reject: (0, String::new()),
            deadline: 0,
            may_respond: false,
            limit,
            call_instructions: 0,
            reply_bytes_max: crate::types::REPLY_BYTES_MAX,
            stable_access_max: if context.replicated() { 2 << 30 } else { 1 << 30 },
            fault: Fault::default(),
            data_certificate: None,
            stable,
            balance: 0,
            available: 0,
            refunded: 0,
            global_timer: 0,
            reply: Vec::new(),
            response: None,
            accepted: false,
            pending_call: None,
            calls: Vec::new(),
            calls_left: 500,
            certified_data: None,
            log: Vec::new(),
            log_bytes: 0,
            stable_bytes_read: 0,
            stable_bytes_written: 0,
            stable_writes: 0,
            stable_grows: 0,
            profiler: None,
        }
    }
}
