//! A scan of the image that names damaged pages and goes on while commits come in between.
use super::Memory;
use super::digest::{Digest, page_hash};
use super::page_hashes::{PageChange, PageHashes, PageHashesError, chunk_pages};
use super::superblock::Superblock;

/// Damaged pages that a scan keeps. It counts all.
pub const DAMAGED_MAX: usize = 100;

/// Hashes read ahead in one call.
const AHEAD_MAX: usize = 64;

/// A page that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Number of the page, from 1.
    pub page_number: u32,
    /// The stored hash.
    pub expected: u64,
    /// The hash of the page as it was found.
    pub found: u64,
}

/// How far a scan is and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Pages that have been scanned and that the image still has.
    pub pages_done: u32,
    /// Pages of the image.
    pub pages_total: u32,
    /// Bytes scanned by this scan so far, those of pages that the image lost since included.
    pub bytes: u64,
    /// The first damaged pages, at most [`DAMAGED_MAX`], as they were when the scan came by.
    pub damaged: Vec<Damaged>,
    /// All damaged pages.
    pub damaged_total: u64,
    /// Whether every page has been scanned.
    pub complete: bool,
    /// When complete, whether the stored hashes add up to the superblock's digest.
    pub digest_matches: Option<bool>,
}

/// A scan of the image, from the first page to the last.
///
/// It keeps the sum of the stored hashes of the pages that it has passed. Whoever commits tells it of each change
/// ([`page_changed`](Self::page_changed)) and of the new size ([`image_resized`](Self::image_resized)), so that the sum
/// stays right and at the end must be the digest.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    /// Pages 1 to this have been passed.
    pages_done: u32,
    sum: Digest,
    bytes: u64,
    damaged: Vec<Damaged>,
    damaged_total: u64,
    digest_matches: Option<bool>,
}

impl Verifier {
    /// A scan that has yet to begin.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the scan has come to its end.
    pub fn is_complete(&self) -> bool {
        self.digest_matches.is_some()
    }

    /// Scans the next pages, `bytes_max` bytes of them but at least one page. `image` is the database's memory.
    /// A scan that is complete stays as it is.
    ///
    /// # Errors
    /// [`PageHashesError`]; the scan stands where it stood before the page that failed.
    pub fn verify_chunk<M: Memory>(
        &mut self,
        image: &impl Memory,
        superblock: &Superblock,
        table: &PageHashes<M>,
        bytes_max: u64,
    ) -> Result<Progress, PageHashesError> {
        let total = superblock.image_pages();
        if !self.is_complete() {
            let page_bytes = superblock.page_bytes();
            let left = total.saturating_sub(self.pages_done);
            let end = self.pages_done + chunk_pages(bytes_max, page_bytes).min(left);
            let mut page = vec![0; page_bytes as usize];
            let mut stored = [0; AHEAD_MAX];
            while self.pages_done < end {
                let len = AHEAD_MAX.min((end - self.pages_done) as usize);
                let first = self.pages_done + 1;
                table.read_run(first, &mut stored[..len])?;
                for (&expected, page_number) in stored[..len].iter().zip(first..) {
                    image.read(superblock.page_offset(page_number), &mut page)?;
                    let found = page_hash(page_number, &page);
                    if found != expected {
                        self.damaged_total += 1;
                        if self.damaged.len() < DAMAGED_MAX {
                            self.damaged.push(Damaged { page_number, expected, found });
                        }
                    }
                    self.sum = self.sum.with(expected);
                    self.bytes = self.bytes.saturating_add(page_bytes.into());
                    self.pages_done = page_number;
                }
            }
            if self.pages_done >= total {
                self.digest_matches = Some(self.sum == superblock.digest());
            }
        }
        Ok(self.progress(superblock))
    }

    /// How far the scan is.
    pub fn progress(&self, superblock: &Superblock) -> Progress {
        Progress {
            pages_done: self.pages_done,
            pages_total: superblock.image_pages(),
            bytes: self.bytes,
            damaged: self.damaged.clone(),
            damaged_total: self.damaged_total,
            complete: self.is_complete(),
            digest_matches: self.digest_matches,
        }
    }

    /// Takes note of what a commit did to a page. It comes before [`image_resized`](Self::image_resized).
    #[inline]
    pub fn page_changed(&mut self, change: PageChange) {
        if change.page_number <= self.pages_done {
            self.sum = self.sum.without(change.old.unwrap_or(0)).with(change.new.unwrap_or(0));
        }
    }

    /// Takes note of the image's size after a commit, in pages.
    #[inline]
    pub fn image_resized(&mut self, pages: u32) {
        self.pages_done = self.pages_done.min(pages);
    }
}
