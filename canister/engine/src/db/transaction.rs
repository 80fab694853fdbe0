//! What the closures of [`Database::read`] and [`Database::write`] work with.
use super::budget::Metrics;
use super::database::{Database, control};
use super::error::Error;
use super::row::Row;
use super::sql::SqlText;
use crate::sqlite::{Authority, Params, Policy, Statement};
use core::ops::{ControlFlow, Deref};

/// A consistent view that can change nothing.
pub struct Reader<'d> {
    database: &'d Database,
    authority: Authority,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Whether it can change nothing.
    pub read_only: bool,
    /// Names of the columns of its rows, by position; names can repeat. None: it answers no rows.
    pub columns: Vec<String>,
    /// Names of its parameters by number from 1, with their `:`, `@` or `$`; none for one that has only a number.
    pub parameters: Vec<Option<String>>,
}

/// A transaction that writes. It commits when its closure returns `Ok`, and is undone when it returns `Err`.
pub struct Writer<'d> {
    reader: Reader<'d>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(database: &'d Database) -> Self {
        Self { database, authority: Authority::Caller }
    }

    pub(super) fn database(&self) -> &'d Database {
        self.database
    }

    /// The same view for statements of somebody else.
    pub fn restricted(&self, policy: &'static Policy) -> Reader<'d> {
        Reader { database: self.database, authority: Authority::Restricted(policy) }
    }

    /// Prepares a statement, so that it stays prepared like one that was run.
    ///
    /// # Errors
    /// SQLite's; [`Error::Refused`]; [`Error::NotOneStatement`].
    pub fn prepare(&self, sql: &str) -> Result<(), Error> {
        self.database.statement(self.authority, SqlText::Text(sql)).map(|_| ())
    }

    /// What a statement is with the schema as it is now, without running it.
    ///
    /// # Errors
    /// SQLite's; [`Error::Refused`]; [`Error::NotOneStatement`].
    pub fn describe(&self, sql: &str) -> Result<Description, Error> {
        // One that stayed prepared would not notice a change of the schema before it runs.
        let connection = &self.database.inner.connection;
        let statement = connection.with_authority(self.authority, || self.database.prepare_one(sql, false))?;
        Ok(Description {
            read_only: statement.read_only(),
            columns: names(&statement),
            parameters: (1..=statement.parameters()).map(|number| statement.parameter_name(number)).collect(),
        })
    }

    /// What the call has used so far, if it has a budget.
    pub fn metrics(&self) -> Metrics {
        self.database.inner.meter.metrics(self.database.operations())
    }

    /// A number that differs after each change of the schema.
    pub fn schema_cookie(&self) -> u32 {
        self.database.inner.connection.schema_cookie()
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
        self.database.run(self.authority, sql.into(), &params, false, row).map(|_| ())
    }

    /// As [`Reader::query`], and answers the names of the columns, by position. They are known also if there is no row.
    ///
    /// # Errors
    /// As [`Reader::query`].
    pub fn query_named<'s, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<Vec<String>, E> {
        self.database.run(self.authority, sql.into(), &params, false, row).map(|statement| names(&statement))
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
        first_row(row, |each| self.database.run(self.authority, sql.into(), &params, false, each).map(|_| ()))
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
        self.reader
            .database
            .run(self.reader.authority, sql.into(), &params, true, |_| Ok::<_, Error>(ControlFlow::Continue(())))?;
        Ok(self.changes())
    }

    /// Rows that the last INSERT, UPDATE or DELETE changed, those of its triggers not counted.
    pub fn changes(&self) -> u64 {
        self.reader.database.inner.connection.changes()
    }

    /// Runs the statements of a text one after the other, without parameters.
    ///
    /// # Errors
    /// SQLite's, at the first that fails; those before it are done.
    pub fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.reader.database.run_batch(self.reader.authority, sql)
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
        self.reader.database.run(self.reader.authority, sql.into(), &params, true, row).map(|_| ())
    }

    /// As [`Writer::query`], and answers the names of the columns; see [`Reader::query_named`].
    ///
    /// # Errors
    /// As [`Writer::query`].
    pub fn query_named<'s, E: From<Error>>(
        &self,
        sql: impl Into<SqlText<'s>>,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<Vec<String>, E> {
        self.reader
            .database
            .run(self.reader.authority, sql.into(), &params, true, row)
            .map(|statement| names(&statement))
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
        first_row(row, |each| {
            self.reader.database.run(self.reader.authority, sql.into(), &params, true, each).map(|_| ())
        })
    }

    /// Rows that all statements since the database was opened have changed, those of triggers and foreign keys included.
    pub fn total_changes(&self) -> u64 {
        self.reader.database.inner.connection.total_changes()
    }

    /// Rowid of the row that was inserted last.
    pub fn last_insert_rowid(&self) -> i64 {
        self.reader.database.inner.connection.last_insert_rowid()
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

    /// The same transaction for statements of somebody else.
    pub fn restricted(&self, policy: &'static Policy) -> Writer<'d> {
        Writer { reader: self.reader.restricted(policy) }
    }
}

impl Writer<'_> {
    /// Runs `body` as a part of the transaction that can be undone alone: if it answers `Err` or panics, what it did is
    /// undone, and the transaction can go on. Savepoints can be nested.
    ///
    /// # Errors
    /// What `body` answers; [`Error::TransactionUndone`] if SQLite had to undo the whole transaction.
    pub fn savepoint<T, E: From<Error>>(&self, body: impl FnOnce(&Writer<'_>) -> Result<T, E>) -> Result<T, E> {
        let database = self.reader.database;
        database.check_transaction()?;
        let [begin, release, _] = database.savepoint_statements()?;
        database.control(begin)?;
        let mut open = Savepoint { database, ended: false };
        let value = body(self)?;
        database.check_transaction()?;
        open.ended = true;
        database.control(release)?;
        Ok(value)
    }
}

/// A savepoint, undone unless it was released.
struct Savepoint<'d> {
    database: &'d Database,
    ended: bool,
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        // If the whole transaction was undone, so was this; after a simulated trap SQLite is not to be called.
        if self.ended || self.database.is_cut_off() || self.database.check_transaction().is_err() {
            return;
        }
        let undone = self.database.savepoint_statements().and_then(|[_, release, roll_back]| {
            self.database.control(roll_back)?;
            self.database.control(release)
        });
        // For want of memory: then nothing of the transaction may stay.
        if undone.is_err() {
            self.database.inner.connection.roll_back();
        }
    }
}

impl Database {
    /// SAVEPOINT, RELEASE and ROLLBACK TO. The name is always the same: SQLite takes the innermost.
    fn savepoint_statements(&self) -> Result<&[Statement; 3], Error> {
        if let Some(statements) = self.inner.savepoint.get() {
            return Ok(statements);
        }
        let prepare = |sql| control(&self.inner.connection, sql);
        let [begin, release, roll_back] = ["SAVEPOINT icsql", "RELEASE icsql", "ROLLBACK TO icsql"].map(prepare);
        let statements = [begin?, release?, roll_back?];
        Ok(self.inner.savepoint.get_or_init(|| statements))
    }
}

/// Names of a statement's columns.
fn names(statement: &Statement) -> Vec<String> {
    (0..statement.columns()).map(|column| statement.column_name(column).unwrap_or_default()).collect()
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
