//! The superblock: its frozen bytes, and that nothing but a sound one is read.
use icsql_engine::stable::digest::Digest;
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::superblock::{IMAGE_PAGES_MAX, SUPERBLOCK_BYTES, Superblock, SuperblockError};
use icsql_engine::stable::{Memory, WASM_PAGE_BYTES};

#[path = "support/rng.rs"]
mod rng;
use rng::Rng;

const GIB: u64 = 1 << 30;

fn sample() -> Superblock {
    Superblock::adopt(4_096, 65_536, 0x1234, 0x0123_4567_89ab_cdef, Digest::from_value(0xfedc_ba98_7654_3210), GIB)
        .unwrap()
}

/// The sample with some bytes replaced and the checksum made right again, by trying what the decoder asks for.
fn resealed(offset: usize, field: &[u8]) -> [u8; SUPERBLOCK_BYTES] {
    let mut bytes = sample().encode();
    bytes[offset..offset + field.len()].copy_from_slice(field);
    if let Err(SuperblockError::BadChecksum { computed, .. }) = Superblock::decode(&bytes) {
        bytes[SUPERBLOCK_BYTES - 8..].copy_from_slice(&computed.to_le_bytes());
    }
    bytes
}

#[test]
fn bytes_are_frozen() {
    let mut expected = Vec::new();
    expected.extend(b"ICSQL\0DB");
    expected.extend([1, 0, 0, 0]);
    expected.extend([0x00, 0x10, 0, 0]);
    expected.extend([0, 0, 1, 0, 0, 0, 0, 0]);
    expected.extend([0x34, 0x12, 0, 0, 0, 0, 0, 0]);
    expected.extend([0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01]);
    expected.extend([0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]);
    expected.extend([0; 8]);
    expected.extend([0xef, 0xe9, 0x71, 0x6e, 0x28, 0xcf, 0xcf, 0xaf]);
    assert_eq!(sample().encode().as_slice(), expected, "{:02x?}", sample().encode());
    assert_eq!(Superblock::decode(&expected).unwrap().validate(GIB), Ok(sample()));
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = sample().encode();
    for bit in 0..SUPERBLOCK_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let refused = Superblock::decode(&flipped);
        let expected = match bit / 8 {
            0..8 => matches!(refused, Err(SuperblockError::ForeignMagic { .. })),
            8..12 => matches!(refused, Err(SuperblockError::UnknownLayout { .. })),
            _ => matches!(refused, Err(SuperblockError::BadChecksum { .. })),
        };
        assert!(expected, "bit {bit}: {refused:?}");
    }
}

#[test]
fn torn_writes_are_refused() {
    let (old, new) = (sample().encode(), sample().after_commit(0x2345, Digest::from_value(7)).unwrap().encode());
    // Both begin with the same bytes: what differs starts with the image size and ends with the checksum.
    for cut in 25..SUPERBLOCK_BYTES {
        let torn = [&new[..cut], &old[cut..]].concat();
        assert!(torn == old || torn == new || Superblock::decode(&torn).is_err(), "cut at {cut}");
    }
    for short in 0..SUPERBLOCK_BYTES {
        assert_eq!(Superblock::decode(&new[..short]), Err(SuperblockError::TooShort { found: short }));
    }
}

#[test]
fn each_field_is_checked() {
    let validate = |bytes: &[u8], memory_bytes| Superblock::decode(bytes).unwrap().validate(memory_bytes);
    for found in [0_u32, 1, 256, 511, 513, 4_095, 131_072, u32::MAX] {
        let refused = validate(&resealed(12, &found.to_le_bytes()), GIB);
        assert_eq!(refused, Err(SuperblockError::BadPageSize { found }));
    }
    for page_bytes in [512_u32, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536] {
        let accepted = validate(&resealed(12, &page_bytes.to_le_bytes()), GIB).unwrap();
        assert_eq!(accepted.page_bytes(), page_bytes);
    }
    for found in [0, 64, 4_096, WASM_PAGE_BYTES + 1, u64::MAX] {
        let refused = validate(&resealed(16, &found.to_le_bytes()), GIB);
        assert_eq!(refused, Err(SuperblockError::BadBase { found }));
    }
    let needed = u64::MAX - WASM_PAGE_BYTES + 1;
    assert_eq!(
        validate(&resealed(16, &needed.to_le_bytes()), u64::MAX),
        Err(SuperblockError::ImageBeyondMemory { needed: None, found: u64::MAX })
    );
    for found in [u64::from(IMAGE_PAGES_MAX) + 1, u64::MAX] {
        let refused = validate(&resealed(24, &found.to_le_bytes()), u64::MAX);
        assert_eq!(refused, Err(SuperblockError::TooManyPages { found }));
    }
    assert_eq!(validate(&resealed(48, &8_u64.to_le_bytes()), GIB), Err(SuperblockError::UnknownFlags { found: 8 }));

    let needed = WASM_PAGE_BYTES + 0x1234 * 4_096;
    assert!(validate(&sample().encode(), needed).is_ok());
    assert_eq!(
        validate(&sample().encode(), needed - 1),
        Err(SuperblockError::ImageBeyondMemory { needed: Some(needed), found: needed - 1 })
    );
    assert_eq!(
        sample().after_commit(u32::MAX, Digest::default()),
        Err(SuperblockError::TooManyPages { found: u32::MAX.into() })
    );
    let last = validate(&resealed(32, &u64::MAX.to_le_bytes()), GIB).unwrap();
    assert_eq!(last.after_commit(1, Digest::default()), Err(SuperblockError::TransactionIdsExhausted));
}

#[test]
fn random_bytes_are_refused() {
    let mut rng = Rng::new(11);
    for _ in 0..20_000 {
        let mut bytes = rng.bytes(SUPERBLOCK_BYTES);
        if rng.below(2) == 0 {
            bytes[..12].copy_from_slice(&sample().encode()[..12]);
        }
        assert!(Superblock::decode(&bytes).is_err(), "{bytes:02x?}, {rng}");
        // Whole, but with random fields: accepted only if the image lies in the memory.
        let field = 12 + rng.below(6) * 8;
        let bytes = resealed(field.min(44), &rng.bytes(8));
        if let Ok(superblock) = Superblock::decode(&bytes).unwrap().validate(GIB) {
            assert!(superblock.base() + superblock.image_bytes() <= GIB, "{superblock:?}, {rng}");
            assert!(superblock.page_offset(superblock.image_pages()) < GIB, "{superblock:?}, {rng}");
        }
    }
}

#[test]
fn only_an_empty_memory_is_new() {
    let memory = HeapMemory::new();
    assert_eq!(Superblock::load(&memory), Ok(None));
    let created = Superblock::create(&memory, 4_096).unwrap();
    assert_eq!((created.image_pages(), created.transaction_id(), created.digest().value()), (0, 0, 0));
    assert_eq!(Superblock::load(&memory), Ok(Some(created)));
    let next = created.after_commit(0, Digest::default()).unwrap();
    next.store(&memory).unwrap();
    assert_eq!(Superblock::load(&memory).unwrap().unwrap().transaction_id(), 1);

    for foreign in [vec![0; 65_536], b"SQLite format 3\0".to_vec()] {
        let memory = HeapMemory::from_bytes(foreign);
        let before = memory.to_bytes();
        assert!(matches!(Superblock::load(&memory), Err(SuperblockError::ForeignMagic { .. })));
        assert_eq!(memory.to_bytes(), before);
    }

    let full = HeapMemory::with_limit(0);
    assert!(matches!(Superblock::create(&full, 4_096), Err(SuperblockError::Memory(_))));
    assert_eq!(full.size(), 0);
    assert_eq!(Superblock::create(&full, 100), Err(SuperblockError::BadPageSize { found: 100 }));
}
