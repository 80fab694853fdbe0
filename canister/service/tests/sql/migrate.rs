//! `sql_migrate` and `sql_migrations`.
use crate::common::{Canister, Who, int, text};
use icsql_canister::limits::{SQL_BYTES_MAX, SQL_MIGRATION_NAME_BYTES_MAX};
use icsql_types::{Answer, AppliedMigration, Error, Migrated, SqlMigration};

fn applied(canister: &mut Canister) -> Vec<AppliedMigration> {
    canister.call_sql_migrations(Who::Reader, ()).unwrap()
}

#[test]
fn each_is_applied_once_and_its_text_remembered() {
    let mut canister = Canister::install();
    let first = (1, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let done = canister.migrate(&[first]).unwrap();
    assert_eq!(done.applied, [1]);
    assert!(done.cost.pages_written > 0);
    let again = canister.migrate(&[first]).unwrap();
    assert_eq!((again.applied.len(), again.transaction), (0, done.transaction));
    // With the history or without it.
    assert_eq!(canister.migrate(&[first, (3, "INSERT INTO t VALUES (3)")]).unwrap().applied, [3]);
    assert_eq!(canister.migrate(&[(7, "INSERT INTO t VALUES (7)")]).unwrap().applied, [7]);
    let mut canister = canister.upgrade();
    let list = applied(&mut canister);
    assert_eq!(list.iter().map(|one| one.version).collect::<Vec<_>>(), [1, 3, 7]);
    assert_eq!(list[0].sha256, hex(first.1));
    assert_eq!((list[0].name.as_str(), list[0].applied_at), ("step 1", 1_700_000_000_000_000_000));
    let changed = canister.migrate(&[(3, "INSERT INTO t VALUES (4)")]);
    assert!(matches!(&changed, Err(Error::Conflict { what, .. }) if what == "migration 3"), "{changed:?}");
    for wrong in [&[(2, "SELECT 1")][..], &[(9, "SELECT 1"), (8, "SELECT 1")], &[(0, "SELECT 1")]] {
        let refused = canister.migrate(wrong);
        assert!(matches!(&refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert_eq!(canister.rows("SELECT x FROM t ORDER BY x"), [[int(1)], [int(3)], [int(7)]]);
}

fn hex(sql: &str) -> String {
    icsql_engine::sha256(sql).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_list_is_applied_as_a_whole_or_not() {
    let mut canister = Canister::install();
    let before = canister.service.database.meta();
    let failed = canister.migrate(&[(1, "CREATE TABLE t(x)"), (2, "INSERT INTO t VALUES (1); nonsense")]);
    assert!(matches!(&failed, Err(Error::Sqlite { statement: Some(1), offset: Some(26), .. })), "{failed:?}");
    assert_eq!(canister.service.database.meta().digest, before.digest);
    assert!(applied(&mut canister).is_empty());
}

#[test]
fn a_rebuilt_table_keeps_its_children() {
    let mut canister = Canister::install();
    let family = "CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE child(id INTEGER PRIMARY KEY, parent INT REFERENCES parent(id) ON DELETE CASCADE);
        INSERT INTO parent VALUES (1, 'a'); INSERT INTO child VALUES (10, 1)";
    let rebuild = "CREATE TABLE parent_new(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        INSERT INTO parent_new SELECT * FROM parent; DROP TABLE parent; ALTER TABLE parent_new RENAME TO parent";
    assert_eq!(canister.migrate(&[(1, family), (2, rebuild)]).unwrap().applied, [1, 2]);
    assert_eq!(canister.rows("SELECT id, parent FROM child"), [[int(10), int(1)]]);
    let orphans = canister.migrate(&[(3, "DELETE FROM parent")]);
    assert!(
        matches!(&orphans, Err(Error::Sqlite { code: 787, message, .. }) if message.contains("child")),
        "{orphans:?}"
    );
    let orphan = canister.execute(Who::Writer, "INSERT INTO child VALUES (11, 99)");
    assert!(matches!(orphan, Err(Error::Sqlite { code: 787, .. })), "foreign keys are enforced again: {orphan:?}");
    canister.run("DELETE FROM parent WHERE id = 1");
    assert_eq!(canister.rows("SELECT count(*) FROM child"), [[int(0)]]);
}

#[test]
fn what_stayed_prepared_sees_the_new_schema() {
    let mut canister = Canister::install();
    canister.migrate(&[(1, "CREATE TABLE t(x); INSERT INTO t VALUES ('old')")]).unwrap();
    assert_eq!(canister.rows("SELECT * FROM t"), [[text("old")]]);
    canister.migrate(&[(2, "ALTER TABLE t ADD COLUMN y DEFAULT 'new'")]).unwrap();
    assert_eq!(canister.rows("SELECT * FROM t"), [[text("old"), text("new")]]);
    canister.migrate(&[(3, "DROP TABLE t; nonsense")]).unwrap_err();
    assert_eq!(canister.rows("SELECT * FROM t"), [[text("old"), text("new")]]);
}

#[test]
fn lists_names_and_texts_are_limited() {
    let mut canister = Canister::install();
    let step = |version: u32, name: usize, sql: usize| SqlMigration {
        version,
        name: "n".repeat(name),
        sql: format!("SELECT 1 --{}", " ".repeat(sql - 11)),
    };
    let mut migrate = |list: &[SqlMigration]| -> Answer<Migrated> { canister.call_sql_migrate(Who::Admin, (list,)) };
    let (name, sql) = (SQL_MIGRATION_NAME_BYTES_MAX, SQL_BYTES_MAX);
    for (name, sql) in [(name - 1, 11), (name, 11), (1, sql - 1), (1, sql)] {
        // The first is applied; the texts of the others differ from it, which is found once their sizes are.
        let outcome = migrate(&[step(1, name, sql)]);
        assert!(matches!(outcome, Ok(_) | Err(Error::Conflict { .. })), "{outcome:?}");
    }
    for (wrong, limited) in
        [(step(2, name + 1, 11), "name of statement 0"), (step(2, 1, sql + 1), "sql of statement 0")]
    {
        let refused = migrate(&[wrong]);
        assert!(matches!(&refused, Err(Error::TooLarge { what, .. }) if what == limited), "{refused:?}");
    }
    let steps = |first: u32, last: u32| (first..=last).map(|version| step(version, 1, 11)).collect::<Vec<_>>();
    assert_eq!(migrate(&steps(2, 999)).unwrap().applied.len(), 998);
    let refused = migrate(&steps(1_000, 1_001));
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 1_000, actual: 1_001 }) if what == "migrations"),
        "{refused:?}"
    );
    assert_eq!(migrate(&steps(1_000, 1_000)).unwrap().applied, [1_000]);
    assert!(matches!(migrate(&steps(1_001, 1_001)), Err(Error::TooLarge { .. })));
}
