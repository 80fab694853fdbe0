//! Raw bindings to SQLite, with the names of `sqlite3.h`. Only what the engine uses or is about to use.
//!
//! The symbols carry the prefix `icsql_`, so that another SQLite may be linked into the same program. Functions and callbacks
//! have the ABI "C-unwind": a panic in a callback passes through SQLite's frames, and leaves the connection
//! unusable, as a trap would.
#![allow(unsafe_code, non_camel_case_types, non_snake_case)]
#![allow(dead_code, reason = "bindings come in families; a member is not left out until somebody calls it")]
#![allow(missing_docs, reason = "the documentation is SQLite's")]

mod constants;
mod math;
#[cfg(test)]
mod tests;
mod types;

pub use constants::*;
use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
pub use types::*;

/// The version of the vendored SQLite.
pub const VERSION: &str = "3.54.1";

/// The text or blob outlives every use that SQLite makes of it.
pub const fn SQLITE_STATIC() -> sqlite3_destructor_type {
    None
}

/// SQLite takes a copy of the text or blob.
pub fn SQLITE_TRANSIENT() -> sqlite3_destructor_type {
    // SAFETY: SQLite compares this value and never calls it.
    Some(unsafe { core::mem::transmute::<isize, unsafe extern "C-unwind" fn(*mut c_void)>(-1) })
}

macro_rules! functions {
    ($(fn $name:ident($($argument:tt)*) $(-> $result:ty)?;)+) => {
        unsafe extern "C-unwind" {
            $(
                #[link_name = concat!("icsql_", stringify!($name))]
                pub fn $name($($argument)*) $(-> $result)?;
            )+
        }
    };
}

// The library and its versions.
functions! {
    fn sqlite3_config(op: c_int, ...) -> c_int;
    fn sqlite3_initialize() -> c_int;
    fn sqlite3_shutdown() -> c_int;
    fn sqlite3_libversion() -> *const c_char;
    fn sqlite3_libversion_number() -> c_int;
    fn sqlite3_sourceid() -> *const c_char;
    fn sqlite3_compileoption_used(name: *const c_char) -> c_int;
    fn sqlite3_compileoption_get(n: c_int) -> *const c_char;
    fn sqlite3_malloc64(bytes: u64) -> *mut c_void;
    fn sqlite3_realloc64(old: *mut c_void, bytes: u64) -> *mut c_void;
    fn sqlite3_free(allocation: *mut c_void);
    fn sqlite3_msize(allocation: *mut c_void) -> u64;
    fn sqlite3_memory_used() -> i64;
    fn sqlite3_memory_highwater(reset: c_int) -> i64;
    fn sqlite3_release_memory(bytes: c_int) -> c_int;
    fn sqlite3_soft_heap_limit64(bytes: i64) -> i64;
    fn sqlite3_hard_heap_limit64(bytes: i64) -> i64;
    fn sqlite3_randomness(bytes: c_int, target: *mut c_void);
    fn sqlite3_vfs_find(name: *const c_char) -> *mut sqlite3_vfs;
    fn sqlite3_vfs_register(vfs: *mut sqlite3_vfs, make_default: c_int) -> c_int;
    fn sqlite3_vfs_unregister(vfs: *mut sqlite3_vfs) -> c_int;
    fn sqlite3_errstr(code: c_int) -> *const c_char;
    fn sqlite3_complete(sql: *const c_char) -> c_int;
    fn sqlite3_keyword_count() -> c_int;
    fn sqlite3_keyword_name(n: c_int, name: *mut *const c_char, bytes: *mut c_int) -> c_int;
    fn sqlite3_keyword_check(name: *const c_char, bytes: c_int) -> c_int;
    fn sqlite3_strglob(glob: *const c_char, text: *const c_char) -> c_int;
    fn sqlite3_strlike(glob: *const c_char, text: *const c_char, escape: c_uint) -> c_int;
    fn sqlite3_stricmp(left: *const c_char, right: *const c_char) -> c_int;
}

// Connections.
functions! {
    fn sqlite3_open_v2(filename: *const c_char, db: *mut *mut sqlite3, flags: c_int, vfs: *const c_char) -> c_int;
    fn sqlite3_close_v2(db: *mut sqlite3) -> c_int;
    fn sqlite3_exec(
        db: *mut sqlite3,
        sql: *const c_char,
        callback: Option<
            unsafe extern "C-unwind" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int,
        >,
        argument: *mut c_void,
        error: *mut *mut c_char,
    ) -> c_int;
    fn sqlite3_extended_result_codes(db: *mut sqlite3, on: c_int) -> c_int;
    fn sqlite3_errcode(db: *mut sqlite3) -> c_int;
    fn sqlite3_extended_errcode(db: *mut sqlite3) -> c_int;
    fn sqlite3_errmsg(db: *mut sqlite3) -> *const c_char;
    fn sqlite3_set_errmsg(db: *mut sqlite3, code: c_int, message: *const c_char) -> c_int;
    fn sqlite3_error_offset(db: *mut sqlite3) -> c_int;
    fn sqlite3_changes64(db: *mut sqlite3) -> i64;
    fn sqlite3_total_changes64(db: *mut sqlite3) -> i64;
    fn sqlite3_last_insert_rowid(db: *mut sqlite3) -> i64;
    fn sqlite3_get_autocommit(db: *mut sqlite3) -> c_int;
    fn sqlite3_txn_state(db: *mut sqlite3, schema: *const c_char) -> c_int;
    fn sqlite3_limit(db: *mut sqlite3, id: c_int, value: c_int) -> c_int;
    fn sqlite3_db_config(db: *mut sqlite3, op: c_int, ...) -> c_int;
    fn sqlite3_db_status(db: *mut sqlite3, op: c_int, current: *mut c_int, highest: *mut c_int, reset: c_int) -> c_int;
    fn sqlite3_db_status64(db: *mut sqlite3, op: c_int, current: *mut i64, highest: *mut i64, reset: c_int) -> c_int;
    fn sqlite3_db_cacheflush(db: *mut sqlite3) -> c_int;
    fn sqlite3_db_release_memory(db: *mut sqlite3) -> c_int;
    fn sqlite3_db_readonly(db: *mut sqlite3, schema: *const c_char) -> c_int;
    fn sqlite3_db_filename(db: *mut sqlite3, schema: *const c_char) -> *const c_char;
    fn sqlite3_db_name(db: *mut sqlite3, n: c_int) -> *const c_char;
    fn sqlite3_file_control(db: *mut sqlite3, schema: *const c_char, op: c_int, argument: *mut c_void) -> c_int;
    fn sqlite3_interrupt(db: *mut sqlite3);
    fn sqlite3_is_interrupted(db: *mut sqlite3) -> c_int;
    fn sqlite3_next_stmt(db: *mut sqlite3, after: *mut sqlite3_stmt) -> *mut sqlite3_stmt;
    fn sqlite3_set_authorizer(
        db: *mut sqlite3,
        callback: Option<
            unsafe extern "C-unwind" fn(
                *mut c_void,
                c_int,
                *const c_char,
                *const c_char,
                *const c_char,
                *const c_char,
            ) -> c_int,
        >,
        argument: *mut c_void,
    ) -> c_int;
    fn sqlite3_progress_handler(
        db: *mut sqlite3,
        steps: c_int,
        callback: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
        argument: *mut c_void,
    );
    fn sqlite3_commit_hook(
        db: *mut sqlite3,
        callback: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
        argument: *mut c_void,
    ) -> *mut c_void;
    fn sqlite3_rollback_hook(
        db: *mut sqlite3,
        callback: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
        argument: *mut c_void,
    ) -> *mut c_void;
    fn sqlite3_update_hook(
        db: *mut sqlite3,
        callback: Option<unsafe extern "C-unwind" fn(*mut c_void, c_int, *const c_char, *const c_char, i64)>,
        argument: *mut c_void,
    ) -> *mut c_void;
}

// Statements.
functions! {
    fn sqlite3_prepare_v3(
        db: *mut sqlite3,
        sql: *const c_char,
        bytes: c_int,
        flags: c_uint,
        statement: *mut *mut sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int;
    fn sqlite3_step(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_reset(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_finalize(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_clear_bindings(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_db_handle(statement: *mut sqlite3_stmt) -> *mut sqlite3;
    fn sqlite3_sql(statement: *mut sqlite3_stmt) -> *const c_char;
    fn sqlite3_expanded_sql(statement: *mut sqlite3_stmt) -> *mut c_char;
    fn sqlite3_stmt_readonly(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_stmt_busy(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_stmt_isexplain(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_stmt_status(statement: *mut sqlite3_stmt, op: c_int, reset: c_int) -> c_int;

    fn sqlite3_bind_null(statement: *mut sqlite3_stmt, n: c_int) -> c_int;
    fn sqlite3_bind_int(statement: *mut sqlite3_stmt, n: c_int, value: c_int) -> c_int;
    fn sqlite3_bind_int64(statement: *mut sqlite3_stmt, n: c_int, value: i64) -> c_int;
    fn sqlite3_bind_double(statement: *mut sqlite3_stmt, n: c_int, value: f64) -> c_int;
    fn sqlite3_bind_text64(
        statement: *mut sqlite3_stmt,
        n: c_int,
        text: *const c_char,
        bytes: u64,
        destructor: sqlite3_destructor_type,
        encoding: c_uchar,
    ) -> c_int;
    fn sqlite3_bind_blob64(
        statement: *mut sqlite3_stmt,
        n: c_int,
        blob: *const c_void,
        bytes: u64,
        destructor: sqlite3_destructor_type,
    ) -> c_int;
    fn sqlite3_bind_zeroblob64(statement: *mut sqlite3_stmt, n: c_int, bytes: u64) -> c_int;
    fn sqlite3_bind_value(statement: *mut sqlite3_stmt, n: c_int, value: *const sqlite3_value) -> c_int;
    fn sqlite3_bind_pointer(
        statement: *mut sqlite3_stmt,
        n: c_int,
        pointer: *mut c_void,
        kind: *const c_char,
        destructor: sqlite3_destructor_type,
    ) -> c_int;
    fn sqlite3_bind_parameter_count(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_bind_parameter_index(statement: *mut sqlite3_stmt, name: *const c_char) -> c_int;
    fn sqlite3_bind_parameter_name(statement: *mut sqlite3_stmt, n: c_int) -> *const c_char;

    fn sqlite3_column_count(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_data_count(statement: *mut sqlite3_stmt) -> c_int;
    fn sqlite3_column_name(statement: *mut sqlite3_stmt, column: c_int) -> *const c_char;
    fn sqlite3_column_decltype(statement: *mut sqlite3_stmt, column: c_int) -> *const c_char;
    fn sqlite3_column_type(statement: *mut sqlite3_stmt, column: c_int) -> c_int;
    fn sqlite3_column_int64(statement: *mut sqlite3_stmt, column: c_int) -> i64;
    fn sqlite3_column_double(statement: *mut sqlite3_stmt, column: c_int) -> f64;
    fn sqlite3_column_text(statement: *mut sqlite3_stmt, column: c_int) -> *const c_uchar;
    fn sqlite3_column_blob(statement: *mut sqlite3_stmt, column: c_int) -> *const c_void;
    fn sqlite3_column_bytes(statement: *mut sqlite3_stmt, column: c_int) -> c_int;
    fn sqlite3_column_value(statement: *mut sqlite3_stmt, column: c_int) -> *mut sqlite3_value;
}

// Functions and virtual tables.
functions! {
    fn sqlite3_create_function_v2(
        db: *mut sqlite3,
        name: *const c_char,
        arguments: c_int,
        flags: c_int,
        application: *mut c_void,
        x_func: Option<unsafe extern "C-unwind" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value)>,
        x_step: Option<unsafe extern "C-unwind" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value)>,
        x_final: Option<unsafe extern "C-unwind" fn(*mut sqlite3_context)>,
        x_destroy: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> c_int;
    fn sqlite3_create_module_v2(
        db: *mut sqlite3,
        name: *const c_char,
        module: *const sqlite3_module,
        application: *mut c_void,
        x_destroy: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> c_int;
    fn sqlite3_declare_vtab(db: *mut sqlite3, sql: *const c_char) -> c_int;
    fn sqlite3_vtab_config(db: *mut sqlite3, op: c_int, ...) -> c_int;
    fn sqlite3_vtab_on_conflict(db: *mut sqlite3) -> c_int;
    fn sqlite3_vtab_nochange(context: *mut sqlite3_context) -> c_int;
    fn sqlite3_vtab_collation(info: *mut sqlite3_index_info, constraint: c_int) -> *const c_char;
    fn sqlite3_vtab_distinct(info: *mut sqlite3_index_info) -> c_int;
    fn sqlite3_user_data(context: *mut sqlite3_context) -> *mut c_void;
    fn sqlite3_aggregate_context(context: *mut sqlite3_context, bytes: c_int) -> *mut c_void;
    fn sqlite3_context_db_handle(context: *mut sqlite3_context) -> *mut sqlite3;

    fn sqlite3_value_type(value: *mut sqlite3_value) -> c_int;
    fn sqlite3_value_numeric_type(value: *mut sqlite3_value) -> c_int;
    fn sqlite3_value_int64(value: *mut sqlite3_value) -> i64;
    fn sqlite3_value_double(value: *mut sqlite3_value) -> f64;
    fn sqlite3_value_text(value: *mut sqlite3_value) -> *const c_uchar;
    fn sqlite3_value_blob(value: *mut sqlite3_value) -> *const c_void;
    fn sqlite3_value_bytes(value: *mut sqlite3_value) -> c_int;
    fn sqlite3_value_pointer(value: *mut sqlite3_value, kind: *const c_char) -> *mut c_void;
    fn sqlite3_value_nochange(value: *mut sqlite3_value) -> c_int;
    fn sqlite3_value_frombind(value: *mut sqlite3_value) -> c_int;
    fn sqlite3_value_dup(value: *const sqlite3_value) -> *mut sqlite3_value;
    fn sqlite3_value_free(value: *mut sqlite3_value);

    fn sqlite3_result_null(context: *mut sqlite3_context);
    fn sqlite3_result_int(context: *mut sqlite3_context, value: c_int);
    fn sqlite3_result_int64(context: *mut sqlite3_context, value: i64);
    fn sqlite3_result_double(context: *mut sqlite3_context, value: f64);
    fn sqlite3_result_text64(
        context: *mut sqlite3_context,
        text: *const c_char,
        bytes: u64,
        destructor: sqlite3_destructor_type,
        encoding: c_uchar,
    );
    fn sqlite3_result_blob64(
        context: *mut sqlite3_context,
        blob: *const c_void,
        bytes: u64,
        destructor: sqlite3_destructor_type,
    );
    fn sqlite3_result_zeroblob64(context: *mut sqlite3_context, bytes: u64) -> c_int;
    fn sqlite3_result_value(context: *mut sqlite3_context, value: *mut sqlite3_value);
    fn sqlite3_result_error(context: *mut sqlite3_context, message: *const c_char, bytes: c_int);
    fn sqlite3_result_error_code(context: *mut sqlite3_context, code: c_int);
    fn sqlite3_result_error_nomem(context: *mut sqlite3_context);
    fn sqlite3_result_error_toobig(context: *mut sqlite3_context);
}

/// The source id of the SQLite that is linked in.
pub fn source_id() -> &'static CStr {
    // SAFETY: SQLite answers a text that is compiled in.
    unsafe { CStr::from_ptr(sqlite3_sourceid()) }
}
