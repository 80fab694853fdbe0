//! Arguments that are no Candid, or Candid of other types, are answered with an error; what Candid lets a client leave
//! out or add is accepted.

use candid::{CandidType, Decode, Reserved};
use icsql_tests::malformed::malformed;
use icsql_tests::{Icsql, controller, encode};
use icsql_types::method::{ALL, DB_CHECKSUM, Mode};
use icsql_types::{Answer, Error, Written};
use pocket_ic::ErrorCode;

/// Methods that take an argument; what the others do with one is up to them, short of a trap.
fn takes_argument(method: &str) -> bool {
    let none = ["kv_count", "sql_schema", "sql_migrations", "query_list"];
    ["kv_", "sql_", "query_"].iter().any(|start| method.starts_with(start)) && !none.contains(&method)
}

#[test]
fn malformed_arguments_are_answered_with_an_error() {
    let icsql = Icsql::deploy();
    icsql.put("k", "value");
    let before = icsql.ok(&DB_CHECKSUM, ());
    for (method, mode) in ALL {
        for (what, argument) in malformed() {
            // kv_put takes whatever a message can hold.
            let oversized = argument.len() > 4_096 && *method != "kv_put";
            let outcome = match mode {
                Mode::Query => icsql.pic.query_call(icsql.id, controller(), method, argument),
                Mode::Update => icsql.pic.update_call(icsql.id, controller(), method, argument),
            };
            let reply = match outcome {
                Ok(reply) => reply,
                // No argument of this method is that large, so that ingress is not let in.
                Err(reject) if oversized && reject.error_code == ErrorCode::CanisterRejectedMessage => continue,
                Err(reject) => panic!("{method}, {what}: {reject}"),
            };
            let answer = Decode!(&reply, Result<Reserved, Error>);
            let answer = answer.unwrap_or_else(|error| panic!("{method}, {what}: answered another type: {error}"));
            if takes_argument(method) {
                let refused = matches!(answer, Err(Error::InvalidArgument { .. } | Error::TooLarge { .. }));
                assert!(refused, "{method}, {what}: {:?}", answer.map(drop));
            }
        }
    }
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
    assert_eq!(icsql.get("k").as_deref(), Some("value"));
}

#[test]
fn every_prefix_of_a_put_is_refused() {
    let icsql = Icsql::deploy();
    let whole = encode(("key", "value", None::<()>));
    let before = icsql.ok(&DB_CHECKSUM, ());
    for end in 0..whole.len() {
        let reply = icsql.pic.update_call(icsql.id, controller(), "kv_put", whole[..end].to_vec());
        let reply = reply.unwrap_or_else(|reject| panic!("the first {end} bytes: {reject}"));
        let answer = Decode!(&reply, Answer<Written>).unwrap();
        assert!(matches!(answer, Err(Error::InvalidArgument { .. })), "the first {end} bytes: {answer:?}");
    }
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
}

#[test]
fn a_put_may_leave_options_out_or_bring_some_of_the_future() {
    #[derive(CandidType)]
    struct Empty {}
    #[derive(CandidType)]
    struct Future {
        colour: String,
        numbers: Vec<u64>,
    }
    let future = || Future { colour: "blue".to_string(), numbers: vec![1, 2, 3] };
    let icsql = Icsql::deploy();
    let forms = [
        encode(("key", "0")),
        encode(("key", "1", None::<Empty>)),
        encode(("key", "2", Some(Empty {}))),
        encode(("key", "3", ())),
        encode(("key", "4", None::<Future>)),
        encode(("key", "5", Some(future()))),
        encode(("key", "6", future())),
        encode(("key", "7", Some(Empty {}), "an argument of the future")),
        // An option of another type reads as none.
        encode(("key", "8", Some(42_u64))),
    ];
    for (i, form) in forms.into_iter().enumerate() {
        let reply = icsql.pic.update_call(icsql.id, controller(), "kv_put", form).unwrap();
        let answer = Decode!(&reply, Answer<Written>).unwrap();
        assert!(answer.is_ok(), "form {i}: {answer:?}");
        assert_eq!(icsql.get("key"), Some(i.to_string()));
    }
}

#[test]
fn arguments_of_other_types_are_refused() {
    let icsql = Icsql::deploy();
    let before = icsql.ok(&DB_CHECKSUM, ());
    let wrong = [
        encode((1_u64, "value")),
        encode(("key", 1_u64)),
        encode(("key",)),
        encode(()),
        encode((Some("key"), "value")),
        encode((vec!["key"], "value")),
        encode((b"key".as_slice(), "value")),
    ];
    for (i, argument) in wrong.into_iter().enumerate() {
        let reply = icsql.pic.update_call(icsql.id, controller(), "kv_put", argument).unwrap();
        let answer = Decode!(&reply, Answer<Written>).unwrap();
        assert!(matches!(answer, Err(Error::InvalidArgument { .. })), "form {i}: {answer:?}");
    }
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
}
