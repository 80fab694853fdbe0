//! The raw HTTP gateway: what a browser asks of `http://<canister-id>.localhost:<port>/…` becomes a query of the
//! canister's `http_request`, or an update of its `http_request_update` when it asks for that.
//!
//! The canister is named by the host's first label, `<canister-id>.localhost` or `<canister-id>.raw.localhost`, or else
//! by `?canisterId=<canister-id>`. Responses are passed on as they are: certificates in their headers are not checked,
//! also not without `raw`.

mod message;

use crate::limits::{GATEWAY_CALLBACKS_MAX, GATEWAY_REQUEST_BYTES_MAX};
use crate::types::{ErrorCode, INGRESS_BYTES_MAX, Reject};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use candid::Principal;
use message::{HttpResponse, Streaming};
use std::sync::Arc;
use tower::ServiceExt;

/// The query parameter that names the canister when the host does not.
const CANISTER_PARAMETER: &str = "canisterId";
/// Headers that belong to one connection and are the server's own business.
const CONNECTION_HEADERS: [HeaderName; 5] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE, header::TRAILER];

/// What the gateway needs of a replica. Calls block until they are answered; their sender is the anonymous principal.
pub(crate) trait Canisters: Send + Sync + 'static {
    /// Whether there is such a canister.
    fn exists(&self, id: Principal) -> bool;
    /// Calls a query method.
    fn query(&self, id: Principal, method: &str, argument: &[u8]) -> Result<Vec<u8>, Reject>;
    /// Calls an update method.
    fn update(&self, id: Principal, method: &str, argument: &[u8]) -> Result<Vec<u8>, Reject>;
}

type Shared = Arc<dyn Canisters>;
/// Status and words of a request that no canister answers.
type Failure = (StatusCode, String);

/// Serves every path. Made to be the fallback of a router with paths of its own.
pub(crate) fn router(canisters: Shared) -> Router {
    Router::new().fallback(serve).layer(DefaultBodyLimit::max(GATEWAY_REQUEST_BYTES_MAX)).with_state(canisters)
}

/// The gateway and `app` on one port: requests whose host names a canister are for the gateway, but for those to `/api/`,
/// where pages of canisters expect the IC's interface; of the others, those to paths that `app` does not have.
pub(crate) fn before(app: Router, canisters: Shared) -> Router {
    let gateway = router(canisters);
    app.fallback_service(gateway.clone()).layer(axum::middleware::from_fn(move |request: Request, next: Next| {
        let gateway = gateway.clone();
        async move {
            let canister = canister_in_host(request.headers(), request.uri());
            if canister.is_none() || request.uri().path().starts_with("/api/") {
                return next.run(request).await;
            }
            gateway.oneshot(request).await.unwrap_or_else(|never| match never {})
        }
    }))
}

async fn serve(
    State(canisters): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    answer(canisters, method, uri, headers, body).await.unwrap_or_else(|(status, words)| {
        (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{words}\n")).into_response()
    })
}

async fn answer(
    canisters: Shared,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failure> {
    let canister = canister_of(&headers, &uri)?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            (rejection.status(), format!("the request's body has more than {GATEWAY_REQUEST_BYTES_MAX} bytes"))
        }
        status => (status, rejection.to_string()),
    })?;
    let url = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = message::HttpRequest::new(&method, url, &headers, body.to_vec());
    let response = {
        let canisters = Arc::clone(&canisters);
        blocking(move || call(&*canisters, canister, request)).await?
    };
    let head = method == Method::HEAD;
    respond(canisters, canister, response, head)
}

/// The canister that the host's first label names.
fn canister_in_host(headers: &HeaderMap, uri: &Uri) -> Option<Principal> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).or(uri.host()).unwrap_or_default();
    let (first, _domain) = host.split_once('.')?;
    Principal::from_text(first).ok()
}

/// The canister that a request is for.
fn canister_of(headers: &HeaderMap, uri: &Uri) -> Result<Principal, Failure> {
    if let Some(id) = canister_in_host(headers, uri) {
        return Ok(id);
    }
    let parameters = uri.query().unwrap_or_default().split('&');
    let given = parameters.filter_map(|p| p.split_once('=')).find(|(name, _)| *name == CANISTER_PARAMETER);
    let Some((_, text)) = given else {
        return Err((
            StatusCode::BAD_REQUEST,
            format!(
                "no canister is named: ask http://<canister-id>.localhost:<port>/ or add ?{CANISTER_PARAMETER}=<canister-id>"
            ),
        ));
    };
    Principal::from_text(text)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("{text:?} is no canister id: {error}")))
}

/// Asks the canister. Runs on a thread that may block.
fn call(canisters: &dyn Canisters, id: Principal, mut request: message::HttpRequest) -> Result<HttpResponse, Failure> {
    if !canisters.exists(id) {
        return Err((StatusCode::NOT_FOUND, format!("there is no canister {id} on this replica")));
    }
    let reply = canisters.query(id, "http_request", &encode(&request)?);
    let response = decode(id, &reply.map_err(|reject| rejected(id, &reject))?)?;
    if !response.upgrade {
        return Ok(response);
    }
    request.certificate_version = None;
    let argument = encode(&request)?;
    if argument.len() > INGRESS_BYTES_MAX {
        let words = format!("the request has {} bytes as a call, more than {INGRESS_BYTES_MAX}", argument.len());
        return Err((StatusCode::PAYLOAD_TOO_LARGE, words));
    }
    let reply = canisters.update(id, "http_request_update", &argument);
    decode(id, &reply.map_err(|reject| rejected(id, &reject))?)
}

fn encode(request: &message::HttpRequest) -> Result<Vec<u8>, Failure> {
    candid::encode_one(request)
        .map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, format!("the request does not encode: {e}")))
}

fn decode(id: Principal, reply: &[u8]) -> Result<HttpResponse, Failure> {
    HttpResponse::decode(reply)
        .map_err(|problem| (StatusCode::BAD_GATEWAY, format!("canister {id} answered no HTTP response: {problem}")))
}

/// What a reject of the canister is to a browser.
fn rejected(id: Principal, reject: &Reject) -> Failure {
    let status = match reject.code {
        ErrorCode::CanisterNotFound | ErrorCode::CanisterMethodNotFound | ErrorCode::CanisterWasmModuleNotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::CanisterStopped | ErrorCode::CanisterStopping | ErrorCode::CanisterOutOfCycles => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::CanisterRejectedMessage => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, format!("canister {id} did not answer: {reject}"))
}

/// The canister's response as HTTP.
fn respond(canisters: Shared, id: Principal, response: HttpResponse, head: bool) -> Result<Response, Failure> {
    let bad = |words: String| (StatusCode::BAD_GATEWAY, format!("canister {id} answered {words}"));
    let status = StatusCode::from_u16(response.status_code).ok().filter(|status| !status.is_informational());
    let status =
        status.ok_or_else(|| bad(format!("the status code {}, which HTTP does not have", response.status_code)))?;
    let mut headers = HeaderMap::new();
    for (name, value) in response.headers {
        let valid = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(&value).ok());
        let (name, value) =
            valid.ok_or_else(|| bad(format!("the header {name:?}: {value:?}, which HTTP does not allow")))?;
        // The length is that of the body that goes out, which a HEAD request does not see.
        if !CONNECTION_HEADERS.contains(&name) && (head || name != header::CONTENT_LENGTH) {
            headers.append(name, value);
        }
    }
    let body = match response.streaming {
        Some(streaming) if !head => stream(canisters, response.body, streaming),
        _ => Body::from(response.body),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

/// The body's first part, and one after another those that the canister's callback gives. A callback that fails ends the
/// connection, so that nobody takes a part for the whole.
fn stream(canisters: Shared, first: Vec<u8>, streaming: Streaming) -> Body {
    let start = (Some(first), Some(streaming), 0);
    Body::from_stream(futures_util::stream::try_unfold(start, move |(ready, next, calls)| {
        let canisters = Arc::clone(&canisters);
        async move {
            if let Some(part) = ready {
                return Ok(Some((Bytes::from(part), (None, next, calls))));
            }
            let Some(streaming) = next else { return Ok(None) };
            if calls == GATEWAY_CALLBACKS_MAX {
                return Err(std::io::Error::other(format!("more than {GATEWAY_CALLBACKS_MAX} streaming callbacks")));
            }
            let part = blocking(move || {
                let reply = canisters.query(streaming.canister, &streaming.method, &streaming.token);
                let reply = reply.map_err(|reject| rejected(streaming.canister, &reject))?;
                streaming.next(&reply).map_err(|problem| (StatusCode::BAD_GATEWAY, problem))
            });
            let (part, next) = part.await.map_err(|(_, words)| std::io::Error::other(words))?;
            Ok(Some((Bytes::from(part), (None, next, calls + 1))))
        }
    }))
}

/// Runs work that blocks apart from the threads that serve the sockets.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("the replica failed: {error}"))),
    }
}
