//! A whole service on heap memory, and callers of every role.
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Deserialize, Principal, decode_args, encode_args};
use icsql_canister::api;
use icsql_canister::host::{Caller, Host};
use icsql_canister::service::Service;
use icsql_engine::OpenOptions;
use icsql_engine::stable::heap::HeapMemory;
use icsql_types::{
    Answer, BatchExecuted, Error, Executed, Grant, InitArg, Migrated, Params, ReadOptions, Role, RowSet, SqlMigration,
    SqlWriteOptions, Statement, Value, WriteOptions,
};
use std::cell::RefCell;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Controller,
    Admin,
    Writer,
    Reader,
    Stranger,
}

impl Who {
    pub fn principal(self) -> Principal {
        Principal::from_slice(&[self as u8 + 1; 10])
    }
}

struct Message {
    argument: Vec<u8>,
    who: Who,
    replies: RefCell<Vec<Vec<u8>>>,
}

impl Host for Message {
    fn argument_bytes(&self) -> usize {
        self.argument.len()
    }

    fn with_argument<R>(&self, bytes: usize, body: impl FnOnce(&[u8]) -> R) -> R {
        body(&self.argument[..bytes])
    }

    fn caller(&self) -> Caller {
        Caller::new(self.who.principal().as_slice()).unwrap()
    }

    fn is_controller(&self, principal: &Caller) -> bool {
        principal.as_slice() == Who::Controller.principal().as_slice()
    }

    fn time_ns(&self) -> u64 {
        1_700_000_000_000_000_000
    }

    fn is_replicated(&self) -> bool {
        true
    }

    fn set_timer(&self, _: u64) {}

    fn reply(&self, bytes: &[u8]) {
        self.replies.borrow_mut().push(bytes.to_vec());
    }
}

/// A canister, with a principal of each role.
pub struct Canister {
    pub stable: HeapMemory,
    pub service: Service,
}

macro_rules! send {
    ($canister:ident, $who:expr, $endpoint:path, $arguments:expr) => {{
        let message = Message { argument: encode_args($arguments).unwrap(), who: $who, replies: RefCell::default() };
        $endpoint(&message, &mut $canister.service);
        let mut replies = message.replies.into_inner();
        assert_eq!(replies.len(), 1, "a message gets one reply");
        let reply = replies.remove(0);
        assert!(reply.len() <= icsql_canister::limits::REPLY_BYTES_MAX, "a reply of {} bytes", reply.len());
        decode(&reply)
    }};
}

macro_rules! methods {
    ($($name:ident = $endpoint:path;)*) => {$(
        pub fn $name<T: CandidType + for<'a> Deserialize<'a>>(&mut self, who: Who, arguments: impl ArgumentEncoder) -> Answer<T> {
            send!(self, who, $endpoint, arguments)
        }
    )*};
}

impl Canister {
    pub fn install() -> Self {
        let mut canister = Self::on(HeapMemory::new());
        for (who, role) in [(Who::Admin, Role::Admin), (Who::Writer, Role::Writer), (Who::Reader, Role::Reader)] {
            let grant = (Grant { who: who.principal(), role }, None::<WriteOptions>);
            canister.call_access_grant::<()>(Who::Controller, grant).unwrap();
        }
        canister
    }

    fn on(stable: HeapMemory) -> Self {
        let service = Service::open(stable.clone(), InitArg::default(), OpenOptions::default()).unwrap();
        Self { stable, service }
    }

    /// Drops the heap and keeps stable memory.
    pub fn upgrade(self) -> Self {
        let stable = self.stable.clone();
        drop(self);
        Self::on(stable)
    }

    methods! {
        call_access_grant = api::access::grant;
        call_kv_put = api::kv::put;
        call_kv_get = api::kv::get;
        call_sql_query = api::sql::query;
        call_sql_execute = api::sql::execute;
        call_sql_batch = api::sql::batch;
        call_sql_explain = api::sql::explain_plan;
        call_sql_schema = api::sql::schema;
        call_sql_migrate = api::sql::migrate;
        call_sql_migrations = api::sql::migrations;
        call_query_define = api::query::define;
        call_query_drop = api::query::drop;
        call_query_list = api::query::list;
        call_query_call = api::query::call;
    }

    /// Rows of a statement, as an admin.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Value>> {
        self.query(Who::Admin, statement(sql), None).unwrap_or_else(|error| panic!("{sql}: {error}")).rows
    }

    pub fn query(&mut self, who: Who, statement: Statement, options: Option<ReadOptions>) -> Answer<RowSet> {
        self.call_sql_query(who, (statement, options))
    }

    pub fn execute(&mut self, who: Who, sql: &str) -> Answer<Executed> {
        self.call_sql_execute(who, (statement(sql), None::<SqlWriteOptions>))
    }

    pub fn run(&mut self, sql: &str) -> Executed {
        self.execute(Who::Admin, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub fn batch(&mut self, who: Who, statements: &[&str]) -> Answer<BatchExecuted> {
        let statements: Vec<_> = statements.iter().map(|sql| statement(sql)).collect();
        self.call_sql_batch(who, (statements, None::<SqlWriteOptions>))
    }

    pub fn migrate(&mut self, migrations: &[(u32, &str)]) -> Answer<Migrated> {
        let list: Vec<_> = migrations
            .iter()
            .map(|(version, sql)| SqlMigration {
                version: *version,
                name: format!("step {version}"),
                sql: (*sql).to_owned(),
            })
            .collect();
        self.call_sql_migrate(Who::Admin, (list, None::<WriteOptions>))
    }
}

pub fn decode<A: CandidType + for<'a> Deserialize<'a>>(reply: &[u8]) -> A {
    let (answer,) = decode_args::<(A,)>(reply).expect("the reply decodes at its declared type");
    answer
}

pub fn statement(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), params: None }
}

pub fn with(sql: &str, values: Vec<Value>) -> Statement {
    Statement { sql: sql.to_owned(), params: Some(Params::Positional(values)) }
}

pub fn int(value: i64) -> Value {
    Value::Integer(value)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// The code of an error of SQLite; 0 for other errors.
pub fn code<T: std::fmt::Debug>(answer: &Answer<T>) -> i32 {
    match answer {
        Err(Error::Sqlite { code, .. }) => *code,
        _ => 0,
    }
}
