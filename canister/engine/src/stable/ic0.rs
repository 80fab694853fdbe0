//! The canister's stable memory. The one file that calls the platform for it.
#![allow(unsafe_code)]

use super::{Memory, MemoryError, WASM_PAGE_BYTES, check_range};

mod sys {
    #[link(wasm_import_module = "ic0")]
    unsafe extern "C" {
        pub(super) safe fn stable64_size() -> u64;
        pub(super) safe fn stable64_grow(pages: u64) -> u64;
        pub(super) fn stable64_read(dst: u64, offset: u64, size: u64);
        pub(super) fn stable64_write(offset: u64, src: u64, size: u64);
    }
}

/// What `stable64_grow` answers when it refuses.
const GROW_REFUSED: u64 = u64::MAX;

/// The canister's stable memory.
///
/// Bounds are checked against the platform's size, which is free to ask for, so that no call traps for a bad range.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ic0Memory;

#[inline]
fn size_bytes() -> u64 {
    // At most 500 GiB by the platform's limit: no overflow.
    sys::stable64_size() * WASM_PAGE_BYTES
}

impl Memory for Ic0Memory {
    #[inline]
    fn size(&self) -> u64 {
        sys::stable64_size()
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        match sys::stable64_grow(pages) {
            GROW_REFUSED => Err(MemoryError::GrowFailed { size: self.size(), pages }),
            size => Ok(size),
        }
    }

    #[inline]
    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        check_range(offset, dst.len() as u64, size_bytes())?;
        // SAFETY: the stable range lies within the stable memory, and `dst` is writable for its whole length.
        unsafe { sys::stable64_read(dst.as_mut_ptr() as u64, offset, dst.len() as u64) };
        Ok(())
    }

    #[inline]
    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        check_range(offset, src.len() as u64, size_bytes())?;
        // SAFETY: the stable range lies within the stable memory, and `src` is readable for its whole length.
        unsafe { sys::stable64_write(offset, src.as_ptr() as u64, src.len() as u64) };
        Ok(())
    }
}
