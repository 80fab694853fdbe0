//! Statements that a program runs for somebody else, and changes of the schema with foreign keys.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Budget, Changes, Database, Error, Policy, Reader, Writer};
use support::{assert_whole, contents, open, rows};

fn not_secret(table: &str) -> bool {
    !table.to_ascii_lowercase().starts_with("secret")
}

fn neither_secret_nor_fixed(table: &str) -> bool {
    not_secret(table) && !table.eq_ignore_ascii_case("fixed")
}

fn any(_: &str) -> bool {
    true
}

static READER: Policy = Policy { may_read: not_secret, may_write: neither_secret_nor_fixed, changes: Changes::Nothing };
static WRITER: Policy = Policy { may_read: not_secret, may_write: neither_secret_nor_fixed, changes: Changes::Rows };
static OWNER: Policy = Policy { may_read: any, may_write: neither_secret_nor_fixed, changes: Changes::Schema };

fn database() -> Database {
    let mut database = open(&HeapMemory::new());
    let sql = "CREATE TABLE secret(x); CREATE TABLE fixed(x INTEGER PRIMARY KEY); CREATE TABLE t(x UNIQUE);
        CREATE VIEW peek AS SELECT x FROM secret; INSERT INTO secret VALUES (7); INSERT INTO t VALUES (1)";
    database.write(|tx| tx.execute_batch(sql)).unwrap();
    database
}

/// Runs a statement under a policy, and undoes it.
fn outcome(database: &mut Database, policy: &'static Policy, sql: &str) -> Result<(), Error> {
    let mut inner = Ok(());
    let _: Result<(), Error> = database.write(|writer| {
        inner = writer.restricted(policy).execute(sql, ()).map(|_| ());
        Err(Error::TransactionUndone)
    });
    inner
}

#[test]
fn a_policy_decides_what_statements_may_touch() {
    let mut database = database();
    let reads = [
        "SELECT * FROM t",
        "SELECT x FROM fixed",
        "WITH secret AS (SELECT 1) SELECT * FROM secret",
        "SELECT * FROM sqlite_schema",
    ];
    let secrets = [
        "SELECT x FROM secret",
        "SELECT count(*) FROM SECRET",
        "SELECT * FROM peek",
        "SELECT (SELECT max(x) FROM secret) FROM t",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM main.secret)",
    ];
    let writes =
        ["INSERT INTO t VALUES (2)", "UPDATE t SET x = 3", "DELETE FROM t", "REPLACE INTO t VALUES (4) RETURNING x"];
    let fixed = [
        "INSERT INTO fixed VALUES (1)",
        "UPDATE Fixed SET x = 1",
        "DELETE FROM main.fixed",
        "INSERT INTO secret SELECT 1",
        "INSERT INTO fixed VALUES (1) ON CONFLICT DO UPDATE SET x = 2",
    ];
    let schema = [
        "CREATE TABLE n(x)",
        "CREATE VIEW n AS SELECT 1",
        "CREATE INDEX n ON t(x)",
        "CREATE TRIGGER n AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE n USING fts5(x)",
        "ALTER TABLE t ADD COLUMN y",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
        "DROP VIEW peek",
        "ANALYZE",
        "REINDEX",
        "PRAGMA user_version = 3",
    ];
    let schema_of_fixed = [
        "CREATE TABLE secret_2(x)",
        "CREATE INDEX n ON fixed(x)",
        "CREATE TRIGGER n AFTER INSERT ON fixed BEGIN SELECT 1; END",
        "ALTER TABLE fixed ADD COLUMN y",
        "DROP TABLE fixed",
        "CREATE VIRTUAL TABLE secret_fts USING fts5(x)",
        "CREATE VIRTUAL TABLE n USING dbstat",
        "ATTACH 'x' AS y",
        "BEGIN",
        "CREATE TEMP TABLE n(x)",
        "PRAGMA foreign_keys = 0",
        "PRAGMA writable_schema = 1",
    ];
    let mut check = |statements: &[&str], allowed: [bool; 3]| {
        for sql in statements {
            for (policy, allowed) in [&READER, &WRITER, &OWNER].into_iter().zip(allowed) {
                let outcome = outcome(&mut database, policy, sql);
                let refused = matches!(outcome, Err(Error::Refused { .. }));
                assert_eq!(refused, !allowed, "{sql}, {:?}: {outcome:?}", policy.changes);
                assert!(refused || outcome.is_ok(), "{sql}: {outcome:?}");
            }
        }
    };
    check(&reads, [true; 3]);
    check(&secrets, [false, false, true]);
    check(&writes, [false, true, true]);
    check(&fixed, [false; 3]);
    check(&schema, [false, false, true]);
    check(&schema_of_fixed, [false; 3]);
}

#[test]
fn a_trigger_does_not_reach_further_than_who_sets_it_off() {
    let mut database = database();
    let sql = "CREATE TRIGGER reach AFTER INSERT ON t BEGIN INSERT INTO fixed VALUES (new.x); END";
    database.write(|writer| writer.restricted(&OWNER).execute(sql, ())).unwrap();
    for policy in [&WRITER, &OWNER] {
        let refused = outcome(&mut database, policy, "INSERT INTO t VALUES (5)");
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
}

#[test]
fn what_stays_prepared_for_one_is_not_handed_to_another() {
    let database = database();
    let sql = "SELECT x FROM secret";
    let read = |reader: &Reader<'_>, policy| rows(&reader.restricted(policy), sql);
    database
        .read(|reader| {
            for _ in 0..2 {
                rows(reader, sql)?;
                read(reader, &OWNER)?;
                assert!(matches!(read(reader, &READER), Err(Error::Refused { .. })));
            }
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn full_text_search_works_under_a_policy() {
    let mut database = database();
    let found = database.write(|writer| {
        writer.restricted(&OWNER).execute("CREATE VIRTUAL TABLE doc USING fts5(body)", ())?;
        writer.restricted(&WRITER).execute("INSERT INTO doc VALUES ('some words'), ('others')", ())?;
        rows(&writer.restricted(&READER), "SELECT body FROM doc WHERE doc MATCH 'words'")
    });
    assert_eq!(found.unwrap().len(), 1);
    assert_whole(&mut database);
}

#[test]
fn a_statement_is_described_without_being_run() {
    let database = database();
    let described =
        database.read(|reader| reader.describe("SELECT x, x AS \"y z\", 1 FROM t WHERE x = :a OR x = ?3")).unwrap();
    assert!(described.read_only);
    assert_eq!(described.columns, ["x", "y z", "1"]);
    assert_eq!(described.parameters, [Some(":a".to_owned()), None, Some("?3".to_owned())]);
    let described = database.read(|reader| reader.describe("DELETE FROM t")).unwrap();
    assert!(!described.read_only && described.columns.is_empty() && described.parameters.is_empty());
    assert_eq!(contents_of(&database), 1, "it was not run");
}

fn contents_of(database: &Database) -> usize {
    database.read(|reader| rows(reader, "SELECT * FROM t")).unwrap().len()
}

const FAMILY: &str = "CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent(id) ON DELETE CASCADE);
    INSERT INTO parent VALUES (1, 'a'), (2, 'b'); INSERT INTO child VALUES (10, 1), (11, 2)";
const REBUILD: &str = "CREATE TABLE parent_new(id INTEGER PRIMARY KEY, name TEXT NOT NULL, extra INT);
    INSERT INTO parent_new SELECT id, name, 0 FROM parent; DROP TABLE parent; ALTER TABLE parent_new RENAME TO parent";

fn children(database: &Database) -> usize {
    database.read(|reader| rows(reader, "SELECT * FROM child")).unwrap().len()
}

fn enforced(database: &mut Database) -> bool {
    let orphan = outcome(database, &WRITER, "INSERT INTO child VALUES (99, 99)");
    matches!(orphan, Err(Error::Sqlite(_)))
}

#[test]
fn a_table_is_rebuilt_and_its_children_stay() {
    let mut database = open(&HeapMemory::new());
    database.write(|tx| tx.execute_batch(FAMILY)).unwrap();
    // The same within an ordinary transaction takes the children with it.
    let lost: Result<usize, Error> = database.write(|tx| {
        tx.execute_batch(REBUILD)?;
        assert_eq!(rows(tx, "SELECT * FROM child")?.len(), 0);
        Err(Error::TransactionUndone)
    });
    assert!(lost.is_err() && children(&database) == 2);
    let rebuild = |tx: &Writer<'_>| tx.execute_batch(REBUILD);
    let (outcome, metrics) = database.write_schema(&Budget::UNLIMITED, rebuild);
    outcome.unwrap();
    assert!(metrics.pages_written > 0);
    assert_eq!(children(&database), 2);
    assert!(enforced(&mut database), "foreign keys are enforced again");
    // The cascade works on the new table.
    database.write(|tx| tx.execute("DELETE FROM parent WHERE id = 1", ())).unwrap();
    assert_eq!(children(&database), 1);
    assert_whole(&mut database);
}

#[test]
fn a_change_that_leaves_orphans_is_undone_and_foreign_keys_are_enforced_after_every_way_out() {
    let mut database = open(&HeapMemory::new());
    database.write(|tx| tx.execute_batch(FAMILY)).unwrap();
    let before = contents(&mut database);
    let (orphans, _) =
        database.write_schema(&Budget::UNLIMITED, |tx| tx.execute_batch("DELETE FROM parent WHERE id = 2"));
    let expected = Error::ForeignKey { table: "child".into(), rowid: Some(11), parent: "parent".into() };
    assert_eq!(orphans, Err(expected));
    assert!(enforced(&mut database));

    let (failed, _) = database.write_schema(&Budget::UNLIMITED, |tx| tx.execute_batch("DROP TABLE parent; nonsense"));
    assert!(matches!(failed, Err(Error::Sqlite(_))), "{failed:?}");
    assert!(enforced(&mut database));

    let budget = Budget { dirty_pages: 0, ..Budget::UNLIMITED };
    let (stopped, _) = database.write_schema(&budget, |tx| tx.execute_batch(REBUILD));
    assert!(matches!(stopped, Err(Error::Budget(_))), "{stopped:?}");
    assert!(enforced(&mut database));

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let body = |tx: &Writer<'_>| -> Result<(), Error> {
            tx.execute_batch("DROP TABLE parent")?;
            panic!("in the middle")
        };
        database.write_schema(&Budget::UNLIMITED, body)
    }));
    assert!(panicked.is_err());
    assert!(enforced(&mut database));
    assert_eq!(contents(&mut database), before);
    assert_whole(&mut database);
}
