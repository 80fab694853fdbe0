//! A page cache of 1 MiB over an image of 64 MiB: random reads and writes, scans and the building of indexes give what a
//! model of the rows gives, and the cache comes back to its size each time.
//!
//! `ICSQL_SEED` shifts the seed.
mod support;

use icsql_engine::stable::fault::FaultMemory;
use icsql_engine::{Database, Error, OpenOptions, Sql, Value};
use support::rng::Rng;
use support::{assert_whole, open_with, rows};

const CACHE_BYTES: u64 = 1 << 20;
const IMAGE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u32 = 4_096;
const CACHE_PAGES: u32 = (CACHE_BYTES / PAGE_BYTES as u64) as u32;

/// Pages that may be over the size between calls: those that statements which are kept hold on to.
const OVER_MAX: u32 = 8;

const ROWS: i64 = 70_000;
const BODY_BYTES: usize = 904;

static GET: Sql = Sql::new("SELECT grp, body FROM item WHERE id = ?1");
static PUT: Sql = Sql::new("UPDATE item SET version = ?2, grp = ?3, body = ?4 WHERE id = ?1");

fn options() -> OpenOptions {
    OpenOptions { page_bytes: PAGE_BYTES, cache_bytes: CACHE_BYTES, ..OpenOptions::default() }
}

/// What row `id` holds in its `version`-th version.
fn group(id: i64, version: i64) -> i64 {
    (id * 31 + version * 7) % 101
}

fn body(id: i64, version: i64) -> Vec<u8> {
    let word = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version as u64;
    let mut body = word.to_le_bytes().repeat(BODY_BYTES / 8);
    body.truncate(BODY_BYTES - (id % 50) as usize);
    body
}

/// The image, and the version of each row.
struct Rows {
    database: Database,
    versions: Vec<i64>,
}

impl Rows {
    fn new(raw: &FaultMemory) -> Self {
        let mut database = open_with(raw, options()).unwrap();
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, version INTEGER, grp INTEGER, body BLOB)";
        database.execute(schema, ()).unwrap();
        for start in (0..ROWS).step_by(5_000) {
            let insert = |id| (id, 0, group(id, 0), body(id, 0));
            database
                .write(|tx| {
                    for id in start..start + 5_000 {
                        tx.execute("INSERT INTO item VALUES (?1, ?2, ?3, ?4)", insert(id))?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        let rows = Self { database, versions: vec![0; ROWS as usize] };
        rows.assert_cache("the rows were inserted");
        rows
    }

    fn assert_cache(&self, after: &str) {
        let meta = self.database.meta();
        assert!(
            meta.cached_pages <= CACHE_PAGES + OVER_MAX,
            "{} pages are cached and {CACHE_PAGES} may be, after {after}",
            meta.cached_pages
        );
    }

    fn put(&mut self, id: i64) {
        let version = self.versions[id as usize] + 1;
        self.versions[id as usize] = version;
        let changed = self.database.execute(&PUT, (id, version, group(id, version), body(id, version)));
        assert_eq!(changed, Ok(1));
    }

    fn check(&self, id: i64) {
        let version = self.versions[id as usize];
        let found =
            self.database.read(|tx| tx.query_row(&GET, (id,), |row| Ok((row.integer(0)?, row.blob(1)?.to_vec()))));
        assert!(found == Ok::<_, Error>(Some((group(id, version), body(id, version)))), "row {id}, version {version}");
    }

    /// A scan of the table, and one of the index if there is one, against the model.
    fn scan(&self, index: Option<&str>) {
        let groups = |id: usize| group(id as i64, self.versions[id]);
        let (versions, sum) = (self.versions.iter().sum(), (0..self.versions.len()).map(groups).sum());
        let bytes = (0..ROWS).map(|id| (BODY_BYTES - (id % 50) as usize) as i64).sum();
        let expected = [[ROWS, versions, sum, bytes].map(Value::Integer)];
        let sql = "SELECT count(*), sum(version), sum(grp), sum(length(substr(body, 1))) FROM item NOT INDEXED";
        assert_eq!(self.database.read(|tx| rows(tx, sql)).unwrap(), expected);
        self.assert_cache("a scan");
        let Some(index) = index else { return };
        let mut counts = vec![0; 101];
        (0..self.versions.len()).for_each(|id| counts[groups(id) as usize] += 1);
        let counts = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        let expected: Vec<_> =
            counts.map(|(group, count)| vec![Value::Integer(group as i64), Value::Integer(count)]).collect();
        let sql = format!("SELECT grp, count(*) FROM item INDEXED BY {index} GROUP BY grp ORDER BY grp");
        assert_eq!(self.database.read(|tx| rows(tx, &sql)).unwrap(), expected);
        self.assert_cache("a scan of the index");
    }
}

#[test]
fn a_cache_of_a_sixty_fourth_of_the_image_is_enough() {
    let mut rng = Rng::new(81);
    let raw = FaultMemory::default();
    let mut rows = Rows::new(&raw);
    let meta = rows.database.meta();
    assert!(meta.image_bytes >= IMAGE_BYTES && meta.page_bytes == PAGE_BYTES, "{meta:?}");
    rows.scan(None);
    let random_work = |rows: &mut Rows, rng: &mut Rng| {
        for _ in 0..2_000 {
            let id = rng.below(ROWS as usize) as i64;
            if rng.one_in(3) {
                rows.put(id)
            } else {
                rows.check(id)
            }
            rows.assert_cache(&format!("a random access, {rng}"));
        }
    };
    random_work(&mut rows, &mut rng);

    // The whole table is read and sorted, and more pages are written than the cache holds.
    rows.database.execute("CREATE INDEX item_grp ON item(grp, version)", ()).unwrap();
    rows.assert_cache("an index was built");
    rows.scan(Some("item_grp"));
    random_work(&mut rows, &mut rng);
    rows.database.write(|tx| tx.execute("CREATE INDEX item_body ON item(body, grp)", ())).unwrap();
    rows.assert_cache("a large index was built");
    random_work(&mut rows, &mut rng);

    // A transaction over many more pages than the cache holds, given up and then kept.
    let many = "UPDATE item SET version = version + 1, grp = (id * 31 + (version + 1) * 7) % 101 WHERE id % 3 = 1";
    let outcome = rows.database.write(|tx| {
        tx.execute(many, ())?;
        Err::<(), _>(Error::NotOneStatement { offset: 0 })
    });
    assert!(outcome.is_err());
    rows.assert_cache("a large transaction was given up");
    rows.scan(Some("item_grp"));
    rows.database.execute("DROP INDEX item_body", ()).unwrap();
    rows.database.execute(many, ()).unwrap();
    (1..ROWS).step_by(3).for_each(|id| rows.versions[id as usize] += 1);
    rows.assert_cache("a large transaction was kept");
    rows.scan(Some("item_grp"));
    assert_whole(&mut rows.database);
    rows.assert_cache("a check of everything");

    // What is used again and again stays, whatever was read before. (Rows that the large transaction left alone.)
    let ids: Vec<i64> = (0..30).map(|n| n * 2_109).collect();
    ids.iter().for_each(|id| rows.check(*id));
    let reads = raw.counts().reads;
    (0..10).for_each(|_| ids.iter().for_each(|id| rows.check(*id)));
    assert_eq!(raw.counts().reads, reads, "rows that are in use were read again");

    drop(rows);
    let mut database = open_with(&raw, options()).unwrap();
    let cached = database.meta().cached_pages;
    assert!((CACHE_PAGES / 2..=CACHE_PAGES + OVER_MAX).contains(&cached), "{cached} pages are warm after opening");
    assert_whole(&mut database);
}
