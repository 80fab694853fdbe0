//! What the canisters of the bulk cases do. Each implements [`Store`] as its library is best used and hands its work to
//! [`work`], so that data, statements and what is counted are the same for all.
//!
//! Keys have 10 bytes and values 100. Data is made before the count begins, and results are checked when it has ended.

pub mod sql;

/// Rows whose keys have 10 bytes.
pub const ROWS_MAX: u32 = 1_000_000;

/// Bytes of a key and its value.
const ROW_BYTES: u64 = 110;
/// Bytes of a value.
const VALUE_BYTES: u64 = 100;
/// Bytes of an item's text and its label's.
const JOINED_BYTES: u64 = 110;

/// A key and its value.
pub type Pair = (String, String);

/// What rows hold together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Rows.
    pub rows: u64,
    /// Bytes of their texts and blobs.
    pub bytes: u64,
}

impl Found {
    /// Counts a row with so many bytes.
    #[inline]
    pub fn row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }
}

/// What a subject is asked to do. Writes are one transaction each unless it says otherwise. Reads take each value as the
/// library hands it out.
///
/// # Errors
/// All answer what the library said, in words.
pub trait Store {
    /// Takes all rows away and inserts these.
    fn reset(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// Inserts rows whose keys are new.
    fn insert(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// Inserts rows or replaces their values.
    fn upsert(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// Replaces the values of rows that are there.
    fn update(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// As [`Store::update`], each row in a transaction of its own.
    fn update_each(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// Deletes rows.
    fn delete(&mut self, rows: &[Pair]) -> Result<(), String>;
    /// Reads the value of each key, one query a key.
    fn get_each(&mut self, keys: &[String]) -> Result<Found, String>;
    /// Reads keys and values as text in the order of the keys, up to `rows` of them.
    fn scan(&mut self, rows: u64) -> Result<Found, String>;
    /// As [`Store::scan`], but only how long the texts are.
    fn scan_lengths(&mut self, rows: u64) -> Result<Found, String>;
    /// Writes a blob under a new number.
    fn blob_write(&mut self, id: u32, bytes: &[u8]) -> Result<(), String>;
    /// Reads the blob of a number.
    fn blob_read(&mut self, id: u32) -> Result<Found, String>;
    /// Pages of the image and bytes of a page; of what is no SQLite, those of its memory.
    fn image(&mut self) -> Result<(u64, u64), String>;

    /// Counts the rows with a query.
    fn count(&mut self) -> Result<u64, String> {
        Err(NO_SQL.to_string())
    }
    /// Reads keys and values of these keys with one query.
    fn get_in(&mut self, _sql: &str, _keys: &[String]) -> Result<Found, String> {
        Err(NO_SQL.to_string())
    }
    /// Reads all items in the order of their places, which have no index.
    fn sort(&mut self) -> Result<Found, String> {
        Err(NO_SQL.to_string())
    }
    /// Reads all items with their labels.
    fn join(&mut self) -> Result<Found, String> {
        Err(NO_SQL.to_string())
    }
    /// Inserts rows of which the last is there already, and answers the error that this must be.
    fn insert_refused(&mut self, _rows: &[Pair]) -> Result<String, String> {
        Err(NO_SQL.to_string())
    }
}

const NO_SQL: &str = "this subject has no SQL";

/// Rows by number, in the revision that is to be written.
pub fn rows(range: core::ops::Range<u32>, revision: u32) -> Vec<Pair> {
    range.map(|row| (key(row), value(row, revision))).collect()
}

/// The key of a row.
pub fn key(row: u32) -> String {
    format!("key-{row:06}")
}

/// A value that differs by row and revision.
pub fn value(row: u32, revision: u32) -> String {
    format!("{:0100}", u64::from(row) * 1_000 + u64::from(revision))
}

/// So many keys of a table of `stored` rows, in no order.
fn spread(stored: u32, count: u32) -> Vec<String> {
    // A prime that divides none of the row counts, so that no key comes twice.
    let row = |i: u32| (u64::from(stored / 2) + u64::from(i) * 7_919) % u64::from(stored);
    (0..count).map(|i| key(row(i) as u32)).collect()
}

/// Does one kind of work and answers the instructions by `counter` that it took.
///
/// `first` and `count` say which rows are written; for reads, `first` is how many rows are stored, and for blobs the
/// number of the blob and its bytes. Names that end in `_warm` do the same once before the count begins.
///
/// # Errors
/// What the store answers; a result that is not what was stored; a name that does not exist.
pub fn work(store: &mut impl Store, name: &str, first: u32, count: u32, counter: fn() -> u64) -> Result<u64, String> {
    let (kind, warm) = name.strip_suffix("_warm").map_or((name, false), |kind| (kind, true));
    let end = first.saturating_add(count);
    let count_bytes = |bytes: u64| Found { rows: count.into(), bytes: u64::from(count) * bytes };
    match kind {
        "reset" => write(store, rows(first..end, 0), counter, |store, rows| store.reset(rows)),
        "insert" => write(store, rows(first..end, 0), counter, |store, rows| store.insert(rows)),
        "upsert" => write(store, rows(first..end, 1), counter, |store, rows| store.upsert(rows)),
        "update" => write(store, rows(first..end, 1), counter, |store, rows| store.update(rows)),
        "update_each" => write(store, rows(first..end, 1), counter, |store, rows| store.update_each(rows)),
        "delete" => write(store, rows(first..end, 0), counter, |store, rows| store.delete(rows)),
        "insert_refused" => {
            // The first row is there and comes last, behind those that are new.
            let rows = rows(first..end, 0).into_iter().rev().collect();
            write(store, rows, counter, |store, rows: &Vec<Pair>| store.insert_refused(rows).map(drop))
        }
        "blob_write" => {
            let bytes: Vec<u8> = (0..count).map(|i| (i % 251) as u8).collect();
            write(store, bytes, counter, |store, bytes| store.blob_write(first, bytes))
        }
        "read" => {
            let keys = spread(first, count);
            read(store, count_bytes(VALUE_BYTES), warm, counter, |store| store.get_each(&keys))
        }
        "in" => {
            let (keys, sql) = (spread(first, count), sql::get_in(count as usize));
            read(store, count_bytes(ROW_BYTES), warm, counter, |store| store.get_in(&sql, &keys))
        }
        "scan" => read(store, count_bytes(ROW_BYTES), warm, counter, |store| store.scan(count.into())),
        "scan_lengths" => read(store, count_bytes(ROW_BYTES), warm, counter, |store| store.scan_lengths(count.into())),
        "count" => {
            let counted = |store: &mut _| Store::count(store).map(|rows| Found { rows, bytes: 0 });
            read(store, count_bytes(0), warm, counter, counted)
        }
        "blob_read" => {
            let whole = Found { rows: 1, bytes: count.into() };
            read(store, whole, warm, counter, |store| store.blob_read(first))
        }
        "sort" => read(store, count_bytes(VALUE_BYTES), warm, counter, |store| store.sort()),
        "join" => read(store, count_bytes(JOINED_BYTES), warm, counter, |store| store.join()),
        _ => Err(format!("there is no work {name}")),
    }
}

fn write<S: Store, D>(
    store: &mut S,
    data: D,
    counter: fn() -> u64,
    body: impl FnOnce(&mut S, &D) -> Result<(), String>,
) -> Result<u64, String> {
    let start = counter();
    body(store, &data)?;
    Ok(counter() - start)
}

fn read<S: Store>(
    store: &mut S,
    expected: Found,
    warm: bool,
    counter: fn() -> u64,
    mut body: impl FnMut(&mut S) -> Result<Found, String>,
) -> Result<u64, String> {
    if warm {
        body(store)?;
    }
    let start = counter();
    let found = body(store)?;
    let instructions = counter() - start;
    if found != expected {
        return Err(format!("found {found:?} in place of {expected:?}"));
    }
    Ok(instructions)
}
