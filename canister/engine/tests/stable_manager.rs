//! Virtual memories: the same bytes as ic-stable-structures makes, and a refusal of everything else.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::rc::Rc;

use ic_stable_structures::Memory as _;
use ic_stable_structures::memory_manager as theirs;
use icsql_engine::stable::fault::{Fault, FaultMemory, message};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::{BUCKETS_MAX, ManagerError, MemoryId, MemoryManager};
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, MemoryError, Operation, PAGE_HASH_MEMORY_ID, WASM_PAGE_BYTES};

#[path = "support/rng.rs"]
mod rng;
use rng::Rng;

const SIZES_OFFSET: usize = 40;
const OWNERS_OFFSET: usize = 2_080;

fn id(id: u8) -> MemoryId {
    MemoryId::new(id).unwrap()
}

fn bucket(pages: u16) -> NonZeroU16 {
    NonZeroU16::new(pages).unwrap()
}

/// A memory managed by ic-stable-structures, and its raw bytes.
struct Theirs {
    raw: Rc<RefCell<Vec<u8>>>,
    manager: theirs::MemoryManager<Rc<RefCell<Vec<u8>>>>,
}

impl Theirs {
    fn open(bytes: Vec<u8>, bucket_pages: u16) -> Self {
        let raw = Rc::new(RefCell::new(bytes));
        let manager = theirs::MemoryManager::init_with_bucket_size(Rc::clone(&raw), bucket_pages);
        Self { raw, manager }
    }

    fn get(&self, id: MemoryId) -> theirs::VirtualMemory<Rc<RefCell<Vec<u8>>>> {
        self.manager.get(theirs::MemoryId::new(id.get()))
    }
}

#[test]
fn both_managers_make_the_same_bytes() {
    for (seed, bucket_pages, steps) in [(21, 1, 200), (22, 2, 200), (23, 3, 200), (24, 7, 100), (25, 128, 50)] {
        let mut rng = Rng::new(seed);
        let ids = [id(0), id(1), DATABASE_MEMORY_ID, id(254)];
        let raw = HeapMemory::new();
        let mut ours = MemoryManager::open_with_bucket_size(raw.clone(), bucket(bucket_pages)).unwrap();
        let mut other = Theirs::open(Vec::new(), bucket_pages);
        // A third opinion, for reads across buckets.
        let mut model: BTreeMap<MemoryId, Vec<u8>> = ids.iter().map(|&id| (id, Vec::new())).collect();
        for step in 0..steps {
            let id = ids[rng.below(ids.len())];
            let (mine, their, bytes) = (ours.get(id), other.get(id), model.get_mut(&id).unwrap());
            let size = bytes.len();
            match rng.below(10) {
                0 | 1 => {
                    let pages = rng.below(4) as u64;
                    assert_eq!(mine.grow(pages).unwrap() as i64, their.grow(pages), "step {step}, {rng}");
                    bytes.resize(size + (pages * WASM_PAGE_BYTES) as usize, 0);
                }
                2 => {
                    // Each opens what the other wrote.
                    let (mine, their) = (raw.to_bytes(), other.raw.borrow().clone());
                    assert!(mine == their, "the raw bytes differ at step {step}, {rng}");
                    ours = MemoryManager::open(HeapMemory::from_bytes(their)).unwrap();
                    raw_replace(&raw, &ours);
                    ours = MemoryManager::open(raw.clone()).unwrap();
                    other = Theirs::open(mine, 128);
                }
                kind => {
                    let offset = rng.below(size + 1);
                    let len = rng.below((size - offset).min(300_000) + 1);
                    if kind < 6 {
                        let data = rng.bytes(len.min(5_000));
                        let data = data.repeat(len / data.len().max(1));
                        mine.write(offset as u64, &data).unwrap();
                        their.write(offset as u64, &data);
                        bytes[offset..offset + data.len()].copy_from_slice(&data);
                    } else {
                        let mut read = vec![1; len];
                        mine.read(offset as u64, &mut read).unwrap();
                        assert!(read == bytes[offset..offset + len], "read {len} at {offset}, step {step}, {rng}");
                    }
                }
            }
            assert_eq!(ours.get(id).size(), other.get(id).size());
        }
        assert!(raw.to_bytes() == *other.raw.borrow(), "the raw bytes differ at the end, {rng}");
    }
}

/// Writes the bytes below `manager` into `raw`, which has the same size.
fn raw_replace(raw: &HeapMemory, manager: &MemoryManager<HeapMemory>) {
    raw.write(0, &manager.raw().to_bytes()).unwrap();
}

#[test]
fn bytes_are_frozen() {
    let raw = HeapMemory::new();
    let manager = MemoryManager::open_with_bucket_size(raw.clone(), bucket(2)).unwrap();
    for (memory, pages) in [(DATABASE_MEMORY_ID, 3), (id(7), 1), (PAGE_HASH_MEMORY_ID, 1), (DATABASE_MEMORY_ID, 2)] {
        manager.get(memory).grow(pages).unwrap();
    }
    manager.get(PAGE_HASH_MEMORY_ID).write(0, b"hashes").unwrap();
    manager.get(DATABASE_MEMORY_ID).write(4 * WASM_PAGE_BYTES - 2, b"over").unwrap();

    // One Wasm page of tables and five buckets of two.
    let mut expected = vec![0; 11 * WASM_PAGE_BYTES as usize];
    expected[..8].copy_from_slice(b"MGR\x01\x05\x00\x02\x00");
    for (memory, pages) in [(7, 1), (120, 5), (121, 1)] {
        expected[SIZES_OFFSET + memory * 8] = pages;
    }
    expected[OWNERS_OFFSET..OWNERS_OFFSET + BUCKETS_MAX].fill(255);
    expected[OWNERS_OFFSET..OWNERS_OFFSET + 5].copy_from_slice(&[120, 120, 7, 121, 120]);
    let bucket = |number: usize| (1 + 2 * number) * WASM_PAGE_BYTES as usize;
    expected[bucket(3)..][..6].copy_from_slice(b"hashes");
    expected[bucket(2) - 2..][..2].copy_from_slice(b"ov");
    expected[bucket(4)..][..2].copy_from_slice(b"er");
    assert!(raw.to_bytes() == expected);
}

#[test]
fn bounds_are_errors() {
    let manager = MemoryManager::open_with_bucket_size(HeapMemory::new(), bucket(1)).unwrap();
    let memory = manager.get(id(5));
    assert_eq!(memory.read(0, &mut []), Ok(()));
    assert_eq!(memory.grow(2), Ok(0));
    let size = 2 * WASM_PAGE_BYTES;
    assert_eq!(memory.read(size, &mut []), Ok(()));
    for (offset, len) in [(size, 1), (size - 1, 2), (0, size as usize + 1), (u64::MAX, 1), (u64::MAX, 0)] {
        let expected = Err(MemoryError::OutOfBounds { offset, len: len as u64, size });
        assert_eq!(memory.read(offset, &mut vec![0; len]), expected);
        assert_eq!(memory.write(offset, &vec![0; len]), expected);
    }
    assert!(matches!(memory.grow(u64::MAX), Err(MemoryError::GrowFailed { .. })));
    assert_eq!(memory.size(), 2);
}

/// A memory that is said to be as large as it is grown, and keeps only its first Wasm page.
#[derive(Default)]
struct Tables {
    pages: Cell<u64>,
    first: RefCell<Vec<u8>>,
}

impl Memory for Tables {
    fn size(&self) -> u64 {
        self.pages.get()
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        self.first.borrow_mut().resize(WASM_PAGE_BYTES as usize, 0);
        Ok(self.pages.replace(self.pages.get() + pages))
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        dst.copy_from_slice(&self.first.borrow()[offset as usize..][..dst.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        self.first.borrow_mut()[offset as usize..][..src.len()].copy_from_slice(src);
        Ok(())
    }
}

#[test]
fn the_last_bucket_can_be_had_and_no_more() {
    let raw = Rc::new(Tables::default());
    let manager = MemoryManager::open(Rc::clone(&raw)).unwrap();
    manager.get(id(0)).grow(128).unwrap();
    let memory = manager.get(id(1));
    let free = BUCKETS_MAX as u64 - 1;
    assert_eq!(manager.free_pages(), free * 128);
    let refused = MemoryError::OutOfBuckets { needed: free + 1, free, bucket_pages: 128 };
    assert_eq!(memory.grow(free * 128 + 1), Err(refused));
    assert_eq!(memory.grow(free * 128), Ok(0));
    assert_eq!(manager.free_pages(), 0);
    let refused = MemoryError::OutOfBuckets { needed: 1, free: 0, bucket_pages: 128 };
    assert_eq!(memory.grow(1), Err(refused));
    assert_eq!(raw.size(), 1 + BUCKETS_MAX as u64 * 128);
    assert_eq!(MemoryManager::open(raw).unwrap().get(id(1)).size(), free * 128);
}

#[test]
fn an_access_within_a_bucket_is_one_call() {
    let raw = FaultMemory::default();
    let manager = MemoryManager::open_with_bucket_size(raw.clone(), bucket(2)).unwrap();
    let (other, memory) = (manager.get(id(1)), manager.get(DATABASE_MEMORY_ID));
    memory.grow(2).unwrap();
    other.grow(1).unwrap();
    memory.grow(2).unwrap();
    let bucket_bytes = 2 * WASM_PAGE_BYTES;
    let before = raw.counts();
    memory.read(bucket_bytes - 100, &mut [0; 100]).unwrap();
    memory.write(bucket_bytes, &[1; 4_096]).unwrap();
    assert_eq!((raw.counts().reads - before.reads, raw.counts().writes - before.writes), (1, 1));
    memory.read(bucket_bytes - 100, &mut [0; 101]).unwrap();
    assert_eq!(raw.counts().reads - before.reads, 3);
}

#[test]
fn growth_happens_whole_or_not_at_all() {
    for operation in [Operation::Grow, Operation::Write] {
        for fault in [Fault::Error, Fault::Trap, Fault::TrapAfter(7)] {
            for pages in [1, 40] {
                let raw = FaultMemory::default();
                let manager = MemoryManager::open_with_bucket_size(raw.clone(), bucket(4)).unwrap();
                let memory = manager.get(id(3));
                memory.grow(5).unwrap();
                memory.write(4 * WASM_PAGE_BYTES, b"kept").unwrap();
                let before = raw.heap().to_bytes();

                raw.fail(operation, 1, fault);
                let outcome = message(&raw, || memory.grow(pages));
                if raw.disarm() {
                    // Within the bucket it had, the memory below need not grow.
                    assert_eq!((operation, pages, outcome), (Operation::Grow, 1, Ok(Ok(5))));
                    continue;
                }
                assert!(!matches!(outcome, Ok(Ok(_))), "{operation:?} {fault:?} {pages}");
                let tables = |bytes: &[u8]| bytes[..WASM_PAGE_BYTES as usize].to_vec();
                assert!(tables(&raw.heap().to_bytes()) == tables(&before), "{operation:?} {fault:?} {pages}");
                // The same manager and one that starts anew agree on what there is, and go on.
                let again = MemoryManager::open(raw.clone()).unwrap().get(id(3));
                assert_eq!((memory.size(), again.size()), (5, 5));
                let mut kept = [0; 4];
                again.read(4 * WASM_PAGE_BYTES, &mut kept).unwrap();
                assert_eq!(&kept, b"kept");
                if fault == Fault::Error {
                    assert_eq!(memory.grow(pages), Ok(5));
                    assert_eq!(MemoryManager::open(raw.clone()).unwrap().get(id(3)).size(), 5 + pages);
                }
            }
        }
    }
}

#[test]
fn what_is_not_known_is_refused_and_kept() {
    let raw = HeapMemory::new();
    let manager = MemoryManager::open_with_bucket_size(raw.clone(), bucket(2)).unwrap();
    manager.get(id(7)).grow(3).unwrap();
    manager.get(id(9)).grow(1).unwrap();
    let sound = raw.to_bytes();

    type Damage = fn(&mut Vec<u8>);
    let size = |memory: u8, pages| ManagerError::SizeMismatch {
        memory: id(memory),
        pages,
        buckets: if memory == 7 { 2 } else { 1 },
        bucket_pages: 2,
    };
    let cases: Vec<(Damage, ManagerError)> = vec![
        (|b| b[0] = b'N', ManagerError::Foreign { found: *b"NGR\x01\x03\0\x02\0" }),
        (|b| b.fill(0), ManagerError::Foreign { found: [0; 8] }),
        (|b| b[3] = 2, ManagerError::UnknownVersion { found: 2 }),
        (|b| b[39] = 1, ManagerError::ReservedUsed { offset: 39, found: 1 }),
        (|b| b[6] = 0, ManagerError::EmptyBuckets),
        (|b| b[5] = 0x81, ManagerError::TooManyBuckets { found: 0x8103 }),
        (|b| b[OWNERS_OFFSET + 1] = 255, ManagerError::UnownedBucket { bucket: 1 }),
        (|b| b[4] = 4, ManagerError::UnownedBucket { bucket: 3 }),
        (|b| b[4] = 2, ManagerError::OwnedFreeBucket { bucket: 2, owner: 9 }),
        (|b| b[OWNERS_OFFSET + BUCKETS_MAX - 1] = 0, ManagerError::OwnedFreeBucket { bucket: 32_767, owner: 0 }),
        (|b| b[SIZES_OFFSET + 7 * 8] = 5, size(7, 5)),
        (|b| b[SIZES_OFFSET + 7 * 8] = 2, size(7, 2)),
        (|b| b[SIZES_OFFSET + 9 * 8..][..8].fill(255), size(9, u64::MAX)),
        (|b| b.truncate(6 * WASM_PAGE_BYTES as usize), ManagerError::Truncated { needed: 7, found: 6 }),
    ];
    for (damage, expected) in cases {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        let raw = HeapMemory::from_bytes(bytes.clone());
        let refused = MemoryManager::open(raw.clone()).err();
        assert_eq!(refused, Some(expected));
        assert!(raw.to_bytes() == bytes, "{expected} changed the memory");
    }
    assert!(MemoryManager::open(HeapMemory::from_bytes(sound)).is_ok());
}

#[test]
fn damaged_tables_never_panic() {
    let raw = HeapMemory::new();
    let manager = MemoryManager::open_with_bucket_size(raw.clone(), bucket(1)).unwrap();
    for (memory, pages) in [(1, 3), (2, 1), (1, 2)] {
        manager.get(id(memory)).grow(pages).unwrap();
    }
    let sound = raw.to_bytes();
    let mut rng = Rng::new(31);
    for _ in 0..2_000 {
        let mut bytes = sound.clone();
        for _ in 0..=rng.below(3) {
            let at = match rng.below(3) {
                0 => rng.below(SIZES_OFFSET),
                1 => SIZES_OFFSET + rng.below(4 * 8),
                _ => OWNERS_OFFSET + rng.below(10),
            };
            bytes[at] = rng.next() as u8;
        }
        // Opened, every memory must be usable in its whole length.
        if let Ok(manager) = MemoryManager::open(HeapMemory::from_bytes(bytes)) {
            for memory in (0..255).map(|memory| manager.get(id(memory))) {
                let mut all = vec![0; (memory.size() * WASM_PAGE_BYTES) as usize];
                assert_eq!(memory.read(0, &mut all), Ok(()), "{rng}");
            }
        }
    }
}

#[test]
fn a_full_platform_is_an_error() {
    let full = HeapMemory::with_limit(0);
    assert!(matches!(
        MemoryManager::open(full).err(),
        Some(ManagerError::Memory(MemoryError::GrowFailed { size: 0, pages: 1 }))
    ));
    let manager = MemoryManager::open_with_bucket_size(HeapMemory::with_limit(5), bucket(4)).unwrap();
    let memory = manager.get(id(0));
    assert_eq!(memory.grow(4), Ok(0));
    assert_eq!(memory.grow(1), Err(MemoryError::GrowFailed { size: 5, pages: 4 }));
    assert_eq!(memory.size(), 4);
    assert!(MemoryId::new(255).is_none());
}
