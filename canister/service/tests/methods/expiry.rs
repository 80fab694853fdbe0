//! Entries that expire, and their removal by writes and by the timer.
use crate::common::Canister;
use crate::entries::{
    SECOND, append, delete, get, get_entry, keys_of, list, list_all, pattern, put, put_op, put_until, read, rows,
    set_note, text, write,
};
use icsql_canister::api::kv;
use icsql_canister::limits::{
    LIST_KEYS_SCANNED_MAX, OPERATIONS_MAX, SWEEP_AGAIN_NS, SWEEP_DELAY_NS, SWEEP_ENTRIES_PER_TIMER,
    SWEEP_ENTRIES_PER_WRITE, VALUE_BYTES_MAX,
};
use icsql_types::{Condition, Error, KvList, KvOperation, KvValue, Values, Written};

#[test]
fn an_expired_entry_is_gone_at_once_for_all_who_ask() {
    let mut canister = Canister::install();
    let at = canister.now + 10 * SECOND;
    put(&mut canister, "stays", "s");
    put_until(&mut canister, "goes", "g", at);
    set_note(&mut canister, "goes", "note").unwrap();
    assert_eq!(get_entry(&mut canister, "goes").unwrap().expires_at, Some(at));
    assert!(get_entry(&mut canister, "goes").unwrap().version > get_entry(&mut canister, "stays").unwrap().version);

    canister.now = at - 1;
    assert_eq!(get(&mut canister, "goes"), Ok(Some("g".to_owned())));
    assert_eq!(canister.call::<u64>(kv::count, ()), Ok(2));
    canister.now = at;
    let gone = |canister: &mut Canister| {
        assert_eq!(get(canister, "goes"), Ok(None));
        assert_eq!(canister.call::<Values>(kv::get_many, (vec!["goes", "stays"],)).unwrap().values[0], None);
        assert_eq!(get_entry(canister, "goes"), None);
        assert_eq!(read(canister, "goes", 0, 9), Ok(None));
        assert_eq!(keys_of(&list_all(canister, &KvList::default())), ["stays"]);
        assert_eq!(canister.call::<u64>(kv::count, ()), Ok(1));
        let missing = Error::NotFound { what: "key".to_owned(), name: "goes".to_owned() };
        assert_eq!(canister.call::<Option<String>>(kv::get_note, ("goes",)), Err(missing.clone()));
        assert_eq!(set_note(canister, "goes", "n"), Err(missing));
    };
    gone(&mut canister);
    let mut canister = canister.upgrade();
    gone(&mut canister);
    assert_eq!(rows(&canister, "kv"), 2, "nobody has removed it yet");
    let absent = [put_op("goes", text("again"), None, Some(Condition::Absent))];
    write(&mut canister, &absent).unwrap();
    let entry = get_entry(&mut canister, "goes").unwrap();
    assert_eq!(
        (entry.value, entry.expires_at, entry.note),
        (Some(text("again")), None, None),
        "nothing of it came back"
    );
    canister.now += 1_000 * SECOND;
    assert_eq!(get(&mut canister, "goes"), Ok(Some("again".to_owned())));
}

#[test]
fn what_writes_do_with_an_expiry() {
    let mut canister = Canister::install();
    let at = canister.now + 10 * SECOND;
    let expiry = |canister: &mut Canister| get_entry(canister, "k").map(|entry| (entry.expires_at, entry.note));
    let noted = Some("n".to_owned());
    put_until(&mut canister, "k", "1", at);
    set_note(&mut canister, "k", "n").unwrap();
    assert_eq!(expiry(&mut canister), Some((Some(at), noted.clone())), "a note leaves the expiry alone");
    put_until(&mut canister, "k", "2", at + 1);
    assert_eq!(expiry(&mut canister), Some((Some(at + 1), noted.clone())), "a put sets it anew");
    put(&mut canister, "k", "3");
    assert_eq!(expiry(&mut canister), Some((None, noted.clone())), "a put without one clears it");
    write(&mut canister, &[put_op("k", KvValue::Blob(vec![1]), Some(at), None)]).unwrap();
    append(&mut canister, "k", &[2]).unwrap();
    assert_eq!(expiry(&mut canister), Some((Some(at), noted)), "an append leaves it alone");

    canister.now = at;
    assert_eq!(append(&mut canister, "k", &[3]).unwrap().size, 1, "it begins anew");
    assert_eq!(expiry(&mut canister), Some((None, None)));
    put_until(&mut canister, "k", "past", at);
    assert_eq!(get(&mut canister, "k"), Ok(None), "a time in the past is gone at once");
    let beyond = [put_op("k", text("v"), Some(i64::MAX as u64 + 1), None)];
    let error = write(&mut canister, &beyond).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { argument, .. } if argument == "expires_at"), "{error:?}");
    put_until(&mut canister, "k", "last", i64::MAX as u64);
    assert_eq!(get_entry(&mut canister, "k").unwrap().expires_at, Some(i64::MAX as u64));
    // A deleted key takes its expiry along.
    assert_eq!(delete(&mut canister, "k").deleted, 1);
    assert_eq!((rows(&canister, "kv_expiry"), rows(&canister, "kv_note")), (0, 0));
    assert!(canister.service.kv.is_plain());
}

#[test]
fn the_timer_sweeps_in_bounded_steps_and_rests() {
    let mut canister = Canister::install();
    put(&mut canister, "stays", "s");
    assert_eq!(canister.timer, None, "nothing expires");
    let at = canister.now + 100 * SECOND;
    let total = 2 * SWEEP_ENTRIES_PER_TIMER as usize + 500;
    let operations: Vec<KvOperation> =
        (0..total).map(|index| put_op(&format!("k{index:05}"), text("v"), Some(at + index as u64), None)).collect();
    for part in operations.chunks(OPERATIONS_MAX) {
        write(&mut canister, part).unwrap();
    }
    assert_eq!(canister.timer, Some(at + SWEEP_DELAY_NS));
    let mut canister = canister.upgrade();
    assert_eq!(canister.timer, Some(at + SWEEP_DELAY_NS), "an upgrade sets it again");

    let mut left = Vec::new();
    canister.wait(100 * SECOND + SWEEP_DELAY_NS);
    left.push(rows(&canister, "kv_expiry"));
    for _ in 0..2 {
        canister.wait(SWEEP_AGAIN_NS);
        left.push(rows(&canister, "kv_expiry"));
    }
    // Each firing also takes the step that a write takes.
    let step = i64::from(SWEEP_ENTRIES_PER_TIMER + SWEEP_ENTRIES_PER_WRITE);
    assert_eq!(left, [total as i64 - step, total as i64 - 2 * step, 0]);
    assert_eq!(canister.timer, None, "nothing is left that expires");
    assert_eq!(rows(&canister, "kv"), 1);
    assert!(canister.service.kv.is_plain());
}

#[test]
fn writes_sweep_a_little_beside_their_own_work() {
    let mut canister = Canister::install();
    let at = canister.now + SECOND;
    let operations: Vec<KvOperation> =
        (0..10).map(|index| put_op(&format!("k{index}"), text("v"), Some(at), None)).collect();
    write(&mut canister, &operations).unwrap();
    canister.now = at;
    let mut left = Vec::new();
    while !canister.service.kv.is_plain() {
        put(&mut canister, "other", "v");
        left.push(rows(&canister, "kv_expiry"));
    }
    assert_eq!(left, [6, 2, 0]);
    assert_eq!(rows(&canister, "kv"), 1);
}

#[test]
fn a_large_value_that_expires_is_removed_a_few_parts_at_a_time() {
    let mut canister = Canister::install();
    let at = canister.now + SECOND;
    write(&mut canister, &[put_op("k", KvValue::Blob(Vec::new()), Some(at), None)]).unwrap();
    for _ in 0..3 {
        append(&mut canister, "k", &pattern(0, 1_000_000)).unwrap();
    }
    assert_eq!(rows(&canister, "kv_part"), 46);
    canister.now = at;
    let mut left = Vec::new();
    while !canister.service.kv.is_plain() {
        put(&mut canister, "other", "v");
        left.push((rows(&canister, "kv_part"), rows(&canister, "kv")));
        assert_eq!(get_entry(&mut canister, "k"), None);
        assert!(left.len() < 10);
    }
    assert_eq!(left, [(30, 2), (14, 2), (0, 1)]);

    // Written anew while half of it is still there.
    write(&mut canister, &[put_op("k", KvValue::Blob(Vec::new()), Some(at + SECOND), None)]).unwrap();
    append(&mut canister, "k", &pattern(0, VALUE_BYTES_MAX)).unwrap();
    canister.now += SECOND;
    put(&mut canister, "other", "v");
    assert_eq!(rows(&canister, "kv_part"), 13);
    assert_eq!(append(&mut canister, "k", b"new").unwrap().size, 3);
    assert_eq!(get_entry(&mut canister, "k").unwrap().value, Some(KvValue::Blob(b"new".to_vec())));
    assert!(canister.service.kv.is_plain());
}

#[test]
fn a_page_looks_at_so_many_keys() {
    let mut canister = Canister::install();
    let at = canister.now + SECOND;
    let total = LIST_KEYS_SCANNED_MAX + 1;
    let operations: Vec<KvOperation> =
        (0..total).map(|index| put_op(&format!("k{index:05}"), text(""), Some(at), None)).collect();
    for part in operations.chunks(OPERATIONS_MAX) {
        write(&mut canister, part).unwrap();
    }
    canister.call::<Written>(kv::put, ("l", "v")).unwrap();
    canister.now = at;
    let page = list(&mut canister, &KvList::default()).unwrap();
    assert_eq!(page.entries, [], "so many that have expired come first");
    let page = list(&mut canister, &KvList { cursor: page.cursor, ..KvList::default() }).unwrap();
    assert_eq!((keys_of(&page.entries), page.cursor), (vec!["l"], None));
}
