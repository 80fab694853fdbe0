//! Everything that can go wrong with a database, as those who use it see it.
use super::budget::Exceeded;
use crate::sqlite::{SqliteError, sys};
use crate::stable::MemoryError;
use crate::stable::page_hashes::PageHashesError;
use crate::stable::superblock::SuperblockError;
use crate::vfs::Cause;
use core::fmt;

/// Why the database did not do what it was asked. Nothing in stable memory has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// SQLite refused: the statement, a constraint, a limit.
    Sqlite(SqliteError),
    /// Stable memory refused, and SQLite with it.
    Storage {
        /// Why.
        cause: Cause,
        /// What SQLite made of it.
        sqlite: SqliteError,
    },
    /// The memory of the database was refused when it was opened.
    Superblock(SuperblockError),
    /// The table of page hashes was refused or could not be read.
    PageHashes(PageHashesError),
    /// The database has an image and no table of page hashes that covers it.
    PageHashesMissing {
        /// Pages of the image.
        image_pages: u32,
    },
    /// The image contradicts the superblock.
    ImageMismatch {
        /// What was compared.
        what: &'static str,
        /// What the superblock says.
        superblock: u64,
        /// What the image says.
        image: u64,
    },
    /// The image's texts are not UTF-8.
    Encoding {
        /// The encoding that SQLite names.
        found: String,
    },
    /// A limit of the call's budget was met. What a write had done is undone.
    Budget(Exceeded),
    /// The statement asks for something that only the engine may do, or nobody.
    Refused {
        /// What it asked for.
        what: String,
    },
    /// SQLite undid the whole transaction when a statement before this one failed, so nothing more can be done in it.
    TransactionUndone,
    /// The heap is full.
    HeapFull {
        /// Pages in the page cache, once the transaction was undone.
        cached_pages: u32,
        /// Bytes of a page.
        page_bytes: u32,
    },
    /// The image is larger than VACUUM can rebuild.
    VacuumTooLarge {
        /// Bytes of the image.
        image_bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A statement that could change the database was given to a reader.
    NotReadOnly {
        /// The statement.
        sql: String,
    },
    /// The text holds no statement, or more than one.
    NotOneStatement {
        /// Byte offset of what follows the first statement; 0 if there is none.
        offset: usize,
    },
    /// The statement has another number of parameters.
    Parameters {
        /// How many it has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// A table cannot be used by its key.
    NotKeyed {
        /// The table.
        table: String,
        /// Why.
        why: &'static str,
    },
    /// A column holds, or was given, another type than the one that it must be.
    ColumnType {
        /// The column, from 0.
        column: usize,
        /// What it must be.
        expected: &'static str,
        /// What it holds or was given.
        found: &'static str,
    },
    /// A change of the schema would leave a row that refers to one that is not there.
    ForeignKey {
        /// The table with the reference.
        table: String,
        /// The row; none in a table WITHOUT ROWID.
        rowid: Option<i64>,
        /// The table that is referred to.
        parent: String,
    },
    /// Migrations could not be applied.
    Migration(MigrationError),
}

/// Why migrations were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrationError {
    /// The list is not in ascending order of versions from 1 on.
    Order {
        /// The version that stands wrong.
        version: u32,
    },
    /// More migrations than the limit.
    TooMany {
        /// How many.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// A migration was applied with another text.
    Changed {
        /// Its version.
        version: u32,
        /// Its name in the list.
        name: &'static str,
    },
    /// The database has a migration that the list lacks: it was written by a newer program.
    Unknown {
        /// Its version.
        version: u32,
        /// Its name in the database.
        name: String,
    },
    /// A history cannot be adopted.
    Adopt {
        /// The version at which it does not fit.
        version: u64,
        /// Why.
        reason: &'static str,
    },
    /// A migration failed. None of the list was applied.
    Failed {
        /// Its version.
        version: u32,
        /// Its name.
        name: &'static str,
        /// Why.
        error: Box<Error>,
    },
}

impl Error {
    /// Whether the database could not grow: stable memory, SQLite's heap or a page limit is exhausted.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Storage { cause, .. } => matches!(
                cause,
                Cause::ImageTooLarge { .. }
                    | Cause::HeapFull { .. }
                    | Cause::Memory(MemoryError::GrowFailed { .. } | MemoryError::OutOfBuckets { .. })
            ),
            Self::HeapFull { .. } => true,
            Self::Sqlite(error) => matches!(error.primary(), sys::SQLITE_FULL | sys::SQLITE_NOMEM),
            _ => false,
        }
    }

    /// Whether the image is damaged.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(error.primary(), sys::SQLITE_CORRUPT | sys::SQLITE_NOTADB),
            Self::ImageMismatch { .. } => true,
            _ => false,
        }
    }
}

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SuperblockError> for Error {
    fn from(error: SuperblockError) -> Self {
        Self::Superblock(error)
    }
}

impl From<PageHashesError> for Error {
    fn from(error: PageHashesError) -> Self {
        Self::PageHashes(error)
    }
}

impl From<MigrationError> for Error {
    fn from(error: MigrationError) -> Self {
        Self::Migration(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Storage { cause, sqlite } => write!(f, "{cause} ({})", sqlite.name()),
            Self::Superblock(error) => error.fmt(f),
            Self::PageHashes(error) => error.fmt(f),
            Self::PageHashesMissing { image_pages } => write!(
                f,
                "the database has {image_pages} pages and their hashes are missing; was only one of its two virtual \
                 memories restored?"
            ),
            Self::ImageMismatch { what, superblock, image } => {
                write!(f, "the superblock says {superblock} for the {what} and the image says {image}: it is damaged")
            }
            Self::Encoding { found } => write!(f, "the image's texts are {found}; only UTF-8 can be opened"),
            Self::Budget(exceeded) => exceeded.fmt(f),
            Self::Refused { what } => write!(f, "not allowed: {what}"),
            Self::TransactionUndone => f.write_str(
                "a statement failed in a way that undid the whole transaction (no room, no memory or a budget); give up \
                 the closure with its error",
            ),
            Self::HeapFull { cached_pages, page_bytes } => write!(
                f,
                "the heap is full (SQLITE_NOMEM): beside the transaction's changed pages the page cache holds \
                 {cached_pages} pages of {page_bytes} bytes; change less in one transaction, or open the database with a \
                 smaller cache"
            ),
            Self::VacuumTooLarge { image_bytes, limit } => write!(
                f,
                "the image has {image_bytes} bytes and VACUUM, which needs as much heap twice, takes at most {limit}; \
                 export the rows that you need, or let SQLite use the free pages again"
            ),
            Self::NotReadOnly { sql } => write!(f, "only statements that read are allowed here, not: {sql}"),
            Self::NotOneStatement { offset: 0 } => f.write_str("the text holds no SQL statement"),
            Self::NotOneStatement { offset } => {
                write!(f, "one SQL statement at a time: a second begins at byte {offset} of the text")
            }
            Self::Parameters { expected, given } => {
                write!(f, "the statement has {expected} parameters and {given} were given")
            }
            Self::NotKeyed { table, why } => write!(f, "table {table} cannot be used by its key: {why}"),
            Self::ColumnType { column, expected, found } => {
                write!(f, "column {column} holds {found}, not {expected}")
            }
            Self::ForeignKey { table, rowid, parent } => {
                let row = rowid.map_or_else(|| "a row".to_owned(), |rowid| format!("row {rowid}"));
                write!(f, "foreign key: {row} of {table} would refer to a row that {parent} does not have")
            }
            Self::Migration(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for MigrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { version } => {
                write!(f, "migration {version} stands wrong: versions must ascend and start at 1 or above")
            }
            Self::TooMany { given, limit } => write!(f, "{given} migrations; the limit is {limit}"),
            Self::Changed { version, name } => write!(
                f,
                "migration {version} ({name}) was applied with another text; leave it as it was and add a new one"
            ),
            Self::Unknown { version, name } => write!(
                f,
                "the database has migration {version} ({name}), which this program does not know: it was written by a \
                 newer one; install that"
            ),
            Self::Adopt { version, reason } => write!(f, "the history cannot be adopted: version {version} {reason}"),
            Self::Failed { version, name, error } => {
                write!(f, "migration {version} ({name}) failed and nothing was applied: {error}")
            }
        }
    }
}

impl core::error::Error for Error {}
impl core::error::Error for MigrationError {}
