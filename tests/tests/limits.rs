//! Every limit at n-1, n and n+1, and texts that are hard to carry.

use candid::Decode;
use icsql_tests::{Icsql, controller, encode};
use icsql_types::method::{DB_CHECKSUM, DB_META, KV_COUNT, KV_GET, KV_GET_MANY, KV_GET_NOTE, KV_PUT, KV_SET_NOTE};
use icsql_types::{Answer, Error, Limits, Values, Written};

const LIMITS: Limits = Limits {
    key_bytes_max: 1_024,
    value_bytes_max: 1_900_000,
    note_bytes_max: 4_096,
    keys_per_call_max: 1_000,
    // What db_meta answers; the platform's limit of 2 MiB is above it.
    reply_bytes_max: 0,
};

fn text_of(bytes: u32) -> String {
    "x".repeat(bytes as usize)
}

/// A text of so many bytes that ends in a character of four bytes.
fn wide_text_of(bytes: u32) -> String {
    let mut text = text_of(bytes - 4);
    text.push('𝄞');
    text
}

fn expect_too_large<T: std::fmt::Debug>(answer: Answer<T>, limit: u32, actual: u32) {
    match answer {
        Err(Error::TooLarge { what, limit: said_limit, actual: said_actual }) => {
            assert_eq!((said_limit, said_actual), (limit.into(), actual.into()), "{what}");
        }
        other => panic!("expected TooLarge, got {other:?}"),
    }
}

#[test]
fn the_limits_are_the_documented_ones() {
    let said = Icsql::deploy().ok(&DB_META, ()).limits;
    assert!(said.reply_bytes_max > said.value_bytes_max && said.reply_bytes_max <= 2 << 20, "{said:?}");
    assert_eq!(Limits { reply_bytes_max: 0, ..said }, LIMITS);
}

#[test]
fn keys() {
    let icsql = Icsql::deploy();
    let max = LIMITS.key_bytes_max;
    for key in [text_of(1), text_of(max - 1), text_of(max), wide_text_of(max - 1), wide_text_of(max)] {
        icsql.put(&key, &key);
        assert_eq!(icsql.get(&key).as_ref(), Some(&key));
        icsql.ok(&KV_SET_NOTE, (key.clone(), Some("note".to_string()), None));
        assert_eq!(icsql.ok(&KV_GET_NOTE, (key.clone(),)).as_deref(), Some("note"));
    }
    assert_eq!(icsql.ok(&KV_COUNT, ()), 5);
    for key in [text_of(max + 1), wide_text_of(max + 1)] {
        expect_too_large(icsql.call(&KV_PUT, (key.clone(), String::new(), None)), max, max + 1);
        expect_too_large(icsql.call(&KV_GET, (key.clone(),)), max, max + 1);
        expect_too_large(icsql.call(&KV_GET_MANY, (vec![key.clone()],)), max, max + 1);
        expect_too_large(icsql.call(&KV_SET_NOTE, (key.clone(), None, None)), max, max + 1);
        expect_too_large(icsql.call(&KV_GET_NOTE, (key,)), max, max + 1);
    }
    let empty = String::new;
    let refused =
        |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::InvalidArgument { .. })), "{answer:?}");
    refused(icsql.call(&KV_PUT, (empty(), empty(), None)).map(drop));
    refused(icsql.call(&KV_GET, (empty(),)).map(drop));
    refused(icsql.call(&KV_GET_MANY, (vec![empty()],)).map(drop));
    refused(icsql.call(&KV_SET_NOTE, (empty(), None, None)));
    refused(icsql.call(&KV_GET_NOTE, (empty(),)).map(drop));
    assert_eq!(icsql.ok(&KV_COUNT, ()), 5);
}

#[test]
fn values() {
    let icsql = Icsql::deploy();
    let max = LIMITS.value_bytes_max;
    for value in [String::new(), text_of(1), text_of(max - 1), text_of(max), wide_text_of(max)] {
        icsql.put("key", &value);
        assert!(icsql.get("key") == Some(value.clone()), "a value of {} bytes came back changed", value.len());
        // As an update, whose reply may be smaller than a query's.
        let reply = icsql.pic.update_call(icsql.id, controller(), KV_GET.name, encode(("key",))).unwrap();
        assert!(Decode!(&reply, Answer<Option<String>>).unwrap() == Ok(Some(value)));
    }
    let before = icsql.ok(&DB_CHECKSUM, ());
    expect_too_large(icsql.call(&KV_PUT, ("key".to_string(), text_of(max + 1), None)), max, max + 1);
    expect_too_large(icsql.call(&KV_PUT, ("key".to_string(), wide_text_of(max + 1), None)), max, max + 1);
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
}

#[test]
fn notes() {
    let icsql = Icsql::deploy();
    let max = LIMITS.note_bytes_max;
    icsql.put("key", "value");
    for note in [String::new(), text_of(max - 1), text_of(max), wide_text_of(max)] {
        icsql.ok(&KV_SET_NOTE, ("key".to_string(), Some(note.clone()), None));
        assert_eq!(icsql.ok(&KV_GET_NOTE, ("key".to_string(),)), Some(note));
    }
    expect_too_large(icsql.call(&KV_SET_NOTE, ("key".to_string(), Some(text_of(max + 1)), None)), max, max + 1);
    assert_eq!(icsql.ok(&KV_GET_NOTE, ("key".to_string(),)), Some(wide_text_of(max)));

    icsql.put("key", "another value");
    assert_eq!(icsql.ok(&KV_GET_NOTE, ("key".to_string(),)), Some(wide_text_of(max)), "a put keeps the note");
    icsql.ok(&KV_SET_NOTE, ("key".to_string(), None, None));
    assert_eq!(icsql.ok(&KV_GET_NOTE, ("key".to_string(),)), None);

    let missing = || "missing".to_string();
    let not_found = |answer: Answer<()>| assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    not_found(icsql.call(&KV_GET_NOTE, (missing(),)).map(drop));
    not_found(icsql.call(&KV_SET_NOTE, (missing(), Some("note".to_string()), None)));
    not_found(icsql.call(&KV_SET_NOTE, (missing(), None, None)));
}

#[test]
fn keys_per_call() {
    let icsql = Icsql::deploy();
    let max = LIMITS.keys_per_call_max;
    icsql.put("key-000001", "value");
    let keys = |n: u32| (0..n).map(|i| format!("key-{i:06}")).collect::<Vec<_>>();
    for n in [0, 1, max - 1, max] {
        let Values { values, next } = icsql.ok(&KV_GET_MANY, (keys(n),));
        assert_eq!((values.len(), next), (n as usize, None));
        let found: Vec<usize> = (0..values.len()).filter(|&i| values[i].is_some()).collect();
        assert_eq!(found, if n > 1 { vec![1] } else { vec![] });
    }
    expect_too_large(icsql.call(&KV_GET_MANY, (keys(max + 1),)), max, max + 1);
}

/// 20 values of 300 KB are three replies; each holds what fits and says where it stopped.
#[test]
fn a_reply_that_would_be_too_large_stops_early() {
    let icsql = Icsql::deploy();
    let keys: Vec<String> = (0..20).map(|i| format!("key-{i:06}")).collect();
    let value = |i: usize| format!("{i:02}").repeat(150_000);
    for (i, key) in keys.iter().enumerate() {
        icsql.put(key, &value(i));
    }
    let limit = icsql.ok(&DB_META, ()).limits.reply_bytes_max as usize;
    for replicated in [false, true] {
        let mut done = 0;
        let mut replies = 0;
        while done < keys.len() {
            let argument = encode((&keys[done..],));
            let reply = if replicated {
                icsql.pic.update_call(icsql.id, controller(), KV_GET_MANY.name, argument).unwrap()
            } else {
                icsql.pic.query_call(icsql.id, controller(), KV_GET_MANY.name, argument).unwrap()
            };
            assert!(reply.len() <= limit, "a reply of {} bytes", reply.len());
            let Values { values, next } = Decode!(&reply, Answer<Values>).unwrap().unwrap();
            assert!(!values.is_empty(), "no progress at key {done}");
            assert_eq!(next.map_or(keys.len() - done, |next| next as usize), values.len());
            if next.is_some() {
                assert!(reply.len() + 300_000 + 1_000 > limit, "stopped at {} bytes", reply.len());
            }
            for (i, found) in values.iter().enumerate() {
                assert!(found.as_ref() == Some(&value(done + i)), "key {} came back changed", done + i);
            }
            done += values.len();
            replies += 1;
        }
        assert_eq!(replies, 20_usize.div_ceil(limit / 300_000));
    }
}

/// The largest key with the largest value fits into an argument and into a reply.
#[test]
fn the_largest_put() {
    let icsql = Icsql::deploy();
    let (key, value) = (text_of(LIMITS.key_bytes_max), text_of(LIMITS.value_bytes_max));
    icsql.put(&key, &value);
    let Values { values, next } = icsql.ok(&KV_GET_MANY, (vec![key.clone(), key],));
    assert_eq!((values.len(), next), (1, Some(1)));
    assert!(values[0].as_ref() == Some(&value));
}

/// An argument close to what the platform lets in is answered, not trapped.
#[test]
fn the_largest_argument() {
    let icsql = Icsql::deploy();
    let before = icsql.ok(&DB_CHECKSUM, ());
    let padding = encode(("", "")).len() + 8;
    let bytes = (2 << 20) - padding as u32 - 64;
    match icsql.call_raw(controller(), &KV_PUT, encode(("k", text_of(bytes)))) {
        Ok(reply) => expect_too_large(Decode!(&reply, Answer<Written>).unwrap(), LIMITS.value_bytes_max, bytes),
        Err(reject) => panic!("{reject}"),
    }
    assert_eq!(icsql.ok(&DB_CHECKSUM, ()), before);
}

#[test]
fn every_text_round_trips() {
    let icsql = Icsql::deploy();
    let texts = [
        "\0",
        "a\0b",
        "\0\0\0",
        "ä",
        "e\u{301}",
        "日本語",
        "🏳️‍🌈",
        "\u{feff}bom",
        "\u{10ffff}",
        "'; DROP TABLE kv; --",
        "%_?1:a@b$c",
        "\r\n\t",
        " ",
        "NULL",
    ];
    for (i, text) in texts.iter().enumerate() {
        icsql.put(text, text);
        icsql.ok(&KV_SET_NOTE, (text.to_string(), Some(text.to_string()), None));
        assert_eq!(icsql.ok(&KV_COUNT, ()), i as u64 + 1);
    }
    let all: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
    assert_eq!(icsql.ok(&KV_GET_MANY, (all.clone(),)).values, all.iter().cloned().map(Some).collect::<Vec<_>>());
    for text in texts {
        assert_eq!(icsql.get(text).as_deref(), Some(text));
        assert_eq!(icsql.ok(&KV_GET_NOTE, (text.to_string(),)).as_deref(), Some(text));
    }
    // Keys that differ only in what comes after a NUL, in case, or in composition are different keys.
    for other in ["a\0c", "a", "Ä", "é", "\0\0"] {
        assert_eq!(icsql.get(other), None, "{other:?}");
    }
}
