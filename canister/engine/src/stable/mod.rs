//! Stable memory: the trait that everything above stands on, its implementations, and the formats kept in it.
//!
//! The formats are drawn in `docs/stable-layout.md`. Everything is little-endian, and everything that is not known
//! is refused and left untouched.
pub mod commit_mark;
pub mod digest;
#[cfg(not(target_arch = "wasm32"))]
pub mod fault;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod heap;
#[cfg(target_arch = "wasm32")]
pub mod ic0;
pub mod ic_sqlite_vfs;
pub mod manager;
pub mod page_hashes;
pub mod superblock;
pub mod verify;

use core::fmt;
use std::rc::Rc;

use manager::MemoryId;

/// Virtual memory of the database: superblock and image. The id that ic-sqlite-vfs uses too.
pub const DATABASE_MEMORY_ID: MemoryId = MemoryId::constant(120);

/// Virtual memory of the table of page hashes.
pub const PAGE_HASH_MEMORY_ID: MemoryId = MemoryId::constant(121);

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

impl<M: Memory + ?Sized> Memory for Rc<M> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        (**self).grow(pages)
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        (**self).read(offset, dst)
    }

    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        (**self).write(offset, src)
    }
}

/// Whether `offset .. offset + len` lies within `size` bytes.
fn check_range(offset: u64, len: u64, size: u64) -> Result<(), MemoryError> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(MemoryError::OutOfBounds { offset, len, size }),
    }
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
    /// The virtual memories share 32,768 buckets, and fewer are left than the growth needs.
    OutOfBuckets {
        /// Buckets that the growth needs.
        needed: u64,
        /// Buckets that are left.
        free: u64,
        /// Wasm pages of a bucket.
        bucket_pages: u16,
    },
    /// The memory is one that can only be read.
    ReadOnly,
    /// A failure that a test asked a `FaultMemory` for.
    Injected {
        /// What failed.
        operation: Operation,
        /// Which one since it was asked for, from 1.
        nth: u64,
    },
}

/// The operations of a [`Memory`] that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Memory::read`].
    Read,
    /// [`Memory::write`].
    Write,
    /// [`Memory::grow`].
    Grow,
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
            Self::OutOfBuckets { needed, free, bucket_pages } => write!(
                f,
                "the growth needs {needed} buckets of {bucket_pages} Wasm pages and {free} of {} are left; \
                 buckets are never given back, so the data must move to a canister of its own",
                manager::BUCKETS_MAX
            ),
            Self::ReadOnly => f.write_str("the memory can only be read"),
            Self::Injected { operation, nth } => write!(f, "{operation:?} number {nth} was asked to fail"),
        }
    }
}

impl core::error::Error for MemoryError {}
