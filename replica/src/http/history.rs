//! The calls that came in over HTTP, and what became of them: the `request_status` part of the state tree.

use super::limits::*;
use super::tree::{Hash, Tree};
use crate::replica::{IngressId, Replica};
use crate::types::Reject;
use candid::Principal;
use ic_certification::{AsHashTree, HashTree, RbTree};
use ic_transport_types::RequestId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A call that is known.
pub(super) struct Call {
    pub sender: Principal,
    /// The canister that it is for.
    pub receiver: Principal,
    pub answered: bool,
    ingress: IngressId,
    /// Nanoseconds since 1970; the request is not taken again afterwards.
    expiry: u64,
    reply_bytes: usize,
}

/// A call as a state directory keeps it: without its reply, so that an answered one is only `done` when it comes back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedCall {
    id: crate::state::Hash,
    sender: Principal,
    receiver: Principal,
    ingress: u64,
    expiry: u64,
    /// When it is forgotten, nanoseconds since 1970; not before it is answered.
    forgotten_at: Option<u64>,
}

/// Invariant: `calls` and `statuses` have the same keys; `pending` has those that are not answered; `replies` are among
/// the calls, and have `reply_bytes` together.
pub(super) struct History {
    calls: HashMap<[u8; 32], Call>,
    statuses: RbTree<[u8; 32], Tree>,
    pending: BTreeMap<IngressId, RequestId>,
    /// Those of `pending` that no round has seen.
    received: BTreeSet<IngressId>,
    /// When an answered call is forgotten, nanoseconds since 1970.
    forgotten_at: BTreeSet<(u64, [u8; 32])>,
    /// Calls whose replies are kept.
    replies: BTreeMap<IngressId, RequestId>,
    /// Bytes of those replies.
    reply_bytes: usize,
}

impl History {
    pub fn new() -> Self {
        Self {
            calls: HashMap::new(),
            statuses: RbTree::new(),
            pending: BTreeMap::new(),
            received: BTreeSet::new(),
            forgotten_at: BTreeSet::new(),
            replies: BTreeMap::new(),
            reply_bytes: 0,
        }
    }

    /// The calls, for a state directory.
    pub fn save(&self) -> Vec<SavedCall> {
        let forgotten_at: HashMap<_, _> = self.forgotten_at.iter().map(|(at, id)| (*id, *at)).collect();
        let saved = |(id, call): (&[u8; 32], &Call)| SavedCall {
            id: crate::state::Hash(*id),
            sender: call.sender,
            receiver: call.receiver,
            ingress: call.ingress.number(),
            expiry: call.expiry,
            forgotten_at: forgotten_at.get(id).copied(),
        };
        self.calls.iter().map(saved).collect()
    }

    /// The calls that were saved.
    pub fn load(saved: Vec<SavedCall>) -> Self {
        let mut history = Self::new();
        for SavedCall { id, sender, receiver, ingress, expiry, forgotten_at } in saved {
            let ingress = IngressId::from_number(ingress);
            let answered = forgotten_at.is_some();
            history.calls.insert(id.0, Call { sender, receiver, answered, ingress, expiry, reply_bytes: 0 });
            match forgotten_at {
                Some(at) => drop(history.forgotten_at.insert((at, id.0))),
                None => drop(history.pending.insert(ingress, RequestId::new(&id.0))),
            }
            history.statuses.insert(id.0, status(if answered { "done" } else { "processing" }, []));
        }
        history
    }

    pub fn find(&self, id: &RequestId) -> Option<&Call> {
        self.calls.get(&**id)
    }

    /// Calls that wait for their answer.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Notes a call that was just taken in.
    pub fn insert(&mut self, id: RequestId, ingress: IngressId, sender: Principal, receiver: Principal, expiry: u64) {
        self.calls.insert(*id, Call { sender, receiver, answered: false, ingress, expiry, reply_bytes: 0 });
        self.statuses.insert(*id, status("received", []));
        self.pending.insert(ingress, id);
        self.received.insert(ingress);
    }

    /// Fetches the answers that are there, and forgets what is too old at `replica`'s time.
    pub fn settle(&mut self, replica: &mut Replica) {
        let now = replica.time();
        let answers: Vec<_> =
            self.pending.keys().filter_map(|ingress| Some((*ingress, replica.take_result(*ingress)?))).collect();
        for (ingress, result) in answers {
            self.answer(ingress, result, now);
        }
        for ingress in std::mem::take(&mut self.received) {
            if let Some(id) = self.pending.get(&ingress) {
                self.statuses.insert(**id, status("processing", []));
            }
        }
        while let Some((at, id)) = self.forgotten_at.first().copied().filter(|(at, _)| *at < now) {
            self.forgotten_at.remove(&(at, id));
            self.statuses.delete(&id);
            if let Some(call) = self.calls.remove(&id)
                && self.replies.remove(&call.ingress).is_some()
            {
                self.reply_bytes -= call.reply_bytes;
            }
        }
    }

    fn answer(&mut self, ingress: IngressId, result: Result<Vec<u8>, Reject>, now: u64) {
        self.received.remove(&ingress);
        let Some(id) = self.pending.remove(&ingress) else { return };
        let Some(call) = self.calls.get_mut(&*id) else { return };
        call.answered = true;
        let kept = u64::try_from(STATUS_KEPT.as_nanos()).unwrap_or(u64::MAX);
        self.forgotten_at.insert((call.expiry.max(now).saturating_add(kept), *id));
        let answered = match result {
            Ok(reply) => {
                call.reply_bytes = reply.len();
                self.reply_bytes += reply.len();
                self.replies.insert(ingress, id);
                status("replied", [("reply", reply)])
            }
            Err(reject) => status(
                "rejected",
                [
                    ("error_code", reject.error_code().into_bytes()),
                    ("reject_code", vec![reject.reject_code() as u8]),
                    ("reject_message", reject.message.into_bytes()),
                ],
            ),
        };
        self.statuses.insert(*id, answered);
        while self.reply_bytes > REPLIES_BYTES_MAX {
            let Some((_, oldest)) = self.replies.pop_first() else { break };
            self.reply_bytes -= self.calls.get(&*oldest).map_or(0, |call| call.reply_bytes);
            self.statuses.insert(*oldest, status("done", []));
        }
    }

    /// Hash of this part of the state tree.
    pub fn root_hash(&self) -> Hash {
        self.statuses.root_hash()
    }

    /// What a reader of these paths, which all begin with the same request id, is shown.
    pub fn witness(&self, paths: &[&[Vec<u8>]]) -> HashTree {
        match paths.first().and_then(|path| path.split_first()) {
            None => ic_certification::pruned(self.root_hash()),
            Some((id, _)) => {
                let rests: Vec<&[Vec<u8>]> = paths.iter().filter_map(|path| path.get(1..)).collect();
                self.statuses.nested_witness(id, |status| status.witness(&rests))
            }
        }
    }
}

fn status<const N: usize>(status: &str, fields: [(&str, Vec<u8>); N]) -> Tree {
    let fields = fields.into_iter().map(|(label, value)| (label.as_bytes().to_vec(), Tree::leaf(value)));
    Tree::labels(fields.chain([(b"status".to_vec(), Tree::leaf(status))]))
}
