//! The half of the VFS that SQLite calls: it turns pointers into slices and answers into result codes.
#![allow(unsafe_code)]

use super::file::DatabaseFile;
use crate::env::Env;
use crate::sqlite::sys;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::{ptr, slice};
use std::ffi::CString;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Longest name of a file, in bytes with the NUL.
const PATH_BYTES_MAX: c_int = 64;
/// Milliseconds between the start of SQLite's Julian day count and 1970-01-01 UTC.
const UNIX_EPOCH_JULIAN_MS: i64 = 210_866_760_000_000;

/// A VFS of one database, which SQLite knows by name until this is dropped.
pub(crate) struct Registration {
    vfs: Box<sys::sqlite3_vfs>,
    name: CString,
    /// What the VFS's methods work on; `vfs.pAppData` points here.
    _context: Box<Context>,
}

struct Context {
    file: Rc<RefCell<DatabaseFile>>,
    env: Rc<dyn Env>,
    /// Bytes of the seed that were handed out.
    seeded: Cell<usize>,
}

/// What SQLite allocates for an open file.
#[repr(C)]
struct OpenFile {
    base: sys::sqlite3_file,
    /// The VFS's context, which outlives the file.
    context: *const Context,
}

impl Registration {
    /// Makes `file` known to SQLite under a name of its own. None if SQLite refuses.
    pub(crate) fn new(file: Rc<RefCell<DatabaseFile>>, env: Rc<dyn Env>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = CString::new(format!("icsql-{}", NEXT.fetch_add(1, Ordering::Relaxed))).ok()?;
        let context = Box::new(Context { file, env, seeded: Cell::new(0) });
        let mut vfs = Box::new(sys::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<OpenFile>() as c_int,
            mxPathname: PATH_BYTES_MAX,
            pNext: ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: ptr::from_ref::<Context>(&context).cast_mut().cast(),
            xOpen: Some(x_open),
            xDelete: Some(x_delete),
            xAccess: Some(x_access),
            xFullPathname: Some(x_full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(x_randomness),
            xSleep: Some(x_sleep),
            xCurrentTime: Some(x_current_time),
            xGetLastError: None,
            xCurrentTimeInt64: Some(x_current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        });
        // SAFETY: the structure, its name and its context live in boxes until `drop` takes it off SQLite's list.
        let code = unsafe { sys::sqlite3_vfs_register(&raw mut *vfs, 0) };
        (code == sys::SQLITE_OK).then_some(Self { vfs, name, _context: context })
    }

    /// The name under which SQLite knows it.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _entered = crate::sqlite::lock::enter();
        // SAFETY: it was registered, and the connection that used it is closed.
        unsafe { sys::sqlite3_vfs_unregister(&raw mut *self.vfs) };
    }
}

static METHODS: sys::sqlite3_io_methods = sys::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(x_close),
    xRead: Some(x_read),
    xWrite: Some(x_write),
    xTruncate: Some(x_truncate),
    xSync: Some(x_sync),
    xFileSize: Some(x_file_size),
    xLock: Some(x_lock),
    xUnlock: Some(x_lock),
    xCheckReservedLock: Some(x_check_reserved_lock),
    xFileControl: Some(x_file_control),
    xSectorSize: Some(x_sector_size),
    xDeviceCharacteristics: Some(x_device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `vfs` is one that [`Registration::new`] registered.
unsafe fn context<'a>(vfs: *mut sys::sqlite3_vfs) -> &'a Context {
    // SAFETY: its context lives as long as the registration, which outlives the connection.
    unsafe { &*(*vfs).pAppData.cast::<Context>() }
}

/// # Safety
/// `file` was opened by [`x_open`] and is not closed.
unsafe fn database<'a>(file: *mut sys::sqlite3_file) -> &'a RefCell<DatabaseFile> {
    // SAFETY: the file's context is the VFS's. No method of a file calls SQLite, so no borrow is ever open twice.
    unsafe { &(*(*file.cast::<OpenFile>()).context).file }
}

unsafe extern "C-unwind" fn x_open(
    vfs: *mut sys::sqlite3_vfs,
    _name: *const c_char,
    file: *mut sys::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a VFS of ours, room for an `OpenFile`, and a place for the flags or null.
    unsafe {
        (*file).pMethods = ptr::null();
        if flags & sys::SQLITE_OPEN_MAIN_DB == 0 {
            return sys::SQLITE_CANTOPEN;
        }
        file.cast::<OpenFile>()
            .write(OpenFile { base: sys::sqlite3_file { pMethods: &METHODS }, context: context(vfs) });
        if !flags_out.is_null() {
            *flags_out = flags;
        }
    }
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_close(_file: *mut sys::sqlite3_file) -> c_int {
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_read(
    file: *mut sys::sqlite3_file,
    target: *mut c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    let (Ok(bytes), Ok(offset)) = (usize::try_from(bytes), u64::try_from(offset)) else {
        return sys::SQLITE_IOERR_READ;
    };
    // SAFETY: SQLite's buffer holds `bytes`.
    let (target, file) = unsafe { (slice::from_raw_parts_mut(target.cast::<u8>(), bytes), database(file)) };
    match file.borrow_mut().serve(|file| file.read(offset, target)) {
        Ok(true) => sys::SQLITE_OK,
        Ok(false) => sys::SQLITE_IOERR_SHORT_READ,
        Err(_) => sys::SQLITE_IOERR_READ,
    }
}

unsafe extern "C-unwind" fn x_write(
    file: *mut sys::sqlite3_file,
    source: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    let (Ok(bytes), Ok(offset)) = (usize::try_from(bytes), u64::try_from(offset)) else {
        return sys::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite's buffer holds `bytes`.
    let (source, file) = unsafe { (slice::from_raw_parts(source.cast::<u8>(), bytes), database(file)) };
    match file.borrow_mut().serve(|file| file.write(offset, source)) {
        Ok(()) => sys::SQLITE_OK,
        // Nothing is written yet, so what was refused is room.
        Err(_) => sys::SQLITE_FULL,
    }
}

unsafe extern "C-unwind" fn x_truncate(file: *mut sys::sqlite3_file, bytes: i64) -> c_int {
    let Ok(bytes) = u64::try_from(bytes) else { return sys::SQLITE_IOERR_TRUNCATE };
    // SAFETY: SQLite passes an open file.
    match unsafe { database(file) }.borrow_mut().serve(|file| file.truncate(bytes)) {
        Ok(()) => sys::SQLITE_OK,
        Err(_) => sys::SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C-unwind" fn x_sync(_file: *mut sys::sqlite3_file, _flags: c_int) -> c_int {
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_file_size(file: *mut sys::sqlite3_file, bytes: *mut i64) -> c_int {
    // SAFETY: SQLite passes an open file and a place for the answer.
    unsafe { *bytes = i64::try_from(database(file).borrow().bytes()).unwrap_or(i64::MAX) };
    sys::SQLITE_OK
}

/// There is one connection, and a message is never interrupted by another.
unsafe extern "C-unwind" fn x_lock(_file: *mut sys::sqlite3_file, _level: c_int) -> c_int {
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_check_reserved_lock(_file: *mut sys::sqlite3_file, reserved: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *reserved = 0 };
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_file_control(
    file: *mut sys::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    match operation {
        sys::SQLITE_FCNTL_COMMIT_PHASETWO => {
            // SAFETY: SQLite passes an open file.
            match unsafe { database(file) }.borrow_mut().serve(DatabaseFile::publish) {
                Ok(()) => sys::SQLITE_OK,
                Err(_) => sys::SQLITE_IOERR,
            }
        }
        sys::SQLITE_FCNTL_SIZE_HINT => {
            // SAFETY: the argument of this operation is a pointer to a 64-bit number of bytes.
            let (bytes, file) = unsafe { (*argument.cast::<i64>(), database(file)) };
            file.borrow_mut().serve(|file| file.hint(u64::try_from(bytes).unwrap_or(0)));
            sys::SQLITE_OK
        }
        _ => sys::SQLITE_NOTFOUND,
    }
}

unsafe extern "C-unwind" fn x_sector_size(_file: *mut sys::sqlite3_file) -> c_int {
    512
}

/// A page is written whole and alone: its neighbours need not be journalled with it.
unsafe extern "C-unwind" fn x_device_characteristics(_file: *mut sys::sqlite3_file) -> c_int {
    sys::SQLITE_IOCAP_POWERSAFE_OVERWRITE | sys::SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN
}

unsafe extern "C-unwind" fn x_delete(_vfs: *mut sys::sqlite3_vfs, _name: *const c_char, _sync: c_int) -> c_int {
    sys::SQLITE_OK
}

/// Only journals are asked for, and there are none.
unsafe extern "C-unwind" fn x_access(
    _vfs: *mut sys::sqlite3_vfs,
    _name: *const c_char,
    _flags: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *answer = 0 };
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_full_pathname(
    _vfs: *mut sys::sqlite3_vfs,
    name: *const c_char,
    bytes: c_int,
    target: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated name and room for `bytes`.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes_with_nul();
        if usize::try_from(bytes).is_ok_and(|bytes| name.len() <= bytes) {
            ptr::copy_nonoverlapping(name.as_ptr().cast(), target, name.len());
            sys::SQLITE_OK
        } else {
            sys::SQLITE_CANTOPEN
        }
    }
}

unsafe extern "C-unwind" fn x_randomness(vfs: *mut sys::sqlite3_vfs, bytes: c_int, target: *mut c_char) -> c_int {
    let length = usize::try_from(bytes).unwrap_or(0);
    // SAFETY: SQLite passes a VFS of ours and room for `bytes`.
    let (context, target) = unsafe { (context(vfs), slice::from_raw_parts_mut(target.cast::<u8>(), length)) };
    let seed = context.env.seed();
    let start = context.seeded.get();
    for (n, byte) in target.iter_mut().enumerate() {
        *byte = seed[(start + n) % seed.len()];
    }
    context.seeded.set((start + length) % seed.len());
    bytes
}

unsafe extern "C-unwind" fn x_sleep(_vfs: *mut sys::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

/// Milliseconds since the start of the Julian day count.
fn julian_ms(env: &dyn Env) -> i64 {
    UNIX_EPOCH_JULIAN_MS + (env.time_ns() / 1_000_000) as i64
}

unsafe extern "C-unwind" fn x_current_time(vfs: *mut sys::sqlite3_vfs, days: *mut f64) -> c_int {
    // SAFETY: SQLite passes a VFS of ours and a place for the answer.
    unsafe { *days = julian_ms(&*context(vfs).env) as f64 / 86_400_000.0 };
    sys::SQLITE_OK
}

unsafe extern "C-unwind" fn x_current_time_int64(vfs: *mut sys::sqlite3_vfs, milliseconds: *mut i64) -> c_int {
    // SAFETY: SQLite passes a VFS of ours and a place for the answer.
    unsafe { *milliseconds = julian_ms(&*context(vfs).env) };
    sys::SQLITE_OK
}
