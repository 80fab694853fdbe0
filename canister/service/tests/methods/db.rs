//! The database as a whole through the methods: meta, checksum, scan, integrity, foreign stable memory.
use crate::common::{Canister, Endpoint};
use icsql_canister::api::{db, kv};
use icsql_canister::ops;
use icsql_engine::Budget;
use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::superblock::Superblock;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory};
use icsql_types::{Answer, Checksum, Error, IntegrityReport, Meta, ScanProgress, WriteOptions, Written};

const PUT: Endpoint = kv::put;
const META: Endpoint = db::meta;
const CHECKSUM: Endpoint = db::checksum;
const REFRESH: Endpoint = db::refresh_checksum;
const SCAN: Endpoint = db::refresh_checksum_chunk;
const INTEGRITY: Endpoint = db::integrity_check;

fn filled(rows: usize) -> Canister {
    let mut canister = Canister::install();
    for row in 0..rows {
        let (key, value) = (format!("key-{row:06}"), "v".repeat(100));
        canister.call::<Written>(PUT, (key, value, None::<WriteOptions>)).unwrap();
    }
    canister
}

/// Flips one bit of a page of the image, behind the database's back.
fn damage(stable: &HeapMemory, page: u32, byte: u64) {
    let image = MemoryManager::open(stable.clone()).unwrap().get(DATABASE_MEMORY_ID);
    let superblock = Superblock::load(&image).unwrap().unwrap();
    let offset = superblock.page_offset(page) + byte;
    let mut bytes = [0];
    image.read(offset, &mut bytes).unwrap();
    image.write(offset, &[bytes[0] ^ 1]).unwrap();
}

#[test]
fn meta_and_checksum_follow_every_commit() {
    let mut canister = filled(10);
    let meta: Meta = canister.call(META, ()).unwrap();
    let checksum: Checksum = canister.call(CHECKSUM, ()).unwrap();
    assert_eq!((&meta.digest, meta.transaction), (&checksum.digest, checksum.transaction));
    assert_eq!(meta.image_bytes, meta.pages * u64::from(meta.page_size));
    assert_eq!(meta.stable_memory_pages, canister.stable.size());
    assert!(meta.stable_memory_pages * 65_536 >= meta.image_bytes);
    assert_eq!(checksum.digest.len(), 16);
    assert_eq!(meta.limits.value_bytes_max, 1_900_000);

    canister.call::<Written>(PUT, ("key-000003", "other", None::<WriteOptions>)).unwrap();
    let after: Checksum = canister.call(CHECKSUM, ()).unwrap();
    assert_ne!(after.digest, checksum.digest);
    assert_eq!(after.transaction, checksum.transaction + 1);
    let mut canister = canister.upgrade();
    assert_eq!(canister.call::<Checksum>(CHECKSUM, ()), Ok(after), "an upgrade writes nothing");
}

#[test]
fn the_old_refresh_names_the_new_one() {
    let answer: Answer<Checksum> = filled(0).call(REFRESH, ());
    assert!(matches!(&answer, Err(Error::UseInstead { method, .. }) if method == "db_refresh_checksum_chunk"));
}

#[test]
fn a_scan_goes_on_across_commits_and_names_damaged_pages() {
    let mut canister = filled(500);
    let pages = canister.call::<Meta>(META, ()).unwrap().pages;
    damage(&canister.stable, 3, 100);
    damage(&canister.stable, pages as u32, 4_000);
    let mut calls = 0;
    let last = loop {
        let progress: ScanProgress = canister.call(SCAN, (Some(3 * 4_096u64),)).unwrap();
        calls += 1;
        assert_eq!(progress.pages_total, pages);
        if progress.complete {
            break progress;
        }
        assert_eq!(progress.pages_done, calls * 3);
        assert_eq!(progress.digest_matches, None);
        // The same page each time, none of the damaged ones.
        canister.call::<Written>(PUT, ("key-000499", calls.to_string(), None::<WriteOptions>)).unwrap();
    };
    assert_eq!(calls, pages.div_ceil(3));
    assert_eq!(last.digest_matches, Some(true), "the stored hashes are right, the bytes are not");
    let named: Vec<u64> = last.damaged.iter().map(|page| page.page.into()).collect();
    // The put page could be the last one; whatever it is, its hash was stored with it.
    assert!(named.contains(&3) && last.damaged_total == named.len() as u64, "{last:?}");
    let again: ScanProgress = canister.call(SCAN, (None::<u64>,)).unwrap();
    assert!(again.complete && again.pages_done == pages, "the next call starts anew: {again:?}");
}

#[test]
fn an_intact_database_passes_its_check() {
    let mut canister = filled(300);
    let report: IntegrityReport = canister.call(INTEGRITY, ()).unwrap();
    assert!(report.complete && report.problems.is_empty() && report.unchecked.is_empty(), "{report:?}");
    for table in ["kv", "kv_note", "sqlite_schema"] {
        assert!(report.checked.iter().any(|checked| checked == table), "{report:?}");
    }
    assert_eq!(report.transaction, canister.call::<Meta>(META, ()).unwrap().transaction);
}

#[test]
fn a_check_reports_every_problem() {
    let canister = filled(500);
    // Unused bytes between header and cells do not matter to SQLite; the number of cells does.
    for page in [27, 28, 29] {
        damage(&canister.stable, page, 4);
    }
    let mut canister = canister.upgrade();
    let report: IntegrityReport = canister.call(INTEGRITY, ()).unwrap();
    assert!(report.complete, "{report:?}");
    assert!(report.problems_total >= 3 && report.problems.len() as u64 == report.problems_total, "{report:?}");
    for page in ["page 27", "page 28", "page 29"] {
        assert!(report.problems.iter().any(|problem| problem.contains(page)), "{page}: {:?}", report.problems);
    }
}

#[test]
fn a_check_says_what_its_budget_did_not_reach() {
    let canister = filled(2_000);
    let database = &canister.service.database;
    let meta = database.meta();
    // As if it were a large database, which is checked table by table.
    let large = icsql_engine::Meta { image_pages: 1_000_000, ..meta };
    let check = |meta, budget| -> Result<IntegrityReport, icsql_engine::Error> {
        let limit = Budget { instructions: budget, ..Budget::UNLIMITED };
        database.read_within(&limit, |reader| ops::db::integrity_check(reader, meta, budget)).0
    };
    let whole = check(&meta, u64::MAX).unwrap();
    assert!(whole.complete && whole.unchecked.is_empty());
    let mut partly = 0;
    for budget in (4..30).map(|power| 1 << power) {
        let report = check(&large, budget).unwrap();
        let mut tables: Vec<_> = report.checked.iter().chain(&report.unchecked).cloned().collect();
        if !report.complete {
            partly += u32::from(!report.checked.is_empty());
            assert_eq!(tables.pop().as_deref(), Some(ops::db::PAGE_USE));
        }
        tables.sort();
        let mut expected = whole.checked.clone();
        expected.sort();
        assert_eq!(tables, expected, "every table is in one of the lists, budget {budget}");
        assert!(report.problems.is_empty(), "{report:?}");
    }
    assert!(partly > 0, "no budget ended in the middle");
    assert_eq!(check(&large, u64::MAX).unwrap(), check(&meta, u64::MAX).unwrap(), "both ways see the same");
}

#[test]
fn a_table_that_is_damaged_is_reported_without_the_whole() {
    let canister = filled(2_000);
    for page in [20, 21] {
        damage(&canister.stable, page, 4);
    }
    let canister = canister.upgrade();
    let database = &canister.service.database;
    let large = icsql_engine::Meta { image_pages: 1_000_000, ..database.meta() };
    let found = |budget| -> Option<IntegrityReport> {
        let limit = Budget { instructions: budget, ..Budget::UNLIMITED };
        let (report, _) = database.read_within(&limit, |reader| ops::db::integrity_check(reader, &large, budget));
        let report = report.ok()?;
        (!report.complete && !report.problems.is_empty()).then_some(report)
    };
    // Some budget is enough for the table and not for the database as a whole.
    let report = (14..40).find_map(|power| found(1 << power)).expect("no budget ended between the two");
    for page in ["page 20", "page 21"] {
        assert!(report.problems.iter().any(|problem| problem.contains(page)), "{page}: {:?}", report.problems);
    }
}

#[test]
fn stable_memory_of_something_else_is_refused_and_left_alone() {
    let foreign = HeapMemory::from_bytes(b"what another canister left here".repeat(3_000));
    let before = foreign.to_bytes();
    let Err(error) = Canister::on(foreign.clone()) else { panic!("it was taken for a database") };
    assert!(!error.to_string().is_empty());
    assert_eq!(foreign.to_bytes(), before);
}
