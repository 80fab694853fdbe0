//! A prepared statement: released when dropped, its parameters bound without copying.
#![allow(unsafe_code)]

use super::error::SqliteError;
use super::sys;
use super::value::{Params, ValueRef};
use core::ffi::{c_int, c_uint};
use core::ptr::{self, NonNull};
use core::slice;

/// A statement of a [`Connection`](super::Connection), which must outlive it.
pub(crate) struct Statement {
    handle: NonNull<sys::sqlite3_stmt>,
    read_only: bool,
    parameters: c_int,
    columns: c_int,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is a row.
    Row,
    /// The statement has ended.
    Done,
}

/// The statement that was prepared, if the text had one, and the bytes of the text that it took.
pub(crate) struct Prepared {
    pub(crate) statement: Option<Statement>,
    pub(crate) consumed: usize,
}

impl Statement {
    /// Prepares the first statement of `sql`. `kept`: it will live long, so its memory should not come from the
    /// connection's small reserve (lookaside).
    ///
    /// # Errors
    /// SQLite's, with the offset of the error in the text.
    ///
    /// # Safety
    /// `db` is open and outlives the statement.
    pub(crate) unsafe fn prepare(db: *mut sys::sqlite3, sql: &str, kept: bool) -> Result<Prepared, SqliteError> {
        // SQLite's own limit, in the error that a longer text gets.
        let bytes = c_int::try_from(sql.len()).unwrap_or(c_int::MAX);
        let flags: c_uint = if kept { sys::SQLITE_PREPARE_PERSISTENT as c_uint } else { 0 };
        let mut handle = ptr::null_mut();
        let mut tail = ptr::null();
        // SAFETY: `db` is open; `sql` is valid for `bytes`; SQLite copies a text that does not end in a NUL.
        unsafe {
            let code = sys::sqlite3_prepare_v3(db, sql.as_ptr().cast(), bytes, flags, &mut handle, &mut tail);
            if code != sys::SQLITE_OK {
                return Err(last_error(db, code));
            }
            let consumed = if tail.is_null() { sql.len() } else { tail.addr() - sql.as_ptr().addr() };
            let statement = NonNull::new(handle).map(|handle| Statement {
                read_only: sys::sqlite3_stmt_readonly(handle.as_ptr()) != 0,
                parameters: sys::sqlite3_bind_parameter_count(handle.as_ptr()),
                columns: sys::sqlite3_column_count(handle.as_ptr()),
                handle,
            });
            Ok(Prepared { statement, consumed: consumed.min(sql.len()) })
        }
    }

    /// Whether it can change nothing in the database.
    pub(crate) fn read_only(&self) -> bool {
        self.read_only
    }

    /// Highest number of a parameter.
    pub(crate) fn parameters(&self) -> usize {
        usize::try_from(self.parameters).unwrap_or(0)
    }

    /// Columns of a row as of the preparation.
    pub(crate) fn columns(&self) -> usize {
        usize::try_from(self.columns).unwrap_or(0)
    }

    /// Name of a column, if there is such a column.
    pub(crate) fn column_name(&self, column: usize) -> Option<String> {
        let column = c_int::try_from(column).ok()?;
        // SAFETY: the statement is live; the name is a NUL-terminated string that lives until the next call.
        unsafe {
            let name = sys::sqlite3_column_name(self.handle.as_ptr(), column);
            (!name.is_null()).then(|| core::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// Binds `params` by reference, nothing being copied, and then runs `body`. The statement must have been reset.
    /// It is reset again before this returns, and never stepped after it before all parameters are bound anew.
    ///
    /// # Errors
    /// SQLite's, above all `SQLITE_TOOBIG`; `body` did not run then.
    pub(crate) fn bind<T>(&self, params: &impl Params, body: impl FnOnce() -> T) -> Result<T, SqliteError> {
        let handle = self.handle.as_ptr();
        params.each(|number, value| {
            // SAFETY: the statement is live and reset. What `params` borrows stays valid and unchanged until this
            // function returns, and the statement does not step after that: whoever steps it binds first, all its
            // parameters. An empty slice has a pointer that is not null, so it binds an empty value and not NULL.
            let code = unsafe {
                match value {
                    ValueRef::Null => sys::sqlite3_bind_null(handle, number),
                    ValueRef::Integer(integer) => sys::sqlite3_bind_int64(handle, number, integer),
                    ValueRef::Real(real) => sys::sqlite3_bind_double(handle, number, real),
                    ValueRef::Text(text) => sys::sqlite3_bind_text64(
                        handle,
                        number,
                        text.as_ptr().cast(),
                        text.len() as u64,
                        sys::SQLITE_STATIC(),
                        sys::SQLITE_UTF8 as u8,
                    ),
                    ValueRef::Blob(blob) => sys::sqlite3_bind_blob64(
                        handle,
                        number,
                        blob.as_ptr().cast(),
                        blob.len() as u64,
                        sys::SQLITE_STATIC(),
                    ),
                }
            };
            if code == sys::SQLITE_OK { Ok(()) } else { Err(self.error(code)) }
        })?;
        let value = body();
        self.reset();
        Ok(value)
    }

    /// Runs to the next row or to the end.
    ///
    /// # Errors
    /// SQLite's; the statement must then be reset.
    pub(crate) fn step(&self) -> Result<Step, SqliteError> {
        // SAFETY: the statement is live.
        match unsafe { sys::sqlite3_step(self.handle.as_ptr()) } {
            sys::SQLITE_ROW => Ok(Step::Row),
            sys::SQLITE_DONE => Ok(Step::Done),
            code => Err(self.error(code)),
        }
    }

    /// Ends the execution and makes it ready for the next. The error of a failed step was told by the step.
    pub(crate) fn reset(&self) {
        // SAFETY: the statement is live.
        unsafe { sys::sqlite3_reset(self.handle.as_ptr()) };
    }

    /// Value of a column of the row that the last step found. The borrow ends before the statement can step.
    ///
    /// # Errors
    /// `SQLITE_RANGE` if there is no such column, `SQLITE_NOMEM` if its bytes could not be had.
    pub(crate) fn column(&self, column: usize) -> Result<ValueRef<'_>, SqliteError> {
        if column >= self.columns() {
            let message = format!("there is no column {column} in a row of {}", self.columns());
            return Err(SqliteError { code: sys::SQLITE_RANGE, message, offset: None });
        }
        let number = column as c_int;
        let handle = self.handle.as_ptr();
        // SAFETY: the statement is on a row and the column exists (a statement that SQLite prepared again after a
        // change of the schema has as many columns, or `column_*` answers NULL). The bytes live until the statement
        // steps, is reset or the column is converted; nothing here converts, and `&self` outlives the reference.
        unsafe {
            Ok(match sys::sqlite3_column_type(handle, number) {
                sys::SQLITE_INTEGER => ValueRef::Integer(sys::sqlite3_column_int64(handle, number)),
                sys::SQLITE_FLOAT => ValueRef::Real(sys::sqlite3_column_double(handle, number)),
                sys::SQLITE_TEXT => ValueRef::Text(self.bytes(number)?),
                sys::SQLITE_BLOB => ValueRef::Blob(self.bytes(number)?),
                _ => ValueRef::Null,
            })
        }
    }

    /// The bytes of a text or blob. Text too is asked for as a blob: the database is UTF-8, so its bytes are the same,
    /// and SQLite need not copy them in order to end them with a NUL.
    ///
    /// # Safety
    /// The statement is on a row that has the column.
    unsafe fn bytes(&self, column: c_int) -> Result<&[u8], SqliteError> {
        // SAFETY: SQLite's pointer is valid for as many bytes as it says.
        unsafe {
            let start = sys::sqlite3_column_blob(self.handle.as_ptr(), column).cast::<u8>();
            let bytes = usize::try_from(sys::sqlite3_column_bytes(self.handle.as_ptr(), column)).unwrap_or(0);
            if bytes == 0 {
                return Ok(&[]);
            }
            if start.is_null() {
                return Err(self.error(sys::SQLITE_NOMEM));
            }
            Ok(slice::from_raw_parts(start, bytes))
        }
    }

    fn error(&self, code: c_int) -> SqliteError {
        // SAFETY: the statement is live, and so is its connection.
        unsafe { last_error(sys::sqlite3_db_handle(self.handle.as_ptr()), code) }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let _entered = super::lock::enter();
        // SAFETY: the statement is live and is not used again.
        unsafe { sys::sqlite3_finalize(self.handle.as_ptr()) };
    }
}

/// The connection's last error, which a call just answered with `code`.
///
/// # Safety
/// `db` is open.
pub(super) unsafe fn last_error(db: *mut sys::sqlite3, code: c_int) -> SqliteError {
    // SAFETY: the connection is open; the message is a NUL-terminated string that lives until the next call.
    unsafe {
        let message = core::ffi::CStr::from_ptr(sys::sqlite3_errmsg(db)).to_string_lossy().into_owned();
        let extended = sys::sqlite3_extended_errcode(db);
        // Misuse is answered without being noted in the connection.
        let code = if extended & 0xff == code & 0xff { extended } else { code };
        let offset = u32::try_from(sys::sqlite3_error_offset(db)).ok();
        SqliteError { code, message, offset }
    }
}
