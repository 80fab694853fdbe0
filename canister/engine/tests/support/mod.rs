//! What the engine's tests share.
#![allow(dead_code, reason = "each test uses its part")]

pub mod rng;
pub mod stock;

use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, Error, OpenOptions, Reader, Value};
use std::io::{Read, Write};
use std::ops::ControlFlow;

/// Opens the database in a raw memory, as a canister does.
pub fn open_with(raw: &(impl Memory + Clone + 'static), options: OpenOptions) -> Result<Database, Error> {
    let manager = MemoryManager::open(raw.clone()).expect("the virtual memories are sound");
    Database::open(manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID), options)
}

pub fn open(raw: &(impl Memory + Clone + 'static)) -> Database {
    open_with(raw, OpenOptions::default()).expect("the database opens")
}

/// A stable memory of `tests/fixtures`, by its file's name without the ending.
pub fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}.stable.gz", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("the fixture is whole");
    bytes
}

/// Adds a stable memory to `tests/fixtures`, and answers its name. One that is there is never replaced.
pub fn keep_fixture(name: &str, bytes: &[u8]) -> String {
    let path = format!("{}/tests/fixtures/{name}.stable.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::create_new(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("the fixture can be written");
    name.to_owned()
}

/// All rows of a query.
pub fn rows(reader: &Reader<'_>, sql: &str) -> Result<Vec<Vec<Value>>, Error> {
    let mut rows = Vec::new();
    reader.query(sql, (), |row| {
        rows.push((0..row.columns()).map(|column| Ok(row.value(column)?.to_value())).collect::<Result<_, Error>>()?);
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// The rows of every table, after a look at everything that could be wrong with the image.
pub fn contents(database: &mut Database) -> Vec<(String, Vec<Vec<Value>>)> {
    assert_whole(database);
    database
        .read(|reader| {
            let tables = rows(reader, "SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name")?;
            tables
                .into_iter()
                .map(|table| {
                    let [Value::Text(name)] = table.as_slice() else { panic!("a table without a name") };
                    let all = rows(reader, &format!("SELECT * FROM main.\"{name}\" ORDER BY 1"))?;
                    Ok::<_, Error>((name.clone(), all))
                })
                .collect()
        })
        .expect("the tables can be read")
}

/// SQLite finds nothing wrong, and every page has the hash that the digest was made of.
pub fn assert_whole(database: &mut Database) {
    let found = database.read(|reader| rows(reader, "PRAGMA main.integrity_check")).expect("the check runs");
    assert_eq!(found, [[Value::Text("ok".into())]]);
    loop {
        let progress = database.verify_chunk(64 * 1024).expect("the image can be read");
        assert_eq!(progress.damaged, []);
        if progress.complete {
            assert_eq!(progress.digest_matches, Some(true), "{progress:?}");
            return;
        }
    }
}
