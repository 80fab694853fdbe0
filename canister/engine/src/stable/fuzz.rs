//! Bytes that could be anything, read as each of the formats in stable memory.
//!
//! Promises: they are refused and left as they are, or they are exactly what the format says and can be used in their
//! whole length.
use super::digest::Digest;
use super::heap::HeapMemory;
use super::manager::{MemoryId, MemoryManager};
use super::page_hashes::{CommitHashes, PageHashes, Resize};
use super::superblock::{SUPERBLOCK_BYTES, Superblock, SuperblockError};
use super::verify::Verifier;
use super::{Memory, WASM_PAGE_BYTES};
use crate::fuzz::Input;
use core::num::NonZeroU16;

/// Plays what `bytes` say.
///
/// # Panics
/// If a format breaks a promise.
pub fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.byte() % 3 {
        0 => superblock(&mut input),
        1 => page_hashes(&mut input),
        _ => virtual_memories(&mut input),
    }
}

fn superblock(input: &mut Input<'_>) {
    let mut bytes: [u8; SUPERBLOCK_BYTES] = input.array();
    let kind = input.byte();
    if kind > 16 {
        bytes[..12].copy_from_slice(b"ICSQL\0DB\x01\0\0\0");
        // Otherwise hardly a field would be looked at.
        if let Err(SuperblockError::BadChecksum { computed, .. }) = Superblock::decode(&bytes) {
            bytes[SUPERBLOCK_BYTES - 8..].copy_from_slice(&computed.to_le_bytes());
        }
    }
    let mut wasm_pages = 1 + input.below(4);
    if kind > 64 {
        // Fields that can be, one of them perhaps damaged.
        let fields = Superblock::adopt(
            512 << input.below(8),
            WASM_PAGE_BYTES,
            input.below(4) as u32,
            input.u64(),
            Digest::from_value(input.u64()),
            8 * WASM_PAGE_BYTES,
        );
        bytes = fields.expect("they lie within 8 Wasm pages").encode();
        wasm_pages = 1 + input.below(8);
        if kind > 128 {
            bytes[input.below(SUPERBLOCK_BYTES)] ^= input.byte();
        }
    }
    let mut all = vec![0; wasm_pages * WASM_PAGE_BYTES as usize];
    all[..SUPERBLOCK_BYTES].copy_from_slice(&bytes);
    let memory = HeapMemory::from_bytes(all.clone());
    let loaded = Superblock::load(&memory);
    assert!(memory.to_bytes() == all, "loading has changed the memory");
    let Ok(superblock) = loaded else { return };
    let superblock = superblock.expect("the memory is not empty");
    assert_eq!(superblock.encode(), bytes);
    assert!(superblock.base() + superblock.image_bytes() <= all.len() as u64, "{superblock:?}");

    let (image_pages, digest) = (input.u32(), Digest::from_value(input.u64()));
    if let Ok(next) = superblock.after_commit(image_pages, digest) {
        assert_eq!((next.image_pages(), next.digest()), (image_pages, digest));
        assert_eq!(next.transaction_id(), superblock.transaction_id() + 1);
        assert!(Superblock::decode(&next.encode()).is_ok());
    }
    let table = PageHashes::open(HeapMemory::new()).expect("there is room");
    let progress = Verifier::new().verify_chunk(&memory, &superblock, &table, u64::MAX).expect("all is within");
    assert_eq!((progress.complete, progress.damaged_total), (true, superblock.image_pages().into()));
}

fn page_hashes(input: &mut Input<'_>) {
    let mut header: [u8; 16] = *b"ICSQL\0PH\x01\0\0\0\0\0\0\0";
    if input.byte() < 64 {
        header[input.below(16)] ^= input.byte();
    }
    let mut all = vec![0; WASM_PAGE_BYTES as usize];
    all[..16].copy_from_slice(&header);
    let memory = HeapMemory::from_bytes(all.clone());
    let Ok(table) = PageHashes::open(memory.clone()) else {
        assert!(memory.to_bytes() == all, "a refusal has changed the memory");
        return;
    };
    assert_eq!(header, *b"ICSQL\0PH\x01\0\0\0\0\0\0\0");
    while !input.is_empty() {
        let number = if input.byte() < 128 { input.below(20_000) as u32 } else { input.u32() };
        let within = number > 0 && u64::from(number) * 8 + 16 <= memory.size() * WASM_PAGE_BYTES;
        match input.byte() % 5 {
            0 => assert_eq!(table.read(number).is_ok(), within, "page {number}"),
            1 => {
                let hash = input.u64();
                assert_eq!(table.write(number, hash).is_ok(), within, "page {number}");
                assert!(!within || table.read(number) == Ok(hash));
            }
            2 => {
                let mut hashes = vec![0; input.below(100)];
                let whole = table.read_run(number, &mut hashes);
                assert!(hashes.len() > 1 || hashes.is_empty() || whole.is_ok() == within, "page {number}");
            }
            3 => table.ensure_capacity(number % 20_000).expect("the heap has room"),
            _ => {
                let mut commit = CommitHashes::new();
                for _ in 0..input.below(6) {
                    commit.page_written(input.below(20_000) as u32 + 1, &[input.byte(); 512]);
                }
                let old_pages = input.below(9_000) as u32;
                let resize = Resize { page_bytes: 512, old_pages, new_pages: number };
                let fits = u64::from(number) * 8 + 16 <= memory.size() * WASM_PAGE_BYTES;
                let applied = commit.apply(&table, resize, Digest::default(), |_| ());
                // Every page that the image gains is written to the table.
                assert!(applied.is_err() || fits || number <= old_pages, "page {number}");
            }
        }
        assert!(memory.to_bytes().starts_with(&header), "the header has changed");
    }
}

fn virtual_memories(input: &mut Input<'_>) {
    let raw = HeapMemory::new();
    let manager = MemoryManager::open_with_bucket_size(raw.clone(), NonZeroU16::MIN).expect("there is room");
    for id in [120, 7, 121, 7] {
        let memory = manager.get(MemoryId::new(id).expect("it is one"));
        memory.grow(1 + input.below(2) as u64).expect("there is room");
    }
    let mut bytes = raw.to_bytes();
    // Header and sizes, or owners of the first buckets, or anywhere in the tables.
    for _ in 0..input.below(4) {
        let offset = match input.byte() % 4 {
            0 => input.below(8),
            1 => 40 + 8 * [0, 7, 120, 121, 254][input.below(5)] + input.below(8),
            2 => 2_080 + input.below(12),
            _ => input.below(34_848),
        };
        bytes[offset] = input.byte();
    }
    bytes.truncate(bytes.len().saturating_sub(input.below(2) * WASM_PAGE_BYTES as usize));
    let raw = HeapMemory::from_bytes(bytes.clone());
    let Ok(manager) = MemoryManager::open(raw.clone()) else {
        assert!(raw.to_bytes() == bytes, "a refusal has changed the memory");
        return;
    };
    assert!(raw.to_bytes() == bytes, "opening has changed the memory");
    let mut pages = 0;
    for memory in (0..255).filter_map(MemoryId::new).map(|id| manager.get(id)) {
        let mut all = vec![0; (memory.size() * WASM_PAGE_BYTES) as usize];
        assert_eq!(memory.read(0, &mut all), Ok(()));
        assert!(memory.read(1, &mut all).is_err() || all.is_empty());
        pages += memory.size();
    }
    assert!((1 + pages) * WASM_PAGE_BYTES <= bytes.len() as u64, "{pages} pages of virtual memory");
}
