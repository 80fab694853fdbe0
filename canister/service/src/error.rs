//! What goes wrong inside, and the one place that turns it into the interface's error.
use icsql_engine::{Error as EngineError, SqliteError};
use icsql_types::Error;

/// A failure on its way out of a transaction.
#[derive(Debug)]
pub enum Failure {
    /// The engine's.
    Engine(EngineError),
    /// One that is already said in the interface's words.
    Answer(Error),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Failure::Engine(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Answer(error)
    }
}

impl From<Failure> for Error {
    #[cold]
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Answer(error) => error,
            Failure::Engine(error) => from_engine(error),
        }
    }
}

fn from_engine(error: EngineError) -> Error {
    if error.is_full() {
        return Error::StorageFull { message: error.to_string() };
    }
    if error.is_corrupt() {
        return Error::Corrupt { message: error.to_string() };
    }
    match error {
        EngineError::Sqlite(sqlite) => {
            let SqliteError { code, message, offset } = sqlite;
            Error::Sqlite { code, message, offset, statement: None, cost: None }
        }
        EngineError::Budget(exceeded) => {
            Error::BudgetExceeded { what: exceeded.what.to_string(), limit: exceeded.limit, cost: None }
        }
        other => {
            let code = match other {
                EngineError::Storage { .. } => "storage",
                EngineError::Migration(_) => "migration",
                _ => "engine",
            };
            Error::Other { code: code.to_owned(), message: other.to_string() }
        }
    }
}

/// `text` cut to at most `bytes_max` bytes, at a character's boundary.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
