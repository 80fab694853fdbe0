//! Puts that are part of another canister's message: what a trap after the await takes back, and what it does not.

use candid::{Decode, Encode};
use icsql_tests::{Icsql, controller, encode, fixture_wasm, install, stranger};
use icsql_types::{Answer, Error};

#[test]
fn a_trap_after_the_call_keeps_the_put_and_what_was_before_the_await() {
    let icsql = Icsql::deploy();
    let caller = install(&icsql.pic, fixture_wasm("caller"));
    icsql.pic.set_controllers(icsql.id, Some(controller()), vec![controller(), caller]).unwrap();

    let call = Encode!(&icsql.id, &"kv_put", &encode(("key", "value"))).unwrap();
    let reject = icsql.pic.update_call(caller, stranger(), "trap_after_call", call).unwrap_err();
    assert!(reject.reject_message.contains("trapped after the call"), "{reject}");

    assert_eq!(icsql.get("key").as_deref(), Some("value"));
    let counter = icsql.pic.query_call(caller, stranger(), "counter", encode(())).unwrap();
    assert_eq!(Decode!(&counter, u64).unwrap(), 1);
}

#[test]
fn a_missing_method_is_rejected_and_the_caller_goes_on() {
    let icsql = Icsql::deploy();
    let caller = install(&icsql.pic, fixture_wasm("caller"));
    let reply = icsql.pic.update_call(caller, stranger(), "call_missing", Encode!(&icsql.id).unwrap()).unwrap();
    let (code, message) = Decode!(&reply, Result<(), (u32, String)>).unwrap().unwrap_err();
    assert_eq!(code, 5, "{message}");
    assert!(message.contains("no_such_method"), "{message}");
}

/// As ingress it would not be let in, but calls between canisters are not inspected.
#[test]
fn an_argument_larger_than_any_of_the_method_is_answered() {
    let icsql = Icsql::deploy();
    let caller = install(&icsql.pic, fixture_wasm("caller"));
    icsql.pic.set_controllers(icsql.id, Some(controller()), vec![controller(), caller]).unwrap();
    let note = encode(("key", Some("n".repeat(1_000_000))));
    icsql.pic.update_call(icsql.id, controller(), "kv_set_note", note.clone()).expect_err("1 MB were let in");

    let reply = icsql.pic.update_call(caller, stranger(), "call_raw", encode((icsql.id, "kv_set_note", note))).unwrap();
    let reply = Decode!(&reply, Result<Vec<u8>, String>).unwrap().unwrap();
    let answer = Decode!(&reply, Answer<()>).unwrap();
    assert!(matches!(answer, Err(Error::TooLarge { .. })), "{answer:?}");
}
