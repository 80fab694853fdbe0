//! A table that is read and written by its key on its b-tree: what `libc/icsql_keyed.c` does for `db::keyed`.
#![allow(unsafe_code)]

use super::connection::Connection;
use super::error::SqliteError;
use super::value::ValueRef;
use super::{pcache, sys};
use crate::limits::KEYED_COLUMNS_MAX;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::marker::PhantomData;

unsafe extern "C-unwind" {
    fn icsql_schema_state(db: *mut sys::sqlite3) -> u64;
    fn icsql_keyed_open(
        db: *mut sys::sqlite3,
        table: *const c_char,
        root: *mut c_uint,
        types: *mut u8,
        types_max: c_int,
        columns: *mut c_int,
    ) -> c_int;
    fn icsql_clean_pcache(db: *mut sys::sqlite3) -> *mut sys::sqlite3_pcache;
    fn icsql_keyed_read(
        db: *mut sys::sqlite3,
        root: c_uint,
        key: *const u8,
        key_bytes: c_int,
        which: c_int,
        buffer: *mut c_void,
        buffer_bytes: c_int,
        record_bytes: *mut i64,
    ) -> c_int;
    fn icsql_keyed_begin(db: *mut sys::sqlite3) -> c_int;
    fn icsql_keyed_put(
        db: *mut sys::sqlite3,
        root: c_uint,
        path: *const u16,
        path_steps: c_int,
        page: c_uint,
        order: c_int,
        key: *const u8,
        key_bytes: c_int,
        record: *const u8,
        record_bytes: c_int,
        change: *mut Change,
    ) -> c_int;
    fn icsql_keyed_remove(
        db: *mut sys::sqlite3,
        root: c_uint,
        path: *const u16,
        path_steps: c_int,
        key: *const u8,
        key_bytes: c_int,
        removed: *mut c_int,
    ) -> c_int;
    fn icsql_keyed_commit(db: *mut sys::sqlite3) -> c_int;
}

/// What a column takes: a type as `icsql_keyed_open` writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnType(u8);

const ANY: u8 = 0;
const BLOB: u8 = 1;
const INTEGER: u8 = 2;
const TEXT: u8 = 3;
const NOT_NULL: u8 = 0x80;

impl ColumnType {
    /// Whether the column takes this value.
    #[inline]
    pub(crate) fn takes(self, value: &ValueRef<'_>) -> bool {
        let kind = match value {
            ValueRef::Null => return self.0 & NOT_NULL == 0,
            // It is stored as NULL.
            ValueRef::Real(real) if real.is_nan() => return self.0 & NOT_NULL == 0,
            ValueRef::Real(_) => return self.0 & !NOT_NULL == ANY,
            ValueRef::Blob(_) => BLOB,
            ValueRef::Integer(_) => INTEGER,
            ValueRef::Text(_) => TEXT,
        };
        let wanted = self.0 & !NOT_NULL;
        wanted == kind || wanted == ANY
    }

    /// What to say of a value that it does not take.
    pub(crate) fn wanted(self) -> &'static str {
        match self.0 & !NOT_NULL {
            BLOB => "blob",
            INTEGER => "integer",
            TEXT => "text",
            _ => "a value other than NULL",
        }
    }
}

/// What a writing has changed: `ranges` ranges of one page, from each first number up to the second; if the page is 0,
/// anything.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    pub(crate) page: u32,
    ranges: u32,
    bounds: [[u32; 2]; 2],
}

impl Change {
    /// The ranges, in bytes of the page.
    pub(crate) fn ranges(&self) -> &[[u32; 2]] {
        self.bounds.get(..self.ranges as usize).unwrap_or(&[])
    }
}

/// A table that can be used by its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed {
    pub(crate) root: u32,
    pub(crate) columns: usize,
    pub(crate) types: [ColumnType; KEYED_COLUMNS_MAX],
}

/// Which record is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'k> {
    /// That with this key.
    Exactly(&'k [u8]),
    /// The first whose key is not below this.
    From(&'k [u8]),
    /// The first whose key is above this.
    Above(&'k [u8]),
    /// The last whose key is below this.
    Below(&'k [u8]),
    /// The last of all.
    Last,
}

/// The pages that are in the page cache, until SQLite is called again.
pub(crate) struct CachedPages<'c> {
    cache: *mut sys::sqlite3_pcache,
    _connection: PhantomData<&'c Connection>,
}

impl<'c> CachedPages<'c> {
    /// The bytes of a page, if it is there.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> Option<&'c [u8]> {
        // SAFETY: the cache is live, and whoever holds this does not call SQLite, which alone changes pages.
        unsafe { pcache::peek(self.cache, number) }
    }
}

impl Connection {
    /// A number that no two states of the schema share; 0: it is not in heap.
    #[inline]
    pub(crate) fn schema_state(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { icsql_schema_state(self.handle()) }
    }

    /// Looks at a table. The schema must be in heap.
    ///
    /// # Errors
    /// What keeps it from being used by its key.
    pub(crate) fn keyed(&self, table: &CStr) -> Result<Keyed, &'static str> {
        let (mut root, mut columns, mut types) = (0, 0, [0; KEYED_COLUMNS_MAX]);
        // SAFETY: the connection is open; the name ends in NUL; the places for the answers outlive the call, and the
        // array is as long as is said.
        let outcome = unsafe {
            icsql_keyed_open(
                self.handle(),
                table.as_ptr(),
                &mut root,
                types.as_mut_ptr(),
                KEYED_COLUMNS_MAX as c_int,
                &mut columns,
            )
        };
        match outcome {
            0 => Ok(Keyed { root, columns: usize::try_from(columns).unwrap_or(0), types: types.map(ColumnType) }),
            1 => Err("there is no ordinary table of that name"),
            2 => Err("it is not STRICT, WITHOUT ROWID, with its first column, a TEXT, alone as PRIMARY KEY"),
            3 => Err("it has an index, trigger, foreign key, CHECK or default, or a generated or REAL column"),
            4 => Err("it has more than 16 columns"),
            _ => Err("bytes at the end of each page of the image are reserved"),
        }
    }

    /// The pages in the page cache, if they are those of the image. What is borrowed from them is void once SQLite is
    /// called again, which the caller must not do before.
    #[inline]
    pub(crate) fn cached(&self) -> Option<CachedPages<'_>> {
        // SAFETY: the connection is open.
        let cache = unsafe { icsql_clean_pcache(self.handle()) };
        (!cache.is_null()).then_some(CachedPages { cache, _connection: PhantomData })
    }

    /// Copies the start of a record to `target`, as much as it holds, and answers the record's bytes; `None` if there is
    /// none.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn keyed_read(
        &self,
        root: u32,
        which: Which<'_>,
        target: &mut [u8],
    ) -> Result<Option<usize>, SqliteError> {
        let (key, which): (&[u8], c_int) = match which {
            Which::Exactly(key) => (key, 0),
            Which::From(key) => (key, 1),
            Which::Above(key) => (key, 2),
            Which::Below(key) => (key, 3),
            Which::Last => (&[], 4),
        };
        let mut bytes = -1;
        // SAFETY: the connection is open; the slices are as long as is said, and SQLite keeps neither.
        let code = unsafe {
            icsql_keyed_read(
                self.handle(),
                root,
                key.as_ptr(),
                length(key),
                which,
                target.as_mut_ptr().cast(),
                length(target),
                &mut bytes,
            )
        };
        self.checked(code)?;
        Ok(usize::try_from(bytes).ok())
    }

    /// Begins a transaction of its own for one write, or goes on in the one that is open.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn keyed_begin(&self) -> Result<(), SqliteError> {
        // SAFETY: the connection is open.
        let code = unsafe { icsql_keyed_begin(self.handle()) };
        self.checked(code)
    }

    /// Writes a record. `path` leads to its key (`order` is 0) or to a neighbour that comes before (below 0) or after, and
    /// ends in `page`; if it is empty SQLite looks for it. After a failure the transaction must be undone. Answers what has changed.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn keyed_put(
        &self,
        root: u32,
        path: &[u16],
        page: u32,
        order: i32,
        key: &[u8],
        record: &[u8],
    ) -> Result<Change, SqliteError> {
        let mut change = Change::default();
        // SAFETY: the connection is open and a transaction that writes is begun; the slices are as long as is said, and
        // SQLite keeps none of them.
        let code = unsafe {
            icsql_keyed_put(
                self.handle(),
                root,
                path.as_ptr(),
                path.len() as c_int,
                page,
                order,
                key.as_ptr(),
                length(key),
                record.as_ptr(),
                length(record),
                &mut change,
            )
        };
        self.checked(code)?;
        Ok(change)
    }

    /// Removes a record; see [`Connection::keyed_put`]. Whether there was one.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn keyed_remove(&self, root: u32, path: &[u16], key: &[u8]) -> Result<bool, SqliteError> {
        let mut removed = 0;
        // SAFETY: as for `keyed_put`.
        let code = unsafe {
            icsql_keyed_remove(
                self.handle(),
                root,
                path.as_ptr(),
                path.len() as c_int,
                key.as_ptr(),
                length(key),
                &mut removed,
            )
        };
        self.checked(code)?;
        Ok(removed != 0)
    }

    /// Commits what [`Connection::keyed_begin`] began as a transaction of its own.
    ///
    /// # Errors
    /// SQLite's. The transaction must be undone then.
    pub(crate) fn keyed_commit(&self) -> Result<(), SqliteError> {
        // SAFETY: the connection is open and no statement is running.
        let code = unsafe { icsql_keyed_commit(self.handle()) };
        self.checked(code)
    }

    #[inline]
    fn checked(&self, code: c_int) -> Result<(), SqliteError> {
        if code == sys::SQLITE_OK { Ok(()) } else { Err(failed(code)) }
    }
}

/// The b-tree's functions leave no message with the connection.
#[cold]
fn failed(code: c_int) -> SqliteError {
    // SAFETY: SQLite answers a text that lives as long as the program for every code.
    let message = unsafe { CStr::from_ptr(sys::sqlite3_errstr(code)) };
    SqliteError { code, message: message.to_string_lossy().into_owned(), offset: None }
}

/// Keys and records are checked against limits far below 2^31.
#[inline]
fn length(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).unwrap_or(c_int::MAX)
}
