//! What can go wrong.

use std::fmt;
use std::path::PathBuf;

/// Why the demonstration ended early.
#[derive(Debug)]
pub enum Error {
    /// The data set cannot be used.
    Data { path: PathBuf, message: String },
    /// The canister's Wasm cannot be read.
    Wasm { path: PathBuf, message: String },
    /// The server does not answer as the replica does.
    Server { url: String, message: String },
    /// A call was rejected before or while the canister worked on it.
    Rejected { call: String, message: String },
    /// The canister answered with an error.
    Answered { call: String, error: icsql_types::Error },
    /// What came back is not what was asked for.
    Unexpected { call: String, message: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data { path, message } => write!(
                f,
                "{} cannot be loaded: {message}\n       scripts/run downloads it; remove .tools/data to have that done again",
                path.display()
            ),
            Self::Wasm { path, message } => {
                write!(f, "{} cannot be read: {message}\n       run scripts/build first", path.display())
            }
            Self::Server { url, message } => {
                write!(f, "the server at {url}: {message}\n       scripts/run starts icsql-replica there")
            }
            Self::Rejected { call, message } => write!(f, "{call} was rejected: {message}"),
            Self::Answered { call, error } => write!(f, "{call} failed: {error}"),
            Self::Unexpected { call, message } => write!(f, "{call}: {message}"),
        }
    }
}

impl std::error::Error for Error {}
