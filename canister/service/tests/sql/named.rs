//! Named queries.
use crate::common::{Canister, Who, int, statement, text};
use icsql_canister::limits::{QUERIES_MAX, QUERY_NAME_BYTES_MAX, QUERY_PARAMS_MAX, QUERY_SQL_BYTES_MAX};
use icsql_types::{
    Answer, Callers, DefinedQuery, Error, Params, QueryDefinition, QueryParameter, ReadOptions, Role, RowSet, Stop,
    Value,
};

fn definition(name: &str, sql: &str, params: &[(&str, &str)]) -> QueryDefinition {
    let params = params.iter().map(|(name, type_name)| QueryParameter {
        name: (*name).to_owned(),
        type_name: type_name.trim_end_matches('?').to_owned(),
        nullable: type_name.ends_with('?'),
    });
    QueryDefinition {
        name: name.to_owned(),
        sql: sql.to_owned(),
        params: params.collect(),
        callers: Callers::Public,
        max_rows: None,
        max_bytes: None,
        max_instructions: None,
        allow_full_scan: None,
    }
}

fn define(canister: &mut Canister, definition: &QueryDefinition) -> Answer<DefinedQuery> {
    canister.call_query_define(Who::Admin, (definition,))
}

fn call(canister: &mut Canister, who: Who, name: &str, params: Params) -> Answer<RowSet> {
    canister.call_query_call(who, (name, params, None::<ReadOptions>))
}

fn named(name: &str, value: Value) -> Params {
    Params::Named(vec![(name.to_owned(), value)])
}

fn with_cities() -> Canister {
    let mut canister = Canister::install();
    canister.run("CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT UNIQUE, people INT)");
    canister.run("INSERT INTO city(name, people) VALUES ('Zug', 30934), ('Bern', 134794), ('Chur', 38293)");
    canister
}

const BY_NAME: &str = "SELECT name, people FROM city WHERE name = :name";

#[test]
fn a_query_is_defined_called_and_dropped() {
    let mut canister = with_cities();
    let query = definition("city", BY_NAME, &[("name", "text")]);
    let defined = define(&mut canister, &query).unwrap();
    assert_eq!(defined.columns, ["name", "people"]);
    assert!(
        defined.plan.read_only && defined.plan.full_scans.is_empty() && defined.plan.lines[0].contains("SEARCH city"),
        "{:?}",
        defined.plan
    );
    for params in [named("name", text("Bern")), named(":name", text("Bern")), Params::Positional(vec![text("Bern")])] {
        let found = call(&mut canister, Who::Stranger, "city", params).unwrap();
        assert_eq!((found.rows, found.stop), (vec![vec![text("Bern"), int(134_794)]], Stop::End));
    }
    let again = define(&mut canister, &query);
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    let mut canister = canister.upgrade();
    assert_eq!(call(&mut canister, Who::Stranger, "city", named("name", text("Zug"))).unwrap().rows.len(), 1);
    let list: Vec<DefinedQuery> = canister.call_query_list(Who::Reader, ()).unwrap();
    assert_eq!(list, [defined]);
    canister.call_query_drop::<()>(Who::Admin, ("city",)).unwrap();
    for gone in [
        call(&mut canister, Who::Reader, "city", Params::None).map(|_| ()),
        canister.call_query_drop(Who::Admin, ("city",)),
    ] {
        assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    }
    for who in [Who::Writer, Who::Stranger] {
        let refused: Answer<DefinedQuery> = canister.call_query_define(who, (&query,));
        assert!(matches!(refused, Err(Error::Forbidden { .. })));
    }
}

#[test]
fn a_definition_is_one_select_that_is_cheap_and_declares_its_parameters() {
    let mut canister = with_cities();
    let refused = [
        definition("", BY_NAME, &[("name", "text")]),
        definition(&"n".repeat(QUERY_NAME_BYTES_MAX + 1), BY_NAME, &[("name", "text")]),
        definition("q", "DELETE FROM city", &[]),
        definition("q", "DELETE FROM city RETURNING id", &[]),
        definition("q", "PRAGMA table_info(city)", &[]),
        definition("q", "EXPLAIN SELECT 1", &[]),
        definition("q", "SELECT 1; SELECT 2", &[]),
        definition("q", "", &[]),
        definition("q", "SELECT nonsense FROM city", &[]),
        definition("q", "SELECT * FROM icsql_role", &[]),
        definition("q", BY_NAME, &[]),
        definition("q", BY_NAME, &[("name", "text"), ("more", "text")]),
        definition("q", BY_NAME, &[("name", "text"), ("name", "text")]),
        definition("q", BY_NAME, &[("name", "varchar")]),
        definition("q", "SELECT ?1", &[("1", "text")]),
        definition("q", "SELECT * FROM city WHERE people > :people", &[("people", "integer")]),
        QueryDefinition { max_rows: Some(0), ..definition("q", BY_NAME, &[("name", "text")]) },
    ];
    let before = canister.service.database.meta().digest;
    for query in refused {
        let outcome = define(&mut canister, &query);
        assert!(outcome.is_err(), "{query:?}");
    }
    assert_eq!(canister.service.database.meta().digest, before);
    let scan = definition("q", "SELECT * FROM city WHERE people > :people", &[("people", "integer")]);
    let Err(Error::InvalidArgument { message, .. }) = define(&mut canister, &scan) else { panic!("a full scan") };
    assert!(message.contains("allow_full_scan") && message.contains("SCAN city"), "{message}");
    let allowed = define(&mut canister, &QueryDefinition { allow_full_scan: Some(true), ..scan }).unwrap();
    assert_eq!(allowed.plan.full_scans, ["city"]);
    let padded = |bytes: usize| format!("SELECT 1 --{}", " ".repeat(bytes - 11));
    for bytes in [QUERY_SQL_BYTES_MAX - 1, QUERY_SQL_BYTES_MAX] {
        define(&mut canister, &definition(&format!("of {bytes}"), &padded(bytes), &[])).unwrap();
    }
    let refused = define(&mut canister, &definition("more", &padded(QUERY_SQL_BYTES_MAX + 1), &[]));
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 4_096, actual: 4_097 }) if what == "sql"),
        "{refused:?}"
    );
    for count in [QUERY_PARAMS_MAX - 1, QUERY_PARAMS_MAX, QUERY_PARAMS_MAX + 1] {
        let names: Vec<_> = (0..count).map(|place| format!("p{place}")).collect();
        let params: Vec<_> = names.iter().map(|name| (name.as_str(), "any")).collect();
        let sql = format!("SELECT :{}", names.join(", :"));
        let outcome = define(&mut canister, &definition(&format!("with {count}"), &sql, &params));
        assert_eq!(outcome.is_err(), count > QUERY_PARAMS_MAX, "{outcome:?}");
    }
    for name in [QUERY_NAME_BYTES_MAX - 1, QUERY_NAME_BYTES_MAX] {
        define(&mut canister, &definition(&"n".repeat(name), "WITH x AS (SELECT 1) SELECT * FROM x", &[])).unwrap();
    }
}

#[test]
fn the_types_of_parameters_are_checked() {
    let mut canister = with_cities();
    let sql = "SELECT typeof(:v)";
    let values = [Value::Null, int(1), Value::Real(0.5), text("t"), Value::Blob(vec![1].into())];
    let fitting: [(&str, &[&str]); 7] = [
        ("integer", &["integer"]),
        ("real", &["integer", "real"]),
        ("text", &["text"]),
        ("blob", &["blob"]),
        ("any", &["integer", "real", "text", "blob"]),
        ("integer?", &["null", "integer"]),
        ("any?", &["null", "integer", "real", "text", "blob"]),
    ];
    for (type_name, fitting) in fitting {
        define(&mut canister, &definition(type_name, sql, &[("v", type_name)])).unwrap();
        let mut taken = Vec::new();
        for value in &values {
            match call(&mut canister, Who::Stranger, type_name, named("v", value.clone())) {
                Ok(found) => taken.extend(found.rows.into_iter().flatten()),
                Err(Error::InvalidArgument { argument, .. }) => assert_eq!(argument, "params"),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(taken, fitting.iter().map(|name| text(name)).collect::<Vec<_>>(), "{type_name}");
    }
    for params in [Params::None, named("w", int(1)), Params::Positional(vec![int(1), int(2)])] {
        let refused = call(&mut canister, Who::Stranger, "any", params);
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
}

#[test]
fn callers_are_those_of_the_role_or_above() {
    let mut canister = with_cities();
    let callers =
        [Callers::Public, Callers::Role(Role::Reader), Callers::Role(Role::Writer), Callers::Role(Role::Admin)];
    let who = [Who::Stranger, Who::Reader, Who::Writer, Who::Admin, Who::Controller];
    for (level, callers) in callers.into_iter().enumerate() {
        let query = QueryDefinition { callers, ..definition(&format!("q{level}"), "SELECT 1", &[]) };
        define(&mut canister, &query).unwrap();
        for (rank, who) in who.into_iter().enumerate() {
            let outcome = call(&mut canister, who, &query.name, Params::None);
            assert_eq!(outcome.is_ok(), rank >= level, "{who:?} {callers:?}: {outcome:?}");
            assert!(rank >= level || matches!(outcome, Err(Error::Forbidden { .. })));
        }
    }
    let mut canister = canister.upgrade();
    assert!(call(&mut canister, Who::Writer, "q3", Params::None).is_err(), "callers outlive an upgrade");
}

#[test]
fn a_query_answers_in_pages_within_its_limits() {
    let mut canister = with_cities();
    let query = QueryDefinition {
        max_rows: Some(2),
        allow_full_scan: Some(true),
        ..definition("all", "SELECT name FROM city ORDER BY id", &[])
    };
    define(&mut canister, &query).unwrap();
    let ask = |canister: &mut Canister, options: ReadOptions| -> RowSet {
        canister.call_query_call(Who::Stranger, ("all", Params::None, Some(options))).unwrap()
    };
    let first = ask(&mut canister, ReadOptions { max_rows: Some(50), ..Default::default() });
    assert_eq!((first.rows.len(), first.stop), (2, Stop::Rows));
    let second = ask(&mut canister, ReadOptions { cursor: first.cursor, ..Default::default() });
    assert_eq!((second.rows, second.stop), (vec![vec![text("Chur")]], Stop::End));
    assert_eq!(ask(&mut canister, ReadOptions { max_rows: Some(1), ..Default::default() }).rows.len(), 1);
}

#[test]
fn a_change_of_the_schema_says_which_queries_it_breaks() {
    let mut canister = with_cities();
    define(&mut canister, &definition("breaks", BY_NAME, &[("name", "text")])).unwrap();
    define(&mut canister, &definition("works", "SELECT people FROM city WHERE id = :id", &[("id", "integer")]))
        .unwrap();
    let done = canister.migrate(&[(1, "ALTER TABLE city RENAME COLUMN name TO title")]).unwrap();
    let broken: Vec<_> = done.broken_queries.iter().map(|query| query.name.as_str()).collect();
    assert_eq!(broken, ["breaks"]);
    assert!(done.broken_queries[0].message.contains("name"), "{:?}", done.broken_queries);
    let outcome = call(&mut canister, Who::Stranger, "breaks", named("name", text("Zug")));
    assert!(matches!(outcome, Err(Error::Sqlite { .. })), "{outcome:?}");
    assert_eq!(call(&mut canister, Who::Stranger, "works", named("id", int(1))).unwrap().rows, [[int(30_934)]]);
    let list: Vec<DefinedQuery> = canister.call_query_list(Who::Reader, ()).unwrap();
    let broken: Vec<_> = list.iter().map(|query| query.broken.is_some()).collect();
    assert_eq!(broken, [true, false]);
    // Broken before is not broken by it.
    assert!(canister.migrate(&[(2, "CREATE TABLE more(x)")]).unwrap().broken_queries.is_empty());
    canister.run("ALTER TABLE city RENAME COLUMN title TO name");
    assert_eq!(call(&mut canister, Who::Stranger, "breaks", named("name", text("Zug"))).unwrap().rows.len(), 1);
}

#[test]
fn there_are_so_many_queries_and_no_more() {
    let mut canister = Canister::install();
    for number in 0..QUERIES_MAX {
        define(&mut canister, &definition(&format!("q{number}"), &format!("SELECT {number}"), &[])).unwrap();
    }
    let refused = define(&mut canister, &definition("more", "SELECT 1", &[]));
    assert!(
        matches!(&refused, Err(Error::TooLarge { what, limit: 200, actual: 201 }) if what == "named queries"),
        "{refused:?}"
    );
    let list: Vec<DefinedQuery> = canister.call_query_list(Who::Reader, ()).unwrap();
    assert_eq!(list.len(), QUERIES_MAX);
    assert_eq!(
        canister.query(Who::Admin, statement("SELECT count(*) FROM icsql_query"), None).unwrap().rows,
        [[int(200)]]
    );
}

#[test]
fn definitions_that_cannot_be_read_keep_nothing_else_from_working() {
    let mut canister = with_cities();
    define(&mut canister, &definition("city", BY_NAME, &[("name", "text")])).unwrap();
    let damage = "UPDATE main.icsql_query_parameter SET query = 'nobody'";
    canister.service.database.write(|tx| tx.execute(damage, ())).unwrap();
    let mut canister = canister.upgrade();
    let refused = call(&mut canister, Who::Stranger, "city", named("name", text("Zug")));
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    assert!(matches!(canister.call_query_list::<Vec<DefinedQuery>>(Who::Reader, ()), Err(Error::Corrupt { .. })));
    assert_eq!(canister.rows("SELECT count(*) FROM city"), [[int(3)]]);
    canister.call_query_drop::<()>(Who::Admin, ("city",)).unwrap();
}
