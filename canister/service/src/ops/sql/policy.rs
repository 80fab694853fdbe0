//! What the SQL of callers may touch.
//!
//! Tables called `kv`, `kv_…` and `icsql_…` are the service's: nobody writes them by SQL, and only admins read those
//! other than `kv`. What the authorizer cannot see when a statement is prepared (a table renamed to such a name, a foreign
//! key that refers to one) is found after each change of the schema, before it is committed.
use crate::error::Failure;
use core::ops::ControlFlow;
use icsql_engine::{Changes, Policy, Reader, sha256_of};
use icsql_types::{Error, Role};

/// Whether a name is one of the service's.
pub fn is_service(name: &str) -> bool {
    let starts = |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    name.eq_ignore_ascii_case("kv") || starts("kv_") || starts("icsql_")
}

fn may_read(name: &str) -> bool {
    name.eq_ignore_ascii_case("kv") || !is_service(name)
}

fn may_write(name: &str) -> bool {
    !is_service(name)
}

fn any(_: &str) -> bool {
    true
}

static READER: Policy = Policy { may_read, may_write, changes: Changes::Nothing };
static WRITER: Policy = Policy { may_read, may_write, changes: Changes::Rows };
static ADMIN_READS: Policy = Policy { may_read: any, may_write, changes: Changes::Nothing };
static ADMIN: Policy = Policy { may_read: any, may_write, changes: Changes::Schema };

/// For statements that read. A named query reads what a reader may.
pub fn reads(role: Role) -> &'static Policy {
    match role {
        Role::Reader | Role::Writer => &READER,
        Role::Admin => &ADMIN_READS,
    }
}

/// For statements that write.
pub fn writes(role: Role) -> &'static Policy {
    match role {
        Role::Reader => &READER,
        Role::Writer => &WRITER,
        Role::Admin => &ADMIN,
    }
}

/// A hash of everything in the schema that is the service's or belongs to one of its tables.
///
/// # Errors
/// The engine's.
pub fn service_schema(reader: &Reader<'_>) -> Result<[u8; 32], Failure> {
    let mut bytes = Vec::new();
    let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name";
    reader.query(sql, (), |row| {
        let (name, table) = (row.text(1)?, row.text(2)?);
        if is_service(name) || is_service(table) {
            for column in 0..4 {
                let text = row.value(column)?.as_bytes().unwrap_or_default();
                bytes.extend((text.len() as u64).to_le_bytes());
                bytes.extend(text);
            }
        }
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(sha256_of(&bytes))
}

/// Whether a change of the schema has left the service's part as it was, and refers to none of it.
///
/// # Errors
/// [`Error::Sqlite`] with the code of a refusal.
pub fn check_schema(reader: &Reader<'_>, expected: &[u8; 32]) -> Result<(), Failure> {
    let refuse = |message: String| {
        Err(Error::Sqlite { code: super::SQLITE_AUTH, message, offset: None, statement: None, cost: None }.into())
    };
    if service_schema(reader)? != *expected {
        return refuse("not allowed: names that begin with kv_ or icsql_, and kv, are the service's own".to_owned());
    }
    let sql = "SELECT s.name, f.\"table\" FROM main.sqlite_schema AS s, pragma_foreign_key_list(s.name) AS f
               WHERE s.type = 'table'";
    let mut found = None;
    reader.query(sql, (), |row| {
        let parent = row.text(1)?;
        Ok::<_, Failure>(if is_service(parent) {
            found = Some((row.text(0)?.to_owned(), parent.to_owned()));
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    match found {
        Some((table, parent)) => {
            refuse(format!("not allowed: a foreign key of {table} refers to {parent}, which is the service's own"))
        }
        None => Ok(()),
    }
}
