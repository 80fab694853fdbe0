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
    /// The work would have used more of `what` than `limit`.
    BudgetExceeded { what: String, limit: u64 },
    /// The database cannot grow by what this call needs.
    StorageFull { message: String },
    /// Bytes in stable memory are not what was written there.
    Corrupt { message: String },
    /// This method does no work any more; call `method`.
    UseInstead { method: String, message: String },
    /// SQLite refused; `code` is its extended result code, `offset` a byte position in the SQL text.
    Sqlite { code: i32, message: String, offset: Option<u32> },
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
            Error::BudgetExceeded { what, limit } => write!(f, "stopped: more than {limit} {what} needed"),
            Error::StorageFull { message } => write!(f, "storage full: {message}"),
            Error::Corrupt { message } => write!(f, "damaged data: {message}"),
            Error::UseInstead { method, message } => write!(f, "call {method} instead: {message}"),
            Error::Sqlite { code, message, offset: Some(offset) } => {
                write!(f, "SQLite error {code} at byte {offset}: {message}")
            }
            Error::Sqlite { code, message, offset: None } => write!(f, "SQLite error {code}: {message}"),
            Error::Other { code, message } => write!(f, "{code}: {message}"),
        }
    }
}

impl std::error::Error for Error {}
