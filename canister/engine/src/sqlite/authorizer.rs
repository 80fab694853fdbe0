//! What a statement may do, decided when it is prepared.
//!
//! The authorizer is set once for the life of the connection, since setting another makes every prepared statement
//! stale; [`Hooks::authority`](super::Hooks) switches it.
use super::sys;

/// Whose statement is being prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The engine's own: transactions and the settings of a new connection.
    Engine,
    /// Everybody else's.
    Caller,
}

/// PRAGMAs that a caller may use, and whether with an argument. The rest would change how the engine works, or are
/// of no use here. FTS5 itself asks for `data_version`.
const PRAGMAS: &[(&str, bool)] = &[
    ("application_id", true),
    ("collation_list", false),
    ("compile_options", false),
    ("data_version", false),
    ("database_list", false),
    ("defer_foreign_keys", true),
    ("encoding", false),
    ("foreign_key_check", true),
    ("foreign_key_list", true),
    ("freelist_count", false),
    ("function_list", false),
    ("index_info", true),
    ("index_list", true),
    ("index_xinfo", true),
    ("integrity_check", true),
    ("page_count", false),
    ("page_size", false),
    ("pragma_list", false),
    ("quick_check", true),
    ("schema_version", false),
    ("table_info", true),
    ("table_list", true),
    ("table_xinfo", true),
    ("user_version", true),
];

/// Functions that reach outside the database.
const FUNCTIONS_DENIED: &[&str] = &["load_extension", "fts3_tokenizer", "edit", "readfile", "writefile"];

/// Whether the action may be done: `code` and the first two texts as SQLite hands them to an authorizer, and the name
/// of the database that it concerns.
pub(super) fn allows(
    authority: Authority,
    code: i32,
    first: Option<&str>,
    second: Option<&str>,
    database: Option<&str>,
) -> bool {
    if authority == Authority::Engine {
        return true;
    }
    match code {
        // A TEMP table named like one of the database's would stand in front of it for every later statement.
        sys::SQLITE_CREATE_TEMP_INDEX
        | sys::SQLITE_CREATE_TEMP_TABLE
        | sys::SQLITE_CREATE_TEMP_TRIGGER
        | sys::SQLITE_CREATE_TEMP_VIEW
        | sys::SQLITE_DROP_TEMP_INDEX
        | sys::SQLITE_DROP_TEMP_TABLE
        | sys::SQLITE_DROP_TEMP_TRIGGER
        | sys::SQLITE_DROP_TEMP_VIEW => false,
        sys::SQLITE_SELECT | sys::SQLITE_READ => true,
        // ALTER TABLE looks there for triggers and views to rename. SQLite itself refuses a caller's own UPDATE.
        sys::SQLITE_UPDATE if first == Some("sqlite_temp_master") => true,
        _ if database == Some("temp") => false,
        sys::SQLITE_ATTACH | sys::SQLITE_DETACH | sys::SQLITE_TRANSACTION | sys::SQLITE_SAVEPOINT => false,
        sys::SQLITE_PRAGMA => first.is_some_and(|name| {
            PRAGMAS
                .iter()
                .any(|(pragma, argument)| pragma.eq_ignore_ascii_case(name) && (*argument || second.is_none()))
        }),
        sys::SQLITE_FUNCTION => {
            second.is_some_and(|name| !FUNCTIONS_DENIED.iter().any(|denied| denied.eq_ignore_ascii_case(name)))
        }
        _ => true,
    }
}

/// What was asked for, and what to do instead: the answer to somebody whose statement was refused.
#[cold]
pub(super) fn describe(code: i32, first: Option<&str>, second: Option<&str>) -> String {
    let first = first.unwrap_or_default();
    match code {
        sys::SQLITE_ATTACH => {
            "ATTACH: a database stands alone (VACUUM attaches one too: call Database::vacuum instead)".to_owned()
        }
        sys::SQLITE_DETACH => "DETACH: a database stands alone".to_owned(),
        sys::SQLITE_TRANSACTION => {
            format!("{first}: transactions begin and end with Database::write")
        }
        sys::SQLITE_SAVEPOINT => format!("SAVEPOINT ({first}): use Writer::savepoint"),
        sys::SQLITE_PRAGMA => match second {
            Some(argument) => format!("PRAGMA {first} = {argument}"),
            None => format!("PRAGMA {first}"),
        },
        sys::SQLITE_FUNCTION => format!("the function {}", second.unwrap_or_default()),
        _ => format!("objects of the schema temp ({first}): they would stand in front of the database's own"),
    }
}
