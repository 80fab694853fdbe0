//! The cache against a model.
use super::*;
use crate::rng::Rng;
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 512;
const EXTRA_BYTES: usize = 24;
const SIZE_MAX: usize = 100;
/// Page numbers in use: several times what the cache may hold.
const KEYS: usize = 700;

/// A cache, and what was written to each page that must still be there or may have been evicted.
struct Played {
    cache: *mut sys::sqlite3_pcache,
    pages: BTreeMap<c_uint, Written>,
    size_max: usize,
}

struct Written {
    page: *mut sys::sqlite3_pcache_page,
    tag: u64,
    pinned: bool,
}

impl Played {
    fn new() -> Self {
        // SAFETY: the cache is destroyed once, by `drop`.
        let cache = unsafe { x_create(PAGE_BYTES as c_int, EXTRA_BYTES as c_int, 1) };
        let mut played = Self { cache, pages: BTreeMap::new(), size_max: 0 };
        played.resize(SIZE_MAX);
        played
    }

    fn resize(&mut self, size_max: usize) {
        // SAFETY: the cache is live.
        unsafe { x_cachesize(self.cache, size_max as c_int) };
        self.size_max = size_max;
    }

    fn count(&self) -> usize {
        // SAFETY: the cache is live.
        unsafe { x_pagecount(self.cache) as usize }
    }

    fn pinned(&self) -> Vec<c_uint> {
        self.pages.iter().filter(|(_, page)| page.pinned).map(|(key, _)| *key).collect()
    }

    /// Fetches a page and checks what is in it: what was written, or the mark of a new one.
    fn fetch(&mut self, key: c_uint, create: c_int, tag: u64, context: &str) {
        // SAFETY: the cache is live; buffer and extra of a fetched page hold as many bytes as were asked for.
        unsafe {
            let page = x_fetch(self.cache, key, create);
            let known = self.pages.get(&key);
            assert!(!page.is_null() || !known.is_some_and(|page| page.pinned), "{context}: page {key} is pinned");
            if page.is_null() {
                assert!(create < 2, "{context}: page {key} was refused");
                self.pages.remove(&key);
                return;
            }
            let (buffer, extra) = ((*page).pBuf.cast::<u64>(), (*page).pExtra.cast::<u64>());
            assert!(buffer.addr().is_multiple_of(PAGE_BYTES), "{context}: the buffer of page {key}");
            let found = extra.read();
            match known {
                Some(known) if found != 0 => {
                    let whole = (0..PAGE_BYTES / 8).all(|word| buffer.add(word).read() == known.tag);
                    assert!(found == known.tag && whole, "{context}: page {key} holds other bytes");
                    assert!(!known.pinned || known.page == page, "{context}: page {key} has moved");
                }
                Some(known) => assert!(!known.pinned, "{context}: page {key} was pinned and is new"),
                None => assert!(found == 0 && create > 0, "{context}: page {key} came out of nothing"),
            }
            (0..PAGE_BYTES / 8).for_each(|word| buffer.add(word).write(tag));
            (0..EXTRA_BYTES / 8).for_each(|word| extra.add(word).write(tag));
            self.pages.insert(key, Written { page, tag, pinned: true });
        }
    }

    fn unpin(&mut self, key: c_uint, discard: bool) {
        let Some(page) = self.pages.get_mut(&key).filter(|page| page.pinned) else { return };
        page.pinned = false;
        // SAFETY: the page was fetched from this cache and is pinned.
        unsafe { x_unpin(self.cache, page.page, discard.into()) };
        if discard {
            self.pages.remove(&key);
        }
    }

    fn rekey(&mut self, old: c_uint, new: c_uint) {
        if old == new || !self.pages.get(&old).is_some_and(|page| page.pinned) {
            return;
        }
        // SQLite never renames onto a page that is in use.
        self.unpin(new, true);
        let Some(page) = self.pages.remove(&old) else { return };
        // SAFETY: the page was fetched from this cache under `old`, and the index reaches `new`.
        unsafe { x_rekey(self.cache, page.page, old, new) };
        self.pages.insert(new, page);
    }

    fn truncate(&mut self, limit: c_uint) {
        // SAFETY: the cache is live.
        unsafe { x_truncate(self.cache, limit) };
        self.pages.retain(|key, _| *key < limit);
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        // SAFETY: the cache is live, and none of its pages is used afterwards.
        unsafe { x_destroy(self.cache) };
    }
}

#[test]
fn pages_keep_their_bytes_until_they_are_evicted_and_pinned_ones_stay() {
    let mut rng = Rng::new(91);
    let mut played = Played::new();
    played.fetch(KEYS as c_uint, 2, 1, "first");
    played.unpin(KEYS as c_uint, false);
    let pending = (PENDING_BYTE / PAGE_BYTES + 1) as c_uint;
    for step in 1..60_000_u64 {
        let context = format!("step {step}, {rng}");
        let keys = if rng.one_in(4) { KEYS } else { 150 };
        let key = 1 + rng.below(keys) as c_uint;
        match rng.below(40) {
            0..18 => played.fetch(key, *rng.pick(&[0, 1, 2, 2]), step, &context),
            18..34 => {
                // Some pages are held for long, as by open cursors; of the others a few at a time, sometimes many.
                let mut held = played.pinned();
                if !rng.one_in(500) {
                    held.retain(|key| !key.is_multiple_of(16));
                }
                let many = if rng.one_in(2_000) { 2 * SIZE_MAX } else { 6 };
                if held.len() > many {
                    let discard = rng.one_in(8);
                    held.into_iter().for_each(|key| played.unpin(key, discard));
                }
            }
            34 => played.rekey(key, 1 + rng.below(150) as c_uint),
            35 => {
                // As when siblings are rebalanced: by way of the page that no image has.
                played.fetch(key, 2, step, &context);
                played.rekey(key, pending);
                played.rekey(pending, key);
                played.unpin(key, false);
            }
            36 if rng.one_in(20) => played.truncate(key),
            37 if rng.one_in(200) => played.resize(1 + rng.below(2 * SIZE_MAX)),
            _ if !key.is_multiple_of(16) => played.unpin(key, false),
            _ => {}
        }
        let pinned = played.pinned().len();
        assert!(played.count() >= pinned, "{context}");
        let limit = played.size_max.max(pinned);
        // The clock inspects few slots at each look-up, so the cache may be over its size while pages are held.
        assert!(pinned > 0 || played.count() <= limit, "{context}: {} pages of {limit}", played.count());
    }
}
