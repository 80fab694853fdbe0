//! One database: one connection for everything, opened once and never closed by a commit.
use super::budget::{Budget, Metrics};
use super::error::Error;
use super::meter::{Meter, Outer, Watcher};
use super::migrate::{self, Migration};
use super::sql::{Sql, SqlText};
use super::statements::Statements;
use super::transaction::{Reader, Writer};
use crate::env::{Env, default_env};
use crate::limits;
use crate::sqlite::{self, Authority, Connection, Params, SqliteError, Statement, lock, sys};
use crate::stable::Memory;
use crate::stable::page_hashes::PageHashes;
use crate::stable::superblock::Superblock;
use crate::stable::verify::Progress;
use crate::vfs::{DatabaseFile, Operations, Registration};
use core::cell::{Cell, OnceCell, RefCell};
use core::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

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
    pub(super) inner: Rc<Inner>,
}

/// Fields are dropped in order: statements, the connection, its VFS.
pub(super) struct Inner {
    pub(super) statements: Statements,
    begin: Statement,
    commit: Statement,
    /// SAVEPOINT, RELEASE and ROLLBACK TO, in this order, once they were needed.
    pub(super) savepoint: OnceCell<[Statement; 3]>,
    pub(super) connection: Connection,
    _registration: Registration,
    pub(super) file: Rc<RefCell<DatabaseFile>>,
    pub(super) meter: Rc<Meter>,
    cache_pages: u32,
    /// What the schema was when the kept statements were prepared.
    schema_cookie: Cell<u32>,
    /// Tells databases apart.
    pub(super) id: u64,
    /// A buffer for a row of a keyed table.
    pub(super) record: Cell<Vec<u8>>,
    /// Whether a transaction was begun and is neither committed nor undone by us.
    pub(super) in_transaction: Cell<bool>,
}

/// An open transaction: undone unless it was committed.
struct Open<'d> {
    database: &'d Database,
    committed: bool,
}

impl<'d> Open<'d> {
    fn new(database: &'d Database) -> Self {
        database.inner.in_transaction.set(true);
        Self { database, committed: false }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.database.inner.in_transaction.set(false);
        // A trap in the middle of a commit is the platform's to undo.
        if !self.committed && !self.database.is_cut_off() {
            self.database.roll_back();
        }
    }
}

/// A call with a budget. It ends however the call ends.
pub(super) struct Metered<'d> {
    database: &'d Database,
    outer: Option<Outer>,
}

impl Metered<'_> {
    pub(super) fn end(&mut self, committed: bool) -> Metrics {
        let Some(outer) = self.outer.take() else { return Metrics::default() };
        let Inner { meter, connection, .. } = &*self.database.inner;
        let metrics = meter.end(outer, self.database.operations(), committed);
        connection.watch(meter.is_on());
        metrics
    }
}

impl Drop for Metered<'_> {
    fn drop(&mut self) {
        self.end(false);
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
        let meter = Rc::new(Meter::new(env, page_bytes));
        let watcher = Box::new(Watcher { meter: Rc::clone(&meter), file: Rc::clone(&file) });
        let connection = Connection::open(registration.name(), page_bytes, cache_pages, watcher)?;
        let control = |sql| control(&connection, sql);
        let (begin, commit) = (control("BEGIN IMMEDIATE")?, control("COMMIT")?);
        let database = Self {
            inner: Rc::new(Inner {
                statements: Statements::default(),
                begin,
                commit,
                savepoint: OnceCell::new(),
                connection,
                _registration: registration,
                file,
                meter,
                cache_pages,
                schema_cookie: Cell::new(0),
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                record: Cell::default(),
                in_transaction: Cell::new(false),
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
        body(&Reader::new(self))
    }

    /// As [`Database::read`], within a budget, and says what was used. Counting costs about 2,000 instructions for each
    /// statement and 100 for each row.
    pub fn read_within<T, E: From<Error>>(
        &self,
        budget: &Budget,
        body: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> (Result<T, E>, Metrics) {
        let _entered = lock::enter();
        let mut metered = self.metered(budget);
        let outcome = body(&Reader::new(self));
        (outcome, metered.end(false))
    }

    /// Runs `body` in a transaction, which is committed if it answers `Ok` and undone if it answers `Err` or panics.
    ///
    /// # Errors
    /// What `body` answers, or why the transaction could not be committed. Nothing has changed then, and the next
    /// call works.
    pub fn write<T, E: From<Error>>(&mut self, body: impl FnOnce(&Writer<'_>) -> Result<T, E>) -> Result<T, E> {
        let _entered = lock::enter();
        self.transaction(body)
    }

    /// As [`Database::write`], within a budget, and says what was used. A transaction that met a limit is undone, even if
    /// `body` answers `Ok`. The last look at the budget is before COMMIT writes anything, so a transaction that was
    /// committed is never reported as failed: [`Metrics::over_budget`] says if it took more than it should.
    pub fn write_within<T, E: From<Error>>(
        &mut self,
        budget: &Budget,
        body: impl FnOnce(&Writer<'_>) -> Result<T, E>,
    ) -> (Result<T, E>, Metrics) {
        let _entered = lock::enter();
        let mut metered = self.metered(budget);
        let outcome = self.transaction(body);
        let committed = outcome.is_ok();
        (outcome, metered.end(committed))
    }

    pub(super) fn metered(&self, budget: &Budget) -> Metered<'_> {
        let outer = self.inner.meter.begin(budget, self.operations());
        self.inner.connection.watch(true);
        Metered { database: self, outer: Some(outer) }
    }

    pub(super) fn operations(&self) -> Operations {
        // It is borrowed only if a simulated trap unwound through it.
        self.inner.file.try_borrow().map_or_else(|_| Operations::default(), |file| file.operations())
    }

    pub(super) fn transaction<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Inner { connection, meter, .. } = &*self.inner;
        connection.set_journal(true);
        self.unwatched(&self.inner.begin)?;
        let mut open = Open::new(self);
        let value = body(&Writer::new(self))?;
        if let Some(exceeded) = meter.exceeded() {
            return Err(Error::Budget(exceeded).into());
        }
        if connection.autocommit() {
            return Err(Error::TransactionUndone.into());
        }
        self.commit()?;
        open.committed = true;
        drop(open);
        self.settle();
        Ok(value)
    }

    fn commit(&self) -> Result<(), Error> {
        let meter = &self.inner.meter;
        if !meter.is_on() {
            return self.control(&self.inner.commit);
        }
        let begun = meter.now();
        let outcome = self.unwatched(&self.inner.commit);
        meter.committed(meter.now().saturating_sub(begun));
        outcome
    }

    /// Runs BEGIN or COMMIT. SQLite looks at the progress handler once more when the statement has ended. By then the
    /// transaction is open or everything is written, and it must not be told to stop.
    fn unwatched(&self, statement: &Statement) -> Result<(), Error> {
        let Inner { connection, meter, .. } = &*self.inner;
        if !meter.is_on() {
            return self.control(statement);
        }
        connection.watch(false);
        let outcome = self.control(statement);
        connection.watch(true);
        outcome
    }

    /// Runs one statement as a transaction of its own and answers how many rows it changed. It is the cheapest way to
    /// write: SQLite keeps no rollback journal, which saves 8,000 to 16,000 instructions. If the statement fails after
    /// its first change, everything is undone as always, but the page cache is lost and read again before this
    /// returns.
    ///
    /// # Errors
    /// SQLite's. Nothing has changed then. (What a statement with `OR FAIL` did before it failed would stay; such a
    /// statement is run in a transaction of [`Database::write`], which is undone.)
    pub fn execute<'s>(&mut self, sql: impl Into<SqlText<'s>>, params: impl Params) -> Result<u64, Error> {
        let _entered = lock::enter();
        let sql = sql.into();
        let statement = self.statement(Authority::Caller, sql)?;
        if statement.can_fail_partly() {
            drop(statement);
            return self.transaction(|writer| writer.execute(sql, params));
        }
        let before = self.inner.connection.cached_pages();
        self.inner.connection.set_journal(false);
        let ignore = |_: &super::row::Row<'_>| Ok::<_, Error>(ControlFlow::Continue(()));
        match self.run_prepared(Authority::Caller, &statement, sql, &params, true, ignore) {
            Ok(()) => {
                let changes = self.inner.connection.changes();
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
            self.statement(Authority::Caller, SqlText::Kept(sql))?;
        }
        Ok(())
    }

    /// Rebuilds the image without free pages and with each table's pages in a row. It takes heap for two images and
    /// about 25,000 instructions a page.
    ///
    /// # Errors
    /// [`Error::VacuumTooLarge`] beyond [`VACUUM_IMAGE_BYTES_MAX`](limits::VACUUM_IMAGE_BYTES_MAX); SQLite's. Nothing has
    /// changed then.
    pub fn vacuum(&mut self) -> Result<(), Error> {
        let _entered = lock::enter();
        let Meta { image_bytes, image_pages, .. } = self.meta();
        let limit = limits::VACUUM_IMAGE_BYTES_MAX;
        if image_bytes > limit {
            return Err(Error::VacuumTooLarge { image_bytes, limit });
        }
        let before = self.inner.connection.cached_pages();
        self.inner.connection.set_journal(false);
        // The commit hook is not asked, and the image may grow by the pages that fill up less.
        let reserved = self.inner.file.borrow_mut().reserve(image_pages, image_pages);
        let full = || SqliteError { code: sys::SQLITE_FULL, message: "no room to vacuum".into(), offset: None };
        let outcome = if reserved { self.inner.connection.run("VACUUM main") } else { Err(full()) };
        if let Err(error) = outcome {
            let error = self.explain(error);
            self.recover(before)?;
            return Err(error);
        }
        self.warm()?;
        self.prepare_again();
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

    /// Takes over a schema that was made without these migrations: notes those up to version `through` as applied, without
    /// running them. A database that has a history of ours is left as it is. Where ic-sqlite-vfs has kept a history, it
    /// must have applied exactly these, with the same texts as far as it noted their hashes. Answers how many were noted;
    /// [`Database::migrate`] goes on from there.
    ///
    /// # Errors
    /// [`Error::Migration`].
    pub fn adopt_migrations(&mut self, migrations: &[Migration], through: u32) -> Result<usize, Error> {
        migrate::adopt(self, migrations, through)
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

    /// Runs a statement of the engine's own.
    pub(super) fn control(&self, statement: &Statement) -> Result<(), Error> {
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
        self.inner.connection.roll_back();
        // What this could fail with, the next statement will meet again and say.
        let _ = self.recover(before);
    }

    /// After a transaction that was undone: reads the cache and prepares the kept statements again if they were lost
    /// with it. A schema that was rolled back has the cookie of before, and yet made the statements stale.
    pub(super) fn recover(&self, cached_before: u32) -> Result<(), Error> {
        self.inner.file.borrow_mut().rolled_back();
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

    pub(super) fn prepare_again(&self) {
        self.inner.schema_cookie.set(self.inner.connection.schema_cookie());
        self.inner.statements.prepare_again(|text, kept| self.prepare_one(text, kept));
    }

    /// Whether a commit, or another call of SQLite, was cut off by a simulated trap.
    pub(super) fn is_cut_off(&self) -> bool {
        self.inner.file.try_borrow().map_or(true, |file| file.is_cut_off())
    }
}

/// Prepares a statement of the engine's own.
pub(super) fn control(connection: &Connection, sql: &str) -> Result<Statement, Error> {
    let prepared = connection.as_engine(|| connection.prepare(sql, true));
    prepared?.statement.ok_or(Error::NotOneStatement { offset: 0 })
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
