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
    sha256_of(text.as_bytes())
}

/// SHA-256 of bytes.
pub fn sha256_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
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

/// The tables in which ic-sqlite-vfs 2.x keeps the versions that it has applied and, since 2.1, the hashes of their texts.
const FOREIGN: [&str; 2] = ["__ic_sqlite_migrations", "__ic_sqlite_migration_checksums"];

pub(super) fn adopt(database: &mut Database, migrations: &[Migration], through: u32) -> Result<usize, Error> {
    check_order(migrations)?;
    let adopted = migrations.partition_point(|migration| migration.version <= through);
    let (adopted, _) = migrations.split_at(adopted);
    if adopted.last().map_or(0, |last| last.version) != through {
        return Err(refuse(through, "is not in the list of migrations"));
    }
    let known = database.read(|reader| {
        let known = !applied(reader)?.is_empty();
        if !known && has_table(reader, FOREIGN[0])? {
            check_foreign(reader, adopted)?;
        }
        Ok::<_, Error>(known)
    })?;
    if known {
        return Ok(0);
    }
    database.write(|writer| {
        writer.execute_batch(CREATE)?;
        adopted.iter().try_for_each(|migration| note(writer, migration))
    })?;
    Ok(adopted.len())
}

fn refuse(version: impl Into<u64>, reason: &'static str) -> Error {
    MigrationError::Adopt { version: version.into(), reason }.into()
}

/// Compares the history of ic-sqlite-vfs with the migrations that are to be adopted.
fn check_foreign(reader: &Reader<'_>, adopted: &[Migration]) -> Result<(), Error> {
    let hash = if has_table(reader, FOREIGN[1])? {
        "(SELECT checksum FROM main.__ic_sqlite_migration_checksums AS c WHERE c.version = m.version)"
    } else {
        "NULL"
    };
    let sql = format!("SELECT m.version, {hash} FROM main.__ic_sqlite_migrations AS m ORDER BY 1");
    let mut rest = adopted;
    reader.query(&sql, (), |row| {
        let version = u64::try_from(row.integer(0)?).unwrap_or(0);
        let Some((first, others)) = rest.split_first().filter(|(first, _)| u64::from(first.version) == version) else {
            return Err(refuse(version, "was applied by ic-sqlite-vfs and is not among those to adopt, in this order"));
        };
        let noted = row.value(1)?;
        if noted.as_bytes().is_some_and(|noted| noted != sha256(first.sql)) {
            return Err(refuse(version, "was applied by ic-sqlite-vfs with another text"));
        }
        rest = others;
        Ok(ControlFlow::Continue(()))
    })?;
    match rest.first() {
        Some(missing) => Err(refuse(missing.version, "was not applied by ic-sqlite-vfs")),
        None => Ok(()),
    }
}

fn has_table(reader: &Reader<'_>, name: &str) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(reader.query_row(sql, (name,), |_| Ok::<_, Error>(()))?.is_some())
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
    let mut applied = Vec::new();
    if has_table(reader, "icsql_migration")? {
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
    note(writer, migration)
}

/// Remembers that a migration is applied.
fn note(writer: &Writer<'_>, migration: &Migration) -> Result<(), Error> {
    let Migration { version, name, sql } = *migration;
    writer.execute(
        "INSERT INTO main.icsql_migration(version, name, sha256) VALUES (?1, ?2, ?3)",
        (version, name, sha256(sql).as_slice()),
    )?;
    Ok(())
}
