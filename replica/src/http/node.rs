//! What the endpoints do, without HTTP: every function here takes its time and is run apart from the sockets.

use super::auth::{Targets, authenticate};
use super::directory;
use super::effective::EffectiveId;
use super::history::{History, SavedCall};
use super::keys::Keys;
use super::limits::*;
use super::state::{self, Certifier, cbor};
use super::tree::Path;
use super::{Answer, Failure};
use crate::replica::{Captured, Replica};
use crate::server::Instance;
use crate::state::StateError;
use crate::types::Reject;
use axum::http::StatusCode;
use candid::Principal;
use ic_transport_types::{
    Envelope, EnvelopeContent, NodeSignature, QueryResponse, ReadStateResponse, RejectCode, RejectResponse,
    ReplyResponse, RequestId, TransportCallResponse,
};
use std::sync::{Arc, Mutex, PoisonError};

/// An instance as the IC's HTTP interface shows it. Lock order: the instance, then the book.
pub(crate) struct Node {
    pub instance: Arc<Instance>,
    pub keys: Keys,
    book: Mutex<Book>,
}

struct Book {
    history: History,
    certifier: Certifier,
}

/// What became of a call that was sent.
pub(super) enum Submitted {
    /// It is under way, or was before.
    Accepted(RequestId),
    /// It was refused before it became part of the state: the body of the answer.
    Refused(Vec<u8>),
}

impl Node {
    /// The instance's replica must have been made with the root key of `keys`.
    ///
    /// # Errors
    /// When the fixed part of the state tree cannot be written, or `calls` is not what [`capture`](Self::capture) gave;
    /// it is null at first.
    pub fn new(instance: Arc<Instance>, keys: Keys, calls: &serde_json::Value) -> Result<Self, Failure> {
        let certifier = Certifier::new(&keys)?;
        let saved: Option<Vec<SavedCall>> = serde_json::from_value(calls.clone())
            .map_err(|e| Failure::bad(format!("the calls of the saved state are not what they should be: {e}")))?;
        let history = History::load(saved.unwrap_or_default());
        Ok(Self { instance, keys, book: Mutex::new(Book { history, certifier }) })
    }

    /// Takes out the state, with what the replica's changes count and the calls that are known. With `last` nobody works on
    /// the instance afterwards. See [`Replica::capture`].
    pub fn capture(
        &self,
        known: impl Fn(u64) -> bool,
        last: bool,
    ) -> Result<(Captured, u64, serde_json::Value), StateError> {
        let work = |replica: &mut Replica| {
            let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
            book.history.settle(replica);
            let calls = serde_json::to_value(book.history.save())
                .map_err(|e| StateError::Unsupported(format!("the calls do not fit into JSON: {e}")))?;
            Ok((replica.capture(known)?, replica.changes(), calls))
        };
        if last { self.instance.close(work) } else { self.instance.replica(work) }
    }

    /// Works on the replica and the book, after the book has taken over the answers that are there.
    fn with<T>(&self, work: impl FnOnce(&mut Replica, &mut Book) -> T) -> T {
        self.instance.replica(|replica| {
            let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
            book.history.settle(replica);
            work(replica, &mut book)
        })
    }

    /// The body of a request, and the canisters that its sender may reach with it.
    fn open(&self, body: &[u8]) -> Result<(EnvelopeContent, Targets), Failure> {
        let envelope: Envelope<'_> = serde_cbor::from_slice(body)
            .map_err(|e| Failure::bad(format!("the body is no request of the IC's interface in CBOR: {e}")))?;
        let now = crate::server::now_nanos();
        let targets = authenticate(&envelope, now, self.keys.root_raw()).map_err(Failure::bad)?;
        Ok((envelope.content.into_owned(), targets))
    }

    /// Takes a call in. One that is known already is not taken again.
    pub(super) fn submit(&self, effective: EffectiveId, body: &[u8]) -> Result<Submitted, Failure> {
        if body.len() > CALL_BYTES_MAX {
            let message = format!("the call has {} bytes, more than {CALL_BYTES_MAX}", body.len());
            return Err(Failure(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let (content, _) = self.open(body)?;
        let id = content.to_request_id();
        let EnvelopeContent::Call { sender, canister_id, method_name, arg, ingress_expiry, .. } = content else {
            return Err(Failure::bad("the request_type of this endpoint is call"));
        };
        effective.check(self.keys.subnet(), canister_id, &method_name, &arg)?;
        let submitted = self.with(|replica, book| {
            if book.history.find(&id).is_some() {
                return Ok(Submitted::Accepted(id));
            }
            if book.history.pending() >= PENDING_CALLS_MAX {
                let message = format!("{PENDING_CALLS_MAX} calls wait for their answers already: try again later");
                return Err(Failure(StatusCode::TOO_MANY_REQUESTS, message));
            }
            let taken = if replica.creates_from_ledger(canister_id, &method_name) {
                Ok(replica.submit_to_ledger(sender, arg))
            } else {
                replica.submit(canister_id, sender, &method_name, &arg)
            };
            match taken {
                Ok(ingress) => {
                    book.history.insert(id, ingress, sender, canister_id, ingress_expiry);
                    Ok(Submitted::Accepted(id))
                }
                Err(reject) => {
                    let refusal = TransportCallResponse::NonReplicatedRejection(rejection(reject)?);
                    cbor(&refusal).map(Submitted::Refused)
                }
            }
        });
        self.instance.wake.notify_one();
        submitted
    }

    /// The answer to a synchronous call, once there is one.
    pub(super) fn answer(&self, id: &RequestId) -> Result<Option<Vec<u8>>, Failure> {
        self.with(|replica, Book { history, certifier }| {
            if !history.find(id).is_some_and(|call| call.answered) {
                return Ok(None);
            }
            let paths = vec![vec![b"request_status".to_vec(), id.to_vec()]];
            let state = certifier.state(replica, history)?;
            let certificate = certifier.certificate(&self.keys, &state, Some(history), paths)?;
            cbor(&TransportCallResponse::Replied { certificate }).map(Some)
        })
    }

    pub(super) fn query(&self, effective: EffectiveId, body: &[u8]) -> Answer {
        let (content, _) = self.open(body)?;
        let id = content.to_request_id();
        let EnvelopeContent::Query { sender, canister_id, method_name, arg, .. } = content else {
            return Err(Failure::bad("the request_type of this endpoint is query"));
        };
        effective.check(self.keys.subnet(), canister_id, &method_name, &arg)?;
        let (result, timestamp) = self.with(|replica, Book { history, certifier }| {
            let state = certifier.state(replica, history)?;
            let certify = |canister: Principal| {
                let path = [&b"canister"[..], canister.as_slice(), b"certified_data"].map(<[u8]>::to_vec).to_vec();
                // It could only fail while memory is written to, which does not fail.
                certifier.certificate(&self.keys, &state, None, vec![path]).unwrap_or_default()
            };
            let directory = || directory::answer(self.keys.subnet(), canister_id, &method_name);
            let result = match (replica.canister_exists(canister_id), directory()) {
                (false, Some(answer)) => Ok(answer),
                _ => replica.certified_query(canister_id, sender, &method_name, arg, &certify),
            };
            Ok((result, replica.time()))
        })?;
        let mut response = match result {
            Ok(arg) => QueryResponse::Replied { reply: ReplyResponse { arg }, signatures: Vec::new() },
            Err(reject) => QueryResponse::Rejected { reject: rejection(reject)?, signatures: Vec::new() },
        };
        let signature = self.keys.sign_answer(&response.signable(id, timestamp));
        let (QueryResponse::Replied { signatures, .. } | QueryResponse::Rejected { signatures, .. }) = &mut response;
        signatures.push(NodeSignature { timestamp, signature, identity: self.keys.node() });
        cbor(&response)
    }

    pub(super) fn read_state(&self, effective: EffectiveId, body: &[u8]) -> Answer {
        let (content, targets) = self.open(body)?;
        let EnvelopeContent::ReadState { sender, paths, .. } = content else {
            return Err(Failure::bad("the request_type of this endpoint is read_state"));
        };
        if paths.len() > PATHS_MAX {
            return Err(Failure::bad(format!("the request has {} paths, more than {PATHS_MAX}", paths.len())));
        }
        if let Some(path) = paths.iter().find(|path| path.len() > PATH_LABELS_MAX) {
            return Err(Failure::bad(format!("a path has {} labels, more than {PATH_LABELS_MAX}", path.len())));
        }
        if let EffectiveId::Subnet(id) = effective
            && id != self.keys.subnet()
        {
            return Err(Failure::bad(format!("the subnet {id} in the URL is not this replica's")));
        }
        let paths: Vec<Path> =
            paths.into_iter().map(|path| path.iter().map(|label| label.as_bytes().to_vec()).collect()).collect();
        self.with(|replica, Book { history, certifier }| {
            state::check_paths(&paths, &sender, &targets, &effective, replica, history)?;
            let state = certifier.state(replica, history)?;
            let certificate = certifier.certificate(&self.keys, &state, Some(history), paths)?;
            cbor(&ReadStateResponse { certificate })
        })
    }
}

/// A reject as it is sent.
fn rejection(reject: Reject) -> Result<RejectResponse, Failure> {
    let reject_code = RejectCode::try_from(u64::from(reject.reject_code()))
        .map_err(|e| Failure(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    let error_code = Some(reject.error_code());
    Ok(RejectResponse { reject_code, reject_message: reject.message, error_code })
}
