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
    /// That of the program that the engine is part of.
    Caller,
    /// That of somebody for whom the program runs statements.
    Restricted(&'static Policy),
}

/// What the statements of somebody else may touch: those that a program runs for its users. It is asked when a statement
/// is prepared, and again when one is prepared anew while it runs.
///
/// Two policies are the same if they are the same static.
#[derive(Debug)]
pub struct Policy {
    /// Whether a table, view or virtual table may be read. The name can be in any case.
    pub may_read: fn(&str) -> bool,
    /// Whether rows of a table may be changed, and whether its name may be created, altered or dropped.
    pub may_write: fn(&str) -> bool,
    /// What may be changed at all.
    pub changes: Changes,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Policy {}

/// What a [`Policy`] lets be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changes {
    /// Nothing.
    Nothing,
    /// Rows.
    Rows,
    /// Rows and the schema.
    Schema,
}

/// PRAGMAs that change nothing and look at the schema alone.
const PRAGMAS_HARMLESS: &[&str] = &[
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "page_count",
    "page_size",
    "pragma_list",
    "schema_version",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Of these, those whose argument is a setting.
const PRAGMAS_SET: &[&str] = &["application_id", "user_version"];

/// Modules of which virtual tables may be created under a policy.
const MODULES: &[&str] = &["fts5", "fts5vocab"];

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
    match authority {
        Authority::Engine => return true,
        Authority::Caller => {}
        Authority::Restricted(policy) => {
            if !policy_allows(policy, code, first, second) {
                return false;
            }
        }
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

/// The same of a policy. What it lets pass must also be allowed to everybody.
fn policy_allows(policy: &Policy, code: i32, first: Option<&str>, second: Option<&str>) -> bool {
    let named = |name: Option<&str>, may: fn(&str) -> bool| name.is_some_and(may);
    let schema = policy.changes == Changes::Schema;
    match code {
        sys::SQLITE_SELECT | sys::SQLITE_FUNCTION | sys::SQLITE_RECURSIVE => true,
        sys::SQLITE_READ => named(first, policy.may_read),
        sys::SQLITE_INSERT | sys::SQLITE_UPDATE | sys::SQLITE_DELETE => {
            // SQLite's own tables change with the schema.
            let own =
                first.is_some_and(|name| name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_")));
            if own { schema } else { policy.changes >= Changes::Rows && named(first, policy.may_write) }
        }
        sys::SQLITE_CREATE_INDEX | sys::SQLITE_CREATE_TRIGGER | sys::SQLITE_DROP_INDEX | sys::SQLITE_DROP_TRIGGER => {
            schema && named(first, policy.may_write) && named(second, policy.may_write)
        }
        sys::SQLITE_CREATE_TABLE
        | sys::SQLITE_CREATE_VIEW
        | sys::SQLITE_DROP_TABLE
        | sys::SQLITE_DROP_VIEW
        | sys::SQLITE_DROP_VTABLE => schema && named(first, policy.may_write),
        sys::SQLITE_CREATE_VTABLE => {
            let module = second.is_some_and(|name| MODULES.iter().any(|module| module.eq_ignore_ascii_case(name)));
            schema && module && named(first, policy.may_write)
        }
        sys::SQLITE_ALTER_TABLE => schema && named(second, policy.may_write),
        sys::SQLITE_ANALYZE | sys::SQLITE_REINDEX => schema,
        sys::SQLITE_PRAGMA => {
            let among =
                |list: &[&str]| first.is_some_and(|name| list.iter().any(|pragma| pragma.eq_ignore_ascii_case(name)));
            schema || (among(PRAGMAS_HARMLESS) && (second.is_none() || !among(PRAGMAS_SET)))
        }
        _ => false,
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
        sys::SQLITE_READ => format!("reading the table {first}"),
        _ if first.starts_with("sqlite_temp_") => temporary(first),
        sys::SQLITE_INSERT => format!("INSERT into the table {first}"),
        sys::SQLITE_UPDATE => format!("UPDATE of the table {first}"),
        sys::SQLITE_DELETE => format!("DELETE from the table {first}"),
        sys::SQLITE_CREATE_INDEX
        | sys::SQLITE_CREATE_TABLE
        | sys::SQLITE_CREATE_TRIGGER
        | sys::SQLITE_CREATE_VIEW
        | sys::SQLITE_CREATE_VTABLE => format!("creating {first}: a change of the schema"),
        sys::SQLITE_DROP_INDEX
        | sys::SQLITE_DROP_TABLE
        | sys::SQLITE_DROP_TRIGGER
        | sys::SQLITE_DROP_VIEW
        | sys::SQLITE_DROP_VTABLE => format!("dropping {first}: a change of the schema"),
        sys::SQLITE_ALTER_TABLE => format!("ALTER TABLE {}: a change of the schema", second.unwrap_or_default()),
        sys::SQLITE_ANALYZE | sys::SQLITE_REINDEX => format!("ANALYZE or REINDEX of {first}: a change of the schema"),
        _ => temporary(first),
    }
}

fn temporary(name: &str) -> String {
    format!("objects of the schema temp ({name}): they would stand in front of the database's own")
}
