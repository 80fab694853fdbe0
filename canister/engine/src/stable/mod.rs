//! Stable memory: the trait that everything above stands on, and its implementations.
use core::fmt;

/// Bytes of one Wasm page, the unit in which memories grow.
pub const WASM_PAGE_BYTES: u64 = 65_536;

/// A linear memory that grows in Wasm pages and outlives the message: stable memory or a stand-in for it.
///
/// No method panics or traps for a bad range: it answers [`MemoryError`]. Newly grown bytes are zero.
pub trait Memory {
    /// Size in Wasm pages of [`WASM_PAGE_BYTES`].
    fn size(&self) -> u64;

    /// Grows by `pages` Wasm pages and returns the size before.
    ///
    /// # Errors
    /// [`MemoryError::GrowFailed`] if the platform refuses; nothing has changed then.
    fn grow(&self, pages: u64) -> Result<u64, MemoryError>;

    /// Fills `dst` from `offset`, in bytes.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within the memory.
    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes `src` to `offset`, in bytes.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within the memory; nothing has changed then.
    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError>;
}

/// What can go wrong with a [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range `offset .. offset + len` does not lie within the `size` bytes of the memory.
    OutOfBounds {
        /// First byte of the range.
        offset: u64,
        /// Bytes in the range.
        len: u64,
        /// Bytes in the memory.
        size: u64,
    },
    /// The platform refused to grow the memory: it is full, or the canister has reached its allocation.
    GrowFailed {
        /// Wasm pages before the call.
        size: u64,
        /// Wasm pages that were asked for on top.
        pages: u64,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfBounds { offset, len, size } => {
                write!(f, "bytes {offset} to {offset}+{len} lie outside a memory of {size} bytes")
            }
            Self::GrowFailed { size, pages } => write!(
                f,
                "the platform refused to grow stable memory from {size} by {pages} Wasm pages of 64 KiB; \
                 free space, or raise the canister's memory allocation"
            ),
        }
    }
}

impl core::error::Error for MemoryError {}
