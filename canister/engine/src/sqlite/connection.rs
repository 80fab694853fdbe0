//! A connection: opened once, configured once, and never closed by a commit.
#![allow(unsafe_code)]

use super::authorizer::{self, Authority};
use super::error::SqliteError;
use super::statement::{Statement, last_error};
use super::{alloc, pcache, sys};
use crate::limits;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Name of the one file of a connection.
const FILE_NAME: &CStr = c"/main.db";

// The inside of SQLite; see `c/icsql_sqlite.c`.
unsafe extern "C-unwind" {
    fn icsql_journal_in_memory(db: *mut sys::sqlite3, memory: c_int) -> c_int;
    fn icsql_rollback(db: *mut sys::sqlite3);
    fn icsql_alone(db: *mut sys::sqlite3);
    fn icsql_dirty_pages(db: *mut sys::sqlite3) -> c_uint;
    fn icsql_pcache(db: *mut sys::sqlite3) -> *mut sys::sqlite3_pcache;
    fn icsql_page_count(db: *mut sys::sqlite3) -> c_uint;
    fn icsql_cached_pages(db: *mut sys::sqlite3) -> c_uint;
    fn icsql_schema_cookie(db: *mut sys::sqlite3) -> c_uint;
    fn icsql_schema_loaded(db: *mut sys::sqlite3) -> c_int;
    fn icsql_warm(db: *mut sys::sqlite3, pages_max: c_uint, loaded: *mut c_uint) -> c_int;
}

/// What whoever opened a connection wants to be asked.
pub(crate) trait Watch {
    /// Between two steps of a statement, while the connection is watched: whether to stop it. `steps` have passed since
    /// the last time; `holds_more_than` says whether the transaction holds more changed pages than so many.
    fn stop(&self, steps: u64, holds_more_than: &dyn Fn(u64) -> bool) -> bool;

    /// Before a commit writes anything: whether it may write `dirty_pages` pages, to an image that has `image_pages`
    /// afterwards. VACUUM does not ask.
    fn may_commit(&self, image_pages: u32, dirty_pages: u32) -> bool;
}

/// What SQLite's callbacks consult. It lives in a box that the connection owns, at an address that does not move.
struct Hooks {
    /// Whose statements are being prepared.
    authority: Cell<Authority>,
    /// What the authorizer refused last.
    refused: RefCell<Option<String>>,
    watch: Box<dyn Watch>,
    db: NonNull<sys::sqlite3>,
}

/// An open connection. Fields are dropped in order: nobody may hold a statement of it then.
pub(crate) struct Connection {
    db: NonNull<sys::sqlite3>,
    hooks: Box<Hooks>,
    /// The mode that the rollback journal is in; true: memory.
    journal: Cell<bool>,
}

/// Configures the library, once per process.
///
/// # Errors
/// SQLite's code, if it refuses: it was then started before with settings that are not ours.
pub(crate) fn initialize() -> Result<(), SqliteError> {
    static OUTCOME: OnceLock<c_int> = OnceLock::new();
    let code = *OUTCOME.get_or_init(|| {
        // SAFETY: called once, before anything else in the library; the methods live as long as the program.
        unsafe {
            let mut code = sys::sqlite3_config(sys::SQLITE_CONFIG_MALLOC, ptr::from_ref(&alloc::METHODS));
            if code == sys::SQLITE_OK {
                code = sys::sqlite3_config(sys::SQLITE_CONFIG_PCACHE2, ptr::from_ref(&pcache::METHODS));
            }
            if code == sys::SQLITE_OK {
                code = sys::sqlite3_initialize();
            }
            code
        }
    });
    if code == sys::SQLITE_OK {
        return Ok(());
    }
    Err(SqliteError { code, message: "SQLite could not be started with the engine's settings".into(), offset: None })
}

impl Connection {
    /// Opens `/main.db` of the VFS named `vfs`.
    ///
    /// # Errors
    /// SQLite's, for example `SQLITE_NOTADB`.
    pub(crate) fn open(
        vfs: &CStr,
        page_bytes: u32,
        cache_pages: u32,
        watch: Box<dyn Watch>,
    ) -> Result<Self, SqliteError> {
        let flags = sys::SQLITE_OPEN_READWRITE | sys::SQLITE_OPEN_CREATE | sys::SQLITE_OPEN_PRIVATECACHE;
        let mut db = ptr::null_mut();
        // SAFETY: the names end in NUL; a handle is returned even on failure and then closed.
        let db = unsafe {
            let code = sys::sqlite3_open_v2(FILE_NAME.as_ptr(), &mut db, flags, vfs.as_ptr());
            let Some(handle) = NonNull::new(db) else {
                let message = "no memory for a connection".into();
                return Err(SqliteError { code: sys::SQLITE_NOMEM, message, offset: None });
            };
            if code != sys::SQLITE_OK {
                let error = last_error(db, code);
                sys::sqlite3_close_v2(db);
                return Err(error);
            }
            handle
        };
        let hooks = Box::new(Hooks { authority: Cell::new(Authority::Engine), refused: RefCell::new(None), watch, db });
        let connection = Self { db, hooks, journal: Cell::new(true) };
        connection.configure(page_bytes, cache_pages)?;
        connection.hooks.authority.set(Authority::Caller);
        Ok(connection)
    }

    fn configure(&self, page_bytes: u32, cache_pages: u32) -> Result<(), SqliteError> {
        let db = self.db.as_ptr();
        let context = ptr::from_ref::<Hooks>(&self.hooks).cast_mut().cast::<c_void>();
        let settings = [
            (sys::SQLITE_LIMIT_LENGTH, limits::VALUE_BYTES_MAX),
            (sys::SQLITE_LIMIT_SQL_LENGTH, limits::SQL_BYTES_MAX),
            (sys::SQLITE_LIMIT_COLUMN, limits::COLUMNS_MAX),
            (sys::SQLITE_LIMIT_EXPR_DEPTH, limits::EXPRESSION_DEPTH_MAX),
            (sys::SQLITE_LIMIT_COMPOUND_SELECT, limits::COMPOUND_TERMS_MAX),
            (sys::SQLITE_LIMIT_VDBE_OP, limits::VDBE_OPS_MAX),
            (sys::SQLITE_LIMIT_FUNCTION_ARG, limits::FUNCTION_ARGUMENTS_MAX),
            (sys::SQLITE_LIMIT_ATTACHED, limits::ATTACHED_MAX),
            (sys::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits::LIKE_PATTERN_BYTES_MAX),
            (sys::SQLITE_LIMIT_VARIABLE_NUMBER, limits::PARAMETERS_MAX),
            (sys::SQLITE_LIMIT_TRIGGER_DEPTH, limits::TRIGGER_DEPTH_MAX),
            (sys::SQLITE_LIMIT_WORKER_THREADS, limits::WORKER_THREADS_MAX),
        ];
        // SAFETY: the connection is open; `context` points into a box that lives as long as the connection; the
        // options take an int and a pointer to an int, or null.
        unsafe {
            sys::sqlite3_extended_result_codes(db, 1);
            for (id, value) in settings {
                sys::sqlite3_limit(db, id, value);
            }
            for (option, on) in [
                (sys::SQLITE_DBCONFIG_DEFENSIVE, 1),
                (sys::SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
                (sys::SQLITE_DBCONFIG_DQS_DDL, 0),
                (sys::SQLITE_DBCONFIG_DQS_DML, 0),
                (sys::SQLITE_DBCONFIG_ENABLE_FKEY, 1),
            ] {
                sys::sqlite3_db_config(db, option, on as c_int, ptr::null_mut::<c_int>());
            }
            sys::sqlite3_set_authorizer(db, Some(on_authorize), context);
            sys::sqlite3_commit_hook(db, Some(on_commit), context);
        }
        // A page size is a wish for a database that is still empty. Exclusive locking keeps the cache from being
        // checked against the file and page 1 from being rewritten at each commit. Nothing spills: until COMMIT dirty
        // pages live in the cache alone.
        for setting in [
            &format!("PRAGMA main.page_size={page_bytes}"),
            "PRAGMA main.auto_vacuum=NONE",
            "PRAGMA main.locking_mode=EXCLUSIVE",
            "PRAGMA main.journal_mode=MEMORY",
            "PRAGMA main.synchronous=OFF",
            "PRAGMA cache_spill=OFF",
            "PRAGMA temp_store=MEMORY",
            &format!("PRAGMA main.cache_size={cache_pages}"),
        ] {
            self.run(setting)?;
        }
        Ok(())
    }

    /// The handle, for the module that works on its b-trees.
    #[inline]
    pub(super) fn handle(&self) -> *mut sys::sqlite3 {
        self.db.as_ptr()
    }

    /// Runs a statement of the engine's own to its end.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn run(&self, sql: &str) -> Result<(), SqliteError> {
        self.as_engine(|| {
            if let Some(statement) = self.prepare(sql, false)?.statement {
                while statement.step()? == super::Step::Row {}
            }
            Ok(())
        })
    }

    /// Prepares the first statement of `sql`; see [`Statement::prepare`].
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn prepare(&self, sql: &str, kept: bool) -> Result<super::statement::Prepared, SqliteError> {
        // SAFETY: the connection is open; `Database` drops every statement before it.
        unsafe { Statement::prepare(self.db.as_ptr(), sql, kept) }
    }

    /// Runs `body` with the authorizer letting everything pass.
    pub(crate) fn as_engine<T>(&self, body: impl FnOnce() -> T) -> T {
        self.with_authority(Authority::Engine, body)
    }

    /// Runs `body` with the authorizer asking this authority.
    pub(crate) fn with_authority<T>(&self, authority: Authority, body: impl FnOnce() -> T) -> T {
        let before = self.hooks.authority.replace(authority);
        let outcome = body();
        self.hooks.authority.set(before);
        outcome
    }

    /// Switches the enforcing of foreign keys, which makes all prepared statements stale.
    pub(crate) fn set_foreign_keys(&self, on: bool) {
        // SAFETY: the connection is open; the option takes an int and a pointer to an int, or null.
        unsafe {
            sys::sqlite3_db_config(
                self.db.as_ptr(),
                sys::SQLITE_DBCONFIG_ENABLE_FKEY,
                c_int::from(on),
                ptr::null_mut::<c_int>(),
            )
        };
    }

    /// Whether no transaction is open.
    pub(crate) fn autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { sys::sqlite3_get_autocommit(self.db.as_ptr()) != 0 }
    }

    /// Undoes the transaction that is open. Cannot fail.
    pub(crate) fn roll_back(&self) {
        if !self.autocommit() {
            self.roll_back_any();
        }
    }

    /// The same also for one that was begun without BEGIN.
    pub(crate) fn roll_back_any(&self) {
        // SAFETY: the connection is open.
        unsafe { icsql_rollback(self.db.as_ptr()) };
    }

    /// Rows that the last statement changed.
    pub(crate) fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        u64::try_from(unsafe { sys::sqlite3_changes64(self.db.as_ptr()) }).unwrap_or(0)
    }

    /// Rows that statements have changed since the connection was opened.
    pub(crate) fn total_changes(&self) -> u64 {
        // SAFETY: the connection is open.
        u64::try_from(unsafe { sys::sqlite3_total_changes64(self.db.as_ptr()) }).unwrap_or(0)
    }

    /// Rowid of the last row that was inserted.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        // SAFETY: the connection is open.
        unsafe { sys::sqlite3_last_insert_rowid(self.db.as_ptr()) }
    }

    /// Keeps commits from counting up the change counter in page 1 just because the cache was read anew; it is for other
    /// connections, and there are none. Called whenever the cache was, which saves writing a page.
    fn alone(&self) {
        // SAFETY: the connection is open.
        unsafe { icsql_alone(self.db.as_ptr()) };
    }

    /// Turns the rollback journal on or off for the transactions to come. Without it a statement that fails after its
    /// first change costs the whole page cache; stable memory is safe either way, as nothing is written before COMMIT.
    pub(crate) fn set_journal(&self, on: bool) {
        if self.journal.get() != on {
            // SAFETY: the connection is open and no transaction is.
            unsafe { icsql_journal_in_memory(self.db.as_ptr(), c_int::from(on)) };
            self.journal.set(on);
        }
    }

    /// Pages in the page cache.
    pub(crate) fn cached_pages(&self) -> u32 {
        // SAFETY: the connection is open.
        unsafe { icsql_cached_pages(self.db.as_ptr()) }
    }

    /// A number that differs after each change of the schema.
    pub(crate) fn schema_cookie(&self) -> u32 {
        // SAFETY: the connection is open.
        unsafe { icsql_schema_cookie(self.db.as_ptr()) }
    }

    /// Whether the schema is parsed and in heap. A rollback can drop it.
    pub(crate) fn schema_loaded(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { icsql_schema_loaded(self.db.as_ptr()) != 0 }
    }

    /// Reads up to `pages_max` b-tree pages into the cache, interior ones first. Answers how many were read.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn warm(&self, pages_max: u32) -> Result<u32, SqliteError> {
        let mut loaded = 0;
        // SAFETY: the connection is open; `loaded` outlives the call.
        let outcome = unsafe {
            match icsql_warm(self.db.as_ptr(), pages_max, &mut loaded) {
                sys::SQLITE_OK => Ok(loaded),
                code => Err(last_error(self.db.as_ptr(), code)),
            }
        };
        self.alone();
        outcome
    }

    /// Whether [`Watch::stop`] is asked while statements run.
    pub(crate) fn watch(&self, on: bool) {
        let context = ptr::from_ref::<Hooks>(&self.hooks).cast_mut().cast::<c_void>();
        let (steps, callback): (_, Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>) =
            if on { (limits::BUDGET_STEPS_BETWEEN_CHECKS, Some(on_progress)) } else { (0, None) };
        // SAFETY: the connection is open; the context lives as long as it.
        unsafe { sys::sqlite3_progress_handler(self.db.as_ptr(), steps, callback, context) }
    }

    /// What the authorizer refused since this was asked last.
    pub(crate) fn take_refused(&self) -> Option<String> {
        self.hooks.refused.take()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _entered = super::lock::enter();
        // SAFETY: the connection is open and its statements are gone; it is not used again.
        unsafe { sys::sqlite3_close_v2(self.db.as_ptr()) };
    }
}

/// # Safety
/// `text` is null or a NUL-terminated string that outlives the result.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: as the caller promises.
    if text.is_null() { None } else { unsafe { CStr::from_ptr(text) }.to_str().ok() }
}

unsafe extern "C-unwind" fn on_authorize(
    context: *mut c_void,
    code: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    _trigger: *const c_char,
) -> c_int {
    // SAFETY: the context is the connection's `Hooks`; SQLite's strings live until the call returns.
    let (hooks, first, second, database) =
        unsafe { (&*context.cast::<Hooks>(), text(first), text(second), text(database)) };
    if authorizer::allows(hooks.authority.get(), code, first, second, database) {
        return sys::SQLITE_OK;
    }
    hooks.refused.replace(Some(authorizer::describe(code, first, second)));
    sys::SQLITE_DENY
}

unsafe extern "C-unwind" fn on_commit(context: *mut c_void) -> c_int {
    // SAFETY: the context is the connection's `Hooks`, and the connection is open.
    let (hooks, image, dirty) = unsafe {
        let hooks = &*context.cast::<Hooks>();
        (hooks, icsql_page_count(hooks.db.as_ptr()), icsql_dirty_pages(hooks.db.as_ptr()))
    };
    c_int::from(!hooks.watch.may_commit(image, dirty))
}

unsafe extern "C-unwind" fn on_progress(context: *mut c_void) -> c_int {
    // SAFETY: the context is the connection's `Hooks`.
    let hooks = unsafe { &*context.cast::<Hooks>() };
    let holds_more_than = |pages: u64| {
        // SAFETY: the connection is open and its cache is ours. Dirty pages are pinned, so counting those that are
        // pinned, which is cheap, mostly answers the question.
        unsafe {
            pcache::pinned(icsql_pcache(hooks.db.as_ptr())) as u64 > pages
                && u64::from(icsql_dirty_pages(hooks.db.as_ptr())) > pages
        }
    };
    c_int::from(hooks.watch.stop(limits::BUDGET_STEPS_BETWEEN_CHECKS as u64, &holds_more_than))
}
