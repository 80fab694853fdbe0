//! Changing the schema: transactions in which foreign keys are checked as a whole.
use super::budget::{Budget, Metrics};
use super::database::Database;
use super::error::Error;
use super::transaction::Writer;
use crate::sqlite::lock;
use core::ops::ControlFlow;

/// Foreign keys are not enforced while it lives.
struct NotEnforced<'d>(&'d Database);

impl<'d> NotEnforced<'d> {
    fn new(database: &'d Database) -> Self {
        database.inner.connection.set_foreign_keys(false);
        Self(database)
    }
}

impl Drop for NotEnforced<'_> {
    fn drop(&mut self) {
        // After a simulated trap SQLite is not to be called.
        if !self.0.is_cut_off() {
            self.0.inner.connection.set_foreign_keys(true);
            // Both switches made all prepared statements stale.
            self.0.prepare_again();
        }
    }
}

impl Database {
    /// As [`Database::write_within`], for changes of the schema. Foreign keys are not enforced statement by statement, so
    /// that a table can be rebuilt (create the new one, copy, drop the old one, rename) without its children losing their
    /// rows to ON DELETE; in place of that all of them are checked before COMMIT.
    ///
    /// # Errors
    /// As [`Database::write_within`], and [`Error::ForeignKey`] if a row refers to one that is not there. Nothing has
    /// changed then.
    pub fn write_schema<T, E: From<Error>>(
        &mut self,
        budget: &Budget,
        body: impl FnOnce(&Writer<'_>) -> Result<T, E>,
    ) -> (Result<T, E>, Metrics) {
        let _entered = lock::enter();
        let mut metered = self.metered(budget);
        let not_enforced = NotEnforced::new(self);
        let outcome = self.transaction(|writer| {
            let value = body(writer)?;
            check_foreign_keys(writer)?;
            Ok(value)
        });
        drop(not_enforced);
        let committed = outcome.is_ok();
        (outcome, metered.end(committed))
    }
}

/// Looks for a row that refers to one that is not there.
fn check_foreign_keys(writer: &Writer<'_>) -> Result<(), Error> {
    writer.query("PRAGMA main.foreign_key_check", (), |row| {
        let text = |column| {
            Ok::<_, Error>(String::from_utf8_lossy(row.value(column)?.as_bytes().unwrap_or_default()).into_owned())
        };
        let (table, parent) = (text(0)?, text(2)?);
        Err::<ControlFlow<()>, _>(Error::ForeignKey { table, rowid: row.integer(1).ok(), parent })
    })
}
