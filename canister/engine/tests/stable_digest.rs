//! The page hash: its frozen values, and that it sees what damage looks like.
use std::collections::HashSet;

use icsql_engine::stable::digest::{Digest, page_hash, vectors};

#[path = "support/rng.rs"]
mod rng;
use rng::Rng;

const PAGE_BYTES: usize = 4_096;

/// Random pages, and those of a kind that hashes are often weak on.
fn pages(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut sparse = vec![0; PAGE_BYTES];
    sparse[..100].copy_from_slice(&rng.bytes(100));
    let text = (0..PAGE_BYTES).map(|i| b"row 000001;"[i % 11]).collect();
    vec![vec![0; PAGE_BYTES], vec![255; PAGE_BYTES], sparse, text, rng.bytes(PAGE_BYTES)]
}

#[test]
fn frozen_values_hold() {
    for vector in vectors::FROZEN {
        let got = page_hash(vector.page_number, &vector.page());
        assert_eq!(got, vector.hash, "got {got:#018x} for {vector:x?}");
    }
    assert!(vectors::mismatch().is_none());
}

#[test]
fn every_single_bit_counts() {
    let mut rng = Rng::new(1);
    for page in [vec![0; PAGE_BYTES], rng.bytes(PAGE_BYTES)] {
        let whole = page_hash(1, &page);
        let mut seen = HashSet::from([whole]);
        let mut flipped = page;
        for bit in 0..PAGE_BYTES * 8 {
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(page_hash(1, &flipped)), "bit {bit} makes no new hash, {rng}");
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// A product modulo 2^32 would let two flips of the same high bit in neighbouring blocks cancel.
#[test]
fn pairs_of_bits_do_not_cancel() {
    let mut rng = Rng::new(2);
    for mut page in pages(&mut rng) {
        page.truncate(512);
        let whole = page_hash(1, &page);
        let check = |a: usize, b: usize| {
            let mut flipped = page.clone();
            flipped[a / 8] ^= 1 << (a % 8);
            flipped[b / 8] ^= 1 << (b % 8);
            assert!(a == b || page_hash(1, &flipped) != whole, "bits {a} and {b} cancel");
        };
        let start = 64 * 8;
        // Every pair within a block, and of a block with each of the two after it.
        for bit in start..start + 128 {
            for other in bit + 1..start + 3 * 128 {
                check(bit, other);
            }
        }
        for _ in 0..2_000 {
            check(rng.below(512 * 8), rng.below(512 * 8));
        }
    }
}

#[test]
fn every_value_of_a_byte_or_word_counts() {
    let mut rng = Rng::new(3);
    let mut page = rng.bytes(512);
    let mut seen = HashSet::new();
    for value in 0..=u16::MAX {
        page[256..258].copy_from_slice(&value.to_le_bytes());
        assert!(seen.insert(page_hash(1, &page)), "value {value} makes no new hash, {rng}");
    }
}

#[test]
fn damage_and_moves_count() {
    let mut rng = Rng::new(4);
    for page in pages(&mut rng) {
        let whole = page_hash(1, &page);
        for _ in 0..300 {
            let mut damaged = page.clone();
            let start = rng.below(PAGE_BYTES);
            let len = 1 + rng.below(64.min(PAGE_BYTES - start));
            let bytes = rng.bytes(len);
            damaged[start..start + len].copy_from_slice(&bytes);
            assert!(damaged == page || page_hash(1, &damaged) != whole, "{len} bytes at {start}, {rng}");

            let mut torn = page.clone();
            torn[start..].fill(0);
            assert!(torn == page || page_hash(1, &torn) != whole, "zeros from {start}, {rng}");

            let mut moved = page.clone();
            let (a, b) = (rng.below(256) * 16, rng.below(256) * 16);
            for i in 0..16 {
                moved.swap(a + i, b + i);
            }
            assert!(moved == page || page_hash(1, &moved) != whole, "blocks at {a} and {b} swapped, {rng}");
        }
    }
}

#[test]
fn the_same_bytes_differ_by_page_number_and_size() {
    let mut seen = HashSet::new();
    for size in [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536] {
        let zeros = vec![0; size];
        for page_number in 1..500 {
            assert!(seen.insert(page_hash(page_number, &zeros)), "page {page_number} of {size} bytes");
        }
    }
}

/// Each bit of the hash is set by about half of similar pages, and flips with about half of the bits of a page.
#[test]
fn bits_are_spread() {
    const SAMPLES: usize = 4_096;
    let mut rng = Rng::new(5);
    for page in pages(&mut rng) {
        let whole = page_hash(9, &page);
        let (mut set, mut flips) = ([0_usize; 64], [0_usize; 64]);
        for sample in 0..SAMPLES {
            let mut similar = page.clone();
            similar[sample] ^= 1 << rng.below(8);
            let hash = page_hash(9, &similar);
            for bit in 0..64 {
                set[bit] += usize::from(hash >> bit & 1 == 1);
                flips[bit] += usize::from((hash ^ whole) >> bit & 1 == 1);
            }
        }
        // Six standard deviations of a binomial distribution: sqrt(4,096) / 2 = 32 each.
        for count in set.iter().chain(&flips) {
            assert!(count.abs_diff(SAMPLES / 2) < 6 * 32, "set {set:?}, flips {flips:?}, {rng}");
        }
    }
}

#[test]
fn a_digest_knows_no_order_and_forgets_exactly() {
    let mut rng = Rng::new(6);
    let hashes: Vec<u64> = (0..100).map(|_| rng.next()).collect();
    let forward = hashes.iter().fold(Digest::default(), |digest, &hash| digest.with(hash));
    let backward = hashes.iter().rev().fold(Digest::default(), |digest, &hash| digest.with(hash));
    assert_eq!(forward, backward);
    assert_ne!(forward, Digest::default());
    assert_eq!(hashes.iter().fold(forward, |digest, &hash| digest.without(hash)), Digest::default());
}
