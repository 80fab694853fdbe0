//! The database's file against a model: reads, writes, truncations, hints, commits and scans in any order, with a memory
//! that may be full and operations that fail or trap.
//!
//! Promises: what is read is what was written; a call that fails changes nothing; a message that traps leaves what the
//! last commit left; and after each commit the superblock, the page hashes and the digest are those of the pages.
use super::file::DatabaseFile;
use crate::env;
use crate::fuzz::Input;
use crate::stable::digest::{Digest, page_hash};
use crate::stable::fault::{Fault, FaultMemory, message};
use crate::stable::heap::HeapMemory;
use crate::stable::manager::MemoryManager;
use crate::stable::page_hashes::PageHashes;
use crate::stable::superblock::Superblock;
use crate::stable::{DATABASE_MEMORY_ID, Memory, Operation, PAGE_HASH_MEMORY_ID};
use core::num::NonZeroU16;
use std::rc::Rc;

const PAGE_BYTES: usize = 512;
/// Pages that are written; the memory holds fewer.
const PAGES: usize = 450;
/// Wasm pages of raw memory: the tables, superblock and hashes, and up to three with 128 pages each.
const MEMORY_PAGES_MAX: u64 = 6;
const MESSAGES_MAX: usize = 64;

type Page = [u8; PAGE_BYTES];

struct World {
    raw: FaultMemory,
    manager: MemoryManager<FaultMemory>,
    file: DatabaseFile,
    /// The pages as the last commit left them.
    committed: Vec<Page>,
}

impl World {
    fn open(raw: &FaultMemory, committed: Vec<Page>) -> Self {
        let manager = MemoryManager::open_with_bucket_size(raw.clone(), NonZeroU16::MIN).expect("they are sound");
        let memory: Rc<dyn Memory> = Rc::new(manager.get(DATABASE_MEMORY_ID));
        let hashes: Rc<dyn Memory> = Rc::new(manager.get(PAGE_HASH_MEMORY_ID));
        let superblock = match Superblock::load(&memory).expect("it is sound") {
            Some(superblock) => superblock,
            None => Superblock::create(&memory, PAGE_BYTES as u32).expect("there is room"),
        };
        let hashes = PageHashes::open(hashes).expect("they are sound");
        let file = DatabaseFile::new(memory, hashes, superblock);
        Self { raw: raw.clone(), manager, file, committed }
    }

    /// Everything in stable memory is as the last commit left it.
    fn check(&self) {
        let memory = self.manager.get(DATABASE_MEMORY_ID);
        let superblock = Superblock::load(&memory).expect("it is sound").expect("there is one");
        assert_eq!(superblock, *self.file.superblock());
        assert_eq!(superblock.image_pages() as usize, self.committed.len());
        let hashes = PageHashes::open(self.manager.get(PAGE_HASH_MEMORY_ID)).expect("they are sound");
        let mut digest = Digest::default();
        for (page, number) in self.committed.iter().zip(1..) {
            let mut found = [0; PAGE_BYTES];
            memory.read(superblock.page_offset(number), &mut found).expect("it is within");
            assert!(found == *page, "page {number}");
            let hash = page_hash(number, page);
            assert_eq!(hashes.read(number), Ok(hash), "page {number}");
            digest = digest.with(hash);
        }
        assert_eq!(superblock.digest(), digest);
    }
}

/// Plays what `bytes` say.
///
/// # Panics
/// If the file breaks a promise.
pub fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let raw = FaultMemory::new(HeapMemory::with_limit(MEMORY_PAGES_MAX));
    let mut world = World::open(&raw, Vec::new());
    for _ in 0..MESSAGES_MAX {
        if input.is_empty() {
            break;
        }
        let mut pages = world.committed.clone();
        let mut told_to_trap = false;
        let transaction_id = world.file.superblock().transaction_id();
        let outcome = message(&raw, || {
            let changed = play_message(&mut world, &mut input, &mut pages, &mut told_to_trap);
            let end = world.file.superblock().transaction_id();
            assert_eq!(end - transaction_id, u64::from(changed), "transaction ids");
        });
        raw.disarm();
        match outcome {
            Ok(()) => world.committed = pages,
            Err(trap) => {
                let known =
                    ["after its first write", "ended inside a commit"].iter().any(|why| trap.reason.contains(why));
                assert!(known || told_to_trap, "{}", trap.reason);
                // The platform takes the heap back too.
                world = World::open(&raw, world.committed);
            }
        }
        world.check();
    }
}

/// Calls of one message, up to its commit. Answers whether the commit changed anything.
fn play_message(world: &mut World, input: &mut Input<'_>, pages: &mut Vec<Page>, told_to_trap: &mut bool) -> bool {
    let World { raw, file, .. } = world;
    // After a write that was refused SQLite rolls back, and what it writes and truncates until then is passed over.
    let mut rolling_back = false;
    while !input.is_empty() {
        if rolling_back && input.byte() < 64 {
            file.rolled_back();
            rolling_back = false;
        }
        let was_writing = file.is_cut_off();
        // A refusal of a commit that has begun would be a trap.
        let refused = |file: &mut DatabaseFile| {
            assert!(!was_writing && !file.is_cut_off(), "a commit that had begun was refused");
            assert!(file.take_cause().is_some(), "a refusal without a cause");
        };
        match input.byte() % 16 {
            0..6 if rolling_back => {
                assert!(file.write((input.below(PAGES) * PAGE_BYTES) as u64, &[1; PAGE_BYTES]).is_ok());
            }
            7 if rolling_back => assert!(file.truncate((input.below(PAGES) * PAGE_BYTES) as u64).is_ok()),
            6 | 8 if rolling_back => {}
            0..6 => {
                let (index, page) = (input.below(PAGES), [input.byte(); PAGE_BYTES]);
                match file.write((index * PAGE_BYTES) as u64, &page) {
                    Ok(()) => {
                        pages.resize(pages.len().max(index + 1), [0; PAGE_BYTES]);
                        pages[index] = page;
                    }
                    Err(_) => {
                        refused(file);
                        rolling_back = true;
                    }
                }
            }
            6 => {
                // What is not one page, or far away.
                let (offset, len) = (input.u64(), input.below(3 * PAGE_BYTES));
                if file.write(offset, &vec![1; len]).is_err() {
                    refused(file);
                    rolling_back = true;
                } else {
                    assert!(len == PAGE_BYTES && offset.is_multiple_of(PAGE_BYTES as u64), "{len} bytes at {offset}");
                    let index = offset as usize / PAGE_BYTES;
                    pages.resize(pages.len().max(index + 1), [0; PAGE_BYTES]);
                    pages[index] = [1; PAGE_BYTES];
                }
            }
            7 | 8 => {
                let bytes = if input.byte() < 8 { input.u64() } else { (input.below(PAGES) * PAGE_BYTES) as u64 };
                match file.truncate(bytes) {
                    Ok(()) => pages.resize(bytes.div_ceil(PAGE_BYTES as u64) as usize, [0; PAGE_BYTES]),
                    Err(_) => refused(file),
                }
            }
            9 => file.hint(if input.byte() < 8 { input.u64() } else { (input.below(PAGES) * PAGE_BYTES) as u64 }),
            10 => {
                let pages = if input.byte() < 8 { input.u32() } else { input.below(PAGES) as u32 };
                if !file.reserve(pages, input.below(PAGES) as u32) {
                    assert!(file.take_cause().is_some(), "a refusal without a cause");
                }
            }
            11 | 12 => {
                let offset = if input.byte() < 8 { input.u64() } else { (input.below(PAGES) * 600) as u64 };
                let mut found = vec![7; input.below(3_000)];
                let all = pages.as_flattened();
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                let expected = &all[start..all.len().min(start.saturating_add(found.len()))];
                match file.read(offset, &mut found) {
                    Ok(whole) => {
                        assert_eq!(whole, expected.len() == found.len(), "{} bytes at {offset}", found.len());
                        assert!(found.starts_with(expected), "{} bytes at {offset}", found.len());
                        assert!(found[expected.len()..].iter().all(|byte| *byte == 0), "past the end, at {offset}");
                    }
                    Err(_) => refused(file),
                }
            }
            13 => {
                // In a commit the image is not what the superblock says, and nobody scans.
                let bytes = input.below(65_536) as u64;
                if !was_writing && let Ok(progress) = file.verify_chunk(bytes) {
                    assert_eq!(
                        (progress.damaged_total, progress.digest_matches),
                        (0, progress.complete.then_some(true))
                    );
                }
            }
            14 => {
                let operation = [Operation::Read, Operation::Write, Operation::Grow][input.below(3)];
                let fault = [Fault::Error, Fault::Trap, Fault::TrapAfter(input.below(600))][input.below(3)];
                *told_to_trap |= fault != Fault::Error;
                raw.fail(operation, 1 + input.below(8) as u64, fault);
            }
            _ => break,
        }
    }
    if rolling_back {
        file.rolled_back();
    }
    let changed = file.is_cut_off();
    if input.is_empty() && changed {
        env::trap("the message ended inside a commit");
    }
    assert!(file.publish().is_ok(), "a commit that could not be published has to trap");
    assert!(!file.is_cut_off());
    changed
}
