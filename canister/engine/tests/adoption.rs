//! Databases of ic-sqlite-vfs are taken over in place. The image is one that ic-sqlite-vfs 2.1.0 wrote
//! (`tests/adoption/sqlite-vfs-image`).
mod support;

use icsql_engine::limits::ADOPT_AT_ONCE_BYTES_MAX;
use icsql_engine::stable::fault::{Fault, FaultMemory, message};
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::ic_sqlite_vfs::{PAGE_BYTES, VfsSuperblockError, ZERO_EXTENTS_MAX};
use icsql_engine::stable::manager::{MemoryManager, VirtualMemory};
use icsql_engine::stable::page_hashes::PageHashesError;
use icsql_engine::stable::superblock::SuperblockError;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, MemoryError, Operation, PAGE_HASH_MEMORY_ID, WASM_PAGE_BYTES};
use icsql_engine::{Adoption, AdoptionError, Error, Migration, OpenOptions, SqliteError, Value};
use support::{assert_whole, fixture, open, open_with, rows};

const IMAGE: &str = "ic-sqlite-vfs-2.1.0";
const IMAGE_PAGES: u32 = 111;
const BASE: u64 = WASM_PAGE_BYTES;

// Offsets in the superblock of ic-sqlite-vfs.
const VERSION: usize = 8;
const PAGE_SIZE: usize = 12;
const IMAGE_BYTES: usize = 16;
const FLAGS: usize = 40;
const IMAGE_CHECKSUM: usize = 48;
const IMAGE_BASE: usize = 112;
const PAGE_TABLE: usize = 120;
const PAGES: usize = 128;
const LAYOUT: usize = 136;
const EXTENT_COUNT: usize = 144;
const CHECKSUM: usize = 152;
const EXTENTS: usize = 160;

const STALE: u64 = 2;

fn raw() -> HeapMemory {
    HeapMemory::from_bytes(fixture(IMAGE))
}

fn memories<M: Memory + Clone>(raw: &M) -> (VirtualMemory<M>, VirtualMemory<M>) {
    let manager = MemoryManager::open(raw.clone()).expect("the virtual memories are sound");
    (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID))
}

fn bytes(memory: &impl Memory) -> Vec<u8> {
    let mut bytes = vec![0; (memory.size() * WASM_PAGE_BYTES) as usize];
    memory.read(0, &mut bytes).expect("all of it can be read");
    bytes
}

fn begin<M: Memory + Clone + 'static>(raw: &M) -> Result<Option<Adoption>, AdoptionError> {
    let (image, hashes) = memories(raw);
    Adoption::begin(image, hashes)
}

fn at_once<M: Memory + Clone + 'static>(raw: &M) -> Result<bool, AdoptionError> {
    let (image, hashes) = memories(raw);
    Adoption::at_once(image, hashes)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn put(superblock: &mut [u8], offset: usize, value: u64) {
    superblock[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

/// Changes their superblock, which stays sound.
fn edit(raw: &HeapMemory, change: impl FnOnce(&mut [u8])) {
    let (image, _) = memories(raw);
    let mut superblock = vec![0; BASE as usize];
    image.read(0, &mut superblock).unwrap();
    change(&mut superblock);
    seal(&mut superblock);
    image.write(0, &superblock).unwrap();
}

/// Gives their superblock the checksum that belongs to it.
fn seal(superblock: &mut [u8]) {
    put(superblock, CHECKSUM, 0);
    let count = u64::from_le_bytes(superblock[EXTENT_COUNT..CHECKSUM].try_into().unwrap()) as usize;
    let checksum = fnv1a(&superblock[..EXTENTS + count * 16]);
    put(superblock, CHECKSUM, checksum);
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn an_adopted_database_has_all_its_rows_and_goes_on() {
    let raw = raw();
    assert_eq!(at_once(&raw), Ok(true));
    let mut database = open(&raw);
    assert_whole(&mut database);
    let meta = database.meta();
    assert_eq!((meta.page_bytes, meta.image_pages, meta.transaction_id), (PAGE_BYTES, IMAGE_PAGES, 4));
    let found = database.read(|reader| {
        Ok::<_, Error>([
            rows(reader, "SELECT name FROM author ORDER BY id")?,
            rows(reader, "SELECT COUNT(*), SUM(length(body)), SUM(weight), COUNT(attachment) FROM note")?,
            rows(reader, "SELECT title, length(body), weight, attachment FROM note WHERE id = 49")?,
            rows(reader, "SELECT length(body) FROM note WHERE title = 'note 0300'")?,
            rows(reader, "SELECT rowid FROM search WHERE search MATCH '\"body 149\"'")?,
            rows(reader, "SELECT notes FROM note_count WHERE name = 'Zoë'")?,
            rows(reader, "SELECT COUNT(*) FROM history")?,
            rows(reader, "SELECT version FROM __ic_sqlite_migrations ORDER BY 1")?,
            rows(reader, "SELECT version, length(checksum) FROM __ic_sqlite_migration_checksums ORDER BY 1")?,
        ])
    });
    let integer = Value::Integer;
    let expected: [Vec<Vec<Value>>; 9] = [
        ["Ada", "Blaise", "Zoë"].map(|name| vec![text(name)]).to_vec(),
        {
            let ids = || (1..=300_i64).filter(|id| !(100..=120).contains(id));
            let length = |id: i64| format!("body {id} ").len() as i64 * if id % 50 == 0 { 4_000 } else { 10 };
            let weight: f64 = ids().map(|id| id as f64 / 8.0).sum();
            let attachments = ids().filter(|id| id % 7 == 0).count() as i64;
            vec![vec![integer(279), integer(ids().map(length).sum()), Value::Real(weight), integer(attachments)]]
        },
        vec![vec![text("note 0049"), integer(80), Value::Real(6.125), Value::Blob(b"attachment 49".to_vec())]],
        vec![vec![integer(36_000)]],
        vec![vec![integer(149)]],
        vec![vec![integer((1..=300).filter(|id| id % 3 == 2 && !(100..=120).contains(id)).count() as i64)]],
        vec![vec![integer(21)]],
        [1, 2, 5].map(|version| vec![integer(version)]).to_vec(),
        [1, 2, 5].map(|version| vec![integer(version), integer(32)]).to_vec(),
    ];
    assert_eq!(found.unwrap(), expected);

    // The trigger and the foreign key work, and what is written stays.
    database.execute("DELETE FROM main.note WHERE id = 1", ()).unwrap();
    database.execute("INSERT INTO main.note(author, title, body) VALUES (9, 't', 'b')", ()).unwrap_err();
    database.write(|tx| tx.execute("INSERT INTO main.search VALUES ('neu', 'words of today')", ())).unwrap();
    assert_eq!(database.meta().transaction_id, 6);
    drop(database);
    assert_eq!(at_once(&raw), Ok(false), "there is nothing left to adopt");
    let mut database = open(&raw);
    assert_whole(&mut database);
    let found = database.read(|reader| {
        rows(reader, "SELECT (SELECT COUNT(*) FROM history), (SELECT title FROM search WHERE search MATCH 'today')")
    });
    assert_eq!(found.unwrap(), [[integer(22), text("neu")]]);
}

#[test]
fn the_history_of_ic_sqlite_vfs_goes_on_as_ours() {
    macro_rules! migration {
        ($version:literal) => {
            Migration {
                version: $version,
                name: "of ic-sqlite-vfs",
                sql: include_str!(concat!("../../../tests/adoption/sqlite-vfs-image/src/", $version, ".sql")),
            }
        };
    }
    let next = Migration { version: 6, name: "ours", sql: "CREATE TABLE ours(x)" };
    let raw = raw();
    at_once(&raw).unwrap();
    let mut database = open(&raw);
    let changed = [migration!(1), Migration { sql: "CREATE TABLE other(x)", ..migration!(2) }, migration!(5), next];
    let refusal = database.adopt_migrations(&changed, 5).unwrap_err();
    assert!(refusal.to_string().contains("another text"), "{refusal}");
    let all = [migration!(1), migration!(2), migration!(5), next];
    assert_eq!(database.adopt_migrations(&all, 5), Ok(3));
    assert_eq!(database.migrate(&all), Ok(1));
    assert_eq!((database.adopt_migrations(&all, 5), database.migrate(&all)), (Ok(0), Ok(0)));
}

#[test]
fn until_it_is_finished_an_adoption_changes_nothing_and_can_begin_again() {
    let reference = raw();
    at_once(&reference).unwrap();

    let raw = raw();
    let (image, _) = memories(&raw);
    let before = bytes(&image);
    let mut given_up = begin(&raw).unwrap().expect("there is something to adopt");
    for n in 1..=IMAGE_PAGES / 2 {
        let progress = given_up.chunk(1).unwrap();
        assert_eq!((progress.pages_done, progress.pages_total, progress.complete), (n, IMAGE_PAGES, false));
    }
    let (pages_done, pages_total) = (IMAGE_PAGES / 2, IMAGE_PAGES);
    assert_eq!(given_up.finish(), Err(AdoptionError::Incomplete { pages_done, pages_total }));
    assert_eq!(bytes(&image), before);
    let refused = open_with(&raw, OpenOptions::default()).err().expect("it is not adopted yet");
    assert!(refused.to_string().contains("Adoption::at_once"), "{refused}");
    drop(given_up);

    // With chunks that are not whole pages, and more calls than there are pages.
    let mut adoption = begin(&raw).unwrap().unwrap();
    let mut chunks = 0;
    while !adoption.chunk(5 * u64::from(PAGE_BYTES) + 1).unwrap().complete {
        chunks += 1;
    }
    assert_eq!(chunks, IMAGE_PAGES / 5);
    assert_eq!(adoption.chunk(1).unwrap().pages_done, IMAGE_PAGES);
    assert_eq!(bytes(&image), before);
    adoption.finish().unwrap();
    assert_eq!(adoption.finish(), Err(AdoptionError::Changed));
    assert_eq!(bytes(&memories(&raw).0), bytes(&memories(&reference).0));
    assert_whole(&mut open(&raw));
    // Behind the superblock nothing of theirs is left.
    assert!(bytes(&image)[64..BASE as usize].iter().all(|byte| *byte == 0));
}

#[test]
fn an_image_that_is_written_to_in_between_is_not_adopted() {
    let raw = raw();
    let mut adoption = begin(&raw).unwrap().unwrap();
    adoption.chunk(u64::MAX).unwrap();
    // Every commit of ic-sqlite-vfs counts up the transaction id.
    edit(&raw, |superblock| put(superblock, 32, 5));
    assert_eq!(adoption.finish(), Err(AdoptionError::Changed));
    assert_eq!(at_once(&raw), Ok(true));
    assert_eq!(open(&raw).meta().transaction_id, 5);
}

#[test]
fn pages_that_ic_sqlite_vfs_reads_as_zeros_are_zeros_afterwards() {
    for stale in [true, false] {
        let raw = raw();
        let (image, _) = memories(&raw);
        // Leaves of the free list, which SQLite never reads: the first trunk page names them.
        let mut all = bytes(&image);
        let at = |page: u32| BASE as usize + (page as usize - 1) * PAGE_BYTES as usize;
        let number = |offset: usize| u32::from_be_bytes(all[offset..offset + 4].try_into().unwrap());
        let trunk = number(at(1) + 32);
        let mut leaves: Vec<u32> = (0..number(at(trunk) + 4) as usize).map(|n| number(at(trunk) + 8 + 4 * n)).collect();
        leaves.sort_unstable();
        let (first, last) = (leaves[0], *leaves.last().unwrap());
        assert!(leaves.len() > 2);
        let extents = [(u64::from(first) - 1, u64::from(first)), (u64::from(last) - 1, u64::from(last)), (200, 300)];
        for page in [first, last] {
            all[at(page)..at(page + 1)].fill(0);
        }
        let logical = fnv1a(&all[BASE as usize..at(IMAGE_PAGES + 1)]);
        for page in [first, last] {
            image.write(at(page) as u64, &[0xa5; PAGE_BYTES as usize]).unwrap();
        }
        edit(&raw, |superblock| {
            put(superblock, FLAGS, if stale { STALE } else { 0 });
            put(superblock, IMAGE_CHECKSUM, if stale { 1 } else { logical });
            put(superblock, EXTENT_COUNT, extents.len() as u64);
            for (n, (start, end)) in extents.into_iter().enumerate() {
                put(superblock, EXTENTS + 16 * n, start);
                put(superblock, EXTENTS + 16 * n + 8, end);
            }
        });
        let mut adoption = begin(&raw).unwrap().unwrap();
        while !adoption.chunk(7 * u64::from(PAGE_BYTES)).unwrap().complete {}
        adoption.finish().unwrap();
        assert_eq!(bytes(&image)[BASE as usize..at(IMAGE_PAGES + 1)], all[BASE as usize..at(IMAGE_PAGES + 1)]);
        assert_whole(&mut open(&raw));
    }
}

#[test]
fn a_database_that_was_never_written_to_is_adopted_empty() {
    let raw = raw();
    edit(&raw, |superblock| {
        for field in [IMAGE_BYTES, PAGES, IMAGE_CHECKSUM, FLAGS] {
            put(superblock, field, 0);
        }
    });
    assert_eq!(at_once(&raw), Ok(true));
    let mut database = open(&raw);
    assert_eq!(database.meta().image_pages, 0);
    database.write(|tx| tx.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)")).unwrap();
    assert_whole(&mut database);
}

#[test]
fn an_image_somewhere_else_in_the_memory_is_adopted_where_it_is() {
    let raw = raw();
    let (image, _) = memories(&raw);
    let old = bytes(&image);
    let base = old.len() as u64;
    image.grow(base / WASM_PAGE_BYTES).unwrap();
    image.write(base, &old[BASE as usize..]).unwrap();
    image.write(BASE, &vec![0xee; old.len() - BASE as usize]).unwrap();
    edit(&raw, |superblock| put(superblock, IMAGE_BASE, base));
    assert_eq!(at_once(&raw), Ok(true));
    assert_whole(&mut open(&raw));
}

#[test]
fn what_is_not_a_sound_database_of_ic_sqlite_vfs_is_refused_and_left_alone() {
    use AdoptionError::Source;
    use VfsSuperblockError::{BadField, BadImage, Importing, TooManyZeroExtents, UnknownLayout};
    let page = u64::from(PAGE_BYTES);
    let memory_bytes = memories(&raw()).0.size() * WASM_PAGE_BYTES;
    let field = |field, found| Source(BadField { field, found });
    let sizes = |superblock: &mut [u8], bytes: u64, pages: u64| {
        put(superblock, IMAGE_BYTES, bytes);
        put(superblock, PAGES, pages);
    };
    let extents = |superblock: &mut [u8], extents: &[(u64, u64)]| {
        put(superblock, EXTENT_COUNT, extents.len() as u64);
        for (n, (start, end)) in extents.iter().enumerate() {
            put(superblock, EXTENTS + 16 * n, *start);
            put(superblock, EXTENTS + 16 * n + 8, *end);
        }
    };
    type Edit<'a> = &'a dyn Fn(&mut [u8]);
    let cases: &[(Edit<'_>, AdoptionError)] = &[
        (&|s| s[VERSION] = 7, Source(UnknownLayout { found: (7, 8) })),
        (&|s| s[VERSION] = 9, Source(UnknownLayout { found: (9, 8) })),
        (&|s| put(s, LAYOUT, 6), Source(UnknownLayout { found: (8, 6) })),
        (&|s| put(s, FLAGS, 1), Source(Importing)),
        (&|s| put(s, FLAGS, 8), field("flags", 8)),
        (&|s| s[PAGE_SIZE..PAGE_SIZE + 4].copy_from_slice(&4_096_u32.to_le_bytes()), field("page size", 4_096)),
        (&|s| sizes(s, 10 * page + 1, 11), field("image size in bytes", 10 * page + 1)),
        (&|s| put(s, PAGES, 110), field("number of pages", 110)),
        (&|s| put(s, PAGE_TABLE, 65_536), field("page table", 65_536)),
        (
            &|s| put(s, EXTENT_COUNT, ZERO_EXTENTS_MAX as u64 + 1),
            Source(TooManyZeroExtents { found: ZERO_EXTENTS_MAX as u64 + 1 }),
        ),
        (&|s| extents(s, &[(3, 3)]), field("zero extent's first page", 3)),
        (&|s| extents(s, &[(3, 5), (5, 6)]), field("zero extent's first page", 5)),
        (&|s| put(s, IMAGE_BASE, 0), Source(BadImage(SuperblockError::BadBase { found: 0 }))),
        (&|s| put(s, IMAGE_BASE, 65_537), Source(BadImage(SuperblockError::BadBase { found: 65_537 }))),
        (
            &|s| sizes(s, memory_bytes, memory_bytes / page),
            Source(BadImage(SuperblockError::ImageBeyondMemory {
                needed: Some(BASE + memory_bytes),
                found: memory_bytes,
            })),
        ),
        (
            &|s| sizes(s, 4_294_967_295 * page, 4_294_967_295),
            Source(BadImage(SuperblockError::TooManyPages { found: 4_294_967_295 })),
        ),
    ];
    for (change, expected) in cases {
        let raw = raw();
        edit(&raw, change);
        let before = raw.to_bytes();
        assert_eq!(at_once(&raw), Err(expected.clone()));
        assert!(raw.to_bytes() == before, "{expected}");
    }
    // As many extents as there is room for.
    let raw = raw();
    let most: Vec<_> = (0..ZERO_EXTENTS_MAX as u64).map(|n| (1_000 + 2 * n, 1_001 + 2 * n)).collect();
    edit(&raw, |s| extents(s, &most));
    assert_eq!(at_once(&raw), Ok(true));
}

#[test]
fn a_change_of_any_bit_of_their_superblock_is_noticed() {
    let raw = raw();
    let (image, _) = memories(&raw);
    for bit in 0..EXTENTS * 8 {
        let flip = |memory: &VirtualMemory<HeapMemory>| {
            let mut byte = [0];
            memory.read(bit as u64 / 8, &mut byte).unwrap();
            memory.write(bit as u64 / 8, &[byte[0] ^ 1 << (bit % 8)]).unwrap();
        };
        flip(&image);
        match begin(&raw) {
            // Without the magic it is not theirs, and the database refuses it.
            Ok(None) => assert!(bit < 64 && open_with(&raw, OpenOptions::default()).is_err(), "bit {bit}"),
            Ok(Some(_)) => panic!("bit {bit} was not noticed"),
            Err(error) => assert!(matches!(error, AdoptionError::Source(_)), "bit {bit}: {error}"),
        }
        flip(&image);
    }
    assert_eq!(memories(&raw).1.size(), 0);
}

#[test]
fn a_damaged_image_is_refused_if_its_checksum_is_known() {
    for (flags, refused) in [(0, true), (STALE, false)] {
        let raw = raw();
        let (image, _) = memories(&raw);
        edit(&raw, |superblock| put(superblock, FLAGS, flags));
        // In the last page, which opening does not look at.
        let offset = BASE + u64::from(IMAGE_PAGES) * u64::from(PAGE_BYTES) - 1;
        let mut byte = [0];
        image.read(offset, &mut byte).unwrap();
        image.write(offset, &[byte[0] ^ 1]).unwrap();
        let before = bytes(&image);
        match at_once(&raw) {
            Ok(adopted) => assert!(adopted && !refused),
            Err(AdoptionError::BadImageChecksum { .. }) => assert!(refused && bytes(&image) == before),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_image_that_cannot_be_opened_is_refused_before_anything_is_hashed() {
    let refused = |offset: u64, value: &[u8]| {
        let raw = raw();
        let (image, _) = memories(&raw);
        image.write(BASE + offset, value).unwrap();
        let before = bytes(&image);
        let Err(AdoptionError::Image(error)) = begin(&raw) else { panic!("the image was taken") };
        assert_eq!(bytes(&image), before);
        *error
    };
    assert!(matches!(refused(0, b"sqlite"), Error::Sqlite(SqliteError { .. })));
    assert!(matches!(refused(56, &2_u32.to_be_bytes()), Error::Encoding { .. } | Error::Sqlite(_)));
    let shorter = refused(28, &(IMAGE_PAGES - 1).to_be_bytes());
    let (superblock, image) = (IMAGE_PAGES.into(), (IMAGE_PAGES - 1).into());
    assert_eq!(shorter, Error::ImageMismatch { what: "number of pages", superblock, image });
}

#[test]
fn a_memory_of_hashes_that_holds_something_else_is_refused() {
    let raw = raw();
    let (image, hashes) = memories(&raw);
    hashes.grow(1).unwrap();
    hashes.write(0, b"something else").unwrap();
    let before = raw.to_bytes();
    let expected = PageHashesError::Foreign { found: *b"somethin" };
    assert_eq!(Adoption::at_once(image.clone(), hashes), Err(AdoptionError::PageHashes(expected)));
    // The same memory for both is a mistake that must not cost the data.
    let (same, as_hashes) = (image.clone(), image);
    let expected = PageHashesError::Foreign { found: *b"ICSQLITE" };
    assert_eq!(Adoption::at_once(same, as_hashes), Err(AdoptionError::PageHashes(expected)));
    assert!(raw.to_bytes() == before);
}

#[test]
fn memory_without_a_database_of_theirs_is_left_to_the_opening() {
    let empty = HeapMemory::new();
    assert_eq!(at_once(&empty), Ok(false));
    open(&empty).write(|tx| tx.execute_batch("CREATE TABLE t(x)")).unwrap();
    let before = empty.to_bytes();
    assert_eq!(at_once(&empty), Ok(false));
    assert!(empty.to_bytes() == before);
}

/// A memory of any size that begins with some bytes and then has zeros.
#[derive(Clone)]
struct Sparse {
    head: Vec<u8>,
    pages: u64,
}

impl Memory for Sparse {
    fn size(&self) -> u64 {
        self.pages
    }

    fn grow(&self, _pages: u64) -> Result<u64, MemoryError> {
        Err(MemoryError::ReadOnly)
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        let head = self.head.iter().copied().chain(std::iter::repeat(0)).skip(offset.min(BASE) as usize);
        dst.iter_mut().zip(head).for_each(|(byte, stored)| *byte = stored);
        Ok(())
    }

    fn write(&self, _offset: u64, _src: &[u8]) -> Result<(), MemoryError> {
        Err(MemoryError::ReadOnly)
    }
}

#[test]
fn one_message_adopts_up_to_its_limit() {
    // The limit comes before the opening on trial, which this image without a header fails.
    let page = u64::from(PAGE_BYTES);
    for (image_bytes, fits) in [
        (ADOPT_AT_ONCE_BYTES_MAX - page, true),
        (ADOPT_AT_ONCE_BYTES_MAX, true),
        (ADOPT_AT_ONCE_BYTES_MAX + page, false),
    ] {
        let mut head = bytes(&memories(&raw()).0)[..BASE as usize].to_vec();
        put(&mut head, IMAGE_BYTES, image_bytes);
        put(&mut head, PAGES, image_bytes / page);
        seal(&mut head);
        let memory = Sparse { head, pages: 1 + image_bytes.div_ceil(WASM_PAGE_BYTES) };
        let refusal = Adoption::at_once(memory.clone(), HeapMemory::new()).unwrap_err();
        if fits {
            assert!(matches!(refusal, AdoptionError::Image(_)), "{refusal}");
        } else {
            assert_eq!(refusal, AdoptionError::TooLargeAtOnce { image_bytes, limit: ADOPT_AT_ONCE_BYTES_MAX });
            assert!(matches!(Adoption::begin(memory, HeapMemory::new()), Err(AdoptionError::Image(_))));
        }
    }
}

#[test]
fn an_adoption_that_is_cut_off_anywhere_happens_whole_or_not_at_all() {
    let raw = FaultMemory::new(raw());
    let start = raw.counts();
    at_once(&raw).unwrap();
    let adopted = bytes(&memories(&raw).0);
    let totals = [
        (Operation::Write, raw.counts().writes - start.writes),
        (Operation::Grow, raw.counts().growths - start.growths),
    ];
    assert!(totals.iter().all(|(_, total)| *total > 0), "{totals:?}");
    for (operation, total) in totals {
        for nth in (1..=total).filter(|nth| *nth <= 8 || *nth + 4 > total) {
            // A trap takes the message back.
            let raw = FaultMemory::new(self::raw());
            let before = raw.heap().to_bytes();
            raw.fail(operation, nth, Fault::Trap);
            assert!(message(&raw, || at_once(&raw)).is_err(), "{operation:?} {nth}");
            assert!(raw.heap().to_bytes() == before);
            assert_eq!(at_once(&raw), Ok(true));
            assert!(bytes(&memories(&raw).0) == adopted);

            // An error leaves their image as it is.
            let raw = FaultMemory::new(self::raw());
            let image = bytes(&memories(&raw).0);
            raw.fail(operation, nth, Fault::Error);
            let error = at_once(&raw).expect_err("the fault fired");
            assert!(error.to_string().contains("asked to fail"), "{error}");
            assert!(bytes(&memories(&raw).0) == image, "{operation:?} {nth}");
        }
    }
    // A chunk that failed is tried again.
    let raw = FaultMemory::new(self::raw());
    let mut adoption = begin(&raw).unwrap().unwrap();
    for operation in [Operation::Read, Operation::Write] {
        raw.fail(operation, 3, Fault::Error);
        adoption.chunk(30 * u64::from(PAGE_BYTES)).unwrap_err();
        adoption.chunk(30 * u64::from(PAGE_BYTES)).unwrap();
    }
    while !adoption.chunk(30 * u64::from(PAGE_BYTES)).unwrap().complete {}
    adoption.finish().unwrap();
    assert!(bytes(&memories(&raw).0) == adopted);
}

#[test]
fn a_full_memory_refuses_the_page_hashes_and_keeps_the_database_of_ic_sqlite_vfs() {
    let stored = fixture(IMAGE);
    let pages = stored.len() as u64 / WASM_PAGE_BYTES;
    let raw = HeapMemory::with_limit(pages);
    raw.grow(pages).unwrap();
    raw.write(0, &stored).unwrap();
    let refusal = at_once(&raw).unwrap_err();
    let AdoptionError::PageHashes(PageHashesError::Memory(MemoryError::GrowFailed { size, .. })) = refusal else {
        panic!("{refusal}")
    };
    assert_eq!(size, pages);
    assert!(raw.to_bytes() == stored);
}
