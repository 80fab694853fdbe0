//! What goes into the replica and what comes out.

use candid::Principal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Instructions of an update, a callback, a timer, or of a replicated query.
pub const UPDATE_INSTRUCTIONS_MAX: u64 = 40_000_000_000;
/// Instructions of a query.
pub const QUERY_INSTRUCTIONS_MAX: u64 = 5_000_000_000;
/// Instructions of `canister_inspect_message`.
pub const INSPECT_INSTRUCTIONS_MAX: u64 = 200_000_000;
/// Instructions of an install or upgrade.
pub const INSTALL_INSTRUCTIONS_MAX: u64 = 300_000_000_000;
/// Bytes of an ingress argument.
pub const INGRESS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a reply, and of the argument of a call between canisters.
pub const REPLY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of the reply of a query that is not replicated.
pub const QUERY_REPLY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Bytes of stable memory.
pub const STABLE_BYTES_MAX: u64 = 500 << 30;

/// Settings of a [`Replica`](crate::Replica).
#[derive(Clone, Debug)]
pub struct Config {
    /// Instruction limit of updates, callbacks and timers.
    pub update_instructions_max: u64,
    /// Instruction limit of queries.
    pub query_instructions_max: u64,
    /// Instruction limit of installs and upgrades.
    pub install_instructions_max: u64,
    /// Capacity of every canister's stable memory, bytes. Growth beyond it answers -1.
    pub stable_bytes_max: u64,
    /// The clock at the start, nanoseconds since 1970.
    pub time_nanos: u64,
    /// Where compiled modules are kept for later processes; see [`ModuleCache`](crate::ModuleCache).
    pub module_cache: Option<PathBuf>,
    /// Compile modules so that [`Replica::set_profiling`](crate::Replica::set_profiling) works. They run slower.
    pub profile: bool,
    /// The root key in DER form, for `ic0.root_key_copy`; the subnet's id follows from it. Empty when there is none.
    pub root_key: Vec<u8>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            update_instructions_max: UPDATE_INSTRUCTIONS_MAX,
            query_instructions_max: QUERY_INSTRUCTIONS_MAX,
            install_instructions_max: INSTALL_INSTRUCTIONS_MAX,
            stable_bytes_max: STABLE_BYTES_MAX,
            // 6 May 2021, the day the IC's clock starts in PocketIC as well.
            time_nanos: 1_620_328_630_000_000_000,
            module_cache: None,
            profile: false,
            root_key: Vec::new(),
        }
    }
}

/// What a message cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Instructions of the whole message: Wasm, system calls, bytes that left, dirty stable pages, dirty heap pages.
    pub instructions: u64,
    /// 4 KiB heap pages whose bytes differ after the message, as far as they are charged.
    pub heap_pages: u64,
    /// 4 KiB stable pages that the message wrote.
    pub stable_pages: u64,
    /// Bytes that `stable_read` copied.
    pub stable_bytes_read: u64,
    /// Bytes that `stable_write` copied.
    pub stable_bytes_written: u64,
    /// Bytes of the reply.
    pub reply_bytes: u64,
    /// Installs only: what the IC charges for compiling the module, in instructions; not part of `instructions`.
    pub compilation: u64,
}

impl Cost {
    /// Adds what a further execution of the same message cost.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.heap_pages += other.heap_pages;
        self.stable_pages += other.stable_pages;
        self.stable_bytes_read += other.stable_bytes_read;
        self.stable_bytes_written += other.stable_bytes_written;
        self.reply_bytes += other.reply_bytes;
        self.compilation += other.compilation;
    }
}

/// One executed message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCost {
    /// Where it ran.
    pub canister: Principal,
    /// What ran: a method's name, or e.g. `canister_init`, `reply of <method>`.
    pub entry: String,
    /// What it cost.
    pub cost: Cost,
}

/// How a call ended, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The reply, or why there is none.
    pub result: Result<Vec<u8>, Reject>,
    /// Cost of the message that the call itself started. Of an install: of all its steps together.
    pub cost: Cost,
    /// Every message that ran until the call was answered, in order; those of other canisters too.
    pub messages: Vec<MessageCost>,
}

impl Outcome {
    pub(crate) fn rejected(reject: Reject) -> Self {
        Self { result: Err(reject), cost: Cost::default(), messages: Vec::new() }
    }

    /// The reply's bytes.
    ///
    /// # Panics
    /// When the call was rejected, with the reject's message: for tests.
    #[track_caller]
    pub fn reply(self) -> Vec<u8> {
        match self.result {
            Ok(reply) => reply,
            Err(reject) => panic!("the call was rejected: {reject}"),
        }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// The IC's error code.
    pub code: ErrorCode,
    /// What happened, in words.
    pub message: String,
}

impl Reject {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The class of the error, 1 to 6.
    pub fn reject_code(&self) -> u32 {
        self.code as u32 / 100
    }

    /// The error code as the IC writes it, e.g. `IC0503`.
    pub fn error_code(&self) -> String {
        format!("IC{:04}", self.code as u32)
    }
}

impl std::fmt::Display for Reject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.error_code(), self.message)
    }
}

impl std::error::Error for Reject {}

/// The IC's error codes, as far as the replica gives them. The hundreds are the reject code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ErrorCode {
    IngressMessageTimeout = 202,
    CanisterIdAlreadyExists = 205,
    CanisterOutOfCycles = 207,
    CanisterNotFound = 301,
    CanisterSnapshotNotFound = 305,
    InsufficientCyclesForCreateCanister = 403,
    CanisterRejectedMessage = 406,
    InvalidManagementPayload = 408,
    CanisterTrapped = 502,
    CanisterCalledTrap = 503,
    CanisterContractViolation = 504,
    CanisterInvalidWasm = 505,
    CanisterDidNotReply = 506,
    CanisterOutOfMemory = 507,
    CanisterStopped = 508,
    CanisterStopping = 509,
    CanisterNotStopped = 510,
    CanisterStoppingCancelled = 511,
    CanisterInvalidController = 512,
    CanisterFunctionNotFound = 513,
    CanisterNonEmpty = 514,
    QueryCallGraphLoopDetected = 517,
    InsufficientCyclesInCall = 520,
    CanisterInstructionLimitExceeded = 522,
    CanisterMemoryAccessLimitExceeded = 524,
    QueryCallGraphTooDeep = 525,
    CompositeQueryCalledInReplicatedMode = 527,
    CanisterMethodNotFound = 536,
    CanisterWasmModuleNotFound = 537,
    CanisterStatusAccessDenied = 542,
}

/// What the next execution is made to suffer. Applies once, to the next message that runs a canister's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// Stops the message when it has used this many instructions (seen where instructions are checked: at function
    /// entries, loops, bulk operations and system calls).
    pub trap_after_instructions: Option<u64>,
    /// Traps at the n-th stable write, counted from 1; the write does not happen.
    pub fail_stable_write: Option<u64>,
    /// Lets the n-th stable growth, counted from 1, answer -1.
    pub fail_stable_grow: Option<u64>,
}

/// How code is put into a canister.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallMode {
    /// Into an empty canister.
    Install,
    /// Stable memory is dropped too.
    Reinstall,
    /// Stable memory stays; `canister_pre_upgrade` of the old code and `canister_post_upgrade` of the new run.
    Upgrade {
        /// Leave out `canister_pre_upgrade`.
        skip_pre_upgrade: bool,
        /// Whether the heap is kept too. A module with enhanced orthogonal persistence, and only such a one, has to
        /// be told.
        keep_heap: Option<bool>,
    },
}

impl InstallMode {
    /// A plain upgrade.
    pub const UPGRADE: Self = Self::Upgrade { skip_pre_upgrade: false, keep_heap: None };
}

/// A line of a canister's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Number of the line since the canister was created.
    pub index: u64,
    /// When, nanoseconds since 1970.
    pub time_nanos: u64,
    /// The text as the canister gave it.
    pub content: Vec<u8>,
}

/// A canister's state of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Takes messages.
    Running,
    /// Takes responses only, until none is outstanding.
    Stopping,
    /// Takes none.
    Stopped,
}
