//! Stable memories that earlier versions wrote are opened, read and written by this one.
//!
//! Each is a file in `tests/fixtures`, which is never changed once a version has written it. To add that of this version:
//!
//!     ICSQL_FIXTURE=NAME cargo test --workspace --no-fail-fast --test versions make -- --ignored --nocapture
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::{MemoryId, MemoryManager};
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, Error, Migration, OpenOptions, Value};
use support::{assert_whole, fixture, rows};

/// What a version wrote, and what it said of it.
struct Stored {
    name: &'static str,
    /// Of the database with pages of 4,096 bytes, and of that with 512.
    transaction_ids: [u64; 2],
    digests: [u64; 2],
}

const STORED: &[Stored] = &[Stored {
    name: "engine-365c04d",
    transaction_ids: [4, 4],
    digests: [0xe905_a78d_a0a2_1acc, 0x1f9c_692a_2668_a9fd],
}];

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "notes",
        sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, body TEXT, weight REAL, attachment BLOB);
              CREATE TABLE kv(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;",
    },
    Migration {
        version: 3,
        name: "search",
        sql: "CREATE INDEX note_by_weight ON note(weight DESC) WHERE weight IS NOT NULL;
              CREATE VIEW heavy AS SELECT title FROM note WHERE weight > 90;
              CREATE TRIGGER note_gone AFTER DELETE ON note BEGIN INSERT INTO kv VALUES ('gone ' || old.id, old.weight); END;
              CREATE VIRTUAL TABLE search USING fts5(title, body);",
    },
];

const NOTES: i64 = 400;
const OTHER: &[u8] = b"a structure of the canister's own";

fn gone(id: i64) -> bool {
    (200..260).contains(&id)
}

fn body(id: i64) -> String {
    // Every fortieth needs overflow pages.
    format!("body {id} ").repeat(if id % 40 == 0 { 3_000 } else { 8 })
}

/// The two databases of the memory.
fn databases(manager: &MemoryManager<HeapMemory>) -> [Database; 2] {
    let id = |id| MemoryId::new(id).expect("an id");
    let ids = [(DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID, 4_096), (id(10), id(11), 512)];
    ids.map(|(image, hashes, page_bytes)| {
        let options = OpenOptions { page_bytes, ..OpenOptions::default() };
        Database::open(manager.get(image), manager.get(hashes), options).expect("the database opens")
    })
}

fn populate(raw: &HeapMemory) -> Result<(), Error> {
    let manager = MemoryManager::open(raw.clone()).expect("an empty memory");
    let other = manager.get(MemoryId::new(0).expect("an id"));
    other.grow(1).and_then(|_| other.write(0, OTHER)).expect("the memory grows");
    for mut database in databases(&manager) {
        database.migrate(MIGRATIONS)?;
        database.write(|tx| {
            for id in 1..=NOTES {
                let attachment = (id % 3 == 0).then(|| id.to_le_bytes());
                tx.execute(
                    "INSERT INTO main.note VALUES (?1, ?2, ?3, ?4, ?5)",
                    (
                        id,
                        format!("note {id:04}"),
                        body(id),
                        (id % 4 == 0).then_some(id as f64 / 4.0),
                        attachment.as_ref().map(|bytes| bytes.as_slice()),
                    ),
                )?;
            }
            tx.execute("INSERT INTO main.search(rowid, title, body) SELECT id, title, body FROM main.note", ())
        })?;
        database.execute("DELETE FROM main.note WHERE id >= 200 AND id < 260", ())?;
        database.execute("INSERT INTO main.kv VALUES ('a blob', x'00ff')", ())?;
    }
    Ok(())
}

fn check(stored: &Stored) {
    let raw = HeapMemory::from_bytes(fixture(stored.name));
    let before = raw.to_bytes();
    let manager = MemoryManager::open(raw.clone()).expect("the virtual memories are sound");
    let opened = databases(&manager);
    assert!(raw.to_bytes() == before, "{}: opening wrote", stored.name);
    for (n, mut database) in opened.into_iter().enumerate() {
        let meta = database.meta();
        assert_eq!(
            (meta.transaction_id, meta.digest),
            (stored.transaction_ids[n], stored.digests[n]),
            "{}",
            stored.name
        );
        assert_whole(&mut database);
        assert_eq!(database.migrate(MIGRATIONS), Ok(0));
        assert_eq!(notes(&database), expected_notes());
        let found = database.read(|reader| {
            Ok::<_, Error>([
                rows(reader, "SELECT COUNT(*) FROM main.heavy")?,
                rows(reader, "SELECT value FROM main.kv WHERE key IN ('gone 204', 'a blob') ORDER BY key")?,
                rows(reader, "SELECT rowid FROM main.search WHERE search MATCH '\"body 77\"'")?,
            ])
        });
        let heavy = (1..=NOTES).filter(|id| !gone(*id) && id % 4 == 0 && id / 4 > 90).count() as i64;
        assert_eq!(
            found.unwrap(),
            [
                vec![vec![Value::Integer(heavy)]],
                vec![vec![Value::Blob(vec![0, 255])], vec![Value::Real(51.0)]],
                vec![vec![Value::Integer(77)]],
            ]
        );
        database.write(|tx| tx.execute("DELETE FROM main.note WHERE id <= 50", ())).unwrap();
        database.execute("INSERT INTO main.note(id, title) VALUES (1000, 'today')", ()).unwrap();
        assert_eq!(database.meta().transaction_id, stored.transaction_ids[n] + 2);
    }
    for mut database in databases(&manager) {
        assert_whole(&mut database);
        assert_eq!(notes(&database).len(), expected_notes().len() - 49);
    }
    let mut other = vec![0; OTHER.len()];
    manager.get(MemoryId::new(0).expect("an id")).read(0, &mut other).unwrap();
    assert_eq!(other, OTHER);
}

fn notes(database: &Database) -> Vec<Vec<Value>> {
    database.read(|reader| rows(reader, "SELECT * FROM main.note ORDER BY id")).expect("the notes can be read")
}

fn expected_notes() -> Vec<Vec<Value>> {
    let note = |id: i64| {
        vec![
            Value::Integer(id),
            Value::Text(format!("note {id:04}")),
            Value::Text(body(id)),
            if id % 4 == 0 { Value::Real(id as f64 / 4.0) } else { Value::Null },
            if id % 3 == 0 { Value::Blob(id.to_le_bytes().to_vec()) } else { Value::Null },
        ]
    };
    (1..=NOTES).filter(|id| !gone(*id)).map(note).collect()
}

#[test]
fn what_earlier_versions_wrote_is_opened_read_and_written() {
    STORED.iter().for_each(check);
}

#[test]
fn every_stored_memory_is_looked_at() {
    let folder = format!("{}/tests/fixtures", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let listed = STORED.iter().any(|stored| name == format!("{}.stable.gz", stored.name));
        assert!(listed || name.starts_with("ic-sqlite-vfs-"), "{name} is not in STORED");
    }
}

#[test]
#[ignore = "adds a file to tests/fixtures"]
fn make() {
    let name = std::env::var("ICSQL_FIXTURE").expect("ICSQL_FIXTURE names the version");
    let raw = HeapMemory::new();
    populate(&raw).unwrap();
    let name = support::keep_fixture(&format!("engine-{name}"), &raw.to_bytes());
    let opened = databases(&MemoryManager::open(raw).unwrap()).map(|database| database.meta());
    println!(
        "    Stored {{ name: {name:?}, transaction_ids: {:?}, digests: [{:#018x}, {:#018x}] }},",
        [opened[0].transaction_id, opened[1].transaction_id],
        opened[0].digest,
        opened[1].digest,
    );
}
