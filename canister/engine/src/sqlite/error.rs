//! What SQLite says when something goes wrong.
use super::sys;
use core::fmt;

/// An error of SQLite, with everything that it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteError {
    /// Extended result code (`SQLITE_CONSTRAINT_UNIQUE` is 2067); its low byte is the primary code.
    pub code: i32,
    /// SQLite's own words.
    pub message: String,
    /// Byte offset in the SQL text at which the error was found, where SQLite knows it.
    pub offset: Option<u32>,
}

impl SqliteError {
    /// The primary result code (`SQLITE_CONSTRAINT` is 19).
    pub fn primary(&self) -> i32 {
        self.code & 0xff
    }

    /// The name of the primary code, as in SQLite's documentation.
    pub fn name(&self) -> &'static str {
        match self.primary() {
            sys::SQLITE_ERROR => "SQLITE_ERROR",
            sys::SQLITE_INTERNAL => "SQLITE_INTERNAL",
            sys::SQLITE_PERM => "SQLITE_PERM",
            sys::SQLITE_ABORT => "SQLITE_ABORT",
            sys::SQLITE_BUSY => "SQLITE_BUSY",
            sys::SQLITE_LOCKED => "SQLITE_LOCKED",
            sys::SQLITE_NOMEM => "SQLITE_NOMEM",
            sys::SQLITE_READONLY => "SQLITE_READONLY",
            sys::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
            sys::SQLITE_IOERR => "SQLITE_IOERR",
            sys::SQLITE_CORRUPT => "SQLITE_CORRUPT",
            sys::SQLITE_NOTFOUND => "SQLITE_NOTFOUND",
            sys::SQLITE_FULL => "SQLITE_FULL",
            sys::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
            sys::SQLITE_SCHEMA => "SQLITE_SCHEMA",
            sys::SQLITE_TOOBIG => "SQLITE_TOOBIG",
            sys::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
            sys::SQLITE_MISMATCH => "SQLITE_MISMATCH",
            sys::SQLITE_MISUSE => "SQLITE_MISUSE",
            sys::SQLITE_AUTH => "SQLITE_AUTH",
            sys::SQLITE_RANGE => "SQLITE_RANGE",
            sys::SQLITE_NOTADB => "SQLITE_NOTADB",
            _ => "SQLITE_UNKNOWN",
        }
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.message, self.name(), self.code)?;
        match self.offset {
            Some(offset) => write!(f, " at byte {offset} of the SQL"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for SqliteError {}
