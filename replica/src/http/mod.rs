//! The IC's HTTP interface, as far as agents, icp-cli and browsers need it: `/api/v2/status`, and `call`, `query` and
//! `read_state` of canisters and of the subnet.
//!
//! Signatures of senders are checked, and answers are certified: nothing has to be switched off in a client. There is
//! one subnet, which is the root, with one node. What is not served: WebAuthn keys, `sender_info`, subnet metrics.

mod auth;
mod directory;
mod effective;
mod history;
mod keys;
mod limits;
mod node;
mod state;
mod tree;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use candid::Principal;
use effective::EffectiveId;
pub(crate) use keys::Keys;
use limits::{BODY_BYTES_MAX, CALL_WAIT};
pub(crate) use node::Node;
use node::Submitted;
use serde::Serialize;
use std::sync::Arc;
use tower_http::cors::{Any, CorsLayer};

const CBOR: &str = "application/cbor";

/// Status and text of a request that is not answered otherwise.
#[derive(Debug)]
pub(crate) struct Failure(StatusCode, String);

/// A body of CBOR.
type Answer = Result<Vec<u8>, Failure>;

impl Failure {
    fn bad(message: impl std::fmt::Display) -> Self {
        Self(StatusCode::BAD_REQUEST, message.to_string())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

/// The interface of one instance. Browsers may use it from everywhere.
pub(crate) fn router(node: Arc<Node>) -> Router {
    let cors = CorsLayer::new().allow_origin(Any).allow_methods([Method::GET, Method::POST]).allow_headers([
        header::ACCEPT,
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
    ]);
    Router::new()
        .route("/api/v2/status", get(status))
        .route("/api/{version}/canister/{id}/{verb}", post(on_canister))
        .route("/api/{version}/subnet/{id}/{verb}", post(on_subnet))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(cors)
        .with_state(node)
}

#[derive(Serialize)]
struct Status<'a> {
    impl_version: &'static str,
    replica_health_status: &'static str,
    #[serde(with = "serde_bytes")]
    root_key: &'a [u8],
}

async fn status(State(node): State<Arc<Node>>) -> Response {
    respond(state::cbor(&Status {
        impl_version: concat!("icsql-replica ", env!("CARGO_PKG_VERSION")),
        replica_health_status: "healthy",
        root_key: node.keys.root_der(),
    }))
}

type Target = Path<(String, String, String)>;

async fn on_canister(
    State(node): State<Arc<Node>>,
    Path((version, id, verb)): Target,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match parse(&id) {
        Ok(id) => dispatch(node, &version, &verb, EffectiveId::Canister(id), &headers, body).await,
        Err(failure) => failure.into_response(),
    }
}

async fn on_subnet(
    State(node): State<Arc<Node>>,
    Path((version, id, verb)): Target,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match parse(&id) {
        Ok(id) => dispatch(node, &version, &verb, EffectiveId::Subnet(id), &headers, body).await,
        Err(failure) => failure.into_response(),
    }
}

fn parse(id: &str) -> Result<Principal, Failure> {
    Principal::from_text(id).map_err(|e| Failure::bad(format!("'{id}' in the URL is not a principal: {e}")))
}

async fn dispatch(
    node: Arc<Node>,
    version: &str,
    verb: &str,
    effective: EffectiveId,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !content_type.eq_ignore_ascii_case(CBOR) {
        return Failure::bad(format!("Unexpected content-type '{content_type}', expected {CBOR}")).into_response();
    }
    match (version, verb) {
        ("v2", "call") => call(node, effective, body, false).await,
        ("v3" | "v4", "call") => call(node, effective, body, true).await,
        ("v2" | "v3", "query") => respond(blocking(move || node.query(effective, &body)).await),
        ("v2" | "v3", "read_state") => respond(blocking(move || node.read_state(effective, &body)).await),
        _ => {
            Failure(StatusCode::NOT_FOUND, format!("there is no endpoint {verb} in version {version}")).into_response()
        }
    }
}

/// Takes a call in, and waits for its answer if `wait`. The call runs on whether anyone waits or not.
async fn call(node: Arc<Node>, effective: EffectiveId, body: Bytes, wait: bool) -> Response {
    // From before the call, so that no round is missed.
    let mut rounds = node.instance.rounds.subscribe();
    let submitting = Arc::clone(&node);
    let id = match blocking(move || submitting.submit(effective, &body)).await {
        Ok(Submitted::Accepted(id)) => id,
        Ok(Submitted::Refused(body)) => return respond(Ok(body)),
        Err(failure) => return failure.into_response(),
    };
    if !wait {
        return StatusCode::ACCEPTED.into_response();
    }
    let deadline = tokio::time::Instant::now() + CALL_WAIT;
    loop {
        let answering = Arc::clone(&node);
        match blocking(move || answering.answer(&id)).await {
            Ok(Some(body)) => return respond(Ok(body)),
            Ok(None) => {}
            Err(failure) => return failure.into_response(),
        }
        if !matches!(tokio::time::timeout_at(deadline, rounds.changed()).await, Ok(Ok(()))) {
            return StatusCode::ACCEPTED.into_response();
        }
    }
}

/// Runs work that takes its time apart from the threads that serve the sockets.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Failure(StatusCode::INTERNAL_SERVER_ERROR, format!("the replica failed: {error}"))))
}

fn respond(answer: Answer) -> Response {
    match answer {
        Ok(body) => ([(header::CONTENT_TYPE, CBOR)], body).into_response(),
        Err(failure) => failure.into_response(),
    }
}
