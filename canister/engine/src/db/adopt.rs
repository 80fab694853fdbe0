//! Takes over, in place, an image that ic-sqlite-vfs 2.x wrote.
//!
//! Invariants:
//! - Until the last step the memory means to ic-sqlite-vfs what it meant before, so that the Wasm that wrote it can be
//!   installed again at any time. The one thing written is zeros to pages that it reads as zeros anyway.
//! - The last step is one write. It replaces the superblock, after everything that could be refused was.
//! - What an adoption that was given up has left in the memory of page hashes, the next one overwrites.
use super::database::{Database, OpenOptions};
use super::error::Error;
use crate::limits::ADOPT_AT_ONCE_BYTES_MAX;
use crate::stable::digest::Digest;
use crate::stable::ic_sqlite_vfs::{self, Fnv1a, PAGE_BYTES, SUPERBLOCK_BYTES_MAX, VfsSuperblock, VfsSuperblockError};
use crate::stable::page_hashes::{PageHashes, PageHashesError, Rebuild};
use crate::stable::superblock::{IMAGE_BASE_DEFAULT, SUPERBLOCK_BYTES, Superblock, SuperblockError};
use crate::stable::{Memory, MemoryError};
use core::fmt;
use std::rc::Rc;

/// Why an image was not adopted. To ic-sqlite-vfs it is what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdoptionError {
    /// The superblock of ic-sqlite-vfs was refused.
    Source(VfsSuperblockError),
    /// The database's memory failed.
    Memory(MemoryError),
    /// The memory of page hashes failed or holds something else.
    PageHashes(PageHashesError),
    /// The superblock that was to be written is not possible.
    Superblock(SuperblockError),
    /// The engine cannot open the image.
    Image(Box<Error>),
    /// The image is too large to be adopted in one message.
    TooLargeAtOnce {
        /// Bytes of the image.
        image_bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The image is not the one whose checksum ic-sqlite-vfs stored last.
    BadImageChecksum {
        /// Checksum of the bytes found.
        computed: u64,
        /// Checksum stored.
        stored: u64,
    },
    /// The adoption was to be finished before all pages were hashed.
    Incomplete {
        /// Pages hashed.
        pages_done: u32,
        /// Pages of the image.
        pages_total: u32,
    },
    /// The memory was written to since the adoption began, or the adoption is finished already.
    Changed,
}

impl From<VfsSuperblockError> for AdoptionError {
    fn from(error: VfsSuperblockError) -> Self {
        Self::Source(error)
    }
}

impl From<MemoryError> for AdoptionError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl From<PageHashesError> for AdoptionError {
    fn from(error: PageHashesError) -> Self {
        Self::PageHashes(error)
    }
}

impl From<SuperblockError> for AdoptionError {
    fn from(error: SuperblockError) -> Self {
        Self::Superblock(error)
    }
}

impl fmt::Display for AdoptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::PageHashes(error) => error.fmt(f),
            Self::Superblock(error) => error.fmt(f),
            Self::Image(error) => write!(
                f,
                "the image of ic-sqlite-vfs cannot be opened and was left as it is: {error}; install the version that wrote \
                 it, and change there what is named"
            ),
            Self::TooLargeAtOnce { image_bytes, limit } => write!(
                f,
                "the image has {image_bytes} bytes and one message adopts at most {limit}; adopt it in chunks, with \
                 Adoption::begin, chunk and finish"
            ),
            Self::BadImageChecksum { computed, stored } => write!(
                f,
                "the image of ic-sqlite-vfs has the checksum {computed:#018x} and {stored:#018x} is stored: it is damaged; \
                 install the version that wrote it, check the data, and let it refresh the checksum"
            ),
            Self::Incomplete { pages_done, pages_total } => {
                write!(f, "{pages_done} of {pages_total} pages are hashed; go on with Adoption::chunk")
            }
            Self::Changed => f.write_str(
                "the memory is no longer what it was when the adoption began; begin again, if it is not finished",
            ),
        }
    }
}

impl core::error::Error for AdoptionError {}

/// How far an adoption is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdoptionProgress {
    /// Pages that are hashed.
    pub pages_done: u32,
    /// Pages of the image, of 16,384 bytes each.
    pub pages_total: u32,
    /// Whether all are, so that the adoption can be finished.
    pub complete: bool,
}

/// The adoption of an image of ic-sqlite-vfs 2.x, in as many messages as it takes. It lives on the heap: after an
/// upgrade in between it begins anew.
pub struct Adoption {
    memory: Rc<dyn Memory>,
    hashes: PageHashes<Rc<dyn Memory>>,
    /// The bytes of their superblock. They change with every write of ic-sqlite-vfs.
    source_bytes: Vec<u8>,
    source: VfsSuperblock,
    /// What will be published, without its digest.
    target: Superblock,
    rebuild: Rebuild,
    /// Of the pages that are hashed, if there is one to compare with.
    checksum: Fnv1a,
    digest: Option<Digest>,
}

impl Adoption {
    /// Looks at the memory of a database, and begins to adopt what ic-sqlite-vfs has there. `None`: it holds nothing of
    /// ic-sqlite-vfs, and [`Database::open`] has the word. `hashes` is the memory for the page hashes, which the database
    /// will be opened with: empty, or left over from an adoption that was given up.
    ///
    /// The image is opened once on trial, so that what this engine cannot open is refused before anything else is done.
    ///
    /// # Errors
    /// [`AdoptionError`].
    pub fn begin(memory: impl Memory + 'static, hashes: impl Memory + 'static) -> Result<Option<Self>, AdoptionError> {
        Self::within(memory, hashes, u64::MAX)
    }

    /// Adopts in this message what ic-sqlite-vfs has in `memory`, and answers whether there was anything. To be called in
    /// `post_upgrade`, in front of [`Database::open`] with the same two memories.
    ///
    /// # Errors
    /// [`AdoptionError`]; with [`AdoptionError::TooLargeAtOnce`] for an image of more than
    /// [`ADOPT_AT_ONCE_BYTES_MAX`](crate::limits::ADOPT_AT_ONCE_BYTES_MAX).
    pub fn at_once(memory: impl Memory + 'static, hashes: impl Memory + 'static) -> Result<bool, AdoptionError> {
        let Some(mut adoption) = Self::within(memory, hashes, ADOPT_AT_ONCE_BYTES_MAX)? else { return Ok(false) };
        adoption.chunk(u64::MAX)?;
        adoption.finish()?;
        Ok(true)
    }

    fn within(
        memory: impl Memory + 'static,
        hashes: impl Memory + 'static,
        image_bytes_max: u64,
    ) -> Result<Option<Self>, AdoptionError> {
        let memory: Rc<dyn Memory> = Rc::new(memory);
        let mut magic = [0; ic_sqlite_vfs::MAGIC.len()];
        if memory.size() == 0 {
            return Ok(None);
        }
        memory.read(0, &mut magic)?;
        if magic != ic_sqlite_vfs::MAGIC {
            return Ok(None);
        }
        let source = VfsSuperblock::load(&memory)?;
        let target = target(&memory, &source, Digest::default())?;
        if target.image_bytes() > image_bytes_max {
            let (image_bytes, limit) = (target.image_bytes(), image_bytes_max);
            return Err(AdoptionError::TooLargeAtOnce { image_bytes, limit });
        }
        let source_bytes = source_bytes(&memory)?;
        let table: Rc<dyn Memory> = Rc::new(hashes);
        let hashes = PageHashes::open(Rc::clone(&table))?;
        hashes.ensure_capacity(source.image_pages)?;
        try_to_open(&memory, table, &target)?;
        Ok(Some(Self {
            memory,
            hashes,
            source_bytes,
            source,
            target,
            rebuild: Rebuild::new(),
            checksum: Fnv1a::new(),
            digest: None,
        }))
    }

    /// Hashes the next pages, `bytes_max` bytes of them but at least one page. About two instructions a byte; eight where
    /// ic-sqlite-vfs left a checksum to compare with. It does nothing once the adoption is complete.
    ///
    /// # Errors
    /// [`AdoptionError`]; the same chunk can be tried again.
    pub fn chunk(&mut self, bytes_max: u64) -> Result<AdoptionProgress, AdoptionError> {
        if self.digest.is_none() {
            let done = self.rebuild.pages_done();
            let pages = u32::try_from(bytes_max / u64::from(PAGE_BYTES)).unwrap_or(u32::MAX).max(1);
            let last = done.saturating_add(pages).min(self.target.image_pages());
            let zeros = [0; PAGE_BYTES as usize];
            for page in self.source.zero_pages(done + 1, last) {
                self.memory.write(self.target.page_offset(page), &zeros)?;
            }
            let checksum = self.checksum_of(done + 1, last)?;
            let mut rebuild = self.rebuild;
            let bytes = u64::from(last - done) * u64::from(PAGE_BYTES);
            let digest = rebuild.chunk(&self.memory, &self.target, &self.hashes, bytes)?;
            if let (Some(_), Some(stored)) = (digest, self.source.image_checksum)
                && checksum.value() != stored
            {
                return Err(AdoptionError::BadImageChecksum { computed: checksum.value(), stored });
            }
            (self.rebuild, self.checksum, self.digest) = (rebuild, checksum, digest);
        }
        Ok(self.progress())
    }

    /// The checksum with the pages `first ..= last` appended, if there is one to compare with.
    fn checksum_of(&self, first: u32, last: u32) -> Result<Fnv1a, MemoryError> {
        let mut checksum = self.checksum;
        if self.source.image_checksum.is_some() {
            let mut page = [0; PAGE_BYTES as usize];
            for number in first..=last {
                self.memory.read(self.target.page_offset(number), &mut page)?;
                checksum = checksum.with(&page);
            }
        }
        Ok(checksum)
    }

    /// How far the adoption is.
    pub fn progress(&self) -> AdoptionProgress {
        AdoptionProgress {
            pages_done: self.rebuild.pages_done(),
            pages_total: self.target.image_pages(),
            complete: self.digest.is_some(),
        }
    }

    /// Replaces the superblock of ic-sqlite-vfs. From here on [`Database::open`] opens the image, and ic-sqlite-vfs refuses
    /// it.
    ///
    /// # Errors
    /// [`AdoptionError::Incomplete`], [`AdoptionError::Changed`]. If the write fails, the message must trap.
    pub fn finish(&mut self) -> Result<(), AdoptionError> {
        let AdoptionProgress { pages_done, pages_total, .. } = self.progress();
        let digest = self.digest.ok_or(AdoptionError::Incomplete { pages_done, pages_total })?;
        if source_bytes(&self.memory)? != self.source_bytes {
            return Err(AdoptionError::Changed);
        }
        let superblock = target(&self.memory, &self.source, digest)?;
        Ok(self.memory.write(0, &head(&superblock))?)
    }
}

fn source_bytes(memory: &impl Memory) -> Result<Vec<u8>, MemoryError> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
    memory.read(0, &mut bytes)?;
    Ok(bytes)
}

/// The superblock of the adopted image.
fn target(memory: &impl Memory, source: &VfsSuperblock, digest: Digest) -> Result<Superblock, SuperblockError> {
    let memory_bytes = memory.size().saturating_mul(crate::stable::WASM_PAGE_BYTES);
    Superblock::adopt(PAGE_BYTES, source.base, source.image_pages, source.transaction_id, digest, memory_bytes)
}

/// The memory of an adopted image up to where images begin: the superblock, and zeros over what is left of theirs.
fn head(superblock: &Superblock) -> Vec<u8> {
    let mut head = vec![0; IMAGE_BASE_DEFAULT as usize];
    head[..SUPERBLOCK_BYTES].copy_from_slice(&superblock.encode());
    head
}

/// Opens the image as it will be opened later: its header, size and encoding, and all of the schema.
fn try_to_open(memory: &Rc<dyn Memory>, hashes: Rc<dyn Memory>, target: &Superblock) -> Result<(), AdoptionError> {
    if target.image_pages() == 0 {
        return Ok(());
    }
    let preview = Preview { head: head(target), memory: Rc::clone(memory) };
    // The smallest cache: opening reads what fits.
    let options = OpenOptions { cache_bytes: 0, ..OpenOptions::default() };
    Database::open(preview, hashes, options).map(drop).map_err(|error| AdoptionError::Image(Box::new(error)))
}

/// The memory as it will be once it is adopted. It can only be read.
struct Preview {
    head: Vec<u8>,
    memory: Rc<dyn Memory>,
}

impl Memory for Preview {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn grow(&self, _pages: u64) -> Result<u64, MemoryError> {
        Err(MemoryError::ReadOnly)
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(offset, dst)?;
        let covered = usize::try_from(offset).ok().and_then(|offset| self.head.get(offset..)).unwrap_or(&[]);
        for (byte, covered) in dst.iter_mut().zip(covered) {
            *byte = *covered;
        }
        Ok(())
    }

    fn write(&self, _offset: u64, _src: &[u8]) -> Result<(), MemoryError> {
        Err(MemoryError::ReadOnly)
    }
}
