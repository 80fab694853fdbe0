//! A row, as long as the statement stands on it.
use super::error::Error;
use crate::sqlite::{Statement, ValueRef};

/// A row of a result. What it hands out is borrowed from SQLite: nothing is copied.
pub struct Row<'r> {
    statement: &'r Statement,
}

impl<'r> Row<'r> {
    pub(super) fn new(statement: &'r Statement) -> Self {
        Self { statement }
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.statement.columns()
    }

    /// The name of a column, counted from 0.
    pub fn column_name(&self, column: usize) -> Option<String> {
        self.statement.column_name(column)
    }

    /// The value of a column, counted from 0.
    ///
    /// # Errors
    /// [`Error::Sqlite`] with `SQLITE_RANGE` if there is no such column, with `SQLITE_NOMEM` if the heap is full.
    #[inline]
    pub fn value(&self, column: usize) -> Result<ValueRef<'r>, Error> {
        Ok(self.statement.column(column)?)
    }

    /// An INTEGER.
    ///
    /// # Errors
    /// As [`Row::value`], and [`Error::ColumnType`].
    pub fn integer(&self, column: usize) -> Result<i64, Error> {
        match self.value(column)? {
            ValueRef::Integer(integer) => Ok(integer),
            other => Err(Self::mismatch(column, "integer", &other)),
        }
    }

    /// A TEXT.
    ///
    /// # Errors
    /// As [`Row::integer`], also if it is not UTF-8.
    pub fn text(&self, column: usize) -> Result<&'r str, Error> {
        let value = self.value(column)?;
        match value.as_str() {
            Some(text) => Ok(text),
            None if value.kind() == "text" => {
                Err(Error::ColumnType { column, expected: "UTF-8 text", found: "text that is not UTF-8" })
            }
            None => Err(Self::mismatch(column, "text", &value)),
        }
    }

    /// A BLOB.
    ///
    /// # Errors
    /// As [`Row::integer`].
    pub fn blob(&self, column: usize) -> Result<&'r [u8], Error> {
        match self.value(column)? {
            ValueRef::Blob(blob) => Ok(blob),
            other => Err(Self::mismatch(column, "blob", &other)),
        }
    }

    fn mismatch(column: usize, expected: &'static str, found: &ValueRef<'_>) -> Error {
        Error::ColumnType { column, expected, found: found.kind() }
    }
}
