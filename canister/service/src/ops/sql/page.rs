//! A statement that reads, answered in pages.
use super::value::{Bound, Full, Rows};
use super::{check_sql, cost, explain, limit};
use crate::error::Failure;
use crate::limits::{SQL_CURSOR_BYTES, SQL_RESULT_BYTES_MAX, SQL_ROWS_DEFAULT, SQL_ROWS_MAX};
use core::ops::ControlFlow;
use icsql_engine::{Budget, Database, Error as EngineError, Limited, Policy};
use icsql_types::{Error, ReadOptions, RowSet, Stop};
use serde_bytes::ByteBuf;

/// What a page may hold and use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows.
    pub rows: u64,
    /// Bytes of the rows.
    pub bytes: u64,
    /// Instructions.
    pub instructions: u64,
}

impl Limits {
    /// The limits that the options ask for; `instructions` is the most that a call may have.
    ///
    /// # Errors
    /// An option outside its range.
    pub fn new(options: &ReadOptions, instructions: u64) -> Result<Self, Error> {
        Ok(Self {
            rows: limit("max_rows", options.max_rows.map(u64::from), SQL_ROWS_DEFAULT, SQL_ROWS_MAX)?,
            bytes: limit("max_bytes", options.max_bytes, SQL_RESULT_BYTES_MAX, SQL_RESULT_BYTES_MAX)?,
            instructions: limit("max_instructions", options.max_instructions, instructions, instructions)?,
        })
    }
}

/// Where the page before ended: the rows before it, the transaction whose data they were, and the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    rows: u64,
    transaction: u64,
    statement: [u8; 16],
}

/// Version of a cursor's bytes.
const CURSOR_VERSION: u8 = 1;

impl Cursor {
    fn encode(&self) -> ByteBuf {
        let mut bytes = Vec::with_capacity(SQL_CURSOR_BYTES);
        bytes.push(CURSOR_VERSION);
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.transaction.to_le_bytes());
        bytes.extend(self.statement);
        ByteBuf::from(bytes)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (transaction, rest) = rest.split_first_chunk()?;
        let cursor = Self {
            rows: u64::from_le_bytes(*rows),
            transaction: u64::from_le_bytes(*transaction),
            statement: rest.try_into().ok()?,
        };
        (*version == CURSOR_VERSION).then_some(cursor)
    }
}

/// Runs the statement up to where the page before ended, and answers the rows that follow as far as the limits reach.
///
/// # Errors
/// SQLite's; what `policy` refuses; [`Error::BudgetExceeded`] if not even one more row is within the limits;
/// [`Error::Conflict`] if the data has changed since the page before.
pub fn page(
    database: &Database,
    policy: &'static Policy,
    sql: &str,
    params: &Bound<'_>,
    limits: Limits,
    options: &ReadOptions,
) -> Result<RowSet, Error> {
    check_sql(sql)?;
    let transaction = database.meta().transaction_id;
    let statement = params.hash(sql);
    let before = start(options, statement, transaction)?;
    let mut rows = Rows::default();
    let mut skipped = 0;
    let mut full = None;
    let budget = Budget { instructions: limits.instructions, ..Budget::UNLIMITED };
    let (outcome, metrics) = database.read_within(&budget, |reader| {
        let reader = reader.restricted(policy);
        let columns = params.query(&reader, sql, |row| {
            if skipped < before {
                skipped += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Ok(match rows.push(row, limits.rows, limits.bytes)? {
                Ok(()) => ControlFlow::Continue(()),
                Err(reached) => {
                    full = Some(reached);
                    ControlFlow::Break(())
                }
            })
        })?;
        if rows.columns.is_empty() {
            rows.set_columns(columns)?;
        }
        Ok::<_, Failure>(())
    });
    let stop = match outcome {
        Ok(()) => match full {
            None => Stop::End,
            Some(reached) if rows.rows.is_empty() => return Err(reached.error(&metrics, &rows)),
            Some(Full::Rows(_)) => Stop::Rows,
            Some(Full::Bytes(_) | Full::Reply) => Stop::Bytes,
        },
        Err(Failure::Engine(EngineError::Budget(exceeded)))
            if exceeded.what == Limited::Instructions && !rows.rows.is_empty() =>
        {
            Stop::Instructions
        }
        Err(failure) => return Err(explain(failure, &metrics)),
    };
    let next = Cursor { rows: before.saturating_add(rows.count), transaction, statement };
    Ok(RowSet {
        cost: cost(&metrics, rows.count, rows.bytes),
        columns: rows.columns,
        rows: rows.rows,
        cursor: (stop != Stop::End).then(|| next.encode()),
        stop,
        transaction,
    })
}

/// How many rows the pages before had.
fn start(options: &ReadOptions, statement: [u8; 16], transaction: u64) -> Result<u64, Error> {
    let Some(bytes) = &options.cursor else { return Ok(0) };
    let invalid = |message: &str| Error::InvalidArgument { argument: "cursor".to_owned(), message: message.to_owned() };
    let cursor = Cursor::decode(bytes).ok_or_else(|| invalid("it is none that this method has answered"))?;
    if cursor.statement != statement {
        return Err(invalid("it belongs to another statement or to other parameters"));
    }
    if cursor.transaction != transaction && options.allow_changed != Some(true) {
        let message = format!(
            "the page before was of transaction {}, and the database is at {transaction}; begin anew, or set allow_changed \
             and risk that rows are missed or come twice",
            cursor.transaction
        );
        return Err(Error::Conflict { what: "cursor".to_owned(), message });
    }
    Ok(cursor.rows)
}
