//! The hand-written codec against the candid crate: what the first accepts, the second accepts with the same values;
//! what the second accepts, the two together accept; replies decode at the full declared type.
use candid::types::internal::TypeContainer;
use candid::{CandidType, decode_args, encode_args};
use icsql_canister::codec::{arguments, general, replies};
use icsql_canister::limits::{KEYS_MAX, REPLY_BYTES_MAX, VALUE_BYTES_MAX};
use icsql_types::{Answer, Deleted, Error, Values, WriteOptions, Written, method};
use proptest::prelude::*;

type Put = (String, String, Option<WriteOptions>);

/// Decoded by hand and by the crate without quotas, as owned values.
fn check_key(argument: &[u8]) -> Result<(), TestCaseError> {
    let hand = arguments::key(argument).map(str::to_owned);
    let general = general::decode::<(String,)>(argument).ok().map(|(key,)| key);
    let reference = decode_args::<(String,)>(argument).ok().map(|(key,)| key);
    if hand.is_some() {
        prop_assert_eq!(&hand, &reference);
    }
    prop_assert_eq!(hand.or(general), reference);
    Ok(())
}

fn check_put(argument: &[u8]) -> Result<(), TestCaseError> {
    let hand = arguments::key_and_value(argument).map(|(key, value)| (key.to_owned(), value.to_owned()));
    let general = general::decode::<Put>(argument).ok().map(|(key, value, _)| (key, value));
    let reference = decode_args::<Put>(argument).ok().map(|(key, value, _)| (key, value));
    if hand.is_some() {
        prop_assert_eq!(&hand, &reference);
    }
    prop_assert_eq!(hand.or(general), reference);
    Ok(())
}

fn check_keys(argument: &[u8]) -> Result<(), TestCaseError> {
    let hand = arguments::keys(argument)
        .and_then(|keys| keys.decode())
        .map(|keys| keys.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let general = general::decode::<(Vec<String>,)>(argument).ok().map(|(keys,)| keys);
    let reference = decode_args::<(Vec<String>,)>(argument).ok().map(|(keys,)| keys);
    if hand.is_some() {
        prop_assert_eq!(&hand, &reference);
    }
    prop_assert_eq!(hand.or(general), reference);
    Ok(())
}

fn check_all(argument: &[u8]) -> Result<(), TestCaseError> {
    check_key(argument)?;
    check_put(argument)?;
    check_keys(argument)
}

/// Arguments as agents and canisters encode them, and neighbours of these.
fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    #[derive(CandidType)]
    struct NewerOptions {
        later: Option<String>,
    }
    let text = prop_oneof![
        "[a-z0-9\\x00é∑𝄞]{0,12}",
        proptest::collection::vec(any::<char>(), 0..200).prop_map(String::from_iter)
    ];
    (text.clone(), text, 0..12).prop_map(|(a, b, shape)| {
        match shape {
            0 => encode_args((&a,)),
            1 => encode_args((&a, &b)),
            2 => encode_args((&a, &b, None::<WriteOptions>)),
            3 => encode_args((&a, &b, Some(WriteOptions::default()))),
            4 => encode_args((&a, &b, ())),
            5 => encode_args((&a, &b, Some(NewerOptions { later: Some(b.clone()) }))),
            6 => encode_args((&a, &b, candid::Reserved)),
            7 => encode_args((vec![&a, &b],)),
            8 => encode_args((vec![&a; b.len()],)),
            9 => encode_args((Vec::<String>::new(),)),
            10 => encode_args((&a, 5u8, &b)),
            _ => encode_args(()),
        }
        .unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_260_401),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_decoders_agree_on_well_formed_arguments(argument in well_formed()) {
        check_all(&argument)?;
    }

    #[test]
    fn both_decoders_agree_on_damaged_arguments(
        argument in well_formed(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..4),
    ) {
        let mut argument = argument;
        for (index, byte, kind) in changes {
            if argument.is_empty() { break }
            // Half of the damage hits the header, where it matters most.
            let at = index.index(if byte % 2 == 0 { argument.len() } else { argument.len().min(16) });
            match kind {
                0 => argument[at] = byte,
                1 => argument[at] ^= 1 << (byte % 8),
                2 => argument.truncate(at),
                _ => argument.insert(at, byte),
            }
        }
        check_all(&argument)?;
    }

    #[test]
    fn both_decoders_agree_on_random_bytes_behind_the_magic(mut bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        bytes.splice(0..0, *b"DIDL");
        check_all(&bytes)?;
    }

    #[test]
    fn a_batch_of_values_decodes_at_the_declared_type(
        values in proptest::collection::vec(proptest::option::of(".{0,300}"), 0..50),
    ) {
        let mut buffer = vec![7; 3];
        let mut reply = replies::Values::new(&mut buffer, 10);
        for value in &values {
            prop_assert!(reply.push(value.as_deref().map(str::as_bytes)));
        }
        let decoded: Answer<Values> = decoded(reply.finish());
        prop_assert_eq!(decoded, Ok(Values { values, next: None }));
    }
}

fn decoded<T: CandidType + for<'a> candid::Deserialize<'a>>(reply: &[u8]) -> T {
    decode_args::<(T,)>(reply).expect("the reply decodes at its declared type").0
}

#[test]
fn the_encodings_that_callers_send_take_the_fast_path() {
    // From the candid crate (also `icp`, `didc`, Rust canisters).
    assert_eq!(arguments::key(&encode_args(("k",)).unwrap()), Some("k"));
    for options in [None, Some(WriteOptions::default())] {
        let argument = encode_args(("k", "v\0é", options)).unwrap();
        assert_eq!(arguments::key_and_value(&argument), Some(("k", "v\0é")));
    }
    assert_eq!(arguments::key_and_value(&encode_args(("k", "v", ())).unwrap()), Some(("k", "v")));
    assert_eq!(arguments::key_and_value(&encode_args(("k", "v")).unwrap()), Some(("k", "v")));
    let keys = encode_args((vec!["a", ""],)).unwrap();
    assert_eq!(arguments::keys(&keys).and_then(|keys| keys.decode()), Some(vec!["a", ""]));
    // From JavaScript agents, which number a type's parts before the type; taken from `IDL.encode`.
    let types = b"DIDL\x03\x6e\x71\x6c\x01\xf1\x8f\x9a\x83\x0f\x00\x6e\x01\x03\x71\x71\x02\x01k\x01v";
    for options in [&[0][..], &[1, 0]] {
        let argument = [types, options].concat();
        assert_eq!(arguments::key_and_value(&argument), Some(("k", "v")));
        assert_eq!(decode_args::<Put>(&argument).unwrap().0, "k");
    }
}

#[test]
fn replies_decode_at_their_declared_types() {
    let mut reply = replies::Value::new();
    for length in [0, 1, 127, 128, 16_383, 16_384, VALUE_BYTES_MAX, 5] {
        let value = "x".repeat(length);
        reply.set(value.as_bytes());
        let answer: Answer<Option<String>> = decoded(reply.bytes());
        assert_eq!(answer, Ok(Some(value)));
    }
    assert_eq!(decoded::<Answer<Option<String>>>(replies::NO_VALUE), Ok(None));
    for version in [0, 1, u64::MAX] {
        assert_eq!(decoded::<Answer<Written>>(&replies::written(version)), Ok(Written { version }));
    }
    for (deleted, version) in [(0, 0), (1, 2), (u64::MAX, u64::MAX)] {
        assert_eq!(decoded::<Answer<Deleted>>(&replies::deleted(deleted, version)), Ok(Deleted { deleted, version }));
    }
    let error = Error::TooLarge { what: "key".to_owned(), limit: 1, actual: 2 };
    let reply = general::encode::<()>(Err(&error)).unwrap();
    assert_eq!(decoded::<Answer<Values>>(&reply), Err(error));
}

#[test]
fn a_batch_stops_before_the_reply_is_too_large() {
    let value = vec![b'x'; 500_000];
    let mut buffer = Vec::new();
    let mut reply = replies::Values::new(&mut buffer, 10);
    let mut added = 0;
    while reply.push(Some(&value)) {
        added += 1;
    }
    assert_eq!(added, REPLY_BYTES_MAX / value.len());
    assert!(!reply.push(None), "a full batch takes nothing more, or entries would be out of place");
    let bytes = reply.finish();
    assert!(bytes.len() <= REPLY_BYTES_MAX);
    let answer: Answer<Values> = decoded(bytes);
    let answer = answer.unwrap();
    assert_eq!((answer.values.len(), answer.next), (added, Some(added as u32)));

    let mut reply = replies::Values::new(&mut buffer, 10);
    for _ in 0..KEYS_MAX {
        assert!(reply.push(None));
    }
    let answer: Answer<Values> = decoded(reply.finish());
    assert_eq!(answer.unwrap().values.len(), KEYS_MAX);
}

#[test]
fn costly_arguments_meet_the_quota() {
    // A vector of two million nulls takes three bytes to write down.
    let argument = b"DIDL\x01\x6d\x7f\x01\x00\x80\x89\x7a";
    assert!(general::decode::<(Vec<()>,)>(argument).is_err());
    assert!(general::decode::<()>(argument).is_err(), "skipping them is no cheaper");
}

#[test]
fn init_takes_nothing_null_unit_and_settings() {
    for argument in [
        Vec::new(),
        encode_args(()).unwrap(),
        encode_args(((),)).unwrap(),
        encode_args((None::<icsql_types::InitArg>,)).unwrap(),
        encode_args((Some(icsql_types::InitArg::default()),)).unwrap(),
    ] {
        assert_eq!(general::decode_init(&argument), Ok(icsql_types::InitArg::default()));
    }
    let error = general::decode_init(b"DIDX").unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
}

#[test]
fn a_method_describes_its_own_types() {
    let mut container = TypeContainer::new();
    let signature = method::KV_GET.signature(&mut container);
    assert_eq!(signature.to_string().split_whitespace().next(), Some("func"));
}
