//! Bodies of the fuzz targets in `canister/engine/fuzz`: each plays what a sequence of bytes says and panics if the engine
//! breaks a promise. Ordinary tests run them too, on seeded inputs.
pub use crate::stable::fuzz::play as stable_formats;
pub use crate::vfs::fuzz::play as vfs;

/// Reads numbers from a sequence of bytes; past its end they are 0.
pub(crate) struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let (bytes, rest) = self.rest.split_at(N.min(self.rest.len()));
        array[..bytes.len()].copy_from_slice(bytes);
        self.rest = rest;
        array
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Below `bound`, which is not 0 and at most 65,536.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes(self.array())) % bound
    }
}

#[cfg(test)]
mod tests {
    use crate::rng::Rng;

    /// Says at a panic which input it was.
    struct Playing(String);

    impl Drop for Playing {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the input of {}", self.0);
            }
        }
    }

    fn play(body: fn(&[u8]), first_seed: u64, inputs: u64, bytes_max: usize) {
        for seed in first_seed..first_seed + inputs {
            let mut rng = Rng::new(seed);
            let _playing = Playing(rng.to_string());
            let len = rng.below(bytes_max);
            body(&rng.bytes(len));
        }
    }

    #[test]
    fn seeded_histories_of_the_file_go_as_in_a_model() {
        play(super::vfs, 131_000, 1_500, 400);
    }

    #[test]
    fn seeded_bytes_are_refused_or_understood_as_they_are() {
        play(super::stable_formats, 141_000, 6_000, 200);
    }
}
