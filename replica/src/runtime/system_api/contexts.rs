//! Where each system call is allowed, as sets of contexts.

use super::super::message::Context;

const fn set(contexts: &[Context]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < contexts.len() {
        bits |= contexts[i].bit();
        i += 1;
    }
    bits
}

pub(super) const ANYWHERE: u32 = u32::MAX;
pub(super) const NOT_START: u32 = !Context::Start.bit();
pub(super) const ARGUMENT: u32 = set(&[
    Context::Init,
    Context::Inspect,
    Context::Update,
    Context::ReplicatedQuery,
    Context::Query,
    Context::CompositeQuery,
    Context::Reply,
    Context::CompositeReply,
]);
pub(super) const REJECT_CODE: u32 = set(&[
    Context::Reply,
    Context::Reject,
    Context::Cleanup,
    Context::CompositeReply,
    Context::CompositeReject,
    Context::CompositeCleanup,
]);
pub(super) const REJECT_MESSAGE: u32 = set(&[Context::Reject, Context::CompositeReject]);
pub(super) const RESPOND: u32 = set(&[
    Context::Update,
    Context::ReplicatedQuery,
    Context::Query,
    Context::CompositeQuery,
    Context::Reply,
    Context::Reject,
    Context::CompositeReply,
    Context::CompositeReject,
]);
pub(super) const DEADLINE: u32 = RESPOND | set(&[Context::Cleanup, Context::CompositeCleanup]);
pub(super) const AVAILABLE: u32 = set(&[Context::Update, Context::ReplicatedQuery, Context::Reply, Context::Reject]);
pub(super) const REFUNDED: u32 = set(&[Context::Reply, Context::Reject]);
pub(super) const BURN: u32 = set(&[
    Context::Init,
    Context::PreUpgrade,
    Context::Update,
    Context::Reply,
    Context::Reject,
    Context::Cleanup,
    Context::System,
]);
pub(super) const INSPECT: u32 = set(&[Context::Inspect]);
pub(super) const CALL: u32 = set(&[
    Context::Update,
    Context::CompositeQuery,
    Context::Reply,
    Context::Reject,
    Context::CompositeReply,
    Context::CompositeReject,
    Context::System,
]);
pub(super) const CALL_CYCLES: u32 = set(&[Context::Update, Context::Reply, Context::Reject, Context::System]);
pub(super) const CERTIFY: u32 = BURN;
pub(super) const TIMER: u32 = BURN;
pub(super) const CERTIFICATE: u32 =
    set(&[Context::Query, Context::CompositeQuery, Context::CompositeReply, Context::CompositeReject]);
