//! SQLite's heap: size classes with free lists over the global allocator.
//!
//! A freed block is the first to be handed out again, so that a call which does what the last one did finds its
//! memory at the same addresses: fewer heap pages differ when the message ends, and each costs 1,000 instructions.
//! When the heap is full the answer is a null pointer, which SQLite turns into `SQLITE_NOMEM`.
#![allow(unsafe_code)]

use super::sys;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr;
use std::alloc::{Layout, alloc, dealloc};

/// Bytes in front of a block: what was asked for rounded up to its class, or to 8 above the classes.
const HEADER_BYTES: usize = 8;
/// Up to here the classes are 16 bytes apart, then there are four to each doubling.
const FINE_BYTES_MAX: usize = 128;
const FINE_CLASSES: usize = FINE_BYTES_MAX / 16;
/// Larger blocks go to the global allocator.
const CLASS_BYTES_MAX: usize = 16_384;
const CLASSES: usize = class_of(CLASS_BYTES_MAX) + 1;
/// Bytes that are taken from the global allocator at a time, aligned to a heap page: what a connection allocates first,
/// its pager among it, which changes with each commit, then lies in one.
const CHUNK_BYTES: usize = 65_536;
const CHUNK_ALIGN: usize = 4_096;

const _: () = assert!(size_of_class(CLASSES - 1) == CLASS_BYTES_MAX);
const _: () = assert!(CLASS_BYTES_MAX + HEADER_BYTES <= CHUNK_BYTES);

/// The class of a block of `bytes`, which are at most [`CLASS_BYTES_MAX`].
const fn class_of(bytes: usize) -> usize {
    if bytes <= FINE_BYTES_MAX {
        if bytes == 0 { 0 } else { bytes.div_ceil(16) - 1 }
    } else {
        let log2 = (bytes - 1).ilog2() as usize;
        FINE_CLASSES + (log2 - 7) * 4 + ((bytes - 1) >> (log2 - 2)) - 4
    }
}

const fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES {
        (class + 1) * 16
    } else {
        let step = class - FINE_CLASSES;
        let base = FINE_BYTES_MAX << (step / 4);
        base + (step % 4 + 1) * (base / 4)
    }
}

struct Arena {
    /// Per class the first free block, which starts with a pointer to the next.
    free: [*mut u8; CLASSES],
    bump: *mut u8,
    bump_left: usize,
}

/// The one arena of the process, as SQLite has one set of memory methods.
struct Global(UnsafeCell<Arena>);

// SAFETY: SQLite is built single-threaded; on wasm32 there are no threads, elsewhere every entry into SQLite holds
// the process-wide lock of `sqlite::lock`.
unsafe impl Sync for Global {}

static ARENA: Global =
    Global(UnsafeCell::new(Arena { free: [ptr::null_mut(); CLASSES], bump: ptr::null_mut(), bump_left: 0 }));

fn large_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEADER_BYTES)?, 8).ok()
}

/// A block of at least `bytes`, 8-aligned; null if there is no memory.
fn allocate(bytes: usize) -> *mut u8 {
    #[cfg(not(target_arch = "wasm32"))]
    if fault::due() {
        return ptr::null_mut();
    }
    if bytes > CLASS_BYTES_MAX {
        let bytes = bytes.next_multiple_of(8);
        let Some(layout) = large_layout(bytes) else { return ptr::null_mut() };
        // SAFETY: the layout's size is not zero; the header lies within the block.
        unsafe {
            let start = alloc(layout);
            if start.is_null() {
                return start;
            }
            start.cast::<u32>().write(bytes as u32);
            return start.add(HEADER_BYTES);
        }
    }
    let class = class_of(bytes);
    // SAFETY: the arena is ours alone (see `Global`); a free block is at least 16 bytes and starts with its link.
    unsafe {
        let arena = &mut *ARENA.0.get();
        let head = arena.free[class];
        if !head.is_null() {
            arena.free[class] = head.cast::<*mut u8>().read();
            return head;
        }
        let size = size_of_class(class);
        let whole = size + HEADER_BYTES;
        if arena.bump_left < whole {
            let chunk = alloc(Layout::from_size_align_unchecked(CHUNK_BYTES, CHUNK_ALIGN));
            if chunk.is_null() {
                return chunk;
            }
            arena.bump = chunk;
            arena.bump_left = CHUNK_BYTES;
        }
        let start = arena.bump;
        arena.bump = start.add(whole);
        arena.bump_left -= whole;
        start.cast::<u32>().write(size as u32);
        start.add(HEADER_BYTES)
    }
}

/// # Safety
/// `block` came from [`allocate`] and was not released since.
unsafe fn size(block: *mut u8) -> usize {
    // SAFETY: the header lies in front of every block.
    unsafe { block.sub(HEADER_BYTES).cast::<u32>().read() as usize }
}

/// # Safety
/// `block` came from [`allocate`] and was not released since.
unsafe fn release(block: *mut u8) {
    // SAFETY: as the caller promises; the layout is the one of the allocation.
    unsafe {
        let bytes = size(block);
        if bytes > CLASS_BYTES_MAX {
            dealloc(block.sub(HEADER_BYTES), Layout::from_size_align_unchecked(bytes + HEADER_BYTES, 8));
        } else {
            let arena = &mut *ARENA.0.get();
            let class = class_of(bytes);
            block.cast::<*mut u8>().write(arena.free[class]);
            arena.free[class] = block;
        }
    }
}

/// Failing allocations of SQLite on purpose, for tests. Each thread has its own count.
#[cfg(not(target_arch = "wasm32"))]
pub mod fault {
    use core::cell::Cell;
    use core::ops::Range;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
        static FAILING: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }

    /// Allocations of this thread so far, failed ones included.
    pub fn count() -> u64 {
        COUNT.get()
    }

    /// Makes the allocations with these numbers from now on fail, counted from 1; an empty range none.
    pub fn fail(allocations: Range<u64>) {
        let now = COUNT.get();
        FAILING.set((now.saturating_add(allocations.start), now.saturating_add(allocations.end)));
    }

    pub(in crate::sqlite) fn due() -> bool {
        let count = COUNT.get() + 1;
        COUNT.set(count);
        let (start, end) = FAILING.get();
        (start..end).contains(&count)
    }
}

unsafe extern "C-unwind" fn x_malloc(bytes: c_int) -> *mut c_void {
    match usize::try_from(bytes) {
        Ok(bytes) => allocate(bytes).cast(),
        Err(_) => ptr::null_mut(),
    }
}

unsafe extern "C-unwind" fn x_free(block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: SQLite frees what it got from `x_malloc` or `x_realloc`, once.
        unsafe { release(block.cast()) }
    }
}

unsafe extern "C-unwind" fn x_realloc(block: *mut c_void, bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else { return ptr::null_mut() };
    // SAFETY: SQLite passes a block of ours; both blocks hold at least the bytes copied and do not overlap.
    unsafe {
        let old = size(block.cast());
        if bytes <= old && bytes * 2 > old {
            return block;
        }
        let new = allocate(bytes);
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new, old.min(bytes));
            release(block.cast());
        }
        new.cast()
    }
}

unsafe extern "C-unwind" fn x_size(block: *mut c_void) -> c_int {
    if block.is_null() {
        return 0;
    }
    // SAFETY: a block of ours, as SQLite passes no other.
    unsafe { size(block.cast()) as c_int }
}

unsafe extern "C-unwind" fn x_roundup(bytes: c_int) -> c_int {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= CLASS_BYTES_MAX => size_of_class(class_of(bytes)) as c_int,
        Ok(bytes) => bytes.checked_next_multiple_of(8).and_then(|n| c_int::try_from(n).ok()).unwrap_or(c_int::MAX - 7),
        Err(_) => 0,
    }
}

unsafe extern "C-unwind" fn x_init(_: *mut c_void) -> c_int {
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_shutdown(_: *mut c_void) {}

/// The methods for `SQLITE_CONFIG_MALLOC`.
pub(super) const METHODS: sys::sqlite3_mem_methods = sys::sqlite3_mem_methods {
    xMalloc: Some(x_malloc),
    xFree: Some(x_free),
    xRealloc: Some(x_realloc),
    xSize: Some(x_size),
    xRoundup: Some(x_roundup),
    xInit: Some(x_init),
    xShutdown: Some(x_shutdown),
    pAppData: ptr::null_mut(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for bytes in 0..=CLASS_BYTES_MAX {
            let class = class_of(bytes);
            assert!(size_of_class(class) >= bytes, "{bytes} bytes do not fit class {class}");
            assert!(class == 0 || size_of_class(class - 1) < bytes, "{bytes} bytes would fit class {}", class - 1);
        }
    }

    #[test]
    fn blocks_do_not_overlap_and_keep_their_bytes_through_realloc() {
        let _lock = super::super::lock::enter();
        let mut rng = Rng::new(101);
        let mut live: Vec<(*mut u8, usize, u8)> = Vec::new();
        for step in 0..20_000 {
            let bytes = 1 + if rng.one_in(50) { rng.below(70_000) } else { rng.below(600) };
            // SAFETY: each block is used within the size asked for and released once.
            unsafe {
                match rng.below(3) {
                    0 if !live.is_empty() => {
                        let (block, old, fill) = live.swap_remove(rng.below(live.len()));
                        assert!(
                            core::slice::from_raw_parts(block, old).iter().all(|b| *b == fill),
                            "step {step}, {rng}"
                        );
                        x_free(block.cast());
                    }
                    1 if !live.is_empty() => {
                        let at = rng.below(live.len());
                        let (block, old, fill) = live[at];
                        let new = x_realloc(block.cast(), bytes as c_int).cast::<u8>();
                        let kept = old.min(bytes);
                        assert!(
                            core::slice::from_raw_parts(new, kept).iter().all(|b| *b == fill),
                            "step {step}, {rng}"
                        );
                        new.write_bytes(fill, bytes);
                        live[at] = (new, bytes, fill);
                    }
                    _ => {
                        let block = x_malloc(bytes as c_int).cast::<u8>();
                        assert!(x_size(block.cast()) as usize >= bytes && block.addr() % 8 == 0);
                        let fill = step as u8;
                        block.write_bytes(fill, bytes);
                        live.push((block, bytes, fill));
                    }
                }
            }
        }
        for (block, _, _) in live {
            // SAFETY: still live.
            unsafe { x_free(block.cast()) };
        }
    }
}
