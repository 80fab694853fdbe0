//! The table of page hashes, its upkeep by commits, and the scan: against a model, with faults and damage.
use icsql_engine::stable::digest::{Digest, page_hash};
use icsql_engine::stable::fault::{Fault, FaultMemory, message};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::page_hashes::{CommitHashes, PageHashes, PageHashesError, Rebuild, Resize};
use icsql_engine::stable::superblock::Superblock;
use icsql_engine::stable::verify::{DAMAGED_MAX, Damaged, Verifier};
use icsql_engine::stable::{Memory, MemoryError, Operation, WASM_PAGE_BYTES};

#[path = "support/rng.rs"]
mod rng;
use rng::Rng;

const PAGE_BYTES: u32 = 512;

/// An image with its superblock and hashes, written as a commit does.
struct Store {
    memory: FaultMemory,
    superblock: Superblock,
    table: PageHashes<FaultMemory>,
    hashes: FaultMemory,
    collected: CommitHashes,
    verifier: Verifier,
}

impl Store {
    fn new() -> Self {
        let (memory, hashes) = (FaultMemory::default(), FaultMemory::default());
        let superblock = Superblock::create(&memory, PAGE_BYTES).unwrap();
        let table = PageHashes::open(hashes.clone()).unwrap();
        Self { memory, superblock, table, hashes, collected: CommitHashes::new(), verifier: Verifier::new() }
    }

    fn commit(&mut self, new_pages: u32, pages: &[(u32, Vec<u8>)]) {
        let old_pages = self.superblock.image_pages();
        let end = self.superblock.page_offset(new_pages) + u64::from(PAGE_BYTES);
        let missing = end.div_ceil(WASM_PAGE_BYTES).saturating_sub(self.memory.size());
        self.memory.grow(missing).unwrap();
        self.table.ensure_capacity(new_pages).unwrap();
        for page_number in old_pages + 1..=new_pages {
            let offset = self.superblock.page_offset(page_number);
            self.memory.write(offset, &[0; PAGE_BYTES as usize]).unwrap();
        }
        for (page_number, page) in pages {
            self.collected.page_written(*page_number, page);
            if *page_number <= new_pages {
                self.memory.write(self.superblock.page_offset(*page_number), page).unwrap();
            }
        }
        let resize = Resize { page_bytes: PAGE_BYTES, old_pages, new_pages };
        let (verifier, digest) = (&mut self.verifier, self.superblock.digest());
        let digest = self.collected.apply(&self.table, resize, digest, |change| verifier.page_changed(change)).unwrap();
        self.verifier.image_resized(new_pages);
        self.superblock = self.superblock.after_commit(new_pages, digest).unwrap();
        self.superblock.store(&self.memory).unwrap();
    }

    fn page(&self, page_number: u32) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES as usize];
        self.memory.read(self.superblock.page_offset(page_number), &mut page).unwrap();
        page
    }

    /// Whether every stored hash is its page's and the digest is their sum.
    fn check(&self, context: &str) {
        let mut digest = Digest::default();
        for page_number in 1..=self.superblock.image_pages() {
            let hash = page_hash(page_number, &self.page(page_number));
            assert_eq!(self.table.read(page_number), Ok(hash), "page {page_number}, {context}");
            digest = digest.with(hash);
        }
        assert_eq!(self.superblock.digest(), digest, "{context}");
    }

    fn damage(&self, page_number: u32) {
        let mut page = self.page(page_number);
        page[100] ^= 0x10;
        self.memory.write(self.superblock.page_offset(page_number), &page).unwrap();
    }

    fn scan_chunk(&mut self, pages: u32) -> icsql_engine::stable::verify::Progress {
        let bytes = u64::from(pages * PAGE_BYTES);
        self.verifier.verify_chunk(&self.memory, &self.superblock, &self.table, bytes).unwrap()
    }
}

fn random_commit(store: &mut Store, rng: &mut Rng) {
    let old = store.superblock.image_pages() as usize;
    let new = match rng.below(6) {
        0 => rng.below(old + 1),
        1 => old + rng.below(700),
        _ => old,
    };
    let mut pages = Vec::new();
    if new > 0 {
        let mut number = 1 + rng.below(new);
        for _ in 0..rng.below(8) {
            for _ in 0..=rng.below(4) / 3 {
                pages.push((number as u32, rng.bytes(8).repeat(PAGE_BYTES as usize / 8)));
            }
            // Neighbours, jumps and pages beyond the new size; some pages twice.
            number = if rng.below(2) == 0 { number + 1 } else { 1 + rng.below(new + 40) };
        }
    }
    store.commit(new as u32, &pages);
}

#[test]
fn commits_keep_the_digest() {
    let mut rng = Rng::new(41);
    let mut store = Store::new();
    for step in 0..60 {
        random_commit(&mut store, &mut rng);
        store.check(&format!("step {step}, {rng}"));
    }
    store.commit(0, &[]);
    assert_eq!(store.superblock.digest(), Digest::default());
}

#[test]
fn a_scan_survives_commits() {
    for seed in 51..56 {
        let mut rng = Rng::new(seed);
        let mut store = Store::new();
        store.commit(900, &[(3, vec![7; PAGE_BYTES as usize])]);
        let mut last = 0;
        let mut chunks = 0;
        let progress = loop {
            let progress = store.scan_chunk(1 + rng.below(60) as u32);
            chunks += 1;
            assert!(progress.bytes > last || progress.complete, "no progress, {rng}");
            last = progress.bytes;
            if progress.complete {
                break progress;
            }
            random_commit(&mut store, &mut rng);
        };
        assert!(chunks > 1, "{rng}");
        assert_eq!((progress.damaged_total, progress.digest_matches), (0, Some(true)), "{rng}");
        assert_eq!(progress.pages_done, progress.pages_total, "{rng}");
        // Complete, it stays what it was.
        random_commit(&mut store, &mut rng);
        assert_eq!(store.scan_chunk(1).digest_matches, Some(true));
    }
}

#[test]
fn a_scan_names_damaged_pages_and_goes_on() {
    let mut rng = Rng::new(61);
    let mut store = Store::new();
    store.commit(600, &[]);
    let expected: Vec<(u32, u64)> =
        [17, 18, 600].iter().map(|&number| (number, store.table.read(number).unwrap())).collect();
    for (page_number, _) in &expected {
        store.damage(*page_number);
    }
    while !store.scan_chunk(50).complete {
        let page = rng.bytes(PAGE_BYTES as usize);
        store.commit(600, &[(1 + rng.below(16) as u32, page)]);
    }
    let progress = store.verifier.progress(&store.superblock);
    let damaged: Vec<(u32, u64)> = progress.damaged.iter().map(|page| (page.page_number, page.expected)).collect();
    assert_eq!(damaged, expected);
    for Damaged { page_number, found, .. } in progress.damaged {
        assert_eq!(found, page_hash(page_number, &store.page(page_number)));
    }
    assert_eq!(progress.damaged_total, 3);
    // The stored hashes are whole: it is the pages that are damaged.
    assert_eq!(progress.digest_matches, Some(true));
}

#[test]
fn a_damaged_table_shows() {
    let mut store = Store::new();
    store.commit(10, &[]);
    store.table.write(4, 99).unwrap();
    let progress = store.scan_chunk(100);
    assert_eq!((progress.damaged_total, progress.damaged[0].page_number), (1, 4));
    assert_eq!(progress.digest_matches, Some(false));
}

#[test]
fn the_list_of_damage_is_bounded_and_its_count_is_not() {
    let mut store = Store::new();
    store.commit(300, &[]);
    (1..=250).for_each(|page_number| store.damage(page_number));
    let progress = store.scan_chunk(1_000);
    assert_eq!((progress.damaged.len(), progress.damaged_total), (DAMAGED_MAX, 250));
}

#[test]
fn a_scan_starts_at_least_one_page_and_ends_on_an_empty_image() {
    let mut store = Store::new();
    let progress = store.scan_chunk(0);
    assert_eq!((progress.complete, progress.digest_matches, progress.bytes), (true, Some(true), 0));
    store.verifier = Verifier::new();
    store.commit(2, &[]);
    assert_eq!(store.scan_chunk(0).pages_done, 1);
    assert!(store.scan_chunk(0).complete);
}

#[test]
fn a_failed_read_leaves_the_scan_where_it_was() {
    let mut store = Store::new();
    store.commit(20, &[]);
    store.damage(3);
    store.memory.fail(Operation::Read, 8, Fault::Error);
    let failed = store.verifier.verify_chunk(&store.memory, &store.superblock, &store.table, 1 << 20);
    assert!(matches!(failed, Err(PageHashesError::Memory(MemoryError::Injected { .. }))));
    assert_eq!(store.verifier.progress(&store.superblock).pages_done, 7);
    let progress = store.scan_chunk(100);
    assert_eq!((progress.pages_done, progress.damaged_total, progress.digest_matches), (20, 1, Some(true)));
}

#[test]
fn hashes_can_be_rebuilt_in_chunks() {
    let mut rng = Rng::new(71);
    let mut store = Store::new();
    for _ in 0..10 {
        random_commit(&mut store, &mut rng);
    }
    store.commit(1_300, &[]);
    let table = PageHashes::open(HeapMemory::new()).unwrap();
    let mut rebuild = Rebuild::new();
    let mut chunks = 1;
    let digest = loop {
        let bytes = u64::from(PAGE_BYTES) * 700;
        match rebuild.chunk(&store.memory, &store.superblock, &table, bytes).unwrap() {
            Some(digest) => break digest,
            None => chunks += 1,
        }
    };
    assert_eq!((chunks, digest), (2, store.superblock.digest()), "{rng}");
    let (mut rebuilt, mut kept) = (vec![0; 1_300], vec![1; 1_300]);
    table.read_run(1, &mut rebuilt).unwrap();
    store.table.read_run(1, &mut kept).unwrap();
    assert!(rebuilt == kept, "{rng}");
}

#[test]
fn a_single_page_commit_touches_one_entry() {
    let mut store = Store::new();
    store.commit(100, &[]);
    let before = store.hashes.counts();
    store.commit(100, &[(50, vec![1; PAGE_BYTES as usize])]);
    let after = store.hashes.counts();
    assert_eq!((after.reads - before.reads, after.writes - before.writes, after.growths), (1, 1, before.growths));
    assert_eq!((after.bytes_read - before.bytes_read, after.bytes_written - before.bytes_written), (8, 8));
    // Neighbours go together.
    let neighbours: Vec<(u32, Vec<u8>)> = (20..28).map(|number| (number, vec![2; PAGE_BYTES as usize])).collect();
    store.commit(100, &neighbours);
    let last = store.hashes.counts();
    assert_eq!((last.reads - after.reads, last.writes - after.writes), (1, 1));
    store.check("neighbours");
}

#[test]
fn bytes_are_frozen() {
    let mut store = Store::new();
    // Page 2 is not written, so it is zeros. The hashes were computed by another program, from the documentation.
    store
        .commit(3, &[(1, vec![0xa5; PAGE_BYTES as usize]), (3, (0..=255).cycle().take(PAGE_BYTES as usize).collect())]);
    let mut expected = Vec::new();
    expected.extend(b"ICSQL\0PH");
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend(0xcdcc_11f4_bd79_7e0d_u64.to_le_bytes());
    expected.extend(0xb8fb_a342_8d0a_abf4_u64.to_le_bytes());
    expected.extend(0x748d_7cc5_d77f_bebe_u64.to_le_bytes());
    expected.extend([0; 8]);
    let bytes = store.hashes.heap().to_bytes();
    assert!(bytes.starts_with(&expected), "{:02x?}", &bytes[..48]);
    assert_eq!(store.superblock.digest().value(), 0xfb55_31fd_2203_e8bf);
}

#[test]
fn the_table_refuses_what_it_does_not_know() {
    let memory = HeapMemory::new();
    PageHashes::open(memory.clone()).unwrap().write(1, 0x0102_0304_0506_0708).unwrap();
    let bytes = memory.to_bytes();
    assert_eq!(bytes[..24], *b"ICSQL\0PH\x01\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01");
    for bit in 0..128 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let memory = HeapMemory::from_bytes(flipped.clone());
        let refused = PageHashes::open(memory.clone()).err();
        let expected = if bit < 64 {
            matches!(refused, Some(PageHashesError::Foreign { .. }))
        } else {
            matches!(refused, Some(PageHashesError::UnknownLayout { .. }))
        };
        assert!(expected, "bit {bit}: {refused:?}");
        assert!(memory.to_bytes() == flipped);
    }
    let table = PageHashes::open(memory).unwrap();
    assert_eq!(table.read(0), Err(PageHashesError::PageZero));
    assert_eq!(table.write_run(0, &[1]), Err(PageHashesError::PageZero));
    let last = (WASM_PAGE_BYTES as u32 - 16) / 8;
    assert!(table.read(last).is_ok());
    assert!(matches!(table.read(last + 1), Err(PageHashesError::Memory(MemoryError::OutOfBounds { .. }))));
    table.ensure_capacity(last).unwrap();
    assert!(table.read(last + 1).is_err());
    table.ensure_capacity(last + 1).unwrap();
    assert_eq!(table.read(last + 1), Ok(0));
}

#[test]
fn capacity_is_refused_before_anything_is_written() {
    let memory = HeapMemory::with_limit(1);
    let table = PageHashes::open(memory.clone()).unwrap();
    let before = memory.to_bytes();
    let refused = table.ensure_capacity(10_000);
    assert_eq!(refused, Err(PageHashesError::Memory(MemoryError::GrowFailed { size: 1, pages: 1 })));
    assert!(memory.to_bytes() == before);
}

#[test]
fn a_trap_takes_the_message_back() {
    let memory = FaultMemory::default();
    memory.grow(1).unwrap();
    memory.write(4_000, &[1; 200]).unwrap();
    let before = memory.heap().to_bytes();
    for (nth, fault) in [(1, Fault::Trap), (2, Fault::Trap), (2, Fault::TrapAfter(100)), (3, Fault::TrapAfter(0))] {
        memory.fail(Operation::Write, nth, fault);
        let trapped = message(&memory, || {
            memory.write(4_050, &[2; 100]).unwrap();
            memory.grow(2).unwrap();
            memory.write(WASM_PAGE_BYTES - 10, &[3; 200]).unwrap();
            memory.write(0, &[4; 10_000]).unwrap();
        });
        let trap = trapped.unwrap_err();
        assert_eq!(trap.reason, format!("Write {nth} was told to trap"));
        assert!(memory.heap().to_bytes() == before, "{nth} {fault:?}");
    }
    // Kept, the write is torn where it was told to be.
    memory.keep_on_trap(true);
    memory.fail(Operation::Write, 1, Fault::TrapAfter(3));
    message(&memory, || memory.write(0, &[5; 10])).unwrap_err();
    assert_eq!(memory.heap().to_bytes()[..5], [5, 5, 5, 0, 0]);
    // What does not trap stays.
    message(&memory, || memory.write(0, &[6; 10])).unwrap().unwrap();
    assert_eq!(memory.heap().to_bytes()[..10], [6; 10]);
    memory.fail(Operation::Read, 1, Fault::Error);
    assert_eq!(memory.read(0, &mut [0]), Err(MemoryError::Injected { operation: Operation::Read, nth: 1 }));
    assert_eq!(memory.read(0, &mut [0]), Ok(()));
}
