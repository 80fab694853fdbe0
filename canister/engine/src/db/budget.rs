//! What a call may use, and what it used.
use core::fmt;

/// What a call of [`Database::read_within`](crate::Database::read_within) or
/// [`Database::write_within`](crate::Database::write_within) may use. Each limit is the largest that is allowed.
///
/// ```
/// use icsql_engine::Budget;
/// let budget = Budget { rows: 1_000, instructions: 100_000_000, ..Budget::UNLIMITED };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Instructions from the start of the call on. A statement is looked at every
    /// [`BUDGET_STEPS_BETWEEN_CHECKS`](crate::limits::BUDGET_STEPS_BETWEEN_CHECKS) steps of SQLite's virtual machine and
    /// can overrun by what these cost. A write must also leave what its COMMIT is expected to take
    /// ([`commit_reserve`](crate::limits::commit_reserve)).
    pub instructions: u64,
    /// Rows that all statements hand out.
    pub rows: u64,
    /// Bytes of these rows: those of texts and blobs, and 8 for each number.
    pub result_bytes: u64,
    /// Bytes of the text of one statement, or of one batch.
    pub sql_bytes: u64,
    /// Bytes of one parameter or of one value of a row.
    pub value_bytes: u64,
    /// Changed pages that a transaction holds: looked at like the instructions, and exactly at COMMIT.
    pub dirty_pages: u64,
    /// Bytes of the image that a COMMIT writes: its changed pages times their size.
    pub changed_bytes: u64,
}

impl Budget {
    /// No limits but those of the engine ([`limits`](crate::limits)).
    pub const UNLIMITED: Self = Self {
        instructions: u64::MAX,
        rows: u64::MAX,
        result_bytes: u64::MAX,
        sql_bytes: u64::MAX,
        value_bytes: u64::MAX,
        dirty_pages: u64::MAX,
        changed_bytes: u64::MAX,
    };
}

impl Default for Budget {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// What a [`Budget`] limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limited {
    /// [`Budget::instructions`].
    Instructions,
    /// [`Budget::rows`].
    Rows,
    /// [`Budget::result_bytes`].
    ResultBytes,
    /// [`Budget::sql_bytes`].
    SqlBytes,
    /// [`Budget::value_bytes`].
    ValueBytes,
    /// [`Budget::dirty_pages`].
    DirtyPages,
    /// [`Budget::changed_bytes`].
    ChangedBytes,
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::Rows => "rows",
            Self::ResultBytes => "bytes of rows",
            Self::SqlBytes => "bytes of SQL",
            Self::ValueBytes => "bytes of one value",
            Self::DirtyPages => "changed pages",
            Self::ChangedBytes => "bytes to commit",
        })
    }
}

/// A limit that a call met. A write that met one has changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which limit.
    pub what: Limited,
    /// The limit.
    pub limit: u64,
    /// What was needed when the call was stopped; the whole call may need more.
    pub needed: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.what {
            Limited::Instructions => "ask for less at a time, or add an index",
            Limited::Rows => "ask for less with LIMIT or WHERE",
            Limited::ResultBytes => "ask for fewer rows or columns",
            Limited::SqlBytes => "hand values over as parameters",
            Limited::ValueBytes => "split the value",
            Limited::DirtyPages | Limited::ChangedBytes => "change fewer rows in one transaction",
        };
        write!(f, "the limit of {} {} was met ({} needed): {advice}", self.limit, self.what, self.needed)
    }
}

/// What a call used: counted whether it succeeded or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Instructions of the whole call.
    pub instructions: u64,
    /// Of these, for preparing statements.
    pub prepare_instructions: u64,
    /// For binding parameters.
    pub bind_instructions: u64,
    /// For running statements, with what the caller's closures do with each row.
    pub execute_instructions: u64,
    /// For COMMIT.
    pub commit_instructions: u64,
    /// Statements that were run.
    pub statements: u64,
    /// Instructions of SQLite's virtual machine.
    pub vm_steps: u64,
    /// Steps forward in scans of a whole table: a large number asks for an index.
    pub full_scan_steps: u64,
    /// Sorts that no index saved.
    pub sorts: u64,
    /// Rows handed out.
    pub rows: u64,
    /// Bytes of these rows, as [`Budget::result_bytes`] counts them.
    pub result_bytes: u64,
    /// Pages of the image that were read from stable memory, and not found in the page cache.
    pub pages_read: u64,
    /// Pages of the image that were written to stable memory.
    pub pages_written: u64,
    /// Reads of stable memory, page hashes included.
    pub stable_reads: u64,
    /// Writes to stable memory; page hashes, the commit's mark and the superblock included.
    pub stable_writes: u64,
    /// The transaction was committed and in the end took more instructions than the budget. It stands.
    pub over_budget: bool,
}
