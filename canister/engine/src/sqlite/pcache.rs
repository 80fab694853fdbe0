//! SQLite's page cache (`sqlite3_pcache_methods2`): a dense index by page number over slabs.
//!
//! Page buffers are aligned to their size, so that writing a page dirties one page of the heap, and the slots with
//! SQLite's own header of each page lie packed together. Finding, pinning and unpinning a page leave the slot as it
//! was once the page is unpinned again. Eviction is a clock over the slots in use: a list of least recent use would
//! rewrite three slots at each look-up, and every heap page that a message changes costs 1,000 instructions. A large
//! transaction leaves many free slots, which the clock does not see. Together this saves ten dirty heap pages a write.
//!
//! Invariants: `index[key]` is null or points to the slot that holds page `key`; a slot is in the index exactly if
//! its key is neither 0 nor that of the page that no image has; `clock` holds each slot that has a key once, at the
//! slot's `position`; no key above `highest` is in the index.
#![allow(unsafe_code)]

use super::sys;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::alloc::{Layout, alloc, dealloc};

/// Slots that are allocated together.
const SLAB_SLOTS: usize = 64;
/// Slots that one look-up inspects at most for a page that was not looked up lately. If there is none it takes one that
/// was; if all are pinned the cache grows past its size for a while.
const CLOCK_STEPS_MAX: usize = 128;
/// Entries of a new index: enough for an image of 4 MiB at 4 KiB a page.
const INDEX_ENTRIES_MIN: usize = 1_024;
/// Offset in the image of the bytes that SQLite reserves for locking (`PENDING_BYTE`). Their page is in no image, but
/// when siblings are rebalanced a page is renamed to it for a moment; an index up to it would take a megabyte.
const PENDING_BYTE: usize = 0x4000_0000;
/// SQLite may read a few bytes past a page whose contents are damaged; they must be ours.
const OVERREAD_BYTES: usize = 64;

/// In front of SQLite's header of a page. The first field is what SQLite gets to see.
#[repr(C)]
struct Slot {
    page: sys::sqlite3_pcache_page,
    /// Page number, or 0 for a free slot.
    key: c_uint,
    pinned: bool,
    /// Looked up since the clock's hand last passed.
    referenced: bool,
    /// Where the clock has it; meaningful in slots with a key only.
    position: u32,
    /// Next free slot; meaningful in free slots only.
    next_free: *mut Slot,
}

struct Slab {
    slots: *mut u8,
    pages: *mut u8,
}

struct Cache {
    page_bytes: usize,
    /// Bytes from one slot to the next: the slot and SQLite's header.
    stride: usize,
    extra_bytes: usize,
    purgeable: bool,
    size_max: usize,
    pinned: usize,
    highest: c_uint,
    /// The slots in use, in no order. Its capacity is that of the slabs, so that adding one does not allocate.
    clock: Vec<*mut Slot>,
    /// What the clock looks at next.
    hand: usize,
    index: Vec<*mut Slot>,
    /// The number of the page that no image has, and the slot that bears it for a moment, or null.
    pending_key: c_uint,
    pending: *mut Slot,
    free: *mut Slot,
    slabs: Vec<Slab>,
}

impl Cache {
    fn slots_layout(&self) -> Option<Layout> {
        Layout::from_size_align(self.stride.checked_mul(SLAB_SLOTS)?, 16).ok()
    }

    fn pages_layout(&self) -> Option<Layout> {
        let bytes = self.page_bytes.checked_mul(SLAB_SLOTS)?.checked_add(OVERREAD_BYTES)?;
        Layout::from_size_align(bytes, self.page_bytes.next_power_of_two().clamp(16, 4_096)).ok()
    }

    /// The slot of page `key`, or null.
    #[inline]
    fn find(&self, key: c_uint) -> *mut Slot {
        match self.index.get(key as usize) {
            Some(slot) if !slot.is_null() => *slot,
            _ if key == self.pending_key => self.pending,
            _ => ptr::null_mut(),
        }
    }

    /// Where the slot of page `key` is noted; none if the index does not reach it.
    fn place(&mut self, key: c_uint) -> Option<&mut *mut Slot> {
        if key == self.pending_key { Some(&mut self.pending) } else { self.index.get_mut(key as usize) }
    }

    /// Makes room in the index for `key`; false if there is no memory.
    fn reach(&mut self, key: c_uint) -> bool {
        let need = key as usize + 1;
        if need <= self.index.len() || key == self.pending_key {
            return true;
        }
        let new_len = need.max(self.index.len() * 2).max(INDEX_ENTRIES_MIN);
        let more = new_len - self.index.len();
        if self.index.try_reserve_exact(more).is_err() {
            return false;
        }
        self.index.resize(new_len, ptr::null_mut());
        true
    }

    /// Notes `slot` under `key`, which the index reaches.
    fn note(&mut self, slot: *mut Slot, key: c_uint) {
        if let Some(place) = self.place(key) {
            *place = slot;
        }
        if key != self.pending_key {
            self.highest = self.highest.max(key);
        }
    }

    /// Allocates a slab and puts its slots on the free list; false if there is no memory.
    fn grow(&mut self) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        if super::alloc::fault::due() {
            return false;
        }
        let (Some(slots_layout), Some(pages_layout)) = (self.slots_layout(), self.pages_layout()) else { return false };
        let slots_after = (self.slabs.len() + 1) * SLAB_SLOTS;
        if self.slabs.try_reserve(1).is_err() || self.clock.try_reserve(slots_after - self.clock.len()).is_err() {
            return false;
        }
        // SAFETY: both layouts have a size; slot n and page n lie within their allocations.
        unsafe {
            let slots = alloc(slots_layout);
            let pages = alloc(pages_layout);
            if slots.is_null() || pages.is_null() {
                if !slots.is_null() {
                    dealloc(slots, slots_layout);
                }
                if !pages.is_null() {
                    dealloc(pages, pages_layout);
                }
                return false;
            }
            // From the last to the first, so that they are handed out in order.
            for n in (0..SLAB_SLOTS).rev() {
                let slot = slots.add(n * self.stride).cast::<Slot>();
                let page = sys::sqlite3_pcache_page {
                    pBuf: pages.add(n * self.page_bytes).cast(),
                    pExtra: slot.add(1).cast(),
                };
                slot.write(Slot { page, key: 0, pinned: false, referenced: false, position: 0, next_free: self.free });
                self.free = slot;
            }
            self.slabs.push(Slab { slots, pages });
        }
        true
    }

    /// Takes the slot's page out of the index and frees the slot.
    ///
    /// # Safety
    /// `slot` is one of this cache's and in the index.
    unsafe fn discard(&mut self, slot: *mut Slot) {
        // SAFETY: as the caller promises, so its key is within the index.
        unsafe {
            if let Some(place) = self.place((*slot).key) {
                *place = ptr::null_mut();
            }
            // The last of the clock takes its position.
            let position = (*slot).position as usize;
            self.clock.swap_remove(position);
            if let Some(moved) = self.clock.get(position) {
                (**moved).position = position as u32;
            }
            if (*slot).pinned {
                self.pinned -= 1;
            }
            (*slot).key = 0;
            (*slot).pinned = false;
            (*slot).next_free = self.free;
        }
        self.free = slot;
    }

    /// Moves the clock's hand by at most `steps` and discards the first page that is neither pinned nor referenced, or
    /// else the first that is not pinned; interior pages only if there are no others. False if all are pinned.
    fn evict(&mut self, steps: usize) -> bool {
        let mut second_choice: *mut Slot = ptr::null_mut();
        let mut last_choice: *mut Slot = ptr::null_mut();
        for _ in 0..steps.min(2 * self.clock.len()) {
            if self.hand >= self.clock.len() {
                self.hand = 0;
            }
            let slot = self.clock[self.hand];
            self.hand += 1;
            // SAFETY: slots that the clock has are live and in the index.
            unsafe {
                if (*slot).pinned {
                    continue;
                }
                if is_interior(slot) {
                    if last_choice.is_null() {
                        last_choice = slot;
                    }
                    continue;
                }
                if !(*slot).referenced {
                    self.discard(slot);
                    return true;
                }
                (*slot).referenced = false;
                if second_choice.is_null() {
                    second_choice = slot;
                }
            }
        }
        let choice = if second_choice.is_null() { last_choice } else { second_choice };
        if choice.is_null() {
            return false;
        }
        // SAFETY: as above; nothing was discarded since.
        unsafe { self.discard(choice) };
        true
    }

    /// The page of `key`, pinned; made if it is missing and `create` is not 0.
    fn fetch(&mut self, key: c_uint, create: c_int) -> *mut Slot {
        let found = self.find(key);
        // SAFETY: slots in the index or on the free list are live.
        unsafe {
            if !found.is_null() {
                if !(*found).pinned {
                    (*found).pinned = true;
                    self.pinned += 1;
                }
                (*found).referenced = true;
                return found;
            }
            if create == 0 || !self.reach(key) {
                return ptr::null_mut();
            }
            if self.purgeable && self.clock.len() >= self.size_max && !self.evict(CLOCK_STEPS_MAX) && create == 1 {
                // SQLite asks again with 2 once it has tried to make room.
                return ptr::null_mut();
            }
            // A cache that is not purgeable is the only place of its pages.
            if self.free.is_null() && !self.grow() && !(self.purgeable && self.evict(usize::MAX)) {
                return ptr::null_mut();
            }
            let slot = self.free;
            self.free = (*slot).next_free;
            (*slot).key = key;
            (*slot).pinned = true;
            (*slot).referenced = true;
            // SQLite takes a header that starts with a null pointer for a new one.
            (*slot).page.pExtra.cast::<u64>().write(0);
            (*slot).position = self.clock.len() as u32;
            self.clock.push(slot);
            self.note(slot, key);
            self.pinned += 1;
            slot
        }
    }
}

/// Whether a page looks like an interior one of a b-tree, or is the first. There are few, and each look-up needs one of every
/// level; the clock would discard the oldest of them first, the roots, when a cache overflows for the first time.
///
/// # Safety
/// `slot` is live and has a key.
unsafe fn is_interior(slot: *const Slot) -> bool {
    // SAFETY: as the caller promises; the buffer has a page's size.
    unsafe { (*slot).key == 1 || matches!((*slot).page.pBuf.cast::<u8>().read(), 2 | 5) }
}

/// # Safety
/// `cache` came from `x_create` and was not destroyed.
unsafe fn cache<'a>(cache: *mut sys::sqlite3_pcache) -> &'a mut Cache {
    // SAFETY: as the caller promises; SQLite does not re-enter the cache's methods.
    unsafe { &mut *cache.cast::<Cache>() }
}

/// Pages of a cache that are pinned: in use, or changed since the last commit.
///
/// # Safety
/// `this` is a live cache that these methods made.
pub(super) unsafe fn pinned(this: *mut sys::sqlite3_pcache) -> usize {
    // SAFETY: as the caller promises.
    unsafe { cache(this) }.pinned
}

/// The bytes of page `key`, if it is there. It counts as looked up.
///
/// # Safety
/// `this` is a live cache that these methods made, `'p` ends before SQLite is called again, and it fills what it fetches.
#[inline]
pub(super) unsafe fn peek<'p>(this: *mut sys::sqlite3_pcache, key: c_uint) -> Option<&'p [u8]> {
    // SAFETY: as the caller promises; a slot in the index has a buffer of a page's size.
    unsafe {
        let cache = cache(this);
        let slot = *cache.index.get(key as usize).filter(|slot| !slot.is_null())?;
        (*slot).referenced = true;
        Some(core::slice::from_raw_parts((*slot).page.pBuf.cast(), cache.page_bytes))
    }
}

unsafe extern "C-unwind" fn x_init(_: *mut c_void) -> c_int {
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_shutdown(_: *mut c_void) {}

unsafe extern "C-unwind" fn x_create(
    page_bytes: c_int,
    extra_bytes: c_int,
    purgeable: c_int,
) -> *mut sys::sqlite3_pcache {
    let (Ok(page_bytes), Ok(extra_bytes)) = (usize::try_from(page_bytes), usize::try_from(extra_bytes)) else {
        return ptr::null_mut();
    };
    let extra_bytes = extra_bytes.next_multiple_of(8);
    let cache = Cache {
        page_bytes,
        stride: (size_of::<Slot>() + extra_bytes).next_multiple_of(8),
        extra_bytes,
        purgeable: purgeable != 0,
        size_max: usize::MAX,
        pinned: 0,
        highest: 0,
        clock: Vec::new(),
        hand: 0,
        index: Vec::new(),
        pending_key: (PENDING_BYTE / page_bytes.max(1) + 1) as c_uint,
        pending: ptr::null_mut(),
        free: ptr::null_mut(),
        slabs: Vec::new(),
    };
    debug_assert!(cache.extra_bytes >= size_of::<u64>());
    Box::into_raw(Box::new(cache)).cast()
}

unsafe extern "C-unwind" fn x_cachesize(this: *mut sys::sqlite3_pcache, pages: c_int) {
    // SAFETY: SQLite passes a live cache.
    let cache = unsafe { cache(this) };
    cache.size_max = usize::try_from(pages).unwrap_or(0).max(1);
    while cache.purgeable && cache.clock.len() > cache.size_max && cache.evict(usize::MAX) {}
}

unsafe extern "C-unwind" fn x_pagecount(this: *mut sys::sqlite3_pcache) -> c_int {
    // SAFETY: SQLite passes a live cache.
    c_int::try_from(unsafe { cache(this) }.clock.len()).unwrap_or(c_int::MAX)
}

unsafe extern "C-unwind" fn x_fetch(
    this: *mut sys::sqlite3_pcache,
    key: c_uint,
    create: c_int,
) -> *mut sys::sqlite3_pcache_page {
    // SAFETY: SQLite passes a live cache.
    unsafe { cache(this) }.fetch(key, create).cast()
}

unsafe extern "C-unwind" fn x_unpin(
    this: *mut sys::sqlite3_pcache,
    page: *mut sys::sqlite3_pcache_page,
    discard: c_int,
) {
    // SAFETY: SQLite passes a live cache and a page that it fetched from it.
    unsafe {
        let cache = cache(this);
        let slot = page.cast::<Slot>();
        if (*slot).pinned {
            (*slot).pinned = false;
            cache.pinned -= 1;
        }
        if discard != 0 || (cache.purgeable && cache.clock.len() > cache.size_max) {
            cache.discard(slot);
        }
    }
}

unsafe extern "C-unwind" fn x_rekey(
    this: *mut sys::sqlite3_pcache,
    page: *mut sys::sqlite3_pcache_page,
    old: c_uint,
    new: c_uint,
) {
    // SAFETY: SQLite passes a live cache and a page of it under `old`. It renames to the number of another page of
    // the image or to that of the page that no image has, so the index reaches it.
    unsafe {
        let cache = cache(this);
        let slot = page.cast::<Slot>();
        let present = cache.find(new);
        if !present.is_null() && present != slot {
            cache.discard(present);
        }
        if let Some(place) = cache.place(old) {
            *place = ptr::null_mut();
        }
        (*slot).key = new;
        cache.note(slot, new);
    }
}

unsafe extern "C-unwind" fn x_truncate(this: *mut sys::sqlite3_pcache, limit: c_uint) {
    // SAFETY: SQLite passes a live cache.
    let cache = unsafe { cache(this) };
    // SQLite calls this at each commit with the page after the last: nothing to do then.
    if limit > cache.highest {
        return;
    }
    for key in limit..=cache.highest {
        let slot = cache.find(key);
        if !slot.is_null() {
            // SAFETY: it is in the index.
            unsafe { cache.discard(slot) };
        }
    }
    cache.highest = limit.saturating_sub(1);
}

unsafe extern "C-unwind" fn x_destroy(this: *mut sys::sqlite3_pcache) {
    // SAFETY: SQLite destroys a cache once and uses none of its pages afterwards; the layouts are those of `grow`.
    unsafe {
        let cache = Box::from_raw(this.cast::<Cache>());
        if let (Some(slots), Some(pages)) = (cache.slots_layout(), cache.pages_layout()) {
            for slab in &cache.slabs {
                dealloc(slab.slots, slots);
                dealloc(slab.pages, pages);
            }
        }
    }
}

/// For `sqlite3_db_release_memory` alone.
unsafe extern "C-unwind" fn x_shrink(_: *mut sys::sqlite3_pcache) {}

/// The methods for `SQLITE_CONFIG_PCACHE2`.
pub(super) const METHODS: sys::sqlite3_pcache_methods2 = sys::sqlite3_pcache_methods2 {
    iVersion: 1,
    pArg: ptr::null_mut(),
    xInit: Some(x_init),
    xShutdown: Some(x_shutdown),
    xCreate: Some(x_create),
    xCachesize: Some(x_cachesize),
    xPagecount: Some(x_pagecount),
    xFetch: Some(x_fetch),
    xUnpin: Some(x_unpin),
    xRekey: Some(x_rekey),
    xTruncate: Some(x_truncate),
    xDestroy: Some(x_destroy),
    xShrink: Some(x_shrink),
};

#[cfg(test)]
mod tests;
