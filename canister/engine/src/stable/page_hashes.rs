//! The table of page hashes, in a virtual memory of its own.
//!
//! ```text
//!  0          magic "ICSQL\0PH"   8 bytes
//!  8          layout version = 1  u32
//! 12          zero                u32
//! 16          hash of page 1      u64
//! 8 * (n+1)   hash of page n      u64
//! ```
//! All integers are little-endian. Entries beyond the image's last page mean nothing.
use core::cell::{Cell, OnceCell};
use core::fmt;

use super::digest::{Digest, PageState, page_hash};
use super::superblock::{IMAGE_PAGES_MAX, Superblock};
use super::{Memory, MemoryError, WASM_PAGE_BYTES};

/// The layout that this version writes and reads.
pub const LAYOUT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"ICSQL\0PH";
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = size_of::<u64>();

/// Entries that are read or written in one call. The buffers are on the stack; so short, they are cleared by single
/// stores in place of a `memory.fill`, which costs more than the calls that longer ones would save.
const RUN_MAX: usize = 8;

/// What can go wrong with the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageHashesError {
    /// The memory failed.
    Memory(MemoryError),
    /// The memory is not empty and holds something else. It was left as it is.
    Foreign {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The table is in a layout that this version does not know. It was left as it is.
    UnknownLayout {
        /// The layout version found, and the word behind it, which should be 0.
        found: (u32, u32),
    },
    /// Page 0 was asked for; pages are counted from 1.
    PageZero,
    /// More pages than SQLite can number.
    TooManyPages {
        /// Pages asked for.
        found: u32,
    },
}

impl From<MemoryError> for PageHashesError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for PageHashesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(error) => error.fmt(f),
            Self::Foreign { found } => write!(
                f,
                "the virtual memory of page hashes holds something else (it begins with {found:02x?}); it was left as it \
                 is; use another memory id, or clear it if its data is not needed"
            ),
            Self::UnknownLayout { found } => write!(
                f,
                "the page hashes have layout {found:?} and this version knows layout {LAYOUT_VERSION}; they were left as \
                 they are; install a version that knows the layout"
            ),
            Self::PageZero => f.write_str("there is no page 0; pages are counted from 1"),
            Self::TooManyPages { found } => {
                write!(f, "an image of {found} pages was asked for and at most {IMAGE_PAGES_MAX} can be numbered")
            }
        }
    }
}

impl core::error::Error for PageHashesError {}

/// The stored hash of each page.
pub struct PageHashes<M> {
    memory: M,
    reads: Cell<u64>,
    writes: Cell<u64>,
}

impl<M: Memory> PageHashes<M> {
    /// Opens the table in `memory`, or makes it if the memory's size is 0.
    ///
    /// # Errors
    /// [`PageHashesError`]. If the write fails while an empty memory is given its header, the message must trap.
    pub fn open(memory: M) -> Result<Self, PageHashesError> {
        if memory.size() == 0 {
            memory.grow(1)?;
            let mut header = [0; HEADER_BYTES];
            header[..8].copy_from_slice(&MAGIC);
            header[8..12].copy_from_slice(&LAYOUT_VERSION.to_le_bytes());
            memory.write(0, &header)?;
            return Ok(Self::new(memory));
        }
        let mut words = [[0; 4]; HEADER_BYTES / 4];
        memory.read(0, words.as_flattened_mut())?;
        let [magic_low, magic_high, version, reserved] = words;
        let mut magic = [0; 8];
        magic[..4].copy_from_slice(&magic_low);
        magic[4..].copy_from_slice(&magic_high);
        if magic != MAGIC {
            return Err(PageHashesError::Foreign { found: magic });
        }
        let found = (u32::from_le_bytes(version), u32::from_le_bytes(reserved));
        if found != (LAYOUT_VERSION, 0) {
            return Err(PageHashesError::UnknownLayout { found });
        }
        Ok(Self::new(memory))
    }

    fn new(memory: M) -> Self {
        Self { memory, reads: Cell::new(0), writes: Cell::new(0) }
    }

    /// Reads and writes of the memory since the table was opened.
    pub fn operations(&self) -> (u64, u64) {
        (self.reads.get(), self.writes.get())
    }

    fn read_bytes(&self, offset: u64, target: &mut [u8]) -> Result<(), MemoryError> {
        self.reads.set(self.reads.get().wrapping_add(1));
        self.memory.read(offset, target)
    }

    fn write_bytes(&self, offset: u64, source: &[u8]) -> Result<(), MemoryError> {
        self.writes.set(self.writes.get().wrapping_add(1));
        self.memory.write(offset, source)
    }

    /// Makes room for the hashes of pages 1 to `pages`. It only grows the memory, so that it can come before the first
    /// write of a commit.
    ///
    /// # Errors
    /// The memory's refusal to grow; nothing has changed then.
    pub fn ensure_capacity(&self, pages: u32) -> Result<(), PageHashesError> {
        let needed = entry_end(pages).div_ceil(WASM_PAGE_BYTES);
        let size = self.memory.size();
        if needed > size {
            self.memory.grow(needed - size)?;
        }
        Ok(())
    }

    /// The stored hash of a page.
    ///
    /// # Errors
    /// [`PageHashesError::PageZero`], or the memory's for a page beyond the capacity.
    #[inline]
    pub fn read(&self, page_number: u32) -> Result<u64, PageHashesError> {
        let mut entry = [0; ENTRY_BYTES];
        self.read_bytes(entry_offset(page_number)?, &mut entry)?;
        Ok(u64::from_le_bytes(entry))
    }

    /// Stores the hash of a page.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&self, page_number: u32, hash: u64) -> Result<(), PageHashesError> {
        Ok(self.write_bytes(entry_offset(page_number)?, &hash.to_le_bytes())?)
    }

    /// The stored hashes of the pages from `first` on, as many as `hashes` takes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_run(&self, first: u32, hashes: &mut [u64]) -> Result<(), PageHashesError> {
        let mut offset = entry_offset(first)?;
        let mut bytes = [[0; ENTRY_BYTES]; RUN_MAX];
        for run in hashes.chunks_mut(RUN_MAX) {
            let entries = &mut bytes[..run.len()];
            self.read_bytes(offset, entries.as_flattened_mut())?;
            for (hash, entry) in run.iter_mut().zip(entries) {
                *hash = u64::from_le_bytes(*entry);
            }
            offset += (run.len() * ENTRY_BYTES) as u64;
        }
        Ok(())
    }

    /// Stores the hashes of the pages from `first` on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write_run(&self, first: u32, hashes: &[u64]) -> Result<(), PageHashesError> {
        let mut offset = entry_offset(first)?;
        let mut bytes = [[0; ENTRY_BYTES]; RUN_MAX];
        for run in hashes.chunks(RUN_MAX) {
            let entries = &mut bytes[..run.len()];
            for (entry, hash) in entries.iter_mut().zip(run) {
                *entry = hash.to_le_bytes();
            }
            self.write_bytes(offset, entries.as_flattened())?;
            offset += (run.len() * ENTRY_BYTES) as u64;
        }
        Ok(())
    }
}

/// End of the entry of page `page_number`; of the header for 0.
fn entry_end(page_number: u32) -> u64 {
    HEADER_BYTES as u64 + u64::from(page_number) * ENTRY_BYTES as u64
}

#[inline]
fn entry_offset(page_number: u32) -> Result<u64, PageHashesError> {
    match page_number {
        0 => Err(PageHashesError::PageZero),
        _ => Ok(entry_end(page_number - 1)),
    }
}

/// What a commit did to a page: its part of the digest before and after, `None` where the image has no such page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChange {
    /// Number of the page, from 1.
    pub page_number: u32,
    /// Its hash before.
    pub old: Option<u64>,
    /// Its hash after.
    pub new: Option<u64>,
}

/// The size of an image before and after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages before.
    pub old_pages: u32,
    /// Pages after.
    pub new_pages: u32,
}

/// Hashes of the pages that a commit writes, collected while it writes them and applied before the superblock.
#[derive(Debug, Default)]
pub struct CommitHashes {
    written: Vec<(u32, u64)>,
}

impl CommitHashes {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for `pages` pages, so that taking them in cannot fail. False if the heap is full.
    pub fn reserve(&mut self, pages: usize) -> bool {
        self.written.try_reserve(pages).is_ok()
    }

    /// Takes in a page that the commit writes. Of several versions of a page the last counts.
    pub fn page_written(&mut self, page_number: u32, page: &[u8]) {
        self.written.push((page_number, page_hash(page_number, page)));
    }

    /// Forgets the pages, as after a rollback. What memory they took is kept for the next commit, with the bytes that it
    /// had before: a heap page whose bytes did not change costs a message nothing.
    pub fn clear(&mut self) {
        self.written.fill((0, 0));
        self.written.clear();
    }

    /// Brings the pages into order, and keeps the last version of each.
    fn sort(&mut self) {
        let written = &mut self.written;
        if !written.is_sorted_by(|a, b| a.0 < b.0) {
            // Stable, so that the last version of a page stays last.
            written.sort_by_key(|&(page_number, _)| page_number);
            written.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 = later.1;
                }
                same
            });
        }
    }

    /// Stores the hashes of the collected pages and forgets them. Answers the digest of the new image.
    ///
    /// Pages that the image loses leave the digest; pages that it gains and that were not written are zeros. Pages
    /// beyond the new size are left out even if they were written. `changed` learns of every page whose part in the
    /// digest changed, in the order of the pages written, then of those lost.
    ///
    /// The table must have the capacity for the new size.
    ///
    /// # Errors
    /// [`PageHashesError`]. Some hashes may have been stored then, so the message must trap.
    pub fn apply<M: Memory>(
        &mut self,
        table: &PageHashes<M>,
        resize: Resize,
        digest: Digest,
        mut changed: impl FnMut(PageChange),
    ) -> Result<Digest, PageHashesError> {
        let Resize { page_bytes, old_pages, new_pages } = resize;
        // From here on the number after a page's fits as well.
        let found = old_pages.max(new_pages);
        if found > IMAGE_PAGES_MAX {
            return Err(PageHashesError::TooManyPages { found });
        }
        let mut digest = digest;
        let mut change = |digest: Digest, page_number, old: Option<u64>, new: Option<u64>| {
            changed(PageChange { page_number, old, new });
            digest.without(old.unwrap_or(0)).with(new.unwrap_or(0))
        };
        // The commit of a single row, without what the general way needs.
        if let [(page_number, hash)] = self.written[..]
            && old_pages == new_pages
            && page_number <= new_pages
        {
            let old = table.read(page_number)?;
            table.write(page_number, hash)?;
            self.clear();
            return Ok(change(digest, page_number, Some(old), Some(hash)));
        }

        self.sort();
        let within = self.written.partition_point(|&(page_number, _)| page_number <= new_pages);
        let written = &self.written[..within];
        let (mut old, mut new) = ([0; RUN_MAX], [0; RUN_MAX]);
        let kept = written.partition_point(|&(page_number, _)| page_number <= old_pages);
        let mut rest = &written[..kept];
        while let Some(&(first, _)) = rest.first() {
            let len = rest.iter().take(RUN_MAX).zip(first..).take_while(|((number, _), next)| number == next).count();
            let (run, after) = rest.split_at(len);
            rest = after;
            if let &[(page_number, hash)] = run {
                let old = table.read(page_number)?;
                table.write(page_number, hash)?;
                digest = change(digest, page_number, Some(old), Some(hash));
                continue;
            }
            table.read_run(first, &mut old[..len])?;
            for (&(page_number, hash), (old, new)) in run.iter().zip(old.iter().zip(&mut new)) {
                *new = hash;
                digest = change(digest, page_number, Some(*old), Some(hash));
            }
            table.write_run(first, &new[..len])?;
        }

        if new_pages > old_pages {
            let zeros = OnceCell::new();
            let zeros = || zeros.get_or_init(|| PageState::new(&vec![0; page_bytes as usize]));
            let mut gained = written[kept..].iter().copied().peekable();
            let mut first = old_pages + 1;
            while first <= new_pages {
                let len = RUN_MAX.min((new_pages - first) as usize + 1);
                for (new, page_number) in new[..len].iter_mut().zip(first..) {
                    let hash = gained.next_if(|&(number, _)| number == page_number).map(|(_, hash)| hash);
                    *new = hash.unwrap_or_else(|| zeros().hash(page_number));
                    digest = change(digest, page_number, None, Some(*new));
                }
                table.write_run(first, &new[..len])?;
                first += len as u32;
            }
        }

        let mut first = new_pages + 1;
        while first <= old_pages {
            let len = RUN_MAX.min((old_pages - first) as usize + 1);
            table.read_run(first, &mut old[..len])?;
            for (&old, page_number) in old[..len].iter().zip(first..) {
                digest = change(digest, page_number, Some(old), None);
            }
            first += len as u32;
        }
        self.clear();
        Ok(digest)
    }
}

/// Computes the hashes of an image that has none, in chunks. No commit may come in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rebuild {
    done_pages: u32,
    digest: Digest,
}

impl Rebuild {
    /// At the first page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pages that are hashed.
    pub const fn pages_done(&self) -> u32 {
        self.done_pages
    }

    /// Hashes the next pages, `bytes_max` bytes of them but at least one page, and stores their hashes. `image` is the
    /// database's memory; of `superblock` only base, page size and image size count. Answers the image's digest when
    /// all pages are done.
    ///
    /// # Errors
    /// [`PageHashesError`]; the same chunk can be tried again.
    pub fn chunk<M: Memory>(
        &mut self,
        image: &impl Memory,
        superblock: &Superblock,
        table: &PageHashes<M>,
        bytes_max: u64,
    ) -> Result<Option<Digest>, PageHashesError> {
        let left = superblock.image_pages().saturating_sub(self.done_pages);
        let pages = chunk_pages(bytes_max, superblock.page_bytes()).min(left);
        table.ensure_capacity(self.done_pages + pages)?;
        let mut page = vec![0; superblock.page_bytes() as usize];
        let mut hashes = [0; RUN_MAX];
        let end = self.done_pages + pages;
        while self.done_pages < end {
            let len = RUN_MAX.min((end - self.done_pages) as usize);
            let first = self.done_pages + 1;
            let mut digest = self.digest;
            for (hash, page_number) in hashes[..len].iter_mut().zip(first..) {
                image.read(superblock.page_offset(page_number), &mut page)?;
                *hash = page_hash(page_number, &page);
                digest = digest.with(*hash);
            }
            table.write_run(first, &hashes[..len])?;
            (self.done_pages, self.digest) = (self.done_pages + len as u32, digest);
        }
        Ok((self.done_pages >= superblock.image_pages()).then_some(self.digest))
    }
}

/// Pages that `bytes_max` bytes hold, and at least one.
pub(super) fn chunk_pages(bytes_max: u64, page_bytes: u32) -> u32 {
    u32::try_from(bytes_max / u64::from(page_bytes)).unwrap_or(u32::MAX).max(1)
}
