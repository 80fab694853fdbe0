//! Blobs, whole entries, lists and several changes at once through the methods, on heap memory.
use crate::common::{Canister, Endpoint};
use icsql_canister::api::kv;
use icsql_canister::api::kv::entries;
use icsql_canister::limits::{
    KEY_BYTES_MAX, KEYS_MAX, LIST_BYTES_MAX, LIST_ENTRIES_DEFAULT, LIST_ENTRIES_MAX, NOTE_BYTES_MAX, OPERATIONS_MAX,
    VALUE_BYTES_MAX,
};
use icsql_types::{
    Answer, Appended, ByteBuf, Condition, Deleted, Entry, Error, KvList, KvOperation, KvPage, KvValue, Part,
    WriteOptions, Written,
};

pub const GET_ENTRY: Endpoint = entries::get_entry;
pub const READ: Endpoint = entries::read;
pub const LIST: Endpoint = entries::list;
pub const PUT_BLOB: Endpoint = entries::put_blob;
pub const APPEND: Endpoint = entries::append;
pub const DELETE: Endpoint = entries::delete;
pub const DELETE_MANY: Endpoint = entries::delete_many;
pub const WRITE: Endpoint = entries::write;

const NO_OPTIONS: Option<WriteOptions> = None;
pub const SECOND: u64 = 1_000_000_000;

pub fn put(canister: &mut Canister, key: &str, value: &str) -> u64 {
    canister.call::<Written>(kv::put, (key, value)).unwrap().version
}

pub fn get(canister: &mut Canister, key: &str) -> Answer<Option<String>> {
    canister.call(kv::get, (key,))
}

pub fn put_blob(canister: &mut Canister, key: &str, value: &[u8]) -> Answer<Written> {
    canister.call(PUT_BLOB, (key, ByteBuf::from(value), NO_OPTIONS))
}

pub fn get_entry(canister: &mut Canister, key: &str) -> Option<Entry> {
    canister.call::<Option<Entry>>(GET_ENTRY, (key,)).unwrap()
}

pub fn read(canister: &mut Canister, key: &str, offset: u64, length: u32) -> Answer<Option<Part>> {
    canister.call(READ, (key, offset, length))
}

pub fn append(canister: &mut Canister, key: &str, bytes: &[u8]) -> Answer<Appended> {
    canister.call(APPEND, (key, ByteBuf::from(bytes), NO_OPTIONS))
}

pub fn delete(canister: &mut Canister, key: &str) -> Deleted {
    canister.call(DELETE, (key, NO_OPTIONS)).unwrap()
}

pub fn write(canister: &mut Canister, operations: &[KvOperation]) -> Answer<Written> {
    canister.call(WRITE, (operations, NO_OPTIONS))
}

pub fn list(canister: &mut Canister, list: &KvList) -> Answer<KvPage> {
    canister.call(LIST, (list,))
}

/// All pages of a list.
pub fn list_all(canister: &mut Canister, request: &KvList) -> Vec<Entry> {
    let (mut request, mut entries) = (request.clone(), Vec::new());
    loop {
        let page = list(canister, &request).unwrap();
        entries.extend(page.entries);
        match page.cursor {
            None => return entries,
            cursor => assert_ne!(std::mem::replace(&mut request.cursor, cursor.clone()), cursor, "no progress"),
        }
    }
}

pub fn keys_of(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

pub fn put_op(key: &str, value: KvValue, expires_at: Option<u64>, condition: Option<Condition>) -> KvOperation {
    KvOperation::Put { key: key.to_owned(), value, expires_at, condition }
}

pub fn text(value: &str) -> KvValue {
    KvValue::Text(value.to_owned())
}

pub fn put_until(canister: &mut Canister, key: &str, value: &str, expires_at: u64) {
    write(canister, &[put_op(key, text(value), Some(expires_at), None)]).unwrap();
}

pub fn set_note(canister: &mut Canister, key: &str, note: &str) -> Answer<()> {
    canister.call(kv::set_note, (key, Some(note), NO_OPTIONS))
}

pub fn too_large(what: &str, limit: usize, actual: usize) -> Error {
    Error::TooLarge { what: what.to_owned(), limit: limit as u64, actual: actual as u64 }
}

/// Rows of a table of the service's.
pub fn rows(canister: &Canister, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM main.{table}");
    canister.service.database.read(|reader| reader.query_row(&sql, (), |row| row.integer(0))).unwrap().unwrap()
}

#[test]
fn an_entry_comes_with_all_that_is_known_of_it() {
    let mut canister = Canister::install();
    assert_eq!(get_entry(&mut canister, "k"), None);
    let version = put(&mut canister, "k", "value");
    let entry = |value: KvValue, size, version, note: Option<&str>| Entry {
        key: "k".to_owned(),
        value: Some(value),
        size,
        version,
        expires_at: None,
        note: note.map(str::to_owned),
    };
    assert_eq!(get_entry(&mut canister, "k"), Some(entry(text("value"), 5, version, None)));
    set_note(&mut canister, "k", "n").unwrap();
    assert_eq!(
        get_entry(&mut canister, "k"),
        Some(entry(text("value"), 5, version, Some("n"))),
        "a note is no version"
    );

    let bytes = [0, 255, 0, 128];
    let version = put_blob(&mut canister, "k", &bytes).unwrap().version;
    assert_eq!(get_entry(&mut canister, "k"), Some(entry(KvValue::Blob(bytes.to_vec()), 4, version, Some("n"))));
    let error = get(&mut canister, "k").unwrap_err();
    assert!(matches!(&error, Error::Other { code, .. } if code == "not text"), "{error:?}");
    let version = put_blob(&mut canister, "k", &[]).unwrap().version;
    assert_eq!(get_entry(&mut canister, "k"), Some(entry(KvValue::Blob(Vec::new()), 0, version, Some("n"))));
    assert_eq!(
        read(&mut canister, "k", 0, 10),
        Ok(Some(Part { bytes: Vec::new(), size: 0, version })),
        "an empty blob is no missing key"
    );

    let version = put(&mut canister, "k", "aé");
    let part = |bytes: &[u8]| Ok(Some(Part { bytes: bytes.to_vec(), size: 3, version }));
    assert_eq!(read(&mut canister, "k", 0, 2), part(b"a\xc3"), "bytes, not characters");
    assert_eq!(read(&mut canister, "k", 2, 5), part(b"\xa9"));
    assert_eq!(read(&mut canister, "k", 3, 1), part(b""));
    assert_eq!(read(&mut canister, "k", u64::MAX, u32::MAX >> 12), part(b""));
    assert_eq!(read(&mut canister, "missing", 0, 1), Ok(None));
}

#[test]
fn a_deleted_key_is_gone_with_its_note() {
    let mut canister = Canister::install();
    let version = put(&mut canister, "a", "1");
    set_note(&mut canister, "a", "n").unwrap();
    let before = canister.service.database.meta().transaction_id;
    assert_eq!(delete(&mut canister, "b"), Deleted { deleted: 0, version: before });
    assert_eq!(canister.service.database.meta().transaction_id, before, "nothing was written");
    let deleted = delete(&mut canister, "a");
    assert_eq!(deleted, Deleted { deleted: 1, version: before + 1 });
    assert!(deleted.version > version);
    assert_eq!(get(&mut canister, "a"), Ok(None));
    put(&mut canister, "c", "3");
    assert_eq!(canister.call::<Deleted>(DELETE, ("c",)).unwrap().deleted, 1, "without options too");
    assert_eq!(get(&mut canister, "c"), Ok(None));
    put(&mut canister, "a", "2");
    assert_eq!(canister.call::<Option<String>>(kv::get_note, ("a",)), Ok(None), "the note does not come back");

    for index in 0..10 {
        put(&mut canister, &format!("k{index}"), "v");
    }
    let keys = ["k1", "k3", "k3", "missing", "k9"];
    let deleted = canister.call::<Deleted>(DELETE_MANY, (keys.to_vec(), NO_OPTIONS)).unwrap();
    assert_eq!(deleted.deleted, 3, "each key once");
    assert_eq!(canister.call::<u64>(kv::count, ()), Ok(8));
    let bad = canister.call::<Deleted>(DELETE_MANY, (vec!["k2", ""], NO_OPTIONS)).unwrap_err();
    assert!(matches!(&bad, Error::InvalidArgument { argument, .. } if argument == "key 1"), "{bad:?}");
    assert_eq!(get(&mut canister, "k2"), Ok(Some("v".to_owned())), "all or none");
}

#[test]
fn prefixes_are_exact_bytes() {
    let mut canister = Canister::install();
    let keys = [
        "\0",
        "%",
        "%a",
        "A",
        "[",
        "[a]",
        "_",
        "_a",
        "a",
        "a%",
        "a\0",
        "a\0b",
        "a_",
        "a_b",
        "aa",
        "ab",
        "a\u{7f}",
        "a\u{7f}b",
        "a\u{80}",
        "a\u{7ff}",
        "a\u{ffff}",
        "a\u{10ffff}",
        "a\u{10ffff}b",
        "b",
        "é",
        "\u{10ffff}",
        "\u{10ffff}\u{10ffff}",
    ];
    for key in keys {
        put(&mut canister, key, key);
    }
    let mut sorted = keys.to_vec();
    sorted.sort_by_key(|key| key.as_bytes());
    let prefixes = keys.into_iter().chain(["", "x", "a\u{10fffe}", "*", "?", "\u{ff}"]);
    for prefix in prefixes {
        let expected: Vec<&str> = sorted.iter().copied().filter(|key| key.starts_with(prefix)).collect();
        for limit in [None, Some(1), Some(2)] {
            let request = KvList { prefix: Some(prefix.to_owned()), limit, ..KvList::default() };
            assert_eq!(keys_of(&list_all(&mut canister, &request)), expected, "{prefix:?}");
            let reverse = KvList { reverse: Some(true), ..request };
            let mut found = list_all(&mut canister, &reverse);
            found.reverse();
            assert_eq!(keys_of(&found), expected, "{prefix:?} in reverse");
        }
    }
    for (from, to) in
        [(None, None), (Some("a"), None), (None, Some("a")), (Some("a"), Some("a\0b")), (Some("b"), Some("a"))]
    {
        let expected: Vec<&str> = sorted
            .iter()
            .copied()
            .filter(|key| from.is_none_or(|from| *key >= from) && to.is_none_or(|to| *key < to))
            .collect();
        let own = |text: Option<&str>| text.map(str::to_owned);
        let request = KvList { from: own(from), to: own(to), limit: Some(3), ..KvList::default() };
        assert_eq!(keys_of(&list_all(&mut canister, &request)), expected, "{from:?} {to:?}");
    }
}

#[test]
fn a_list_is_paged_by_entries_and_by_bytes() {
    let mut canister = Canister::install();
    for index in 0..250 {
        put(&mut canister, &format!("key-{index:03}"), &"v".repeat(index));
    }
    let page = list(&mut canister, &KvList::default()).unwrap();
    assert_eq!(page.entries.len(), LIST_ENTRIES_DEFAULT);
    assert!(page.cursor.is_some());
    assert!(page.entries.iter().all(|entry| entry.value.is_none()), "values are sent if asked for");
    assert_eq!(page.entries[7].size, 7);
    let all = list(&mut canister, &KvList { limit: Some(250), ..KvList::default() }).unwrap();
    assert_eq!((all.entries.len(), all.cursor), (250, None), "no cursor at the end");

    let values = KvList { values: Some(true), max_bytes: Some(1_000), ..KvList::default() };
    let entries = list_all(&mut canister, &values);
    assert_eq!(entries.len(), 250);
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(entry.value, Some(text(&"v".repeat(index))), "{index}");
    }
    let page = list(&mut canister, &KvList { reverse: Some(true), ..values.clone() }).unwrap();
    assert_eq!(keys_of(&page.entries), ["key-249", "key-248", "key-247"], "7 + 48 + 249 bytes each");
    // A page holds one entry at least, and says how large what it leaves out is.
    let page = list(&mut canister, &KvList { reverse: Some(true), max_bytes: Some(100), ..values }).unwrap();
    assert_eq!((page.entries.len(), &page.entries[0].value, page.entries[0].size), (1, &None, 249));
    assert!(page.cursor.is_some());
}

#[test]
fn a_cursor_belongs_to_its_list_and_survives_changes() {
    let mut canister = Canister::install();
    for key in ["a1", "a2", "a3", "a4", "b1"] {
        put(&mut canister, key, "v");
    }
    let request = KvList { prefix: Some("a".to_owned()), limit: Some(2), ..KvList::default() };
    let first = list(&mut canister, &request).unwrap();
    let cursor = first.cursor.clone();
    delete(&mut canister, "a2");
    put(&mut canister, "a21", "new");
    put(&mut canister, "a0", "behind the cursor");
    let second = list(&mut canister, &KvList { cursor: cursor.clone(), ..request.clone() }).unwrap();
    assert_eq!(keys_of(&second.entries), ["a21", "a3"], "it goes on behind the last key, which is gone");

    let others = [
        KvList { prefix: Some("b".to_owned()), cursor: cursor.clone(), ..KvList::default() },
        KvList { reverse: Some(true), cursor: cursor.clone(), ..request.clone() },
        KvList { to: Some("a2".to_owned()), cursor, ..KvList::default() },
        KvList { cursor: Some(ByteBuf::from([])), ..request.clone() },
        KvList { cursor: Some(ByteBuf::from([1])), ..request.clone() },
        KvList { cursor: Some(ByteBuf::from([2, 0, b'a'])), ..request.clone() },
        KvList { cursor: Some(ByteBuf::from([[1, 0].as_slice(), &[b'a'; KEY_BYTES_MAX + 1]].concat())), ..request },
    ];
    for other in others {
        let error = list(&mut canister, &other).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument { argument, .. } if argument == "cursor"), "{error:?}");
    }
    let both = KvList { prefix: Some(String::new()), from: Some("a".to_owned()), ..KvList::default() };
    let error = list(&mut canister, &both).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { argument, .. } if argument == "prefix"), "{error:?}");
}

#[test]
fn conditions_hold_for_all_or_nothing_is_done() {
    let mut canister = Canister::install();
    let version = put(&mut canister, "a", "1");
    let delete_op = |key: &str, condition| KvOperation::Delete { key: key.to_owned(), condition };
    let note_op =
        |key: &str, condition| KvOperation::Note { key: key.to_owned(), note: Some("n".to_owned()), condition };
    let written = write(
        &mut canister,
        &[
            put_op("a", text("2"), None, Some(Condition::Version(version))),
            put_op("b", KvValue::Blob(vec![9]), None, Some(Condition::Absent)),
            note_op("b", Some(Condition::Present)),
            delete_op("c", None),
            put_op("d", text("gone at once"), None, None),
            delete_op("d", Some(Condition::Present)),
        ],
    )
    .unwrap();
    assert_eq!(written.version, version + 1);
    let b = get_entry(&mut canister, "b").unwrap();
    assert_eq!((b.value, b.version, b.note.as_deref()), (Some(KvValue::Blob(vec![9])), written.version, Some("n")));
    assert_eq!(get(&mut canister, "a"), Ok(Some("2".to_owned())));
    assert_eq!(get(&mut canister, "d"), Ok(None));

    let before = canister.service.database.meta();
    let now = Some(written.version);
    for (operation, found) in [
        (put_op("a", text("3"), None, Some(Condition::Absent)), now),
        (put_op("a", text("3"), None, Some(Condition::Version(version))), now),
        (put_op("a", text("3"), None, Some(Condition::Version(u64::MAX))), now),
        (put_op("z", text("3"), None, Some(Condition::Present)), None),
        (put_op("z", text("3"), None, Some(Condition::Version(0))), None),
        (delete_op("z", Some(Condition::Present)), None),
        (delete_op("a", Some(Condition::Absent)), now),
        (note_op("a", Some(Condition::Version(1))), now),
    ] {
        let key = match &operation {
            KvOperation::Put { key, .. } | KvOperation::Delete { key, .. } | KvOperation::Note { key, .. } => {
                key.clone()
            }
        };
        let outcome = write(&mut canister, &[put_op("new", text("x"), None, None), operation.clone()]);
        assert_eq!(outcome, Err(Error::ConditionFailed { index: 1, key, version: found }), "{operation:?}");
    }
    let missing = write(&mut canister, &[put_op("new", text("x"), None, None), note_op("z", None)]);
    assert_eq!(missing, Err(Error::NotFound { what: "key".to_owned(), name: "z".to_owned() }));
    assert_eq!(get(&mut canister, "new"), Ok(None));
    assert_eq!(canister.service.database.meta().digest, before.digest, "nothing was written");
    let nothing = write(&mut canister, &[delete_op("z", None)]).unwrap();
    assert_eq!(nothing.version, written.version, "the transaction before");
}

#[test]
fn limits_hold_at_their_edges() {
    let mut canister = Canister::install();
    let blob = vec![7; VALUE_BYTES_MAX + 1];
    for bytes in [VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX] {
        put_blob(&mut canister, "b", &blob[..bytes]).unwrap();
        assert_eq!(get_entry(&mut canister, "b").unwrap().value, Some(KvValue::Blob(blob[..bytes].to_vec())));
        write(&mut canister, &[put_op("b", KvValue::Blob(blob[..bytes].to_vec()), None, None)]).unwrap();
    }
    // The largest entry there is fits a page.
    let key = "k".repeat(KEY_BYTES_MAX);
    put_blob(&mut canister, &key, &blob[..VALUE_BYTES_MAX]).unwrap();
    set_note(&mut canister, &key, &"n".repeat(NOTE_BYTES_MAX)).unwrap();
    let page = list(&mut canister, &KvList { prefix: Some(key), values: Some(true), ..KvList::default() }).unwrap();
    assert!(page.entries[0].value.is_some() && page.cursor.is_none());

    let before = canister.service.database.meta().transaction_id;
    let over = VALUE_BYTES_MAX + 1;
    assert_eq!(put_blob(&mut canister, "b", &blob), Err(too_large("value", VALUE_BYTES_MAX, over)));
    assert_eq!(append(&mut canister, "b", &blob), Err(too_large("bytes", VALUE_BYTES_MAX, over)));
    assert_eq!(read(&mut canister, "b", 0, over as u32), Err(too_large("length", VALUE_BYTES_MAX, over)));
    let operation = |value| [put_op("x", text("v"), None, None), put_op("b", value, None, None)];
    assert_eq!(write(&mut canister, &operation(KvValue::Blob(blob))), Err(too_large("value 1", VALUE_BYTES_MAX, over)));
    let note = KvOperation::Note { key: "b".to_owned(), note: Some("n".repeat(NOTE_BYTES_MAX + 1)), condition: None };
    assert_eq!(write(&mut canister, &[note]), Err(too_large("note 0", NOTE_BYTES_MAX, NOTE_BYTES_MAX + 1)));
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let error = too_large("key", KEY_BYTES_MAX, long.len());
    assert_eq!(canister.call::<Option<Entry>>(GET_ENTRY, (&long,)), Err(error.clone()));
    assert_eq!(read(&mut canister, &long, 0, 1), Err(error.clone()));
    assert_eq!(canister.call::<Deleted>(DELETE, (&long,)), Err(error.clone()));
    assert_eq!(append(&mut canister, &long, b""), Err(error.clone()));
    assert_eq!(put_blob(&mut canister, &long, b""), Err(error));
    for (what, request) in [
        ("prefix", KvList { prefix: Some(long.clone()), ..KvList::default() }),
        ("from", KvList { from: Some(long.clone()), ..KvList::default() }),
        ("to", KvList { to: Some(long), ..KvList::default() }),
    ] {
        assert_eq!(list(&mut canister, &request), Err(too_large(what, KEY_BYTES_MAX, KEY_BYTES_MAX + 1)));
    }
    let limited = |limit: usize| KvList { limit: Some(limit as u32), ..KvList::default() };
    assert_eq!(
        list(&mut canister, &limited(LIST_ENTRIES_MAX + 1)),
        Err(too_large("limit", LIST_ENTRIES_MAX, LIST_ENTRIES_MAX + 1))
    );
    let error = list(&mut canister, &limited(0)).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { argument, .. } if argument == "limit"), "{error:?}");
    let bytes = |bytes: usize| KvList { max_bytes: Some(bytes as u64), ..KvList::default() };
    assert_eq!(
        list(&mut canister, &bytes(LIST_BYTES_MAX + 1)),
        Err(too_large("max_bytes", LIST_BYTES_MAX, LIST_BYTES_MAX + 1))
    );
    for request in [limited(LIST_ENTRIES_MAX - 1), limited(LIST_ENTRIES_MAX), bytes(LIST_BYTES_MAX)] {
        assert_eq!(list(&mut canister, &request).unwrap().entries.len(), 2);
    }
    let operations = vec![KvOperation::Delete { key: "z".to_owned(), condition: None }; OPERATIONS_MAX + 1];
    assert_eq!(write(&mut canister, &operations), Err(too_large("operations", OPERATIONS_MAX, OPERATIONS_MAX + 1)));
    let keys = vec!["z"; KEYS_MAX + 1];
    assert_eq!(canister.call::<Deleted>(DELETE_MANY, (&keys,)), Err(too_large("keys", KEYS_MAX, KEYS_MAX + 1)));
    assert_eq!(canister.service.database.meta().transaction_id, before, "a refused call writes nothing");
    for count in [0, OPERATIONS_MAX - 1, OPERATIONS_MAX] {
        write(&mut canister, &operations[..count]).unwrap();
        assert_eq!(canister.call::<Deleted>(DELETE_MANY, (&keys[..count],)).unwrap().deleted, 0);
    }
}

/// Bytes that tell where they stand.
pub fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}
