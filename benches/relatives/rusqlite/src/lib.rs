//! Bulk work on ic-rusqlite, with the settings that it brings: SQLite writes files, WASI calls become calls of a file system in
//! stable memory. Statements come from rusqlite's cache, and values are borrowed where it lends them.

// The canister is nothing without the platform.
#![cfg(target_arch = "wasm32")]

use ic_cdk::api::performance_counter;
use ic_rusqlite::{Connection, Error, ErrorCode, Params, Row, Transaction, params_from_iter, with_connection};
use icsql_bench_workload::{Found, Pair, Store, sql};

/// Opens the database, so that no later message has to.
#[ic_cdk::init]
fn init() {
    let opened = with_connection(|connection| {
        connection.execute_batch(sql::KV)?;
        connection.execute_batch(sql::TABLES)
    });
    if let Err(error) = opened {
        ic_cdk::trap(text(error));
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    let opened =
        with_connection(|connection| connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())));
    if let Err(error) = opened {
        ic_cdk::trap(text(error));
    }
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
    write(|tx| tx.execute_batch(&sql)).map(|()| (0, 0))
}

#[ic_cdk::query]
fn image() -> Result<(u64, u64), String> {
    Sqlite.image()
}

fn text(error: Error) -> String {
    error.to_string()
}

fn transaction(body: impl FnOnce(&Transaction<'_>) -> Result<(), Error>) -> Result<(), Error> {
    with_connection(|mut connection| {
        let tx = connection.transaction()?;
        body(&tx)?;
        tx.commit()
    })
}

fn write(body: impl FnOnce(&Transaction<'_>) -> Result<(), Error>) -> Result<(), String> {
    transaction(body).map_err(text)
}

/// Runs a statement of a key and a value for each row.
fn each_pair(connection: &Connection, sql: &str, rows: &[Pair]) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql)?;
    rows.iter().try_for_each(|(key, value)| statement.execute((key, value)).map(drop))
}

/// Runs a query, up to `rows` of its rows.
fn each_row(
    sql: &str,
    params: impl Params,
    rows: u64,
    bytes: impl Fn(&Row<'_>) -> Result<usize, Error>,
) -> Result<Found, String> {
    with_connection(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let mut cursor = statement.query(params)?;
        let mut found = Found::default();
        while found.rows < rows
            && let Some(row) = cursor.next()?
        {
            found.row(bytes(row)?);
        }
        Ok(found)
    })
    .map_err(text)
}

fn length(row: &Row<'_>, column: usize) -> Result<usize, Error> {
    Ok(row.get_ref(column)?.as_str()?.len())
}

fn two_texts(row: &Row<'_>) -> Result<usize, Error> {
    Ok(length(row, 0)? + length(row, 1)?)
}

struct Sqlite;

impl Store for Sqlite {
    fn reset(&mut self, rows: &[Pair]) -> Result<(), String> {
        write(|tx| {
            tx.prepare_cached(sql::CLEAR)?.execute(())?;
            each_pair(tx, sql::INSERT, rows)
        })
    }

    fn insert(&mut self, rows: &[Pair]) -> Result<(), String> {
        write(|tx| each_pair(tx, sql::INSERT, rows))
    }

    fn upsert(&mut self, rows: &[Pair]) -> Result<(), String> {
        write(|tx| each_pair(tx, sql::UPSERT, rows))
    }

    fn update(&mut self, rows: &[Pair]) -> Result<(), String> {
        write(|tx| each_pair(tx, sql::UPDATE, rows))
    }

    fn update_each(&mut self, rows: &[Pair]) -> Result<(), String> {
        with_connection(|connection| each_pair(&connection, sql::UPDATE, rows)).map_err(text)
    }

    fn delete(&mut self, rows: &[Pair]) -> Result<(), String> {
        write(|tx| {
            let mut statement = tx.prepare_cached(sql::DELETE)?;
            rows.iter().try_for_each(|(key, _)| statement.execute((key,)).map(drop))
        })
    }

    fn get_each(&mut self, keys: &[String]) -> Result<Found, String> {
        with_connection(|connection| {
            let mut statement = connection.prepare_cached(sql::GET)?;
            let mut found = Found::default();
            for key in keys {
                found.row(statement.query_row((key,), |row| length(row, 0))?);
            }
            Ok(found)
        })
        .map_err(text)
    }

    fn scan(&mut self, rows: u64) -> Result<Found, String> {
        each_row(sql::SCAN, (), rows, two_texts)
    }

    fn scan_lengths(&mut self, rows: u64) -> Result<Found, String> {
        let length = |row: &Row<'_>, column| Ok::<_, Error>(row.get_ref(column)?.as_bytes()?.len());
        each_row(sql::SCAN, (), rows, |row| Ok(length(row, 0)? + length(row, 1)?))
    }

    fn count(&mut self) -> Result<u64, String> {
        with_connection(|connection| connection.prepare_cached(sql::COUNT)?.query_row((), |row| row.get::<_, i64>(0)))
            .map(i64::cast_unsigned)
            .map_err(text)
    }

    fn get_in(&mut self, sql: &str, keys: &[String]) -> Result<Found, String> {
        each_row(sql, params_from_iter(keys), u64::MAX, two_texts)
    }

    fn blob_write(&mut self, id: u32, bytes: &[u8]) -> Result<(), String> {
        write(|tx| tx.prepare_cached(sql::FILE_INSERT)?.execute((id, bytes)).map(drop))
    }

    fn blob_read(&mut self, id: u32) -> Result<Found, String> {
        each_row(sql::FILE_GET, (id,), u64::MAX, |row| Ok(row.get_ref(0)?.as_blob()?.len()))
    }

    fn sort(&mut self) -> Result<Found, String> {
        each_row(sql::SORT, (), u64::MAX, |row| {
            row.get::<_, i64>(0)?;
            length(row, 1)
        })
    }

    fn join(&mut self) -> Result<Found, String> {
        each_row(sql::JOIN, (), u64::MAX, two_texts)
    }

    fn insert_refused(&mut self, rows: &[Pair]) -> Result<String, String> {
        match transaction(|tx| each_pair(tx, sql::INSERT, rows)) {
            Err(Error::SqliteFailure(error, message)) if error.code == ErrorCode::ConstraintViolation => {
                Ok(message.unwrap_or_default())
            }
            other => Err(format!("answered {other:?}")),
        }
    }

    fn image(&mut self) -> Result<(u64, u64), String> {
        with_connection(|connection| {
            let number = |sql| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
            Ok((number("PRAGMA page_count")?, number("PRAGMA page_size")?))
        })
        .map_err(text)
    }
}
