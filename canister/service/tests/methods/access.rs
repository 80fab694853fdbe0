//! Who may call what: every method against every kind of caller.
use crate::common::{CONTROLLER, Canister, Endpoint, Message, decode, reads_argument};
use candid::{Principal, encode_args};
use icsql_canister::api::kv::entries;
use icsql_canister::api::{access, db, kv, query, sql};
use icsql_canister::guard::{self, RULES};
use icsql_canister::limits::{IDEMPOTENCY_KEY_BYTES_MAX, IDEMPOTENCY_KEYS_SWEPT, IDEMPOTENCY_NS, ROLES_MAX};
use icsql_types::{
    AccessList, Answer, ByteBuf, Callers, Error, Grant, KvList, KvOperation, Params, QueryDefinition, Role,
    SqlMigration, Statement, WriteOptions, Written, method,
};

const READER: &[u8] = b"reader";
const WRITER: &[u8] = b"writer";
const ADMIN: &[u8] = b"admin";
const STRANGER: &[u8] = b"stranger";
const ANONYMOUS: &[u8] = &[4];

/// Every method with an argument that it accepts.
fn endpoints() -> Vec<(&'static str, Endpoint, Vec<u8>)> {
    let none = encode_args(()).unwrap();
    let who = Principal::from_slice(b"somebody");
    let select = encode_args((Statement { sql: "SELECT 1".to_owned(), params: None },)).unwrap();
    let definition = QueryDefinition {
        name: "q".to_owned(),
        sql: "SELECT 1".to_owned(),
        params: Vec::new(),
        callers: Callers::Public,
        max_rows: None,
        max_bytes: None,
        max_instructions: None,
        allow_full_scan: None,
    };
    vec![
        ("kv_put", kv::put, encode_args(("k", "v")).unwrap()),
        ("kv_get", kv::get, encode_args(("k",)).unwrap()),
        ("kv_get_many", kv::get_many, encode_args((vec!["k"],)).unwrap()),
        ("kv_set_note", kv::set_note, encode_args(("k", Some("n"))).unwrap()),
        ("kv_get_note", kv::get_note, encode_args(("k",)).unwrap()),
        ("kv_count", kv::count, none.clone()),
        ("kv_get_entry", entries::get_entry, encode_args(("k",)).unwrap()),
        ("kv_read", entries::read, encode_args(("k", 0u64, 1u32)).unwrap()),
        ("kv_list", entries::list, encode_args((KvList::default(),)).unwrap()),
        ("kv_put_blob", entries::put_blob, encode_args(("b", ByteBuf::from([1]))).unwrap()),
        ("kv_append", entries::append, encode_args(("b", ByteBuf::from([2]))).unwrap()),
        ("kv_delete", entries::delete, encode_args(("k",)).unwrap()),
        ("kv_delete_many", entries::delete_many, encode_args((vec!["b"],)).unwrap()),
        ("kv_write", entries::write, encode_args((Vec::<KvOperation>::new(),)).unwrap()),
        ("access_grant", access::grant, encode_args((Grant { who, role: Role::Reader },)).unwrap()),
        ("access_revoke", access::revoke, encode_args((who,)).unwrap()),
        ("access_list", access::list, none.clone()),
        ("access_set_public_kv", access::set_public_kv, encode_args((true,)).unwrap()),
        ("sql_query", sql::query, select.clone()),
        ("sql_execute", sql::execute, select.clone()),
        ("sql_batch", sql::batch, encode_args((Vec::<Statement>::new(),)).unwrap()),
        ("sql_explain", sql::explain_plan, select),
        ("sql_schema", sql::schema, none.clone()),
        ("sql_migrate", sql::migrate, encode_args((Vec::<SqlMigration>::new(),)).unwrap()),
        ("sql_migrations", sql::migrations, none.clone()),
        ("query_define", query::define, encode_args((definition,)).unwrap()),
        ("query_drop", query::drop, encode_args(("q",)).unwrap()),
        ("query_list", query::list, none.clone()),
        ("query_call", query::call, encode_args(("q", Params::None)).unwrap()),
        ("db_meta", db::meta, none.clone()),
        ("db_integrity_check", db::integrity_check, none.clone()),
        ("db_checksum", db::checksum, none.clone()),
        ("db_refresh_checksum", db::refresh_checksum, none.clone()),
        ("db_refresh_checksum_chunk", db::refresh_checksum_chunk, none),
    ]
}

/// Who may call a method, by the comment on it in the contract. A method without one of these sentences fails the test.
fn least_in_contract(name: &str) -> &'static str {
    let contract = include_str!("../../../../candid/icsql.did");
    let place = contract.find(&format!("\n  {name} : ")).unwrap_or_else(|| panic!("{name} is not in the contract"));
    let comment = contract[..place].rsplit("\n\n").next().unwrap_or_default();
    // The last paragraph in front of the method.
    let sentences = ["Anyone.", "Anyone while kv is public.", "Readers.", "Writers.", "Admins."];
    let found: Vec<_> = sentences.into_iter().filter(|sentence| comment.contains(&format!(" {sentence}"))).collect();
    assert_eq!(found.len(), 1, "{name}: the contract must say who may call it, with one of {sentences:?}");
    found[0]
}

/// A canister where each of the callers has the role that it is called by.
fn with_roles() -> Canister {
    let mut canister = Canister::install();
    for (who, role) in [(READER, Role::Reader), (WRITER, Role::Writer), (ADMIN, Role::Admin)] {
        grant(&mut canister, who, role).unwrap();
    }
    canister
}

fn grant(canister: &mut Canister, who: &[u8], role: Role) -> Answer<()> {
    canister.call(access::grant, (Grant { who: Principal::from_slice(who), role },))
}

fn is_forbidden(reply: &[u8]) -> bool {
    let (answer,) = decode::<(Result<candid::Reserved, Error>,)>(reply);
    matches!(answer, Err(Error::Forbidden { .. }))
}

/// The callers that may call a method, in the order of [`CALLERS`].
fn allowed(least: &str, public_kv: bool) -> [bool; 6] {
    match least {
        "Anyone." => [true; 6],
        "Anyone while kv is public." if public_kv => [true; 6],
        "Anyone while kv is public." | "Readers." => [false, false, true, true, true, true],
        "Writers." => [false, false, false, true, true, true],
        _ => [false, false, false, false, true, true],
    }
}

const CALLERS: [&[u8]; 6] = [ANONYMOUS, STRANGER, READER, WRITER, ADMIN, CONTROLLER];

#[test]
fn each_method_is_for_those_that_the_contract_names() {
    assert_eq!(endpoints().len(), method::ALL.len(), "every method stands in this test");
    for public_kv in [true, false] {
        for (name, endpoint, argument) in endpoints() {
            let least = least_in_contract(name);
            let rule = RULES.iter().find(|rule| rule.name == name).unwrap();
            for (caller, allowed) in CALLERS.into_iter().zip(allowed(least, public_kv)) {
                let who = format!("{name} as {}", String::from_utf8_lossy(caller));
                let mut canister = with_roles();
                canister.call::<()>(access::set_public_kv, (public_kv,)).unwrap();
                let roles = &canister.service.roles;
                let accepts = |argument| guard::accepts(&Message::from(argument, caller, 0), roles, name.as_bytes());
                assert_eq!(accepts(argument.clone()), allowed, "{who}: inspection");
                if allowed {
                    assert!(accepts(vec![0; rule.argument_bytes_max]), "{who} at its limit");
                    assert!(!accepts(vec![0; rule.argument_bytes_max + 1]), "{who} above its limit");
                }
                let before = canister.service.database.meta().transaction_id;
                let message = Message::from(argument.clone(), caller, 0);
                assert_eq!(reads_argument(&mut canister, endpoint, &message), allowed, "{who} reads the argument");
                let oversized = Message::from(vec![0; 2 * 1_024 * 1_024 + 1], caller, 0);
                assert!(!reads_argument(&mut canister, endpoint, &oversized), "{who} reads an argument of any size");
                let reply = canister.deliver(endpoint, Message::from(argument.clone(), caller, 0));
                assert_eq!(is_forbidden(&reply), !allowed, "{who}");
                let wrote = canister.service.database.meta().transaction_id != before;
                assert!(allowed || !wrote, "{who} wrote something");
            }
        }
    }
    let canister = with_roles();
    for unknown in ["", "kv_pu", "kv_putt", "canister_init", "http_request_update"] {
        let message = Message::new(Vec::new(), true);
        assert!(!guard::accepts(&message, &canister.service.roles, unknown.as_bytes()), "{unknown:?}");
    }
}

#[test]
fn roles_survive_an_upgrade_and_end_with_their_revocation() {
    let mut canister = with_roles();
    canister.call::<()>(access::set_public_kv, (false,)).unwrap();
    let mut canister = canister.upgrade();
    let list: AccessList = canister.call(access::list, ()).unwrap();
    assert_eq!((list.grants.len(), list.public_kv), (3, false));
    let put = |canister: &mut Canister, who: &[u8]| {
        let reply = canister.deliver(kv::put, Message::from(encode_args(("k", "v")).unwrap(), who, 0));
        !is_forbidden(&reply)
    };
    assert!(put(&mut canister, WRITER) && !put(&mut canister, READER));
    canister.call::<()>(access::revoke, (Principal::from_slice(WRITER),)).unwrap();
    assert!(!put(&mut canister, WRITER));
    let again = canister.call::<()>(access::revoke, (Principal::from_slice(WRITER),));
    assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
    // A role replaces the one before, upwards and downwards.
    grant(&mut canister, READER, Role::Writer).unwrap();
    assert!(put(&mut canister, READER));
    grant(&mut canister, READER, Role::Reader).unwrap();
    assert!(!put(&mut canister, READER) && !put(&mut canister.upgrade(), READER));
}

#[test]
fn the_anonymous_principal_is_never_more_than_a_reader() {
    let mut canister = with_roles();
    for role in [Role::Writer, Role::Admin] {
        let refused = grant(&mut canister, ANONYMOUS, role);
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    grant(&mut canister, ANONYMOUS, Role::Reader).unwrap();
    let count = Message::from(encode_args(()).unwrap(), ANONYMOUS, 0);
    assert!(!is_forbidden(&canister.deliver(kv::count, count)));
}

#[test]
fn roles_are_limited_in_number() {
    let mut canister = Canister::install();
    canister
        .service
        .database
        .write(|tx| {
            for n in 0..ROLES_MAX as u32 - 1 {
                let sql = "INSERT INTO main.icsql_role VALUES (?1, 'reader')";
                tx.execute(sql, (n.to_be_bytes().as_slice(),))?;
            }
            Ok::<_, icsql_engine::Error>(())
        })
        .unwrap();
    let mut canister = canister.upgrade();
    grant(&mut canister, b"last that fits", Role::Reader).unwrap();
    let refused = grant(&mut canister, b"one too many", Role::Reader);
    let (limit, actual) = (ROLES_MAX as u64, ROLES_MAX as u64 + 1);
    assert_eq!(refused, Err(Error::TooLarge { what: "principals with a role".into(), limit, actual }));
    // One that has a role can get another.
    grant(&mut canister, b"last that fits", Role::Admin).unwrap();
}

fn put(
    canister: &mut Canister,
    caller: &[u8],
    time_ns: u64,
    key: &str,
    value: &str,
    idempotency_key: &str,
) -> Answer<u64> {
    let options = Some(WriteOptions { idempotency_key: Some(idempotency_key.to_owned()) });
    let message = Message::from(encode_args((key, value, options)).unwrap(), caller, time_ns);
    decode::<(Answer<Written>,)>(&canister.deliver(kv::put, message)).0.map(|written| written.version)
}

#[test]
fn a_write_with_a_key_is_done_once_a_day() {
    let mut canister = with_roles();
    let now = 1_000 * IDEMPOTENCY_NS;
    let first = put(&mut canister, WRITER, now, "a", "1", "id").unwrap();
    put(&mut canister, WRITER, now, "a", "2", "other").unwrap();
    // The first answer again, also after an upgrade, and nothing is done.
    assert_eq!(put(&mut canister, WRITER, now + 5, "a", "1", "id"), Ok(first));
    let mut canister = canister.upgrade();
    assert_eq!(put(&mut canister, WRITER, now + IDEMPOTENCY_NS - 1, "a", "1", "id"), Ok(first));
    let get = |canister: &mut Canister| canister.call::<Option<String>>(kv::get, ("a",)).unwrap();
    assert_eq!(get(&mut canister).as_deref(), Some("2"));
    // Other content under the same key.
    let conflict = put(&mut canister, WRITER, now + 6, "a", "3", "id");
    assert!(matches!(conflict, Err(Error::Conflict { .. })), "{conflict:?}");
    // Another caller and another method have keys of their own.
    put(&mut canister, ADMIN, now + 7, "a", "1", "id").unwrap();
    assert_eq!(get(&mut canister).as_deref(), Some("1"));
    let options = Some(WriteOptions { idempotency_key: Some("id".into()) });
    let note = encode_args(("a", Some("n"), options)).unwrap();
    let noted = canister.deliver(kv::set_note, Message::from(note, WRITER, now));
    assert_eq!(decode::<(Answer<()>,)>(&noted).0, Ok(()));
    // After a day it is a new call.
    let next = put(&mut canister, WRITER, now + IDEMPOTENCY_NS, "a", "1", "id").unwrap();
    assert!(next > first);
}

#[test]
fn a_write_that_failed_is_not_remembered() {
    let mut canister = with_roles();
    let options = || Some(WriteOptions { idempotency_key: Some("id".into()) });
    let note = |canister: &mut Canister| {
        let argument = encode_args(("a", Some("n"), options())).unwrap();
        decode::<(Answer<()>,)>(&canister.deliver(kv::set_note, Message::from(argument, WRITER, 0))).0
    };
    assert!(matches!(note(&mut canister), Err(Error::NotFound { .. })));
    canister.call::<Written>(kv::put, ("a", "v")).unwrap();
    assert_eq!(note(&mut canister), Ok(()));
}

#[test]
fn keys_have_limits_and_old_ones_are_forgotten() {
    let mut canister = with_roles();
    let long = |bytes: usize| "k".repeat(bytes);
    for (bytes, fits) in [
        (0, false),
        (1, true),
        (IDEMPOTENCY_KEY_BYTES_MAX - 1, true),
        (IDEMPOTENCY_KEY_BYTES_MAX, true),
        (IDEMPOTENCY_KEY_BYTES_MAX + 1, false),
    ] {
        assert_eq!(put(&mut canister, WRITER, 0, "a", "1", &long(bytes)).is_ok(), fits, "{bytes}");
    }
    let remembered = |canister: &Canister| {
        let sql = "SELECT count(*), (SELECT value FROM main.icsql_setting WHERE name = 'idempotency keys')
            FROM main.icsql_idempotency";
        let read = |tx: &icsql_engine::Reader<'_>| {
            tx.query_row(sql, (), |row| Ok::<_, icsql_engine::Error>((row.integer(0)?, row.integer(1)?)))
        };
        canister.service.database.read(read).unwrap().unwrap()
    };
    for n in 0..50 {
        put(&mut canister, WRITER, n, "a", "1", &format!("old {n}")).unwrap();
    }
    assert_eq!(remembered(&canister), (53, 53));
    // Each later write forgets a bounded number of those whose day is over.
    put(&mut canister, WRITER, 2 * IDEMPOTENCY_NS, "a", "1", "new 1").unwrap();
    let left = 53 - IDEMPOTENCY_KEYS_SWEPT as i64 + 1;
    assert_eq!(remembered(&canister), (left, left));
    for n in 2..6 {
        put(&mut canister, WRITER, 2 * IDEMPOTENCY_NS, "a", "1", &format!("new {n}")).unwrap();
    }
    assert_eq!(remembered(&canister), (5, 5));
}
