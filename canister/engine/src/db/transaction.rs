//! What the closures of [`Database::read`] and [`Database::write`] work with.
use super::database::Database;
use super::error::Error;
use super::row::Row;
use super::sql::SqlText;
use crate::sqlite::Params;
use core::ops::{ControlFlow, Deref};

/// A consistent view that can change nothing.
pub struct Reader<'d> {
    database: &'d Database,
}

/// A transaction that writes. It commits when its closure returns `Ok`, and is undone when it returns `Err`.
pub struct Writer<'d> {
    reader: Reader<'d>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(database: &'d Database) -> Self {
        Self { database }
    }

    /// Runs a query and hands each row to `row`, until it answers [`ControlFlow::Break`].
    ///
    /// # Errors
    /// [`Error::NotReadOnly`] for a statement that could write; SQLite's; what `row` answers.
    pub fn query<'s, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        self.database.run(sql.into(), &params, false, row)
    }

    /// Runs a query and answers what `row` makes of its first row; `None` if there is none.
    ///
    /// # Errors
    /// As [`Reader::query`].
    pub fn query_row<'s, T, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        first_row(row, |each| self.database.run(sql.into(), &params, false, each))
    }

    /// Stops every statement of this closure, with [`Error::Budget`], once the closure has used this many instructions
    /// from now on. It can overrun by what a thousand steps of SQLite's virtual machine cost.
    pub fn limit_instructions(&self, instructions: u64) {
        self.database.limit_instructions(instructions);
    }
}

impl Writer<'_> {
    /// The id that this transaction will have once it is committed, if it changes anything.
    pub fn id(&self) -> u64 {
        self.reader.database.next_transaction_id()
    }

    /// Runs a statement to its end and answers how many rows it inserted, updated or deleted.
    ///
    /// # Errors
    /// SQLite's. The transaction can go on: what the statement had done is undone.
    pub fn execute<'s>(&self, sql: impl Into<SqlText<'s>>, params: impl Params) -> Result<u64, Error> {
        self.reader.database.run(sql.into(), &params, true, |_| Ok::<_, Error>(ControlFlow::Continue(())))?;
        Ok(self.reader.database.changes())
    }

    /// Runs the statements of a text one after the other, without parameters.
    ///
    /// # Errors
    /// SQLite's, at the first that fails; those before it are done.
    pub fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.reader.database.run_batch(sql)
    }

    /// Runs a statement that answers rows, one with RETURNING among them; see [`Reader::query`].
    ///
    /// # Errors
    /// As [`Reader::query`], but for its first.
    pub fn query<'s, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        self.reader.database.run(sql.into(), &params, true, row)
    }

    /// Runs a statement that answers rows to its end; see [`Reader::query_row`].
    ///
    /// # Errors
    /// As [`Writer::query`].
    pub fn query_row<'s, T, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        first_row(row, |each| self.reader.database.run(sql.into(), &params, true, each))
    }

    /// Rowid of the row that was inserted last.
    pub fn last_insert_rowid(&self) -> i64 {
        self.reader.database.last_insert_rowid()
    }
}

impl<'d> Deref for Writer<'d> {
    type Target = Reader<'d>;

    fn deref(&self) -> &Reader<'d> {
        &self.reader
    }
}

impl<'d> Writer<'d> {
    pub(super) fn new(database: &'d Database) -> Self {
        Self { reader: Reader::new(database) }
    }
}

/// What `row` makes of the first row that `run` hands on.
fn first_row<T, E>(
    row: impl FnOnce(&Row<'_>) -> Result<T, E>,
    run: impl FnOnce(&mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>) -> Result<(), E>,
) -> Result<Option<T>, E> {
    let mut row = Some(row);
    let mut found = None;
    run(&mut |each| {
        if let Some(row) = row.take() {
            found = Some(row(each)?);
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
