//! The superblock: what the database's virtual memory begins with, and the last thing that a commit writes.
//!
//! ```text
//!  0  magic "ICSQL\0DB"          8 bytes
//!  8  layout version = 1         u32
//! 12  page size                  u32, bytes
//! 16  base                       u64, byte offset of the image in this memory
//! 24  image size                 u64, pages
//! 32  transaction id             u64
//! 40  digest                     u64
//! 48  flags = 0                  u64
//! 56  checksum of bytes 0 to 55  u64
//! 64
//! ```
//! All integers are little-endian. It is followed by the mark of the commit that is under way
//! ([`commit_mark`](super::commit_mark)); the rest up to the base is not used.
use core::fmt;

use super::digest::{Digest, mix};
use super::{Memory, MemoryError, WASM_PAGE_BYTES};

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 64;

/// The layout that this version writes, and the newest that it reads.
pub const LAYOUT_VERSION: u32 = 1;

/// Smallest page size that SQLite knows, in bytes.
pub const PAGE_BYTES_MIN: u32 = 512;

/// Largest page size that SQLite knows, in bytes.
pub const PAGE_BYTES_MAX: u32 = 65_536;

/// Most pages that SQLite can number.
pub const IMAGE_PAGES_MAX: u32 = 4_294_967_294;

/// Where new images begin in the database's memory. ic-sqlite-vfs 2.x has them there too.
pub const IMAGE_BASE_DEFAULT: u64 = WASM_PAGE_BYTES;

const MAGIC: [u8; 8] = *b"ICSQL\0DB";

const VERSION_OFFSET: usize = MAGIC.len();
const PAGE_BYTES_OFFSET: usize = VERSION_OFFSET + size_of::<u32>();
const BASE_OFFSET: usize = PAGE_BYTES_OFFSET + size_of::<u32>();
const IMAGE_PAGES_OFFSET: usize = BASE_OFFSET + size_of::<u64>();
const TRANSACTION_ID_OFFSET: usize = IMAGE_PAGES_OFFSET + size_of::<u64>();
const DIGEST_OFFSET: usize = TRANSACTION_ID_OFFSET + size_of::<u64>();
const FLAGS_OFFSET: usize = DIGEST_OFFSET + size_of::<u64>();
const CHECKSUM_OFFSET: usize = FLAGS_OFFSET + size_of::<u64>();

const _: () = assert!(CHECKSUM_OFFSET + size_of::<u64>() == SUPERBLOCK_BYTES);
const _: () = assert!(SUPERBLOCK_BYTES as u64 <= IMAGE_BASE_DEFAULT);

/// Before the first word. Any constant but 0 would do.
const CHECKSUM_SEED: u64 = 0x6a09_e667_f3bc_c908;

/// A superblock whose every field has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    page_bytes: u32,
    base: u64,
    image_pages: u32,
    transaction_id: u64,
    digest: Digest,
}

/// A superblock whose bytes are whole, and whose fields may still contradict one another or the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnvalidatedSuperblock {
    page_bytes: u32,
    base: u64,
    image_pages: u64,
    transaction_id: u64,
    digest: u64,
    flags: u64,
}

/// Why the database's memory was refused. Nothing in it was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuperblockError {
    /// The memory failed.
    Memory(MemoryError),
    /// Fewer bytes than a superblock has.
    TooShort {
        /// Bytes found.
        found: usize,
    },
    /// The memory holds something else.
    ForeignMagic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The layout is newer than this version knows, or none that there has been.
    UnknownLayout {
        /// The layout version found.
        found: u32,
    },
    /// The bytes are not those that were written.
    BadChecksum {
        /// Checksum of the bytes found.
        computed: u64,
        /// Checksum found with them.
        stored: u64,
    },
    /// A flag is set that this version does not know.
    UnknownFlags {
        /// All flags found.
        found: u64,
    },
    /// The page size is not a power of two from 512 to 65,536.
    BadPageSize {
        /// Bytes found.
        found: u32,
    },
    /// The base is not a positive multiple of 64 KiB.
    BadBase {
        /// Byte offset found.
        found: u64,
    },
    /// More pages than SQLite can number.
    TooManyPages {
        /// Pages found.
        found: u64,
    },
    /// The image ends beyond the memory.
    ImageBeyondMemory {
        /// Bytes that the memory needs, if that is a number of 64 bits.
        needed: Option<u64>,
        /// Bytes that the memory has.
        found: u64,
    },
    /// A commit began to write and did not come to its end. The pages that differ from their stored hashes are those
    /// that it had written.
    TornCommit {
        /// Id of the transaction that the superblock tells of.
        published: u64,
        /// Id of the transaction whose commit was cut off.
        in_flight: u64,
    },
    /// The mark of the commit under way is damaged.
    BadCommitMark {
        /// Its bytes.
        found: [u8; super::commit_mark::COMMIT_MARK_BYTES],
    },
    /// The next transaction would have no id.
    TransactionIdsExhausted,
}

impl From<MemoryError> for SuperblockError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(error) => error.fmt(f),
            Self::TooShort { found } => {
                write!(f, "the superblock is cut off: {found} bytes of {SUPERBLOCK_BYTES}")
            }
            Self::ForeignMagic { found: super::ic_sqlite_vfs::MAGIC } => f.write_str(
                "the database's virtual memory holds a database of ic-sqlite-vfs; it was left as it is; adopt it with \
                 Adoption::at_once, or install the Wasm that wrote it",
            ),
            Self::ForeignMagic { found } => write!(
                f,
                "the database's virtual memory holds something else (it begins with {found:02x?}); it was left as it is; \
                 use another memory id, or clear it if its data is not needed"
            ),
            Self::UnknownLayout { found } => write!(
                f,
                "the database has layout {found} and this version knows layout {LAYOUT_VERSION}; it was left as it is; \
                 install a version that knows the layout"
            ),
            Self::BadChecksum { computed, stored } => write!(
                f,
                "the superblock is damaged: its checksum is {computed:#018x} and {stored:#018x} is stored; restore a backup"
            ),
            Self::UnknownFlags { found } => write!(
                f,
                "the database uses features that this version does not know (flags {found:#x}); it was left as it is; \
                 install a newer version"
            ),
            Self::BadPageSize { found } => {
                write!(f, "the superblock's page size is {found}, no power of two from 512 to 65,536")
            }
            Self::BadBase { found } => {
                write!(f, "the superblock's base is {found}, no positive multiple of {WASM_PAGE_BYTES}")
            }
            Self::TooManyPages { found } => {
                write!(f, "the image has {found} pages and at most {IMAGE_PAGES_MAX} can be numbered")
            }
            Self::ImageBeyondMemory { needed: Some(needed), found } => {
                write!(f, "the image is cut off: it needs {needed} bytes and the memory has {found}")
            }
            Self::ImageBeyondMemory { needed: None, found } => {
                write!(f, "the image is cut off: it needs more than 2^64 bytes and the memory has {found}")
            }
            Self::TornCommit { published, in_flight } => write!(
                f,
                "the commit of transaction {in_flight} was cut off while it wrote: the image is neither that of transaction \
                 {published} nor the next; restore a backup or a snapshot"
            ),
            Self::BadCommitMark { found } => write!(
                f,
                "the mark of the last commit is damaged ({found:02x?}), so it cannot be said whether the commit ended; \
                 restore a backup or a snapshot"
            ),
            Self::TransactionIdsExhausted => {
                f.write_str("no transaction id is left; export the database and import it into a new one")
            }
        }
    }
}

impl core::error::Error for SuperblockError {}

impl Superblock {
    /// The superblock of a new database without pages.
    ///
    /// # Errors
    /// [`SuperblockError::BadPageSize`].
    pub fn new(page_bytes: u32) -> Result<Self, SuperblockError> {
        let fields = UnvalidatedSuperblock {
            page_bytes,
            base: IMAGE_BASE_DEFAULT,
            image_pages: 0,
            transaction_id: 0,
            digest: 0,
            flags: 0,
        };
        fields.validate(IMAGE_BASE_DEFAULT)
    }

    /// The superblock of an image that is already there.
    ///
    /// # Errors
    /// What [`UnvalidatedSuperblock::validate`] refuses.
    pub fn adopt(
        page_bytes: u32,
        base: u64,
        image_pages: u32,
        transaction_id: u64,
        digest: Digest,
        memory_bytes: u64,
    ) -> Result<Self, SuperblockError> {
        let (image_pages, digest) = (image_pages.into(), digest.value());
        UnvalidatedSuperblock { page_bytes, base, image_pages, transaction_id, digest, flags: 0 }.validate(memory_bytes)
    }

    /// Reads the superblock of `memory`: `None` if its size is 0, and so the database is yet to be made.
    ///
    /// # Errors
    /// [`SuperblockError`]: a memory that is not empty must hold a sound superblock in a known layout.
    pub fn load(memory: &impl Memory) -> Result<Option<Self>, SuperblockError> {
        let size = memory.size();
        if size == 0 {
            return Ok(None);
        }
        let mut bytes = [0; SUPERBLOCK_BYTES];
        memory.read(0, &mut bytes)?;
        let superblock = Self::decode(&bytes)?.validate(size.saturating_mul(WASM_PAGE_BYTES))?;
        super::commit_mark::check(memory, superblock.transaction_id)?;
        Ok(Some(superblock))
    }

    /// Makes an empty memory a database without pages.
    ///
    /// # Errors
    /// [`SuperblockError::BadPageSize`], or the memory's refusal to grow; nothing has changed then. If the write
    /// fails, the memory has grown and holds no superblock: the message must trap.
    pub fn create(memory: &impl Memory, page_bytes: u32) -> Result<Self, SuperblockError> {
        let superblock = Self::new(page_bytes)?;
        memory.grow(IMAGE_BASE_DEFAULT / WASM_PAGE_BYTES)?;
        superblock.store(memory)?;
        Ok(superblock)
    }

    /// Writes the superblock, in one piece.
    ///
    /// # Errors
    /// The memory's.
    pub fn store(&self, memory: &impl Memory) -> Result<(), MemoryError> {
        memory.write(0, &self.encode())
    }

    /// The stored form.
    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let mut put = |offset: usize, field: &[u8]| bytes[offset..offset + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(VERSION_OFFSET, &LAYOUT_VERSION.to_le_bytes());
        put(PAGE_BYTES_OFFSET, &self.page_bytes.to_le_bytes());
        put(BASE_OFFSET, &self.base.to_le_bytes());
        put(IMAGE_PAGES_OFFSET, &u64::from(self.image_pages).to_le_bytes());
        put(TRANSACTION_ID_OFFSET, &self.transaction_id.to_le_bytes());
        put(DIGEST_OFFSET, &self.digest.value().to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the stored form from the first bytes of `bytes`.
    ///
    /// # Errors
    /// [`SuperblockError`], for bytes that are not a superblock that was written whole in a known layout.
    pub fn decode(bytes: &[u8]) -> Result<UnvalidatedSuperblock, SuperblockError> {
        let bytes: &[u8; SUPERBLOCK_BYTES] =
            bytes.first_chunk().ok_or(SuperblockError::TooShort { found: bytes.len() })?;
        let found = array(bytes, 0);
        if found != MAGIC {
            return Err(SuperblockError::ForeignMagic { found });
        }
        let found = u32::from_le_bytes(array(bytes, VERSION_OFFSET));
        if found != LAYOUT_VERSION {
            return Err(SuperblockError::UnknownLayout { found });
        }
        let (computed, stored) = (checksum(bytes), u64_at(bytes, CHECKSUM_OFFSET));
        if computed != stored {
            return Err(SuperblockError::BadChecksum { computed, stored });
        }
        Ok(UnvalidatedSuperblock {
            page_bytes: u32::from_le_bytes(array(bytes, PAGE_BYTES_OFFSET)),
            base: u64_at(bytes, BASE_OFFSET),
            image_pages: u64_at(bytes, IMAGE_PAGES_OFFSET),
            transaction_id: u64_at(bytes, TRANSACTION_ID_OFFSET),
            digest: u64_at(bytes, DIGEST_OFFSET),
            flags: u64_at(bytes, FLAGS_OFFSET),
        })
    }

    /// The superblock after one transaction more, which leaves an image of this size and digest.
    ///
    /// # Errors
    /// [`SuperblockError::TooManyPages`], [`SuperblockError::TransactionIdsExhausted`].
    pub fn after_commit(&self, image_pages: u32, digest: Digest) -> Result<Self, SuperblockError> {
        if image_pages > IMAGE_PAGES_MAX {
            return Err(SuperblockError::TooManyPages { found: image_pages.into() });
        }
        let transaction_id = self.transaction_id.checked_add(1).ok_or(SuperblockError::TransactionIdsExhausted)?;
        Ok(Self { image_pages, transaction_id, digest, ..*self })
    }

    /// Bytes of a page: a power of two from 512 to 65,536.
    pub const fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Where the image begins in the memory, in bytes.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Pages of the image.
    pub const fn image_pages(&self) -> u32 {
        self.image_pages
    }

    /// Bytes of the image.
    pub const fn image_bytes(&self) -> u64 {
        self.image_pages as u64 * self.page_bytes as u64
    }

    /// Id of the transaction that wrote this: 0 for none yet, then one more for each.
    pub const fn transaction_id(&self) -> u64 {
        self.transaction_id
    }

    /// Digest of the image.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Byte offset in the memory of a page, counted from 1. Page 0, which there is none, answers the base.
    pub const fn page_offset(&self, page_number: u32) -> u64 {
        self.base + page_number.saturating_sub(1) as u64 * self.page_bytes as u64
    }
}

impl UnvalidatedSuperblock {
    /// Checks every field, and that the image lies within a memory of `memory_bytes`.
    ///
    /// # Errors
    /// [`SuperblockError`], for the first field that cannot be.
    pub fn validate(self, memory_bytes: u64) -> Result<Superblock, SuperblockError> {
        let Self { page_bytes, base, image_pages, transaction_id, digest, flags } = self;
        if flags != 0 {
            return Err(SuperblockError::UnknownFlags { found: flags });
        }
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes) {
            return Err(SuperblockError::BadPageSize { found: page_bytes });
        }
        if base == 0 || !base.is_multiple_of(WASM_PAGE_BYTES) {
            return Err(SuperblockError::BadBase { found: base });
        }
        let image_pages = match u32::try_from(image_pages) {
            Ok(pages) if pages <= IMAGE_PAGES_MAX => pages,
            _ => return Err(SuperblockError::TooManyPages { found: image_pages }),
        };
        let needed = base.checked_add(u64::from(image_pages) * u64::from(page_bytes));
        if needed.is_none_or(|needed| needed > memory_bytes) {
            return Err(SuperblockError::ImageBeyondMemory { needed, found: memory_bytes });
        }
        Ok(Superblock { page_bytes, base, image_pages, transaction_id, digest: Digest::from_value(digest) })
    }
}

/// Checksum of all words before it. Each step is a bijection of the word and of the sum so far, so that any change
/// within one word changes the result.
fn checksum(bytes: &[u8; SUPERBLOCK_BYTES]) -> u64 {
    let (words, _) = bytes[..CHECKSUM_OFFSET].as_chunks();
    words.iter().fold(CHECKSUM_SEED, |sum, word| mix(sum ^ u64::from_le_bytes(*word)))
}

fn u64_at(bytes: &[u8; SUPERBLOCK_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(array(bytes, offset))
}

/// The `N` bytes at `offset`, which lies within the superblock.
fn array<const N: usize>(bytes: &[u8; SUPERBLOCK_BYTES], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}
