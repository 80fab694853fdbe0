//! Texts for people.

use crate::sql::{BY_CODE, COUNTRY, PAGE_ROWS, QUERY, country};
use base64::prelude::*;
use candid::{Principal, encode_args};
use icsql_types::ReadOptions;
use icsql_types::method::QUERY_CALL;

/// A number with a comma between groups of three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes as megabytes, to a tenth.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// A number in millions, to a tenth.
pub fn millions(number: u64) -> String {
    let tenths = (number + 50_000) / 100_000;
    format!("{}.{} million", thousands(tenths / 10), tenths % 10)
}

/// How to call the canister on this server, where it is on `instance`.
pub fn calls(server: &reqwest::Url, instance: &str, canister: Principal, controller: Principal) -> String {
    let named =
        (QUERY.to_owned(), country(), Some(ReadOptions { max_rows: Some(PAGE_ROWS), ..ReadOptions::default() }));
    let request = |sender: Principal, method: &str, argument: Vec<u8>| {
        format!(
            r#"{{"sender":"{}","canister_id":"{}","effective_principal":"None","method":"{method}","payload":"{}"}}"#,
            BASE64_STANDARD.encode(sender.as_slice()),
            BASE64_STANDARD.encode(canister.as_slice()),
            BASE64_STANDARD.encode(argument),
        )
    };
    // Texts always have an encoding.
    let text = |values: &[&str]| match *values {
        [key] => encode_args((key,)).unwrap_or_default(),
        [key, value] => encode_args((key, value)).unwrap_or_default(),
        _ => Vec::new(),
    };
    let read = |key: &str| {
        format!(
            "curl -s {instance}/read/query -d '{}' | cut -d'\"' -f4 | base64 -d; echo",
            request(Principal::anonymous(), "kv_get", text(&[key]))
        )
    };
    let by_code = BY_CODE;
    // These always have an encoding.
    let call = format!(
        "curl -s {instance}/read/query -d '{}' | cut -d'\"' -f4 | base64 -d | tr -cs '[:print:]' ' '; echo",
        request(Principal::anonymous(), QUERY_CALL.name, encode_args(named).unwrap_or_default())
    );
    let write = format!(
        "curl -s {instance}/update/submit_ingress_message -d '{}' | sed 's/^{{\"Ok\"://; s/}}$//' | curl -s {instance}/update/await_ingress_message -d @-; echo",
        request(controller, "kv_put", text(&["hello", "world"]))
    );
    let address = server.as_str().trim_end_matches('/');
    format!(
        r#"As long as this server runs, from the project's folder. The canister takes writes from anybody here.

With icp-cli (scripts/setup icp puts version 1.5.0 into .tools/bin):
  icp canister call -n {address} -k fetch {canister} kv_put '("hello", "world", null)'
  icp canister call -n {address} -k fetch {canister} kv_get '("hello")' --query
  icp canister call -n {address} -k fetch {canister} sql_query --query \
    '(record {{ sql = "{by_code}"; params = opt variant {{ Positional = vec {{ variant {{ Text = "ZRH" }} }} }} }}, null)'
  icp canister call -n {address} -k fetch {canister} query_call --query \
    '("{QUERY}", variant {{ Named = vec {{ record {{ "country"; variant {{ Text = "{COUNTRY}" }} }} }} }}, opt record {{ max_rows = opt {PAGE_ROWS} }})'

In JavaScript, with @icp-sdk/core (scripts/setup js installs it):
  node examples/js/main.mjs {address} {canister}
  node --input-type=module -e '
    import {{ connect }} from "./examples/js/icsql.mjs";
    const db = await connect("{address}", "{canister}");
    console.log(await db.query("{by_code}", ["ZRH"]));
    console.log(await db.call("{QUERY}", {{ country: "{COUNTRY}" }}, {{ maxRows: {PAGE_ROWS} }}));'

In Rust, with ic-agent:
  cargo run -p icsql-example-rust-agent -- {address} {canister}

With curl, by the PocketIC protocol: arguments and replies are Candid in base64, and the sender is whoever the request
names, without a signature.

  # kv_get "LSZH", as anybody; the reply is a few bytes of Candid and then the text
  {}

  # kv_put "hello" "world", as the controller; the canister answers with the version that it wrote
  {write}

  # kv_get "hello"
  {}

  # the named query, as anybody; a row is its values, each with a byte for its type and its length
  {call}

In tests in Rust, with the pocket-ic crate:
  PocketIc::new_from_existing_instance("{address}".parse()?, {}, None)
  and the canister {canister}

A canister of your own, with icp: on this server (on port 8008) -e replica, on the Internet Computer -e ic.
  icp deploy -e replica
"#,
        read("LSZH"),
        read("hello"),
        instance.rsplit('/').next().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        let shown = [0, 7, 999, 1_000, 28_298, 123_456, 1_000_000, u64::MAX].map(thousands);
        assert_eq!(
            shown,
            ["0", "7", "999", "1,000", "28,298", "123,456", "1,000,000", "18,446,744,073,709,551,615"]
                .map(String::from)
        );
    }

    #[test]
    fn millions_have_a_tenth() {
        assert_eq!(
            [0, 49_999, 50_000, 6_250_000, 12_345_678_901].map(millions),
            ["0.0 million", "0.0 million", "0.1 million", "6.3 million", "12,345.7 million"]
        );
    }

    #[test]
    fn requests_name_the_canister_and_hold_the_arguments() {
        let canister = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 7, 1, 1]);
        let controller = Principal::self_authenticating(b"somebody");
        let server = "http://127.0.0.1:8008/".parse().unwrap();
        let text = calls(&server, "http://127.0.0.1:8008/instances/3", canister, controller);
        let requests: Vec<serde_json::Value> = text
            .lines()
            .filter_map(|line| line.split_once(" -d '{"))
            .map(|(_, rest)| serde_json::from_str(&format!("{{{}", rest.split('\'').next().unwrap())).unwrap())
            .collect();
        let bytes = |value: &serde_json::Value| BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap();
        assert_eq!(requests.len(), 4);
        assert!(requests.iter().all(|r| bytes(&r["canister_id"]) == canister.as_slice()));
        assert_eq!(bytes(&requests[0]["sender"]), [4]);
        assert_eq!(candid::decode_one::<String>(&bytes(&requests[0]["payload"])).unwrap(), "LSZH");
        assert_eq!(requests[1]["method"], "kv_put");
        assert_eq!(bytes(&requests[1]["sender"]), controller.as_slice());
        let put: (String, String) = candid::decode_args(&bytes(&requests[1]["payload"])).unwrap();
        assert_eq!(put, ("hello".into(), "world".into()));
        assert_eq!(requests[3]["method"], "query_call");
        let call: (String, icsql_types::Params, Option<ReadOptions>) =
            candid::decode_args(&bytes(&requests[3]["payload"])).unwrap();
        assert_eq!((call.0.as_str(), call.1), ("airports_of_country", country()));
        assert!(text.contains(r#"new_from_existing_instance("http://127.0.0.1:8008".parse()?, 3, None)"#), "{text}");
    }
}
