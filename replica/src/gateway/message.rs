//! The Candid of HTTP requests and responses.

use axum::http::{HeaderMap, Method};
use candid::types::value::{IDLArgs, IDLField, IDLValue};
use candid::{CandidType, Principal, idl_hash};
use serde::Serialize;

/// The version of certified responses that the gateway says it takes; it passes them on unchecked.
const CERTIFICATE_VERSION: u16 = 2;

/// The argument of `http_request`, and without `certificate_version` that of `http_request_update`.
#[derive(CandidType, Serialize)]
pub(super) struct HttpRequest {
    method: String,
    /// Path and query.
    url: String,
    headers: Vec<(String, String)>,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    pub certificate_version: Option<u16>,
}

impl HttpRequest {
    pub fn new(method: &Method, url: &str, headers: &HeaderMap, body: Vec<u8>) -> Self {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Self {
            method: method.to_string(),
            url: url.to_owned(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            body,
            certificate_version: Some(CERTIFICATE_VERSION),
        }
    }
}

/// What `http_request` and `http_request_update` answer.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub status_code: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Ask again with an update.
    pub upgrade: bool,
    pub streaming: Option<Streaming>,
}

/// How the next part of a body is had: a query, and its encoded argument.
#[derive(Debug)]
pub(super) struct Streaming {
    pub canister: Principal,
    pub method: String,
    pub token: Vec<u8>,
}

/// Decoded without types: a token has a type that only its canister knows.
fn decode_record(reply: &[u8]) -> Result<Vec<IDLField>, String> {
    let args = IDLArgs::from_bytes(reply).map_err(|e| e.to_string())?.args;
    match args.into_iter().next() {
        Some(IDLValue::Record(fields)) => Ok(fields),
        _ => Err("the reply is no record".into()),
    }
}

/// The value of a field; that of an absent one is null.
fn take(fields: &mut Vec<IDLField>, name: &str) -> IDLValue {
    let position = fields.iter().position(|field| field.id.get_id() == idl_hash(name));
    position.map_or(IDLValue::None, |at| fields.swap_remove(at).val)
}

fn wrong<T>(field: &str, expected: &str) -> Result<T, String> {
    Err(format!("its field '{field}' is not {expected}"))
}

fn blob(value: IDLValue) -> Result<Vec<u8>, String> {
    match value {
        IDLValue::Blob(bytes) => Ok(bytes),
        // An empty vector carries no hint of what it would hold.
        IDLValue::Vec(empty) if empty.is_empty() => Ok(Vec::new()),
        _ => wrong("body", "a blob"),
    }
}

fn optional(value: IDLValue) -> Option<IDLValue> {
    match value {
        IDLValue::Opt(value) => Some(*value),
        _ => None,
    }
}

fn header(value: IDLValue) -> Result<(String, String), String> {
    let IDLValue::Record(mut pair) = value else { return wrong("headers", "a vector of pairs") };
    pair.sort_by_key(|field| field.id.get_id());
    let mut texts = pair.into_iter().map(|field| field.val);
    match (texts.next(), texts.next(), texts.next()) {
        (Some(IDLValue::Text(name)), Some(IDLValue::Text(value)), None) => Ok((name, value)),
        _ => wrong("headers", "a vector of pairs of texts"),
    }
}

fn encode_token(token: IDLValue) -> Result<Vec<u8>, String> {
    IDLArgs::new(&[token]).to_bytes().map_err(|e| format!("its streaming token does not encode again: {e}"))
}

impl HttpResponse {
    pub fn decode(reply: &[u8]) -> Result<Self, String> {
        let mut fields = decode_record(reply)?;
        let status_code = match take(&mut fields, "status_code") {
            IDLValue::Nat16(code) => code,
            _ => return wrong("status_code", "a nat16"),
        };
        let headers = match take(&mut fields, "headers") {
            IDLValue::Vec(headers) => headers.into_iter().map(header).collect::<Result<_, _>>()?,
            _ => return wrong("headers", "a vector"),
        };
        let body = blob(take(&mut fields, "body"))?;
        let upgrade = optional(take(&mut fields, "upgrade")) == Some(IDLValue::Bool(true));
        let streaming = optional(take(&mut fields, "streaming_strategy")).map(Streaming::decode).transpose()?;
        Ok(Self { status_code, headers, body, upgrade, streaming })
    }
}

impl Streaming {
    /// `variant { Callback : record { callback : func; token : … } }`
    fn decode(strategy: IDLValue) -> Result<Self, String> {
        let callback = match strategy {
            IDLValue::Variant(strategy) if strategy.0.id.get_id() == idl_hash("Callback") => strategy.0.val,
            _ => return wrong("streaming_strategy", "a 'Callback'"),
        };
        let IDLValue::Record(mut fields) = callback else { return wrong("streaming_strategy", "a record") };
        let IDLValue::Func(canister, method) = take(&mut fields, "callback") else {
            return wrong("callback", "a function");
        };
        let token = encode_token(take(&mut fields, "token"))?;
        Ok(Self { canister, method, token })
    }

    /// The part in a callback's reply, and how the part behind it is had.
    pub fn next(self, reply: &[u8]) -> Result<(Vec<u8>, Option<Self>), String> {
        let mut fields = decode_record(reply)?;
        let body = blob(take(&mut fields, "body"))?;
        let token = optional(take(&mut fields, "token")).map(encode_token).transpose()?;
        Ok((body, token.map(|token| Self { token, ..self })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candid::define_function;

    #[derive(CandidType)]
    struct Token {
        at: u64,
        kind: Kind,
        path: Option<String>,
    }

    #[derive(CandidType)]
    #[allow(dead_code)]
    enum Kind {
        A,
        B(Vec<u8>),
    }

    define_function!(Callback : (Token) -> () query);

    #[derive(CandidType)]
    enum Strategy {
        Callback { callback: Callback, token: Token },
    }

    #[derive(CandidType)]
    struct Full {
        status_code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        upgrade: Option<bool>,
        streaming_strategy: Option<Strategy>,
    }

    #[derive(CandidType)]
    struct Least {
        status_code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    }

    #[derive(CandidType, serde::Deserialize, Debug, PartialEq)]
    struct TokenBack {
        at: u64,
        kind: KindBack,
        path: Option<String>,
    }

    #[derive(CandidType, serde::Deserialize, Debug, PartialEq)]
    enum KindBack {
        A,
        B(Vec<u8>),
    }

    #[test]
    fn responses_are_read_in_every_form() {
        let least = Least { status_code: 204, headers: vec![("b".into(), "a".into())], body: vec![] };
        let read = HttpResponse::decode(&candid::encode_one(least).unwrap()).unwrap();
        assert_eq!((read.status_code, read.body.len(), read.upgrade), (204, 0, false));
        assert_eq!(read.headers, [("b".to_owned(), "a".to_owned())]);
        assert!(read.streaming.is_none());

        let canister = Principal::from_slice(&[7; 10]);
        let token = Token { at: 300, kind: Kind::B(vec![1, 2]), path: None };
        let callback = Callback::new(canister, "more".into());
        let full = Full {
            status_code: 200,
            headers: vec![],
            body: b"part".to_vec(),
            upgrade: Some(true),
            streaming_strategy: Some(Strategy::Callback { callback, token }),
        };
        let read = HttpResponse::decode(&candid::encode_one(full).unwrap()).unwrap();
        assert!(read.upgrade && read.body == b"part");
        let streaming = read.streaming.unwrap();
        assert_eq!((streaming.canister, streaming.method.as_str()), (canister, "more"));
        // The token comes back as the canister's own type.
        let back: TokenBack = candid::decode_one(&streaming.token).unwrap();
        assert_eq!(back, TokenBack { at: 300, kind: KindBack::B(vec![1, 2]), path: None });
    }

    #[test]
    fn what_is_no_response_is_refused_in_words() {
        let refused = |reply: &[u8]| HttpResponse::decode(reply).unwrap_err();
        refused(b"");
        refused(b"junk");
        assert!(refused(&candid::encode_one(5u8).unwrap()).contains("no record"));
        #[derive(CandidType)]
        struct NoCode {
            body: Vec<u8>,
        }
        assert!(refused(&candid::encode_one(NoCode { body: vec![] }).unwrap()).contains("status_code"));
    }
}
