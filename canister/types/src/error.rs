use crate::sql::Cost;
use candid::CandidType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a call failed. One type for the whole interface.
///
/// No case is ever added: a caller that matches strictly could not decode it. A failure of a new kind is
/// [`Error::Other`] with a `code` of its own, and the records may gain optional fields.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields' names say it, and candid/icsql.did in full
pub enum Error {
    /// The caller may not call this method.
    Forbidden { method: String, allowed: String },
    /// The arguments are no Candid of this method's types, or a value is outside its range.
    InvalidArgument { argument: String, message: String },
    /// `what` is larger than `limit`: bytes for texts and messages, entries for lists.
    TooLarge { what: String, limit: u64, actual: u64 },
    /// There is no such `what` under this name.
    NotFound { what: String, name: String },
    /// There is such a `what` already.
    AlreadyExists { what: String, name: String },
    /// A condition of a write is not met; `version` is that of the entry, `index` the place in a list.
    ConditionFailed { index: u32, key: String, version: Option<u64> },
    /// It contradicts what was before: the data changed since the page before, or an idempotency key was used otherwise.
    Conflict { what: String, message: String },
    /// The work would have used more of `what` than `limit`.
    BudgetExceeded { what: String, limit: u64, cost: Option<Box<Cost>> },
    /// The database cannot grow by what this call needs.
    StorageFull { message: String },
    /// Bytes in stable memory are not what was written there.
    Corrupt { message: String },
    /// This method does no work any more; call `method`.
    UseInstead { method: String, message: String },
    /// SQLite refused; `code` is its extended result code, `offset` a byte position in the SQL text, `statement` the place
    /// in a batch.
    Sqlite { code: i32, message: String, offset: Option<u32>, statement: Option<u32>, cost: Option<Box<Cost>> },
    /// Anything else; `code` is a stable word to match on.
    Other { code: String, message: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Forbidden { method, allowed } => write!(f, "{method} may be called by {allowed} only"),
            Error::InvalidArgument { argument, message } => write!(f, "invalid {argument}: {message}"),
            Error::TooLarge { what, limit, actual } => write!(f, "{what} too large: {actual}, the limit is {limit}"),
            Error::NotFound { what, name } => write!(f, "no {what} {name:?}"),
            Error::AlreadyExists { what, name } => write!(f, "there is a {what} {name:?} already"),
            Error::ConditionFailed { index, key, version: Some(version) } => {
                write!(f, "the condition of operation {index} is not met: {key:?} has version {version}")
            }
            Error::ConditionFailed { index, key, version: None } => {
                write!(f, "the condition of operation {index} is not met: there is no {key:?}")
            }
            Error::Conflict { what, message } => write!(f, "{what}: {message}"),
            Error::BudgetExceeded { what, limit, .. } => write!(f, "stopped: more than {limit} {what} needed"),
            Error::StorageFull { message } => write!(f, "storage full: {message}"),
            Error::Corrupt { message } => write!(f, "damaged data: {message}"),
            Error::UseInstead { method, message } => write!(f, "call {method} instead: {message}"),
            Error::Sqlite { code, message, offset, statement, .. } => {
                write!(f, "SQLite error {code}")?;
                if let Some(statement) = statement {
                    write!(f, " in statement {statement}")?;
                }
                if let Some(offset) = offset {
                    write!(f, " at byte {offset}")?;
                }
                write!(f, ": {message}")
            }
            Error::Other { code, message } => write!(f, "{code}: {message}"),
        }
    }
}

impl std::error::Error for Error {}
