//! The database's file, and the commit protocol.
//!
//! Invariants:
//! - Between commits stable memory holds the image that the superblock describes.
//! - Nothing is written before SQLite's COMMIT: the pager holds every dirty page in its cache.
//! - Memory grows before the first write of a commit, so running out of it is an ordinary error.
//! - A failure before the first write leaves everything as it was and is answered to SQLite. From the first write on
//!   a failure traps, and the platform takes the message back.
//! - A mark with the transaction's id is written first, so that a memory which does not roll back shows that it was torn.
//! - The superblock is written last, in one piece. It carries the digest of the pages that were written before it.

use crate::env;
use crate::stable::commit_mark;
use crate::stable::page_hashes::{CommitHashes, PageHashes, PageHashesError, Resize};
use crate::stable::superblock::{IMAGE_BASE_DEFAULT, IMAGE_PAGES_MAX, Superblock, SuperblockError};
use crate::stable::verify::{Progress, Verifier};
use crate::stable::{Memory, MemoryError, WASM_PAGE_BYTES};
use core::fmt;
use std::rc::Rc;

/// Why the file refused what SQLite asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Stable memory could not be read, written or grown.
    Memory(MemoryError),
    /// The table of page hashes could not be read or written.
    PageHashes(PageHashesError),
    /// The superblock that the commit would publish is not possible.
    Superblock(SuperblockError),
    /// The image would have more pages than SQLite can number.
    ImageTooLarge {
        /// Pages that the transaction needs.
        pages: u64,
        /// Pages that an image may have.
        limit: u64,
    },
    /// The heap has no room for what a commit must remember of its pages.
    HeapFull {
        /// Pages that the commit would write.
        pages: u64,
    },
    /// SQLite asked for a write that is not one whole page.
    NotAPage {
        /// Offset in the image, in bytes.
        offset: u64,
        /// Bytes to be written.
        bytes: usize,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::PageHashes(error) => error.fmt(f),
            Self::Superblock(error) => error.fmt(f),
            Self::ImageTooLarge { pages, limit } => {
                write!(
                    f,
                    "the database would have {pages} pages; the limit is {limit}; delete rows or use larger pages"
                )
            }
            Self::HeapFull { pages } => {
                write!(f, "the heap is full: there is no room to commit {pages} pages; change less at a time")
            }
            Self::NotAPage { offset, bytes } => {
                write!(f, "a write of {bytes} bytes at {offset} is not one whole page of the image")
            }
        }
    }
}

impl From<MemoryError> for Cause {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl From<PageHashesError> for Cause {
    fn from(error: PageHashesError) -> Self {
        match error {
            PageHashesError::Memory(error) => Self::Memory(error),
            error => Self::PageHashes(error),
        }
    }
}

impl From<SuperblockError> for Cause {
    fn from(error: SuperblockError) -> Self {
        Self::Superblock(error)
    }
}

/// Ranges of a page that [`DatabaseFile::only`] takes.
const ONLY_RANGES_MAX: usize = 2;

/// The file failed, and [`DatabaseFile::take_cause`] says why.
#[derive(Debug)]
pub(super) struct Failed;

/// What was done to stable memory since the file was opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Operations {
    /// Pages, or parts of one, that SQLite read.
    pub(crate) pages_read: u64,
    /// Pages written.
    pub(crate) pages_written: u64,
    /// Reads of stable memory, those of page hashes included.
    pub(crate) reads: u64,
    /// Writes to stable memory, those of page hashes, of the superblock and of the commit's mark included.
    pub(crate) writes: u64,
}

/// `/main.db`. Aligned so that it lies in one heap page: each that a commit changes costs 1,000 instructions.
#[repr(align(1024))]
pub(crate) struct DatabaseFile {
    memory: Rc<dyn Memory>,
    hashes: PageHashes<Rc<dyn Memory>>,
    /// What the superblock in stable memory says.
    published: Superblock,
    /// Pages of the file as SQLite sees it: those of the image, or in a commit those up to the last written.
    pages: u32,
    /// Pages that fit into the memories as they are.
    capacity_pages: u32,
    /// Whether stable memory differs from what the superblock says: a commit is under way.
    writing: bool,
    /// Whether a call of SQLite is being served. It stays true if a simulated trap unwinds through SQLite, whose state
    /// is then not to be used any more.
    serving: bool,
    /// Hashes of the pages written since.
    written: CommitHashes,
    /// What the commit to come changes, if it is told: a page, and ranges of its bytes. All others are in stable memory.
    only: Option<(u32, [[u32; 2]; ONLY_RANGES_MAX])>,
    /// Whether the first write of a commit was refused. SQLite then rolls back and writes pages as they were before, which
    /// they still are: until the transaction has ended writes are passed over.
    rolling_back: bool,
    /// A refusal that SQLite could not be told at once (see [`DatabaseFile::hint`]).
    refused: Option<Cause>,
    cause: Option<Cause>,
    verifier: Option<Verifier>,
    operations: Operations,
}

impl DatabaseFile {
    pub(crate) fn new(memory: Rc<dyn Memory>, hashes: PageHashes<Rc<dyn Memory>>, superblock: Superblock) -> Self {
        Self {
            memory,
            hashes,
            pages: superblock.image_pages(),
            capacity_pages: superblock.image_pages(),
            published: superblock,
            writing: false,
            serving: false,
            written: CommitHashes::new(),
            only: None,
            rolling_back: false,
            refused: None,
            cause: None,
            verifier: None,
            operations: Operations::default(),
        }
    }

    /// What was done to stable memory since the file was opened.
    pub(crate) fn operations(&self) -> Operations {
        let (reads, writes) = self.hashes.operations();
        let Operations { reads: own_reads, writes: own_writes, .. } = self.operations;
        Operations { reads: reads.wrapping_add(own_reads), writes: writes.wrapping_add(own_writes), ..self.operations }
    }

    /// The superblock as it is in stable memory.
    pub(crate) fn superblock(&self) -> &Superblock {
        &self.published
    }

    /// Whether a commit has begun to write and is not published, or a call was cut off.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.writing || self.serving
    }

    /// Serves a call of SQLite.
    pub(super) fn serve<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.serving = true;
        let answer = body(self);
        self.serving = false;
        answer
    }

    /// Wasm pages of the memory that holds superblock and image.
    pub(crate) fn memory_pages(&self) -> u64 {
        self.memory.size()
    }

    /// Bytes of the file as SQLite sees it.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.pages) * self.page_bytes()
    }

    fn page_bytes(&self) -> u64 {
        u64::from(self.published.page_bytes())
    }

    /// Told that the commit to come changes nothing but these ranges of bytes of this page, which is in the image already: no
    /// other bytes of it need be written. For a row of 100 bytes that saves 3,800 of a commit's instructions.
    #[inline]
    pub(crate) fn only(&mut self, page: u32, ranges: &[[u32; 2]]) {
        let mut only = [[0; 2]; ONLY_RANGES_MAX];
        if page == 0 || page > self.published.image_pages() || ranges.len() > ONLY_RANGES_MAX {
            self.only = None;
            return;
        }
        for (only, range) in only.iter_mut().zip(ranges) {
            *only = *range;
        }
        self.only = Some((page, only));
    }

    /// Told when a transaction was undone.
    pub(crate) fn rolled_back(&mut self) {
        self.only = None;
        self.rolling_back = false;
        self.cause = None;
    }

    /// Why the last call failed, once.
    pub(crate) fn take_cause(&mut self) -> Option<Cause> {
        self.cause.take()
    }

    /// Fills `target` from the image. What lies past its end is zero; then the answer is false.
    pub(super) fn read(&mut self, offset: u64, target: &mut [u8]) -> Result<bool, Failed> {
        let left = self.bytes().saturating_sub(offset);
        let within = target.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (inside, outside) = target.split_at_mut(within);
        if !inside.is_empty() {
            self.operations.pages_read += 1;
            self.operations.reads += 1;
            if let Err(error) = self.memory.read(self.published.base() + offset, inside) {
                return Err(self.fail(error));
            }
        }
        outside.fill(0);
        Ok(outside.is_empty())
    }

    /// Makes sure that a commit of `dirty_pages` pages to an image of `pages` fits, by growing the memories. Changes no
    /// byte. False if they cannot grow; [`DatabaseFile::take_cause`] then says why.
    pub(crate) fn reserve(&mut self, pages: u32, dirty_pages: u32) -> bool {
        let reserve = |file: &mut Self| {
            file.try_reserve(pages.into())?;
            // Pages that the image gains without SQLite writing them are written too.
            let gained = pages.saturating_sub(file.published.image_pages());
            if file.written.reserve(dirty_pages as usize + gained as usize) {
                return Ok(());
            }
            Err(Cause::HeapFull { pages: dirty_pages.into() })
        };
        match self.serve(reserve) {
            Ok(()) => true,
            Err(cause) => {
                self.cause = Some(cause);
                false
            }
        }
    }

    fn try_reserve(&mut self, pages: u64) -> Result<(), Cause> {
        if pages <= u64::from(self.capacity_pages) {
            return Ok(());
        }
        let limit = u64::from(IMAGE_PAGES_MAX);
        let Some(pages) = u32::try_from(pages).ok().filter(|pages| *pages <= IMAGE_PAGES_MAX) else {
            return Err(Cause::ImageTooLarge { pages, limit });
        };
        let end = self.published.base() + u64::from(pages) * self.page_bytes();
        let missing = end.div_ceil(WASM_PAGE_BYTES).saturating_sub(self.memory.size());
        if missing > 0 {
            self.memory.grow(missing)?;
        }
        // Memory grows in steps larger than a page, so there may be room for more.
        let room = (self.memory.size() * WASM_PAGE_BYTES - self.published.base()) / self.page_bytes();
        let room = u32::try_from(room).unwrap_or(IMAGE_PAGES_MAX).min(IMAGE_PAGES_MAX);
        self.hashes.ensure_capacity(room)?;
        self.capacity_pages = room;
        Ok(())
    }

    /// Told by SQLite how large the image will be, before it writes the first page. It ignores the answer, so a
    /// refusal is kept for the write.
    pub(super) fn hint(&mut self, bytes: u64) {
        if !self.writing {
            self.refused = self.try_reserve(bytes.div_ceil(self.page_bytes())).err();
        }
    }

    /// Writes one page of the image to its place. SQLite writes the pages of a commit in ascending order.
    pub(super) fn write(&mut self, offset: u64, page: &[u8]) -> Result<(), Failed> {
        if self.rolling_back {
            return Ok(());
        }
        let outcome = self.try_write(offset, page);
        self.rolling_back = outcome.is_err();
        outcome
    }

    fn try_write(&mut self, offset: u64, page: &[u8]) -> Result<(), Failed> {
        if page.len() as u64 != self.page_bytes() || !offset.is_multiple_of(self.page_bytes()) {
            return Err(self.fail(Cause::NotAPage { offset, bytes: page.len() }));
        }
        if let Some(cause) = self.refused.take() {
            return Err(self.fail(cause));
        }
        let number = offset / self.page_bytes() + 1;
        if let Err(cause) = self.try_reserve(number) {
            return Err(self.fail(cause));
        }
        // Within the capacity, so it is a page number.
        let number = number as u32;
        // SQLite leaves out pages that it has freed again. They read as zero from now on, whatever a larger image once
        // left there.
        self.extend(number - 1)?;
        self.put(number, page)
    }

    /// Appends pages of zeros until there are `pages`.
    fn extend(&mut self, pages: u32) -> Result<(), Failed> {
        if self.pages < pages {
            let zeros = vec![0; self.published.page_bytes() as usize];
            while self.pages < pages {
                self.put(self.pages + 1, &zeros)?;
            }
        }
        Ok(())
    }

    /// Writes page `number`, which is at most the one after the last and within the capacity.
    fn put(&mut self, number: u32, page: &[u8]) -> Result<(), Failed> {
        if !self.writing {
            self.operations.writes += 1;
            if let Err(error) = commit_mark::store(&self.memory, self.published.transaction_id().saturating_add(1)) {
                return Err(self.fail(error));
            }
            self.writing = true;
        }
        self.operations.pages_written += 1;
        match self.only.take() {
            Some((only, ranges)) if only == number => {
                for [start, end] in ranges {
                    if let Some(bytes) = page.get(start as usize..end as usize).filter(|bytes| !bytes.is_empty()) {
                        self.write_bytes(self.published.page_offset(number) + u64::from(start), bytes)?;
                    }
                }
            }
            _ => self.write_bytes(self.published.page_offset(number), page)?,
        }
        self.written.page_written(number, page);
        self.pages = self.pages.max(number);
        Ok(())
    }

    #[inline]
    fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        self.operations.writes += 1;
        self.memory.write(offset, bytes).map_err(|error| self.fail(error))
    }

    /// Cuts or extends the file to `bytes`.
    pub(super) fn truncate(&mut self, bytes: u64) -> Result<(), Failed> {
        if self.rolling_back {
            return Ok(());
        }
        let pages = bytes.div_ceil(self.page_bytes());
        if let Err(cause) = self.try_reserve(pages) {
            return Err(self.fail(cause));
        }
        // Within the capacity, so it is a number of pages.
        let pages = pages as u32;
        self.extend(pages)?;
        if pages < self.pages {
            self.pages = pages;
            self.writing = true;
        }
        Ok(())
    }

    /// Publishes what was written: the last step of a commit. A commit that wrote nothing is none.
    pub(super) fn publish(&mut self) -> Result<(), Failed> {
        if !self.writing {
            return Ok(());
        }
        match self.try_publish() {
            Ok(()) => {
                self.writing = false;
                Ok(())
            }
            Err(cause) => Err(self.fail(cause)),
        }
    }

    fn try_publish(&mut self) -> Result<(), Cause> {
        let resize = Resize {
            page_bytes: self.published.page_bytes(),
            old_pages: self.published.image_pages(),
            new_pages: self.pages,
        };
        let verifier = &mut self.verifier;
        let digest = self.written.apply(&self.hashes, resize, self.published.digest(), |change| {
            if let Some(verifier) = verifier {
                verifier.page_changed(change);
            }
        })?;
        if let Some(verifier) = &mut self.verifier {
            verifier.image_resized(self.pages);
        }
        let next = self.published.after_commit(self.pages, digest)?;
        self.operations.writes += 1;
        next.store(&self.memory)?;
        self.published = next;
        Ok(())
    }

    /// Notes why a call fails. A commit that has begun to write cannot fail: it traps, and the platform undoes it.
    fn fail(&mut self, cause: impl Into<Cause>) -> Failed {
        let cause = cause.into();
        if self.writing {
            env::trap(&format!("a commit was cut off after its first write and is undone: {cause}"));
        }
        self.cause = Some(cause);
        Failed
    }

    /// Goes on with the walk over the image, or starts one; see [`Verifier::verify_chunk`].
    pub(crate) fn verify_chunk(&mut self, bytes_max: u64) -> Result<Progress, PageHashesError> {
        let verifier = self.verifier.get_or_insert_default();
        let progress = verifier.verify_chunk(&self.memory, &self.published, &self.hashes, bytes_max)?;
        if progress.complete {
            self.verifier = None;
        }
        Ok(progress)
    }
}

// New images begin on a page boundary of every page size.
const _: () = assert!(IMAGE_BASE_DEFAULT.is_multiple_of(crate::limits::PAGE_BYTES_MAX as u64));
#[cfg(target_arch = "wasm32")]
const _: () = assert!(size_of::<DatabaseFile>() <= 1_024);
