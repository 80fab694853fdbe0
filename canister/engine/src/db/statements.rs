//! The statements that stay prepared: those of [`Sql`] as long as the database is open, other texts as long as they are
//! among the most recently used.
use super::error::Error;
use super::sql::{Sql, SqlText};
use crate::limits::{CACHED_SQL_BYTES_MAX, CACHED_STATEMENTS_MAX};
use crate::sqlite::{Authority, Statement};
use core::cell::{Cell, RefCell};
use std::rc::Rc;

struct Kept {
    sql: &'static Sql,
    statement: Rc<Statement>,
}

struct Cached {
    /// Under which the text was prepared: what one may do another may not.
    authority: Authority,
    text: Box<str>,
    statement: Rc<Statement>,
    /// The clock when it was used last.
    used: u64,
}

#[derive(Default)]
pub(super) struct Statements {
    kept: RefCell<Vec<Option<Kept>>>,
    cached: RefCell<Vec<Cached>>,
    clock: Cell<u64>,
}

impl Statements {
    /// The statement of a text. While it runs (a row closure may ask for it again) the answer is another of the same
    /// text. `prepare` is told whether the statement will stay.
    pub(super) fn get(
        &self,
        sql: SqlText<'_>,
        prepare: impl Fn(&str, bool) -> Result<Statement, Error>,
    ) -> Result<Rc<Statement>, Error> {
        match sql {
            SqlText::Kept(sql) => self.kept(sql, prepare),
            SqlText::Text(text) => self.cached(Authority::Caller, text, prepare),
        }
    }

    #[inline]
    fn kept(
        &self,
        sql: &'static Sql,
        prepare: impl Fn(&str, bool) -> Result<Statement, Error>,
    ) -> Result<Rc<Statement>, Error> {
        let slot = sql.slot();
        let mut kept = self.kept.borrow_mut();
        match kept.get(slot) {
            Some(Some(kept)) if !kept.statement.running() => return Ok(Rc::clone(&kept.statement)),
            Some(Some(_)) => return Ok(Rc::new(prepare(sql.text(), false)?)),
            Some(None) => {}
            None => kept.resize_with(slot + 1, || None),
        }
        let statement = Rc::new(prepare(sql.text(), true)?);
        kept[slot] = Some(Kept { sql, statement: Rc::clone(&statement) });
        Ok(statement)
    }

    /// The statement of a text under an authority, which is the present one.
    pub(super) fn cached(
        &self,
        authority: Authority,
        text: &str,
        prepare: impl Fn(&str, bool) -> Result<Statement, Error>,
    ) -> Result<Rc<Statement>, Error> {
        let clock = self.clock.get() + 1;
        self.clock.set(clock);
        let mut cached = self.cached.borrow_mut();
        // There are few, and most differ in length, so that a walk over all costs less than hashing the text.
        if let Some(found) = cached.iter_mut().find(|cached| *cached.text == *text && cached.authority == authority) {
            if found.statement.running() {
                return Ok(Rc::new(prepare(text, false)?));
            }
            found.used = clock;
            return Ok(Rc::clone(&found.statement));
        }
        if text.len() > CACHED_SQL_BYTES_MAX {
            return Ok(Rc::new(prepare(text, false)?));
        }
        let statement = Rc::new(prepare(text, true)?);
        let new = Cached { authority, text: text.into(), statement: Rc::clone(&statement), used: clock };
        if cached.len() < CACHED_STATEMENTS_MAX {
            cached.push(new);
        } else if let Some(oldest) = cached.iter_mut().min_by_key(|cached| cached.used) {
            *oldest = new;
        }
        Ok(statement)
    }

    /// Prepares the kept statements again and forgets the others, after a change of the schema. A statement whose table
    /// is gone says so when it is used.
    pub(super) fn prepare_again(&self, prepare: impl Fn(&str, bool) -> Result<Statement, Error>) {
        self.cached.borrow_mut().clear();
        for slot in self.kept.borrow_mut().iter_mut() {
            if let Some(sql) = slot.take().map(|kept| kept.sql) {
                let statement = prepare(sql.text(), true).ok().map(Rc::new);
                *slot = statement.map(|statement| Kept { sql, statement });
            }
        }
    }
}
