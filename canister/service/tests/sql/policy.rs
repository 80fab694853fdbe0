//! What the SQL of each role may touch.
use crate::common::{Canister, Who, code, int, statement, text};
use icsql_types::{Error, Written};

const SERVICE: [&str; 5] = ["kv_note", "icsql_role", "icsql_setting", "icsql_query", "icsql_sql_migration"];

#[test]
fn kv_can_be_read_and_joined_and_the_rest_only_by_admins() {
    let mut canister = Canister::install();
    canister.call_kv_put::<Written>(Who::Writer, ("city", "Zug")).unwrap();
    canister.run("CREATE TABLE t(key TEXT)");
    canister.run("INSERT INTO t VALUES ('city')");
    let join = statement("SELECT kv.value FROM t JOIN kv USING (key)");
    for who in [Who::Controller, Who::Admin, Who::Writer, Who::Reader] {
        assert_eq!(canister.query(who, join.clone(), None).unwrap().rows, [[text("Zug")]], "{who:?}");
    }
    let stranger = canister.query(Who::Stranger, join, None);
    assert!(matches!(stranger, Err(Error::Forbidden { .. })), "{stranger:?}");
    for table in SERVICE {
        let read = statement(&format!("SELECT count(*) FROM {table}"));
        // Twice each, so that a statement that stayed prepared for one meets the other.
        for who in [Who::Admin, Who::Reader, Who::Writer, Who::Controller, Who::Reader] {
            let outcome = canister.query(who, read.clone(), None);
            let allowed = matches!(who, Who::Admin | Who::Controller);
            assert_eq!(outcome.is_ok(), allowed, "{table} {who:?}: {outcome:?}");
            assert!(allowed || code(&outcome) == 23, "{outcome:?}");
        }
    }
    canister.run("CREATE VIEW peek AS SELECT * FROM icsql_role");
    assert_eq!(code(&canister.query(Who::Reader, statement("SELECT * FROM peek"), None)), 23);
    assert_eq!(canister.rows("SELECT count(*) FROM peek"), [[int(3)]]);
}

#[test]
fn nobody_writes_the_tables_of_the_service_or_ties_anything_to_them() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x)");
    let digest = canister.service.database.meta().digest;
    let mut attempts: Vec<String> = [
        "CREATE INDEX i ON kv(version)",
        "CREATE TRIGGER r AFTER INSERT ON kv BEGIN SELECT 1; END",
        "CREATE TABLE c(k REFERENCES kv(key) ON DELETE CASCADE)",
        "CREATE TABLE c(k REFERENCES \"KV\")",
        "ALTER TABLE t ADD COLUMN k REFERENCES kv_note(key)",
        "ALTER TABLE t RENAME TO kv_mine",
        "ALTER TABLE t RENAME TO icsql_mine",
        "ALTER TABLE kv RENAME TO other",
        "ALTER TABLE kv ADD COLUMN more",
        "CREATE TABLE kv_mine(x)",
        "CREATE TABLE ICSQL_mine(x)",
        "CREATE VIEW icsql_v AS SELECT 1",
        "CREATE INDEX kv_i ON t(x)",
        "CREATE VIRTUAL TABLE kv_fts USING fts5(x)",
        "CREATE TABLE main.kv(x)",
        "UPDATE sqlite_schema SET sql = ''",
        "CREATE TEMP TABLE kv(x)",
        "ATTACH ':memory:' AS other",
        "VACUUM",
        "BEGIN",
        "PRAGMA writable_schema = 1",
        "PRAGMA foreign_keys = 0",
        "PRAGMA journal_mode = OFF",
        "WITH gone AS (SELECT 1) DELETE FROM kv",
    ]
    .map(str::to_owned)
    .to_vec();
    for table in SERVICE.into_iter().chain(["kv", "icsql_migration", "icsql_idempotency"]) {
        attempts.push(format!("DELETE FROM {table}"));
        attempts.push(format!("DROP TABLE {table}"));
        attempts.push(format!("INSERT INTO {table} DEFAULT VALUES"));
    }
    for sql in &attempts {
        for who in [Who::Writer, Who::Admin, Who::Controller] {
            let refused = canister.execute(who, sql);
            assert!(matches!(&refused, Err(Error::Sqlite { .. })), "{sql} {who:?}: {refused:?}");
        }
        let refused = canister.migrate(&[(1, sql)]);
        assert!(matches!(&refused, Err(Error::Sqlite { .. })), "{sql} as a migration: {refused:?}");
        assert_eq!(canister.service.database.meta().digest, digest, "{sql}");
    }
    // Nor behind a trigger of a table that may be written.
    canister.run("CREATE TRIGGER reach AFTER INSERT ON t BEGIN DELETE FROM kv; END");
    assert_eq!(code(&canister.execute(Who::Admin, "INSERT INTO t VALUES (1)")), 23);
    canister.call_kv_put::<Written>(Who::Writer, ("k", "v")).unwrap();
    assert_eq!(canister.call_kv_get::<Option<String>>(Who::Reader, ("k",)).unwrap().as_deref(), Some("v"));
}

#[test]
fn writers_change_rows_and_admins_the_schema() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(x UNIQUE)");
    for sql in ["INSERT INTO t VALUES (1)", "UPDATE t SET x = 2", "DELETE FROM t"] {
        assert!(matches!(canister.execute(Who::Reader, sql), Err(Error::Forbidden { .. })));
        canister.execute(Who::Writer, sql).unwrap();
    }
    let schema = [
        "CREATE TABLE n(x)",
        "DROP TABLE t",
        "CREATE INDEX n ON t(x)",
        "ALTER TABLE t ADD y",
        "ANALYZE",
        "REINDEX",
        "PRAGMA user_version = 1",
    ];
    for sql in schema {
        assert_eq!(code(&canister.execute(Who::Writer, sql)), 23, "{sql}");
    }
    let migrated: Result<icsql_types::Migrated, _> =
        canister.call_sql_migrate(Who::Writer, (Vec::<icsql_types::SqlMigration>::new(),));
    assert!(matches!(migrated, Err(Error::Forbidden { .. })));
    for sql in schema.into_iter().rev() {
        canister.execute(Who::Admin, sql).unwrap();
    }
}
