//! Writes to standard output a stable memory in which ic-sqlite-vfs keeps a database, as a canister would have it: its
//! migrations, a table with overflow pages and a secondary index, an FTS5 index, foreign keys, a view and a trigger, and
//! freed pages. The same bytes each time.
//!
//!     scripts/refresh-fixtures

use ic_sqlite_vfs::db::migrate::Migration;
use ic_sqlite_vfs::{Db, DbError, DefaultMemoryImpl, MemoryId, MemoryManager, params};
use std::io::Write;

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: include_str!("1.sql") },
    Migration { version: 2, sql: include_str!("2.sql") },
    Migration { version: 5, sql: include_str!("5.sql") },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (made, taken) = std::sync::mpsc::channel();
    // On a thread that never ends: natively the crate aborts when its connections are dropped with their thread.
    std::thread::spawn(move || {
        let _ = made.send(image().map_err(|error| error.to_string()));
        loop {
            std::thread::park();
        }
    });
    std::io::stdout().write_all(&taken.recv()??)?;
    Ok(())
}

fn image() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let raw = DefaultMemoryImpl::default();
    let manager = MemoryManager::init(raw.clone());
    Db::init(manager.get(MemoryId::new(120)))?;
    Db::migrate(MIGRATIONS)?;
    Db::update(|db| {
        for (id, name) in [(1_i64, "Ada"), (2, "Blaise"), (3, "Zoë")] {
            db.execute("INSERT INTO author(id, name) VALUES (?1, ?2)", params![id, name])?;
        }
        Ok::<_, DbError>(())
    })?;
    Db::update(|db| {
        for id in 1..=300_i64 {
            let title = format!("note {id:04}");
            // Every fiftieth needs overflow pages.
            let body = format!("body {id} ").repeat(if id % 50 == 0 { 4_000 } else { 10 });
            let attachment = format!("attachment {id}").into_bytes();
            db.execute(
                "INSERT INTO note VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?1 % 7 = 0 THEN ?6 END)",
                params![id, id % 3 + 1, title, body, id as f64 / 8.0, attachment],
            )?;
        }
        db.execute("INSERT INTO search(rowid, title, body) SELECT id, title, body FROM note", params![])
    })?;
    // Free pages in the middle of the image.
    Db::update(|db| {
        db.execute("DELETE FROM note WHERE id BETWEEN 100 AND 120", params![])?;
        db.execute_batch("CREATE TABLE passing(value BLOB); CREATE TABLE last(value TEXT);")?;
        db.execute("INSERT INTO passing VALUES (zeroblob(1000000))", params![])?;
        db.execute("INSERT INTO last VALUES (printf('%.*c', 30000, 'e'))", params![])?;
        db.execute_batch("DROP TABLE passing")
    })?;
    // The checksum that the superblock then has must be found again by who adopts.
    Db::refresh_checksum()?;
    Ok(raw.borrow().clone())
}
