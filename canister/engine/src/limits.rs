//! Every limit of the engine, in one place. Those of the stable formats are defined with the format.

pub use crate::stable::superblock::{IMAGE_PAGES_MAX, PAGE_BYTES_MAX, PAGE_BYTES_MIN};

/// Bytes of a page of a new database. 8 KiB would add 6,000 instructions to a one-row write, 16 KiB 18,000; 2 KiB
/// saves 2,000 but makes bulk work a tenth dearer.
pub const PAGE_BYTES_DEFAULT: u32 = 4_096;

/// Bytes of heap that the page cache of a database may take unless told otherwise.
pub const CACHE_BYTES_DEFAULT: u64 = 256 * 1024 * 1024;
/// Smallest page cache, in pages: a write that touches every level of a few b-trees must fit.
pub const CACHE_PAGES_MIN: u32 = 64;

/// Bytes of SQL text in one statement (`SQLITE_LIMIT_SQL_LENGTH`).
pub const SQL_BYTES_MAX: i32 = 1_000_000;
/// Bytes of one value or row (`SQLITE_LIMIT_LENGTH`): more than a message can carry, less than the heap.
pub const VALUE_BYTES_MAX: i32 = 256 * 1024 * 1024;
/// Columns of a table, result or index (`SQLITE_LIMIT_COLUMN`).
pub const COLUMNS_MAX: i32 = 500;
/// Depth of an expression (`SQLITE_LIMIT_EXPR_DEPTH`): the parser recurses, and the stack of a Wasm module is 1 MiB.
pub const EXPRESSION_DEPTH_MAX: i32 = 200;
/// Terms of a compound SELECT (`SQLITE_LIMIT_COMPOUND_SELECT`).
pub const COMPOUND_TERMS_MAX: i32 = 500;
/// Instructions of a prepared statement (`SQLITE_LIMIT_VDBE_OP`).
pub const VDBE_OPS_MAX: i32 = 1_000_000;
/// Arguments of a function (`SQLITE_LIMIT_FUNCTION_ARG`).
pub const FUNCTION_ARGUMENTS_MAX: i32 = 100;
/// Bytes of a LIKE or GLOB pattern (`SQLITE_LIMIT_LIKE_PATTERN_LENGTH`): matching is quadratic in it.
pub const LIKE_PATTERN_BYTES_MAX: i32 = 1_000;
/// Highest number of a parameter (`SQLITE_LIMIT_VARIABLE_NUMBER`).
pub const PARAMETERS_MAX: i32 = 1_000;
/// Depth of triggers that fire triggers (`SQLITE_LIMIT_TRIGGER_DEPTH`).
pub const TRIGGER_DEPTH_MAX: i32 = 50;
/// Attached databases (`SQLITE_LIMIT_ATTACHED`): one, which VACUUM needs; the authorizer refuses ATTACH itself.
pub const ATTACHED_MAX: i32 = 1;
/// Auxiliary threads of a statement (`SQLITE_LIMIT_WORKER_THREADS`).
pub const WORKER_THREADS_MAX: i32 = 0;

/// Virtual machine steps between two looks at the instruction budget. At about 20 to 200 instructions a step it
/// bounds how far a statement can run over.
pub const BUDGET_STEPS_BETWEEN_CHECKS: i32 = 1_000;

/// Instructions that a COMMIT is expected to take at most, for [`Budget::instructions`](crate::Budget::instructions):
/// what it takes to hash and write its pages, with half as much again on top of what was measured.
pub const fn commit_reserve(dirty_pages: u32, page_bytes: u64) -> u64 {
    let page = COMMIT_INSTRUCTIONS_PER_PAGE + COMMIT_INSTRUCTIONS_PER_BYTE * page_bytes;
    COMMIT_INSTRUCTIONS + dirty_pages as u64 * page
}
/// Instructions of a COMMIT that do not depend on its pages.
pub const COMMIT_INSTRUCTIONS: u64 = 15_000;
/// Instructions of a COMMIT for each page that it writes.
pub const COMMIT_INSTRUCTIONS_PER_PAGE: u64 = 4_000;
/// Instructions of a COMMIT for each byte of the pages that it writes.
pub const COMMIT_INSTRUCTIONS_PER_BYTE: u64 = 3;

/// Statements that stay prepared by their text, beside those of [`Sql`](crate::Sql).
pub const CACHED_STATEMENTS_MAX: usize = 64;
/// Bytes of the longest text whose statement stays prepared.
pub const CACHED_SQL_BYTES_MAX: usize = 4_096;

/// Columns of a [`KeyedTable`](crate::KeyedTable), at most.
pub const KEYED_COLUMNS_MAX: usize = 16;
/// Bytes of the values of a row that is written by its key: some below [`VALUE_BYTES_MAX`], for what a record adds to them.
pub const KEYED_ROW_BYTES_MAX: usize = VALUE_BYTES_MAX as usize - 1_024;
/// Bytes of a buffer that is kept from one row to the next.
pub const KEYED_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the largest image that VACUUM rebuilds. It needs as much heap twice: for the copy, and for the changed pages.
pub const VACUUM_IMAGE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Bytes of an image of ic-sqlite-vfs that is adopted in one message: 2 GiB of stable memory may be touched in one, and
/// pages that are opened on trial or with the database are touched again.
pub const ADOPT_AT_ONCE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Most migrations of one database.
pub const MIGRATIONS_MAX: usize = 10_000;

const _: () = assert!(PAGE_BYTES_MIN <= PAGE_BYTES_DEFAULT && PAGE_BYTES_DEFAULT <= PAGE_BYTES_MAX);
const _: () = assert!(PAGE_BYTES_DEFAULT.is_power_of_two());
const _: () = assert!(CACHE_BYTES_DEFAULT / PAGE_BYTES_MAX as u64 >= CACHE_PAGES_MIN as u64);
const _: () = assert!(SQL_BYTES_MAX <= VALUE_BYTES_MAX && LIKE_PATTERN_BYTES_MAX <= SQL_BYTES_MAX);
const _: () = assert!(KEYED_BUFFER_BYTES_MAX >= PAGE_BYTES_MAX as usize);
