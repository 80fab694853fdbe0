//! Arguments that nobody would send on purpose, to every method of the interface: random values of the declared types with
//! extreme contents, and mutations of valid messages (bits, lengths, types, cuts, parts of other messages, arguments of types
//! that are costly to decode). No call traps, every reply is of the method's declared type, and the canister works after it.
//!
//! The types come from the list of methods, so that a new one is covered by itself. A failure prints the seed of its history,
//! the place in it and the message; `ICSQL_SEED` plays one history alone, `ICSQL_MODEL_SECONDS` goes on for so long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use candid::types::internal::TypeContainer;
use candid::types::value::{IDLArgs, IDLField, IDLValue, VariantValue};
use candid::types::{Function, Label, Type, TypeEnv, TypeInner};
use candid::{Decode, Principal, Reserved};
use icsql_canister::guard::RULES;
use icsql_replica::ErrorCode;
use icsql_tests::malformed::{leb128, malformed};
use icsql_tests::random::Random;
use icsql_tests::{Local, stranger};
use icsql_types::method::{self, ALL, Mode};
use icsql_types::{Answer, Callers, Error, QueryDefinition, Value};

/// Histories that are played without `ICSQL_MODEL_SECONDS`.
const HISTORIES: u64 = 3;
/// How often a history goes through all methods.
const ROUNDS: usize = 25;
/// Mutated messages for each random one.
const MUTATED: usize = 3;
/// Bytes of the large values of a message: a bit more than is let in.
const MESSAGE_BYTES: usize = 2_200_000;
/// Blobs of replies that are kept, to be sent back: cursors above all.
const BLOBS_KEPT: usize = 50;

/// A method as Candid has it.
struct Target {
    name: &'static str,
    mode: Mode,
    types: Function,
    argument_bytes_max: usize,
}

fn interface() -> (TypeEnv, Vec<Target>) {
    let mut container = TypeContainer::new();
    let service = method::service(&mut container);
    let TypeInner::Class(_, service) = service.as_ref() else { panic!("the service has an init argument") };
    let TypeInner::Service(methods) = service.as_ref() else { panic!("a service") };
    let targets = ALL.iter().map(|(name, mode)| {
        let (_, types) = methods.iter().find(|(other, _)| other == name).expect("all methods are in the service");
        let types = container.env.as_func(types).expect("a method").clone();
        let rule = RULES.iter().find(|rule| rule.name == *name).expect("each method has a rule");
        Target { name, mode: *mode, types, argument_bytes_max: rule.argument_bytes_max }
    });
    let targets = targets.collect();
    (container.env, targets)
}

const SQL: &[&str] = &[
    "SELECT 1",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT a, b FROM t WHERE a = 2",
    "SELECT * FROM t",
    "SELECT key, version, value FROM kv",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) SELECT i, 'row' FROM n",
    "SELECT a, count(*) FROM t GROUP BY a ORDER BY 2 DESC",
    "SELECT * FROM t WHERE a = :x",
    "SELECT ?1, ?2",
    "SELECT :k",
    "INSERT INTO t(b) VALUES ('x'), (x'00ff') RETURNING *",
    "INSERT INTO t(b) VALUES (:x)",
    "UPDATE t SET b = b || 'y' WHERE a < 5",
    "DELETE FROM t WHERE a % 3 = 0 RETURNING a",
    "CREATE TABLE IF NOT EXISTS u(x UNIQUE, y REFERENCES t)",
    "CREATE INDEX IF NOT EXISTS t_by_b ON t(b)",
    "ALTER TABLE u ADD COLUMN z DEFAULT 7",
    "DROP TABLE IF EXISTS u",
    "CREATE TABLE kv_mine(x)",
    "INSERT INTO kv VALUES ('k', 1, 'v')",
    "PRAGMA table_info(t)",
    "SELECT abs(-9223372036854775808), json_extract('{', '$')",
    "SELECT zeroblob(3000000)",
    "ATTACH 'file' AS other",
    "BEGIN",
    "SELECT",
    "",
    ";-- nothing",
    "SELECT 1; SELECT 2",
    "SELECT '\0'",
];
/// The first of them that a plain caller could send.
const SQL_TAME: usize = 20;

const WORDS: &[&str] = &["a", "b", "k", "x", ":x", "t", "q", "integer", "text", "any", "row", "kv", "icsql_role"];

/// Makes arguments.
struct Maker<'a> {
    env: &'a TypeEnv,
    random: Random,
    /// Blobs of replies.
    blobs: Vec<Vec<u8>>,
    /// Whether values are such as a plain caller could send.
    tame: bool,
    /// Bytes that the values of this message may still take.
    room: usize,
}

impl Maker<'_> {
    /// So many bytes if there is room for them.
    fn take(&mut self, bytes: usize) -> usize {
        let taken = bytes.min(self.room);
        self.room -= taken;
        taken
    }

    fn text(&mut self, name: &str) -> String {
        if name == "sql" && !self.random.one_in(8) {
            let count = if self.tame { SQL_TAME } else { SQL.len() };
            // Rather the first of them, which every method that takes SQL accepts.
            let place = self.random.below(count).min(self.random.below(count));
            return SQL[place].to_owned();
        }
        if self.tame || self.random.one_in(2) {
            return (*self.random.pick(WORDS)).to_owned();
        }
        let sizes = [127, 128, 129, 200, 201, 1_023, 1_024, 1_025, 4_096, 4_097];
        let (character, bytes) = match self.random.below(9) {
            0 => ("", 0),
            1 => ("\0", 1),
            2 => ("é", self.random.below(200)),
            3 => ("k", *self.random.pick(&sizes)),
            4 => ("x", self.random.below(70_000)),
            5 => ("y", 1_899_999 + self.random.below(3)),
            6 => ("(", self.random.below(3_000)),
            7 => return (*self.random.pick(SQL)).to_owned(),
            _ => return String::from_utf8_lossy(&self.random.bytes(20)).into_owned(),
        };
        character.repeat(self.take(bytes))
    }

    fn blob(&mut self) -> Vec<u8> {
        if !self.blobs.is_empty() && self.random.one_in(2) {
            let mut blob = self.random.pick(&self.blobs).clone();
            if self.random.one_in(4) && !blob.is_empty() {
                let place = self.random.below(blob.len());
                blob[place] ^= 1 << self.random.below(8);
            }
            return blob;
        }
        let bytes = match self.random.below(if self.tame { 3 } else { 5 }) {
            0 => 0,
            1 => self.random.below(50),
            2 => self.random.below(9_000),
            3 => 1_900_000 + self.random.below(2),
            _ => self.random.below(100_000),
        };
        let bytes = self.take(bytes);
        let mut blob = self.random.bytes(bytes.min(64));
        blob.resize(bytes, 7);
        blob
    }

    /// A number of so many bits.
    fn number(&mut self, bits: u32) -> u64 {
        let max = u64::MAX >> (64 - bits);
        if self.tame {
            return *self.random.pick(&[1, 2, 10, 1_000, 50_000]) & max;
        }
        match self.random.below(6) {
            0 => 0,
            1 => max,
            2 => max / 2 + self.random.number() % 2,
            3 => 1 << self.random.below(bits as usize),
            4 => self.random.number() % 5_000,
            _ => self.random.number() & max,
        }
    }

    fn value(&mut self, of: &Type, name: &str) -> IDLValue {
        let of = self.env.trace_type(of).expect("the type is known");
        match of.as_ref() {
            TypeInner::Null => IDLValue::Null,
            TypeInner::Reserved => IDLValue::Reserved,
            TypeInner::Bool => IDLValue::Bool(self.random.one_in(2)),
            TypeInner::Text => IDLValue::Text(self.text(name)),
            TypeInner::Nat8 => IDLValue::Nat8(self.number(8) as u8),
            TypeInner::Nat16 => IDLValue::Nat16(self.number(16) as u16),
            TypeInner::Nat32 => IDLValue::Nat32(self.number(32) as u32),
            TypeInner::Nat64 => IDLValue::Nat64(self.number(64)),
            TypeInner::Int32 => IDLValue::Int32(self.number(32) as i32),
            TypeInner::Int64 => IDLValue::Int64(self.number(64) as i64),
            TypeInner::Float64 => IDLValue::Float64(f64::from_bits(self.number(64))),
            TypeInner::Principal => {
                let longest = Principal::from_slice(&[7; 29]);
                let known = [Principal::anonymous(), Principal::management_canister(), stranger(), longest];
                IDLValue::Principal(*self.random.pick(&known))
            }
            TypeInner::Opt(inner) => match self.random.one_in(if self.tame { 5 } else { 2 }) {
                true => IDLValue::Opt(Box::new(self.value(inner, name))),
                false => IDLValue::None,
            },
            TypeInner::Vec(inner) if matches!(inner.as_ref(), TypeInner::Nat8) => IDLValue::Blob(self.blob()),
            TypeInner::Vec(inner) => {
                let count = match self.random.below(if self.tame { 30 } else { 40 }) {
                    0..15 => 0,
                    15..25 => 1,
                    25..39 => 2 + self.random.below(3),
                    _ => 999 + self.random.below(3),
                };
                IDLValue::Vec((0..count).map(|_| self.value(inner, name)).collect())
            }
            TypeInner::Record(fields) => {
                let field = |field: &candid::types::Field| {
                    let val = self.value(&field.ty, &label(&field.id));
                    IDLField { id: field.id.as_ref().clone(), val }
                };
                IDLValue::Record(fields.iter().map(field).collect())
            }
            TypeInner::Variant(fields) => {
                let place = self.random.below(fields.len());
                let field = &fields[place];
                let val = self.value(&field.ty, &label(&field.id));
                IDLValue::Variant(VariantValue(Box::new(IDLField { id: field.id.as_ref().clone(), val }), place as u64))
            }
            other => panic!("no values are made of the type {other}: teach this test to"),
        }
    }

    /// A message with values of the declared types.
    fn message(&mut self, types: &[Type]) -> Vec<u8> {
        self.room = MESSAGE_BYTES;
        let args = types.iter().map(|of| self.value(of, "")).collect();
        IDLArgs { args }.to_bytes_with_types(self.env, types).expect("the values are of their types")
    }

    /// The same with a further argument, which has to be skipped, of a type that is deep, wide, or holds itself.
    fn message_with_more(&mut self, types: &[Type]) -> Vec<u8> {
        self.room = MESSAGE_BYTES;
        let mut args: Vec<IDLValue> = types.iter().map(|of| self.value(of, "")).collect();
        let mut types = types.to_vec();
        let mut env = self.env.clone();
        let depth = 1 + self.random.below(300);
        let (of, value): (Type, IDLValue) = match self.random.below(3) {
            0 => {
                let deep = |of: Type| TypeInner::Opt(of).into();
                let of = (0..depth).fold(TypeInner::Nat8.into(), |of, _| deep(of));
                let value = (0..depth).fold(IDLValue::Nat8(1), |value, _| IDLValue::Opt(Box::new(value)));
                (of, value)
            }
            1 => {
                let many = 0..depth as u32 * 3;
                let field = |id| candid::types::Field { id: Label::Id(id).into(), ty: TypeInner::Bool.into() };
                let value = |id| IDLField { id: Label::Id(id), val: IDLValue::Bool(true) };
                let of = TypeInner::Record(many.clone().map(field).collect()).into();
                (of, IDLValue::Record(many.map(value).collect()))
            }
            _ => {
                let list: Type = TypeInner::Var("list".to_owned()).into();
                let (head, tail) = (Label::Id(0), Label::Id(1));
                let cell = vec![
                    candid::types::Field { id: head.clone().into(), ty: TypeInner::Nat8.into() },
                    candid::types::Field { id: tail.clone().into(), ty: list.clone() },
                ];
                env.0.insert("list".to_owned(), TypeInner::Opt(TypeInner::Record(cell).into()).into());
                let cons = |rest| {
                    IDLValue::Opt(Box::new(IDLValue::Record(vec![
                        IDLField { id: head.clone(), val: IDLValue::Nat8(1) },
                        IDLField { id: tail.clone(), val: rest },
                    ])))
                };
                (list, (0..depth).fold(IDLValue::None, |rest, _| cons(rest)))
            }
        };
        let place = if self.random.one_in(2) { types.len() } else { self.random.below(types.len() + 1) };
        args.insert(place, value);
        types.insert(place, of);
        IDLArgs { args }.to_bytes_with_types(&env, &types).expect("the values are of their types")
    }

    /// Changes a message in a few places.
    fn mutate(&mut self, message: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..1 + self.random.below(3) {
            if message.is_empty() {
                return;
            }
            // The types, which come first, half of the time.
            let end = if self.random.one_in(2) { message.len().min(60) } else { message.len() };
            let place = self.random.below(end);
            let rest = message.len() - place;
            match self.random.below(10) {
                0 => message[place] ^= 1 << self.random.below(8),
                1 => message[place] = self.random.number() as u8,
                // Another type: a primitive or composite one, or one of the table.
                2 => {
                    message[place] =
                        *self.random.pick(&[0x7f, 0x7e, 0x7d, 0x71, 0x70, 0x6f, 0x6e, 0x6d, 0x6c, 0x6b, 0x68])
                }
                3 => message[place] = self.random.below(8) as u8,
                4 => message.truncate(place),
                5 => {
                    let more = 1 + self.random.below(40);
                    message.extend(self.random.bytes(more));
                }
                // Another length.
                6 => {
                    let length = (self.random.number() >> self.random.below(64)).max(1);
                    message.splice(place..=place, leb128(length));
                }
                7 => {
                    let end = place + 1 + self.random.below(rest.min(30));
                    let part = message[place..end].to_vec();
                    message.splice(place..place, part);
                }
                8 => {
                    message.drain(place..place + 1 + self.random.below(rest.min(10)));
                }
                _ => {
                    let from = self.random.below(other.len());
                    message.splice(place.., other[from..].iter().copied());
                }
            }
        }
    }

    /// Keeps what a reply has of short blobs.
    fn learn(&mut self, reply: &IDLValue) {
        match reply {
            IDLValue::Blob(blob) if blob.len() < 1_000 => {
                if self.blobs.len() < BLOBS_KEPT {
                    self.blobs.push(blob.clone());
                } else {
                    let place = self.random.below(BLOBS_KEPT);
                    self.blobs[place] = blob.clone();
                }
            }
            IDLValue::Opt(value) => self.learn(value),
            IDLValue::Vec(values) => values.iter().take(5).for_each(|value| self.learn(value)),
            IDLValue::Record(fields) => fields.iter().for_each(|field| self.learn(&field.val)),
            IDLValue::Variant(VariantValue(field, _)) => self.learn(&field.val),
            _ => {}
        }
    }
}

fn label(label: &Label) -> String {
    match label {
        Label::Named(name) => name.clone(),
        other => other.to_string(),
    }
}

/// What came of the calls of a method: answered with `Ok`, with `Err`.
type Answered = BTreeMap<&'static str, (u64, u64)>;

/// Sends a message and checks the reply.
fn send(canister: &mut Local, maker: &mut Maker, target: &Target, message: &[u8], answered: &mut Answered) {
    // A query method can be called as an update too.
    let mode = if maker.random.one_in(6) { Mode::Update } else { target.mode };
    let context = || {
        let shown: String = message.iter().take(600).map(|byte| format!("{byte:02x}")).collect();
        format!("{} with {} bytes, {shown}", target.name, message.len())
    };
    let reply = match canister.send(target.name, mode, message).result {
        Ok(reply) => reply,
        // Nothing that is that large is let in, which is known before the canister runs.
        Err(reject) => {
            let oversized = message.len() > target.argument_bytes_max && mode == Mode::Update;
            assert!(oversized && reject.code == ErrorCode::CanisterRejectedMessage, "{}: {reject}", context());
            return;
        }
    };
    let values = IDLArgs::from_bytes_with_types(&reply, maker.env, &target.types.rets);
    let values = values.unwrap_or_else(|error| panic!("{}: the reply is of another type: {error}", context()));
    let count = answered.entry(target.name).or_default();
    match Decode!(&reply, Answer<Reserved>).unwrap_or_else(|error| panic!("{}: {error}", context())) {
        Ok(_) => count.0 += 1,
        Err(Error::Corrupt { message }) => panic!("{}: damaged: {message}", context()),
        Err(_) => count.1 += 1,
    }
    values.args.iter().for_each(|value| maker.learn(value));
}

/// The canister works, and its database is whole.
fn expect_sound(canister: &mut Local) {
    canister.put("after", "value");
    assert_eq!(canister.get("after").as_deref(), Some("value"));
    canister.run("CREATE TABLE after(x)");
    canister.run("INSERT INTO after VALUES (1), (2)");
    assert_eq!(canister.rows("SELECT sum(x) FROM after"), Ok(vec![vec![Value::Integer(3)]]));
    let check = canister.call(&method::DB_INTEGRITY_CHECK, ());
    assert!(check.complete && check.problems.is_empty(), "{check:?}");
    canister.expect_clean_scan();
    canister.upgrade();
    assert_eq!(canister.get("after").as_deref(), Some("value"));
    canister.call(&method::QUERY_LIST, ());
    canister.call(&method::ACCESS_LIST, ());
}

/// Defines queries that take nothing, those of them that are not there.
fn define_queries(canister: &mut Local, answered: &mut Answered) {
    for name in &WORDS[..4] {
        let definition = QueryDefinition {
            name: (*name).to_owned(),
            sql: "SELECT 1".to_owned(),
            params: Vec::new(),
            callers: Callers::Public,
            max_rows: None,
            max_bytes: None,
            max_instructions: None,
            allow_full_scan: None,
        };
        let answer = canister.answer(&method::QUERY_DEFINE, (definition, None));
        let there = matches!(answer, Err(Error::AlreadyExists { .. }));
        assert!(answer.is_ok() || there, "{answer:?}");
        answered.entry(method::QUERY_DEFINE.name).or_default().0 += u64::from(!there);
    }
}

fn history(canister: &mut Local, seed: u64, answered: &mut Answered) {
    let (env, targets) = interface();
    let hostile = malformed();
    canister.reinstall();
    canister.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    canister.run("INSERT INTO t(b) VALUES (1), ('two'), (3.5), (NULL)");
    let mut maker = Maker { env: &env, random: Random::new(seed), blobs: Vec::new(), tame: true, room: 0 };
    let mut other = b"DIDL".to_vec();
    for round in 0..ROUNDS {
        let shown = Shown { seed, round };
        define_queries(canister, answered);
        for target in &targets {
            maker.tame = !maker.random.one_in(3);
            let message = maker.message(&target.types.args);
            send(canister, &mut maker, target, &message, answered);
            for _ in 0..MUTATED {
                maker.tame = !maker.random.one_in(8);
                let mut message = match maker.random.below(4) {
                    0 => maker.message_with_more(&target.types.args),
                    1 => maker.random.pick(&hostile).1.clone(),
                    _ => maker.message(&target.types.args),
                };
                if !maker.random.one_in(10) {
                    maker.mutate(&mut message, &other);
                }
                send(canister, &mut maker, target, &message, answered);
            }
            other = message;
        }
        drop(shown);
    }
    expect_sound(canister);
}

/// Says where a history is when it ends in a panic.
struct Shown {
    seed: u64,
    round: usize,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("history {}, round {}: play it again with ICSQL_SEED={}", self.seed, self.round, self.seed);
        }
    }
}

#[test]
fn no_argument_traps_and_every_reply_is_of_its_type() {
    let mut canister = Local::deploy();
    let mut answered = Answered::new();
    if let Ok(seed) = std::env::var("ICSQL_SEED") {
        history(&mut canister, seed.parse().expect("ICSQL_SEED is a number"), &mut answered);
        return;
    }
    let seconds = std::env::var("ICSQL_MODEL_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut seed = 0;
    while seed < HISTORIES || Instant::now() < end {
        history(&mut canister, seed, &mut answered);
        seed += 1;
    }
    println!("answered with Ok and with Err: {answered:?}");
    for (name, _) in ALL {
        let (good, bad) = answered.get(name).copied().unwrap_or_default();
        // This one always names another method.
        let never = *name == method::DB_REFRESH_CHECKSUM.name;
        assert!(good > 0 || never, "{name} never succeeded: the histories say little");
        assert!(good + bad > seed * ROUNDS as u64, "{name} answered {good} and {bad} times");
    }
}
