//! Serves HTTP requests in every way that the platform knows: as a query, as an update, and in parts. Each path is a case.

use std::cell::Cell;

use candid::{CandidType, Deserialize, Func, define_function};
use ic_cdk::api::canister_self;

/// Parts that `/stream` has behind its first.
const PARTS: u32 = 5;

thread_local! {
    static UPDATES: Cell<u32> = const { Cell::new(0) };
}

#[derive(CandidType, Deserialize)]
struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    certificate_version: Option<u16>,
}

/// Where a streamed body goes on.
#[derive(CandidType, Deserialize)]
struct Token {
    part: u32,
    bytes: u32,
}

define_function!(StreamCallback : (Token) -> (Part) query);

#[derive(CandidType, Deserialize)]
enum Strategy {
    Callback { callback: StreamCallback, token: Token },
}

#[derive(CandidType, Deserialize)]
struct Part {
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    token: Option<Token>,
}

#[derive(CandidType, Deserialize, Default)]
struct Response {
    status_code: u16,
    headers: Vec<(String, String)>,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    upgrade: Option<bool>,
    streaming_strategy: Option<Strategy>,
}

fn answer(status_code: u16, body: impl Into<Vec<u8>>) -> Response {
    let headers = vec![("content-type".to_string(), "text/plain".to_string())];
    Response { status_code, headers, body: body.into(), ..Response::default() }
}

/// What the canister was asked, a line each, and the body at the end.
fn echo(request: Request) -> Response {
    let mut text = format!("{} {}\n", request.method, request.url);
    text += &format!("certificate_version {:?}\n", request.certificate_version);
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\n");
    }
    let mut body = text.into_bytes();
    body.extend(request.body);
    answer(200, body)
}

fn stream(method: &str, bytes: u32) -> Response {
    let callback = StreamCallback(Func { principal: canister_self(), method: method.to_string() });
    let strategy = Strategy::Callback { callback, token: Token { part: 1, bytes } };
    Response { streaming_strategy: Some(strategy), ..answer(200, part_bytes(0, bytes)) }
}

fn part_bytes(part: u32, bytes: u32) -> Vec<u8> {
    vec![b'a' + (part % 26) as u8; bytes as usize]
}

#[ic_cdk::query]
fn http_request(request: Request) -> Response {
    let path = request.url.split('?').next().unwrap_or_default().to_string();
    match path.as_str() {
        "/echo" => echo(request),
        "/upgrade" => Response { upgrade: Some(true), ..answer(200, "not this") },
        "/stream" => stream("http_more", 1_500_000),
        "/endless" => stream("http_endless", 1),
        "/broken" => stream("http_broken", 10),
        "/missing" => answer(404, "no such page"),
        "/code" => answer(path_number(&request.url), "a code"),
        "/headers" => Response {
            headers: [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Content-Length", "999"), ("X-Own", "yes")]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .to_vec(),
            ..answer(301, "moved")
        },
        "/bad-header" => Response { headers: vec![("no good".into(), "x\ny".into())], ..answer(200, "") },
        "/big" => answer(200, vec![b'x'; 2_900_000]),
        "/trap" => ic_cdk::trap("trapped on purpose"),
        _ => answer(200, "home"),
    }
}

/// The number behind the question mark.
fn path_number(url: &str) -> u16 {
    url.split('?').nth(1).and_then(|text| text.split('&').next()?.parse().ok()).unwrap_or_default()
}

#[ic_cdk::update]
fn http_request_update(request: Request) -> Response {
    UPDATES.set(UPDATES.get() + 1);
    let mut response = echo(request);
    response.status_code = 201;
    response.body.extend(format!("\nupdate {}", UPDATES.get()).bytes());
    response
}

#[ic_cdk::query]
fn http_more(token: Token) -> Part {
    let next = (token.part < PARTS).then_some(Token { part: token.part + 1, bytes: token.bytes });
    Part { body: part_bytes(token.part, token.bytes), token: next }
}

#[ic_cdk::query]
fn http_endless(token: Token) -> Part {
    Part { body: vec![b'e'], token: Some(Token { part: token.part + 1, bytes: 1 }) }
}

#[ic_cdk::query]
fn http_broken(token: Token) -> Part {
    if token.part == 2 {
        ic_cdk::trap("the second part is missing");
    }
    Part { body: part_bytes(token.part, token.bytes), token: Some(Token { part: token.part + 1, bytes: token.bytes }) }
}
