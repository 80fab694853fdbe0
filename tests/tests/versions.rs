//! The stable memory that an earlier version of the deployed Wasm wrote is opened, read and written by this one.
//!
//! Each is a file in `tests/fixtures`, which is never changed once a version has written it. To add that of the Wasm in
//! `target/icsql.wasm`:
//!
//!     ICSQL_FIXTURE=NAME cargo test --workspace --no-fail-fast --test versions make -- --ignored --nocapture

use icsql_tests::{Icsql, root};
use icsql_types::Values;
use icsql_types::method::{
    DB_CHECKSUM, DB_META, DB_REFRESH_CHECKSUM_CHUNK, KV_COUNT, KV_GET_MANY, KV_GET_NOTE, KV_SET_NOTE,
};
use pocket_ic::common::rest::BlobCompression;
use std::path::PathBuf;
use std::{env, fs};

/// What a version wrote, what it said of it, and what must be found.
struct Stored {
    name: &'static str,
    last_version: u64,
    digest: &'static str,
    check: fn(&Icsql),
}

const STORED: &[Stored] =
    &[Stored { name: "service-365c04d", last_version: 601, digest: "40dd6354f075b5de", check: keys_and_values }];

const ROWS: usize = 600;

fn key(row: usize) -> String {
    format!("key-{row:06}")
}

fn value(row: usize) -> String {
    // Up to five pages.
    format!("{row}:").repeat(row * row % 5_000)
}

fn path(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(format!("{name}.stable.gz"))
}

/// What [`make`] has this version write; answers the version of the last row.
fn populate(icsql: &Icsql) -> u64 {
    let versions = (0..ROWS).map(|row| icsql.put(&key(row), &value(row)));
    let last = versions.max().expect("there are rows");
    icsql.ok(&KV_SET_NOTE, (key(7), Some("a note".to_owned()), None));
    last
}

fn keys_and_values(icsql: &Icsql) {
    let mut found = Vec::new();
    while found.len() < ROWS {
        let keys: Vec<String> = (found.len()..ROWS).map(key).collect();
        let Values { values, .. } = icsql.ok(&KV_GET_MANY, (keys,));
        assert!(!values.is_empty());
        found.extend(values);
    }
    for (row, found) in found.into_iter().enumerate() {
        assert!(found == Some(value(row)), "row {row}");
    }
    assert_eq!(icsql.ok(&KV_COUNT, ()), ROWS as u64);
    assert_eq!(icsql.ok(&KV_GET_NOTE, (key(7),)).as_deref(), Some("a note"));
}

#[test]
fn what_earlier_versions_wrote_is_opened_read_and_written() {
    for stored in STORED {
        let icsql = Icsql::deploy();
        let packed = fs::read(path(stored.name)).expect(stored.name);
        icsql.pic.set_stable_memory(icsql.id, packed, BlobCompression::Gzip);
        // The digest is that of the version that wrote, unless this one has added tables of its own.
        icsql.upgrade(vec![]).unwrap();
        let added = icsql.ok(&DB_META, ()).schema_version > 1;
        assert!(added || icsql.ok(&DB_CHECKSUM, ()).digest == stored.digest, "{}", stored.name);
        (stored.check)(&icsql);
        loop {
            let scan = icsql.ok(&DB_REFRESH_CHECKSUM_CHUNK, (None,));
            assert_eq!(scan.damaged_total, 0, "{}", stored.name);
            if scan.complete {
                assert_eq!(scan.digest_matches, Some(true), "{}", stored.name);
                break;
            }
        }
        assert!(icsql.put(&key(0), "written by this version") > stored.last_version, "{}", stored.name);
        icsql.upgrade(vec![]).unwrap();
        assert_eq!(icsql.get(&key(0)).as_deref(), Some("written by this version"));
    }
}

#[test]
fn every_stored_memory_is_looked_at() {
    for entry in fs::read_dir(root().join("tests/fixtures")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let listed = STORED.iter().any(|stored| name == format!("{}.stable.gz", stored.name));
        assert!(listed, "{name} is not in STORED");
    }
}

#[test]
#[ignore = "adds a file to tests/fixtures"]
fn make() {
    let name = format!("service-{}", env::var("ICSQL_FIXTURE").expect("ICSQL_FIXTURE names the version"));
    let icsql = Icsql::deploy();
    let last_version = populate(&icsql);
    let digest = icsql.ok(&DB_CHECKSUM, ()).digest;
    let bytes = icsql.pic.get_stable_memory(icsql.id);
    let file = fs::File::create_new(path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    std::io::Write::write_all(&mut packer, &bytes).and_then(|()| packer.finish()).expect("the fixture can be written");
    println!("    Stored {{ name: {name:?}, last_version: {last_version}, digest: {digest:?}, check: … }},");
}
