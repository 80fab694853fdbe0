//! The hash of a page and the digest of an image.
//!
//! The hash is frozen: it is stored. `docs/stable-layout.md` specifies it, [`vectors`] pins it.
//!
//! A page goes through a state of four 32-bit lanes in blocks of 16 bytes. For each block, every lane becomes the sum
//! of its two signed halves times two constants (`i32x4.dot_i16x8_s`), the sixteen bytes are permuted so that each
//! lane's bytes part to all four lanes and its high byte comes low, and the block is added. The lanes are then mixed
//! with the page number into 64 bits. The product of 16-bit halves keeps all of its bits, so that a difference in the
//! highest bit spreads as well as any other, which it does not in a product modulo 2^32.
//!
//! The hash finds damage. It is no protection from an adversary, who can make two pages with one hash.
use super::superblock::PAGE_BYTES_MIN;

/// Bytes that a step takes in.
const BLOCK_BYTES: usize = 16;

/// Multipliers of the eight 16-bit halves: the step for block `i` of a page takes row `i % 4`. Primes of 15 bits whose
/// signed binary form has seven or more digits, so that one changed bit changes many.
const MULTIPLIERS: [[i16; 8]; 4] = [
    [27941, 26171, 30119, 27109, 25367, 29131, 26449, 31189],
    [27733, 25951, 29851, 26951, 24989, 28069, 26263, 30509],
    [27277, 25703, 29399, 26723, 31531, 27827, 26053, 30013],
    [27059, 25261, 29017, 26387, 31081, 27479, 25903, 29587],
];

/// The state before the first block, to whose last lane the page's length is added: the first 32 bits of the fractions
/// of the square roots of 2, 3, 5 and 7.
const SEED: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];

const PAGE_NUMBER_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX_FACTORS: [u64; 2] = [0xd1b5_4a32_d192_ed03, 0xaef1_7502_108e_f2d9];

/// Blocks of one turn of the loop. Every page size is a multiple of it.
const TURN_BYTES: usize = 32 * BLOCK_BYTES;

const _: () = assert!((PAGE_BYTES_MIN as usize).is_multiple_of(TURN_BYTES));

/// A bijection of 64 bits in which each bit of the argument moves about half of the result's.
pub(super) const fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(MIX_FACTORS[0]);
    x ^= x >> 29;
    x = x.wrapping_mul(MIX_FACTORS[1]);
    x ^ (x >> 32)
}

/// The bytes of a page, hashed as far as it goes without knowing the page's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageState([u32; 4]);

impl PageState {
    /// Takes in a page. Meant for whole pages of 512 to 65,536 bytes; a last block that is short counts as filled up
    /// with zeros.
    pub fn new(page: &[u8]) -> Self {
        let mut state = SEED;
        state[3] = state[3].wrapping_add(page.len() as u32);
        let (turns, rest) = page.as_chunks::<TURN_BYTES>();
        state = absorb(state, turns);
        for (index, block) in rest.chunks(BLOCK_BYTES).enumerate() {
            let mut filled = [0; BLOCK_BYTES];
            filled[..block.len()].copy_from_slice(block);
            state = portable::step(state, &filled, index);
        }
        Self(state)
    }

    /// The hash of the page under its number, counted from 1.
    pub const fn hash(self, page_number: u32) -> u64 {
        let [a, b, c, d] = self.0;
        let low = a as u64 | (b as u64) << 32;
        let high = c as u64 | (d as u64) << 32;
        mix(mix(low ^ (page_number as u64).wrapping_mul(PAGE_NUMBER_FACTOR)) ^ high)
    }
}

/// The hash of a page under its number, counted from 1.
///
/// A change of the page is missed by a chance of about 2^-64, unless it was made to be missed.
/// Takes about 2,100 IC instructions for a page of 4,096 bytes.
pub fn page_hash(page_number: u32, page: &[u8]) -> u64 {
    PageState::new(page).hash(page_number)
}

/// The sum modulo 2^64 of the hashes of all pages of an image. An image without pages has the digest 0.
///
/// A sum does not depend on the order, so a commit needs the hashes of the pages that it changes and no other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Digest(u64);

impl Digest {
    /// The digest of which this is the stored value.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// The value to store.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The digest with a page more.
    pub const fn with(self, hash: u64) -> Self {
        Self(self.0.wrapping_add(hash))
    }

    /// The digest without a page that it has.
    pub const fn without(self, hash: u64) -> Self {
        Self(self.0.wrapping_sub(hash))
    }
}

#[cfg(not(target_arch = "wasm32"))]
use portable::absorb;
#[cfg(target_arch = "wasm32")]
use simd::absorb;

mod portable {
    use super::{BLOCK_BYTES, MULTIPLIERS};

    /// Takes in the block whose place among the page's blocks is `index`.
    pub(super) fn step(state: [u32; 4], block: &[u8; BLOCK_BYTES], index: usize) -> [u32; 4] {
        let factors = &MULTIPLIERS[index % MULTIPLIERS.len()];
        let (words, _) = block.as_chunks::<4>();
        let dot = |lane: usize| {
            let (low, high) = (state[lane] as i16, (state[lane] >> 16) as i16);
            let low = i32::from(low) * i32::from(factors[2 * lane]);
            // The factors are below 2^15, so the sum is within 32 bits.
            (low + i32::from(high) * i32::from(factors[2 * lane + 1])) as u32
        };
        let p = [dot(0), dot(1), dot(2), dot(3)];
        let lane = |l: usize| {
            let permuted = p[(l + 1) % 4] >> 24
                | (p[(l + 2) % 4] & 0x0000_00ff) << 8
                | (p[(l + 3) % 4] & 0x0000_ff00) << 8
                | (p[l] & 0x00ff_0000) << 8;
            permuted.wrapping_add(u32::from_le_bytes(words[l]))
        };
        [lane(0), lane(1), lane(2), lane(3)]
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn absorb(state: [u32; 4], turns: &[[u8; super::TURN_BYTES]]) -> [u32; 4] {
        let blocks = turns.as_flattened().as_chunks::<BLOCK_BYTES>().0;
        blocks.iter().enumerate().fold(state, |state, (index, block)| step(state, block, index))
    }
}

#[cfg(target_arch = "wasm32")]
mod simd {
    #![allow(unsafe_code)]
    use core::arch::wasm32::{
        i8x16, i8x16_swizzle, i16x8, i32x4_add, i32x4_dot_i16x8, u32x4, u32x4_extract_lane, v128, v128_load,
    };
    use core::hint::black_box;

    use super::{MULTIPLIERS, TURN_BYTES};

    const fn multipliers(row: usize) -> v128 {
        let m = &MULTIPLIERS[row];
        i16x8(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7])
    }

    const ROWS: [v128; 4] = [multipliers(0), multipliers(1), multipliers(2), multipliers(3)];

    /// Byte `i` of the permuted vector is byte `PERMUTATION[i]` of the vector.
    const PERMUTATION: v128 = i8x16(7, 8, 13, 2, 11, 12, 1, 6, 15, 0, 5, 10, 3, 4, 9, 14);

    /// As the portable `absorb`. A turn keeps the state on the stack from its first step to its last.
    ///
    /// Both black boxes are about instructions: a swizzle by a constant would be compiled to a shuffle, which costs
    /// twice as much, and a pointer whose origin is known to an address computed for each load.
    #[target_feature(enable = "simd128")]
    pub(super) fn absorb(state: [u32; 4], turns: &[[u8; TURN_BYTES]]) -> [u32; 4] {
        let permutation = black_box(PERMUTATION);
        let mut a = u32x4(state[0], state[1], state[2], state[3]);
        for turn in turns {
            let blocks = black_box(turn).as_ptr().cast::<v128>();
            macro_rules! steps {
                ($($index:literal)*) => { $(
                    // SAFETY: the index is below 32, so the block's 16 bytes lie within the turn's 512; a load needs
                    // no alignment.
                    let block = unsafe { v128_load(blocks.add($index)) };
                    a = i32x4_add(i8x16_swizzle(i32x4_dot_i16x8(a, ROWS[$index % 4]), permutation), block);
                )* };
            }
            steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        }
        [u32x4_extract_lane::<0>(a), u32x4_extract_lane::<1>(a), u32x4_extract_lane::<2>(a), u32x4_extract_lane::<3>(a)]
    }
}

/// Inputs and hashes that pin the hash on every platform.
pub mod vectors {
    use super::page_hash;

    /// A page that anyone can make again, and its hash.
    #[derive(Debug, Clone, Copy)]
    pub struct Vector {
        /// Number of the page.
        pub page_number: u32,
        /// Bytes of the page.
        pub page_bytes: usize,
        /// What is in it.
        pub fill: Fill,
        /// Its hash.
        pub hash: u64,
    }

    /// The content of a page.
    #[derive(Debug, Clone, Copy)]
    pub enum Fill {
        /// The same byte throughout.
        Byte(u8),
        /// Byte `i` is the high byte of `(i + 1) * 0x9e3779b1 mod 2^32`.
        Ramp,
    }

    impl Vector {
        /// The page.
        pub fn page(&self) -> Vec<u8> {
            let ramp = |i: usize| ((i as u32).wrapping_add(1).wrapping_mul(0x9e37_79b1) >> 24) as u8;
            match self.fill {
                Fill::Byte(byte) => vec![byte; self.page_bytes],
                Fill::Ramp => (0..self.page_bytes).map(ramp).collect(),
            }
        }
    }

    const fn vector(page_number: u32, page_bytes: usize, fill: Fill, hash: u64) -> Vector {
        Vector { page_number, page_bytes, fill, hash }
    }

    /// The frozen values.
    pub const FROZEN: &[Vector] = &[
        vector(1, 512, Fill::Byte(0), 0x0f30_7cd7_9cec_f372),
        vector(1, 4_096, Fill::Byte(0), 0x45fa_b36e_cf7c_bf05),
        vector(2, 4_096, Fill::Byte(0), 0xd991_03f6_90ac_4724),
        vector(1, 4_096, Fill::Byte(255), 0x9d4d_0201_097f_422a),
        vector(1, 4_096, Fill::Ramp, 0x7e42_b5d6_336f_921e),
        vector(u32::MAX, 4_096, Fill::Ramp, 0x42a6_b4a2_f322_12b1),
        vector(3, 16_384, Fill::Ramp, 0x4917_ca74_84be_b341),
        vector(7, 65_536, Fill::Ramp, 0xd30d_30e7_81e9_3c01),
    ];

    /// The first frozen value that this build does not get, with what it got.
    pub fn mismatch() -> Option<(Vector, u64)> {
        FROZEN.iter().find_map(|vector| {
            let got = page_hash(vector.page_number, &vector.page());
            (got != vector.hash).then_some((*vector, got))
        })
    }
}
