//! Who may call what: anyone reads values and the meta data, only controllers do the rest. Nobody gets a trap.

use candid::{Decode, Encode, Principal};
use icsql_tests::{Icsql, controller, encode, fixture_wasm, install, stranger};
use icsql_types::method::{
    DB_CHECKSUM, DB_INTEGRITY_CHECK, DB_META, DB_REFRESH_CHECKSUM, DB_REFRESH_CHECKSUM_CHUNK, KV_COUNT, KV_GET,
    KV_GET_MANY, KV_GET_NOTE, KV_PUT, KV_SET_NOTE,
};
use icsql_types::{Answer, Error};

fn text(text: &str) -> String {
    text.to_string()
}

/// Calls another canister through the fixture `caller`, so that the caller is a canister. Refusals of the platform are
/// the inner error.
fn call_through(icsql: &Icsql, caller: Principal, method: &str, argument: Vec<u8>) -> Result<Vec<u8>, String> {
    let call = Encode!(&icsql.id, &method, &argument).unwrap();
    let reply = icsql.pic.update_call(caller, stranger(), "call_raw", call).unwrap();
    Decode!(&reply, Result<Vec<u8>, String>).unwrap()
}

fn forbidden<T>(answer: &Answer<T>) -> bool {
    matches!(answer, Err(Error::Forbidden { .. }))
}

#[test]
fn anyone_may_read_values_notes_and_meta_data() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    icsql.ok(&KV_SET_NOTE, (text("key"), Some(text("note")), None));
    for caller in [Principal::anonymous(), stranger(), controller()] {
        assert_eq!(icsql.call_as(caller, &KV_GET, (text("key"),)).unwrap().as_deref(), Some("value"));
        assert_eq!(icsql.call_as(caller, &KV_GET_NOTE, (text("key"),)).unwrap().as_deref(), Some("note"));
        let many = icsql.call_as(caller, &KV_GET_MANY, (vec![text("key"), text("none")],)).unwrap();
        assert_eq!((many.values, many.next), (vec![Some(text("value")), None], None));
        assert_eq!(icsql.call_as(caller, &DB_META, ()).unwrap().limits.key_bytes_max, 1_024);
    }
}

/// Queries can be called as updates; the guard of ingress messages must not refuse them.
#[test]
fn query_methods_may_be_called_as_updates() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    for caller in [Principal::anonymous(), stranger(), controller()] {
        let reply = icsql.pic.update_call(icsql.id, caller, "kv_get", encode(("key",))).unwrap();
        assert_eq!(Decode!(&reply, Answer<Option<String>>).unwrap(), Ok(Some(text("value"))));
    }
}

#[test]
fn reads_for_controllers_answer_forbidden_to_others() {
    let icsql = Icsql::deploy();
    for caller in [Principal::anonymous(), stranger()] {
        assert!(forbidden(&icsql.call_as(caller, &KV_COUNT, ())));
        assert!(forbidden(&icsql.call_as(caller, &DB_CHECKSUM, ())));
        assert!(forbidden(&icsql.call_as(caller, &DB_INTEGRITY_CHECK, ())));
    }
    assert_eq!(icsql.ok(&KV_COUNT, ()), 0);
}

#[test]
fn writes_of_others_are_refused_before_they_run() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    let before = icsql.ok(&DB_CHECKSUM, ());
    let refused = [
        ("kv_put", encode(("key", "stolen"))),
        ("kv_set_note", encode(("key", Some("stolen")))),
        ("db_refresh_checksum", encode(())),
        ("db_refresh_checksum_chunk", encode((None::<u64>,))),
        ("no_such_method", encode(())),
    ];
    for caller in [Principal::anonymous(), stranger()] {
        for (method, argument) in &refused {
            let outcome = icsql.pic.update_call(icsql.id, caller, method, argument.clone());
            assert!(outcome.is_err(), "{method} of {caller} was let in: {outcome:?}");
        }
    }
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
}

/// Calls between canisters are not inspected, so the methods themselves must refuse.
#[test]
fn another_canister_is_a_stranger_until_it_is_a_controller() {
    let icsql = Icsql::deploy();
    icsql.put("key", "value");
    let caller = install(&icsql.pic, fixture_wasm("caller"));
    let before = icsql.ok(&DB_CHECKSUM, ());

    let reply = call_through(&icsql, caller, KV_GET.name, encode(("key",))).unwrap();
    assert_eq!(Decode!(&reply, Answer<Option<String>>).unwrap(), Ok(Some(text("value"))));

    macro_rules! refused {
        ($method:ident, $argument:expr, $reply:ty) => {
            let reply = call_through(&icsql, caller, $method.name, encode($argument)).unwrap();
            let answer = Decode!(&reply, Answer<$reply>).unwrap();
            assert!(forbidden(&answer), "{}: {answer:?}", $method.name);
        };
    }
    refused!(KV_PUT, ("key", "stolen"), icsql_types::Written);
    refused!(KV_SET_NOTE, ("key", Some("stolen")), ());
    refused!(KV_COUNT, (), u64);
    refused!(DB_CHECKSUM, (), icsql_types::Checksum);
    refused!(DB_INTEGRITY_CHECK, (), icsql_types::IntegrityReport);
    refused!(DB_REFRESH_CHECKSUM, (), icsql_types::Checksum);
    refused!(DB_REFRESH_CHECKSUM_CHUNK, (None::<u64>,), icsql_types::ScanProgress);
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);

    icsql.pic.set_controllers(icsql.id, Some(controller()), vec![controller(), caller]).unwrap();
    let reply = call_through(&icsql, caller, KV_PUT.name, encode(("key", "from a canister"))).unwrap();
    let written = Decode!(&reply, Answer<icsql_types::Written>).unwrap().unwrap();
    assert!(written.version > before.transaction);
    assert_eq!(icsql.get("key").as_deref(), Some("from a canister"));
}

#[test]
fn a_removed_controller_is_refused() {
    let icsql = Icsql::deploy();
    icsql.pic.set_controllers(icsql.id, Some(controller()), vec![stranger()]).unwrap();
    icsql.call_raw(controller(), &KV_PUT, encode(("key", "value"))).expect_err("a former controller's put was let in");
    assert!(icsql.call_as(stranger(), &KV_PUT, (text("key"), text("value"), None)).is_ok());
}

#[test]
fn the_old_checksum_method_names_the_new_one() {
    let icsql = Icsql::deploy();
    match icsql.call(&DB_REFRESH_CHECKSUM, ()) {
        Err(Error::UseInstead { method, .. }) => assert_eq!(method, DB_REFRESH_CHECKSUM_CHUNK.name),
        other => panic!("{other:?}"),
    }
}
