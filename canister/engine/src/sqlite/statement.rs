//! A prepared statement: released when dropped, its parameters bound without copying.
#![allow(unsafe_code)]

use super::error::SqliteError;
use super::sys;
use super::value::{Params, ValueRef};
use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use core::ptr::{self, NonNull};
use core::slice;
use std::collections::BTreeSet;
use std::ffi::CString;

/// A statement of a [`Connection`](super::Connection), which must outlive it.
pub(crate) struct Statement {
    handle: NonNull<sys::sqlite3_stmt>,
    read_only: bool,
    can_fail_partly: bool,
    parameters: c_int,
    /// Whether somebody is between binding its parameters and resetting it.
    running: Cell<bool>,
    /// Whether SQLite is running it at this moment. It stays true if a simulated trap unwinds through SQLite, which must
    /// then not be called again: resetting the statement could end the commit that was cut off.
    #[cfg(not(target_arch = "wasm32"))]
    stepping: Cell<bool>,
}

/// From before the first parameter is bound on. However that ends, the statement is reset, so that it does not step with
/// parameters whose bytes are gone.
struct InUse<'s>(&'s Statement);

impl<'s> InUse<'s> {
    fn new(statement: &'s Statement) -> Self {
        statement.running.set(true);
        Self(statement)
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        #[cfg(not(target_arch = "wasm32"))]
        if self.0.stepping.get() {
            return;
        }
        self.0.reset();
        self.0.running.set(false);
    }
}

/// `IcsqlValue` of `libc/icsql_inside.c`.
#[repr(C)]
struct RawScalar {
    kind: c_int,
    bytes: c_int,
    value: RawValue,
}

#[repr(C)]
union RawValue {
    integer: i64,
    real: f64,
    start: *const u8,
}

impl RawScalar {
    /// What `icsql_bind` can bind.
    #[inline]
    fn of(value: ValueRef<'_>) -> Option<Self> {
        let bytes = |kind, bytes: &[u8]| {
            let value = RawValue { start: bytes.as_ptr() };
            Some(Self { kind, bytes: c_int::try_from(bytes.len()).ok()?, value })
        };
        match value {
            ValueRef::Integer(integer) => {
                Some(Self { kind: sys::SQLITE_INTEGER, bytes: 0, value: RawValue { integer } })
            }
            ValueRef::Text(text) => bytes(sys::SQLITE_TEXT, text),
            ValueRef::Blob(blob) => bytes(sys::SQLITE_BLOB, blob),
            ValueRef::Null | ValueRef::Real(_) => None,
        }
    }

    /// # Safety
    /// The kind is text or blob, and SQLite answered it just now for a row that outlives the result.
    unsafe fn slice<'a>(&self) -> &'a [u8] {
        let bytes = usize::try_from(self.bytes).unwrap_or(0);
        // An empty blob has no address.
        // SAFETY: SQLite's pointer is valid for as many bytes as it says.
        if bytes == 0 { &[] } else { unsafe { slice::from_raw_parts(self.value.start, bytes) } }
    }
}

unsafe extern "C-unwind" {
    fn icsql_bind(statement: *mut sys::sqlite3_stmt, number: c_int, value: *const RawScalar) -> c_int;
    fn icsql_can_fail_partly(statement: *mut sys::sqlite3_stmt) -> c_int;
    fn icsql_row_bytes(statement: *mut sys::sqlite3_stmt, largest: *mut i64) -> i64;
    fn icsql_column(statement: *mut sys::sqlite3_stmt, column: c_int, value: *mut RawScalar) -> c_int;
}

/// What a statement did, as SQLite counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Instructions of SQLite's virtual machine.
    pub(crate) vm_steps: u64,
    /// Steps forward in scans of a whole table.
    pub(crate) full_scan_steps: u64,
    /// Sorts.
    pub(crate) sorts: u64,
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
                // An EXPLAIN runs nothing of what it explains.
                read_only: sys::sqlite3_stmt_readonly(handle.as_ptr()) != 0
                    || sys::sqlite3_stmt_isexplain(handle.as_ptr()) != 0,
                can_fail_partly: icsql_can_fail_partly(handle.as_ptr()) != 0,
                parameters: sys::sqlite3_bind_parameter_count(handle.as_ptr()),
                running: Cell::new(false),
                #[cfg(not(target_arch = "wasm32"))]
                stepping: Cell::new(false),
                handle,
            });
            Ok(Prepared { statement, consumed: consumed.min(sql.len()) })
        }
    }

    /// Whether it can change nothing in the database.
    pub(crate) fn read_only(&self) -> bool {
        self.read_only
    }

    /// Whether it can fail and keep the rows that it had changed until then, as `OR FAIL` asks for.
    pub(crate) fn can_fail_partly(&self) -> bool {
        self.can_fail_partly
    }

    /// Whether somebody uses it now.
    pub(crate) fn running(&self) -> bool {
        self.running.get()
    }

    /// Highest number of a parameter.
    pub(crate) fn parameters(&self) -> usize {
        usize::try_from(self.parameters).unwrap_or(0)
    }

    /// Columns of a row. It can change when the statement is first stepped after a change of the schema.
    pub(crate) fn columns(&self) -> usize {
        // SAFETY: the statement is live.
        usize::try_from(unsafe { sys::sqlite3_column_count(self.handle.as_ptr()) }).unwrap_or(0)
    }

    /// Number of the parameter with this name, which may come with or without its `:`, `@` or `$`.
    pub(crate) fn parameter(&self, name: &str) -> Option<i32> {
        let number = |name: String| {
            let name = CString::new(name).ok()?;
            // SAFETY: the statement is live and the name ends in NUL.
            match unsafe { sys::sqlite3_bind_parameter_index(self.handle.as_ptr(), name.as_ptr()) } {
                0 => None,
                number => Some(number),
            }
        };
        if name.starts_with([':', '@', '$']) {
            return number(name.to_owned());
        }
        [":", "@", "$"].into_iter().find_map(|sigil| number(format!("{sigil}{name}")))
    }

    /// Name of the parameter with this number, its sigil included; none if it has none.
    pub(crate) fn parameter_name(&self, number: usize) -> Option<String> {
        let number = c_int::try_from(number).ok()?;
        // SAFETY: the statement is live; the name is a NUL-terminated string that lives as long as it.
        unsafe {
            let name = sys::sqlite3_bind_parameter_name(self.handle.as_ptr(), number);
            (!name.is_null()).then(|| core::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// Bytes of the row that the last step found, and of its largest text or blob.
    pub(crate) fn row_bytes(&self) -> (u64, u64) {
        let mut largest = 0;
        // SAFETY: the statement is live; `largest` outlives the call.
        let bytes = unsafe { icsql_row_bytes(self.handle.as_ptr(), &mut largest) };
        (u64::try_from(bytes).unwrap_or(0), u64::try_from(largest).unwrap_or(0))
    }

    /// What the statement did since this was asked last.
    pub(crate) fn take_counts(&self) -> Counts {
        // SAFETY: the statement is live.
        let take = |counter| unsafe { sys::sqlite3_stmt_status(self.handle.as_ptr(), counter, 1) };
        let [vm_steps, full_scan_steps, sorts] =
            [sys::SQLITE_STMTSTATUS_VM_STEP, sys::SQLITE_STMTSTATUS_FULLSCAN_STEP, sys::SQLITE_STMTSTATUS_SORT]
                .map(|counter| u64::from(take(counter) as u32));
        Counts { vm_steps, full_scan_steps, sorts }
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
    /// SQLite's, above all `SQLITE_TOOBIG`, and `SQLITE_RANGE` for a name that it has not; `body` did not run then.
    pub(crate) fn bind<T>(&self, params: &impl Params, body: impl FnOnce() -> T) -> Result<T, SqliteError> {
        let handle = self.handle.as_ptr();
        let _in_use = InUse::new(self);
        let number = |name: &str| self.parameter(name).ok_or_else(|| self.no_parameter(name));
        let mut in_order = 0;
        params.each(number, |number, value| {
            in_order += c_int::from(number == in_order + 1);
            // SAFETY: the statement is live and reset. What `params` borrows stays valid and unchanged until this
            // function returns, and the statement does not step after that: whoever steps it binds first, all its
            // parameters, which is checked below. An empty slice has a pointer that is not null, so it binds an empty value and not NULL.
            let code = unsafe {
                if RawScalar::of(value).is_some_and(|raw| icsql_bind(handle, number, &raw) != 0) {
                    return Ok(());
                }
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
        if in_order != self.parameters {
            self.check_all_bound(params)?;
        }
        Ok(body())
    }

    /// Whether each parameter gets a value. One that got none would still refer to the bytes of an earlier call.
    #[cold]
    fn check_all_bound(&self, params: &impl Params) -> Result<(), SqliteError> {
        let mut missing: BTreeSet<_> = (1..=self.parameters).collect();
        let number = |name: &str| self.parameter(name).ok_or_else(|| self.no_parameter(name));
        params.each(number, |number, _| {
            missing.remove(&number);
            Ok::<_, SqliteError>(())
        })?;
        let Some(number) = missing.first() else { return Ok(()) };
        let name = usize::try_from(*number).ok().and_then(|number| self.parameter_name(number));
        let message = format!("parameter {} was not given", name.unwrap_or_else(|| format!("?{number}")));
        Err(SqliteError { code: sys::SQLITE_RANGE, message, offset: None })
    }

    /// Runs to the next row or to the end.
    ///
    /// # Errors
    /// SQLite's; the statement must then be reset.
    pub(crate) fn step(&self) -> Result<Step, SqliteError> {
        #[cfg(not(target_arch = "wasm32"))]
        self.stepping.set(true);
        // SAFETY: the statement is live.
        let code = unsafe { sys::sqlite3_step(self.handle.as_ptr()) };
        #[cfg(not(target_arch = "wasm32"))]
        self.stepping.set(false);
        match code {
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
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Result<ValueRef<'_>, SqliteError> {
        let mut raw = RawScalar { kind: sys::SQLITE_NULL, bytes: 0, value: RawValue { integer: 0 } };
        let number = c_int::try_from(column).unwrap_or(c_int::MAX);
        // SAFETY: the statement is live and `raw` can be written to. The union's field is the one that goes with the
        // kind. Pointers are valid for as many bytes as stand beside them, until the statement steps or is reset, and
        // `&self` outlives the reference.
        unsafe {
            let code = icsql_column(self.handle.as_ptr(), number, &mut raw);
            if code != sys::SQLITE_OK {
                return Err(self.column_error(column, code));
            }
            Ok(match raw.kind {
                sys::SQLITE_INTEGER => ValueRef::Integer(raw.value.integer),
                sys::SQLITE_FLOAT => ValueRef::Real(raw.value.real),
                sys::SQLITE_TEXT => ValueRef::Text(raw.slice()),
                sys::SQLITE_BLOB => ValueRef::Blob(raw.slice()),
                _ => ValueRef::Null,
            })
        }
    }

    #[cold]
    fn no_parameter(&self, name: &str) -> SqliteError {
        let known: Vec<_> = (1..=self.parameters()).filter_map(|number| self.parameter_name(number)).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let message = format!("the statement has no parameter named {name}; it has {known}");
        SqliteError { code: sys::SQLITE_RANGE, message, offset: None }
    }

    #[cold]
    fn column_error(&self, column: usize, code: c_int) -> SqliteError {
        let message = if code == sys::SQLITE_RANGE {
            format!("there is no column {column} in a row of {}", self.columns())
        } else {
            "out of memory".into()
        };
        SqliteError { code, message, offset: None }
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
