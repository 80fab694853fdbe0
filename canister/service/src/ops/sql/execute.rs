//! Statements that write.
use super::value::{Bound, Rows, failed_at};
use super::{check_sql, limit, policy};
use crate::error::Failure;
use crate::limits::{
    SQL_RESULT_BYTES_MAX, SQL_ROWS_DEFAULT, SQL_ROWS_MAX, SQL_WRITE_INSTRUCTIONS_DEFAULT, SQL_WRITE_PAGES_DEFAULT,
    SQL_WRITE_PAGES_MAX,
};
use core::ops::ControlFlow;
use icsql_engine::{Budget, Policy, Writer};
use icsql_types::{Error, SqlWriteOptions, Statement, StatementResult};

/// What a write may answer and use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows of RETURNING.
    pub rows: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Instructions and changed pages.
    pub budget: Budget,
}

impl Limits {
    /// The limits that the options ask for; `instructions` is the most that a call may have.
    ///
    /// # Errors
    /// An option outside its range.
    pub fn new(options: &SqlWriteOptions, instructions: u64) -> Result<Self, Error> {
        let default = SQL_WRITE_INSTRUCTIONS_DEFAULT;
        let instructions = limit("max_instructions", options.max_instructions, default, instructions)?;
        let dirty_pages = limit("max_pages", options.max_pages, SQL_WRITE_PAGES_DEFAULT, SQL_WRITE_PAGES_MAX)?;
        Ok(Self {
            rows: limit("max_rows", options.max_rows.map(u64::from), SQL_ROWS_DEFAULT, SQL_ROWS_MAX)?,
            bytes: limit("max_bytes", options.max_bytes, SQL_RESULT_BYTES_MAX, SQL_RESULT_BYTES_MAX)?,
            budget: Budget { instructions, dirty_pages, ..Budget::UNLIMITED },
        })
    }
}

/// Runs statements in the transaction of `writer`. `index`: whether an error shall name the statement.
///
/// # Errors
/// SQLite's; what `policy` refuses; [`Error::BudgetExceeded`] for rows that do not fit. The transaction must then be undone.
pub fn execute(
    writer: &Writer<'_>,
    policy: &'static Policy,
    service_schema: &[u8; 32],
    statements: &[Statement],
    limits: &Limits,
    index: bool,
) -> Result<(Vec<StatementResult>, Rows), Failure> {
    let cookie = writer.schema_cookie();
    let mut rows = Rows::default();
    let mut results = Vec::with_capacity(statements.len());
    for (place, statement) in statements.iter().enumerate() {
        let result = one(&writer.restricted(policy), statement, limits, &mut rows);
        let result = result.map_err(|failure| match index {
            true => failed_at(failure, &writer.metrics(), place),
            false => Failure::Answer(super::explain(failure, &writer.metrics())),
        })?;
        results.push(result);
    }
    if writer.schema_cookie() != cookie {
        policy::check_schema(writer, service_schema)?;
    }
    Ok((results, rows))
}

fn one(
    writer: &Writer<'_>,
    statement: &Statement,
    limits: &Limits,
    rows: &mut Rows,
) -> Result<StatementResult, Failure> {
    check_sql(&statement.sql)?;
    let params = Bound::new(statement.params.as_ref())?;
    rows.begin();
    rows.add_result()?;
    let before = writer.total_changes();
    let columns = params.run(writer, &statement.sql, |row| match rows.push(row, limits.rows, limits.bytes)? {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(full) => Err(full.error(&writer.metrics(), rows).into()),
    })?;
    let changed = writer.total_changes() != before;
    if rows.columns.is_empty() {
        rows.set_columns(columns)?;
    }
    Ok(StatementResult {
        changes: if changed { writer.changes() } else { 0 },
        last_rowid: if changed { writer.last_insert_rowid() } else { 0 },
        columns: core::mem::take(&mut rows.columns),
        rows: core::mem::take(&mut rows.rows),
    })
}
