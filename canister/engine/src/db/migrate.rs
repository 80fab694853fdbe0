//! Versioned migrations: each applied once, and its text remembered by its SHA-256.
use super::database::Database;
use super::error::{Error, MigrationError};
use super::transaction::{Reader, Writer};
use crate::limits::MIGRATIONS_MAX;
use core::ops::ControlFlow;
use sha2::{Digest, Sha256};

/// A step of a schema's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its place: ascending, from 1 on.
    pub version: u32,
    /// A name for people.
    pub name: &'static str,
    /// One or more statements. Once it was applied anywhere the text must never change.
    pub sql: &'static str,
}

const CREATE: &str = "CREATE TABLE IF NOT EXISTS main.icsql_migration(
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 BLOB NOT NULL
) STRICT";

struct Applied {
    version: i64,
    name: String,
    sha256: Vec<u8>,
}

/// SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

pub(super) fn migrate(database: &mut Database, migrations: &[Migration]) -> Result<usize, Error> {
    check_order(migrations)?;
    let pending = database.read(|reader| pending(reader, migrations))?;
    if pending.is_empty() {
        return Ok(0);
    }
    database.write(|writer| {
        writer.execute_batch(CREATE)?;
        pending.iter().try_for_each(|migration| apply(writer, migration))
    })?;
    Ok(pending.len())
}

fn check_order(migrations: &[Migration]) -> Result<(), MigrationError> {
    if migrations.len() > MIGRATIONS_MAX {
        return Err(MigrationError::TooMany { given: migrations.len(), limit: MIGRATIONS_MAX });
    }
    let mut last = 0;
    for migration in migrations {
        if migration.version <= last {
            return Err(MigrationError::Order { version: migration.version });
        }
        last = migration.version;
    }
    Ok(())
}

/// The migrations that the database lacks: those behind the ones it has, which must be the first of the list.
fn pending<'m>(reader: &Reader<'_>, migrations: &'m [Migration]) -> Result<&'m [Migration], Error> {
    let mut rest = migrations;
    for applied in applied(reader)? {
        let unknown = || MigrationError::Unknown {
            version: u32::try_from(applied.version).unwrap_or(u32::MAX),
            name: applied.name.clone(),
        };
        let (first, others) = rest.split_first().ok_or_else(unknown)?;
        if i64::from(first.version) != applied.version {
            return Err(unknown().into());
        }
        if sha256(first.sql).as_slice() != applied.sha256 {
            return Err(MigrationError::Changed { version: first.version, name: first.name }.into());
        }
        rest = others;
    }
    Ok(rest)
}

fn applied(reader: &Reader<'_>) -> Result<Vec<Applied>, Error> {
    let exists = reader.query_row(
        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'icsql_migration'",
        (),
        |_| Ok::<_, Error>(()),
    )?;
    let mut applied = Vec::new();
    if exists.is_some() {
        reader.query("SELECT version, name, sha256 FROM main.icsql_migration ORDER BY version", (), |row| {
            applied.push(Applied {
                version: row.integer(0)?,
                name: row.text(1)?.to_owned(),
                sha256: row.blob(2)?.to_vec(),
            });
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
    }
    Ok(applied)
}

fn apply(writer: &Writer<'_>, migration: &Migration) -> Result<(), Error> {
    let Migration { version, name, sql } = *migration;
    writer.execute_batch(sql).map_err(|error| MigrationError::Failed { version, name, error: Box::new(error) })?;
    writer.execute(
        "INSERT INTO main.icsql_migration(version, name, sha256) VALUES (?1, ?2, ?3)",
        (version, name, sha256(sql).as_slice()),
    )?;
    Ok(())
}
