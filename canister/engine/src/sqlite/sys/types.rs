//! SQLite's structures, field by field as in `sqlite3.h`; a test compares their layout with what the C compiler makes.

use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            pub struct $name {
                _private: [u8; 0],
            }
        )+
    };
}

opaque! {
    /// A connection.
    sqlite3;
    /// A prepared statement.
    sqlite3_stmt;
    /// A value.
    sqlite3_value;
    /// Where a function puts its result.
    sqlite3_context;
    /// A page cache, of whatever type its methods make.
    sqlite3_pcache;
}

pub type sqlite3_destructor_type = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
pub type sqlite3_syscall_ptr = Option<unsafe extern "C-unwind" fn()>;

/// The beginning of every open file.
#[repr(C)]
pub struct sqlite3_file {
    pub pMethods: *const sqlite3_io_methods,
}

#[repr(C)]
pub struct sqlite3_io_methods {
    pub iVersion: c_int,
    pub xClose: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file) -> c_int>,
    pub xRead: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, *mut c_void, c_int, i64) -> c_int>,
    pub xWrite: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, *const c_void, c_int, i64) -> c_int>,
    pub xTruncate: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, i64) -> c_int>,
    pub xSync: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int) -> c_int>,
    pub xFileSize: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, *mut i64) -> c_int>,
    pub xLock: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int) -> c_int>,
    pub xUnlock: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int) -> c_int>,
    pub xCheckReservedLock: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, *mut c_int) -> c_int>,
    pub xFileControl: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int, *mut c_void) -> c_int>,
    pub xSectorSize: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file) -> c_int>,
    pub xDeviceCharacteristics: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file) -> c_int>,
    // Version 2.
    pub xShmMap: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int, c_int, c_int, *mut *mut c_void) -> c_int>,
    pub xShmLock: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int, c_int, c_int) -> c_int>,
    pub xShmBarrier: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file)>,
    pub xShmUnmap: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, c_int) -> c_int>,
    // Version 3.
    pub xFetch: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, i64, c_int, *mut *mut c_void) -> c_int>,
    pub xUnfetch: Option<unsafe extern "C-unwind" fn(*mut sqlite3_file, i64, *mut c_void) -> c_int>,
}

#[repr(C)]
pub struct sqlite3_vfs {
    pub iVersion: c_int,
    pub szOsFile: c_int,
    pub mxPathname: c_int,
    pub pNext: *mut sqlite3_vfs,
    pub zName: *const c_char,
    pub pAppData: *mut c_void,
    pub xOpen: Option<
        unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int,
    >,
    pub xDelete: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char, c_int) -> c_int>,
    pub xAccess: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub xFullPathname:
        Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char, c_int, *mut c_char) -> c_int>,
    pub xDlOpen: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char) -> *mut c_void>,
    pub xDlError: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, c_int, *mut c_char)>,
    pub xDlSym:
        Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *mut c_void, *const c_char) -> sqlite3_syscall_ptr>,
    pub xDlClose: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *mut c_void)>,
    pub xRandomness: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, c_int, *mut c_char) -> c_int>,
    pub xSleep: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, c_int) -> c_int>,
    pub xCurrentTime: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *mut f64) -> c_int>,
    pub xGetLastError: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, c_int, *mut c_char) -> c_int>,
    // Version 2.
    pub xCurrentTimeInt64: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *mut i64) -> c_int>,
    // Version 3.
    pub xSetSystemCall:
        Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char, sqlite3_syscall_ptr) -> c_int>,
    pub xGetSystemCall: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char) -> sqlite3_syscall_ptr>,
    pub xNextSystemCall: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vfs, *const c_char) -> *const c_char>,
}

#[repr(C)]
pub struct sqlite3_mem_methods {
    pub xMalloc: Option<unsafe extern "C-unwind" fn(c_int) -> *mut c_void>,
    pub xFree: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    pub xRealloc: Option<unsafe extern "C-unwind" fn(*mut c_void, c_int) -> *mut c_void>,
    pub xSize: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
    pub xRoundup: Option<unsafe extern "C-unwind" fn(c_int) -> c_int>,
    pub xInit: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
    pub xShutdown: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    pub pAppData: *mut c_void,
}

#[repr(C)]
pub struct sqlite3_pcache_page {
    pub pBuf: *mut c_void,
    pub pExtra: *mut c_void,
}

#[repr(C)]
pub struct sqlite3_pcache_methods2 {
    pub iVersion: c_int,
    pub pArg: *mut c_void,
    pub xInit: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
    pub xShutdown: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    pub xCreate: Option<unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> *mut sqlite3_pcache>,
    pub xCachesize: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache, c_int)>,
    pub xPagecount: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache) -> c_int>,
    pub xFetch: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache, c_uint, c_int) -> *mut sqlite3_pcache_page>,
    pub xUnpin: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache, *mut sqlite3_pcache_page, c_int)>,
    pub xRekey: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache, *mut sqlite3_pcache_page, c_uint, c_uint)>,
    pub xTruncate: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache, c_uint)>,
    pub xDestroy: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache)>,
    pub xShrink: Option<unsafe extern "C-unwind" fn(*mut sqlite3_pcache)>,
}

/// The beginning of every virtual table.
#[repr(C)]
pub struct sqlite3_vtab {
    pub pModule: *const sqlite3_module,
    pub nRef: c_int,
    pub zErrMsg: *mut c_char,
}

/// The beginning of every cursor of a virtual table.
#[repr(C)]
pub struct sqlite3_vtab_cursor {
    pub pVtab: *mut sqlite3_vtab,
}

type VtabMethod = Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab) -> c_int>;
type VtabSavepointMethod = Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab, c_int) -> c_int>;
type VtabCursorMethod = Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab_cursor) -> c_int>;
type VtabConstructor = Option<
    unsafe extern "C-unwind" fn(
        *mut sqlite3,
        *mut c_void,
        c_int,
        *const *const c_char,
        *mut *mut sqlite3_vtab,
        *mut *mut c_char,
    ) -> c_int,
>;
type SqlFunction = Option<unsafe extern "C-unwind" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value)>;

#[repr(C)]
pub struct sqlite3_module {
    pub iVersion: c_int,
    pub xCreate: VtabConstructor,
    pub xConnect: VtabConstructor,
    pub xBestIndex: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab, *mut sqlite3_index_info) -> c_int>,
    pub xDisconnect: VtabMethod,
    pub xDestroy: VtabMethod,
    pub xOpen: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab, *mut *mut sqlite3_vtab_cursor) -> c_int>,
    pub xClose: VtabCursorMethod,
    pub xFilter: Option<
        unsafe extern "C-unwind" fn(
            *mut sqlite3_vtab_cursor,
            c_int,
            *const c_char,
            c_int,
            *mut *mut sqlite3_value,
        ) -> c_int,
    >,
    pub xNext: VtabCursorMethod,
    pub xEof: VtabCursorMethod,
    pub xColumn: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab_cursor, *mut sqlite3_context, c_int) -> c_int>,
    pub xRowid: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab_cursor, *mut i64) -> c_int>,
    pub xUpdate:
        Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab, c_int, *mut *mut sqlite3_value, *mut i64) -> c_int>,
    pub xBegin: VtabMethod,
    pub xSync: VtabMethod,
    pub xCommit: VtabMethod,
    pub xRollback: VtabMethod,
    pub xFindFunction: Option<
        unsafe extern "C-unwind" fn(
            *mut sqlite3_vtab,
            c_int,
            *const c_char,
            *mut SqlFunction,
            *mut *mut c_void,
        ) -> c_int,
    >,
    pub xRename: Option<unsafe extern "C-unwind" fn(*mut sqlite3_vtab, *const c_char) -> c_int>,
    // Version 2.
    pub xSavepoint: VtabSavepointMethod,
    pub xRelease: VtabSavepointMethod,
    pub xRollbackTo: VtabSavepointMethod,
    // Version 3.
    pub xShadowName: Option<unsafe extern "C-unwind" fn(*const c_char) -> c_int>,
    // Version 4.
    pub xIntegrity: Option<
        unsafe extern "C-unwind" fn(*mut sqlite3_vtab, *const c_char, *const c_char, c_int, *mut *mut c_char) -> c_int,
    >,
}

#[repr(C)]
pub struct sqlite3_index_constraint {
    pub iColumn: c_int,
    pub op: c_uchar,
    pub usable: c_uchar,
    pub iTermOffset: c_int,
}

#[repr(C)]
pub struct sqlite3_index_orderby {
    pub iColumn: c_int,
    pub desc: c_uchar,
}

#[repr(C)]
pub struct sqlite3_index_constraint_usage {
    pub argvIndex: c_int,
    pub omit: c_uchar,
}

#[repr(C)]
pub struct sqlite3_index_info {
    pub nConstraint: c_int,
    pub aConstraint: *mut sqlite3_index_constraint,
    pub nOrderBy: c_int,
    pub aOrderBy: *mut sqlite3_index_orderby,
    pub aConstraintUsage: *mut sqlite3_index_constraint_usage,
    pub idxNum: c_int,
    pub idxStr: *mut c_char,
    pub needToFreeIdxStr: c_int,
    pub orderByConsumed: c_int,
    pub estimatedCost: f64,
    pub estimatedRows: i64,
    pub idxFlags: c_int,
    pub colUsed: u64,
}
