//! The IC's HTTP interface, spoken by the unmodified `ic-agent` crate, which verifies everything that it is told.

mod common;
#[path = "common/ic.rs"]
mod ic;

use candid::Principal;
use common::module;
use ic::{Server, basic, canister, in_seconds};
use ic_agent::agent::RejectCode;
use ic_agent::identity::{DelegatedIdentity, Delegation, Prime256v1Identity, Secp256k1Identity, SignedDelegation};
use ic_agent::{Agent, AgentError, Identity};
use ic_certification::{AsHashTree, Certificate, LookupResult, RbTree};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn number(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().expect("8 bytes"))
}

async fn count(agent: &Agent, id: &Principal) -> u64 {
    number(&agent.query(id, "counted").call().await.expect("the count"))
}

/// Status of an HTTP error and its text.
fn refusal(error: AgentError) -> (u16, String) {
    match error {
        AgentError::HttpError(payload) => (payload.status, String::from_utf8_lossy(&payload.content).into_owned()),
        other => panic!("not refused by HTTP: {other:?}"),
    }
}

#[tokio::test]
async fn identities_of_every_kind() {
    let server = Server::start();
    let id = server.deploy(&server.anonymous().await, &canister()).await;
    let k256 = ic_secp256k1::PrivateKey::generate_from_seed(b"k").serialize_rfc5915_pem();
    let p256 = ic_secp256r1::PrivateKey::generate_insecure_key_for_testing(7).serialize_rfc5915_pem();
    let identities: [Arc<dyn Identity>; 4] = [
        Arc::new(ic_agent::identity::AnonymousIdentity),
        basic(1),
        Arc::new(Secp256k1Identity::from_pem(k256).unwrap()),
        Arc::new(Prime256v1Identity::from_pem(p256).unwrap()),
    ];
    for identity in identities {
        let me = identity.sender().unwrap();
        let agent = server.agent(identity).await;
        assert_eq!(agent.update(&id, "caller").await.expect("an update"), me.as_slice());
        assert_eq!(agent.query(&id, "caller_query").call().await.expect("a query"), me.as_slice());
    }
}

/// An identity that acts for `root` through keys of its own; `change` alters each delegation before it is signed.
fn delegated(root: &dyn Identity, links: usize, change: impl Fn(&mut Delegation)) -> Arc<dyn Identity> {
    let mut chain = Vec::new();
    let keys: Vec<_> = (0..links).map(|n| basic(100 + n as u8)).collect();
    for (n, key) in keys.iter().enumerate() {
        let pubkey = key.public_key().unwrap();
        let mut delegation = Delegation { pubkey, expiration: in_seconds(60), targets: None, permissions: None };
        change(&mut delegation);
        let signer: &dyn Identity = if n == 0 { root } else { &*keys[n - 1] };
        let signature = signer.sign_delegation(&delegation).unwrap().signature.unwrap();
        chain.push(SignedDelegation { delegation, signature });
    }
    let last = ic_agent::identity::BasicIdentity::from_raw_key(&[100 + links as u8 - 1; 32]);
    Arc::new(DelegatedIdentity::new_unchecked(root.public_key().unwrap(), Box::new(last), chain))
}

#[tokio::test]
async fn delegations() {
    let server = Server::start();
    let id = server.deploy(&server.anonymous().await, &canister()).await;
    let root = basic(1);
    let me = root.sender().unwrap();
    let other = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 9, 1, 1]);
    for links in [1, 2, 20] {
        let agent = server.agent(delegated(&*root, links, |d| d.targets = Some(vec![other, id]))).await;
        assert_eq!(agent.update(&id, "caller").await.expect("an update"), me.as_slice(), "{links} links");
        assert_eq!(agent.query(&id, "caller_query").call().await.expect("a query"), me.as_slice());
    }
    let queries = Some(ic_agent::identity::DelegationPermissions::Queries);
    let reader = server.agent(delegated(&*root, 1, |d| d.permissions = queries)).await;
    assert_eq!(reader.query(&id, "caller_query").call().await.expect("a query"), me.as_slice());
    let refused: [(Arc<dyn Identity>, &str); 6] = [
        (delegated(&*root, 21, |_| {}), "a chain of 21 delegations"),
        (delegated(&*root, 1, |d| d.expiration = in_seconds(-1)), "Invalid delegation expiry"),
        (delegated(&*root, 1, |d| d.targets = Some(vec![other])), "not one of the delegation targets"),
        (delegated(&*root, 1, |d| d.targets = Some(vec![id; 1_001])), "1001 targets"),
        (delegated(&*root, 1, |d| d.permissions = queries), "permits queries"),
        // The first delegation of another key's chain.
        (Arc::new(Foreign(delegated(&*basic(2), 1, |_| {}), basic(1))), "Invalid delegation: number 0"),
    ];
    for (identity, words) in refused {
        let (status, text) = refusal(server.agent(identity).await.update(&id, "count").await.unwrap_err());
        assert!(status == 400 && text.contains(words), "{status} {text}, and not {words}");
    }
    assert_eq!(count(&server.anonymous().await, &id).await, 0);
}

/// A chain of delegations that begins at a key which did not sign it.
struct Foreign(Arc<dyn Identity>, Arc<dyn Identity>);

impl Identity for Foreign {
    fn sender(&self) -> Result<Principal, String> {
        self.1.sender()
    }
    fn public_key(&self) -> Option<Vec<u8>> {
        self.1.public_key()
    }
    fn sign(&self, content: &ic_agent::agent::EnvelopeContent) -> Result<ic_agent::Signature, String> {
        Ok(ic_agent::Signature { public_key: self.1.public_key(), ..self.0.sign(content)? })
    }
}

#[tokio::test]
async fn canister_signatures_and_certified_data() {
    let server = Server::start();
    let anonymous = server.anonymous().await;
    let id = server.deploy(&anonymous, &canister()).await;
    // A key that only the canister has: its signature is a certified tree that holds the hash of what is signed.
    let seed = b"account 1";
    let raw = [&[id.as_slice().len() as u8], id.as_slice(), seed].concat();
    let oid = [0x30, 0x0c, 0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xb8, 0x43, 0x01, 0x02];
    let bits = [&[0x03, raw.len() as u8 + 1, 0], &raw[..]].concat();
    let key = [&[0x30, (oid.len() + bits.len()) as u8], &oid[..], &bits].concat();
    let session = basic(3);
    let pubkey = session.public_key().unwrap();
    let delegation = Delegation { pubkey, expiration: in_seconds(60), targets: None, permissions: None };
    let mut by_message: RbTree<Vec<u8>, Vec<u8>> = RbTree::new();
    by_message.insert(Sha256::digest(delegation.signable()).to_vec(), Vec::new());
    let mut by_seed: RbTree<Vec<u8>, RbTree<Vec<u8>, Vec<u8>>> = RbTree::new();
    by_seed.insert(Sha256::digest(seed).to_vec(), by_message);
    let tree = ic_certification::labeled("sig", by_seed.as_hash_tree());
    anonymous.update(&id, "certify").with_arg(tree.digest()).await.expect("the tree is certified");

    let certificate = anonymous.query(&id, "certificate").call().await.expect("a certificate");
    let parsed: Certificate = serde_cbor::from_slice(&certificate).unwrap();
    anonymous.verify(&parsed, id).expect("a true certificate");
    let data = parsed.tree.lookup_path([&b"canister"[..], id.as_slice(), b"certified_data"]);
    assert!(matches!(data, LookupResult::Found(data) if data == tree.digest()));

    #[derive(serde::Serialize)]
    struct CanisterSignature {
        #[serde(with = "serde_bytes")]
        certificate: Vec<u8>,
        tree: ic_certification::HashTree,
    }
    let signature = |certificate: &[u8]| {
        let mut signature = vec![0xd9, 0xd9, 0xf7];
        let parts = CanisterSignature { certificate: certificate.to_vec(), tree: tree.clone() };
        signature.extend(serde_cbor::to_vec(&parts).unwrap());
        vec![SignedDelegation { delegation: delegation.clone(), signature }]
    };
    let identity = |chain| {
        let session = ic_agent::identity::BasicIdentity::from_raw_key(&[3; 32]);
        DelegatedIdentity::new_unchecked(key.clone(), Box::new(session), chain)
    };
    let agent = server.agent(Arc::new(identity(signature(&certificate)))).await;
    let me = Principal::self_authenticating(&key);
    assert_eq!(agent.update(&id, "caller").await.expect("an update"), me.as_slice());
    // One whose root signature was changed.
    let mut forged = parsed;
    forged.signature[20] ^= 1;
    let mut bytes = vec![0xd9, 0xd9, 0xf7];
    bytes.extend(serde_cbor::to_vec(&forged).unwrap());
    let agent = server.agent(Arc::new(identity(signature(&bytes)))).await;
    let (status, text) = refusal(agent.update(&id, "caller").await.unwrap_err());
    assert!(status == 400 && text.contains("canister signature"), "{status} {text}");
}

#[tokio::test]
async fn the_state_tree() {
    let server = Server::start();
    let owner = server.agent(basic(1)).await;
    let id = server.deploy(&owner, &canister()).await;
    let stranger = server.agent(basic(2)).await;
    let hash = stranger.read_state_canister_module_hash(id).await.expect("the module's hash");
    assert_eq!(hash, Sha256::digest(canister()).as_slice());
    assert_eq!(stranger.read_state_canister_controllers(id).await.unwrap(), [owner.get_principal().unwrap()]);
    let metadata = |agent: &Agent, name: &'static str| {
        let agent = agent.clone();
        async move { agent.read_state_canister_metadata(id, name).await }
    };
    assert_eq!(metadata(&stranger, "candid:service").await.unwrap(), b"service : {}");
    assert_eq!(metadata(&owner, "plan").await.unwrap(), b"hidden");
    let (status, text) = refusal(metadata(&stranger, "plan").await.unwrap_err());
    assert!(status == 403 && text.contains("private"), "{status} {text}");
    // What is not there is proven not to be.
    assert!(matches!(metadata(&stranger, "none").await, Err(AgentError::LookupPathAbsent(_))));
    let nobody = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 9, 1, 1]);
    assert!(matches!(stranger.read_state_canister_module_hash(nobody).await, Err(AgentError::LookupPathAbsent(_))));
    let subnet = stranger.fetch_subnet_by_canister(&id).await.expect("the subnet");
    assert_eq!(subnet.id(), Principal::self_authenticating(stranger.read_root_key()));
    assert!(subnet.contains_canister(&id) && subnet.iter_nodes().count() == 1);
    let by_id = stranger.fetch_subnet_by_id(&subnet.id()).await.expect("the subnet by its id");
    assert_eq!(by_id.self_reported_key(), stranger.read_root_key());
    let ranges = stranger.read_state_subnet_canister_ranges(subnet.id()).await.unwrap();
    assert!(ranges.iter().any(|(first, last)| (first..=last).contains(&&id)));
    // Where icp-cli learns on which subnet it is to create canisters.
    let minting = Principal::from_text("rkp4c-7iaaa-aaaaa-aaaca-cai").unwrap();
    let subnets = stranger.query(&minting, "get_default_subnets").with_arg(b"DIDL\0\0").call().await.unwrap();
    assert_eq!(candid::decode_one::<Vec<Principal>>(&subnets).unwrap(), [subnet.id()]);
    // A stranger does not learn how the owner's call went.
    let sent = owner.update(&id, "count").sign().unwrap();
    owner.update_signed(id, sent.signed_update).await.expect("a call");
    owner.request_status_raw(&sent.request_id, id).await.expect("the sender reads its status");
    let (status, text) = refusal(stranger.request_status_raw(&sent.request_id, id).await.unwrap_err());
    assert!(status == 403 && text.contains("another principal"), "{status} {text}");
}

#[tokio::test]
async fn rejects() {
    let server = Server::start();
    let agent = server.anonymous().await;
    let id = server.deploy(&agent, &canister()).await;
    let nobody = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 9, 1, 1]);
    let certified = |result: Result<Vec<u8>, AgentError>| match result.unwrap_err() {
        AgentError::CertifiedReject { reject, .. } => (reject.reject_code, reject.error_code.unwrap()),
        other => panic!("{other:?}"),
    };
    let uncertified = |result: Result<Vec<u8>, AgentError>| match result.unwrap_err() {
        AgentError::UncertifiedReject { reject, .. } => (reject.reject_code, reject.error_code.unwrap()),
        other => panic!("{other:?}"),
    };
    let (error, gone) = (RejectCode::CanisterError, RejectCode::DestinationInvalid);
    assert_eq!(certified(agent.update(&id, "none").await), (error, "IC0536".into()));
    assert_eq!(certified(agent.update(&id, "fail").await), (error, "IC0503".into()));
    assert_eq!(certified(agent.update(&id, "silent").await), (error, "IC0506".into()));
    assert_eq!(uncertified(agent.update(&id, "turned_away").await), (RejectCode::CanisterReject, "IC0406".into()));
    assert_eq!(uncertified(agent.update(&nobody, "count").await), (gone, "IC0301".into()));
    assert_eq!(uncertified(agent.query(&id, "none").call().await), (error, "IC0536".into()));
    assert_eq!(uncertified(agent.query(&id, "fail_query").call().await), (error, "IC0503".into()));
    assert_eq!(uncertified(agent.query(&nobody, "counted").call().await), (gone, "IC0301".into()));
}

#[tokio::test]
async fn two_hundred_at_once() {
    let server = Server::start();
    let agent = server.agent(basic(1)).await;
    let id = server.deploy(&agent, &canister()).await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..400 {
        let agent = agent.clone();
        calls.spawn(async move {
            // Every other one reads.
            match n % 2 {
                0 => Some(number(&agent.update(&id, "count").await.expect("an update"))),
                _ => agent.query(&id, "counted").call().await.map(|_| None).expect("a query"),
            }
        });
    }
    let mut counts: Vec<u64> = calls.join_all().await.into_iter().flatten().collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=200).collect::<Vec<_>>());
}

#[tokio::test]
async fn time_and_timers_go_on_by_themselves() {
    let server = Server::start();
    let agent = server.anonymous().await;
    let id = server.deploy(&agent, &canister()).await;
    agent.update(&id, "arm").await.expect("the timer is set");
    let deadline = Instant::now() + Duration::from_secs(20);
    while count(&agent, &id).await == 0 {
        assert!(Instant::now() < deadline, "the timer did not run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn calls_between_canisters_go_on_by_themselves() {
    let server = Server::start();
    let agent = server.anonymous().await;
    let callee = server.deploy(&agent, &canister()).await;
    let caller = server.deploy(&agent, &forwarder()).await;
    let reply = agent.update(&caller, "forward").with_arg(callee.as_slice()).await.expect("a reply");
    assert_eq!(number(&reply), 1);
}

/// Calls `count` of the canister that its argument names, and answers what that answers.
fn forwarder() -> Vec<u8> {
    module(
        r#"(import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_perform" (func $call_perform (result i32)))
        (memory 1) (data (i32.const 1000) "count")
        (table funcref (elem $answered $failed))
        (func $answered (param i32)
            (call $arg_copy (i32.const 0) (i32.const 0) (call $arg_size)) (call $reply (i32.const 0) (call $arg_size)))
        (func $failed (param i32) (call $trap (i32.const 1000) (i32.const 5)))
        (func (export "canister_update forward")
            (call $arg_copy (i32.const 0) (i32.const 0) (call $arg_size))
            (call $call_new (i32.const 0) (call $arg_size) (i32.const 1000) (i32.const 5)
                (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
            (if (call $call_perform) (then (unreachable))))"#,
    )
}
