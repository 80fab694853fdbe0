//! SQL of callers: read in pages, executed, explained; the schema described and migrated; named queries.
pub mod execute;
pub mod migrate;
pub mod page;
pub mod plan;
pub mod policy;
pub mod queries;
pub mod schema;
pub mod value;

use crate::error::Failure;
use crate::guard::{at_most, too_large};
use crate::limits::SQL_BYTES_MAX;
use icsql_engine::{Error as EngineError, Metrics};
use icsql_types::{Cost, Error};

/// What `metrics` come to for whoever called. Rows and bytes are those of the reply.
pub fn cost(metrics: &Metrics, rows: u64, bytes: u64) -> Cost {
    Cost {
        instructions: metrics.instructions,
        rows,
        bytes,
        vm_steps: metrics.vm_steps,
        full_scan_steps: metrics.full_scan_steps,
        sorts: metrics.sorts,
        pages_read: metrics.pages_read,
        pages_written: metrics.pages_written,
    }
}

/// Checks the text of a statement.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn check_sql(sql: &str) -> Result<(), Error> {
    at_most("sql", SQL_BYTES_MAX, sql)
}

/// The interface's error for a failure of a caller's statement, with what it cost.
#[cold]
pub fn explain(failure: Failure, metrics: &Metrics) -> Error {
    let invalid = |argument: &str, message: String| Error::InvalidArgument { argument: argument.to_owned(), message };
    let mut error = match failure {
        Failure::Engine(EngineError::Refused { what }) => Error::Sqlite {
            code: SQLITE_AUTH,
            message: format!("not allowed to this caller by this method: {what}"),
            offset: None,
            statement: None,
            cost: None,
        },
        Failure::Engine(EngineError::NotReadOnly { .. }) => Error::UseInstead {
            method: "sql_execute".to_owned(),
            message: "this method runs statements that read, and this one could write".to_owned(),
        },
        Failure::Engine(error @ EngineError::NotOneStatement { .. }) => invalid("sql", error.to_string()),
        Failure::Engine(error @ EngineError::Parameters { .. }) => invalid("params", error.to_string()),
        Failure::Engine(EngineError::Sqlite(error)) if error.code == SQLITE_RANGE => invalid("params", error.message),
        Failure::Engine(error @ EngineError::ForeignKey { .. }) => Error::Sqlite {
            code: SQLITE_CONSTRAINT_FOREIGNKEY,
            message: error.to_string(),
            offset: None,
            statement: None,
            cost: None,
        },
        other => other.into(),
    };
    if let Error::Sqlite { cost: field @ None, .. } | Error::BudgetExceeded { cost: field @ None, .. } = &mut error {
        *field = Some(Box::new(cost(metrics, 0, 0)));
    }
    error
}

const SQLITE_AUTH: i32 = 23;
const SQLITE_RANGE: i32 = 25;
const SQLITE_CONSTRAINT_FOREIGNKEY: i32 = 787;

/// Says at which place in a list an error is.
#[cold]
pub fn at_statement(error: Error, index: usize) -> Error {
    match error {
        Error::Sqlite { code, message, offset, statement: None, cost } => {
            Error::Sqlite { code, message, offset, statement: u32::try_from(index).ok(), cost }
        }
        Error::InvalidArgument { argument, message } => {
            Error::InvalidArgument { argument: format!("{argument} of statement {index}"), message }
        }
        Error::TooLarge { what, limit, actual } => {
            Error::TooLarge { what: format!("{what} of statement {index}"), limit, actual }
        }
        other => other,
    }
}

/// A limit that the caller may set: what it is if left out, and how large it may be.
///
/// # Errors
/// [`Error::TooLarge`] above `max`, [`Error::InvalidArgument`] for 0.
pub fn limit(name: &str, given: Option<u64>, default: u64, max: u64) -> Result<u64, Error> {
    match given {
        None => Ok(default.min(max)),
        Some(0) => Err(Error::InvalidArgument {
            argument: name.to_owned(),
            message: format!("0 allows nothing; 1 to {max}, {default} if left out"),
        }),
        Some(given) if given > max => Err(too_large(name, max as usize, usize::try_from(given).unwrap_or(usize::MAX))),
        Some(given) => Ok(given),
    }
}
