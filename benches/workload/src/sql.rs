//! The statements, the same texts for every subject that speaks SQL.

/// The tables. `kv` is the key-value store; the others are for blobs, sorting and joining.
pub const TABLES: &str = "\
CREATE TABLE file(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE label(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
CREATE TABLE item(id INTEGER PRIMARY KEY, label INTEGER NOT NULL, place INTEGER NOT NULL, text TEXT NOT NULL) STRICT";
/// The table of keys and values.
pub const KV: &str = "CREATE TABLE kv(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

/// Parameters: key, value.
pub const INSERT: &str = "INSERT INTO main.kv(key, value) VALUES (?1, ?2)";
/// Parameters: key, value.
pub const UPSERT: &str =
    "INSERT INTO main.kv(key, value) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value";
/// Parameters: key, value.
pub const UPDATE: &str = "UPDATE main.kv SET value = ?2 WHERE key = ?1";
/// Parameter: key.
pub const DELETE: &str = "DELETE FROM main.kv WHERE key = ?1";
/// Empties the table.
pub const CLEAR: &str = "DELETE FROM main.kv";
/// Parameter: key. Column: value.
pub const GET: &str = "SELECT value FROM main.kv WHERE key = ?1";
/// Columns: key, value.
pub const SCAN: &str = "SELECT key, value FROM main.kv ORDER BY key";
/// Column: how many rows.
pub const COUNT: &str = "SELECT count(*) FROM main.kv";
/// Parameters: id, bytes.
pub const FILE_INSERT: &str = "INSERT INTO main.file(id, bytes) VALUES (?1, ?2)";
/// Parameter: id. Column: bytes.
pub const FILE_GET: &str = "SELECT bytes FROM main.file WHERE id = ?1";
/// Columns: place, text. There is no index on the place.
pub const SORT: &str = "SELECT place, text FROM main.item ORDER BY place";
/// Columns: two texts.
pub const JOIN: &str = "SELECT item.text, label.text FROM main.item JOIN main.label ON label.id = item.label";

/// Labels that items have.
pub const LABELS: u32 = 100;

/// The query for so many keys at once. Columns: key, value.
pub fn get_in(count: usize) -> String {
    let numbers: Vec<String> = (1..=count).map(|number| format!("?{number}")).collect();
    format!("SELECT key, value FROM main.kv WHERE key IN ({})", numbers.join(", "))
}

/// Fills the tables of items, with texts of 100 bytes and places in no order, and of labels.
pub fn fill_items(count: u32) -> String {
    // 7,919 and 10,007 are prime: no two of the first 10,006 items have the same place.
    format!(
        "INSERT INTO main.label \
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {LABELS}) \
         SELECT i, printf('label %04d', i) FROM n; \
         INSERT INTO main.item \
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         SELECT i, i % {LABELS} + 1, i * 7919 % 10007, printf('%0100d', i) FROM n"
    )
}
