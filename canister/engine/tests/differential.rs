//! Random histories, played side by side on the engine, on stock SQLite and, as far as they concern the key-value table,
//! on a `BTreeMap`: after each step all have answered the same, errors included, and the digest is that of the bytes.
//! Mixed in: transactions that are given up or that SQLite gives up, statements that fail half way, changes of the schema,
//! reopening as an upgrade does, and page caches from a few pages to more than the image.
//!
//! Histories 1, 2, 3 … are played for `ICSQL_MODEL_SECONDS`, without it for 20; `ICSQL_SEED=n` plays history n alone.
#[path = "differential/steps.rs"]
mod steps;
mod support;

use icsql_engine::stable::digest::{Digest, page_hash};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::page_hashes::PageHashes;
use icsql_engine::stable::superblock::Superblock;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, Error, OpenOptions, Reader, Sql, SqlText, Value, Writer};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use steps::{Effect, Step, key, step};
use support::rng::{Rng, seed_asked_for};
use support::stock::{self, Outcome, engine_code};
use support::{assert_whole, open_with};

const SECONDS_DEFAULT: u64 = 20;
const TURNS: usize = 250;

const SCHEMA: &str = "
    CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE item(id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, name TEXT UNIQUE, size REAL, body BLOB);
    CREATE INDEX item_grp ON item(grp, size);
    CREATE TABLE log(what TEXT, id INTEGER);
    CREATE TRIGGER item_gone AFTER DELETE ON item BEGIN INSERT INTO log VALUES ('gone', old.id); END;
    CREATE TRIGGER item_barred BEFORE INSERT ON item WHEN new.grp = 6 AND new.id % 5 = 0
        BEGIN SELECT RAISE(ABORT, 'barred'); END;
    CREATE TABLE part(
        id INTEGER PRIMARY KEY,
        item INTEGER REFERENCES item(id) ON DELETE CASCADE,
        later INTEGER REFERENCES item(id) DEFERRABLE INITIALLY DEFERRED
    );
    CREATE VIRTUAL TABLE note USING fts5(body);
";

/// Kept statements, which have to follow each change of the schema.
static CHECKS: [Sql; 7] = [
    Sql::new("SELECT * FROM kv ORDER BY key"),
    Sql::new("SELECT * FROM item ORDER BY id"),
    Sql::new("SELECT grp, count(*), sum(size), max(name) FROM item GROUP BY grp ORDER BY grp"),
    Sql::new("SELECT what, id FROM log ORDER BY id, what"),
    Sql::new("SELECT k.key, i.id FROM kv AS k JOIN item AS i ON i.name = k.key ORDER BY 1, 2"),
    Sql::new("SELECT id, item, later FROM part ORDER BY id"),
    Sql::new("SELECT rowid, body FROM note WHERE note MATCH 'lake OR riv*' ORDER BY rowid"),
];

/// How a transaction or a savepoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It is kept, whatever came of its statements.
    Keep,
    /// It is given up after the last.
    GiveUp,
    /// It is given up at the first statement that fails.
    FirstError,
}

const ENDINGS: [Ending; 4] = [Ending::Keep, Ending::Keep, Ending::GiveUp, Ending::FirstError];

/// A part of a transaction.
#[derive(Debug)]
enum Act {
    Step(Step),
    Savepoint(Vec<Act>, Ending),
}

fn acts(rng: &mut Rng, depth: usize) -> Vec<Act> {
    let act = |rng: &mut Rng| {
        if depth < 3 && rng.one_in(6) {
            Act::Savepoint(acts(rng, depth + 1), *rng.pick(&ENDINGS))
        } else {
            Act::Step(step(rng))
        }
    };
    (0..1 + rng.below(6)).map(|_| act(rng)).collect()
}

/// What came of a step, and the rows that were looked at after it.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Outcome<u64>,
    rows: Vec<Vec<Value>>,
}

/// The error of a closure: the engine's, or that it gave up.
#[derive(Debug)]
enum Stop {
    Engine(Error),
    GaveUp,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

struct World {
    raw: HeapMemory,
    database: Option<Database>,
    stock: rusqlite::Connection,
    map: BTreeMap<String, Value>,
    page_bytes: u32,
}

impl World {
    fn new(rng: &mut Rng) -> Self {
        let raw = HeapMemory::new();
        let bucket_pages = NonZeroU16::new(*rng.pick(&[1, 2, 16])).expect("not 0");
        MemoryManager::open_with_bucket_size(raw.clone(), bucket_pages).expect("it is formatted");
        let stock = stock::in_memory();
        stock.execute_batch(SCHEMA).expect("it runs");
        let page_bytes = 512 << rng.below(4);
        let mut world = Self { raw, database: None, stock, map: BTreeMap::new(), page_bytes };
        world.reopen(rng);
        world.database().write(|tx| tx.execute_batch(SCHEMA)).expect("it runs");
        world
    }

    fn database(&mut self) -> &mut Database {
        self.database.as_mut().expect("it is open")
    }

    /// As an upgrade does, with a cache of another size.
    fn reopen(&mut self, rng: &mut Rng) {
        self.database = None;
        let cache_bytes = *rng.pick(&[0, 0, 128 * 1024, 256 * 1024 * 1024]);
        let options = OpenOptions { page_bytes: self.page_bytes, cache_bytes, ..OpenOptions::default() };
        self.database = Some(open_with(&self.raw, options).expect("it opens"));
    }

    /// The effect on the map, where there is one.
    fn apply(map: &mut BTreeMap<String, Value>, effect: &Effect) -> Option<Outcome<u64>> {
        const PRIMARY_KEY: i32 = 1555;
        match effect.clone() {
            Effect::Nothing => None,
            Effect::Put(key, value) => {
                map.insert(key, value);
                Some(Ok(1))
            }
            Effect::Insert(key, _) if map.contains_key(&key) => Some(Err(PRIMARY_KEY)),
            Effect::Insert(key, value) => {
                map.insert(key, value);
                Some(Ok(1))
            }
            Effect::Delete(key) => Some(Ok(map.remove(&key).is_some().into())),
            Effect::DeleteRange(start, end) => {
                let before = map.len();
                map.retain(|key, _| *key < start || *key >= end);
                Some(Ok((before - map.len()) as u64))
            }
        }
    }

    /// Runs a step on stock SQLite and on the map, which must agree.
    fn expect(&mut self, step: &Step) -> Outcome<u64> {
        let outcome = stock::execute(&self.stock, &step.sql, &step.params).map(|changes| step.count(changes));
        if let Some(expected) = Self::apply(&mut self.map, &step.effect) {
            assert_eq!(outcome, expected, "stock SQLite and the map: {step:?}");
        }
        outcome
    }

    /// One statement as a transaction of its own. On stock SQLite it is undone whole if it fails: by itself it would keep
    /// what it did before an `OR FAIL`.
    fn execute(&mut self, step: &Step) {
        self.stock.execute_batch("BEGIN").expect("it runs");
        let expected = self.expect(step).and_then(|changes| {
            // References that are checked by COMMIT.
            stock::execute(&self.stock, "COMMIT", &[]).map(|_| changes)
        });
        if !self.stock.is_autocommit() {
            self.stock.execute_batch("ROLLBACK").expect("it runs");
        }
        let found = match self.database().execute(&step.sql, step.params.as_slice()) {
            Ok(changes) => Ok(step.count(changes)),
            Err(error) => Err(engine_code(&error)),
        };
        assert_eq!(found, expected, "{step:?}");
    }

    /// Plays the parts of a transaction or savepoint on stock SQLite and the map. Answers whether it is to be kept.
    fn expect_acts(&mut self, acts: &[Act], ending: Ending, expected: &mut Vec<Seen>) -> bool {
        for act in acts {
            match act {
                Act::Step(step) => {
                    let outcome = self.expect(step);
                    let failed = outcome.is_err();
                    // In a transaction that was given up the engine answers nothing any more.
                    let rows = match self.stock.is_autocommit() {
                        false => stock::rows(&self.stock, look(expected.len()).text(), &[]).expect("it answers"),
                        true => Vec::new(),
                    };
                    expected.push(Seen { outcome, rows });
                    if failed && ending == Ending::FirstError {
                        return false;
                    }
                }
                Act::Savepoint(acts, ending) => {
                    let map_before = self.map.clone();
                    self.stock.execute_batch("SAVEPOINT here").expect("it runs");
                    let keep = self.expect_acts(acts, *ending, expected);
                    if self.stock.is_autocommit() {
                        return false;
                    }
                    if !keep {
                        self.stock.execute_batch("ROLLBACK TO here").expect("it runs");
                        self.map = map_before;
                    }
                    self.stock.execute_batch("RELEASE here").expect("it runs");
                }
            }
            if self.stock.is_autocommit() {
                return false;
            }
        }
        ending != Ending::GiveUp
    }

    /// A transaction of several statements and savepoints, with a look at some rows after each statement.
    fn transact(&mut self, acts: &[Act], ending: Ending) {
        let map_before = self.map.clone();
        self.stock.execute_batch("BEGIN").expect("it runs");
        let mut expected = Vec::new();
        let keep = self.expect_acts(acts, ending, &mut expected);
        let undone = self.stock.is_autocommit();
        let committed = if keep { stock::execute(&self.stock, "COMMIT", &[]).map_err(Some) } else { Err(None) };
        if committed.is_err() {
            self.map = map_before;
            if !self.stock.is_autocommit() {
                self.stock.execute_batch("ROLLBACK").expect("it runs");
            }
        }

        let mut seen = Vec::new();
        let outcome = self.database().write(|tx| run_acts(tx, acts, ending, &mut seen));
        assert!(seen == expected, "{acts:?}:\n{seen:?}\n{expected:?}");
        match (&outcome, committed) {
            (Ok(()), Ok(_)) | (Err(Stop::GaveUp), Err(None)) => {}
            (Err(Stop::Engine(Error::TransactionUndone)), Err(None)) if undone => {}
            (Err(Stop::Engine(_)), Err(None)) if ending == Ending::FirstError => {}
            (Err(Stop::Engine(error)), Err(Some(code))) => assert_eq!(engine_code(error), code, "{acts:?}"),
            (outcome, committed) => panic!("{outcome:?} where stock SQLite had {committed:?}: {acts:?}"),
        }
    }

    /// The image's digest and the stored hashes, computed anew from the bytes.
    fn check_digest(&mut self) {
        let manager = MemoryManager::open(self.raw.clone()).expect("the virtual memories are sound");
        let image = manager.get(DATABASE_MEMORY_ID);
        let superblock = Superblock::load(&image).expect("it is sound").expect("there is one");
        let hashes = PageHashes::open(manager.get(PAGE_HASH_MEMORY_ID)).expect("they are sound");
        let mut page = vec![0; superblock.page_bytes() as usize];
        let mut digest = Digest::default();
        for number in 1..=superblock.image_pages() {
            image.read(superblock.page_offset(number), &mut page).expect("it is within");
            let hash = page_hash(number, &page);
            assert_eq!(hashes.read(number), Ok(hash), "page {number}");
            digest = digest.with(hash);
        }
        let meta = self.database().meta();
        assert_eq!((superblock.digest(), meta.digest), (digest, digest.value()));
        assert_eq!((superblock.transaction_id(), superblock.image_pages()), (meta.transaction_id, meta.image_pages));
    }

    /// The same rows, or the same error, from the engine and from stock SQLite.
    fn compare<'s>(&mut self, sql: impl Into<SqlText<'s>>) {
        let sql = sql.into();
        let expected = stock::rows(&self.stock, sql.text(), &[]);
        let found = self.database().read(|tx| query(tx, sql, &[])).map_err(|error| engine_code(&error));
        assert!(found == expected, "{} answers otherwise:\n{found:?}\n{expected:?}", sql.text());
    }

    /// A range of keys, as the map has it.
    fn compare_range(&mut self, rng: &mut Rng) {
        let (start, end) = (key(rng), key(rng));
        let (start, end) = if start <= end { (start, end) } else { (end, start) };
        let limit = 1 + rng.below(50);
        let (order, descending) = if rng.one_in(2) { ("DESC", true) } else { ("ASC", false) };
        let sql = format!("SELECT key, value FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key {order} LIMIT ?3");
        let params = [Value::Text(start.clone()), Value::Text(end.clone()), Value::Integer(limit as i64)];
        let found = self.database().read(|tx| query(tx, (&sql).into(), &params)).expect("it answers");
        let row = |(key, value): (&String, &Value)| vec![Value::Text(key.clone()), value.clone()];
        let range = self.map.range(start..end);
        let expected: Vec<Vec<Value>> =
            if descending { range.rev().take(limit).map(row).collect() } else { range.take(limit).map(row).collect() };
        assert!(found == expected, "{sql}, {params:?}:\n{found:?}\n{expected:?}");
    }

    /// Everything, also by a stock SQLite that opens the image as a file.
    fn check_all(&mut self, seed: u64) {
        CHECKS.iter().for_each(|sql| self.compare(sql));
        (0..3).for_each(|n| self.compare(&format!("SELECT * FROM extra{n} ORDER BY a, rowid")));
        self.compare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name");
        let mut keys = query_all(self.database(), "SELECT key, value FROM kv ORDER BY key").into_iter();
        assert!(self.map.iter().all(|(key, value)| keys.next() == Some(vec![Value::Text(key.clone()), value.clone()])));
        assert_eq!(keys.next(), None);
        assert_whole(self.database());

        let manager = MemoryManager::open(self.raw.clone()).expect("the virtual memories are sound");
        let image = manager.get(DATABASE_MEMORY_ID);
        let superblock = Superblock::load(&image).expect("it is sound").expect("there is one");
        let mut bytes = vec![0; superblock.image_bytes() as usize];
        image.read(superblock.base(), &mut bytes).expect("it is within");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("history-{}-{seed}.db", std::process::id()));
        std::fs::write(&path, bytes).expect("the image is written to a file");
        let other = rusqlite::Connection::open(&path).expect("stock SQLite opens it");
        let found = stock::rows(&other, "PRAGMA integrity_check", &[]);
        assert_eq!(found, Ok(vec![vec![Value::Text("ok".into())]]), "what stock SQLite says of the image");
        let sql = CHECKS[1].text();
        assert_eq!(stock::rows(&other, sql, &[]), stock::rows(&self.stock, sql, &[]));
        drop(other);
        std::fs::remove_file(&path).expect("the file goes");
    }

    fn turn(&mut self, turn: usize, rng: &mut Rng) {
        match rng.below(10) {
            0 if rng.one_in(3) => {
                self.stock.execute_batch("VACUUM").expect("it runs");
                self.database().vacuum().expect("it runs");
            }
            0 => self.reopen(rng),
            1..4 => {
                let acts = acts(rng, 1);
                self.transact(&acts, *rng.pick(&ENDINGS));
            }
            _ => self.execute(&step(rng)),
        }
        self.check_digest();
        self.compare(&CHECKS[turn % CHECKS.len()]);
        self.compare(&format!("SELECT * FROM extra{} ORDER BY a, rowid", turn % 3));
        self.compare_range(rng);
        if turn.is_multiple_of(25) {
            assert_whole(self.database());
        }
    }
}

/// What a transaction looks at after its step of this number.
fn look(number: usize) -> &'static Sql {
    &CHECKS[number % CHECKS.len()]
}

/// Plays the parts of a transaction or savepoint on the engine.
fn run_acts(tx: &Writer<'_>, acts: &[Act], ending: Ending, seen: &mut Vec<Seen>) -> Result<(), Stop> {
    for act in acts {
        let failed = match act {
            Act::Step(step) => {
                let outcome = tx.execute(&step.sql, step.params.as_slice()).map(|changes| step.count(changes));
                // SQLite has given up the transaction: every further statement is answered with an error.
                if outcome == Err(Error::TransactionUndone) {
                    continue;
                }
                let rows = query(tx, look(seen.len()).into(), &[]);
                let rows = if rows == Err(Error::TransactionUndone) { Vec::new() } else { rows? };
                seen.push(Seen { outcome: outcome.as_ref().copied().map_err(engine_code), rows });
                outcome.err()
            }
            Act::Savepoint(acts, ending) => {
                match tx.savepoint(|tx| run_acts(tx, acts, *ending, seen)) {
                    Ok(()) => assert!(*ending != Ending::GiveUp),
                    Err(Stop::GaveUp) => assert!(*ending == Ending::GiveUp),
                    Err(Stop::Engine(error)) => {
                        assert!(*ending == Ending::FirstError || error == Error::TransactionUndone)
                    }
                }
                None
            }
        };
        if let Some(error) = failed.filter(|_| ending == Ending::FirstError) {
            return Err(Stop::Engine(error));
        }
    }
    if ending == Ending::GiveUp { Err(Stop::GaveUp) } else { Ok(()) }
}

fn query(reader: &Reader<'_>, sql: SqlText<'_>, params: &[Value]) -> Result<Vec<Vec<Value>>, Error> {
    let mut found = Vec::new();
    reader.query(sql, params, |row| {
        found.push((0..row.columns()).map(|n| Ok(row.value(n)?.to_value())).collect::<Result<_, Error>>()?);
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn query_all(database: &Database, sql: &str) -> Vec<Vec<Value>> {
    database.read(|tx| query(tx, sql.into(), &[])).expect("it answers")
}

fn play(seed: u64) {
    /// Says at a panic which history it was.
    struct Playing(u64, usize, u32);
    impl Drop for Playing {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let Self(seed, turn, page_bytes) = self;
                eprintln!(
                    "history {seed}, turn {turn}, pages of {page_bytes} bytes: play it again with ICSQL_SEED={seed}"
                );
            }
        }
    }
    let mut rng = Rng::exactly(seed);
    let mut world = World::new(&mut rng);
    let mut playing = Playing(seed, 0, world.page_bytes);
    for turn in 0..TURNS {
        playing.1 = turn;
        world.turn(turn, &mut rng);
    }
    world.reopen(&mut rng);
    world.check_all(seed);
}

#[test]
fn random_histories_go_as_in_stock_sqlite_and_as_in_a_map() {
    if let Some(seed) = seed_asked_for() {
        return play(seed);
    }
    let seconds = std::env::var("ICSQL_MODEL_SECONDS").ok().map_or(SECONDS_DEFAULT, |seconds| {
        seconds.parse().unwrap_or_else(|_| panic!("ICSQL_MODEL_SECONDS is {seconds:?}: give a number of seconds"))
    });
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut played = 0;
    while played == 0 || Instant::now() < end {
        played += 1;
        play(played);
    }
    println!("{played} histories of {TURNS} turns");
}
