//! `sql_schema` and `sql_explain`.
use crate::common::{Canister, Who, code, statement};
use icsql_types::{Answer, Plan, Schema};

fn plan(canister: &mut Canister, who: Who, sql: &str) -> Answer<Plan> {
    canister.call_sql_explain(who, (statement(sql),))
}

#[test]
fn a_plan_is_a_tree_and_names_full_scans() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b INT)");
    canister.run("CREATE INDEX t_a ON t(a)");
    canister.run("CREATE VIRTUAL TABLE doc USING fts5(body)");
    let cases: [(&str, &[&str]); 13] = [
        ("SELECT * FROM t WHERE id = ?1", &[]),
        ("SELECT * FROM t WHERE a = :a AND b = :b", &[]),
        ("SELECT * FROM t", &["t"]),
        ("SELECT * FROM t AS x WHERE b = 1", &["x"]),
        ("SELECT a FROM t ORDER BY a", &["t"]),
        ("SELECT 1", &[]),
        ("VALUES (1), (2)", &[]),
        ("SELECT * FROM json_each('[1]')", &[]),
        ("SELECT * FROM doc WHERE doc MATCH 'x'", &[]),
        ("SELECT * FROM doc", &["doc"]),
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5) SELECT * FROM n", &[]),
        ("SELECT * FROM t AS p JOIN t AS q ON p.b = q.b WHERE p.id = 1", &["q"]),
        ("SELECT (SELECT max(b) FROM t) FROM kv WHERE key = 'k'", &["t"]),
    ];
    for (sql, expected) in cases {
        let plan = plan(&mut canister, Who::Reader, sql).unwrap();
        assert_eq!(plan.full_scans, expected, "{sql}: {:#?}", plan.lines);
        assert!(plan.read_only);
    }
    let nested = plan(&mut canister, Who::Reader, "SELECT a FROM t UNION SELECT b FROM t WHERE id = 1").unwrap();
    assert!(nested.lines[0].starts_with("└─ "), "{:#?}", nested.lines);
    assert!(nested.lines[1].starts_with("   ├─ ") && nested.lines.len() >= 4, "{:#?}", nested.lines);
    let delete = plan(&mut canister, Who::Writer, "DELETE FROM t WHERE b = 1").unwrap();
    assert_eq!((delete.read_only, delete.full_scans), (false, vec!["t".to_owned()]));
    assert_eq!(code(&plan(&mut canister, Who::Reader, "DELETE FROM t")), 23);
    assert_eq!(code(&plan(&mut canister, Who::Reader, "SELECT * FROM icsql_role")), 23);
}

#[test]
fn the_schema_is_described() {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE t(a TEXT NOT NULL DEFAULT 'x', b INT, c AS (b + 1), PRIMARY KEY(b, a)) WITHOUT ROWID");
    canister.run("CREATE UNIQUE INDEX t_b ON t(b, lower(a))");
    canister.run("CREATE TRIGGER t_r AFTER DELETE ON t BEGIN SELECT 1; END");
    canister.run("CREATE VIEW v AS SELECT a FROM t");
    canister.run("CREATE VIRTUAL TABLE doc USING fts5(body)");
    canister.run("INSERT INTO t(b) VALUES (1), (2), (3)");
    canister.run("ANALYZE");
    canister.run("CREATE VIEW broken AS SELECT missing FROM nowhere");
    let schema: Schema = canister.call_sql_schema(Who::Reader, ()).unwrap();
    let kinds: Vec<_> = schema.tables.iter().map(|table| (table.name.as_str(), table.kind.as_str())).collect();
    assert_eq!(kinds, [("broken", "view"), ("doc", "virtual"), ("kv", "table"), ("t", "table"), ("v", "view")]);
    let table = &schema.tables[3];
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.type_name.as_str(), c.not_null, c.primary_key, c.hidden))
        .collect();
    assert_eq!(columns, [("a", "TEXT", true, 2, false), ("b", "INT", true, 1, false), ("c", "", false, 0, true)]);
    assert_eq!(table.columns[0].default_sql.as_deref(), Some("'x'"));
    let index = table.indexes.iter().find(|index| index.name == "t_b").unwrap();
    assert_eq!(
        (index.unique, index.columns.as_slice()),
        (true, ["b".to_owned(), "<expression>".to_owned()].as_slice())
    );
    assert!(index.sql.is_some() && table.indexes.iter().any(|index| index.sql.is_none()));
    assert_eq!(table.triggers.len(), 1);
    assert_eq!(table.rows_estimate, Some(3));
    let all: Schema = canister.call_sql_schema(Who::Admin, ()).unwrap();
    assert!(all.tables.iter().any(|table| table.name == "icsql_role"));
}
