//! The certified state: the tree that the root key signs, and who may read what of it.
//!
//! ```text
//! /canister/<id>/{certified_data, controllers, metadata/<name>, module_hash}
//! /canister_ranges/<subnet>/<first id>      ranges of canister ids, CBOR
//! /request_status/<request>/{status, reply, error_code, reject_code, reject_message}
//! /subnet/<subnet>/{canister_ranges, node/<node>/public_key, public_key, type}
//! /time                                     nanoseconds since 1970, LEB128
//! ```

use super::auth::{Targets, permits};
use super::history::History;
use super::keys::Keys;
use super::tree::{Hash, Path, Tree, join, show};
use super::{EffectiveId, Failure};
use crate::replica::{CertifiedCanister, Replica};
use axum::http::StatusCode;
use candid::Principal;
use ic_certification::{AsHashTree, Certificate, HashTree};
use ic_transport_types::RequestId;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The type of the subnet. On a subnet of this type `icp deploy` creates canisters by the management canister; on
/// others it needs the canisters that sell cycles, which a replica of one's own has not.
const SUBNET_TYPE: &str = "cloud_engine";

/// Writes CBOR with the tag that says so.
pub(super) fn cbor<T: Serialize>(value: &T) -> Result<Vec<u8>, Failure> {
    let mut serializer = serde_cbor::Serializer::new(Vec::new());
    let written = serializer.self_describe().and_then(|()| value.serialize(&mut serializer));
    let failed = |e| Failure(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written as CBOR: {e}"));
    written.map(|()| serializer.into_inner()).map_err(failed)
}

/// First and last of all ids that canisters can have: the one subnet answers for all of them.
fn canister_range() -> (Principal, Principal) {
    let mut last = [0xFF; 10];
    last[8..].copy_from_slice(&[1, 1]);
    (Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]), Principal::from_slice(&last))
}

fn label(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// Signs state trees, and remembers what is dear to make again.
pub(super) struct Certifier {
    /// The part of the tree that never changes.
    subnet: Tree,
    ranges: Tree,
    /// Metadata trees by module hash.
    metadata: HashMap<[u8; 32], Tree>,
    /// The last root hash and its signature.
    signed: Mutex<Option<(Hash, Vec<u8>)>>,
}

/// The state at one moment, without the calls: those are looked up in the [`History`].
pub(super) struct State {
    canisters: Tree,
    ranges: Tree,
    requests: Hash,
    subnet: Tree,
    time: Tree,
}

impl Certifier {
    pub fn new(keys: &Keys) -> Result<Self, Failure> {
        let range = canister_range();
        let ranges = Tree::leaf(cbor(&[range])?);
        let id = keys.subnet().as_slice().to_vec();
        let node = Tree::labels([(label("public_key"), Tree::leaf(keys.node_der()))]);
        let subnet = Tree::labels([
            (label("canister_ranges"), ranges.clone()),
            (label("node"), Tree::labels([(keys.node().as_slice().to_vec(), node)])),
            (label("public_key"), Tree::leaf(keys.root_der())),
            (label("type"), Tree::leaf(SUBNET_TYPE)),
        ]);
        Ok(Self {
            subnet: Tree::labels([(id.clone(), subnet)]),
            ranges: Tree::labels([(id, Tree::labels([(range.0.as_slice().to_vec(), ranges)]))]),
            metadata: HashMap::new(),
            signed: Mutex::default(),
        })
    }

    /// The state now.
    pub fn state(&mut self, replica: &Replica, history: &History) -> Result<State, Failure> {
        let mut canisters = Vec::new();
        let mut metadata = HashMap::new();
        for canister in replica.certified_canisters() {
            let tree = self.canister(&canister, &mut metadata)?;
            canisters.push((canister.id.as_slice().to_vec(), tree));
        }
        self.metadata = metadata;
        let mut time = Vec::new();
        let written = leb128::write::unsigned(&mut time, replica.time());
        written.map_err(|e| Failure(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
        Ok(State {
            canisters: Tree::labels(canisters),
            ranges: self.ranges.clone(),
            requests: history.root_hash(),
            subnet: self.subnet.clone(),
            time: Tree::leaf(time),
        })
    }

    /// `metadata` collects the trees that are in use.
    fn canister(
        &self,
        canister: &CertifiedCanister<'_>,
        metadata: &mut HashMap<[u8; 32], Tree>,
    ) -> Result<Tree, Failure> {
        let mut children = vec![
            (label("certified_data"), Tree::leaf(canister.certified_data)),
            (label("controllers"), Tree::leaf(cbor(&canister.controllers)?)),
        ];
        if let Some(module) = canister.module {
            let known = metadata.get(&module.hash).or_else(|| self.metadata.get(&module.hash));
            let tree = known.cloned().unwrap_or_else(|| {
                let sections = module.metadata.sections();
                Tree::labels(sections.map(|(name, content)| (label(name), Tree::leaf(content))))
            });
            metadata.insert(module.hash, tree.clone());
            children.push((label("metadata"), tree));
            children.push((label("module_hash"), Tree::leaf(module.hash)));
        }
        Ok(Tree::labels(children))
    }

    /// A certificate that shows these paths, and the time. `history` is the one that the state was made with, or
    /// `None` if no path leads to a call.
    pub fn certificate(
        &self,
        keys: &Keys,
        state: &State,
        history: Option<&History>,
        mut paths: Vec<Path>,
    ) -> Result<Vec<u8>, Failure> {
        paths.push(vec![label("time")]);
        let tree = state.witness(&paths, history);
        let root = tree.digest();
        let mut signed = self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        let signature = match &*signed {
            Some((hash, signature)) if *hash == root => signature.clone(),
            _ => signed.insert((root, keys.sign_state(&root))).1.clone(),
        };
        drop(signed);
        cbor(&Certificate { tree, signature, delegation: None })
    }
}

impl State {
    fn witness(&self, paths: &[Path], history: Option<&History>) -> HashTree {
        let trees = [
            ("canister", Some(&self.canisters)),
            ("canister_ranges", Some(&self.ranges)),
            ("request_status", None),
            ("subnet", Some(&self.subnet)),
            ("time", Some(&self.time)),
        ];
        let paths: Vec<&[Vec<u8>]> = paths.iter().map(Vec::as_slice).collect();
        let children =
            trees.iter().map(|(label, tree)| (label.as_bytes(), tree.map_or(self.requests, AsHashTree::root_hash)));
        join(show(children, &paths, |at, rests| match (trees[at].1, history) {
            (Some(tree), _) => tree.witness(rests),
            (None, Some(history)) => history.witness(rests),
            (None, None) => ic_certification::pruned(self.requests),
        }))
    }
}

/// Refuses paths that this sender may not read, and those that nobody may.
pub(super) fn check_paths(
    paths: &[Path],
    sender: &Principal,
    targets: &Targets,
    effective: &EffectiveId,
    replica: &Replica,
    history: &History,
) -> Result<(), Failure> {
    let mut request = None;
    for path in paths {
        let labels: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        match labels.as_slice() {
            [b"time"]
            | [b"api_boundary_nodes", ..]
            | [b"subnet"]
            | [b"subnet", _]
            | [b"subnet", _, b"public_key" | b"canister_ranges" | b"node" | b"type"]
            | [b"subnet", _, b"node", _]
            | [b"subnet", _, b"node", _, b"public_key"]
            | [b"canister_ranges", _]
            | [b"canister_ranges", _, _] => {}
            [b"canister", id, b"controllers" | b"module_hash"] => {
                check_canister(id, effective)?;
            }
            [b"canister", id, b"metadata", name] => {
                let id = check_canister(id, effective)?;
                let name =
                    std::str::from_utf8(name).map_err(|e| Failure::bad(format!("a metadata name is no text: {e}")))?;
                check_metadata(name, &id, sender, replica)?;
            }
            [b"request_status", id]
            | [b"request_status", id, b"status" | b"reply" | b"reject_code" | b"reject_message" | b"error_code"] => {
                let id = <[u8; 32]>::try_from(*id)
                    .map_err(|_| Failure::bad(format!("a request id has 32 bytes, not {}", id.len())))?;
                if request.is_some_and(|other| other != id) {
                    return Err(Failure::bad("the paths name more than one request id: read one at a time"));
                }
                request = Some(id);
                check_call(&RequestId::new(&id), sender, targets, history)?;
            }
            _ => {
                let shown: Vec<_> = labels.iter().map(|label| label.escape_ascii().to_string()).collect();
                let message = format!("Invalid path requested: /{} cannot be read", shown.join("/"));
                return Err(Failure(StatusCode::NOT_FOUND, message));
            }
        }
    }
    Ok(())
}

fn check_canister(id: &[u8], effective: &EffectiveId) -> Result<Principal, Failure> {
    let id = Principal::try_from_slice(id).map_err(|e| Failure::bad(format!("a path names no principal: {e}")))?;
    match effective {
        EffectiveId::Canister(expected) if id == *expected => Ok(id),
        EffectiveId::Canister(expected) => Err(Failure::bad(format!(
            "the canister {id} in a path is not the effective canister id in the URL, {expected}"
        ))),
        EffectiveId::Subnet(_) => {
            let message = format!("Invalid path requested: read canister {id} under its own URL, not its subnet's");
            Err(Failure(StatusCode::NOT_FOUND, message))
        }
    }
}

fn check_metadata(name: &str, id: &Principal, sender: &Principal, replica: &Replica) -> Result<(), Failure> {
    let Some(canister) = replica.certified_canisters().find(|canister| canister.id == *id) else { return Ok(()) };
    let private = canister.module.is_some_and(|module| module.metadata.is_private(name));
    if private && !canister.controllers.contains(sender) {
        let message = format!("The metadata section {name:.100} is private: only controllers of {id} may read it");
        return Err(Failure(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

fn check_call(id: &RequestId, sender: &Principal, targets: &Targets, history: &History) -> Result<(), Failure> {
    let Some(call) = history.find(id) else { return Ok(()) };
    if call.sender != *sender {
        let message = format!("Request {id} was sent by another principal than {sender}");
        return Err(Failure(StatusCode::FORBIDDEN, message));
    }
    if !permits(targets, &call.receiver) {
        let message = format!("Request {id} is for a canister that is not one of the delegation targets");
        return Err(Failure(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}
