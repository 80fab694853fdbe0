//! What the IC's HTTP interface refuses, and what it takes only once.

mod common;
#[path = "common/ic.rs"]
mod ic;

use candid::Principal;
use ic::{Server, basic, canister, in_seconds};
use ic_agent::agent::EnvelopeContent;
use ic_agent::{Agent, Identity};
use ic_transport_types::{Envelope, QueryResponse, TransportCallResponse};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A replica with a canister, and what requests to it are made of.
struct World {
    server: Server,
    agent: Agent,
    id: Principal,
}

impl World {
    async fn new() -> Self {
        let server = Server::start();
        let agent = server.anonymous().await;
        let id = server.deploy(&agent, &canister()).await;
        Self { server, agent, id }
    }

    fn call(&self, sender: Principal, method: &str) -> EnvelopeContent {
        EnvelopeContent::Call {
            nonce: None,
            ingress_expiry: in_seconds(60),
            sender,
            canister_id: self.id,
            method_name: method.into(),
            arg: Vec::new(),
            sender_info: None,
        }
    }

    fn query(&self, sender: Principal, ingress_expiry: u64) -> EnvelopeContent {
        EnvelopeContent::Query {
            nonce: None,
            ingress_expiry,
            sender,
            canister_id: self.id,
            method_name: "counted".into(),
            arg: Vec::new(),
            sender_info: None,
        }
    }

    fn url(&self, version: &str, verb: &str) -> String {
        format!("/api/{version}/canister/{}/{verb}", self.id)
    }

    /// Status and text of an answer.
    fn send(&self, version: &str, verb: &str, envelope: &Envelope<'_>) -> (u16, String) {
        let (status, body) = self.server.post(&self.url(version, verb), &envelope.encode_bytes());
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    #[track_caller]
    fn refuses(&self, verb: &str, envelope: &Envelope<'_>, expected: u16, words: &str) {
        let (status, text) = self.send("v3", verb, envelope);
        assert!(status == expected && text.contains(words), "{status} {text}, and not {expected} {words}");
    }

    async fn count(&self) -> u64 {
        let reply = self.agent.query(&self.id, "counted").call().await.expect("the count");
        u64::from_le_bytes(reply.try_into().unwrap())
    }
}

fn unsigned(content: EnvelopeContent) -> Envelope<'static> {
    Envelope { content: Cow::Owned(content), sender_pubkey: None, sender_sig: None, sender_delegation: None }
}

fn signed(content: EnvelopeContent, identity: &dyn Identity) -> Envelope<'static> {
    let signature = identity.sign(&content).unwrap();
    let (sender_pubkey, sender_sig) = (signature.public_key, signature.signature);
    Envelope { sender_pubkey, sender_sig, ..unsigned(content) }
}

fn anonymous() -> Principal {
    Principal::anonymous()
}

#[tokio::test]
async fn signatures_that_do_not_fit() {
    let world = World::new().await;
    let (me, other) = (basic(1), basic(2));
    let sender = me.sender().unwrap();
    let good = signed(world.call(sender, "count"), &*me);
    for at in [0, 31, 63] {
        let mut envelope = good.clone();
        envelope.sender_sig.as_mut().unwrap()[at] ^= 1;
        world.refuses("call", &envelope, 400, "Invalid signature");
    }
    let mut envelope = good.clone();
    envelope.sender_sig = Some(Vec::new());
    world.refuses("call", &envelope, 400, "Invalid signature");
    // Another content than the signed one.
    let envelope = Envelope { content: Cow::Owned(world.call(sender, "fail")), ..good.clone() };
    world.refuses("call", &envelope, 400, "Invalid signature");
    world.refuses("call", &signed(world.call(sender, "count"), &*other), 400, "is not the principal");
    world.refuses("call", &unsigned(world.call(sender, "count")), 400, "Missing signature");
    world.refuses("call", &signed(world.call(anonymous(), "count"), &*me), 400, "must have no signature");
    world.refuses("query", &signed(world.query(sender, in_seconds(60)), &*other), 400, "is not the principal");
    let key = b"no key".to_vec();
    let stranger = world.call(Principal::self_authenticating(&key), "count");
    let envelope = Envelope { sender_pubkey: Some(key), sender_sig: Some(vec![0; 64]), ..unsigned(stranger) };
    world.refuses("call", &envelope, 400, "is not an Ed25519");
    assert_eq!(world.count().await, 0);
    assert_eq!(world.send("v3", "call", &good).0, 200);
    assert_eq!(world.count().await, 1);
}

#[tokio::test]
async fn requests_out_of_their_time() {
    let world = World::new().await;
    let expiring = |at: u64| {
        let mut content = world.call(anonymous(), "count");
        if let EnvelopeContent::Call { ingress_expiry, .. } = &mut content {
            *ingress_expiry = at;
        }
        unsigned(content)
    };
    // Agents look for these words.
    let words = "Invalid request expiry: Specified ingress_expiry not within expected range";
    for expiry in [0, in_seconds(-1), in_seconds(365), u64::MAX] {
        world.refuses("call", &expiring(expiry), 400, words);
    }
    let me = basic(1);
    world.refuses("query", &signed(world.query(me.sender().unwrap(), in_seconds(-1)), &*me), 400, words);
    assert_eq!(world.count().await, 0);
    for expiry in [in_seconds(5), in_seconds(355)] {
        assert_eq!(world.send("v3", "call", &expiring(expiry)).0, 200);
    }
    // Nobody in particular may ask at any time.
    assert_eq!(world.send("v3", "query", &unsigned(world.query(anonymous(), 0))).0, 200);
    assert_eq!(world.count().await, 2);
}

#[tokio::test]
async fn a_request_is_executed_once() {
    let world = World::new().await;
    let envelope = unsigned(world.call(anonymous(), "count"));
    let reply = |body: &str| body.to_owned();
    let first = world.send("v4", "call", &envelope);
    assert_eq!(first.0, 200, "{}", reply(&first.1));
    for version in ["v4", "v3"] {
        assert_eq!(world.send(version, "call", &envelope).0, 200);
    }
    assert_eq!(world.send("v2", "call", &envelope).0, 202);
    assert_eq!(world.count().await, 1);
    // Another nonce makes another request.
    for nonce in 0..3 {
        let mut content = world.call(anonymous(), "count");
        if let EnvelopeContent::Call { nonce: place, .. } = &mut content {
            *place = Some(vec![nonce; 32]);
        }
        assert_eq!(world.send("v3", "call", &unsigned(content)).0, 200);
    }
    assert_eq!(world.count().await, 4);
    let mut content = world.call(anonymous(), "count");
    if let EnvelopeContent::Call { nonce: place, .. } = &mut content {
        *place = Some(vec![0; 33]);
    }
    world.refuses("call", &unsigned(content), 400, "33 bytes");
}

#[tokio::test]
async fn malformed_requests() {
    let world = World::new().await;
    let good = unsigned(world.call(anonymous(), "count")).encode_bytes();
    let call = world.url("v3", "call");
    let status = |path: &str, body: &[u8]| world.server.post(path, body).0;
    for length in [0, 1, 3, 10, good.len() / 2, good.len() - 1] {
        assert_eq!(status(&call, &good[..length]), 400, "{length} bytes");
    }
    assert_eq!(status(&call, &[&good[..], &[0]].concat()), 400);
    assert_eq!(status(&call, &[0x9f; 100_000]), 400);
    assert_eq!(status(&call, b"\xd9\xd9\xf7\xa0"), 400);
    // Another kind of request than the endpoint's.
    assert_eq!(status(&world.url("v3", "query"), &good), 400);
    assert_eq!(status(&world.url("v3", "read_state"), &good), 400);
    assert_eq!(status(&call, &unsigned(world.query(anonymous(), in_seconds(60))).encode_bytes()), 400);
    // URLs.
    assert_eq!(status("/api/v3/canister/aaaa/call", &good), 400);
    assert_eq!(status("/api/v3/canister/aaaaa-aa/call", &good), 400);
    assert_eq!(status("/api/v3/subnet/aaaaa-aa/call", &good), 400);
    assert_eq!(status(&world.url("v1", "call"), &good), 404);
    assert_eq!(status(&world.url("v3", "nothing"), &good), 404);
    assert_eq!(world.server.request("GET", &call, "", b"").0, 405);
    assert_eq!(world.server.request("POST", &call, "content-type: text/plain\r\n", &good).0, 400);
    assert_eq!(world.count().await, 0);
    assert_eq!(status(&call, &good), 200);
}

#[tokio::test]
async fn sizes_of_requests() {
    let world = World::new().await;
    // An envelope of exactly this many bytes.
    let sized = |mut content: EnvelopeContent, bytes: usize| {
        let mut length = bytes;
        loop {
            if let EnvelopeContent::Call { arg, .. } | EnvelopeContent::Query { arg, .. } = &mut content {
                arg.resize(length, 0);
            }
            let body = unsigned(content.clone()).encode_bytes();
            if body.len() == bytes {
                return body;
            }
            length = length + bytes - body.len();
        }
    };
    let (call_max, body_max) = (2 * 1024 * 1024, 4 * 1024 * 1024);
    for (bytes, status) in [(call_max - 1, 200), (call_max, 200), (call_max + 1, 413), (body_max + 1, 413)] {
        let body = sized(world.call(anonymous(), "count"), bytes);
        assert_eq!(world.server.post(&world.url("v3", "call"), &body).0, status, "{bytes} bytes");
    }
    for (bytes, status) in [(body_max - 1, 200), (body_max, 200), (body_max + 1, 413)] {
        let body = sized(world.query(anonymous(), 0), bytes);
        assert_eq!(world.server.post(&world.url("v3", "query"), &body).0, status, "{bytes} bytes");
    }
}

#[tokio::test]
async fn paths_that_cannot_be_read() {
    let world = World::new().await;
    let read = |paths: &[&[&[u8]]]| {
        let paths = paths.iter().map(|path| path.iter().map(|label| (*label).into()).collect()).collect();
        unsigned(EnvelopeContent::ReadState { ingress_expiry: 0, sender: anonymous(), paths })
    };
    let id = world.id.as_slice();
    let other = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 9, 1, 1]);
    let unreadable: [&[&[u8]]; 4] = [&[], &[b"nothing"], &[b"canister"], &[b"canister", id, b"certified_data"]];
    for path in unreadable {
        world.refuses("read_state", &read(&[path]), 404, "Invalid path requested");
    }
    world.refuses("read_state", &read(&[&[b"canister", other.as_slice(), b"module_hash"]]), 400, "effective");
    world.refuses("read_state", &read(&[&[b"canister", &[1; 30], b"module_hash"]]), 400, "principal");
    world.refuses("read_state", &read(&[&[b"request_status", &[1; 31]]]), 400, "32 bytes");
    let two: [&[&[u8]]; 2] = [&[b"request_status", &[1; 32]], &[b"request_status", &[2; 32]]];
    world.refuses("read_state", &read(&two), 400, "more than one request id");
    let time: &[&[u8]] = &[b"time"];
    world.refuses("read_state", &read(&[&[time[0]; 127]]), 404, "Invalid path requested");
    world.refuses("read_state", &read(&[&[time[0]; 128]]), 400, "128 labels");
    world.refuses("read_state", &read(&[time; 1_001]), 400, "1001 paths");
    for count in [0, 1, 999, 1_000] {
        assert_eq!(world.send("v3", "read_state", &read(&vec![time; count])).0, 200, "{count} paths");
    }
    assert_eq!(world.send("v2", "read_state", &read(&[&[b"request_status", &[1; 32], b"reply"]])).0, 200);
}

#[tokio::test]
async fn clients_that_hang_up_disturb_nobody() {
    let world = World::new().await;
    let headers = "content-type: application/cbor\r\n";
    let url = world.url("v3", "call");
    let body = |method, nonce: u8| {
        let mut content = world.call(anonymous(), method);
        if let EnvelopeContent::Call { nonce: place, .. } = &mut content {
            *place = Some(vec![nonce]);
        }
        unsigned(content).encode_bytes()
    };
    // Those that are gone when their calls run: each takes a while, and nobody is told before the first has run.
    let streams: Vec<_> =
        (0..5).map(|nonce| world.server.send("POST", &url, headers, &body("count_slowly", nonce))).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    let reaches = async |expected: u64| {
        while world.count().await < expected {
            assert!(Instant::now() < deadline, "{} calls were executed, not {expected}", world.count().await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    reaches(1).await;
    drop(streams);
    reaches(5).await;
    // Those that are gone before they have been listened to, or promise more than they send.
    for nonce in 0..20 {
        drop(world.server.send("POST", &url, headers, &body("count", 100 + nonce)));
        drop(world.server.send("POST", &url, "content-type: application/cbor\r\nexpect: 100-continue\r\n", b"half"));
        let mut partial = world.server.send("GET", "/api/v2/status", "transfer-encoding: chunked\r\n", b"");
        let _ = std::io::Write::write_all(&mut partial, b"ffff\r\nhalf");
    }
    assert_eq!(world.agent.update(&world.id, "caller").await.unwrap(), anonymous().as_slice());
    assert!((5..=25).contains(&world.count().await));
}

#[tokio::test]
async fn answers_by_hand() {
    let world = World::new().await;
    let (status, body) = world.server.request("GET", "/api/v2/status", "origin: http://a.example\r\n", b"");
    let map: std::collections::BTreeMap<String, serde_cbor::Value> = serde_cbor::from_slice(&body).unwrap();
    assert_eq!((status, &body[..3]), (200, &[0xd9, 0xd9, 0xf7][..]));
    assert_eq!(map["replica_health_status"], serde_cbor::Value::Text("healthy".into()));
    assert_eq!(map["root_key"], serde_cbor::Value::Bytes(world.agent.read_root_key()));
    let (_, body) =
        world.server.post(&world.url("v4", "call"), &unsigned(world.call(anonymous(), "turned_away")).encode_bytes());
    let refused = serde_cbor::from_slice::<TransportCallResponse>(&body).unwrap();
    assert!(
        matches!(refused, TransportCallResponse::NonReplicatedRejection(r) if r.error_code.as_deref() == Some("IC0406"))
    );
    let (_, body) = world.server.post(&world.url("v2", "query"), &unsigned(world.query(anonymous(), 0)).encode_bytes());
    let answer = serde_cbor::from_slice::<QueryResponse>(&body).unwrap();
    assert!(
        answer.signatures().len() == 1 && matches!(answer, QueryResponse::Replied { reply, .. } if reply.arg == [0; 8])
    );
}
