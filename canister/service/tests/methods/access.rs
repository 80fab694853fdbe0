//! Who may call what.
use crate::common::{Canister, Endpoint, Message, decode, reads_argument};
use candid::encode_args;
use icsql_canister::api::{db, kv};
use icsql_canister::guard::{self, Access, RULES};
use icsql_types::{Error, method};

/// Every method with an argument that it accepts.
fn endpoints() -> Vec<(&'static str, Endpoint, Vec<u8>)> {
    let none = encode_args(()).unwrap();
    vec![
        ("kv_put", kv::put, encode_args(("k", "v")).unwrap()),
        ("kv_get", kv::get, encode_args(("k",)).unwrap()),
        ("kv_get_many", kv::get_many, encode_args((vec!["k"],)).unwrap()),
        ("kv_set_note", kv::set_note, encode_args(("k", Some("n"))).unwrap()),
        ("kv_get_note", kv::get_note, encode_args(("k",)).unwrap()),
        ("kv_count", kv::count, none.clone()),
        ("db_meta", db::meta, none.clone()),
        ("db_integrity_check", db::integrity_check, none.clone()),
        ("db_checksum", db::checksum, none.clone()),
        ("db_refresh_checksum", db::refresh_checksum, none.clone()),
        ("db_refresh_checksum_chunk", db::refresh_checksum_chunk, none),
    ]
}

const PUBLIC: [&str; 4] = ["kv_get", "kv_get_many", "kv_get_note", "db_meta"];

fn is_forbidden(reply: &[u8]) -> bool {
    let (answer,) = decode::<(Result<candid::Reserved, Error>,)>(reply);
    matches!(answer, Err(Error::Forbidden { .. }))
}

#[test]
fn controllers_may_call_everything_and_others_the_public_reads() {
    let mut canister = Canister::install();
    assert_eq!(endpoints().len(), method::ALL.len());
    for (name, endpoint, argument) in endpoints() {
        assert!(!is_forbidden(&canister.send(endpoint, argument.clone(), true)), "{name} as a controller");
        let before = canister.service.database.meta().transaction_id;
        let forbidden = is_forbidden(&canister.send(endpoint, argument, false));
        assert_eq!(forbidden, !PUBLIC.contains(&name), "{name} as somebody else");
        assert_eq!(canister.service.database.meta().transaction_id, before, "{name} wrote something");
    }
}

#[test]
fn the_argument_of_a_caller_who_may_not_call_is_never_read() {
    let mut canister = Canister::install();
    for (name, endpoint, argument) in endpoints() {
        let stranger = Message::new(argument.clone(), false);
        assert_eq!(reads_argument(&mut canister, endpoint, &stranger), PUBLIC.contains(&name), "{name}");
        let oversized = Message::new(vec![0; 2 * 1_024 * 1_024 + 1], true);
        assert!(!reads_argument(&mut canister, endpoint, &oversized), "{name} reads an argument of any size");
    }
}

#[test]
fn inspection_takes_what_would_be_answered() {
    for (name, _, argument) in endpoints() {
        let accepts =
            |argument: Vec<u8>, controller| guard::accepts(&Message::new(argument, controller), name.as_bytes());
        assert!(accepts(argument.clone(), true), "{name} as a controller");
        assert_eq!(accepts(argument, false), PUBLIC.contains(&name), "{name} as somebody else");
        let rule = RULES.iter().find(|rule| rule.name == name).unwrap();
        assert_eq!(rule.access == Access::Public, PUBLIC.contains(&name));
        assert!(accepts(vec![0; rule.argument_bytes_max], true), "{name} at its limit");
        assert!(!accepts(vec![0; rule.argument_bytes_max + 1], true), "{name} above its limit");
    }
    for unknown in ["", "kv_pu", "kv_putt", "canister_init", "http_request_update"] {
        assert!(!guard::accepts(&Message::new(Vec::new(), true), unknown.as_bytes()), "{unknown:?}");
    }
}
