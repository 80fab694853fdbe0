//! SQLite's own logic tests, through `sql_execute` and `sql_query` of the deployed Wasm: every record must come out as
//! SQLite's authors wrote down, but for those that need TEMP objects, which must be refused.
//!
//! The records are not part of the project. `ICSQL_SQLLOGICTEST` names an archive of them (`.tar.xz`); without it
//! `shared/reference/sqllogictest-sample.tar.xz` beside the checkout is taken. If there is none, the test says that it was
//! not run. It runs the first records of each file; with `ICSQL_SQLLOGICTEST_FULL` all of them.

use candid::{Decode, Principal};
use icsql_replica::{CanisterSettings, InstallMode, Replica};
use icsql_tests::{controller, encode, icsql_wasm, replica, root};
use icsql_types::{Answer, Error, Executed, ReadOptions, RowSet, SqlWriteOptions, Statement, Stop, Value};
use sqllogictest::{
    Control, DB, DBOutput, DefaultColumnType, QueryExpect, Record, ResultMode, Runner, StatementExpect, parse,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Statements and queries of each file that are run without `ICSQL_SQLLOGICTEST_FULL`.
const RECORDS: usize = 150;

/// Each file has so many at least.
const RECORDS_MIN: usize = 5;

/// The file whose records create TEMP views, and these: making them must be refused, and then they are not there.
const TEMPORARY: (&str, [&str; 2]) = ("slt_lang_createview.test", ["view2", "view3"]);

type Rows = Vec<Vec<Value>>;

/// A canister on a replica, both in a thread of their own.
struct Canister {
    replica: Replica,
    id: Principal,
}

impl Canister {
    fn deploy() -> Self {
        let mut replica = replica();
        let settings = CanisterSettings { controllers: vec![controller()], ..CanisterSettings::default() };
        let id = replica.create_canister(settings);
        replica.install(id, InstallMode::Install, &icsql_wasm(), &[], controller()).reply();
        Self { replica, id }
    }

    fn query(&mut self, sql: &str) -> Answer<Rows> {
        let statement = Statement { sql: sql.to_owned(), params: None };
        let mut options = ReadOptions { max_rows: Some(100_000), ..ReadOptions::default() };
        let mut rows = Rows::new();
        loop {
            let argument = encode((&statement, Some(&options)));
            let outcome = self.replica.query(self.id, controller(), "sql_query", &argument);
            let page = match Decode!(&outcome.reply(), Answer<RowSet>).expect("a reply of sql_query") {
                // An error at run time is the end of the rows for SQLite's own test program; its tests have this one.
                Err(Error::Sqlite { message, .. }) if message == "integer overflow" => return Ok(rows),
                page => page?,
            };
            rows.extend(page.rows);
            if page.stop == Stop::End {
                return Ok(rows);
            }
            options.cursor = page.cursor;
        }
    }

    /// Runs the statements of a record: mostly one, sometimes some that each end a line.
    fn execute(&mut self, sql: &str) -> Answer<u64> {
        let options = SqlWriteOptions { max_rows: Some(100_000), ..SqlWriteOptions::default() };
        let mut changes = 0;
        for sql in sql.split(";\n").filter(|sql| !sql.trim().is_empty()) {
            let statement = Statement { sql: sql.to_owned(), params: None };
            let argument = encode((&statement, Some(&options)));
            let outcome = self.replica.update(self.id, controller(), "sql_execute", &argument);
            changes += Decode!(&outcome.reply(), Answer<Executed>).expect("a reply of sql_execute")?.changes;
        }
        Ok(changes)
    }
}

/// What the runner asks the thread of the canister for.
enum Ask {
    Query(String),
    Execute(String),
}

enum Told {
    Rows(Rows),
    Changes(u64),
}

/// The database as the runner sees it.
struct Client {
    ask: Sender<Ask>,
    told: Receiver<Answer<Told>>,
    /// The types of the columns of the query that is run next; none for a statement.
    types: Arc<Mutex<Option<Vec<DefaultColumnType>>>>,
}

impl Client {
    fn deploy(types: Arc<Mutex<Option<Vec<DefaultColumnType>>>>) -> Self {
        let ((ask, asked), (tell, told)) = (channel(), channel());
        thread::spawn(move || {
            let mut canister = Canister::deploy();
            for ask in asked {
                let answer = match ask {
                    Ask::Query(sql) => canister.query(&sql).map(Told::Rows),
                    Ask::Execute(sql) => canister.execute(&sql).map(Told::Changes),
                };
                if tell.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { ask, told, types }
    }
}

impl DB for Client {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let types = self.types.lock().expect("nobody panicked").clone();
        let ask = if types.is_some() { Ask::Query(sql.to_owned()) } else { Ask::Execute(sql.to_owned()) };
        self.ask.send(ask).expect("the canister's thread runs");
        match self.told.recv().expect("the canister's thread runs")? {
            Told::Changes(changes) => Ok(DBOutput::StatementComplete(changes)),
            Told::Rows(rows) => {
                let types = types.unwrap_or_default();
                let rows =
                    rows.iter().map(|row| row.iter().zip(&types).map(|(value, kind)| rendered(value, kind)).collect());
                Ok(DBOutput::Rows { rows: rows.collect(), types })
            }
        }
    }

    fn engine_name(&self) -> &str {
        "sqlite"
    }
}

/// A number as `%.3f` of SQLite's own printf, which has 16 digits that count.
fn thousandths(number: f64) -> String {
    if number.abs() < 1e15 || !number.is_finite() {
        return format!("{number:.3}");
    }
    let scientific = format!("{number:.15e}");
    let (digits, exponent) = scientific.split_once('e').expect("a mantissa and an exponent");
    let zeros = exponent.parse::<usize>().expect("it is not negative") - 15;
    format!("{}{}.000", digits.replace('.', ""), "0".repeat(zeros))
}

/// A value as SQLite's own test program prints it.
fn rendered(value: &Value, kind: &DefaultColumnType) -> String {
    let number = |text: &str| -> f64 {
        let end = (0..=text.len())
            .rev()
            .find(|end| text.get(..*end).is_some_and(|start| start.trim().parse::<f64>().is_ok()));
        end.and_then(|end| text[..end].trim().parse().ok()).unwrap_or(0.0)
    };
    match (kind, value) {
        (_, Value::Null) => "NULL".to_owned(),
        (DefaultColumnType::Integer, Value::Integer(integer)) => integer.to_string(),
        (DefaultColumnType::Integer, Value::Real(real)) => (*real as i64).to_string(),
        (DefaultColumnType::Integer, Value::Text(text)) => (number(text) as i64).to_string(),
        (DefaultColumnType::FloatingPoint, Value::Integer(integer)) => thousandths(*integer as f64),
        (DefaultColumnType::FloatingPoint, Value::Real(real)) => thousandths(*real),
        (DefaultColumnType::FloatingPoint, Value::Text(text)) => thousandths(number(text)),
        (_, Value::Integer(integer)) => integer.to_string(),
        (_, Value::Real(real)) => real.to_string(),
        (_, Value::Text(text)) if text.is_empty() => "(empty)".to_owned(),
        (_, Value::Text(text)) => text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect(),
        (_, Value::Blob(blob) | Value::InvalidText(blob)) => String::from_utf8_lossy(blob).into_owned(),
    }
}

/// A file's text without what the parser does not know: what stands behind a condition is a comment, and `halt` has conditions
/// like a record.
fn script(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("the file can be read");
    let (mut script, mut conditions, mut met) = (String::new(), String::new(), true);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [condition @ ("onlyif" | "skipif"), engine, ..] => {
                met &= (*engine == "sqlite") == (*condition == "onlyif");
                conditions += &format!("{condition} {engine}\n");
                continue;
            }
            ["halt", ..] if met => script += "halt\n",
            ["halt", ..] => {}
            _ => script += &format!("{conditions}{line}\n"),
        }
        conditions.clear();
        met = true;
    }
    script
}

/// Runs the records of a file. Answers how many were run, and how many were refused as they must be.
fn run(file: &Path, records_max: usize) -> (usize, usize) {
    let types = Arc::new(Mutex::new(None));
    let client = Mutex::new(Some(Client::deploy(Arc::clone(&types))));
    let connect = || {
        let client = client.lock().expect("nobody panicked").take().expect("there is one connection");
        async move { Ok(client) }
    };
    let mut runner = Runner::new(connect);
    runner.run(Record::Control(Control::ResultMode(ResultMode::ValueWise))).expect("it is set");
    let (mut count, mut refused) = (0, 0);
    for record in
        parse::<DefaultColumnType>(&script(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    {
        let temporary = |sql: &str| file.ends_with(TEMPORARY.0) && TEMPORARY.1.iter().any(|name| sql.contains(name));
        let must_fail = match &record {
            Record::Halt { .. } => break,
            Record::HashThreshold { .. } => continue,
            Record::Statement { sql, expected, .. } => {
                *types.lock().expect("nobody panicked") = None;
                count += 1;
                temporary(sql) && matches!(expected, StatementExpect::Ok)
            }
            Record::Query { sql, expected, .. } => {
                // A result that is written down as a hash is compared as one, however long it is.
                let hashed = |results: &Vec<String>| results.iter().any(|line| line.contains(" values hashing to "));
                let hashed = matches!(expected, QueryExpect::Results { results, .. } if hashed(results));
                runner.with_hash_threshold(usize::from(hashed));
                *types.lock().expect("nobody panicked") = Some(match expected {
                    QueryExpect::Results { types, .. } => types.clone(),
                    QueryExpect::Error(_) => Vec::new(),
                });
                count += 1;
                temporary(sql)
            }
            _ => false,
        };
        let outcome = runner.run(record.clone());
        assert_eq!(outcome.is_err(), must_fail, "{}: {outcome:?} for {record:?}", file.display());
        refused += usize::from(must_fail);
        if count >= records_max {
            break;
        }
    }
    assert!(count >= RECORDS_MIN, "{} ended after {count} records", file.display());
    (count, refused)
}

/// All files below a folder, the largest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "test") {
                found.push(path);
            }
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).map_or(0, |metadata| metadata.len())));
    found
}

#[test]
fn the_logic_tests_of_sqlite_pass() {
    let beside = || root().join("../shared/reference/sqllogictest-sample.tar.xz");
    let archive = std::env::var_os("ICSQL_SQLLOGICTEST").map_or_else(beside, PathBuf::from);
    if !archive.is_file() {
        println!("not run: there is no {}; ICSQL_SQLLOGICTEST can name another archive", archive.display());
        return;
    }
    let records_max = if std::env::var_os("ICSQL_SQLLOGICTEST_FULL").is_some() { usize::MAX } else { RECORDS };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqllogictest");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a temporary folder");
    let unpacked = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&folder).status().expect("tar runs");
    assert!(unpacked.success(), "{} cannot be unpacked", archive.display());
    let queue = Mutex::new(files(&folder).into_iter());
    let totals = Mutex::new((0, 0, 0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(file) = queue.lock().expect("nobody panicked").next() else { return };
                    let (count, refused) = run(&file, records_max);
                    let mut totals = totals.lock().expect("nobody panicked");
                    *totals = (totals.0 + 1, totals.1 + count, totals.2 + refused);
                }
            });
        }
    });
    let (files, records, refused) = totals.into_inner().expect("nobody panicked");
    println!("{records} records of {files} files, {refused} of them refused as they must be");
    assert!(files > 0 && records > 100 * files / 10, "{records} records of {files} files");
}
