//! Running a statement: with a budget and without.
use super::database::{Database, Inner};
use super::error::Error;
use super::row::Row;
use super::sql::{SqlText, is_blank};
use crate::sqlite::{Authority, Params, SqliteError, Statement, Step, sys};
use core::ops::ControlFlow;
use std::rc::Rc;

/// `SQLITE_CONSTRAINT_COMMITHOOK`: the commit hook has said no.
const COMMIT_HOOK: i32 = sys::SQLITE_CONSTRAINT_COMMITHOOK;

impl Database {
    /// Prepares a text that holds exactly one statement.
    pub(super) fn prepare_one(&self, sql: &str, kept: bool) -> Result<Statement, Error> {
        let prepared = self.inner.connection.prepare(sql, kept).map_err(|error| self.explain(error))?;
        let rest = sql.get(prepared.consumed..).unwrap_or("");
        match prepared.statement {
            Some(statement) if is_blank(rest) => Ok(statement),
            Some(_) => Err(Error::NotOneStatement { offset: prepared.consumed }),
            None => Err(Error::NotOneStatement { offset: 0 }),
        }
    }

    /// The statement of a text, prepared now if it is not among those that stay prepared.
    #[inline]
    pub(super) fn statement(&self, authority: Authority, sql: SqlText<'_>) -> Result<Rc<Statement>, Error> {
        let Inner { statements, connection, .. } = &*self.inner;
        match authority {
            Authority::Restricted(_) => connection.with_authority(authority, || {
                statements.cached(authority, sql.text(), |text, kept| self.prepare_one(text, kept))
            }),
            _ => statements.get(sql, |text, kept| self.prepare_one(text, kept)),
        }
    }

    /// Runs one statement, and answers it, reset.
    pub(super) fn run<E: From<Error>>(
        &self,
        authority: Authority,
        sql: SqlText<'_>,
        params: &impl Params,
        may_write: bool,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<Rc<Statement>, E> {
        self.check_transaction()?;
        if self.inner.meter.is_on() {
            return self.run_metered(authority, sql, params, may_write, row);
        }
        let statement = self.statement(authority, sql)?;
        self.run_prepared(authority, &statement, sql, params, may_write, row)?;
        Ok(statement)
    }

    #[inline]
    pub(super) fn run_prepared<E: From<Error>>(
        &self,
        authority: Authority,
        statement: &Statement,
        sql: SqlText<'_>,
        params: &impl Params,
        may_write: bool,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        check_statement(statement, sql, params, may_write)?;
        statement.bind(params, || self.steps(authority, statement, row)).map_err(|error| self.explain(error))?
    }

    /// Whether the transaction that was begun is still open. SQLite undoes it by itself when a statement fails for want
    /// of room or of memory, or is stopped; what a closure did after that would each be committed on its own.
    pub(super) fn check_transaction(&self) -> Result<(), Error> {
        if self.inner.in_transaction.get() && self.inner.connection.autocommit() {
            return Err(self.undone());
        }
        Ok(())
    }

    #[cold]
    fn undone(&self) -> Error {
        self.inner.meter.exceeded().map_or(Error::TransactionUndone, Error::Budget)
    }

    fn run_metered<E: From<Error>>(
        &self,
        authority: Authority,
        sql: SqlText<'_>,
        params: &impl Params,
        may_write: bool,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<Rc<Statement>, E> {
        let meter = &self.inner.meter;
        meter.check_sql(sql.text())?;
        let begun = meter.now();
        meter.check_instructions(begun)?;
        let statement = self.statement(authority, sql);
        let prepared = meter.now();
        meter.prepared(prepared.saturating_sub(begun));
        let statement = statement?;
        check_statement(&statement, sql, params, may_write)?;
        meter.check_params(params)?;
        self.steps_metered(authority, &statement, params, row)?;
        Ok(statement)
    }

    /// Binds, runs and counts a statement.
    fn steps_metered<E: From<Error>>(
        &self,
        authority: Authority,
        statement: &Statement,
        params: &impl Params,
        mut row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let meter = &self.inner.meter;
        // Those of earlier calls without a budget.
        statement.take_counts();
        let begun = meter.now();
        let nested = meter.nested();
        let mut bound = begun;
        let outcome = statement.bind(params, || {
            bound = meter.now();
            let outcome = self.steps(authority, statement, |each| {
                let (bytes, largest) = statement.row_bytes();
                meter.row(bytes, largest)?;
                row(each)
            });
            // Before the statement is reset.
            meter.ran(begun, bound, nested, statement.take_counts());
            outcome
        });
        outcome.map_err(|error| self.explain(error))?
    }

    #[inline]
    fn steps<E: From<Error>>(
        &self,
        authority: Authority,
        statement: &Statement,
        mut row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        loop {
            // SQLite asks again when it prepares the statement anew or, for a virtual table, others beside it.
            let step = match authority {
                Authority::Restricted(_) => self.inner.connection.with_authority(authority, || statement.step()),
                _ => statement.step(),
            };
            match step {
                Ok(Step::Row) => {
                    if row(&Row::new(statement))?.is_break() {
                        return Ok(());
                    }
                }
                Ok(Step::Done) => return Ok(()),
                Err(error) => return Err(self.explain(error).into()),
            }
        }
    }

    /// Runs the statements of a text, one after the other.
    pub(super) fn run_batch(&self, authority: Authority, sql: &str) -> Result<(), Error> {
        let meter = &self.inner.meter;
        if meter.is_on() {
            meter.check_sql(sql)?;
        }
        let mut rest = sql;
        while !is_blank(rest) {
            self.check_transaction()?;
            let start = sql.len() - rest.len();
            let shifted = |mut error: SqliteError| {
                error.offset = error.offset.map(|offset| offset.saturating_add(start as u32));
                self.explain(error)
            };
            let begun = if meter.is_on() { meter.now() } else { 0 };
            let connection = &self.inner.connection;
            let prepared = connection.with_authority(authority, || connection.prepare(rest, false)).map_err(shifted)?;
            rest = rest.get(prepared.consumed..).unwrap_or("");
            let Some(statement) = prepared.statement else {
                // SQLite reads no further than to a NUL, also when asked again.
                if prepared.consumed == 0 {
                    let message = "a NUL in the text of a statement".into();
                    return Err(shifted(SqliteError { code: sys::SQLITE_ERROR, message, offset: Some(0) }));
                }
                continue;
            };
            if statement.parameters() > 0 {
                return Err(Error::Parameters { expected: statement.parameters(), given: 0 });
            }
            let ignore = |_: &Row<'_>| Ok::<_, Error>(ControlFlow::Continue(()));
            if meter.is_on() {
                let now = meter.now();
                meter.prepared(now.saturating_sub(begun));
                meter.check_instructions(now)?;
                self.steps_metered(authority, &statement, &(), ignore)?;
            } else {
                statement
                    .bind(&(), || self.steps(authority, &statement, ignore))
                    .map_err(|error| self.explain(error))??;
            }
        }
        Ok(())
    }

    /// What SQLite's error means, with what the file, the authorizer and the budget know of it.
    pub(super) fn explain(&self, sqlite: SqliteError) -> Error {
        let primary = sqlite.primary();
        let refused = self.inner.connection.take_refused();
        if primary == sys::SQLITE_AUTH
            && let Some(what) = refused
        {
            return Error::Refused { what };
        }
        if (primary == sys::SQLITE_INTERRUPT || sqlite.code == COMMIT_HOOK)
            && let Some(exceeded) = self.inner.meter.exceeded()
        {
            return Error::Budget(exceeded);
        }
        let cause = self.inner.file.borrow_mut().take_cause();
        match cause {
            Some(cause) => Error::Storage { cause, sqlite },
            None if primary == sys::SQLITE_NOMEM => Error::HeapFull {
                cached_pages: self.inner.connection.cached_pages(),
                page_bytes: self.inner.file.borrow().superblock().page_bytes(),
            },
            None => Error::Sqlite(sqlite),
        }
    }
}

fn check_statement(
    statement: &Statement,
    sql: SqlText<'_>,
    params: &impl Params,
    may_write: bool,
) -> Result<(), Error> {
    if !may_write && !statement.read_only() {
        return Err(Error::NotReadOnly { sql: sql.text().to_owned() });
    }
    if params.count() != statement.parameters() {
        return Err(Error::Parameters { expected: statement.parameters(), given: params.count() });
    }
    Ok(())
}
