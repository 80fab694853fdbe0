//! One database: one connection for everything, opened once and never closed by a commit.
use super::error::Error;
use super::migrate::{self, Migration};
use super::row::Row;
use super::sql::{Sql, SqlText, is_blank};
use super::transaction::{Reader, Writer};
use crate::env::{Env, default_env};
use crate::limits;
use crate::sqlite::{self, Connection, Params, SqliteError, Statement, Step, lock, sys};
use crate::stable::Memory;
use crate::stable::page_hashes::PageHashes;
use crate::stable::superblock::Superblock;
use crate::stable::verify::Progress;
use crate::vfs::{DatabaseFile, Registration};
use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;
use std::rc::Rc;

/// How to open a database.
#[derive(Clone)]
pub struct OpenOptions {
    /// Bytes of a page, if the database is new: a power of two from 512 to 65,536. A database that exists keeps its own.
    pub page_bytes: u32,
    /// Heap that the page cache may take, in bytes. At least [`limits::CACHE_PAGES_MIN`] pages are kept.
    pub cache_bytes: u64,
    /// Time, instruction counter and seed; none: those that fit the target.
    pub env: Option<Rc<dyn Env>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { page_bytes: limits::PAGE_BYTES_DEFAULT, cache_bytes: limits::CACHE_BYTES_DEFAULT, env: None }
    }
}

/// What is known of a database without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Version of the stable layout.
    pub layout_version: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages of the image.
    pub image_pages: u32,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Id of the last transaction that changed anything; 0: none yet.
    pub transaction_id: u64,
    /// Digest of the image, kept up to date by each commit.
    pub digest: u64,
    /// Wasm pages (64 KiB) of the virtual memory that holds the image.
    pub memory_pages: u64,
    /// Pages of the image that are in the page cache.
    pub cached_pages: u32,
}

/// A database in stable memory.
///
/// Reads and writes share one connection and its page cache, so what a commit leaves in the cache the next query
/// finds. Everything happens inside closures, so that no transaction can outlive its message.
pub struct Database {
    inner: Rc<Inner>,
}

/// Fields are dropped in order: statements, the connection, its VFS.
struct Inner {
    kept: RefCell<Vec<Option<Kept>>>,
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    connection: Connection,
    _registration: Registration,
    file: Rc<RefCell<DatabaseFile>>,
    env: Rc<dyn Env>,
    cache_pages: u32,
    /// What the schema was when the kept statements were prepared.
    schema_cookie: Cell<u32>,
    /// The limit that is in force, for the error.
    instructions: Cell<u64>,
}

struct Kept {
    sql: &'static Sql,
    statement: Rc<Statement>,
}

/// An open transaction: undone unless it was committed.
struct Open<'d> {
    database: &'d Database,
    committed: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // A trap in the middle of a commit is the platform's to undo.
        if !self.committed && !self.database.is_cut_off() {
            self.database.roll_back();
        }
    }
}

impl Database {
    /// Opens the database in `memory`, with its page hashes in `hashes`; makes one where `memory` is empty. Everything
    /// that the queries to come need is read before this returns: call it in `init` and `post_upgrade`.
    ///
    /// # Errors
    /// Memory that holds something else, or is damaged, is refused and left untouched: [`Error::Superblock`],
    /// [`Error::PageHashes`], [`Error::PageHashesMissing`], [`Error::ImageMismatch`], [`Error::Encoding`], or SQLite's
    /// `SQLITE_NOTADB`.
    pub fn open(
        memory: impl Memory + 'static,
        hashes: impl Memory + 'static,
        options: OpenOptions,
    ) -> Result<Self, Error> {
        let _entered = lock::enter();
        let memory: Rc<dyn Memory> = Rc::new(memory);
        let hashes: Rc<dyn Memory> = Rc::new(hashes);
        let superblock = Superblock::load(&memory)?;
        let image_pages = superblock.map_or(0, |superblock| superblock.image_pages());
        if image_pages > 0 && hashes.size() == 0 {
            return Err(Error::PageHashesMissing { image_pages });
        }
        // Refuses a foreign table of hashes before a new database gets its superblock.
        let page_hashes = PageHashes::open(hashes)?;
        if image_pages > 0 && page_hashes.read(image_pages).is_err() {
            return Err(Error::PageHashesMissing { image_pages });
        }
        let superblock = match superblock {
            Some(superblock) => superblock,
            None => Superblock::create(&memory, options.page_bytes)?,
        };
        let env = options.env.unwrap_or_else(default_env);
        let page_bytes = superblock.page_bytes();
        let cache_pages = u32::try_from(options.cache_bytes / u64::from(page_bytes)).unwrap_or(u32::MAX >> 1);
        let cache_pages = cache_pages.clamp(limits::CACHE_PAGES_MIN, u32::MAX >> 1);
        let file = Rc::new(RefCell::new(DatabaseFile::new(memory, page_hashes, superblock)));

        sqlite::initialize()?;
        let registration = Registration::new(Rc::clone(&file), Rc::clone(&env)).ok_or_else(|| SqliteError {
            code: sys::SQLITE_NOMEM,
            message: "SQLite did not take the VFS".into(),
            offset: None,
        })?;
        let hooked = Rc::clone(&file);
        let hook = Box::new(move |pages| hooked.borrow_mut().reserve(pages));
        let connection = Connection::open(registration.name(), page_bytes, cache_pages, Rc::clone(&env), hook)?;
        let control = |sql| -> Result<Statement, Error> {
            let prepared = connection.as_engine(|| connection.prepare(sql, true));
            prepared?.statement.ok_or(Error::NotOneStatement { offset: 0 })
        };
        let (begin, commit, rollback) = (control("BEGIN IMMEDIATE")?, control("COMMIT")?, control("ROLLBACK")?);
        let database = Self {
            inner: Rc::new(Inner {
                kept: RefCell::default(),
                begin,
                commit,
                rollback,
                schema_cookie: Cell::new(0),
                connection,
                _registration: registration,
                file,
                env,
                cache_pages,
                instructions: Cell::new(0),
            }),
        };
        database.check_image()?;
        database.warm()?;
        database.inner.schema_cookie.set(database.inner.connection.schema_cookie());
        Ok(database)
    }

    /// Compares what the image says of itself with the superblock.
    fn check_image(&self) -> Result<(), Error> {
        let superblock = *self.inner.file.borrow().superblock();
        if superblock.image_pages() == 0 {
            return Ok(());
        }
        self.read(|reader| {
            let number = |sql: &str| -> Result<u64, Error> {
                let found = reader.query_row(sql, (), |row| row.integer(0))?;
                Ok(found.and_then(|found| u64::try_from(found).ok()).unwrap_or(0))
            };
            let same = |what, superblock: u32, image: u64| {
                let superblock = u64::from(superblock);
                if superblock == image { Ok(()) } else { Err(Error::ImageMismatch { what, superblock, image }) }
            };
            same("page size", superblock.page_bytes(), number("PRAGMA main.page_size")?)?;
            same("number of pages", superblock.image_pages(), number("PRAGMA main.page_count")?)?;
            let encoding =
                reader.query_row("PRAGMA main.encoding", (), |row| Ok::<_, Error>(row.text(0)?.to_owned()))?;
            match encoding {
                Some(found) if found != "UTF-8" => Err(Error::Encoding { found }),
                _ => Ok(()),
            }
        })
    }

    /// Runs `body` on a view that can change nothing.
    ///
    /// # Errors
    /// What `body` answers.
    pub fn read<T, E: From<Error>>(&self, body: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        let _entered = lock::enter();
        let outcome = body(&Reader::new(self));
        self.lift_limit();
        outcome
    }

    /// Runs `body` in a transaction, which is committed if it answers `Ok` and undone if it answers `Err` or panics.
    ///
    /// # Errors
    /// What `body` answers, or why the transaction could not be committed. Nothing has changed then, and the next
    /// call works.
    pub fn write<T, E: From<Error>>(&mut self, body: impl FnOnce(&Writer<'_>) -> Result<T, E>) -> Result<T, E> {
        let _entered = lock::enter();
        self.inner.connection.set_journal(true);
        self.control(&self.inner.begin)?;
        let mut open = Open { database: self, committed: false };
        let outcome = body(&Writer::new(self));
        self.lift_limit();
        let value = outcome?;
        self.control(&self.inner.commit)?;
        open.committed = true;
        drop(open);
        self.settle();
        Ok(value)
    }

    /// Runs one statement as a transaction of its own and answers how many rows it changed. It is the cheapest way to
    /// write: SQLite keeps no rollback journal, which saves 8,000 to 16,000 instructions. If the statement fails after
    /// its first change, everything is undone as always, but the page cache is lost and read again before this
    /// returns.
    ///
    /// # Errors
    /// SQLite's. Nothing has changed then.
    pub fn execute<'s>(&mut self, sql: impl Into<SqlText<'s>>, params: impl Params) -> Result<u64, Error> {
        let _entered = lock::enter();
        let before = self.inner.connection.cached_pages();
        self.inner.connection.set_journal(false);
        let outcome = self.run(sql.into(), &params, true, |_| Ok::<_, Error>(ControlFlow::Continue(())));
        match outcome {
            Ok(()) => {
                let changes = self.changes();
                self.settle();
                Ok(changes)
            }
            Err(error) => {
                self.recover(before)?;
                Err(error)
            }
        }
    }

    /// Prepares statements now, so that no later message has to.
    ///
    /// # Errors
    /// SQLite's, for the first that it refuses.
    pub fn keep(&mut self, statements: &[&'static Sql]) -> Result<(), Error> {
        let _entered = lock::enter();
        for sql in statements {
            self.kept(sql)?;
        }
        Ok(())
    }

    /// Applies the migrations that the database lacks, all in one transaction, and checks the texts of those that it
    /// has. Answers how many were applied.
    ///
    /// # Errors
    /// [`Error::Migration`].
    pub fn migrate(&mut self, migrations: &[Migration]) -> Result<usize, Error> {
        let applied = migrate::migrate(self, migrations)?;
        if applied > 0 {
            self.warm()?;
        }
        Ok(applied)
    }

    /// What is known without reading the image.
    pub fn meta(&self) -> Meta {
        let _entered = lock::enter();
        let file = self.inner.file.borrow();
        let superblock = file.superblock();
        Meta {
            layout_version: crate::stable::superblock::LAYOUT_VERSION,
            page_bytes: superblock.page_bytes(),
            image_pages: superblock.image_pages(),
            image_bytes: superblock.image_bytes(),
            transaction_id: superblock.transaction_id(),
            digest: superblock.digest().value(),
            memory_pages: file.memory_pages(),
            cached_pages: self.inner.connection.cached_pages(),
        }
    }

    /// The id that the next transaction will have, if it changes anything.
    pub fn next_transaction_id(&self) -> u64 {
        self.inner.file.borrow().superblock().transaction_id().saturating_add(1)
    }

    /// Goes on with a walk over the image, at most `bytes_max` bytes of it, that compares each page with its hash and
    /// names those that are damaged. Commits in between do not restart it. After the last chunk a new walk begins.
    ///
    /// # Errors
    /// The memory's.
    pub fn verify_chunk(&mut self, bytes_max: u64) -> Result<Progress, Error> {
        Ok(self.inner.file.borrow_mut().verify_chunk(bytes_max)?)
    }

    /// Reads into the page cache what fits: interior pages first, then leaves. Answers how many pages it looked at.
    /// Only what an update (not a query) reads stays.
    ///
    /// # Errors
    /// SQLite's.
    pub fn warm(&self) -> Result<u32, Error> {
        let _entered = lock::enter();
        // Reads the schema, if it is not there.
        self.read(|reader| reader.query_row("SELECT 1 FROM main.sqlite_schema", (), |_| Ok::<_, Error>(())))?;
        self.inner.connection.warm(self.inner.cache_pages).map_err(|error| self.explain(error))
    }

    fn control(&self, statement: &Statement) -> Result<(), Error> {
        let outcome = self.inner.connection.as_engine(|| {
            let outcome = statement.step();
            statement.reset();
            outcome
        });
        outcome.map(|_| ()).map_err(|error| self.explain(error))
    }

    fn roll_back(&self) {
        let before = self.inner.connection.cached_pages();
        // SQLite may have rolled back by itself, as it does when the heap is full.
        if !self.inner.connection.autocommit() {
            let _ = self.control(&self.inner.rollback);
        }
        // What this could fail with, the next statement will meet again and say.
        let _ = self.recover(before);
    }

    /// After a transaction that was undone: reads the cache and prepares the kept statements again if they were lost
    /// with it. A schema that was rolled back has the cookie of before, and yet made the statements stale.
    fn recover(&self, cached_before: u32) -> Result<(), Error> {
        self.inner.file.borrow_mut().take_cause();
        let lost = self.inner.connection.cached_pages() < cached_before || !self.inner.connection.schema_loaded();
        if lost {
            self.warm()?;
            self.prepare_again();
        }
        self.settle();
        Ok(())
    }

    /// After a transaction: prepares the kept statements again if the schema has changed, so that no query has to.
    fn settle(&self) {
        if self.inner.connection.schema_cookie() != self.inner.schema_cookie.get() {
            self.prepare_again();
        }
    }

    fn prepare_again(&self) {
        self.inner.schema_cookie.set(self.inner.connection.schema_cookie());
        let mut kept = self.inner.kept.borrow_mut();
        for slot in kept.iter_mut() {
            if let Some(sql) = slot.take().map(|kept| kept.sql) {
                // A statement whose table is gone says so when it is used.
                let statement = self.prepare_one(sql.text(), true).ok().map(Rc::new);
                *slot = statement.map(|statement| Kept { sql, statement });
            }
        }
    }

    /// Prepares a text that holds exactly one statement.
    fn prepare_one(&self, sql: &str, kept: bool) -> Result<Statement, Error> {
        let prepared = self.inner.connection.prepare(sql, kept).map_err(|error| self.explain(error))?;
        let rest = sql.get(prepared.consumed..).unwrap_or("");
        match prepared.statement {
            Some(statement) if is_blank(rest) => Ok(statement),
            Some(_) => Err(Error::NotOneStatement { offset: prepared.consumed }),
            None => Err(Error::NotOneStatement { offset: 0 }),
        }
    }

    /// The kept statement. While it runs (a row closure may ask for it again) the answer is another of the same text.
    fn kept(&self, sql: &'static Sql) -> Result<Rc<Statement>, Error> {
        let slot = sql.slot();
        let mut kept = self.inner.kept.borrow_mut();
        match kept.get(slot) {
            Some(Some(kept)) if !kept.statement.running() => return Ok(Rc::clone(&kept.statement)),
            Some(Some(_)) => return Ok(Rc::new(self.prepare_one(sql.text(), false)?)),
            Some(None) => {}
            None => kept.resize_with(slot + 1, || None),
        }
        let statement = Rc::new(self.prepare_one(sql.text(), true)?);
        kept[slot] = Some(Kept { sql, statement: Rc::clone(&statement) });
        Ok(statement)
    }

    /// Runs one statement.
    pub(super) fn run<E: From<Error>>(
        &self,
        sql: SqlText<'_>,
        params: &impl Params,
        may_write: bool,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        match sql {
            SqlText::Kept(sql) => {
                let statement = self.kept(sql)?;
                self.run_statement(&statement, sql.text(), params, may_write, row)
            }
            SqlText::Once(text) => {
                let statement = self.prepare_one(text, false)?;
                self.run_statement(&statement, text, params, may_write, row)
            }
        }
    }

    fn run_statement<E: From<Error>>(
        &self,
        statement: &Statement,
        sql: &str,
        params: &impl Params,
        may_write: bool,
        mut row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        if !may_write && !statement.read_only() {
            return Err(Error::NotReadOnly { sql: sql.to_owned() }.into());
        }
        if params.count() != statement.parameters() {
            return Err(Error::Parameters { expected: statement.parameters(), given: params.count() }.into());
        }
        statement.bind(params, || self.steps(statement, &mut row)).map_err(|error| self.explain(error))?
    }

    fn steps<E: From<Error>>(
        &self,
        statement: &Statement,
        row: &mut impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        loop {
            match statement.step() {
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

    pub(super) fn run_batch(&self, sql: &str) -> Result<(), Error> {
        let mut rest = sql;
        while !is_blank(rest) {
            let start = sql.len() - rest.len();
            let shifted = |mut error: SqliteError| {
                error.offset = error.offset.map(|offset| offset.saturating_add(start as u32));
                self.explain(error)
            };
            let prepared = self.inner.connection.prepare(rest, false).map_err(shifted)?;
            rest = rest.get(prepared.consumed..).unwrap_or("");
            if let Some(statement) = prepared.statement {
                if statement.parameters() > 0 {
                    return Err(Error::Parameters { expected: statement.parameters(), given: 0 });
                }
                let steps = || self.steps(&statement, &mut |_| Ok::<_, Error>(ControlFlow::Continue(())));
                statement.bind(&(), steps).map_err(|error| self.explain(error))??;
            }
        }
        Ok(())
    }

    pub(super) fn changes(&self) -> u64 {
        self.inner.connection.changes()
    }

    pub(super) fn last_insert_rowid(&self) -> i64 {
        self.inner.connection.last_insert_rowid()
    }

    pub(super) fn limit_instructions(&self, instructions: u64) {
        self.inner.instructions.set(instructions);
        let deadline = self.inner.env.instructions().saturating_add(instructions);
        self.inner.connection.set_deadline(Some(deadline));
    }

    fn lift_limit(&self) {
        if self.inner.instructions.replace(0) > 0 {
            self.inner.connection.set_deadline(None);
        }
    }

    /// What SQLite's error means, with what the file and the budget know of it.
    fn explain(&self, sqlite: SqliteError) -> Error {
        if sqlite.primary() == sys::SQLITE_INTERRUPT && self.inner.connection.exhausted() {
            return Error::Budget { instructions: self.inner.instructions.get() };
        }
        match self.inner.file.borrow_mut().take_cause() {
            Some(cause) => Error::Storage { cause, sqlite },
            None => Error::Sqlite(sqlite),
        }
    }

    /// Whether a commit, or another call of SQLite, was cut off by a simulated trap.
    fn is_cut_off(&self) -> bool {
        self.inner.file.try_borrow().map_or(true, |file| file.is_cut_off())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // After a simulated trap in the middle of a commit SQLite's state is not to be used any more, not even to be
        // closed: closing would roll back, and so write. It is leaked.
        if self.is_cut_off() {
            core::mem::forget(Rc::clone(&self.inner));
        }
    }
}
