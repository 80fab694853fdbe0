//! Every method that writes, under faults on the deployed Wasm: stopped after any share of its instructions, at its stable
//! writes, and where stable memory cannot grow. What is left is what was before: rows, named queries, roles, migrations,
//! also those parts of it that are kept on the heap. The next calls work, and in the end the database has the same digest as
//! one that met no fault. With an idempotency key a call that was cut off is repeated and done once.

use std::collections::BTreeSet;

use candid::{Decode, Reserved};
use icsql_replica::Fault;
use icsql_tests::local::{Local, statement};
use icsql_tests::stranger;
use icsql_types::method::{self, Method, Mode};
use icsql_types::{
    Answer, ByteBuf, Callers, Condition, Error, Grant, KvList, KvOperation, KvValue, Params, QueryDefinition,
    QueryParameter, Role, SqlMigration, SqlWriteOptions, Value, WriteOptions,
};

const SECOND: u64 = 1_000_000_000;
/// The clock of the first step; each step has a second of its own, in which all its repetitions run.
const TIME: u64 = 1_700_000_000 * SECOND;
/// Shares of a message's instructions at which it is stopped.
const SHARES: u64 = 12;

const SCHEMA: &str = "
    CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, people INT CHECK (people >= 0));
    CREATE TABLE visit(id INTEGER PRIMARY KEY, city INT NOT NULL REFERENCES city ON DELETE CASCADE, note TEXT);
    CREATE TABLE journal(id INTEGER PRIMARY KEY, what TEXT);
    CREATE TRIGGER city_grows AFTER UPDATE OF people ON city BEGIN INSERT INTO journal(what) VALUES (new.name || ' grew'); END;
    CREATE VIRTUAL TABLE page USING fts5(title, body);
    CREATE TABLE film(id INTEGER PRIMARY KEY, bytes BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)
        INSERT INTO city SELECT i, printf('city %05d', i * 7919 % 100000), i * 100 FROM n;
    INSERT INTO visit(city, note) SELECT id, printf('%050d', id) FROM city;
    INSERT INTO page SELECT name, 'the town ' || name || ' by the lake' FROM city WHERE id % 10 = 0";

/// The table is made anew, which takes every row and every child along.
const REBUILD: &str = "
    CREATE TABLE city_new(id INTEGER PRIMARY KEY, name TEXT NOT NULL, people INT NOT NULL, height REAL DEFAULT 0.5) STRICT;
    INSERT INTO city_new(id, name, people) SELECT id, name, people FROM city;
    DROP TABLE city;
    ALTER TABLE city_new RENAME TO city;
    CREATE INDEX city_by_people ON city(people)";

/// A call.
struct Step {
    method: &'static str,
    argument: Vec<u8>,
}

fn step<A: candid::utils::ArgumentEncoder, R>(method: &Method<A, R>, arguments: A) -> Step {
    Step { method: method.name, argument: icsql_tests::encode(arguments) }
}

/// A history with every method that writes. Its calls have keys, or none has one.
fn history(keys: bool) -> Vec<Step> {
    let key = |name: &str| keys.then(|| format!("key of {name:.80}"));
    let options = |name: &str| key(name).map(|key| WriteOptions { idempotency_key: Some(key) });
    let sql_options = |name: &str| Some(SqlWriteOptions { idempotency_key: key(name), ..SqlWriteOptions::default() });
    let text = str::to_owned;
    let execute = |sql: &str| step(&method::SQL_EXECUTE, (statement(sql), sql_options(sql)));
    let migrate = |version: u32, sql: &str| {
        let list = vec![SqlMigration { version, name: format!("step {version}"), sql: text(sql) }];
        step(&method::SQL_MIGRATE, (list, options(sql)))
    };
    let query = QueryDefinition {
        name: text("city"),
        sql: format!("SELECT * FROM city WHERE id = :id --{}", " ".repeat(3_900)),
        params: vec![QueryParameter { name: text("id"), type_name: text("integer"), nullable: false }],
        callers: Callers::Public,
        max_rows: Some(10),
        max_bytes: None,
        max_instructions: None,
        allow_full_scan: None,
    };
    let batch = [
        "INSERT INTO city VALUES (1000, 'new', 1), (1001, 'newer', 2) RETURNING id",
        "ALTER TABLE visit ADD COLUMN stars INT DEFAULT 3",
        "CREATE INDEX visit_by_city ON visit(city)",
        "UPDATE visit SET stars = id % 5",
        "DELETE FROM city WHERE id <= 20 RETURNING name",
        "SELECT count(*) FROM visit",
    ];
    let put =
        |key: &str, value, expires_at, condition| KvOperation::Put { key: text(key), value, expires_at, condition };
    let operations = vec![
        put("a", KvValue::Text("again ".repeat(1_000)), None, Some(Condition::Present)),
        put("expires", KvValue::Blob(vec![1; 9_000]), Some(TIME + 1_000_000 * SECOND), Some(Condition::Absent)),
        KvOperation::Note { key: text("b"), note: Some(text("noted")), condition: None },
        KvOperation::Delete { key: text("c"), condition: Some(Condition::Present) },
    ];
    vec![
        migrate(1, SCHEMA),
        execute("INSERT INTO visit(city, note) SELECT id, 'second' FROM city WHERE id % 3 = 0 RETURNING id, note"),
        execute("UPDATE city SET people = people + 1 WHERE name LIKE '%7%'"),
        execute("INSERT INTO page VALUES ('a new page', 'about the lake')"),
        step(&method::QUERY_DEFINE, (query, options("define"))),
        step(&method::SQL_BATCH, (batch.map(statement).to_vec(), sql_options("batch"))),
        step(&method::KV_PUT, (text("a"), "value ".repeat(2_000), options("put"))),
        step(&method::KV_PUT_BLOB, (text("b"), ByteBuf::from(vec![7; 20_000]), options("put blob"))),
        step(&method::KV_APPEND, (text("c"), ByteBuf::from(vec![8; 200_000]), options("append"))),
        step(&method::KV_SET_NOTE, (text("c"), Some("a note ".repeat(500)), options("note"))),
        step(&method::ACCESS_GRANT, (Grant { who: stranger(), role: Role::Writer }, options("grant"))),
        step(&method::KV_WRITE, (operations, options("write"))),
        migrate(2, REBUILD),
        step(&method::ACCESS_SET_PUBLIC_KV, (false, options("private"))),
        execute("INSERT INTO film(bytes) VALUES (zeroblob(9000000))"),
        execute("DELETE FROM film"),
        step(&method::KV_DELETE, (text("a"), options("delete"))),
        step(&method::KV_DELETE_MANY, (vec![text("b"), text("none"), text("expires")], options("delete many"))),
        step(&method::ACCESS_REVOKE, (stranger(), options("revoke"))),
        step(&method::QUERY_DROP, (text("city"), options("drop"))),
        execute("DROP TABLE page"),
    ]
}

/// What can be seen of the database, besides its digest.
#[derive(PartialEq, Debug)]
struct State {
    /// Replies of the methods that say everything of one kind.
    listed: Vec<(&'static str, Vec<u8>)>,
    /// The rows of all tables.
    rows: Vec<(String, Answer<Vec<Vec<Value>>>)>,
    /// What the named queries answer.
    named: Vec<Answer<Vec<Vec<Value>>>>,
    /// What somebody without a role is answered.
    stranger: Vec<u8>,
}

fn state(canister: &mut Local) -> State {
    let lists = ["sql_schema", "sql_migrations", "query_list", "access_list", "kv_count"];
    let empty = icsql_tests::encode(());
    let mut listed: Vec<_> =
        lists.iter().map(|name| (*name, canister.send(name, Mode::Query, &empty).reply())).collect();
    let entries = KvList { values: Some(true), ..KvList::default() };
    listed.push(("kv_list", canister.send("kv_list", Mode::Query, &icsql_tests::encode((entries,))).reply()));
    let rows = canister.call(&method::SQL_SCHEMA, ()).tables.into_iter().map(|table| {
        let columns = match table.name.as_str() {
            // A value that is too large for a page is known by its size.
            "film" => "id, length(bytes)",
            // The remembered reply says what its call cost, which depends on what was in the caches.
            "icsql_idempotency" => "id, at, caller, method, key, content",
            _ => "*",
        };
        let rows = canister.rows(&format!("SELECT {columns} FROM \"{}\"", table.name));
        (table.name, rows)
    });
    let rows = rows.collect();
    let named = canister.call(&method::QUERY_LIST, ()).into_iter().map(|query| {
        let params = Params::Positional(vec![Value::Integer(77)]);
        canister.answer(&method::QUERY_CALL, (query.definition.name, params, None)).map(|page| page.rows)
    });
    let named = named.collect();
    let key = icsql_tests::encode(("c",));
    let stranger = canister.replica.query(canister.id, stranger(), "kv_get_note", &key).reply();
    State { listed, rows, named, stranger }
}

/// Runs a step at its time. `None`: it was stopped.
fn run(canister: &mut Local, place: usize, step: &Step) -> (Option<Answer<Vec<u8>>>, u64) {
    canister.replica.set_time(TIME + place as u64 * SECOND);
    let outcome = canister.send(step.method, Mode::Update, &step.argument);
    let reply = outcome.result.ok().map(|reply| {
        let answer = Decode!(&reply, Answer<Reserved>).expect("a reply of the interface");
        answer.map(|_| reply)
    });
    (reply, outcome.cost.instructions)
}

/// The history without faults: what each step costs, and the canister after it.
fn undisturbed(steps: &[Step]) -> (Vec<u64>, Local) {
    let mut canister = Local::deploy();
    let costs = steps.iter().enumerate().map(|(place, step)| {
        let (answer, cost) = run(&mut canister, place, step);
        answer.expect("it was not stopped").unwrap_or_else(|error| panic!("step {place}, {}: {error}", step.method));
        cost
    });
    let costs = costs.collect();
    (costs, canister)
}

/// The history with each step under the faults that `fault` has for 1, 2, … and the step's cost. Answers how many were met.
fn under(keys: bool, fault: impl Fn(u64, u64) -> Fault) -> u64 {
    let steps = history(keys);
    let (costs, mut twin) = undisturbed(&steps);
    let mut canister = Local::deploy();
    let mut met_total = 0;
    for ((place, step), cost) in steps.iter().enumerate().zip(costs) {
        let (reply, met) = canister.under_faults(|n| fault(n, cost), state, |canister, _| run(canister, place, step).0);
        met_total += met;
        if keys {
            // It is done, and its sender may not know.
            let before = (state(&mut canister), canister.checksum());
            let again = run(&mut canister, place, step).0.expect("it was not stopped");
            assert!(again == Ok(reply), "step {place}, {}: another answer with the same key: {again:?}", step.method);
            assert!((state(&mut canister), canister.checksum()) == before, "step {place}, {}: done twice", step.method);
        }
    }
    assert_eq!(state(&mut canister), state(&mut twin));
    if !keys {
        assert_eq!(canister.checksum(), twin.checksum());
    }
    expect_whole(&mut canister);
    met_total
}

/// Nothing is damaged, and after an upgrade everything is as it was.
fn expect_whole(canister: &mut Local) {
    canister.expect_clean_scan();
    let check = canister.call(&method::DB_INTEGRITY_CHECK, ());
    assert!(check.complete && check.problems.is_empty(), "{check:?}");
    let before = (state(canister), canister.checksum());
    canister.upgrade();
    assert_eq!((state(canister), canister.checksum()), before);
}

/// 1, 2, 3, 5, 8, 13, …: the first writes of a commit one by one, the many pages of a large one here and there.
fn sparse(n: u64) -> u64 {
    (1..n).fold((1, 2), |(a, b), _| (b, a + b)).0
}

fn stopped_after(n: u64, cost: u64, shares: u64) -> Fault {
    Fault { trap_after_instructions: Some(n * cost / shares), ..Fault::default() }
}

#[test]
fn a_write_that_is_stopped_after_any_number_of_instructions() {
    let met = under(false, |n, cost| stopped_after(n, cost, SHARES));
    let steps = history(false).len() as u64;
    assert!((steps * SHARES * 3 / 4..=steps * SHARES * 5 / 4).contains(&met), "{met} faults in {steps} steps");
}

#[test]
fn a_write_whose_stable_writes_trap() {
    let met = under(false, |n, _| Fault { fail_stable_write: Some(sparse(n)), ..Fault::default() });
    let steps = history(false).len() as u64;
    assert!(met >= 4 * steps, "{met} faults in {steps} steps: a mark, a page, its hash and the superblock at least");
}

/// Writes until there is no free page in the image, and in its memory no room for another.
fn fill(canister: &mut Local) {
    for bytes in [4_000_000, 1_000_000, 250_000, 60_000, 15_000, 4_000] {
        loop {
            canister.replica.set_fault(Fault { fail_stable_grow: Some(1), ..Fault::default() });
            let answer = canister.execute(&format!("INSERT INTO film(bytes) VALUES (zeroblob({bytes}))"));
            canister.replica.clear_fault();
            match answer {
                Ok(_) => {}
                Err(Error::StorageFull { .. }) => break,
                Err(error) => panic!("{bytes} bytes more: {error}"),
            }
        }
    }
}

#[test]
fn a_write_whose_stable_memory_cannot_grow() {
    let mut canister = Local::deploy();
    let mut refused = BTreeSet::new();
    // With keys, since a failure must not be remembered.
    for (place, step) in history(true).iter().enumerate() {
        if place > 0 {
            fill(&mut canister);
        }
        let fault = |n| Fault { fail_stable_grow: Some(n), ..Fault::default() };
        let (reply, met) = canister.under_faults(fault, state, |canister, _| run(canister, place, step).0);
        if met > 0 {
            refused.insert(step.method);
        }
        let again = run(&mut canister, place, step).0.expect("it was not stopped");
        assert!(again == Ok(reply), "step {place}, {}: another answer with the same key: {again:?}", step.method);
    }
    // What takes a page of its own at least.
    for method in ["kv_append", "kv_put", "kv_put_blob", "kv_set_note", "kv_write", "query_define", "sql_batch"] {
        assert!(refused.contains(method), "{method} found room: {refused:?}");
    }
    assert!(refused.contains("sql_execute") && refused.contains("sql_migrate"), "{refused:?}");
    expect_whole(&mut canister);
}

#[test]
fn a_write_that_was_cut_off_is_repeated_with_its_key_and_done_once() {
    let met = under(true, |n, cost| match n.is_multiple_of(2) {
        true => stopped_after(n, cost, 8),
        // The writes of a commit with a key: of the record too.
        false => Fault {
            fail_stable_write: Some(sparse(n)),
            trap_after_instructions: Some(n * cost / 8),
            ..Fault::default()
        },
    });
    let steps = history(true).len() as u64;
    assert!(met >= 6 * steps, "{met} faults in {steps} steps");
}

/// A method that is added to the interface is added to the history, or else to this list with a reason.
#[test]
fn the_history_has_every_method_that_writes() {
    let without = [
        ("db_refresh_checksum", "changes nothing"),
        ("db_refresh_checksum_chunk", "changes nothing but how far the scan is, on the heap"),
    ];
    let steps = history(false);
    for (name, mode) in method::ALL {
        let there = steps.iter().any(|step| step.method == *name) || without.iter().any(|(other, _)| other == name);
        assert!(there || *mode == Mode::Query, "{name} is in no step of the history: add one");
    }
}
