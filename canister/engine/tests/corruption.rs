//! Bits and bytes that change behind the engine's back, in more than ten thousand places: every bit of the superblock, of the
//! commit's mark and of the header of the page hashes, bits and runs of bytes over the hashes and over pages of every kind.
//!
//! Each time the database is opened, read throughout, scanned and written to. The damage must be refused at opening or the
//! scan must name exactly the damaged pages. Nothing may panic or trap, and what fails may change nothing.
//!
//! Kinds of damage and places are seeded; `ICSQL_SEED` shifts the seeds.
mod support;

use icsql_engine::stable::WASM_PAGE_BYTES;
use icsql_engine::stable::fault::Trap;
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Budget, Database, Error, OpenOptions, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use support::rng::Rng;
use support::{assert_whole, rows};

/// The superblock and the mark of the last commit.
const SUPERBLOCK_BYTES: usize = 64 + 16;
const HASH_HEADER_BYTES: usize = 16;
const HASH_BYTES: usize = 8;
const IMAGE_BASE: usize = WASM_PAGE_BYTES as usize;

/// Steps of SQLite's virtual machine count for 50 instructions. Each statement needs a hundredth of this on a sound image.
const INSTRUCTIONS_MAX: u64 = 500_000_000;

const SCHEMA: &str = "
    CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, size REAL, body BLOB);
    CREATE INDEX item_name ON item(name, size);
    CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE part(item INTEGER REFERENCES item(id), n INT, CHECK (n >= 0));
    CREATE TRIGGER item_gone AFTER DELETE ON item BEGIN DELETE FROM part WHERE item = old.id; END;
    CREATE VIEW large AS SELECT id, length(body) AS bytes FROM item WHERE length(body) > 400;
    CREATE VIRTUAL TABLE note USING fts5(title, body);
";

const READS: &[&str] = &[
    "SELECT * FROM item",
    "SELECT name, size FROM item INDEXED BY item_name ORDER BY name",
    "SELECT * FROM kv WHERE key >= '0'",
    "SELECT count(*), sum(n) FROM part JOIN item ON item.id = part.item",
    "SELECT * FROM large ORDER BY bytes DESC",
    "SELECT title, snippet(note, 1, '[', ']', '…', 4) FROM note WHERE note MATCH 'word7 OR lake*' ORDER BY rank",
    "SELECT * FROM note",
    "PRAGMA integrity_check",
    "SELECT * FROM sqlite_schema",
];

const WRITES: &[&str] = &[
    "INSERT INTO item(name, size, body) VALUES ('new', 1.5, zeroblob(1200))",
    "UPDATE item SET size = size + 1 WHERE id % 9 = 0",
    "DELETE FROM item WHERE id IN (5, 150)",
    "INSERT OR REPLACE INTO kv SELECT printf('%04d', value), 'new' FROM json_each('[3, 77, 5000]')",
    "DELETE FROM kv WHERE key BETWEEN '0100' AND '0110'",
    "INSERT INTO note VALUES ('late', 'another word7 near the lake')",
    "CREATE INDEX part_item ON part(item)",
];

/// The two memories of a sound database.
struct Sample {
    page_bytes: usize,
    image: Vec<u8>,
    hashes: Vec<u8>,
    /// Pages of each kind.
    kinds: BTreeMap<Kind, Vec<u32>>,
    pages: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Schema,
    Interior,
    Leaf,
    Overflow,
    Free,
    FullText,
}

const KINDS: [Kind; 6] = [Kind::Schema, Kind::Interior, Kind::Leaf, Kind::Overflow, Kind::Free, Kind::FullText];

/// Bytes that were put in place of others.
struct Damage {
    what: String,
    memory: Place,
    offset: usize,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Image,
    Hashes,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, memory, offset, bytes } = self;
        write!(f, "{what}: {memory:?} at {offset} became {:02x?}", &bytes[..bytes.len().min(64)])
    }
}

fn options(page_bytes: usize) -> OpenOptions {
    OpenOptions { page_bytes: page_bytes as u32, ..OpenOptions::default() }
}

fn sample(page_bytes: usize) -> Sample {
    let (image, hashes) = (HeapMemory::new(), HeapMemory::new());
    let mut database = Database::open(image.clone(), hashes.clone(), options(page_bytes)).unwrap();
    database
        .write(|tx| {
            tx.execute_batch(SCHEMA)?;
            // Overflow pages of which some are free later, enough to need two trunks of the free list.
            tx.execute("INSERT INTO kv VALUES ('gone', zeroblob(?1))", ((page_bytes * 140) as i64,))?;
            for n in 0..220_i64 {
                let bytes = if n % 40 == 0 { page_bytes as i64 * 2 } else { n % 7 * 9 };
                let row = (n, format!("name {n:03}"), n as f64 / 4.0, vec![n as u8; bytes as usize]);
                tx.execute("INSERT INTO item VALUES (?1, ?2, ?3, ?4)", row)?;
                tx.execute("INSERT INTO kv VALUES (?1, ?2)", (format!("{n:04}"), "v".repeat(n as usize % 50)))?;
                tx.execute("INSERT INTO part VALUES (?1, ?2)", (n, n % 5))?;
            }
            for n in 0..24 {
                let words: Vec<String> = (0..30).map(|word| format!("word{}", word * n % 41)).collect();
                tx.execute("INSERT INTO note VALUES (?1, ?2)", (format!("lake {n}"), words.join(" ")))?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    database.execute("DELETE FROM kv WHERE key = 'gone'", ()).unwrap();
    assert_whole(&mut database);

    let pages = database.meta().image_pages;
    let mut kinds: BTreeMap<Kind, Vec<u32>> = BTreeMap::new();
    let mut free: BTreeSet<u32> = (1..=pages).collect();
    let listed = database.read(|tx| rows(tx, "SELECT pageno, pagetype, name FROM dbstat")).unwrap();
    for row in listed {
        let [Value::Integer(page), Value::Text(kind), Value::Text(name)] = row.as_slice() else { panic!("{row:?}") };
        let kind = match (name.as_str(), kind.as_str()) {
            ("sqlite_schema", _) => Kind::Schema,
            (name, _) if name.starts_with("note_") => Kind::FullText,
            (_, "internal") => Kind::Interior,
            (_, "leaf") => Kind::Leaf,
            (_, "overflow") => Kind::Overflow,
            _ => panic!("{row:?}"),
        };
        kinds.entry(kind).or_default().push(*page as u32);
        free.remove(&(*page as u32));
    }
    kinds.insert(Kind::Free, free.into_iter().collect());
    for kind in KINDS {
        assert!(kinds.get(&kind).is_some_and(|pages| !pages.is_empty()), "no page is {kind:?}");
    }
    drop(database);
    Sample { page_bytes, image: image.to_bytes(), hashes: hashes.to_bytes(), kinds, pages }
}

impl Sample {
    fn of(&self, place: Place) -> &[u8] {
        match place {
            Place::Image => &self.image,
            Place::Hashes => &self.hashes,
        }
    }

    fn flip(&self, what: impl Into<String>, memory: Place, bit: usize) -> Damage {
        let byte = self.of(memory)[bit / 8] ^ 1 << (bit % 8);
        Damage { what: what.into(), memory, offset: bit / 8, bytes: vec![byte] }
    }

    fn page_offset(&self, page: u32) -> usize {
        IMAGE_BASE + (page as usize - 1) * self.page_bytes
    }

    fn hash_offset(&self, page: u32) -> usize {
        HASH_HEADER_BYTES + (page as usize - 1) * HASH_BYTES
    }

    /// Damage of a random sort on a page of this kind.
    fn damaged_page(&self, kind: Kind, rng: &mut Rng) -> Damage {
        let page = *rng.pick(&self.kinds[&kind]);
        let offset = self.page_offset(page);
        let what = format!("{rng}, page {page} ({kind:?})");
        // Half of it where the page's structure is: its header and the first cell pointers, with page 1's file header.
        let within = if rng.one_in(2) { rng.below(self.page_bytes) } else { rng.below(24) };
        let within = if page == 1 && rng.one_in(2) { rng.below(112) } else { within };
        let rest = self.page_bytes - within;
        let (short, long) = ((1 + rng.below(4)).min(rest), (1 + rng.below(64)).min(rest));
        let run = match rng.below(16) {
            0..10 => return self.flip(what, Place::Image, (offset + within) * 8 + rng.below(8)),
            10 => rng.bytes(long),
            11 => rng.bytes(short),
            12 => vec![if rng.one_in(2) { 0 } else { 255 }; long],
            13 => vec![0; rest],
            // A page in place of another: the number is part of the hash.
            14 => {
                let other = self.page_offset(1 + rng.below(self.pages as usize) as u32);
                let bytes = self.image[other..other + self.page_bytes].to_vec();
                return Damage { what: format!("{what}, a copy"), memory: Place::Image, offset, bytes };
            }
            // A page number that points anywhere, or a length.
            _ => (rng.below(2 * self.pages as usize) as u32).to_be_bytes()[..4.min(rest)].to_vec(),
        };
        Damage { what, memory: Place::Image, offset: offset + within, bytes: run }
    }

    /// The pages whose bytes or stored hashes differ.
    fn differing(&self, image: &[u8], hashes: &[u8]) -> BTreeSet<u32> {
        let differs = |page: &u32| {
            let (at, hash_at) = (self.page_offset(*page), self.hash_offset(*page));
            image[at..at + self.page_bytes] != self.image[at..at + self.page_bytes]
                || hashes[hash_at..hash_at + HASH_BYTES] != self.hashes[hash_at..hash_at + HASH_BYTES]
        };
        (1..=self.pages).filter(differs).collect()
    }
}

/// What a scan says: the pages that it names, and whether the hashes add up to the digest.
fn scan(database: &mut Database) -> (BTreeSet<u32>, bool) {
    loop {
        let progress = database.verify_chunk(1 << 20).expect("the memories can be read");
        if progress.complete {
            let named = progress.damaged.iter().map(|page| page.page_number).collect();
            return (named, progress.digest_matches == Some(true));
        }
    }
}

/// How a case ended.
#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    refused: bool,
    reads_failed: usize,
    writes_failed: usize,
}

/// What SQLite may answer about a damaged image: that it is damaged, or an error that follows from a schema, a value or a
/// function of full-text search that is not what it was.
fn is_fitting(error: &Error) -> bool {
    const ERROR: i32 = 1;
    const READONLY: i32 = 8;
    const TOOBIG: i32 = 18;
    const CONSTRAINT: i32 = 19;
    const FITTING: [i32; 4] = [ERROR, READONLY, TOOBIG, CONSTRAINT];
    match error {
        Error::Sqlite(error) if FITTING.contains(&error.primary()) => true,
        // A length that was damaged asks for more memory than SQLite gives at a time.
        Error::HeapFull { .. } => true,
        Error::Encoding { .. } | Error::Superblock(_) | Error::PageHashes(_) => true,
        error => error.is_corrupt(),
    }
}

/// Opens, reads, scans and writes a damaged database.
fn examine(sample: &Sample, damage: &Damage) -> Outcome {
    let damaged = |place: Place| {
        let mut bytes = sample.of(place).to_vec();
        if place == damage.memory {
            bytes[damage.offset..damage.offset + damage.bytes.len()].copy_from_slice(&damage.bytes);
        }
        bytes
    };
    let (image_before, hashes_before) = (damaged(Place::Image), damaged(Place::Hashes));
    let image = HeapMemory::from_bytes(image_before.clone());
    let hashes = HeapMemory::from_bytes(hashes_before.clone());
    let untouched = |when: &str| {
        let same = image.to_bytes().starts_with(&image_before) && hashes.to_bytes().starts_with(&hashes_before);
        assert!(same, "{damage}: stable memory has changed {when}");
    };
    let mut outcome = Outcome::default();
    let mut database = match Database::open(image.clone(), hashes.clone(), options(sample.page_bytes)) {
        Ok(database) => database,
        Err(error) => {
            assert!(is_fitting(&error), "{damage}: refused with {error:?}");
            untouched("at an opening that failed");
            return Outcome { refused: true, ..outcome };
        }
    };

    for sql in READS {
        let budget = Budget { instructions: INSTRUCTIONS_MAX, ..Budget::UNLIMITED };
        let (outcome_of_read, _) = database.read_within(&budget, |tx| {
            tx.query(*sql, (), |row| {
                (0..row.columns()).try_for_each(|column| row.value(column).map(|_| ()))?;
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
        });
        if let Err(error) = outcome_of_read {
            assert!(is_fitting(&error), "{damage}: {sql} failed with {error:?}");
            outcome.reads_failed += 1;
        }
    }
    let damaged = sample.differing(&image_before, &hashes_before);
    let sums_up = damage.memory == Place::Image;
    let (named, digest_matches) = scan(&mut database);
    assert_eq!(named, damaged, "{damage}: named are {named:?}");
    assert_eq!(digest_matches, sums_up, "{damage}: the digest");
    untouched("by reading");

    // One statement as a transaction of its own, then several in one.
    let write = database.execute("UPDATE kv SET value = 'other' WHERE key = '0042'", ()).map(|_| ());
    if write.is_err() {
        untouched("by a statement that failed");
    }
    let (image_between, hashes_between) = (image.to_bytes(), hashes.to_bytes());
    let several = database.write(|tx| WRITES.iter().try_for_each(|sql| tx.execute(*sql, ()).map(|_| ())));
    if several.is_err() {
        let same = image.to_bytes().starts_with(&image_between) && hashes.to_bytes().starts_with(&hashes_between);
        assert!(same, "{damage}: a transaction that failed has changed stable memory");
    }
    for error in [write.err(), several.err()].into_iter().flatten() {
        assert!(is_fitting(&error), "{damage}: a write failed with {error:?}");
        outcome.writes_failed += 1;
    }
    drop(database);

    // What was not written since is still named, whoever opens the database next. What was written is taken for good.
    if let Ok(mut database) = Database::open(image.clone(), hashes.clone(), options(sample.page_bytes)) {
        let (image_after, hashes_after) = (image.to_bytes(), hashes.to_bytes());
        let written = |page: &u32| {
            let (at, hash_at) = (sample.page_offset(*page), sample.hash_offset(*page));
            image_after[at..at + sample.page_bytes] != image_before[at..at + sample.page_bytes]
                || hashes_after[hash_at..hash_at + HASH_BYTES] != hashes_before[hash_at..hash_at + HASH_BYTES]
        };
        let left: BTreeSet<u32> = damaged.iter().copied().filter(|page| !written(page)).collect();
        assert_eq!(scan(&mut database), (left, sums_up), "{damage}: after the write");
    }
    outcome
}

/// As [`examine`], and a panic or trap in it says what the damage was.
fn examine_caught(sample: &Sample, damage: &Damage) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| examine(sample, damage))).unwrap_or_else(|payload| {
        eprintln!("the case: {damage}");
        match payload.downcast::<Trap>() {
            Ok(trap) => panic!("{damage}: trapped: {}", trap.reason),
            Err(payload) => resume_unwind(payload),
        }
    })
}

#[test]
fn no_bit_of_the_two_headers_can_change_unseen() {
    let sample = sample(512);
    for (place, bytes) in [(Place::Image, SUPERBLOCK_BYTES), (Place::Hashes, HASH_HEADER_BYTES)] {
        for bit in 0..bytes * 8 {
            let damage = sample.flip(format!("bit {bit}"), place, bit);
            assert!(examine_caught(&sample, &damage).refused, "{damage}: it was opened");
        }
    }
}

#[test]
fn a_damaged_hash_is_named_and_hides_nothing() {
    let sample = sample(512);
    let mut rng = Rng::new(1);
    for _ in 0..1_500 {
        let page = 1 + rng.below(sample.pages as usize) as u32;
        let offset = sample.hash_offset(page);
        let what = format!("{rng}, hash of page {page}");
        let damage = if rng.one_in(4) {
            let len = (1 + rng.below(64)).min(sample.hash_offset(sample.pages + 1) - offset);
            Damage { what, memory: Place::Hashes, offset, bytes: rng.bytes(len) }
        } else {
            sample.flip(what, Place::Hashes, offset * 8 + rng.below(64))
        };
        let outcome = examine_caught(&sample, &damage);
        // The image is sound, so everything works.
        assert!(!outcome.refused && outcome.reads_failed + outcome.writes_failed == 0, "{damage}: {outcome:?}");
    }
}

#[test]
fn a_damaged_page_of_any_kind_is_refused_or_named() {
    for (page_bytes, cases) in [(512, 7_200), (4_096, 600)] {
        let sample = sample(page_bytes);
        let mut rng = Rng::new(page_bytes as u64);
        let mut seen = 0;
        for case in 0..cases {
            let damage = sample.damaged_page(KINDS[case % KINDS.len()], &mut rng);
            let outcome = examine_caught(&sample, &damage);
            seen += usize::from(outcome.refused || outcome.reads_failed > 0);
        }
        println!("{cases} damaged pages of {page_bytes} bytes: SQLite itself met {seen}");
        assert!(
            seen * 10 > cases,
            "only {seen} of {cases} were met by SQLite: the damage is too mild to prove anything"
        );
    }
}
