//! Virtual memories within one memory, byte for byte in the layout of ic-stable-structures 0.7's `MemoryManager`.
//!
//! ```text
//! ---------------------------------------- <- byte 0
//! magic "MGR"                  3 bytes
//! ----------------------------------------
//! layout version = 1           1 byte
//! ----------------------------------------
//! buckets allocated = A        2 bytes
//! ----------------------------------------
//! bucket size = N Wasm pages   2 bytes
//! ----------------------------------------
//! reserved, zero               32 bytes
//! ----------------------------------------
//! size of memory 0 … 254       255 x 8 bytes, in Wasm pages
//! ----------------------------------------
//! owner of bucket 0 … 32,767   32,768 x 1 byte, 255 = none
//! ----------------------------------------
//! not used                     to the end of the Wasm page
//! ---------------------------------------- <- byte 65,536
//! bucket 0                     N Wasm pages
//! ----------------------------------------
//! bucket 1 … A - 1             N Wasm pages each
//! ----------------------------------------
//! ```
//! The buckets of a memory, in the order of their numbers, are its address space. Buckets are handed out in order and
//! never taken back, so at most 32,768 x N pages can be managed: 256 GiB with the usual N = 128.
use core::fmt;
use core::num::{NonZeroU16, NonZeroU64};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Memory, MemoryError, WASM_PAGE_BYTES, check_range};

const MAGIC: [u8; 3] = *b"MGR";
const LAYOUT_VERSION: u8 = 1;

/// Virtual memories that a manager can hold. Their ids are 0 to 254.
pub const MEMORIES_MAX: usize = 255;

/// Buckets that a manager can hand out.
pub const BUCKETS_MAX: usize = 32_768;

/// Wasm pages of a bucket in a memory that [`MemoryManager::open`] formats.
pub const BUCKET_PAGES_DEFAULT: NonZeroU16 = NonZeroU16::new(128).unwrap();

const WASM_PAGE_NONZERO: NonZeroU64 = NonZeroU64::new(WASM_PAGE_BYTES).unwrap();

const UNOWNED: u8 = MEMORIES_MAX as u8;

const VERSION_OFFSET: usize = MAGIC.len();
const ALLOCATED_OFFSET: usize = VERSION_OFFSET + size_of::<u8>();
const BUCKET_PAGES_OFFSET: usize = ALLOCATED_OFFSET + size_of::<u16>();
const RESERVED_OFFSET: usize = BUCKET_PAGES_OFFSET + size_of::<u16>();
const RESERVED_BYTES: usize = 32;
const SIZES_OFFSET: usize = RESERVED_OFFSET + RESERVED_BYTES;
const OWNERS_OFFSET: usize = SIZES_OFFSET + MEMORIES_MAX * size_of::<u64>();
const TABLES_BYTES: usize = OWNERS_OFFSET + BUCKETS_MAX;
const BUCKETS_OFFSET_PAGES: u64 = 1;
const BUCKETS_OFFSET: u64 = BUCKETS_OFFSET_PAGES * WASM_PAGE_BYTES;

const _: () = assert!(TABLES_BYTES as u64 <= BUCKETS_OFFSET);
// A bucket count fits the two bytes it is stored in, and every owner fits one.
const _: () = assert!(BUCKETS_MAX <= u16::MAX as usize && MEMORIES_MAX <= u8::MAX as usize);

/// Names a virtual memory: 0 to 254.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(u8);

impl MemoryId {
    /// The id, if it is one: 255 marks buckets that have no owner.
    pub const fn new(id: u8) -> Option<Self> {
        if id == UNOWNED { None } else { Some(Self(id)) }
    }

    /// The id as a constant: 255 does not compile.
    pub(super) const fn constant(id: u8) -> Self {
        assert!(id != UNOWNED);
        Self(id)
    }

    /// The id as a number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Why a memory cannot be opened as virtual memories. The memory is untouched but for a failure while an empty one
/// was formatted, which must end the message with a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagerError {
    /// The memory below failed.
    Memory(MemoryError),
    /// The memory is not empty and does not begin with "MGR": it holds something else.
    Foreign {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The layout version is not the one that is known.
    UnknownVersion {
        /// The version found.
        found: u8,
    },
    /// A reserved byte is not zero: something that is not known has been stored there.
    ReservedUsed {
        /// Where, in bytes from the start of the memory.
        offset: u64,
        /// The byte found.
        found: u8,
    },
    /// The bucket size is zero.
    EmptyBuckets,
    /// More buckets are said to be allocated than there can be.
    TooManyBuckets {
        /// The number found.
        found: u16,
    },
    /// An allocated bucket has no owner.
    UnownedBucket {
        /// Number of the bucket, from 0.
        bucket: u16,
    },
    /// A bucket that is not allocated has an owner.
    OwnedFreeBucket {
        /// Number of the bucket, from 0.
        bucket: u16,
        /// The owner found.
        owner: u8,
    },
    /// A virtual memory does not have the buckets that its size needs, no more and no fewer.
    SizeMismatch {
        /// The virtual memory.
        memory: MemoryId,
        /// Its size in Wasm pages.
        pages: u64,
        /// Its buckets.
        buckets: u64,
        /// Wasm pages of a bucket.
        bucket_pages: u16,
    },
    /// The memory ends before its last allocated bucket does.
    Truncated {
        /// Wasm pages that the allocated buckets need.
        needed: u64,
        /// Wasm pages found.
        found: u64,
    },
}

impl From<MemoryError> for ManagerError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for ManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(error) => error.fmt(f),
            Self::Foreign { found } => write!(
                f,
                "stable memory is not empty and not divided into virtual memories (it begins with {found:02x?}); it was \
                 left as it is; install into a new canister, or clear this one if its data is not needed"
            ),
            Self::UnknownVersion { found } => write!(
                f,
                "stable memory has virtual memories in layout {found}, and this Wasm knows layout {LAYOUT_VERSION}; \
                 it was left as it is; install a Wasm that knows the layout"
            ),
            Self::ReservedUsed { offset, found } => write!(
                f,
                "reserved byte {offset} of the virtual memories' header is {found:#04x} in place of 0; stable memory was \
                 left as it is; install a Wasm that knows what is stored there"
            ),
            Self::EmptyBuckets => f.write_str("the virtual memories' header is damaged: its bucket size is 0"),
            Self::TooManyBuckets { found } => {
                write!(f, "the virtual memories' header is damaged: it counts {found} buckets of at most {BUCKETS_MAX}")
            }
            Self::UnownedBucket { bucket } => {
                write!(f, "the virtual memories' header is damaged: allocated bucket {bucket} has no owner")
            }
            Self::OwnedFreeBucket { bucket, owner } => write!(
                f,
                "the virtual memories' header is damaged: bucket {bucket} is not allocated and belongs to memory {owner}"
            ),
            Self::SizeMismatch { memory, pages, buckets, bucket_pages } => write!(
                f,
                "the virtual memories' header is damaged: memory {} has {pages} Wasm pages in {buckets} buckets of \
                 {bucket_pages}",
                memory.0
            ),
            Self::Truncated { needed, found } => {
                write!(f, "stable memory is cut off: its buckets need {needed} Wasm pages and it has {found}")
            }
        }
    }
}

impl core::error::Error for ManagerError {}

/// One virtual memory as it is known on the heap.
#[derive(Default)]
struct Segment {
    size_bytes: Cell<u64>,
    /// Byte offset in the raw memory of each bucket, in the order of the address space.
    buckets: RefCell<Vec<u64>>,
}

struct Inner<M> {
    raw: M,
    bucket_pages: NonZeroU16,
    bucket_bytes: NonZeroU64,
    /// The raw memory's first bytes up to the last allocated bucket's owner, as they are stored.
    tables: RefCell<Vec<u8>>,
    segments: Vec<Rc<Segment>>,
}

/// Divides a memory into virtual memories.
///
/// The manager keeps its tables on the heap. Two managers over one memory would hand out the same buckets, so there
/// must be exactly one in a canister; a clone shares everything.
pub struct MemoryManager<M> {
    inner: Rc<Inner<M>>,
}

impl<M> Clone for MemoryManager<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

impl<M: Memory> MemoryManager<M> {
    /// Opens the virtual memories in `raw`, or formats it if its size is 0.
    ///
    /// # Errors
    /// [`ManagerError`]: nothing but an empty memory and a sound one in the known layout is accepted.
    pub fn open(raw: M) -> Result<Self, ManagerError> {
        Self::open_with_bucket_size(raw, BUCKET_PAGES_DEFAULT)
    }

    /// As [`open`](Self::open), with the bucket size in Wasm pages that an empty memory is given. One that is not
    /// empty keeps its own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_bucket_size(raw: M, bucket_pages: NonZeroU16) -> Result<Self, ManagerError> {
        if raw.size() == 0 { Self::format(raw, bucket_pages) } else { Self::load(raw) }
    }

    fn format(raw: M, bucket_pages: NonZeroU16) -> Result<Self, ManagerError> {
        raw.grow(BUCKETS_OFFSET_PAGES)?;
        let mut tables = vec![0; TABLES_BYTES];
        tables[..MAGIC.len()].copy_from_slice(&MAGIC);
        tables[VERSION_OFFSET] = LAYOUT_VERSION;
        tables[BUCKET_PAGES_OFFSET..RESERVED_OFFSET].copy_from_slice(&bucket_pages.get().to_le_bytes());
        tables[OWNERS_OFFSET..].fill(UNOWNED);
        raw.write(0, &tables)?;
        Self::from_tables(raw, tables)
    }

    fn load(raw: M) -> Result<Self, ManagerError> {
        let mut tables = vec![0; TABLES_BYTES];
        raw.read(0, &mut tables)?;
        Self::from_tables(raw, tables)
    }

    /// `tables` are the first bytes of `raw`, and may hold anything.
    fn from_tables(raw: M, mut tables: Vec<u8>) -> Result<Self, ManagerError> {
        if tables[..MAGIC.len()] != MAGIC {
            return Err(ManagerError::Foreign { found: array(&tables, 0) });
        }
        let version = tables[VERSION_OFFSET];
        if version != LAYOUT_VERSION {
            return Err(ManagerError::UnknownVersion { found: version });
        }
        if let Some(at) = tables[RESERVED_OFFSET..SIZES_OFFSET].iter().position(|&byte| byte != 0) {
            let offset = RESERVED_OFFSET + at;
            return Err(ManagerError::ReservedUsed { offset: offset as u64, found: tables[offset] });
        }
        let bucket_pages = NonZeroU16::new(u16::from_le_bytes(array(&tables, BUCKET_PAGES_OFFSET)))
            .ok_or(ManagerError::EmptyBuckets)?;
        let allocated = u16::from_le_bytes(array(&tables, ALLOCATED_OFFSET));
        if usize::from(allocated) > BUCKETS_MAX {
            return Err(ManagerError::TooManyBuckets { found: allocated });
        }

        let bucket_bytes = NonZeroU64::from(bucket_pages).saturating_mul(WASM_PAGE_NONZERO);
        let (owned, free) = tables[OWNERS_OFFSET..].split_at(usize::from(allocated));
        if let Some(at) = free.iter().position(|&owner| owner != UNOWNED) {
            return Err(ManagerError::OwnedFreeBucket { bucket: allocated + at as u16, owner: free[at] });
        }
        let segments: Vec<Rc<Segment>> = (0..MEMORIES_MAX).map(|_| Rc::default()).collect();
        for (bucket, &owner) in owned.iter().enumerate() {
            let Some(segment) = segments.get(usize::from(owner)) else {
                return Err(ManagerError::UnownedBucket { bucket: bucket as u16 });
            };
            segment.buckets.borrow_mut().push(bucket_offset(bucket as u64, bucket_bytes));
        }
        for (id, segment) in segments.iter().enumerate() {
            let pages = u64::from_le_bytes(array(&tables, size_offset(id as u8)));
            let buckets = segment.buckets.borrow().len() as u64;
            if pages.div_ceil(bucket_pages.get().into()) != buckets {
                let (memory, bucket_pages) = (MemoryId(id as u8), bucket_pages.get());
                return Err(ManagerError::SizeMismatch { memory, pages, buckets, bucket_pages });
            }
            // No overflow: the pages fit buckets, of which there are few.
            segment.size_bytes.set(pages * WASM_PAGE_BYTES);
        }
        let (needed, found) = (raw_pages(allocated.into(), bucket_pages), raw.size());
        if needed > found {
            return Err(ManagerError::Truncated { needed, found });
        }

        tables.truncate(OWNERS_OFFSET + usize::from(allocated));
        Ok(Self { inner: Rc::new(Inner { raw, bucket_pages, bucket_bytes, tables: RefCell::new(tables), segments }) })
    }

    /// The virtual memory of this id. All handles of one id share it.
    pub fn get(&self, id: MemoryId) -> VirtualMemory<M> {
        VirtualMemory { segment: Rc::clone(&self.inner.segments[usize::from(id.0)]), inner: Rc::clone(&self.inner), id }
    }

    /// The memory below.
    pub fn raw(&self) -> &M {
        &self.inner.raw
    }

    /// Wasm pages of a bucket.
    pub fn bucket_pages(&self) -> NonZeroU16 {
        self.inner.bucket_pages
    }

    /// Wasm pages that all virtual memories together can still grow by: whole buckets only, without what is left in
    /// buckets they have, and whether or not the platform would grant them.
    pub fn free_pages(&self) -> u64 {
        (BUCKETS_MAX as u64 - self.inner.allocated()) * u64::from(self.inner.bucket_pages.get())
    }
}

impl<M: Memory> Inner<M> {
    fn allocated(&self) -> u64 {
        (self.tables.borrow().len() - OWNERS_OFFSET) as u64
    }

    /// The raw memory grows first, where a refusal changes nothing. Then one write brings the tables from the old
    /// state to the new one, and the heap follows.
    fn grow(&self, id: MemoryId, segment: &Segment, pages: u64) -> Result<u64, MemoryError> {
        let size = segment.size_bytes.get() / WASM_PAGE_BYTES;
        if pages == 0 {
            return Ok(size);
        }
        let bucket_pages = u64::from(self.bucket_pages.get());
        let new_size = size.checked_add(pages).ok_or(MemoryError::GrowFailed { size, pages })?;
        let buckets = segment.buckets.borrow().len() as u64;
        let needed = new_size.div_ceil(bucket_pages) - buckets;
        let allocated = self.allocated();
        let free = BUCKETS_MAX as u64 - allocated;
        if needed > free {
            return Err(MemoryError::OutOfBuckets { needed, free, bucket_pages: self.bucket_pages.get() });
        }
        let new_allocated = allocated + needed;
        let (raw_needed, raw_size) = (raw_pages(new_allocated, self.bucket_pages), self.raw.size());
        if raw_needed > raw_size {
            self.raw.grow(raw_needed - raw_size)?;
        }

        let mut tables = self.tables.borrow_mut();
        let size_at = size_offset(id.0);
        if needed == 0 {
            self.raw.write(size_at as u64, &new_size.to_le_bytes())?;
        } else {
            let mut grown = Vec::with_capacity(OWNERS_OFFSET + new_allocated as usize);
            grown.extend_from_slice(&tables);
            grown.resize(OWNERS_OFFSET + new_allocated as usize, id.0);
            grown[ALLOCATED_OFFSET..BUCKET_PAGES_OFFSET].copy_from_slice(&(new_allocated as u16).to_le_bytes());
            grown[size_at..size_at + size_of::<u64>()].copy_from_slice(&new_size.to_le_bytes());
            self.raw.write(ALLOCATED_OFFSET as u64, &grown[ALLOCATED_OFFSET..])?;
            *tables = grown;
            let new = (allocated..new_allocated).map(|bucket| bucket_offset(bucket, self.bucket_bytes));
            segment.buckets.borrow_mut().extend(new);
        }
        tables[size_at..size_at + size_of::<u64>()].copy_from_slice(&new_size.to_le_bytes());
        segment.size_bytes.set(new_size * WASM_PAGE_BYTES);
        Ok(size)
    }
}

/// One of the memories of a [`MemoryManager`]. A clone is another handle to the same memory.
///
/// A read or write within one bucket is one call to the memory below. Nothing is cached from access to access: a
/// changed byte on the heap would cost more at the end of the message than the look-up does.
pub struct VirtualMemory<M> {
    segment: Rc<Segment>,
    inner: Rc<Inner<M>>,
    id: MemoryId,
}

impl<M> Clone for VirtualMemory<M> {
    fn clone(&self) -> Self {
        Self { segment: Rc::clone(&self.segment), inner: Rc::clone(&self.inner), id: self.id }
    }
}

impl<M> VirtualMemory<M> {
    /// The id of this memory.
    pub fn id(&self) -> MemoryId {
        self.id
    }

    /// Raw offset of the byte at `offset`, and how many bytes its bucket holds from there on.
    #[inline]
    fn locate(&self, offset: u64) -> Option<(u64, u64)> {
        let bucket_bytes = self.inner.bucket_bytes;
        let index = offset / bucket_bytes;
        let bucket_bytes = bucket_bytes.get();
        let within = offset - index * bucket_bytes;
        let start = *self.segment.buckets.borrow().get(index as usize)?;
        Some((start + within, bucket_bytes - within))
    }

    /// Calls `each(raw offset, range of the buffer)` for every bucket that the range touches. The range is checked.
    #[cold]
    fn split(
        &self,
        offset: u64,
        len: usize,
        mut each: impl FnMut(u64, core::ops::Range<usize>) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let (raw, room) = self.locate(at).ok_or(self.out_of_bounds(offset, len))?;
            let step = room.min((len - done) as u64) as usize;
            each(raw, done..done + step)?;
            done += step;
        }
        Ok(())
    }

    fn out_of_bounds(&self, offset: u64, len: usize) -> MemoryError {
        MemoryError::OutOfBounds { offset, len: len as u64, size: self.segment.size_bytes.get() }
    }
}

impl<M: Memory> Memory for VirtualMemory<M> {
    #[inline]
    fn size(&self) -> u64 {
        self.segment.size_bytes.get() / WASM_PAGE_BYTES
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        self.inner.grow(self.id, &self.segment, pages)
    }

    #[inline]
    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        check_range(offset, dst.len() as u64, self.segment.size_bytes.get())?;
        match self.locate(offset) {
            Some((raw, room)) if dst.len() as u64 <= room => self.inner.raw.read(raw, dst),
            _ => self.split(offset, dst.len(), |raw, range| self.inner.raw.read(raw, &mut dst[range])),
        }
    }

    #[inline]
    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        check_range(offset, src.len() as u64, self.segment.size_bytes.get())?;
        match self.locate(offset) {
            Some((raw, room)) if src.len() as u64 <= room => self.inner.raw.write(raw, src),
            _ => self.split(offset, src.len(), |raw, range| self.inner.raw.write(raw, &src[range])),
        }
    }
}

const fn size_offset(id: u8) -> usize {
    SIZES_OFFSET + id as usize * size_of::<u64>()
}

fn bucket_offset(bucket: u64, bucket_bytes: NonZeroU64) -> u64 {
    BUCKETS_OFFSET + bucket * bucket_bytes.get()
}

fn raw_pages(buckets: u64, bucket_pages: NonZeroU16) -> u64 {
    BUCKETS_OFFSET_PAGES + buckets * u64::from(bucket_pages.get())
}

/// The `N` bytes at `offset`, which lies within `bytes`.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}
