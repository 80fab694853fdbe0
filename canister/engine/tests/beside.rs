//! What docs/embedding.md shows: structures of ic-stable-structures beside the database, and several databases.

use ic_stable_structures::StableBTreeMap;
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::{MemoryId, MemoryManager, VirtualMemory};
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Budget, Database, Error, Limited, OpenOptions};

/// A virtual memory as ic-stable-structures takes it. Its trait has no errors: it panics.
struct Beside<M>(VirtualMemory<M>);

impl<M: Memory> ic_stable_structures::Memory for Beside<M> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn grow(&self, pages: u64) -> i64 {
        self.0.grow(pages).map_or(-1, |before| before as i64)
    }

    fn read(&self, offset: u64, dst: &mut [u8]) {
        self.0.read(offset, dst).unwrap_or_else(|error| panic!("{error}"));
    }

    fn write(&self, offset: u64, src: &[u8]) {
        self.0.write(offset, src).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn id(id: u8) -> MemoryId {
    MemoryId::new(id).expect("255 is no id")
}

#[test]
fn structures_and_databases_share_one_manager() {
    let raw = HeapMemory::new();
    for start in 0..3_u32 {
        let manager = MemoryManager::open(raw.clone()).unwrap();
        let mut map: StableBTreeMap<u32, String, _> = StableBTreeMap::init(Beside(manager.get(id(0))));
        let [mut first, mut second] =
            [(DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID), (id(122), id(123))].map(|(image, hashes)| {
                Database::open(manager.get(image), manager.get(hashes), OpenOptions::default()).unwrap()
            });
        if start == 0 {
            first.write(|tx| tx.execute_batch("CREATE TABLE t(x INTEGER)")).unwrap();
            second.write(|tx| tx.execute_batch("CREATE TABLE t(x INTEGER)")).unwrap();
        }
        map.insert(start, format!("start {start}"));
        first.execute("INSERT INTO main.t VALUES (?1)", (start,)).unwrap();
        second.execute("INSERT INTO main.t VALUES (?1)", (start * 100,)).unwrap();
        let sum = |database: &Database| {
            database.read(|reader| reader.query_row("SELECT sum(x) FROM main.t", (), |row| row.integer(0))).unwrap()
        };
        let expected: i64 = (0..=start).map(i64::from).sum();
        assert_eq!((sum(&first), sum(&second)), (Some(expected), Some(expected * 100)));
        assert_eq!(map.values().collect::<Vec<_>>(), (0..=start).map(|n| format!("start {n}")).collect::<Vec<_>>());
    }
}

#[test]
fn a_budget_as_the_guide_has_it() {
    let manager = MemoryManager::open(HeapMemory::new()).unwrap();
    let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
    let mut database = Database::open(image, hashes, OpenOptions::default()).unwrap();
    database.write(|tx| tx.execute_batch("CREATE TABLE note(text TEXT)")).unwrap();
    let budget = Budget { instructions: 1_000_000_000, rows: 100, result_bytes: 1_000_000, ..Budget::UNLIMITED };
    let (added, metrics) = database.write_within(&budget, |tx| {
        (0..200).try_for_each(|n| tx.execute("INSERT INTO main.note VALUES (?1)", (n,)).map(drop))
    });
    added.unwrap();
    assert_eq!(metrics.statements, 200);
    let (read, metrics) = database.read_within(&budget, |reader| {
        reader.query("SELECT text FROM main.note", (), |_| Ok::<_, Error>(std::ops::ControlFlow::Continue(())))
    });
    assert!(matches!(read, Err(Error::Budget(exceeded)) if exceeded.what == Limited::Rows));
    assert_eq!(metrics.rows, 100);
}
