//! What the service asks of the platform about the message that it answers: a trait, so that whole calls are tested
//! natively.
#![allow(unsafe_code)] // one read into uninitialised memory, in `with_argument`
use crate::limits::STACK_ARGUMENT_BYTES;
use std::mem::MaybeUninit;

/// Largest principal, in bytes.
pub const PRINCIPAL_BYTES_MAX: usize = 29;

/// A principal. The bytes behind its length are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    bytes: [u8; PRINCIPAL_BYTES_MAX],
    length: u8,
}

/// The principal of whoever does not say who they are.
const ANONYMOUS: &[u8] = &[4];

impl Caller {
    /// The principal with these bytes; none if they are too many.
    pub fn new(principal: &[u8]) -> Option<Self> {
        let mut bytes = [0; PRINCIPAL_BYTES_MAX];
        bytes.get_mut(..principal.len())?.copy_from_slice(principal);
        Some(Self { bytes, length: principal.len() as u8 })
    }

    /// The principal's bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether anyone could be behind it.
    pub fn is_anonymous(&self) -> bool {
        self.as_slice() == ANONYMOUS
    }
}

/// The message that is being answered.
pub trait Host {
    /// Size of the argument in bytes. It costs nothing to be sent a large one that is never read.
    fn argument_bytes(&self) -> usize;
    /// Hands the whole argument, of `bytes` bytes as [`Host::argument_bytes`] said, to `body`.
    fn with_argument<R>(&self, bytes: usize, body: impl FnOnce(&[u8]) -> R) -> R;
    /// Who calls.
    fn caller(&self) -> Caller;
    /// Whether this principal is a controller of this canister.
    fn is_controller(&self, principal: &Caller) -> bool;
    /// Nanoseconds since 1970, the same during the whole message.
    fn time_ns(&self) -> u64;
    /// Has `canister_global_timer` called once, at `at_ns` nanoseconds since 1970 or as soon after as can be, in place of
    /// what was set before.
    fn set_timer(&self, at_ns: u64);
    /// Whether the message is executed by all replicas of the subnet, as a query method is when it is called as an update.
    fn is_replicated(&self) -> bool;
    /// Replies with `bytes`. To be called once.
    fn reply(&self, bytes: &[u8]);
}

/// The Internet Computer.
pub struct Ic;

impl Host for Ic {
    #[inline(always)]
    fn argument_bytes(&self) -> usize {
        ic0::msg_arg_data_size()
    }

    #[inline(always)]
    fn with_argument<R>(&self, bytes: usize, body: impl FnOnce(&[u8]) -> R) -> R {
        if bytes > STACK_ARGUMENT_BYTES {
            let mut argument = vec![0; bytes];
            ic0::msg_arg_data_copy(&mut argument, 0);
            return body(&argument);
        }
        let mut stack = [MaybeUninit::<u8>::uninit(); STACK_ARGUMENT_BYTES];
        let filled = &mut stack[..bytes];
        ic0::msg_arg_data_copy_uninit(filled, 0);
        // SAFETY: the system API has just written all of `filled`, or the message has trapped.
        body(unsafe { filled.assume_init_ref() })
    }

    #[inline(always)]
    fn caller(&self) -> Caller {
        let mut bytes = [0; PRINCIPAL_BYTES_MAX];
        let length = ic0::msg_caller_size().min(PRINCIPAL_BYTES_MAX);
        ic0::msg_caller_copy(&mut bytes[..length], 0);
        Caller { bytes, length: length as u8 }
    }

    #[inline(always)]
    fn is_controller(&self, principal: &Caller) -> bool {
        ic0::is_controller(principal.as_slice()) == 1
    }

    fn time_ns(&self) -> u64 {
        ic0::time()
    }

    fn set_timer(&self, at_ns: u64) {
        ic0::global_timer_set(at_ns);
    }

    fn is_replicated(&self) -> bool {
        ic0::in_replicated_execution() == 1
    }

    #[inline(always)]
    fn reply(&self, bytes: &[u8]) {
        ic0::msg_reply_data_append(bytes);
        ic0::msg_reply();
    }
}
