//! Named queries: SELECTs that an admin defines and others may call.
//!
//! They are kept on the heap as they are in the database. A query reads what a reader may, whoever calls it.
use super::plan;
use super::policy;
use super::value::Bound;
use crate::error::{Failure, cut};
use crate::guard::{at_most, too_large};
use crate::limits::{QUERIES_MAX, QUERY_NAME_BYTES_MAX, QUERY_PARAMS_MAX, QUERY_SQL_BYTES_MAX, QUERY_TEXT_BYTES_MAX};
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Reader, ValueRef, Writer};
use icsql_types::{
    Answer, BrokenQuery, Callers, DefinedQuery, Error, Params, QueryDefinition, QueryParameter, Role, Value,
};
use std::collections::BTreeMap;

/// The definitions by name.
pub type Queries = BTreeMap<String, QueryDefinition>;

const TYPES: [&str; 5] = ["integer", "real", "text", "blob", "any"];

fn callers_name(callers: Callers) -> &'static str {
    match callers {
        Callers::Public => "public",
        Callers::Role(Role::Reader) => "reader",
        Callers::Role(Role::Writer) => "writer",
        Callers::Role(Role::Admin) => "admin",
    }
}

fn damaged() -> Failure {
    Error::Corrupt { message: "the table icsql_query or icsql_query_parameter is damaged".to_owned() }.into()
}

/// Reads all definitions.
///
/// # Errors
/// The engine's; [`Error::Corrupt`] for what was not written by this program.
pub fn load(reader: &Reader<'_>) -> Result<Queries, Failure> {
    read(reader).map_err(|failure| match failure {
        Failure::Engine(EngineError::ColumnType { .. }) => damaged(),
        other => other,
    })
}

fn read(reader: &Reader<'_>) -> Result<Queries, Failure> {
    let mut queries = Queries::new();
    let all = [Callers::Public, Callers::Role(Role::Reader), Callers::Role(Role::Writer), Callers::Role(Role::Admin)];
    let sql = "SELECT name, sql, callers, max_rows, max_bytes, max_instructions, allow_full_scan FROM main.icsql_query";
    reader.query(sql, (), |row| {
        let name = row.text(0)?.to_owned();
        let callers = row.text(2)?;
        let number = |column| match row.value(column)? {
            ValueRef::Integer(number) => Ok(u64::try_from(number).ok()),
            _ => Ok::<_, EngineError>(None),
        };
        let definition = QueryDefinition {
            name: name.clone(),
            sql: row.text(1)?.to_owned(),
            params: Vec::new(),
            callers: all.into_iter().find(|known| callers_name(*known) == callers).ok_or_else(damaged)?,
            max_rows: number(3)?.and_then(|rows| u32::try_from(rows).ok()),
            max_bytes: number(4)?,
            max_instructions: number(5)?,
            allow_full_scan: number(6)?.map(|allow| allow != 0),
        };
        queries.insert(name, definition);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    let sql = "SELECT query, name, type, nullable FROM main.icsql_query_parameter ORDER BY query, number";
    reader.query(sql, (), |row| {
        let parameter = QueryParameter {
            name: row.text(1)?.to_owned(),
            type_name: row.text(2)?.to_owned(),
            nullable: row.integer(3)? != 0,
        };
        queries.get_mut(row.text(0)?).ok_or_else(damaged)?.params.push(parameter);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(queries)
}

/// Reads all definitions and prepares them.
///
/// # Errors
/// As [`load`], in the words that a caller will get.
pub fn load_prepared(reader: &Reader<'_>) -> Answer<Queries> {
    let queries = load(reader)?;
    prepare(reader, &queries);
    Ok(queries)
}

/// Prepares all queries, so that no call has to.
pub fn prepare(reader: &Reader<'_>, queries: &Queries) {
    let reader = reader.restricted(policy::reads(Role::Reader));
    for query in queries.values() {
        // One that is broken says so when it is called.
        let _ = reader.prepare(&query.sql);
    }
}

/// The queries that do not work.
///
/// # Errors
/// The engine's.
pub fn broken(reader: &Reader<'_>) -> Result<Vec<BrokenQuery>, Failure> {
    let queries = load(reader)?;
    let reader = reader.restricted(policy::reads(Role::Reader));
    let why = |query: &QueryDefinition| describe(&reader, query).err().map(|failure| Error::from(failure).to_string());
    Ok(queries
        .into_values()
        .filter_map(|query| Some(BrokenQuery { message: cut(why(&query)?, QUERY_TEXT_BYTES_MAX), name: query.name }))
        .collect())
}

/// What SQLite makes of a definition. `reader` is restricted.
fn describe(reader: &Reader<'_>, definition: &QueryDefinition) -> Result<Vec<String>, Failure> {
    let invalid = |argument: &str, message: String| -> Result<Vec<String>, Failure> {
        Err(Error::InvalidArgument { argument: argument.to_owned(), message }.into())
    };
    let description = reader.describe(&definition.sql)?;
    if !description.read_only || description.columns.is_empty() || !begins_as_select(&definition.sql) {
        return invalid("sql", "it is not one SELECT (or WITH … SELECT, or VALUES) that changes nothing".to_owned());
    }
    let mut missing: Vec<&str> = definition.params.iter().map(|parameter| parameter.name.as_str()).collect();
    for name in &description.parameters {
        // One that has only a number is none; numbers that are left out have no name either.
        let Some(name) = name.as_deref().and_then(|name| name.strip_prefix([':', '@', '$'])) else {
            return invalid("sql", "parameters need names, as in :city".to_owned());
        };
        match missing.iter().position(|missing| *missing == name) {
            Some(place) => {
                missing.swap_remove(place);
            }
            None => return invalid("params", format!("the statement's parameter {name} is not declared")),
        }
    }
    if let Some(name) = missing.first() {
        return invalid("params", format!("the statement has no parameter {name}"));
    }
    Ok(description.columns)
}

/// Whether the first word, behind comments, is that of a query.
fn begins_as_select(mut sql: &str) -> bool {
    loop {
        sql = sql.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if let Some(comment) = sql.strip_prefix("--") {
            sql = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = sql.strip_prefix("/*") {
            sql = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
            return ["select", "with", "values"].iter().any(|known| word.eq_ignore_ascii_case(known));
        }
    }
}

/// A definition with what SQLite makes of it.
///
/// # Errors
/// Why it does not work.
pub fn examine(reader: &Reader<'_>, definition: &QueryDefinition) -> Result<DefinedQuery, Failure> {
    let reader = reader.restricted(policy::reads(Role::Reader));
    let columns = describe(&reader, definition)?;
    let plan = plan::explain(&reader, &definition.sql)?;
    Ok(DefinedQuery { definition: definition.clone(), columns, plan, broken: None })
}

/// The same for one that was defined before: if it does not work any more, that is said in it.
pub fn examine_defined(reader: &Reader<'_>, definition: &QueryDefinition) -> DefinedQuery {
    examine(reader, definition).unwrap_or_else(|failure| DefinedQuery {
        definition: definition.clone(),
        columns: Vec::new(),
        plan: icsql_types::Plan { lines: Vec::new(), full_scans: Vec::new(), read_only: false },
        broken: Some(cut(Error::from(failure).to_string(), QUERY_TEXT_BYTES_MAX)),
    })
}

/// Checks a definition without looking at the database.
fn check(definition: &QueryDefinition) -> Result<(), Error> {
    let invalid =
        |argument: &str, message: String| Err(Error::InvalidArgument { argument: argument.to_owned(), message });
    if definition.name.is_empty() {
        return invalid("name", format!("it is empty; a name has 1 to {QUERY_NAME_BYTES_MAX} bytes"));
    }
    at_most("name", QUERY_NAME_BYTES_MAX, &definition.name)?;
    at_most("sql", QUERY_SQL_BYTES_MAX, &definition.sql)?;
    if definition.params.len() > QUERY_PARAMS_MAX {
        return Err(too_large("params", QUERY_PARAMS_MAX, definition.params.len()));
    }
    for (index, parameter) in definition.params.iter().enumerate() {
        at_most("name of a parameter", QUERY_NAME_BYTES_MAX, &parameter.name)?;
        if definition.params[..index].iter().any(|other| other.name == parameter.name) {
            return invalid("params", format!("{} is declared twice", parameter.name));
        }
        if !TYPES.contains(&parameter.type_name.as_str()) {
            let known = TYPES.join(", ");
            let message =
                format!("{:?} is no type of the parameter {}; they are {known}", parameter.type_name, parameter.name);
            return invalid("params", message);
        }
    }
    Ok(())
}

/// Defines a query.
///
/// # Errors
/// A definition that is not well-formed or does not work, [`Error::AlreadyExists`], a plan that scans a whole table though
/// that is not allowed.
pub fn define(writer: &Writer<'_>, definition: &QueryDefinition) -> Result<DefinedQuery, Failure> {
    check(definition)?;
    let queries = load(writer)?;
    if queries.contains_key(&definition.name) {
        return Err(Error::AlreadyExists { what: "query".to_owned(), name: definition.name.clone() }.into());
    }
    if queries.len() >= QUERIES_MAX {
        return Err(too_large("named queries", QUERIES_MAX, queries.len() + 1).into());
    }
    let defined =
        examine(writer, definition).map_err(|failure| Failure::Answer(super::explain(failure, &writer.metrics())))?;
    if !defined.plan.full_scans.is_empty() && definition.allow_full_scan != Some(true) {
        let message = format!(
            "its plan scans the whole of {}; add an index, or set allow_full_scan. The plan:\n{}",
            defined.plan.full_scans.join(", "),
            defined.plan.lines.join("\n")
        );
        let message = cut(message, QUERY_TEXT_BYTES_MAX);
        return Err(Error::InvalidArgument { argument: "sql".to_owned(), message }.into());
    }
    let number = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
    writer.execute(
        "INSERT INTO main.icsql_query(name, sql, callers, max_rows, max_bytes, max_instructions, allow_full_scan)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            definition.name.as_str(),
            definition.sql.as_str(),
            callers_name(definition.callers),
            definition.max_rows,
            number(definition.max_bytes),
            number(definition.max_instructions),
            definition.allow_full_scan,
        ),
    )?;
    for (parameter, place) in definition.params.iter().zip(0u32..) {
        writer.execute(
            "INSERT INTO main.icsql_query_parameter(query, number, name, type, nullable) VALUES (?1, ?2, ?3, ?4, ?5)",
            (
                definition.name.as_str(),
                place,
                parameter.name.as_str(),
                parameter.type_name.as_str(),
                parameter.nullable,
            ),
        )?;
    }
    Ok(defined)
}

/// Drops a query.
///
/// # Errors
/// [`Error::NotFound`].
pub fn drop(writer: &Writer<'_>, name: &str) -> Result<(), Failure> {
    writer.execute("DELETE FROM main.icsql_query_parameter WHERE query = ?1", (name,))?;
    if writer.execute("DELETE FROM main.icsql_query WHERE name = ?1", (name,))? == 0 {
        return Err(Error::NotFound { what: "query".to_owned(), name: name.to_owned() }.into());
    }
    Ok(())
}

/// The parameters of a call, by name, once their types are checked. By position they come in the order of the definition.
///
/// # Errors
/// [`Error::InvalidArgument`].
pub fn parameters<'a>(definition: &'a QueryDefinition, params: &'a Params) -> Result<Bound<'a>, Error> {
    let invalid = |message: String| Error::InvalidArgument { argument: "params".to_owned(), message };
    let declared = &definition.params;
    let given = match params {
        Params::None => 0,
        Params::Positional(values) => values.len(),
        Params::Named(values) => values.len(),
    };
    if given != declared.len() {
        return Err(invalid(format!("the query has {} parameters and {given} were given", declared.len())));
    }
    let mut named = Vec::with_capacity(given);
    for (index, parameter) in declared.iter().enumerate() {
        let value = match params {
            Params::None => None,
            Params::Positional(values) => values.get(index),
            Params::Named(values) => {
                let same = |name: &str| name.strip_prefix([':', '@', '$']).unwrap_or(name) == parameter.name;
                values.iter().find(|(name, _)| same(name)).map(|(_, value)| value)
            }
        };
        let value = value.ok_or_else(|| invalid(format!("{} was not given", parameter.name)))?;
        let fits = match (value, parameter.type_name.as_str()) {
            (Value::Null, _) => parameter.nullable,
            (Value::InvalidText(_), _) => false,
            (_, "any") | (Value::Integer(_), "integer" | "real") | (Value::Real(_), "real") => true,
            (Value::Text(_), "text") | (Value::Blob(_), "blob") => true,
            _ => false,
        };
        if !fits {
            let nullable = if parameter.nullable { " or null" } else { "" };
            return Err(invalid(format!("{} must be {}{nullable}", parameter.name, parameter.type_name)));
        }
        named.push((parameter.name.as_str(), super::value::bound(value)?));
    }
    Ok(Bound::Named(named))
}
