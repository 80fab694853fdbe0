//! Values in parts: appended to, read by ranges, removed.
use crate::common::Canister;
use crate::entries::{
    DELETE_MANY, append, delete, get, get_entry, list_all, pattern, put, put_blob, read, rows, too_large,
};
use icsql_canister::limits::{REMOVED_PARTS_MAX, VALUE_BYTES_MAX, VALUE_IN_PARTS_BYTES_MAX, VALUE_PART_BYTES};
use icsql_engine::Error as EngineError;
use icsql_types::{Deleted, Error, KvList, KvValue};

#[test]
fn a_large_value_grows_by_appends_and_is_read_by_ranges() {
    let mut canister = Canister::install();
    let part = VALUE_PART_BYTES;
    let mut size = 0;
    // Sizes around the parts' bounds, from nothing to parts.
    for length in [0, 1, part - 2, 1, 1, part - 1, part, part + 1, 3 * part, 7, 0, VALUE_BYTES_MAX] {
        let appended = append(&mut canister, "k", &pattern(size, length)).unwrap();
        size += length;
        assert_eq!(appended.size, size as u64);
        let entry = get_entry(&mut canister, "k").unwrap();
        assert_eq!((entry.size, entry.version), (appended.size, appended.version));
        if size <= VALUE_BYTES_MAX {
            assert!(entry.value == Some(KvValue::Blob(pattern(0, size))), "{size}");
        } else {
            assert_eq!(entry.value, None);
        }
    }
    let mut canister = canister.upgrade();
    let version = get_entry(&mut canister, "k").unwrap().version;
    for offset in [0, 1, part - 1, part, part + 1, 5 * part, size - VALUE_BYTES_MAX, size - 1, size, size + 1] {
        for length in [0, 1, part - 1, part, part + 1, VALUE_BYTES_MAX] {
            let expected = pattern(offset, length.min(size.saturating_sub(offset)));
            let found = read(&mut canister, "k", offset as u64, length as u32).unwrap().unwrap();
            assert!(found.bytes == expected, "{offset} {length}");
            assert_eq!((found.size, found.version), (size as u64, version));
        }
    }
    let listed = list_all(&mut canister, &KvList { values: Some(true), ..KvList::default() });
    assert_eq!((listed.len(), &listed[0].value, listed[0].size), (1, &None, size as u64), "read it with kv_read");
    let error = get(&mut canister, "k").unwrap_err();
    assert!(matches!(&error, Error::Other { code, .. } if code == "not text"), "{error:?}");

    assert!(canister.service.kv.parts);
    put(&mut canister, "k", "small");
    assert_eq!((rows(&canister, "kv_part"), canister.service.kv.parts), (0, false), "a put leaves no parts behind");
    let error = append(&mut canister, "k", b"x").unwrap_err();
    assert!(matches!(&error, Error::Other { code, .. } if code == "not a blob"), "{error:?}");
    // A blob that was put grows too, and one in parts that fits comes with a list.
    put_blob(&mut canister, "k", &pattern(0, 100_000)).unwrap();
    append(&mut canister, "k", &pattern(100_000, 100_000)).unwrap();
    let listed = list_all(&mut canister, &KvList { values: Some(true), ..KvList::default() });
    assert!(listed[0].value == Some(KvValue::Blob(pattern(0, 200_000))));
    assert_eq!(rows(&canister, "kv_part"), 4);
    assert_eq!(delete(&mut canister, "k").deleted, 1);
    assert_eq!((rows(&canister, "kv_part"), canister.service.kv.parts), (0, false));
}

/// The sizes of large values are told to the database, since writing so much would take minutes.
#[test]
fn limits_of_large_values_hold_at_their_edges() {
    let mut canister = Canister::install();
    let claim = |canister: &mut Canister, key: &str, size: u64| {
        append(canister, key, &pattern(0, 2 * VALUE_PART_BYTES)).unwrap();
        let sql = "UPDATE main.kv SET value = ?2 WHERE key = ?1";
        let changed = canister.service.database.write(|writer| writer.execute(sql, (key, size as i64)));
        assert_eq!(changed, Ok::<_, EngineError>(1));
    };
    let part = VALUE_PART_BYTES as u64;
    claim(&mut canister, "k", VALUE_IN_PARTS_BYTES_MAX - 2 * part);
    let bytes = pattern(0, VALUE_PART_BYTES);
    assert_eq!(append(&mut canister, "k", &bytes).unwrap().size, VALUE_IN_PARTS_BYTES_MAX - part);
    let over = too_large("value", VALUE_IN_PARTS_BYTES_MAX as usize, VALUE_IN_PARTS_BYTES_MAX as usize + 1);
    let long = pattern(0, VALUE_PART_BYTES + 1);
    assert_eq!(append(&mut canister, "k", &long), Err(over.clone()));
    assert_eq!(append(&mut canister, "k", &long[2..]).unwrap().size, VALUE_IN_PARTS_BYTES_MAX - 1);
    assert_eq!(append(&mut canister, "k", b"1").unwrap().size, VALUE_IN_PARTS_BYTES_MAX);
    assert_eq!(append(&mut canister, "k", b"2"), Err(over));
    assert_eq!(
        read(&mut canister, "k", VALUE_IN_PARTS_BYTES_MAX - 2, 9).unwrap().unwrap().bytes,
        [long[VALUE_PART_BYTES], b'1']
    );
    let damaged = read(&mut canister, "k", 5 * part, 1).unwrap_err();
    assert!(matches!(damaged, Error::Corrupt { .. }), "{damaged:?}");
    assert_eq!(delete(&mut canister, "k").deleted, 1);

    let each = VALUE_IN_PARTS_BYTES_MAX / part;
    let keys: Vec<String> = (0..REMOVED_PARTS_MAX / each).map(|index| index.to_string()).collect();
    let all = |canister: &mut Canister, last: u64| {
        for key in &keys {
            claim(canister, key, VALUE_IN_PARTS_BYTES_MAX);
        }
        claim(canister, "last", last);
        canister.call::<Deleted>(DELETE_MANY, ([&keys[1..], &["last".to_owned()]].concat(),))
    };
    assert_eq!(all(&mut canister, VALUE_IN_PARTS_BYTES_MAX).unwrap().deleted, keys.len() as u64);
    assert_eq!(delete(&mut canister, "0").deleted, 1);
    assert_eq!(all(&mut canister, VALUE_IN_PARTS_BYTES_MAX - part).unwrap().deleted, keys.len() as u64);
    assert_eq!(delete(&mut canister, "0").deleted, 1);
    let refused = all(&mut canister, VALUE_IN_PARTS_BYTES_MAX + part).unwrap_err();
    let limit = REMOVED_PARTS_MAX * part;
    let what = "bytes of large values that the call removes";
    assert_eq!(refused, too_large(what, limit as usize, (limit + part) as usize));
    assert_eq!(get_entry(&mut canister, "1").unwrap().size, VALUE_IN_PARTS_BYTES_MAX, "nothing was removed");
}
