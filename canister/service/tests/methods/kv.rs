//! Keys, values and notes through the methods, on heap memory.
use crate::common::{Canister, Endpoint, Random, decode};
use candid::encode_args;
use icsql_canister::api::kv;
use icsql_canister::limits::{
    KEY_BYTES_MAX, KEYS_MAX, MESSAGE_BYTES_MAX, NOTE_BYTES_MAX, REPLY_BYTES_MAX, VALUE_BYTES_MAX,
};
use icsql_engine::stable::heap::HeapMemory;
use icsql_types::{Answer, Error, Values, WriteOptions, Written};
use std::collections::BTreeMap;

const PUT: Endpoint = kv::put;
const GET: Endpoint = kv::get;
const GET_MANY: Endpoint = kv::get_many;
const SET_NOTE: Endpoint = kv::set_note;
const GET_NOTE: Endpoint = kv::get_note;
const COUNT: Endpoint = kv::count;

fn put(canister: &mut Canister, key: &str, value: &str) -> Answer<u64> {
    canister.call::<Written>(PUT, (key, value, None::<WriteOptions>)).map(|written| written.version)
}

fn get(canister: &mut Canister, key: &str) -> Answer<Option<String>> {
    canister.call(GET, (key,))
}

fn set_note(canister: &mut Canister, key: &str, note: Option<&str>) -> Answer<()> {
    canister.call(SET_NOTE, (key, note, None::<WriteOptions>))
}

fn get_note(canister: &mut Canister, key: &str) -> Answer<Option<String>> {
    canister.call(GET_NOTE, (key,))
}

#[test]
fn values_survive_an_upgrade_and_versions_ascend() {
    let mut canister = Canister::install();
    assert_eq!(get(&mut canister, "a"), Ok(None));
    let first = put(&mut canister, "a", "1").unwrap();
    let second = put(&mut canister, "b", "2").unwrap();
    let third = put(&mut canister, "a", "3").unwrap();
    assert!(first < second && second < third, "{first} {second} {third}");
    assert_eq!(third, canister.service.database.meta().transaction_id, "a version is its transaction's id");

    let mut canister = canister.upgrade();
    assert_eq!(get(&mut canister, "a"), Ok(Some("3".to_owned())));
    assert_eq!(get(&mut canister, "b"), Ok(Some("2".to_owned())));
    assert_eq!(canister.call::<u64>(COUNT, ()), Ok(2));
    assert!(put(&mut canister, "c", "4").unwrap() > third);
}

#[test]
fn every_text_round_trips_as_key_value_and_note() {
    let texts =
        ["\0", "a\0b", "\0\0", " ", "é", "e\u{301}", "\u{fffd}", "\u{feff}x", "𝄞\u{10ffff}", "1", "1.0", "NULL", "'"];
    let mut canister = Canister::install();
    for text in texts {
        put(&mut canister, text, text).unwrap();
        set_note(&mut canister, text, Some(text)).unwrap();
    }
    let mut canister = canister.upgrade();
    for text in texts {
        assert_eq!(get(&mut canister, text), Ok(Some(text.to_owned())));
        assert_eq!(get_note(&mut canister, text), Ok(Some(text.to_owned())));
    }
    assert_eq!(canister.call::<u64>(COUNT, ()), Ok(texts.len() as u64), "no two of them are the same key");
    put(&mut canister, "empty", "").unwrap();
    assert_eq!(get(&mut canister, "empty"), Ok(Some(String::new())));
}

#[test]
fn calls_with_and_without_options_do_the_same() {
    let mut canister = Canister::install();
    let arguments = [
        encode_args(("k", "1")).unwrap(),
        encode_args(("k", "2", None::<WriteOptions>)).unwrap(),
        encode_args(("k", "3", Some(WriteOptions::default()))).unwrap(),
        encode_args(("k", "4", ())).unwrap(),
        encode_args(("k", "5", Some((7u8, "a newer field")))).unwrap(),
        encode_args(("k", "6", None::<WriteOptions>, "a further argument")).unwrap(),
    ];
    for (argument, value) in arguments.into_iter().zip(["1", "2", "3", "4", "5", "6"]) {
        let reply = canister.send(PUT, argument, true);
        decode::<(Answer<Written>,)>(&reply).0.unwrap();
        assert_eq!(get(&mut canister, "k"), Ok(Some(value.to_owned())));
    }
}

#[test]
fn notes_stay_with_their_key() {
    let mut canister = Canister::install();
    let missing = Err(Error::NotFound { what: "key".to_owned(), name: "k".to_owned() });
    assert_eq!(set_note(&mut canister, "k", Some("n")), missing.clone().map(|_: ()| ()));
    assert_eq!(set_note(&mut canister, "k", None), missing.clone().map(|_: ()| ()));
    assert_eq!(get_note(&mut canister, "k"), missing.map(|_: ()| None));

    put(&mut canister, "k", "1").unwrap();
    assert_eq!(get_note(&mut canister, "k"), Ok(None));
    assert_eq!(set_note(&mut canister, "k", None), Ok(()), "removing a note that is not there is no error");
    set_note(&mut canister, "k", Some("first")).unwrap();
    set_note(&mut canister, "k", Some("second")).unwrap();
    put(&mut canister, "k", "2").unwrap();
    assert_eq!(get_note(&mut canister, "k"), Ok(Some("second".to_owned())), "putting a value keeps the note");
    set_note(&mut canister, "k", None).unwrap();
    assert_eq!(get_note(&mut canister, "k"), Ok(None));
}

#[test]
fn limits_hold_at_their_edges_and_name_what_was_sent() {
    let mut canister = Canister::install();
    let too_large = |what: &str, limit: usize, actual: usize| Error::TooLarge {
        what: what.to_owned(),
        limit: limit as u64,
        actual: actual as u64,
    };
    let before = canister.service.database.meta().transaction_id;

    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let error = too_large("key", KEY_BYTES_MAX, KEY_BYTES_MAX + 1);
    assert_eq!(put(&mut canister, &long, ""), Err(error.clone()));
    assert_eq!(get(&mut canister, &long), Err(error.clone()));
    assert_eq!(set_note(&mut canister, &long, None), Err(error.clone()));
    assert_eq!(get_note(&mut canister, &long), Err(error));
    let error = too_large("key 1", KEY_BYTES_MAX, KEY_BYTES_MAX + 1);
    assert_eq!(canister.call::<Values>(GET_MANY, (vec!["a", &long],)), Err(error));
    for outcome in [put(&mut canister, "", "v").map(|_| ()), get(&mut canister, "").map(|_| ())] {
        assert!(
            matches!(outcome, Err(Error::InvalidArgument { ref argument, .. }) if argument == "key"),
            "{outcome:?}"
        );
    }
    let value = "v".repeat(VALUE_BYTES_MAX + 1);
    assert_eq!(put(&mut canister, "k", &value), Err(too_large("value", VALUE_BYTES_MAX, VALUE_BYTES_MAX + 1)));
    let keys = vec!["k"; KEYS_MAX + 1];
    assert_eq!(canister.call::<Values>(GET_MANY, (keys,)), Err(too_large("keys", KEYS_MAX, KEYS_MAX + 1)));
    let huge = vec!["k".repeat(KEY_BYTES_MAX); KEYS_MAX + 4];
    let answer = canister.call::<Values>(GET_MANY, (huge,));
    assert!(matches!(&answer, Err(Error::TooLarge { what, .. }) if what == "argument"), "{answer:?}");
    assert_eq!(canister.service.database.meta().transaction_id, before, "a refused call writes nothing");

    for bytes in [KEY_BYTES_MAX - 1, KEY_BYTES_MAX] {
        put(&mut canister, &long[..bytes], "v").unwrap();
        assert_eq!(get(&mut canister, &long[..bytes]), Ok(Some("v".to_owned())));
    }
    let key = &long[..KEY_BYTES_MAX];
    for bytes in [VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX] {
        put(&mut canister, key, &value[..bytes]).unwrap();
        assert_eq!(get(&mut canister, key).unwrap().map(|value| value.len()), Some(bytes));
    }
    let note = "n".repeat(NOTE_BYTES_MAX + 1);
    for bytes in [NOTE_BYTES_MAX - 1, NOTE_BYTES_MAX] {
        set_note(&mut canister, key, Some(&note[..bytes])).unwrap();
        assert_eq!(get_note(&mut canister, key), Ok(Some(note[..bytes].to_owned())));
    }
    let error = too_large("note", NOTE_BYTES_MAX, NOTE_BYTES_MAX + 1);
    assert_eq!(set_note(&mut canister, key, Some(&note)), Err(error));
    for count in [0, 1, KEYS_MAX - 1, KEYS_MAX] {
        let keys: Vec<String> = (0..count).map(|index| format!("{index:0width$}", width = KEY_BYTES_MAX)).collect();
        let answer = canister.call::<Values>(GET_MANY, (keys,)).unwrap();
        assert_eq!(answer, Values { values: vec![None; count], next: None });
    }
}

#[test]
fn a_batch_answers_what_fits_and_says_where_to_go_on() {
    let mut canister = Canister::install();
    for index in 0..10 {
        put(&mut canister, &format!("k{index}"), &index.to_string().repeat(500_000 + index)).unwrap();
    }
    let keys: Vec<String> = (0..10).flat_map(|index| [format!("k{index}"), format!("missing{index}")]).collect();
    let (mut from, mut calls, mut seen) = (0, 0, Vec::new());
    while from < keys.len() {
        let reply = canister.send(GET_MANY, encode_args((&keys[from..],)).unwrap(), false);
        assert!(reply.len() <= REPLY_BYTES_MAX);
        let answer = decode::<(Answer<Values>,)>(&reply).0.unwrap();
        assert_eq!(answer.next.map_or(keys.len() - from, |next| next as usize), answer.values.len());
        assert!(!answer.values.is_empty(), "every call gets further");
        from += answer.values.len();
        seen.extend(answer.values);
        calls += 1;
    }
    assert_eq!(calls, 3, "four values of half a megabyte fit into two");
    for (index, values) in seen.chunks(2).enumerate() {
        let value = index.to_string().repeat(500_000 + index);
        assert_eq!(values, [Some(value), None]);
    }
    let twice = canister.call::<Values>(GET_MANY, (vec!["missing", "missing"],)).unwrap();
    assert_eq!(twice.values, [None, None]);
}

#[test]
fn bytes_that_are_no_arguments_are_an_error_and_change_nothing() {
    let mut canister = Canister::install();
    put(&mut canister, "k", "v").unwrap();
    let before = canister.service.database.meta();
    let only_for_put = [encode_args(("k", 5u8)).unwrap(), b"DIDL\x00\x02\x71\x71\x01k\x01\xff".to_vec()];
    let for_all = [
        Vec::new(),
        b"DIDL".to_vec(),
        b"not candid".to_vec(),
        encode_args(()).unwrap(),
        encode_args((5u8, "v")).unwrap(),
        encode_args((None::<String>,)).unwrap(),
        b"DIDL\x00\x02\x71\x71\x01\xff\x01v".to_vec(),
        b"DIDL\x00\x01\x71\xff\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec(),
        b"DIDL\x01\x6d\x71\x01\x00\xff\xff\xff\xff\x0f".to_vec(),
        b"DIDL\x01\x6e\x00\x01\x00\x01".to_vec(),
        vec![0; MESSAGE_BYTES_MAX + 1],
    ];
    for endpoint in [PUT, GET, GET_MANY, SET_NOTE, GET_NOTE] {
        let put = if endpoint as usize == PUT as usize { only_for_put.as_slice() } else { &[] };
        for argument in for_all.iter().chain(put) {
            let reply = canister.send(endpoint, argument.clone(), true);
            let (answer,) = decode::<(Result<candid::Reserved, Error>,)>(&reply);
            let shown = &argument[..argument.len().min(20)];
            assert!(
                matches!(answer, Err(Error::InvalidArgument { .. } | Error::TooLarge { .. })),
                "{shown:x?}: {answer:?}"
            );
        }
    }
    assert_eq!(canister.service.database.meta().transaction_id, before.transaction_id);
    assert_eq!(canister.service.database.meta().digest, before.digest);
    assert_eq!(get(&mut canister, "k"), Ok(Some("v".to_owned())));
}

#[test]
fn a_full_memory_is_an_error_and_what_was_stored_stays() {
    // Room for the first buckets of the virtual memories and nothing else: 128 pages for each of two, and the header.
    let mut canister = Canister::on(HeapMemory::with_limit(2 * 128 + 1)).unwrap();
    let value = "v".repeat(500_000);
    let mut stored = 0;
    let error = loop {
        match put(&mut canister, &format!("k{stored}"), &value) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100, "the memory has no limit");
    };
    assert!(matches!(error, Error::StorageFull { .. }), "{error:?}");
    assert!(stored >= 10, "{stored}");
    for round in 0..2 {
        assert_eq!(canister.call::<u64>(COUNT, ()), Ok(stored));
        assert_eq!(get(&mut canister, &format!("k{stored}")), Ok(None));
        assert_eq!(get(&mut canister, "k0"), Ok(Some(value.clone())));
        put(&mut canister, "k1", &format!("still writable {round}")).unwrap();
        canister = canister.upgrade();
    }
}

/// Random calls against a map. A failure prints the seed.
#[test]
fn random_calls_agree_with_a_map() {
    for seed in 1..=6u64 {
        let mut random = Random(seed);
        let mut canister = Canister::install();
        let mut model: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
        for step in 0..400 {
            let context = format!("seed {seed}, step {step}");
            let key = format!("{}", random.below(40)).repeat(1 + random.below(3) * 100);
            let text = char::from(b'a' + random.below(26) as u8).to_string().repeat(random.below(6_000));
            match random.below(8) {
                0..=2 => {
                    put(&mut canister, &key, &text).unwrap();
                    model.entry(key).or_default().0 = text;
                }
                3 => assert_eq!(
                    get(&mut canister, &key),
                    Ok(model.get(&key).map(|(value, _)| value.clone())),
                    "{context}"
                ),
                4 => {
                    let note = (random.below(3) > 0).then(|| text[..text.len().min(NOTE_BYTES_MAX)].to_owned());
                    let outcome = set_note(&mut canister, &key, note.as_deref());
                    assert_eq!(outcome.is_ok(), model.contains_key(&key), "{context}: {outcome:?}");
                    model.entry(key.clone()).and_modify(|entry| entry.1 = note);
                }
                5 => {
                    let note = get_note(&mut canister, &key).ok();
                    assert_eq!(note, model.get(&key).map(|(_, note)| note.clone()), "{context}");
                }
                6 => {
                    let keys: Vec<String> = (0..20).map(|index| index.to_string()).collect();
                    let values = canister.call::<Values>(GET_MANY, (&keys,)).unwrap().values;
                    let expected: Vec<_> = keys.iter().map(|key| model.get(key).map(|entry| entry.0.clone())).collect();
                    assert_eq!(values, expected, "{context}");
                }
                _ if random.below(10) == 0 => canister = canister.upgrade(),
                _ => assert_eq!(canister.call::<u64>(COUNT, ()), Ok(model.len() as u64), "{context}"),
            }
        }
    }
}
