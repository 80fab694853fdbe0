//! A seeded source of test inputs. It prints its seed.
#![allow(dead_code, reason = "each test uses its part")]
use std::fmt;

/// SplitMix64.
pub struct Rng {
    seed: u64,
    state: u64,
}

/// The seed that `ICSQL_SEED` names, if it names one.
pub fn seed_asked_for() -> Option<u64> {
    let value = std::env::var("ICSQL_SEED").ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("ICSQL_SEED is {value:?}: give a number from 0 to 2^64 - 1")))
}

impl Rng {
    /// Inputs that follow from `seed` and from `ICSQL_SEED`, which shifts all seeds to run the same tests on others.
    pub fn new(seed: u64) -> Self {
        let shift = seed_asked_for().unwrap_or(0);
        Self::exactly(seed.wrapping_add(shift.wrapping_mul(0x1_0000_0001)))
    }

    /// Inputs that follow from `seed` alone.
    pub fn exactly(seed: u64) -> Self {
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

    /// True once in `n` times on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }
}

impl fmt::Display for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)
    }
}
