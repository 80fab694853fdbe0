//! Every limit of the service, in one place. Sizes are bytes; `docs` and `candid/icsql.did` repeat them.
use icsql_engine::limits as engine;

/// Smallest key.
pub const KEY_BYTES_MIN: usize = 1;
/// Largest key. Keys sit in interior pages of the b-tree: long ones make every look-up deeper.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Largest value: with a key of any size and the Candid around it, it fits an ingress message and a reply.
pub const VALUE_BYTES_MAX: usize = 1_900_000;
/// Largest note.
pub const NOTE_BYTES_MAX: usize = 4_096;
/// Keys of one `kv_get_many` or `kv_delete_many`.
pub const KEYS_MAX: usize = 1_000;
/// Operations of one `kv_write`.
pub const OPERATIONS_MAX: usize = 1_000;

/// Bytes of a part of a large value. It is part of what is stored, so it never changes. An append writes the last part
/// anew, so parts are much smaller than messages.
pub const VALUE_PART_BYTES: usize = 65_536;
/// Largest value that is appended to: removing one reads its pages, which takes 0.6 billion instructions for this many.
pub const VALUE_IN_PARTS_BYTES_MAX: u64 = 256 * 1_024 * 1_024;
/// Parts of large values that one call removes: a message may touch 2 GiB of stable memory, and this is half of it.
pub const REMOVED_PARTS_MAX: u64 = 1_024 * 1_024 * 1_024 / VALUE_PART_BYTES as u64;

/// Entries of a page of `kv_list` that does not say how many.
pub const LIST_ENTRIES_DEFAULT: usize = 100;
/// Most entries of a page.
pub const LIST_ENTRIES_MAX: usize = 1_000;
/// Most bytes of a page: those of keys, values and notes, and [`LIST_ENTRY_BYTES`] for each entry.
pub const LIST_BYTES_MAX: usize = REPLY_BYTES_MAX - 2 * KEY_BYTES_MAX;
/// Bytes that an entry counts for besides its texts: numbers, lengths and tags as Candid has them.
pub const LIST_ENTRY_BYTES: usize = 48;
/// Keys that one page looks at, those of expired entries included.
pub const LIST_KEYS_SCANNED_MAX: usize = 10_000;

/// Expired entries that a write removes beside its own work.
pub const SWEEP_ENTRIES_PER_WRITE: u32 = 4;
/// Parts of expired values that a write removes beside its own work.
pub const SWEEP_PARTS_PER_WRITE: u64 = 16;
/// Expired entries that the timer removes at a time.
pub const SWEEP_ENTRIES_PER_TIMER: u32 = 1_000;
/// Parts of expired values that the timer removes at a time.
pub const SWEEP_PARTS_PER_TIMER: u64 = 1_024;
/// How long after an entry has expired the timer comes, in nanoseconds, so that it finds more than one.
pub const SWEEP_DELAY_NS: u64 = 60_000_000_000;
/// How soon the timer comes again if it left something, in nanoseconds.
pub const SWEEP_AGAIN_NS: u64 = 1_000_000_000;

/// What the platform lets into a canister in one message.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1_024 * 1_024;
/// Largest reply that is built. The platform's limit is 2 MiB when a call is replicated, whatever the method's mode.
pub const REPLY_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1_024;

/// Room for the Candid around the values of an argument: magic, type table, lengths, options that a newer caller sends.
pub const ARGUMENT_EXTRA_BYTES: usize = 4_096;
/// Largest argument of a method that takes a key.
pub const KEY_ARGUMENT_BYTES_MAX: usize = KEY_BYTES_MAX + ARGUMENT_EXTRA_BYTES;
/// Largest argument of `kv_set_note`.
pub const NOTE_ARGUMENT_BYTES_MAX: usize = KEY_BYTES_MAX + NOTE_BYTES_MAX + ARGUMENT_EXTRA_BYTES;
/// Largest argument of `kv_get_many`; each key has a length of up to two bytes.
pub const KEYS_ARGUMENT_BYTES_MAX: usize = KEYS_MAX * (KEY_BYTES_MAX + 2) + ARGUMENT_EXTRA_BYTES;
/// Largest argument of `kv_list`: three texts and a cursor.
pub const LIST_ARGUMENT_BYTES_MAX: usize = 4 * KEY_BYTES_MAX + ARGUMENT_EXTRA_BYTES;
/// Largest argument of methods that take values: all that the platform lets in, so that a value that is too large is
/// named as such.
pub const PUT_ARGUMENT_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// Largest argument of a method that takes none or a number, and of init and post_upgrade.
pub const SMALL_ARGUMENT_BYTES_MAX: usize = ARGUMENT_EXTRA_BYTES;

/// Arguments up to this size are read into the stack, larger ones into the heap.
pub const STACK_ARGUMENT_BYTES: usize = KEY_BYTES_MAX + 512;

/// What the candid crate may spend on values that this version does not know, about one unit a byte.
pub const SKIPPING_QUOTA: usize = 10_000;
/// What the candid crate may spend on an argument besides twice its size, about one unit a byte. Skipped values count
/// fifty times here.
pub const DECODING_QUOTA: usize = 50 * SKIPPING_QUOTA + 20_000;

/// Stable memory that a query may touch, in bytes. A message that is executed replicated may touch twice as much.
const QUERY_STABLE_BYTES_MAX: u64 = 1_024 * 1_024 * 1_024;
/// Instructions for a read that may have to go through the whole database, in a query.
///
/// It is not the 5 billion of a query that bind: each byte read from stable memory costs an instruction, so that this
/// many cannot touch more of it than a query may. What is left is for the page that is being read when the budget ends,
/// and for the reply.
pub const QUERY_INSTRUCTIONS_MAX: u64 = 1_000_000_000;
/// The same when the method is called as an update.
pub const REPLICATED_INSTRUCTIONS_MAX: u64 = 2 * QUERY_INSTRUCTIONS_MAX;
/// Estimate of what checking a page costs, in instructions: measured 70,000 with 30 rows on it. An integrity check
/// goes by it to decide whether the database as a whole can be checked at once.
pub const CHECK_INSTRUCTIONS_PER_PAGE: u64 = 100_000;
/// Bytes of the texts of problems that one reply holds.
pub const PROBLEM_BYTES_MAX: usize = 256 * 1_024;
/// Bytes of one problem's text; the rest is cut off.
pub const PROBLEM_TEXT_BYTES_MAX: usize = 4_096;
/// Bytes of the names of tables that one reply holds, for each of its two lists.
pub const TABLE_NAMES_BYTES_MAX: usize = 512 * 1_024;

/// What one `db_refresh_checksum_chunk` scans when it is not told, in bytes of the image.
pub const SCAN_BYTES_DEFAULT: u64 = 64 * 1_024 * 1_024;
/// The most that it scans: a message may touch 2 GiB of stable memory, and reading a byte costs 1.5 instructions.
pub const SCAN_BYTES_MAX: u64 = 512 * 1_024 * 1_024;
/// Damaged pages that one reply lists.
pub const DAMAGED_PAGES_LISTED_MAX: usize = 1_000;

// A value that is stored can be read back alone, and the largest batch of keys can be asked for.
const _: () = assert!(VALUE_BYTES_MAX + 128 <= REPLY_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_MAX + KEY_BYTES_MAX + ARGUMENT_EXTRA_BYTES <= PUT_ARGUMENT_BYTES_MAX);
const _: () = assert!(KEYS_ARGUMENT_BYTES_MAX <= MESSAGE_BYTES_MAX && NOTE_ARGUMENT_BYTES_MAX <= MESSAGE_BYTES_MAX);
// An entry with its value fits a page.
const _: () = assert!(VALUE_BYTES_MAX + KEY_BYTES_MAX + NOTE_BYTES_MAX + LIST_ENTRY_BYTES <= LIST_BYTES_MAX);
// The largest value can be removed, and what a step of the timer removes.
const _: () = assert!(VALUE_IN_PARTS_BYTES_MAX / VALUE_PART_BYTES as u64 <= REMOVED_PARTS_MAX);
const _: () = assert!(SWEEP_PARTS_PER_WRITE <= SWEEP_PARTS_PER_TIMER && SWEEP_PARTS_PER_TIMER <= REMOVED_PARTS_MAX);
const _: () = assert!(LIST_ENTRIES_DEFAULT <= LIST_ENTRIES_MAX && LIST_ENTRIES_MAX <= LIST_KEYS_SCANNED_MAX);
// Lengths of keys and of a batch fit two bytes of LEB128.
const _: () = assert!(KEY_BYTES_MAX < 1 << 14 && KEYS_MAX < 1 << 14);
const _: () = assert!(KEY_BYTES_MIN <= KEY_BYTES_MAX && KEY_BYTES_MAX + 64 <= STACK_ARGUMENT_BYTES);
const _: () = assert!(PROBLEM_BYTES_MAX + 2 * TABLE_NAMES_BYTES_MAX + DAMAGED_PAGES_LISTED_MAX * 64 < REPLY_BYTES_MAX);
const _: () = assert!(SCAN_BYTES_DEFAULT <= SCAN_BYTES_MAX);
const _: () = assert!(QUERY_INSTRUCTIONS_MAX <= QUERY_STABLE_BYTES_MAX);

/// Principals that have a role.
pub const ROLES_MAX: usize = 10_000;

/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;
/// How long a key is remembered, in nanoseconds: a day.
pub const IDEMPOTENCY_NS: u64 = 24 * 60 * 60 * 1_000_000_000;
/// Largest reply that is remembered.
pub const IDEMPOTENT_REPLY_BYTES_MAX: usize = 65_536;
/// Keys that are remembered at a time.
pub const IDEMPOTENCY_KEYS_MAX: usize = 100_000;
/// Keys whose day is over that a write with a key forgets.
pub const IDEMPOTENCY_KEYS_SWEPT: usize = 20;

// ---- SQL
/// Bytes of one statement, or of one migration.
pub const SQL_BYTES_MAX: usize = engine::SQL_BYTES_MAX as usize;
/// Parameters of a statement.
pub const PARAMS_MAX: usize = engine::PARAMETERS_MAX as usize;
/// Statements of one `sql_batch`.
pub const SQL_STATEMENTS_MAX: usize = 1_000;
/// Largest argument of a method that takes SQL or its parameters: all that the platform lets in.
pub const SQL_ARGUMENT_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// Room in a reply for what is not rows: the type table, numbers, a cursor.
pub const REPLY_EXTRA_BYTES: usize = 4_096;
/// Rows of a reply unless the caller asks for more.
pub const SQL_ROWS_DEFAULT: u64 = 1_000;
/// The most rows that a caller may ask for.
pub const SQL_ROWS_MAX: u64 = 100_000;
/// Bytes of the rows of a reply: texts and blobs, 8 for each number. It is also what they are unless a caller asks for less.
pub const SQL_RESULT_BYTES_MAX: u64 = (REPLY_BYTES_MAX - REPLY_EXTRA_BYTES) as u64;
/// Instructions of a write unless the caller asks for more.
pub const SQL_WRITE_INSTRUCTIONS_DEFAULT: u64 = 2_000_000_000;
/// The most that a caller may ask for: half of what the platform gives an update. The other half is for the reply, and for
/// what a statement runs over between two looks at the budget.
pub const SQL_WRITE_INSTRUCTIONS_MAX: u64 = 20_000_000_000;
/// Pages that a write may change unless the caller asks for more.
pub const SQL_WRITE_PAGES_DEFAULT: u64 = 16_384;
/// The most pages that a caller may ask for. They are held in the heap twice, changed and as they were.
pub const SQL_WRITE_PAGES_MAX: u64 = 65_536;
/// The most instructions of a write to an image of this size. A message may touch 2 GiB of stable memory. It cannot if the
/// image has but one, and with 2 billion instructions it cannot either, as each byte that is read costs one.
pub const fn sql_write_instructions_max(image_bytes: u64) -> u64 {
    if image_bytes <= QUERY_STABLE_BYTES_MAX { SQL_WRITE_INSTRUCTIONS_MAX } else { REPLICATED_INSTRUCTIONS_MAX }
}
/// Migrations of one database by `sql_migrate`.
pub const SQL_MIGRATIONS_MAX: usize = 1_000;
/// Bytes of a migration's name.
pub const SQL_MIGRATION_NAME_BYTES_MAX: usize = 200;

/// Named queries.
pub const QUERIES_MAX: usize = 200;
/// Bytes of the name of a query or of one of its parameters.
pub const QUERY_NAME_BYTES_MAX: usize = 128;
/// Bytes of a query's text: one that stays prepared.
pub const QUERY_SQL_BYTES_MAX: usize = engine::CACHED_SQL_BYTES_MAX;
/// Parameters of a named query.
pub const QUERY_PARAMS_MAX: usize = 100;
/// Bytes of what is said about a query that does not work.
pub const QUERY_TEXT_BYTES_MAX: usize = 4_096;
/// Largest argument of `query_define`.
pub const QUERY_DEFINE_ARGUMENT_BYTES_MAX: usize =
    QUERY_SQL_BYTES_MAX + (QUERY_PARAMS_MAX + 1) * (QUERY_NAME_BYTES_MAX + 16) + ARGUMENT_EXTRA_BYTES;

const _: () = assert!(SQL_ROWS_DEFAULT <= SQL_ROWS_MAX && SQL_WRITE_PAGES_DEFAULT <= SQL_WRITE_PAGES_MAX);
const _: () = assert!(SQL_WRITE_INSTRUCTIONS_DEFAULT <= sql_write_instructions_max(u64::MAX));
// A value of the key-value store fits a page of rows.
const _: () = assert!((VALUE_BYTES_MAX + KEY_BYTES_MAX) as u64 + 64 <= SQL_RESULT_BYTES_MAX);

/// What the candid crate may spend on each byte of SQL and its parameters: a number takes 9 bytes.
pub const SQL_DECODING_UNITS_PER_BYTE: usize = 10;
/// Bytes of the cursor of a page of rows.
pub const SQL_CURSOR_BYTES: usize = 1 + 8 + 8 + 16;

/// Tables of a join: SQLite's own limit, which cannot be set.
const JOIN_TABLES_MAX: u64 = 64;

/// All limits that a caller can meet, by the names that `db_meta` has for them and docs/limits.md explains. A name stays,
/// and more may come at any place.
pub const NAMED: &[(&str, u64)] = &[
    ("argument_bytes_max", MESSAGE_BYTES_MAX as u64),
    ("reply_bytes_max", REPLY_BYTES_MAX as u64),
    ("sql_bytes_max", SQL_BYTES_MAX as u64),
    ("sql_params_max", PARAMS_MAX as u64),
    ("sql_statements_max", SQL_STATEMENTS_MAX as u64),
    ("sql_rows_default", SQL_ROWS_DEFAULT),
    ("sql_rows_max", SQL_ROWS_MAX),
    ("sql_result_bytes_max", SQL_RESULT_BYTES_MAX),
    ("sql_cursor_bytes", SQL_CURSOR_BYTES as u64),
    ("sql_query_instructions_max", QUERY_INSTRUCTIONS_MAX),
    ("sql_query_as_update_instructions_max", REPLICATED_INSTRUCTIONS_MAX),
    ("sql_write_instructions_default", SQL_WRITE_INSTRUCTIONS_DEFAULT),
    ("sql_write_instructions_max", SQL_WRITE_INSTRUCTIONS_MAX),
    ("sql_write_large_image_bytes", QUERY_STABLE_BYTES_MAX),
    ("sql_write_large_image_instructions_max", sql_write_instructions_max(u64::MAX)),
    ("sql_write_pages_default", SQL_WRITE_PAGES_DEFAULT),
    ("sql_write_pages_max", SQL_WRITE_PAGES_MAX),
    ("sql_migrations_max", SQL_MIGRATIONS_MAX as u64),
    ("sql_migration_name_bytes_max", SQL_MIGRATION_NAME_BYTES_MAX as u64),
    ("queries_max", QUERIES_MAX as u64),
    ("query_name_bytes_max", QUERY_NAME_BYTES_MAX as u64),
    ("query_sql_bytes_max", QUERY_SQL_BYTES_MAX as u64),
    ("query_params_max", QUERY_PARAMS_MAX as u64),
    ("sqlite_value_bytes_max", engine::VALUE_BYTES_MAX as u64),
    ("sqlite_columns_max", engine::COLUMNS_MAX as u64),
    ("sqlite_expression_depth_max", engine::EXPRESSION_DEPTH_MAX as u64),
    ("sqlite_compound_terms_max", engine::COMPOUND_TERMS_MAX as u64),
    ("sqlite_join_tables_max", JOIN_TABLES_MAX),
    ("sqlite_statement_steps_max", engine::VDBE_OPS_MAX as u64),
    ("sqlite_function_arguments_max", engine::FUNCTION_ARGUMENTS_MAX as u64),
    ("sqlite_like_pattern_bytes_max", engine::LIKE_PATTERN_BYTES_MAX as u64),
    ("sqlite_trigger_depth_max", engine::TRIGGER_DEPTH_MAX as u64),
    ("key_bytes_min", KEY_BYTES_MIN as u64),
    ("key_bytes_max", KEY_BYTES_MAX as u64),
    ("value_bytes_max", VALUE_BYTES_MAX as u64),
    ("value_in_parts_bytes_max", VALUE_IN_PARTS_BYTES_MAX),
    ("value_part_bytes", VALUE_PART_BYTES as u64),
    ("removed_parts_max", REMOVED_PARTS_MAX),
    ("note_bytes_max", NOTE_BYTES_MAX as u64),
    ("keys_per_call_max", KEYS_MAX as u64),
    ("operations_max", OPERATIONS_MAX as u64),
    ("list_entries_default", LIST_ENTRIES_DEFAULT as u64),
    ("list_entries_max", LIST_ENTRIES_MAX as u64),
    ("list_bytes_max", LIST_BYTES_MAX as u64),
    ("list_keys_scanned_max", LIST_KEYS_SCANNED_MAX as u64),
    ("expires_at_ns_max", i64::MAX as u64),
    ("roles_max", ROLES_MAX as u64),
    ("idempotency_key_bytes_max", IDEMPOTENCY_KEY_BYTES_MAX as u64),
    ("idempotency_ns", IDEMPOTENCY_NS),
    ("idempotent_reply_bytes_max", IDEMPOTENT_REPLY_BYTES_MAX as u64),
    ("idempotency_keys_max", IDEMPOTENCY_KEYS_MAX as u64),
    ("scan_bytes_default", SCAN_BYTES_DEFAULT),
    ("scan_bytes_max", SCAN_BYTES_MAX),
    ("damaged_pages_listed_max", DAMAGED_PAGES_LISTED_MAX as u64),
];
