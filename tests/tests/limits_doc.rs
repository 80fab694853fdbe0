//! docs/limits.md says what the code has: each number in its tables is the value of the constants that the row names, each
//! limit of the service and the engine has a row, and what `db_meta` reports is among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use candid::types::internal::TypeContainer;
use candid::types::value::{IDLArgs, IDLField, IDLValue};
use icsql_canister::limits as service;
use icsql_engine::limits as engine;
use icsql_tests::{Icsql, controller, encode, root};
use icsql_types::method::{Arguments, DB_META};
use icsql_types::{Answer, Meta};

macro_rules! values {
    ($module:ident: $($name:ident)*) => { vec![$((stringify!($name), $module::$name as i128)),*] };
}

/// All limits of the service, which is compared with the source below.
fn of_the_service() -> Vec<(&'static str, i128)> {
    values!(service:
        KEY_BYTES_MIN KEY_BYTES_MAX VALUE_BYTES_MAX NOTE_BYTES_MAX KEYS_MAX OPERATIONS_MAX VALUE_PART_BYTES
        VALUE_IN_PARTS_BYTES_MAX REMOVED_PARTS_MAX LIST_ENTRIES_DEFAULT LIST_ENTRIES_MAX LIST_BYTES_MAX LIST_ENTRY_BYTES
        LIST_KEYS_SCANNED_MAX SWEEP_ENTRIES_PER_WRITE SWEEP_PARTS_PER_WRITE SWEEP_ENTRIES_PER_TIMER SWEEP_PARTS_PER_TIMER
        SWEEP_DELAY_NS SWEEP_AGAIN_NS MESSAGE_BYTES_MAX REPLY_BYTES_MAX ARGUMENT_EXTRA_BYTES KEY_ARGUMENT_BYTES_MAX
        NOTE_ARGUMENT_BYTES_MAX KEYS_ARGUMENT_BYTES_MAX LIST_ARGUMENT_BYTES_MAX PUT_ARGUMENT_BYTES_MAX
        SMALL_ARGUMENT_BYTES_MAX STACK_ARGUMENT_BYTES SKIPPING_QUOTA DECODING_QUOTA QUERY_INSTRUCTIONS_MAX
        REPLICATED_INSTRUCTIONS_MAX CHECK_INSTRUCTIONS_PER_PAGE PROBLEM_BYTES_MAX PROBLEM_TEXT_BYTES_MAX
        TABLE_NAMES_BYTES_MAX SCAN_BYTES_DEFAULT SCAN_BYTES_MAX DAMAGED_PAGES_LISTED_MAX ROLES_MAX
        IDEMPOTENCY_KEY_BYTES_MAX IDEMPOTENCY_NS IDEMPOTENT_REPLY_BYTES_MAX IDEMPOTENCY_KEYS_MAX IDEMPOTENCY_KEYS_SWEPT
        SQL_BYTES_MAX PARAMS_MAX SQL_STATEMENTS_MAX SQL_ARGUMENT_BYTES_MAX REPLY_EXTRA_BYTES SQL_ROWS_DEFAULT SQL_ROWS_MAX
        SQL_RESULT_BYTES_MAX SQL_WRITE_INSTRUCTIONS_DEFAULT SQL_WRITE_INSTRUCTIONS_MAX SQL_WRITE_PAGES_DEFAULT
        SQL_WRITE_PAGES_MAX SQL_MIGRATIONS_MAX SQL_MIGRATION_NAME_BYTES_MAX QUERIES_MAX QUERY_NAME_BYTES_MAX
        QUERY_SQL_BYTES_MAX QUERY_PARAMS_MAX QUERY_TEXT_BYTES_MAX QUERY_DEFINE_ARGUMENT_BYTES_MAX
        SQL_DECODING_UNITS_PER_BYTE
    )
}

/// All limits of the engine.
fn of_the_engine() -> Vec<(&'static str, i128)> {
    values!(engine:
        IMAGE_PAGES_MAX PAGE_BYTES_MAX PAGE_BYTES_MIN PAGE_BYTES_DEFAULT CACHE_BYTES_DEFAULT CACHE_PAGES_MIN SQL_BYTES_MAX
        VALUE_BYTES_MAX COLUMNS_MAX EXPRESSION_DEPTH_MAX COMPOUND_TERMS_MAX VDBE_OPS_MAX FUNCTION_ARGUMENTS_MAX
        LIKE_PATTERN_BYTES_MAX PARAMETERS_MAX TRIGGER_DEPTH_MAX ATTACHED_MAX WORKER_THREADS_MAX BUDGET_STEPS_BETWEEN_CHECKS
        COMMIT_INSTRUCTIONS COMMIT_INSTRUCTIONS_PER_PAGE COMMIT_INSTRUCTIONS_PER_BYTE CACHED_STATEMENTS_MAX
        CACHED_SQL_BYTES_MAX KEYED_COLUMNS_MAX KEYED_ROW_BYTES_MAX KEYED_BUFFER_BYTES_MAX VACUUM_IMAGE_BYTES_MAX ADOPT_AT_ONCE_BYTES_MAX MIGRATIONS_MAX
    )
}

/// Names of `db_meta` that are not the constant's own in small letters, or the engine's behind `sqlite_`.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("argument_bytes_max", "MESSAGE_BYTES_MAX"),
    ("sql_params_max", "PARAMS_MAX"),
    ("sql_query_instructions_max", "QUERY_INSTRUCTIONS_MAX"),
    ("sql_query_as_update_instructions_max", "REPLICATED_INSTRUCTIONS_MAX"),
    ("sql_write_large_image_instructions_max", "REPLICATED_INSTRUCTIONS_MAX"),
    ("sqlite_statement_steps_max", "engine::VDBE_OPS_MAX"),
    ("keys_per_call_max", "KEYS_MAX"),
    ("expires_at_ns_max", "i64::MAX"),
];

/// The constant that a name of `db_meta` stands for. None: its value is made of others, or SQLite's own.
fn constant_of(name: &str, constants: &BTreeMap<String, i128>) -> Option<String> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, constant)| (*constant).to_owned());
    let of_sqlite = name.strip_prefix("sqlite_").map(|name| format!("engine::{}", name.to_uppercase()));
    other.into_iter().chain(of_sqlite).chain([name.to_uppercase()]).find(|name| constants.contains_key(name))
}

/// The value of each constant, by the name that docs/limits.md has for it.
fn constants() -> BTreeMap<String, i128> {
    let service = of_the_service().into_iter().map(|(name, value)| (name.to_owned(), value));
    let engine = of_the_engine().into_iter().map(|(name, value)| (format!("engine::{name}"), value));
    let of_the_language = [("i64::MAX".to_owned(), i128::from(i64::MAX))];
    service.chain(engine).chain(of_the_language).collect()
}

/// The names of the public numbers that a module of limits defines or takes from elsewhere.
fn names_in(source: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(source)).expect(source);
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": ")) {
            let number =
                ["usize", "u64", "u32", "i32"].iter().any(|number| kind.split([' ', ';']).next() == Some(number));
            if number {
                names.insert(name.to_owned());
            }
        } else if let Some((_, list)) = line.strip_prefix("pub use ").and_then(|rest| rest.split_once('{')) {
            names.extend(list.trim_end_matches("};").split(", ").map(str::to_owned));
        }
    }
    names
}

#[test]
fn this_test_knows_every_limit() {
    let compared =
        [("canister/service/src/limits.rs", of_the_service()), ("canister/engine/src/limits.rs", of_the_engine())];
    // What db_meta reports under the constant's own name is documented by that name.
    let reported: BTreeSet<String> =
        rows().into_iter().filter_map(|row| row.name).map(|name| name.to_uppercase()).collect();
    for (source, known) in compared {
        let known: BTreeSet<String> = known.into_iter().map(|(name, _)| name.to_owned()).collect();
        let named = names_in(source);
        assert!(named.len() > 20, "{source} looks otherwise than expected: {named:?}");
        let unknown: Vec<_> = named.difference(&known).filter(|name| !reported.contains(*name)).collect();
        assert!(unknown.is_empty(), "{source} has {unknown:?}: add them to this test and to docs/limits.md");
        let gone: Vec<_> = known.difference(&named).collect();
        assert!(gone.is_empty(), "not in {source}: {gone:?}");
    }
}

/// A row of a table: its numbers, and the name in `db_meta` or the constants that it gives for them.
#[derive(Debug)]
struct Row {
    line: String,
    numbers: BTreeSet<i128>,
    name: Option<String>,
    constants: Vec<String>,
}

/// The numbers in a text: `1,000`, `16 of 20`, `3; 4`.
fn numbers(text: &str) -> BTreeSet<i128> {
    let digits = |word: &str| word.trim_end_matches([',', ';']).replace(',', "").parse().ok();
    text.split_whitespace().filter_map(digits).collect()
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/limits.md")).expect("docs/limits.md");
    let mut rows = Vec::new();
    let mut heading = None;
    for line in text.lines() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix('|')) else {
            // The line below the headings, or the end of a table.
            if !line.starts_with("|--") {
                heading = None;
            }
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let last = cells[cells.len() - 1];
        let Some(heading) = heading else {
            assert_eq!(cells[1], "limit", "the second column of every table: {line}");
            assert!(["name", "constant"].contains(&last), "the last column of every table: {line}");
            heading = Some(last);
            continue;
        };
        let named: Vec<String> = last.split(", ").map(|name| name.trim_matches('`').to_owned()).collect();
        let (name, constants) = if heading == "name" { (Some(named.concat()), Vec::new()) } else { (None, named) };
        rows.push(Row { line: line.to_owned(), numbers: numbers(cells[1]), name, constants });
    }
    rows
}

#[test]
fn each_row_has_the_values_of_its_constants() {
    let constants = constants();
    let mut missing: BTreeSet<&String> = constants.keys().collect();
    let rows = rows();
    for row in &rows {
        let of_name = row.name.as_ref().map(|name| constant_of(name, &constants));
        if of_name == Some(None) {
            continue;
        }
        let names = of_name.flatten().into_iter().chain(row.constants.iter().cloned());
        let mut values = BTreeSet::new();
        for name in names {
            let (name, value) =
                constants.get_key_value(&name).unwrap_or_else(|| panic!("there is no {name}: {}", row.line));
            values.insert(*value);
            missing.remove(name);
        }
        assert_eq!(row.numbers, values, "{}", row.line);
    }
    assert!(missing.is_empty(), "docs/limits.md has no row with {missing:?}");
    assert!(rows.len() > 80, "{} rows", rows.len());
}

/// Limits that are no constants.
#[test]
fn an_image_from_which_on_writes_have_less() {
    let row = |name: &str| rows().into_iter().find(|row| row.name.as_deref() == Some(name)).expect(name).numbers;
    assert_eq!(row("sql_write_large_image_bytes"), BTreeSet::from([1 << 30]));
    assert_eq!(service::sql_write_instructions_max(1 << 30), service::SQL_WRITE_INSTRUCTIONS_MAX);
    assert_eq!(service::sql_write_instructions_max((1 << 30) + 1), service::REPLICATED_INSTRUCTIONS_MAX);
    // tests/tests/sql_corners meets this one.
    assert_eq!(row("sqlite_join_tables_max"), BTreeSet::from([64]));
}

/// The names and numbers in a value: fields of records, and records of a name and a value.
fn reported(value: &IDLValue, found: &mut Vec<(String, i128)>) {
    let number = |value: &IDLValue| match value {
        IDLValue::Nat32(number) => Some(i128::from(*number)),
        IDLValue::Nat64(number) => Some(i128::from(*number)),
        _ => None,
    };
    match value {
        IDLValue::Opt(inner) => reported(inner, found),
        IDLValue::Vec(values) => values.iter().for_each(|value| reported(value, found)),
        IDLValue::Record(fields) => {
            let field = |name: &str| fields.iter().find(|field| field.id.to_string() == name).map(|field| &field.val);
            if let (Some(IDLValue::Text(name)), Some(value)) = (field("name"), field("value")) {
                found.extend(number(value).map(|number| (name.clone(), number)));
                return;
            }
            for IDLField { id, val } in fields {
                match number(val) {
                    Some(number) => found.push((id.to_string(), number)),
                    None => reported(val, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn what_db_meta_reports_is_what_is_documented() {
    let icsql = Icsql::deploy();
    let reply = icsql.call_raw(controller(), &DB_META, encode(())).expect("db_meta answers");
    let mut container = TypeContainer::new();
    let types = <(Answer<Meta>,)>::types(&mut container);
    let values = IDLArgs::from_bytes_with_types(&reply, &container.env, &types).expect("a reply of db_meta");
    let IDLValue::Variant(answer) = &values.args[0] else { panic!("an answer") };
    let IDLValue::Record(meta) = &answer.0.val else { panic!("the meta data") };
    let mut found = Vec::new();
    for field in meta.iter().filter(|field| field.id.to_string().contains("limits")) {
        reported(&field.val, &mut found);
    }
    assert!(found.len() >= 5, "{found:?}");
    let constants = constants();
    let documented: BTreeMap<String, BTreeSet<i128>> =
        rows().into_iter().filter_map(|row| Some((row.name?, row.numbers))).collect();
    for (name, value) in found {
        assert_eq!(documented.get(&name), Some(&BTreeSet::from([value])), "the row of {name}");
        if let Some(constant) = constant_of(&name, &constants) {
            assert_eq!(value, constants[&constant], "{name} is not {constant}");
        }
    }
}
