//! A memory on the heap, for native runs and tests.
use std::cell::RefCell;
use std::rc::Rc;

use super::{Memory, MemoryError, WASM_PAGE_BYTES, check_range};

/// A [`Memory`] on the heap. A clone shares the bytes.
#[derive(Clone, Default)]
pub struct HeapMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
    pages_max: Option<u64>,
}

impl HeapMemory {
    /// An empty memory that grows as far as the heap does.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty memory whose growth beyond `pages_max` Wasm pages fails.
    pub fn with_limit(pages_max: u64) -> Self {
        Self { pages_max: Some(pages_max), ..Self::default() }
    }

    /// A memory that holds `bytes`, filled up with zeros to a whole Wasm page.
    pub fn from_bytes(mut bytes: Vec<u8>) -> Self {
        bytes.resize(bytes.len().next_multiple_of(WASM_PAGE_BYTES as usize), 0);
        Self { bytes: Rc::new(RefCell::new(bytes)), pages_max: None }
    }

    /// A copy of all bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    /// Cuts the memory to `pages` Wasm pages, which no platform does but when it takes a message back.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn shrink(&self, pages: u64) {
        if let Ok(len) = usize::try_from(pages.saturating_mul(WASM_PAGE_BYTES)) {
            self.bytes.borrow_mut().truncate(len);
        }
    }
}

impl Memory for HeapMemory {
    fn size(&self) -> u64 {
        self.bytes.borrow().len() as u64 / WASM_PAGE_BYTES
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        let size = self.size();
        let refused = MemoryError::GrowFailed { size, pages };
        let grown = size.checked_add(pages).ok_or(refused)?;
        if self.pages_max.is_some_and(|max| grown > max) {
            return Err(refused);
        }
        let len = grown.checked_mul(WASM_PAGE_BYTES).and_then(|len| usize::try_from(len).ok()).ok_or(refused)?;
        let mut bytes = self.bytes.borrow_mut();
        let more = len - bytes.len();
        bytes.try_reserve(more).map_err(|_| refused)?;
        bytes.resize(len, 0);
        Ok(size)
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        let bytes = self.bytes.borrow();
        check_range(offset, dst.len() as u64, bytes.len() as u64)?;
        let start = offset as usize;
        dst.copy_from_slice(&bytes[start..start + dst.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        let mut bytes = self.bytes.borrow_mut();
        check_range(offset, src.len() as u64, bytes.len() as u64)?;
        let start = offset as usize;
        bytes[start..start + src.len()].copy_from_slice(src);
        Ok(())
    }
}
