//! Stable memory: sparse, with a log that undoes what a message wrote.

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a page as `stable_grow` counts them.
pub(crate) const WASM_PAGE: u64 = 65_536;
/// Bytes of a page as dirty pages are charged.
const PAGE: u64 = 4_096;
const PAGES_PER_CHUNK: u64 = WASM_PAGE / PAGE;

/// The bytes of a 64 KiB page.
pub(crate) type Chunk = Arc<[u8; WASM_PAGE as usize]>;

/// A canister's stable memory. Chunks of 64 KiB that were never written take no room; clones share the others.
#[derive(Clone, Default)]
pub struct StableMemory {
    /// Size in Wasm pages.
    pages: u64,
    /// By chunk number, `None` for zeros; shorter than `pages` as long as nothing is written at the end.
    chunks: Vec<Option<Chunk>>,
    log: Log,
}

/// What the current message did. Invariant between messages: `dirty` and `accessed` empty.
#[derive(Clone, Default)]
struct Log {
    /// Size at the start.
    pages: u64,
    /// 4 KiB pages written by this message → their bytes at the start of the message, `None` for zeros.
    dirty: HashMap<u64, Option<Box<[u8]>>>,
    /// Bit maps of the 4 KiB pages read or written, by chunk.
    accessed: HashMap<u64, u16>,
    accessed_pages: u64,
}

impl StableMemory {
    /// Size in Wasm pages of 64 KiB.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.pages * WASM_PAGE
    }

    /// A memory with these contents, as many pages as they need.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut memory = Self { pages: (bytes.len() as u64).div_ceil(WASM_PAGE), ..Self::default() };
        memory.write(0, bytes);
        memory.commit();
        memory
    }

    /// A memory of `pages` pages of zeros.
    pub(crate) fn zeros(pages: u64) -> Self {
        let mut memory = Self { pages, ..Self::default() };
        memory.commit();
        memory
    }

    /// Puts bytes where they belong between messages; `offset` is a multiple of 64 KiB, and the range within the memory.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (number, chunk) in bytes.chunks(WASM_PAGE as usize).enumerate() {
            if chunk.iter().any(|b| *b != 0) {
                self.copy_in(offset + number as u64 * WASM_PAGE, chunk);
            }
        }
    }

    /// The 64 KiB page of this number, `None` for zeros. Clones of a memory share the pages that neither has written since.
    pub(crate) fn chunk(&self, number: u64) -> Option<&Chunk> {
        self.chunks.get(usize::try_from(number).ok()?).and_then(Option::as_ref)
    }

    /// All bytes, zeros included.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.bytes()).unwrap_or(usize::MAX)];
        self.copy_out(0, &mut bytes);
        bytes
    }

    /// A copy of `offset..offset + length`, `None` when that is not within the memory.
    pub fn slice(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        if !self.holds(offset, length) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.copy_out(offset, &mut bytes);
        Some(bytes)
    }

    /// Whether `offset..offset + length` lies within the memory.
    pub(super) fn holds(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.bytes())
    }

    /// Grows by `pages`, if the size then is at most `limit` bytes; the size before.
    pub(super) fn grow(&mut self, pages: u64, limit: u64) -> Option<u64> {
        let before = self.pages;
        let after = before.checked_add(pages)?;
        if after > limit / WASM_PAGE {
            return None;
        }
        self.pages = after;
        Some(before)
    }

    fn copy_out(&self, offset: u64, to: &mut [u8]) {
        let mut at = offset;
        let mut rest = to;
        while !rest.is_empty() {
            let within = (at % WASM_PAGE) as usize;
            let length = rest.len().min(WASM_PAGE as usize - within);
            let (part, tail) = rest.split_at_mut(length);
            match self.chunks.get((at / WASM_PAGE) as usize).and_then(Option::as_ref) {
                Some(chunk) => part.copy_from_slice(&chunk[within..within + length]),
                None => part.fill(0),
            }
            at += length as u64;
            rest = tail;
        }
    }

    /// Reads; the range lies within the memory.
    pub(super) fn read(&mut self, offset: u64, to: &mut [u8]) {
        self.access(offset, to.len() as u64);
        self.copy_out(offset, to);
    }

    /// How many 4 KiB pages of this range the message has not written yet.
    pub(super) fn clean_pages(&self, offset: u64, length: u64) -> u64 {
        let range = pages(offset, length);
        range.filter(|page| !self.log.dirty.contains_key(page)).count() as u64
    }

    /// Writes; the range lies within the memory.
    pub(super) fn write(&mut self, offset: u64, from: &[u8]) {
        if from.is_empty() {
            return;
        }
        self.access(offset, from.len() as u64);
        for page in pages(offset, from.len() as u64) {
            if !self.log.dirty.contains_key(&page) {
                let chunk = self.chunks.get((page / PAGES_PER_CHUNK) as usize).and_then(Option::as_ref);
                let start = (page % PAGES_PER_CHUNK * PAGE) as usize;
                let before = chunk.map(|c| Box::from(&c[start..start + PAGE as usize]));
                self.log.dirty.insert(page, before);
            }
        }
        self.copy_in(offset, from);
    }

    fn copy_in(&mut self, offset: u64, from: &[u8]) {
        let mut at = offset;
        let mut rest = from;
        while !rest.is_empty() {
            let within = (at % WASM_PAGE) as usize;
            let length = rest.len().min(WASM_PAGE as usize - within);
            let (part, tail) = rest.split_at(length);
            let number = (at / WASM_PAGE) as usize;
            if self.chunks.len() <= number {
                self.chunks.resize(number + 1, None);
            }
            let chunk = self.chunks[number].get_or_insert_with(|| Arc::new([0; WASM_PAGE as usize]));
            Arc::make_mut(chunk)[within..within + length].copy_from_slice(part);
            at += length as u64;
            rest = tail;
        }
    }

    fn access(&mut self, offset: u64, length: u64) {
        for page in pages(offset, length) {
            let bits = self.log.accessed.entry(page / PAGES_PER_CHUNK).or_default();
            let bit = 1 << (page % PAGES_PER_CHUNK);
            self.log.accessed_pages += u64::from(*bits & bit == 0);
            *bits |= bit;
        }
    }

    /// Bytes of the 4 KiB pages that the message has read or written.
    pub(super) fn accessed_bytes(&self) -> u64 {
        self.log.accessed_pages * PAGE
    }

    /// 4 KiB pages that the message has written.
    pub(super) fn dirty_pages(&self) -> u64 {
        self.log.dirty.len() as u64
    }

    /// Keeps what the message did.
    pub(crate) fn commit(&mut self) {
        self.log.dirty.clear();
        self.log.accessed.clear();
        self.log.accessed_pages = 0;
        self.log.pages = self.pages;
    }

    /// Undoes what the message did.
    pub(crate) fn rollback(&mut self) {
        self.pages = self.log.pages;
        for (page, before) in std::mem::take(&mut self.log.dirty) {
            match before {
                Some(before) => self.copy_in(page * PAGE, &before),
                None => self.copy_in(page * PAGE, &[0; PAGE as usize]),
            }
        }
        self.chunks.truncate(usize::try_from(self.pages).unwrap_or(usize::MAX));
        self.commit();
    }
}

/// Numbers of the 4 KiB pages of a range.
fn pages(offset: u64, length: u64) -> std::ops::Range<u64> {
    if length == 0 { 0..0 } else { offset / PAGE..(offset + length - 1) / PAGE + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_restores_bytes_size_and_zeros() {
        let mut memory = StableMemory::from_bytes(&[7; 70_000]);
        assert_eq!(memory.pages(), 2);
        let before = memory.to_bytes();
        assert_eq!(memory.grow(3, u64::MAX), Some(2));
        assert_eq!(memory.clean_pages(4_095, 2), 2);
        memory.write(4_095, &[1, 2]);
        memory.write(4_096, &[3]);
        memory.write(3 * WASM_PAGE, &[9; 5_000]);
        assert_eq!(memory.dirty_pages(), 4);
        assert_eq!(memory.clean_pages(0, 12_288), 1);
        let mut read = [0; 3];
        memory.read(4_095, &mut read);
        assert_eq!(read, [1, 3, 7]);
        assert_eq!(memory.accessed_bytes(), 4 * PAGE);
        memory.rollback();
        assert_eq!((memory.pages(), memory.dirty_pages(), memory.accessed_bytes()), (2, 0, 0));
        assert!(memory.to_bytes() == before);
        // The bytes beyond the old end are zero again when the memory grows over them anew.
        assert_eq!(memory.grow(3, u64::MAX), Some(2));
        let mut read = [1; 8];
        memory.read(3 * WASM_PAGE, &mut read);
        assert_eq!(read, [0; 8]);
    }

    #[test]
    fn growth_stops_at_the_limit_and_sparse_gigabytes_cost_nothing() {
        let mut memory = StableMemory::default();
        assert_eq!(memory.grow(500 << 14, 500 << 30), Some(0));
        assert_eq!(memory.grow(1, 500 << 30), None);
        assert_eq!(memory.grow(u64::MAX, u64::MAX), None);
        memory.write((500 << 30) - 1, &[1]);
        assert!(memory.holds((500 << 30) - 1, 1) && !memory.holds(500 << 30, 1) && !memory.holds(u64::MAX, 2));
        assert_eq!(memory.chunks.iter().flatten().count(), 1);
    }
}
