//! Bulk work on ic-sqlite-vfs, written as its documentation shows it: one connection closure a transaction, statements from
//! its cache, and the methods for two texts where a statement has two.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use ic_cdk::api::performance_counter;
use ic_sqlite_vfs::db::connection::Connection;
use ic_sqlite_vfs::db::migrate::Migration;
use ic_sqlite_vfs::db::{Row, TextLen, ToSql};
use ic_sqlite_vfs::{Db, DbError, DefaultMemoryImpl, MemoryId, MemoryManager};
use icsql_bench_workload::{Found, Pair, Store, sql};

const MIGRATIONS: &[Migration] = &[Migration { version: 1, sql: sql::KV }, Migration { version: 2, sql: sql::TABLES }];

#[ic_cdk::init]
fn init() {
    let opened = MemoryManager::init_strict(DefaultMemoryImpl::default())
        .map_err(|error| format!("{error:?}"))
        .and_then(|manager| Db::init(manager.get(MemoryId::new(120))).map_err(text))
        .and_then(|()| Db::migrate(MIGRATIONS).map_err(text));
    if let Err(error) = opened {
        ic_cdk::trap(error);
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    init();
}

#[ic_cdk::update]
fn work(name: String, first: u32, count: u32) -> Result<u64, String> {
    icsql_bench_workload::work(&mut Sqlite, &name, first, count, || performance_counter(0))
}

#[ic_cdk::query]
fn read(name: String, first: u32, count: u32) -> Result<u64, String> {
    work(name, first, count)
}

/// Runs SQL as one transaction. Answers two numbers that only icsql counts.
#[ic_cdk::update]
fn run(sql: String) -> Result<(u64, u64), String> {
    Db::update(|connection| connection.execute_batch(&sql)).map_err(text)?;
    Ok((0, 0))
}

#[ic_cdk::query]
fn image() -> Result<(u64, u64), String> {
    Sqlite.image()
}

fn text(error: DbError) -> String {
    error.to_string()
}

struct Sqlite;

/// Runs a statement of a key and a value for each row.
fn each_pair(connection: &Connection, sql: &str, rows: &[Pair]) -> Result<(), DbError> {
    let mut statement = connection.prepare_cached(sql)?;
    rows.iter().try_for_each(|(key, value)| statement.execute_text_text(key, value))
}

/// Runs a query, up to `rows` of its rows.
fn each_row(
    sql: &str,
    values: &[&dyn ToSql],
    rows: u64,
    bytes: impl Fn(&Row<'_>) -> Result<usize, DbError>,
) -> Result<Found, String> {
    Db::query(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let mut cursor = statement.query(values)?;
        let mut found = Found::default();
        while found.rows < rows
            && let Some(row) = cursor.next_row()?
        {
            found.row(bytes(&row)?);
        }
        Ok(found)
    })
    .map_err(text)
}

fn two_texts(row: &Row<'_>) -> Result<usize, DbError> {
    Ok(row.get::<String>(0)?.len() + row.get::<String>(1)?.len())
}

impl Store for Sqlite {
    fn reset(&mut self, rows: &[Pair]) -> Result<(), String> {
        Db::update(|connection| {
            connection.prepare_cached(sql::CLEAR)?.execute(&[])?;
            each_pair(connection, sql::INSERT, rows)
        })
        .map_err(text)
    }

    fn insert(&mut self, rows: &[Pair]) -> Result<(), String> {
        Db::update(|connection| each_pair(connection, sql::INSERT, rows)).map_err(text)
    }

    fn upsert(&mut self, rows: &[Pair]) -> Result<(), String> {
        Db::update(|connection| each_pair(connection, sql::UPSERT, rows)).map_err(text)
    }

    fn update(&mut self, rows: &[Pair]) -> Result<(), String> {
        Db::update(|connection| each_pair(connection, sql::UPDATE, rows)).map_err(text)
    }

    fn update_each(&mut self, rows: &[Pair]) -> Result<(), String> {
        rows.chunks(1).try_for_each(|row| self.update(row))
    }

    fn delete(&mut self, rows: &[Pair]) -> Result<(), String> {
        Db::update(|connection| {
            let mut statement = connection.prepare_cached(sql::DELETE)?;
            rows.iter().try_for_each(|(key, _)| statement.execute(&[key]))
        })
        .map_err(text)
    }

    fn get_each(&mut self, keys: &[String]) -> Result<Found, String> {
        Db::query(|connection| {
            let mut statement = connection.prepare_cached(sql::GET)?;
            let mut found = Found::default();
            for key in keys {
                if let Some(value) = statement.query_optional_string_text(key)? {
                    found.row(value.len());
                }
            }
            Ok(found)
        })
        .map_err(text)
    }

    fn scan(&mut self, rows: u64) -> Result<Found, String> {
        each_row(sql::SCAN, &[], rows, two_texts)
    }

    fn scan_lengths(&mut self, rows: u64) -> Result<Found, String> {
        each_row(sql::SCAN, &[], rows, |row| Ok(row.get::<TextLen>(0)?.0 + row.get::<TextLen>(1)?.0))
    }

    fn count(&mut self) -> Result<u64, String> {
        Db::query(|connection| connection.prepare_cached(sql::COUNT)?.query_scalar::<i64>(&[]))
            .map(i64::cast_unsigned)
            .map_err(text)
    }

    fn get_in(&mut self, sql: &str, keys: &[String]) -> Result<Found, String> {
        let values: Vec<&dyn ToSql> = keys.iter().map(|key| key as &dyn ToSql).collect();
        each_row(sql, &values, u64::MAX, two_texts)
    }

    fn blob_write(&mut self, id: u32, bytes: &[u8]) -> Result<(), String> {
        Db::update(|connection| connection.prepare_cached(sql::FILE_INSERT)?.execute_i64_blob(id.into(), bytes))
            .map_err(text)
    }

    fn blob_read(&mut self, id: u32) -> Result<Found, String> {
        each_row(sql::FILE_GET, &[&i64::from(id)], u64::MAX, |row| Ok(row.get::<Vec<u8>>(0)?.len()))
    }

    fn sort(&mut self) -> Result<Found, String> {
        each_row(sql::SORT, &[], u64::MAX, |row| {
            row.get::<i64>(0)?;
            Ok(row.get::<String>(1)?.len())
        })
    }

    fn join(&mut self) -> Result<Found, String> {
        each_row(sql::JOIN, &[], u64::MAX, two_texts)
    }

    fn insert_refused(&mut self, rows: &[Pair]) -> Result<String, String> {
        match Db::update(|connection| each_pair(connection, sql::INSERT, rows)) {
            Err(error @ DbError::Constraint(_)) => Ok(error.to_string()),
            other => Err(format!("answered {other:?}")),
        }
    }

    fn image(&mut self) -> Result<(u64, u64), String> {
        Db::query(|connection| {
            let number = |sql| connection.query_scalar::<i64>(sql, &[]).map(i64::cast_unsigned);
            Ok((number("PRAGMA page_count")?, number("PRAGMA page_size")?))
        })
        .map_err(text)
    }
}
