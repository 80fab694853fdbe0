//! Migrations of the caller's tables: each applied once, and its text remembered by its SHA-256.
use super::{at_statement, check_sql, policy, queries};
use crate::error::Failure;
use crate::guard::{at_most, too_large};
use crate::limits::{SQL_MIGRATION_NAME_BYTES_MAX, SQL_MIGRATIONS_MAX};
use core::ops::ControlFlow;
use icsql_engine::{Reader, Writer, sha256};
use icsql_types::{AppliedMigration, BrokenQuery, Error, Role, SqlMigration};

/// Checks a list without looking at the database.
///
/// # Errors
/// [`Error::TooLarge`], [`Error::InvalidArgument`].
pub fn check(migrations: &[SqlMigration]) -> Result<(), Error> {
    if migrations.len() > SQL_MIGRATIONS_MAX {
        return Err(too_large("migrations", SQL_MIGRATIONS_MAX, migrations.len()));
    }
    let mut last = 0;
    for (index, migration) in migrations.iter().enumerate() {
        if migration.version <= last {
            return Err(Error::InvalidArgument {
                argument: format!("version of migration {index}"),
                message: format!("{} stands behind {last}: versions ascend from 1 on", migration.version),
            });
        }
        last = migration.version;
        let checked =
            check_sql(&migration.sql).and_then(|()| at_most("name", SQL_MIGRATION_NAME_BYTES_MAX, &migration.name));
        checked.map_err(|error| at_statement(error, index))?;
    }
    Ok(())
}

/// What was applied, in order.
///
/// # Errors
/// The engine's.
pub fn applied(reader: &Reader<'_>) -> Result<Vec<AppliedMigration>, Failure> {
    let mut applied = Vec::new();
    let sql = "SELECT version, name, sha256, applied_at FROM main.icsql_sql_migration ORDER BY version";
    reader.query(sql, (), |row| {
        applied.push(AppliedMigration {
            version: u32::try_from(row.integer(0)?).unwrap_or(u32::MAX),
            name: row.text(1)?.to_owned(),
            sha256: row.blob(2)?.iter().map(|byte| format!("{byte:02x}")).collect(),
            applied_at: u64::try_from(row.integer(3)?).unwrap_or(0),
        });
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(applied)
}

/// Applies those of a list that the database lacks. Answers their versions, and which named queries worked before and
/// do not any more.
///
/// # Errors
/// [`Error::Conflict`] for one that was applied with another text; [`Error::InvalidArgument`] for one that is new and
/// below one that was applied; SQLite's with the index of the migration. The transaction must then be undone.
pub fn migrate(
    writer: &Writer<'_>,
    service_schema: &[u8; 32],
    migrations: &[SqlMigration],
    now_ns: u64,
) -> Result<(Vec<u32>, Vec<BrokenQuery>), Failure> {
    let known = applied(writer)?;
    let highest = known.last().map_or(0, |last| last.version);
    if known.len().saturating_add(migrations.len()) > SQL_MIGRATIONS_MAX {
        let new = migrations.iter().filter(|migration| migration.version > highest).count();
        if known.len() + new > SQL_MIGRATIONS_MAX {
            return Err(too_large("migrations", SQL_MIGRATIONS_MAX, known.len() + new).into());
        }
    }
    let works_before = queries::broken(writer)?;
    let mut versions = Vec::new();
    for (index, migration) in migrations.iter().enumerate() {
        let hash = sha256(&migration.sql);
        if let Ok(place) = known.binary_search_by_key(&migration.version, |applied| applied.version) {
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            if known[place].sha256 != hash {
                let message = format!(
                    "it was applied with another text (SHA-256 {}, now {hash}); leave it as it was and add a new one",
                    known[place].sha256
                );
                return Err(Error::Conflict { what: format!("migration {}", migration.version), message }.into());
            }
            continue;
        }
        if migration.version < highest {
            return Err(Error::InvalidArgument {
                argument: format!("version of migration {index}"),
                message: format!("{} is new, and {highest} was applied before it", migration.version),
            }
            .into());
        }
        let admin = writer.restricted(policy::writes(Role::Admin));
        admin
            .execute_batch(&migration.sql)
            .map_err(|error| Failure::Answer(at_statement(super::explain(error.into(), &writer.metrics()), index)))?;
        writer.execute(
            "INSERT INTO main.icsql_sql_migration(version, name, sha256, applied_at) VALUES (?1, ?2, ?3, ?4)",
            (migration.version, migration.name.as_str(), hash.as_slice(), i64::try_from(now_ns).unwrap_or(i64::MAX)),
        )?;
        versions.push(migration.version);
    }
    policy::check_schema(writer, service_schema)?;
    let mut broken = queries::broken(writer)?;
    broken.retain(|query| !works_before.iter().any(|before| before.name == query.name));
    Ok((versions, broken))
}
