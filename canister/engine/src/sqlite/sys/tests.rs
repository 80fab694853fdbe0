//! The bindings are compared with `sqlite3.h`, and with those that bindgen made for another SQLite, which is linked in
//! beside ours.

use super::*;
use core::mem::offset_of;
use rusqlite::ffi;
use std::collections::HashMap;

const HEADER: &str = include_str!("../../../../../vendor/sqlite/sqlite3.h");

#[test]
fn versions_are_those_of_the_header() {
    let text = |name: &str| {
        let line = HEADER.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect(name);
        line.split('"').nth(1).expect("a quoted text").to_owned()
    };
    assert_eq!(VERSION, text("SQLITE_VERSION"));
    assert_eq!(source_id().to_str(), Ok(text("SQLITE_SOURCE_ID").as_str()));
    // SAFETY: answers a text that is compiled in.
    assert_eq!(unsafe { CStr::from_ptr(sqlite3_libversion()) }.to_str(), Ok(VERSION));
}

/// `NAME`, `12`, `0x10` or `NAME | (3 << 8)`, with or without brackets around it.
fn evaluate(expression: &str, known: &HashMap<String, i64>) -> Option<i64> {
    let text: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some((name, shifted)) = text.trim_matches(['(', ')']).split_once("|(") {
        let (value, bits) = shifted.trim_matches(')').split_once("<<")?;
        return Some(known.get(name)? | evaluate(value, known)? << evaluate(bits, known)?);
    }
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().or_else(|| known.get(&text).copied()),
    }
}

#[test]
fn constants_are_those_of_the_header() {
    let mut header = HashMap::new();
    for line in HEADER.lines() {
        let Some(definition) = line.strip_prefix('#').and_then(|line| line.trim_start().strip_prefix("define SQLITE_"))
        else {
            continue;
        };
        let (name, value) = definition.split_once(char::is_whitespace).unwrap_or((definition, ""));
        let value = value.split("/*").next().unwrap_or_default();
        if let Some(value) = evaluate(value, &header) {
            header.insert(format!("SQLITE_{name}"), value);
        }
    }
    let mut compared = 0;
    let mut ours = HashMap::new();
    for line in include_str!("constants.rs").lines() {
        let Some((name, value)) = line.strip_prefix("pub const ").and_then(|line| line.split_once(": c_int = ")) else {
            continue;
        };
        let value = evaluate(value.trim_end_matches(';'), &ours).expect(line);
        ours.insert(name.to_owned(), value);
        assert_eq!(header.get(name), Some(&value), "{name}");
        compared += 1;
    }
    assert!(compared > 300, "only {compared} constants were found");
}

macro_rules! same_layout {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {
        $(
            assert_eq!(size_of::<$name>(), size_of::<ffi::$name>(), "size of {}", stringify!($name));
            assert_eq!(align_of::<$name>(), align_of::<ffi::$name>(), "alignment of {}", stringify!($name));
            $(
                assert_eq!(
                    offset_of!($name, $field),
                    offset_of!(ffi::$name, $field),
                    "offset of {}.{}", stringify!($name), stringify!($field),
                );
            )+
        )+
    };
}

#[test]
fn structures_have_the_layout_that_bindgen_found() {
    same_layout! {
        sqlite3_file { pMethods }
        sqlite3_io_methods {
            iVersion, xClose, xRead, xWrite, xTruncate, xSync, xFileSize, xLock, xUnlock, xCheckReservedLock, xFileControl,
            xSectorSize, xDeviceCharacteristics, xShmMap, xShmLock, xShmBarrier, xShmUnmap, xFetch, xUnfetch,
        }
        sqlite3_vfs {
            iVersion, szOsFile, mxPathname, pNext, zName, pAppData, xOpen, xDelete, xAccess, xFullPathname, xDlOpen, xDlError,
            xDlSym, xDlClose, xRandomness, xSleep, xCurrentTime, xGetLastError, xCurrentTimeInt64, xSetSystemCall,
            xGetSystemCall, xNextSystemCall,
        }
        sqlite3_mem_methods { xMalloc, xFree, xRealloc, xSize, xRoundup, xInit, xShutdown, pAppData }
        sqlite3_pcache_page { pBuf, pExtra }
        sqlite3_pcache_methods2 {
            iVersion, pArg, xInit, xShutdown, xCreate, xCachesize, xPagecount, xFetch, xUnpin, xRekey, xTruncate, xDestroy, xShrink,
        }
        sqlite3_vtab { pModule, nRef, zErrMsg }
        sqlite3_vtab_cursor { pVtab }
        sqlite3_module {
            iVersion, xCreate, xConnect, xBestIndex, xDisconnect, xDestroy, xOpen, xClose, xFilter, xNext, xEof, xColumn, xRowid,
            xUpdate, xBegin, xSync, xCommit, xRollback, xFindFunction, xRename, xSavepoint, xRelease, xRollbackTo, xShadowName,
            xIntegrity,
        }
        sqlite3_index_constraint { iColumn, op, usable, iTermOffset }
        sqlite3_index_orderby { iColumn, desc }
        sqlite3_index_constraint_usage { argvIndex, omit }
        sqlite3_index_info {
            nConstraint, aConstraint, nOrderBy, aOrderBy, aConstraintUsage, idxNum, idxStr, needToFreeIdxStr, orderByConsumed,
            estimatedCost, estimatedRows, idxFlags, colUsed,
        }
    }
}

#[test]
fn options_of_flags_txt_are_compiled_in_and_another_sqlite_is_not_touched() {
    // SAFETY: both answer whether a NUL-terminated name is a compile-time option.
    let ours = |name: &CStr| unsafe { sqlite3_compileoption_used(name.as_ptr()) };
    // SAFETY: as above.
    let theirs = |name: &CStr| unsafe { ffi::sqlite3_compileoption_used(name.as_ptr()) };
    for name in
        [c"OMIT_AUTOINIT", c"OMIT_WAL", c"OMIT_LOCALTIME", c"ENABLE_FTS5", c"DQS=0", c"TEMP_STORE=3", c"THREADSAFE=0"]
    {
        assert_eq!(ours(name), 1, "{name:?}");
    }
    assert_eq!(theirs(c"OMIT_AUTOINIT"), 0, "both names reach the same SQLite");
    assert_eq!(theirs(c"OMIT_WAL"), 0);
    // The other one works in the same program, with its own settings.
    let other = rusqlite::Connection::open_in_memory().expect("the other SQLite opens");
    assert_eq!(other.query_row("SELECT 6 * 7", [], |row| row.get::<_, i64>(0)), Ok(42));
}
