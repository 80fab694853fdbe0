//! Roles, and what is public.
use crate::error::Failure;
use crate::guard::Roles;
use crate::host::Caller;
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Reader, Writer};
use icsql_types::{Error, Role};

/// Name of the setting that says whether anyone may read the key-value store. Without it: yes.
const PUBLIC_KV: &str = "public kv";

fn name(role: Role) -> &'static str {
    match role {
        Role::Reader => "reader",
        Role::Writer => "writer",
        Role::Admin => "admin",
    }
}

/// Reads what the database says.
///
/// # Errors
/// The engine's; [`Error::Corrupt`] for what was not written by this program.
pub fn load(reader: &Reader<'_>) -> Result<Roles, Failure> {
    let mut grants = Vec::new();
    reader.query("SELECT principal, role FROM main.icsql_role", (), |row| {
        let role = [Role::Reader, Role::Writer, Role::Admin].into_iter().find(|role| row.text(1) == Ok(name(*role)));
        match (Caller::new(row.blob(0)?), role) {
            (Some(principal), Some(role)) => grants.push((principal, role)),
            _ => return Err(Error::Corrupt { message: "the table icsql_role is damaged".to_owned() }.into()),
        }
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    let public = "SELECT value FROM main.icsql_setting WHERE name = ?1";
    let public = reader.query_row(public, (PUBLIC_KV,), |row| row.integer(0))?;
    Ok(Roles::new(grants, public != Some(0)))
}

/// Gives a principal a role.
///
/// # Errors
/// The engine's.
pub fn grant(writer: &Writer<'_>, principal: &Caller, role: Role) -> Result<(), EngineError> {
    let sql = "INSERT OR REPLACE INTO main.icsql_role(principal, role) VALUES (?1, ?2)";
    writer.execute(sql, (principal.as_slice(), name(role)))?;
    Ok(())
}

/// Takes a principal's role away.
///
/// # Errors
/// The engine's.
pub fn revoke(writer: &Writer<'_>, principal: &Caller) -> Result<(), EngineError> {
    writer.execute("DELETE FROM main.icsql_role WHERE principal = ?1", (principal.as_slice(),))?;
    Ok(())
}

/// Lets anyone read the key-value store, or not.
///
/// # Errors
/// The engine's.
pub fn set_public_kv(writer: &Writer<'_>, public: bool) -> Result<(), EngineError> {
    let sql = "INSERT OR REPLACE INTO main.icsql_setting(name, value) VALUES (?1, ?2)";
    writer.execute(sql, (PUBLIC_KV, public))?;
    Ok(())
}
