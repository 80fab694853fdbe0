//! A seeded source of test inputs. It prints its seed.
#![allow(dead_code)]
use std::fmt;

/// SplitMix64. `ICSQL_SEED` shifts all seeds, to run the same tests on other inputs.
pub struct Rng {
    seed: u64,
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        let shift = std::env::var("ICSQL_SEED").ok().and_then(|value| value.parse().ok()).unwrap_or(0_u64);
        let seed = seed.wrapping_add(shift.wrapping_mul(0x1_0000_0001));
        Self { seed, state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

impl fmt::Display for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)
    }
}
