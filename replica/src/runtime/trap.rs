//! Why a message ended before its end.

use crate::types::{ErrorCode, Reject};
use candid::Principal;

/// Why a canister's code was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// `ic0.trap`.
    Explicit(String),
    /// A trap of WebAssembly's own: which.
    Wasm(String),
    /// The instruction limit, in instructions.
    OutOfInstructions(u64),
    /// A system call that is not allowed here, or whose arguments break its contract.
    Contract(String),
    /// A system call with a range outside of the heap.
    HeapRange { function: &'static str, start: u64, length: u64, bytes: u64 },
    /// A stable memory call with a range outside of the stable memory.
    StableRange,
    /// More than 4 GiB of stable memory, seen through the 32-bit calls.
    StableTooLarge,
    /// More stable memory touched than a message may, bytes.
    StableAccess(u64),
    /// As asked for by a [`Fault`](crate::Fault).
    Fault(String),
    /// The export or the function of a callback is missing or has the wrong type.
    NoFunction(String),
    /// A start, update or callback that leaves more cycles out than there are.
    OutOfCycles(String),
}

impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Explicit(message) => write!(f, "Canister called `ic0.trap` with message: '{message}'"),
            Self::Wasm(what) => write!(f, "Canister trapped: {what}"),
            Self::OutOfInstructions(limit) => {
                write!(f, "Canister exceeded the limit of {limit} instructions for single message execution.")
            }
            Self::Contract(what) => write!(f, "Canister violated contract: {what}"),
            Self::HeapRange { function, start, length, bytes } => write!(
                f,
                "Canister violated contract: ic0.{function}: heap range {start} + {length} exceeds the memory's {bytes} bytes"
            ),
            Self::StableRange => f.write_str("Canister trapped: stable memory out of bounds"),
            Self::StableTooLarge => {
                f.write_str("Canister trapped: 32 bit stable memory api used on a memory larger than 4GB")
            }
            Self::StableAccess(limit) => write!(
                f,
                "Canister exceeded memory access limits: Exceeded the limit for the number of accessed pages in the \
                 stable memory in a single message execution: limit {} KB",
                limit / 1024
            ),
            Self::Fault(what) => write!(f, "Canister trapped: injected fault: {what}"),
            Self::NoFunction(name) => write!(f, "Canister attempted to call a function that does not exist: {name}"),
            Self::OutOfCycles(what) => write!(f, "Canister ran out of cycles: {what}"),
        }
    }
}

impl std::error::Error for Trap {}

impl Trap {
    /// The trap in an error of the Wasm engine; `limit` is the message's instruction limit.
    pub(super) fn from_engine(error: &wasmtime::Error, limit: u64) -> Self {
        if let Some(trap) = error.downcast_ref::<Self>() {
            return match trap {
                Self::OutOfInstructions(_) => Self::OutOfInstructions(limit),
                other => other.clone(),
            };
        }
        use wasmtime::Trap as W;
        Self::Wasm(match error.downcast_ref::<W>() {
            Some(W::UnreachableCodeReached) => "unreachable".into(),
            Some(W::MemoryOutOfBounds) => "heap out of bounds".into(),
            Some(W::TableOutOfBounds) => "table out of bounds".into(),
            Some(W::StackOverflow) => "stack overflow".into(),
            Some(W::IntegerDivisionByZero) => "integer divide by 0".into(),
            Some(W::IntegerOverflow) => "integer overflow".into(),
            Some(W::BadConversionToInteger) => "invalid conversion to integer".into(),
            Some(W::IndirectCallToNull) => "uninitialized table element".into(),
            Some(W::BadSignature) => "indirect call type mismatch".into(),
            Some(other) => other.to_string(),
            None => format!("{error:#}"),
        })
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Explicit(_) => ErrorCode::CanisterCalledTrap,
            Self::Wasm(_) | Self::StableRange | Self::StableTooLarge | Self::Fault(_) => ErrorCode::CanisterTrapped,
            Self::OutOfInstructions(_) => ErrorCode::CanisterInstructionLimitExceeded,
            Self::Contract(_) | Self::HeapRange { .. } => ErrorCode::CanisterContractViolation,
            Self::StableAccess(_) => ErrorCode::CanisterMemoryAccessLimitExceeded,
            Self::NoFunction(_) => ErrorCode::CanisterFunctionNotFound,
            Self::OutOfCycles(_) => ErrorCode::CanisterOutOfCycles,
        }
    }

    /// The reject that the caller sees.
    pub fn reject(&self, canister: &Principal) -> Reject {
        Reject::new(self.code(), format!("Error from Canister {canister}: {self}"))
    }

    /// The line that the canister's log gets.
    pub fn log_line(&self) -> String {
        match self {
            Self::Explicit(message) => format!("[TRAP]: {message}"),
            other => format!("[TRAP]: {other}"),
        }
    }
}
