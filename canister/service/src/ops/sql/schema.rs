//! The schema, described.
use super::policy;
use crate::error::Failure;
use crate::guard::too_large;
use crate::limits::{REPLY_BYTES_MAX, REPLY_EXTRA_BYTES};
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Reader, Row};
use icsql_types::{Column, Error, Index, Role, Table, Trigger};
use std::collections::BTreeMap;

/// Bytes that an entry takes in Candid besides its texts, at most.
const ENTRY_BYTES: usize = 64;

/// Counts the bytes of a reply while it is built.
#[derive(Default)]
struct Size(usize);

impl Size {
    fn add<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) -> Result<(), Error> {
        let bytes = texts.into_iter().fold(ENTRY_BYTES, |sum, text| sum.saturating_add(text.len()));
        self.0 = self.0.saturating_add(bytes);
        if self.0 > REPLY_BYTES_MAX - REPLY_EXTRA_BYTES {
            return Err(too_large("reply", REPLY_BYTES_MAX, self.0));
        }
        Ok(())
    }
}

/// A text that SQLite wrote: empty for NULL.
fn text(row: &Row<'_>, column: usize) -> Result<String, EngineError> {
    Ok(String::from_utf8_lossy(row.value(column)?.as_bytes().unwrap_or_default()).into_owned())
}

fn optional(row: &Row<'_>, column: usize) -> Result<Option<String>, EngineError> {
    Ok(match row.value(column)?.as_bytes() {
        Some(_) => Some(text(row, column)?),
        None => None,
    })
}

/// All tables that this role may read, but for SQLite's own and the shadow tables of virtual ones.
///
/// # Errors
/// The engine's; [`Error::TooLarge`] if they do not fit a reply.
pub fn tables(reader: &Reader<'_>, role: Role) -> Result<Vec<Table>, Failure> {
    let mut size = Size::default();
    let estimates = estimates(reader)?;
    let kinds = kinds(reader)?;
    let mut tables = Vec::new();
    let sql = "SELECT name, sql FROM main.sqlite_schema WHERE type IN ('table', 'view') ORDER BY name";
    reader.query(sql, (), |row| {
        let (name, sql) = (text(row, 0)?, text(row, 1)?);
        let kind = kinds.get(&name).map_or("table", String::as_str);
        if kind != "shadow" && !name.starts_with("sqlite_") && (policy::reads(role).may_read)(&name) {
            size.add([name.as_str(), &sql])?;
            tables.push(Table {
                rows_estimate: estimates.get(&name).copied(),
                kind: kind.to_owned(),
                name,
                sql,
                columns: Vec::new(),
                indexes: Vec::new(),
                triggers: Vec::new(),
            });
        }
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    for table in &mut tables {
        table.columns = columns(reader, &table.name, &mut size)?;
        table.indexes = indexes(reader, &table.name, &mut size)?;
        table.triggers = triggers(reader, &table.name, &mut size)?;
    }
    Ok(tables)
}

/// `table`, `view`, `virtual` or `shadow`, by name.
fn kinds(reader: &Reader<'_>) -> Result<BTreeMap<String, String>, Failure> {
    let mut kinds = BTreeMap::new();
    reader.query("SELECT name, type FROM pragma_table_list WHERE schema = 'main'", (), |row| {
        kinds.insert(text(row, 0)?, text(row, 1)?);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(kinds)
}

/// About how many rows the tables have, as ANALYZE noted: the first number of any of their statistics.
fn estimates(reader: &Reader<'_>) -> Result<BTreeMap<String, u64>, Failure> {
    let mut estimates = BTreeMap::new();
    let known = "SELECT 1 FROM main.sqlite_schema WHERE name = 'sqlite_stat1'";
    if reader.query_row(known, (), |_| Ok::<_, EngineError>(()))?.is_some() {
        reader.query("SELECT tbl, stat FROM main.sqlite_stat1", (), |row| {
            if let Some(rows) = text(row, 1)?.split(' ').next().and_then(|rows| rows.parse().ok()) {
                estimates.insert(text(row, 0)?, rows);
            }
            Ok::<_, Failure>(ControlFlow::Continue(()))
        })?;
    }
    Ok(estimates)
}

fn columns(reader: &Reader<'_>, table: &str, size: &mut Size) -> Result<Vec<Column>, Failure> {
    let mut columns = Vec::new();
    let sql = "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1)";
    let outcome = reader.query(sql, (table,), |row| {
        let column = Column {
            name: text(row, 0)?,
            type_name: text(row, 1)?,
            not_null: row.integer(2)? != 0,
            default_sql: optional(row, 3)?,
            primary_key: u32::try_from(row.integer(4)?).unwrap_or(0),
            hidden: row.integer(5)? != 0,
        };
        size.add([column.name.as_str(), &column.type_name, column.default_sql.as_deref().unwrap_or_default()])?;
        columns.push(column);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    });
    match outcome {
        // A view whose tables are gone has no columns.
        Ok(()) | Err(Failure::Engine(EngineError::Sqlite(_))) => Ok(columns),
        Err(failure) => Err(failure),
    }
}

fn indexes(reader: &Reader<'_>, table: &str, size: &mut Size) -> Result<Vec<Index>, Failure> {
    let mut indexes = Vec::new();
    let sql = "SELECT i.name, i.\"unique\", s.sql FROM pragma_index_list(?1) AS i
               LEFT JOIN main.sqlite_schema AS s ON s.type = 'index' AND s.name = i.name ORDER BY i.seq";
    reader.query(sql, (table,), |row| {
        let index =
            Index { name: text(row, 0)?, unique: row.integer(1)? != 0, columns: Vec::new(), sql: optional(row, 2)? };
        size.add([index.name.as_str(), index.sql.as_deref().unwrap_or_default()])?;
        indexes.push(index);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    for index in &mut indexes {
        reader.query("SELECT name FROM pragma_index_info(?1) ORDER BY seqno", (index.name.as_str(),), |row| {
            let name = optional(row, 0)?.unwrap_or_else(|| "<expression>".to_owned());
            size.add([name.as_str()])?;
            index.columns.push(name);
            Ok::<_, Failure>(ControlFlow::Continue(()))
        })?;
    }
    Ok(indexes)
}

fn triggers(reader: &Reader<'_>, table: &str, size: &mut Size) -> Result<Vec<Trigger>, Failure> {
    let mut triggers = Vec::new();
    let sql = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 ORDER BY name";
    reader.query(sql, (table,), |row| {
        let trigger = Trigger { name: text(row, 0)?, sql: text(row, 1)? };
        size.add([trigger.name.as_str(), &trigger.sql])?;
        triggers.push(trigger);
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(triggers)
}
