//! The superblock of ic-sqlite-vfs 2.x, of which this reads what an adoption needs and writes nothing.
//!
//! ```text
//!   0  magic "ICSQLITE"             8 bytes
//!   8  version = 8                  u32
//!  12  page size = 16,384           u32, bytes
//!  16  image size                   u64, bytes
//!  24  schema version               u64, of its migrations; also kept in a table
//!  32  transaction id               u64
//!  40  flags                        u64: 1 importing, 2 checksum stale, 4 checksum being refreshed
//!  48  checksum of the image        u64, FNV-1a; means something unless it is stale
//!  56  state of an import           4 x u64
//!  88  state of a refresh           3 x u64
//! 112  base                         u64, byte offset of the image in this memory; 65,536 unless it was imported
//! 120  page table = 0               u64, of older layouts
//! 128  image size                   u64, pages
//! 136  layout version = 8           u64
//! 144  zero extents = E, 0 to 1,024 u64
//! 152  checksum of bytes 0 to end   u64, FNV-1a, taken with zeros in its own place
//! 160  zero extents                 E x (first page, page behind the last) of u64
//! ```
//! All integers are little-endian. Pages of a zero extent are counted from 0; they read as zeros, whatever is stored in
//! their place.
use core::fmt;

use super::superblock::{IMAGE_PAGES_MAX, SuperblockError};
use super::{Memory, MemoryError, WASM_PAGE_BYTES};

/// The first bytes of a memory that holds a database of ic-sqlite-vfs.
pub const MAGIC: [u8; 8] = *b"ICSQLITE";

/// The version of the superblock, and of the layout, that all releases 2.x write.
pub const VERSION: u32 = 8;

/// Bytes of a page: those releases know no other size.
pub const PAGE_BYTES: u32 = 16_384;

/// Zero extents that a superblock has room for.
pub const ZERO_EXTENTS_MAX: usize = 1_024;

const VERSION_OFFSET: usize = MAGIC.len();
const PAGE_BYTES_OFFSET: usize = VERSION_OFFSET + size_of::<u32>();
const IMAGE_BYTES_OFFSET: usize = PAGE_BYTES_OFFSET + size_of::<u32>();
const SCHEMA_VERSION_OFFSET: usize = IMAGE_BYTES_OFFSET + size_of::<u64>();
const TRANSACTION_ID_OFFSET: usize = SCHEMA_VERSION_OFFSET + size_of::<u64>();
const FLAGS_OFFSET: usize = TRANSACTION_ID_OFFSET + size_of::<u64>();
const IMAGE_CHECKSUM_OFFSET: usize = FLAGS_OFFSET + size_of::<u64>();
const IMPORT_OFFSET: usize = IMAGE_CHECKSUM_OFFSET + size_of::<u64>();
const REFRESH_OFFSET: usize = IMPORT_OFFSET + 4 * size_of::<u64>();
const BASE_OFFSET: usize = REFRESH_OFFSET + 3 * size_of::<u64>();
const PAGE_TABLE_OFFSET: usize = BASE_OFFSET + size_of::<u64>();
const IMAGE_PAGES_OFFSET: usize = PAGE_TABLE_OFFSET + size_of::<u64>();
const LAYOUT_OFFSET: usize = IMAGE_PAGES_OFFSET + size_of::<u64>();
const ZERO_EXTENTS_OFFSET: usize = LAYOUT_OFFSET + size_of::<u64>();
const CHECKSUM_OFFSET: usize = ZERO_EXTENTS_OFFSET + size_of::<u64>();
const EXTENTS_OFFSET: usize = CHECKSUM_OFFSET + size_of::<u64>();
const EXTENT_BYTES: usize = 2 * size_of::<u64>();

/// Bytes of the longest superblock.
pub const SUPERBLOCK_BYTES_MAX: usize = EXTENTS_OFFSET + ZERO_EXTENTS_MAX * EXTENT_BYTES;

const _: () = assert!(EXTENTS_OFFSET == 160);
const _: () = assert!(SUPERBLOCK_BYTES_MAX as u64 <= WASM_PAGE_BYTES);

const FLAG_IMPORTING: u64 = 1;
const FLAG_CHECKSUM_STALE: u64 = 2;
const FLAG_CHECKSUM_REFRESHING: u64 = 4;
const FLAGS_KNOWN: u64 = FLAG_IMPORTING | FLAG_CHECKSUM_STALE | FLAG_CHECKSUM_REFRESHING;

/// Why a superblock of ic-sqlite-vfs was refused. Nothing was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VfsSuperblockError {
    /// The memory failed.
    Memory(MemoryError),
    /// The memory holds something else.
    ForeignMagic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The layout is not that of releases 2.x.
    UnknownLayout {
        /// The version of the superblock, and that of the layout.
        found: (u32, u64),
    },
    /// More zero extents than there is room for.
    TooManyZeroExtents {
        /// How many are counted.
        found: u64,
    },
    /// The bytes are not those that were written.
    BadChecksum {
        /// Checksum of the bytes found.
        computed: u64,
        /// Checksum found with them.
        stored: u64,
    },
    /// An import into the database was begun and not finished.
    Importing,
    /// A field has a value that ic-sqlite-vfs 2.x does not write.
    BadField {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// The image ends beyond the memory, or lies where none can.
    BadImage(SuperblockError),
}

impl From<MemoryError> for VfsSuperblockError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for VfsSuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(error) => error.fmt(f),
            Self::ForeignMagic { found } => {
                write!(f, "the memory holds no database of ic-sqlite-vfs: it begins with {found:02x?}")
            }
            Self::UnknownLayout { found: (version, layout) } => write!(
                f,
                "the database of ic-sqlite-vfs has superblock {version} in layout {layout}, and only {VERSION} in {VERSION} \
                 can be adopted, which releases 2.x write"
            ),
            Self::TooManyZeroExtents { found } => write!(
                f,
                "the superblock of ic-sqlite-vfs is damaged: it counts {found} zero extents of at most {ZERO_EXTENTS_MAX}"
            ),
            Self::BadChecksum { computed, stored } => write!(
                f,
                "the superblock of ic-sqlite-vfs is damaged: its checksum is {computed:#018x} and {stored:#018x} is stored"
            ),
            Self::Importing => f.write_str(
                "an import into the database of ic-sqlite-vfs has begun and not ended; finish or cancel it with the \
                 version that began it",
            ),
            Self::BadField { field, found } => {
                write!(f, "the superblock of ic-sqlite-vfs says {found} for its {field}, which its releases 2.x do not")
            }
            Self::BadImage(error) => write!(f, "the image of ic-sqlite-vfs: {error}"),
        }
    }
}

impl core::error::Error for VfsSuperblockError {}

/// What the superblock of ic-sqlite-vfs says, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfsSuperblock {
    /// Where the image begins in the memory, in bytes: a positive multiple of 65,536.
    pub base: u64,
    /// Pages of the image, of [`PAGE_BYTES`] each; at most [`IMAGE_PAGES_MAX`].
    pub image_pages: u32,
    /// Id of the last transaction.
    pub transaction_id: u64,
    /// FNV-1a of the image, if it is not stale.
    pub image_checksum: Option<u64>,
    /// Pages that read as zeros whatever is stored: ascending, apart from one another, each the first page and the page
    /// behind the last, counted from 0. They may lie beyond the image.
    pub zero_extents: Vec<(u64, u64)>,
}

impl VfsSuperblock {
    /// Reads the superblock in `memory`.
    ///
    /// # Errors
    /// [`VfsSuperblockError`]: everything that can be checked without reading the image was.
    pub fn load(memory: &impl Memory) -> Result<Self, VfsSuperblockError> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
        memory.read(0, &mut bytes)?;
        Self::decode(&bytes, memory.size().saturating_mul(WASM_PAGE_BYTES))
    }

    /// Reads the superblock of a memory of `memory_bytes` that begins with `bytes`.
    fn decode(bytes: &[u8], memory_bytes: u64) -> Result<Self, VfsSuperblockError> {
        let found = array(bytes, 0);
        if found != MAGIC {
            return Err(VfsSuperblockError::ForeignMagic { found });
        }
        let layout = (u32::from_le_bytes(array(bytes, VERSION_OFFSET)), u64_at(bytes, LAYOUT_OFFSET));
        if layout != (VERSION, VERSION.into()) {
            return Err(VfsSuperblockError::UnknownLayout { found: layout });
        }
        let count = u64_at(bytes, ZERO_EXTENTS_OFFSET);
        let extents = usize::try_from(count).ok().filter(|count| *count <= ZERO_EXTENTS_MAX);
        let extents = extents.ok_or(VfsSuperblockError::TooManyZeroExtents { found: count })?;
        let (head, tail) = bytes[..EXTENTS_OFFSET + extents * EXTENT_BYTES].split_at(CHECKSUM_OFFSET);
        let (stored, extents) = tail.split_at(size_of::<u64>());
        let stored = u64_at(stored, 0);
        let computed = Fnv1a::new().with(head).with(&[0; size_of::<u64>()]).with(extents).value();
        if computed != stored {
            return Err(VfsSuperblockError::BadChecksum { computed, stored });
        }
        let flags = u64_at(bytes, FLAGS_OFFSET);
        if flags & FLAG_IMPORTING != 0 {
            return Err(VfsSuperblockError::Importing);
        }
        let image_bytes = u64_at(bytes, IMAGE_BYTES_OFFSET);
        let page_bytes = u64::from(u32::from_le_bytes(array(bytes, PAGE_BYTES_OFFSET)));
        let (pages, base) = (u64_at(bytes, IMAGE_PAGES_OFFSET), u64_at(bytes, BASE_OFFSET));
        let page_table = u64_at(bytes, PAGE_TABLE_OFFSET);
        let checks = [
            ("flags", flags, flags & !FLAGS_KNOWN == 0),
            ("page size", page_bytes, page_bytes == PAGE_BYTES.into()),
            ("image size in bytes", image_bytes, image_bytes.is_multiple_of(PAGE_BYTES.into())),
            ("number of pages", pages, pages == image_bytes / u64::from(PAGE_BYTES)),
            ("page table", page_table, page_table == 0),
        ];
        if let Some(&(field, found, _)) = checks.iter().find(|(_, _, good)| !good) {
            return Err(VfsSuperblockError::BadField { field, found });
        }
        let bad = VfsSuperblockError::BadImage;
        let image_pages = u32::try_from(pages).ok().filter(|pages| *pages <= IMAGE_PAGES_MAX);
        let image_pages = image_pages.ok_or(bad(SuperblockError::TooManyPages { found: pages }))?;
        if base == 0 || !base.is_multiple_of(WASM_PAGE_BYTES) {
            return Err(bad(SuperblockError::BadBase { found: base }));
        }
        let needed = base.checked_add(image_bytes);
        if needed.is_none_or(|needed| needed > memory_bytes) {
            return Err(bad(SuperblockError::ImageBeyondMemory { needed, found: memory_bytes }));
        }
        // A database that has never been written to has a checksum of 0 that nobody has computed.
        let checked = flags & FLAG_CHECKSUM_STALE == 0 && image_pages > 0;
        Ok(Self {
            base,
            image_pages,
            transaction_id: u64_at(bytes, TRANSACTION_ID_OFFSET),
            image_checksum: checked.then(|| u64_at(bytes, IMAGE_CHECKSUM_OFFSET)),
            zero_extents: zero_extents(extents)?,
        })
    }

    /// The pages among `first ..= last`, counted from 1, that read as zeros whatever is stored.
    pub fn zero_pages(&self, first: u32, last: u32) -> impl Iterator<Item = u32> {
        let (first, last) = (u64::from(first), u64::from(last));
        self.zero_extents.iter().flat_map(move |&(start, end)| {
            let (start, end) = (start.saturating_add(1).max(first), end.min(last));
            // Both lie within `first ..= last`, or the range is empty.
            (start..=end).map(|page| page as u32)
        })
    }
}

fn zero_extents(bytes: &[u8]) -> Result<Vec<(u64, u64)>, VfsSuperblockError> {
    let mut extents = Vec::with_capacity(bytes.len() / EXTENT_BYTES);
    let mut previous = None;
    for extent in bytes.chunks_exact(EXTENT_BYTES) {
        let (start, end) = (u64_at(extent, 0), u64_at(extent, size_of::<u64>()));
        if start >= end || previous.is_some_and(|previous| start <= previous) {
            return Err(VfsSuperblockError::BadField { field: "zero extent's first page", found: start });
        }
        previous = Some(end);
        extents.push((start, end));
    }
    Ok(extents)
}

/// FNV-1a with 64 bits, as ic-sqlite-vfs computes its checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// The hash of nothing.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The hash with `bytes` appended.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    /// The hash as a number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array(bytes, offset))
}

/// The `N` bytes at `offset`, which lies within the superblock.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}
