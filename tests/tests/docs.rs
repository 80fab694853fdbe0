//! What the documents say is what the deployed Wasm does: the examples of docs/sql.md are run from top to bottom on one
//! canister, the tables of docs/limits.md are compared with `db_meta`, and docs/operations.md explains every error.

use std::collections::BTreeMap;
use std::fmt::Write;

use candid::IDLArgs;
use candid::types::{FuncMode, TypeEnv, TypeInner};
use candid_parser::utils::CandidSource;
use icsql_tests::{Local, fits, root};
use icsql_types::method::{DB_META, SQL_EXECUTE, SQL_MIGRATE, SQL_QUERY};
use icsql_types::{Answer, Error, Params, ReadOptions, SqlMigration, SqlWriteOptions, Statement, Stop, Value};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A fenced block of a document.
#[derive(Debug)]
struct Block {
    /// What stands behind the fence: a language, and more.
    info: String,
    text: String,
    /// The line of the fence, from 1.
    line: usize,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = document.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let text = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
            let text = text.collect::<Vec<_>>().join("\n");
            blocks.push(Block { info: info.to_owned(), text, line: number });
        }
    }
    blocks
}

/// What a value is written as in the document.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) | Value::InvalidText(bytes) => format!("{bytes:?}"),
    }
}

fn table(columns: &[String], rows: &[Vec<Value>]) -> String {
    let mut text = columns.join(" | ");
    for row in rows {
        let cells: Vec<_> = row.iter().map(shown).collect();
        write!(text, "\n{}", cells.join(" | ")).unwrap();
    }
    text
}

/// A canister on which a document's examples run.
struct Runner {
    canister: Local,
    migrations: u32,
    contract: (TypeEnv, candid::types::Type),
}

impl Runner {
    fn new() -> Self {
        let contract = root().join("candid/icsql.did");
        let (env, service) = CandidSource::File(&contract).load().expect("the contract is Candid");
        Self { canister: Local::deploy(), migrations: 0, contract: (env, service.expect("a service")) }
    }

    /// Runs the block and answers what there is to say about it; none of a language that is not run.
    fn run(&mut self, block: &Block) -> Option<String> {
        match block.info.as_str() {
            "sql" => Some(self.sql(&block.text).unwrap_or_else(|error| format!("Error: {error}"))),
            "sql migration" => Some(self.migrate(&block.text).unwrap_or_else(|error| format!("Error: {error}"))),
            "candid" => Some(self.candid(&block.text)),
            _ => None,
        }
    }

    fn migrate(&mut self, sql: &str) -> Answer<String> {
        let version = self.migrations + 1;
        let migration = SqlMigration { version, name: format!("step {version}"), sql: sql.to_owned() };
        let done = self.canister.try_call(&SQL_MIGRATE, (vec![migration], None)).0.expect("an answer")?;
        self.migrations = version;
        assert_eq!(done.applied, [version]);
        Ok(String::new())
    }

    /// Statements that end with a semicolon at a line's end, one after the other. What the last one answers is answered.
    fn sql(&mut self, text: &str) -> Answer<String> {
        let mut answer = String::new();
        for statement in text.split_inclusive(";\n") {
            answer = self.statement(statement)?;
        }
        Ok(answer)
    }

    fn statement(&mut self, text: &str) -> Answer<String> {
        let mut statement = Statement { sql: String::new(), params: None };
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        let mut options: BTreeMap<String, u64> = BTreeMap::new();
        for line in text.lines() {
            match line.strip_prefix("-- ").and_then(|line| line.split_once(" = ")) {
                Some((name, literal)) if name.starts_with('?') => positional.push(self.literal(literal)),
                Some((name, literal)) if name.starts_with(':') => named.push((name.to_owned(), self.literal(literal))),
                Some((name, number)) => {
                    options.insert(name.to_owned(), number.parse().expect("a number"));
                }
                None => writeln!(statement.sql, "{line}").unwrap(),
            }
        }
        statement.params = match (positional.len(), named.len()) {
            (0, 0) => None,
            (_, 0) => Some(Params::Positional(positional)),
            _ => Some(Params::Named(named)),
        };
        let mut option = |name: &str| options.remove(name);
        let max_rows = option("max_rows").map(|rows| u32::try_from(rows).expect("few rows"));
        let max_instructions = option("max_instructions");
        assert!(options.is_empty(), "no options: {options:?}");
        if statement.sql.starts_with("SELECT") {
            let options = ReadOptions { max_rows, max_instructions, ..ReadOptions::default() };
            let call = (statement, Some(options));
            let page = self.canister.try_call(&SQL_QUERY, call).0.expect("an answer")?;
            let mut text = table(&page.columns, &page.rows);
            if page.stop != Stop::End {
                write!(text, "\n(stopped: {:?})", page.stop).unwrap();
            }
            return Ok(text);
        }
        let options = SqlWriteOptions { max_rows, max_instructions, ..SqlWriteOptions::default() };
        let done = self.canister.try_call(&SQL_EXECUTE, (statement, Some(options))).0.expect("an answer")?;
        Ok(if done.columns.is_empty() { String::new() } else { table(&done.columns, &done.rows) })
    }

    /// What SQLite makes of a literal.
    fn literal(&mut self, literal: &str) -> Value {
        let statement = Statement { sql: format!("SELECT {literal}"), params: None };
        self.canister.call(&SQL_QUERY, (statement, None)).rows.remove(0).remove(0)
    }

    /// A call as icp-cli takes it: the method, then its arguments.
    fn candid(&mut self, call: &str) -> String {
        let (method, arguments) = call.split_once(' ').expect("a method and its arguments");
        let (env, service) = &self.contract;
        let function = env.get_method(service, method).unwrap_or_else(|error| panic!("{method}: {error}"));
        let arguments = candid_parser::parse_idl_args(arguments).unwrap_or_else(|error| panic!("{call}: {error}"));
        let argument = arguments.to_bytes_with_types(env, &function.args).expect("arguments of the method's types");
        let (id, caller) = (self.canister.id, self.canister.controller);
        let outcome = match function.modes.contains(&FuncMode::Query) {
            true => self.canister.replica.query(id, caller, method, &argument),
            false => self.canister.replica.update(id, caller, method, &argument),
        };
        let reply = outcome.result.unwrap_or_else(|reject| panic!("{call}: {reject:?}"));
        IDLArgs::from_bytes_with_types(&reply, env, &function.rets).expect("a reply of the method's type").to_string()
    }
}

#[test]
fn an_answer_fits_where_it_says_the_same_but_for_what_is_left_out() {
    let answer = "(\n  record {\n    a = 1;\n    b = vec { 2; 3; };\n  },\n)";
    for expected in ["(record { a = 1; b = vec { 2; 3 } })", "(record { … b = vec { …; 3 } })", "…", "(record {…})"]
    {
        assert!(fits(expected, answer), "{expected}");
    }
    for expected in ["(record { a = 1 })", "(record { a = 2; … })", "(… c = 1 …)", "(record { … b = vec { 2 } })", ""]
    {
        assert!(!fits(expected, answer), "{expected}");
    }
}

#[test]
fn the_examples_of_the_guide_to_sql_answer_what_stands_below_them() {
    let document = read("docs/sql.md");
    let blocks = blocks(&document);
    let mut runner = Runner::new();
    let mut wrong = String::new();
    let mut compared = 0;
    for (index, block) in blocks.iter().enumerate() {
        let Some(answer) = runner.run(block) else { continue };
        let place = format!("docs/sql.md:{}", block.line);
        match blocks.get(index + 1).filter(|next| next.info == "text") {
            Some(expected) if fits(&expected.text, &answer) => compared += 1,
            Some(expected) => writeln!(wrong, "{place}\nsays\n{}\nand it is\n{answer}\n", expected.text).unwrap(),
            None if answer.contains("Error: ") || answer.contains("variant { Err") => {
                writeln!(wrong, "{place}\nfails: {answer}\n").unwrap();
            }
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared > 20, "only {compared} examples were found");
}

/// Tables whose last column is `name` have the limit's name in `db_meta` there, and its value in the second column.
#[test]
fn the_limits_are_those_of_the_canister() {
    let meta = Local::deploy().call(&DB_META, ());
    let said: BTreeMap<String, u64> = meta.all_limits.iter().map(|limit| (limit.name.clone(), limit.value)).collect();
    assert_eq!(said.len(), meta.all_limits.len(), "a name occurs twice");
    let mut documented = BTreeMap::new();
    let mut named = false;
    for line in read("docs/limits.md").lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let last = cells[cells.len() - 1];
        // A table ends with an empty line, and begins with its header.
        named = line.starts_with('|') && (named || last == "name");
        let Some(name) = last.strip_prefix('`').and_then(|last| last.strip_suffix('`')).filter(|_| named) else {
            continue;
        };
        let value = cells[1].replace(',', "");
        let value = value.parse().unwrap_or_else(|_| panic!("no number in {line}"));
        assert_eq!(documented.insert(name.to_owned(), value), None, "{name} stands twice");
    }
    assert_eq!(documented, said);
    // Those of the record are among them.
    let limits = meta.limits;
    for (name, value) in [
        ("key_bytes_max", limits.key_bytes_max),
        ("value_bytes_max", limits.value_bytes_max),
        ("note_bytes_max", limits.note_bytes_max),
        ("keys_per_call_max", limits.keys_per_call_max),
        ("reply_bytes_max", limits.reply_bytes_max),
    ] {
        assert_eq!(said.get(name), Some(&u64::from(value)), "{name}");
    }
}

#[test]
fn the_guide_for_operators_explains_every_error() {
    let document = read("docs/operations.md");
    let errors = document.split("## What an error means").nth(1).expect("a section about errors");
    let errors = errors.split("\n## ").next().unwrap_or_default();
    let mut container = candid::types::internal::TypeContainer::new();
    let error = container.add::<Error>();
    let error = container.env.trace_type(&error).expect("a type");
    let TypeInner::Variant(cases) = error.as_ref() else { panic!("{error} is no variant") };
    assert!(cases.len() > 10);
    for case in cases {
        let row = format!("| `{}`", case.id);
        assert!(errors.contains(&row), "no row that begins with {row:?}");
    }
}
