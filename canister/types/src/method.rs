//! The methods of the canister with their types. The service decodes and encodes by this list, clients can call by it,
//! and a test compares it with `candid/icsql.did`.
use crate::{
    AccessList, Answer, Appended, AppliedMigration, BatchExecuted, ByteBuf, Checksum, DefinedQuery, Deleted, Entry,
    Executed, Grant, InitArg, IntegrityReport, KvList, KvOperation, KvPage, Meta, Migrated, Params, Part, Plan,
    QueryDefinition, ReadOptions, RowSet, ScanProgress, Schema, SqlMigration, SqlWriteOptions, Statement, Values,
    WriteOptions, Written,
};
use candid::types::internal::TypeContainer;
use candid::types::{FuncMode, Function, Type, TypeInner};
use candid::{CandidType, Principal};
use std::marker::PhantomData;

/// Whether a method keeps what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Exported as `canister_query`; changes nothing.
    Query,
    /// Exported as `canister_update`.
    Update,
}

/// A method: its name, mode, and the types of its arguments `A` (a tuple) and of its reply `R`.
#[derive(Debug)]
pub struct Method<A, R> {
    /// Name of the method.
    pub name: &'static str,
    /// Query or update.
    pub mode: Mode,
    types: PhantomData<fn(A) -> R>,
}

impl<A, R> Method<A, R> {
    const fn new(name: &'static str, mode: Mode) -> Self {
        Self { name, mode, types: PhantomData }
    }
}

/// A tuple of Candid types.
pub trait Arguments {
    /// The Candid types of its members.
    fn types(container: &mut TypeContainer) -> Vec<Type>;
}

macro_rules! arguments {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: CandidType),*> Arguments for ($($name,)*) {
            fn types(_container: &mut TypeContainer) -> Vec<Type> {
                vec![$(_container.add::<$name>()),*]
            }
        }
    )*};
}
arguments! { () (A) (A, B) (A, B, C) }

impl<A: Arguments, R: CandidType> Method<A, R> {
    /// The Candid type of this method.
    pub fn signature(&self, container: &mut TypeContainer) -> Type {
        let args = A::types(container);
        let modes = if self.mode == Mode::Query { vec![FuncMode::Query] } else { Vec::new() };
        TypeInner::Func(Function { modes, args, rets: vec![container.add::<R>()] }).into()
    }
}

/// Who is shown what methods answer when they succeed.
pub trait SuccessVisitor {
    /// Called with the type and the method's name.
    fn visit<T: CandidType + 'static>(&mut self, method: &'static str);
}

macro_rules! methods {
    ($($(#[$doc:meta])* $constant:ident = $mode:ident $name:literal: $args:ty => $reply:ty;)*) => {
        $($(#[$doc])* pub const $constant: Method<$args, Answer<$reply>> = Method::new($name, Mode::$mode);)*

        /// Name and mode of every method.
        pub const ALL: &[(&str, Mode)] = &[$(($name, Mode::$mode)),*];

        /// Shows the type of each method's success to `visitor`.
        pub fn each_success(visitor: &mut impl SuccessVisitor) {
            $(visitor.visit::<$reply>($name);)*
        }

        /// The Candid type of the whole service, with its init argument.
        pub fn service(container: &mut TypeContainer) -> Type {
            let mut methods = vec![$(($name.to_owned(), $constant.signature(container))),*];
            methods.sort_by(|a, b| a.0.cmp(&b.0));
            let init = vec![container.add::<Option<InitArg>>()];
            TypeInner::Class(init, TypeInner::Service(methods).into()).into()
        }
    };
}

methods! {
    /// Writes a value.
    KV_PUT = Update "kv_put": (String, String, Option<WriteOptions>) => Written;
    /// Reads a value.
    KV_GET = Query "kv_get": (String,) => Option<String>;
    /// Reads many values.
    KV_GET_MANY = Query "kv_get_many": (Vec<String>,) => Values;
    /// Sets or removes a key's note.
    KV_SET_NOTE = Update "kv_set_note": (String, Option<String>, Option<WriteOptions>) => ();
    /// Reads a key's note.
    KV_GET_NOTE = Query "kv_get_note": (String,) => Option<String>;
    /// Counts the keys.
    KV_COUNT = Query "kv_count": () => u64;
    /// Reads a whole entry.
    KV_GET_ENTRY = Query "kv_get_entry": (String,) => Option<Entry>;
    /// Reads a part of a value.
    KV_READ = Query "kv_read": (String, u64, u32) => Option<Part>;
    /// Lists entries.
    KV_LIST = Query "kv_list": (KvList,) => KvPage;
    /// Writes a blob.
    KV_PUT_BLOB = Update "kv_put_blob": (String, ByteBuf, Option<WriteOptions>) => Written;
    /// Appends to a blob.
    KV_APPEND = Update "kv_append": (String, ByteBuf, Option<WriteOptions>) => Appended;
    /// Removes a key.
    KV_DELETE = Update "kv_delete": (String, Option<WriteOptions>) => Deleted;
    /// Removes many keys.
    KV_DELETE_MANY = Update "kv_delete_many": (Vec<String>, Option<WriteOptions>) => Deleted;
    /// Does all of a list of operations, or none.
    KV_WRITE = Update "kv_write": (Vec<KvOperation>, Option<WriteOptions>) => Written;
    /// Gives a principal a role.
    ACCESS_GRANT = Update "access_grant": (Grant, Option<WriteOptions>) => ();
    /// Takes a principal's role away.
    ACCESS_REVOKE = Update "access_revoke": (Principal, Option<WriteOptions>) => ();
    /// Lists the roles.
    ACCESS_LIST = Query "access_list": () => AccessList;
    /// Lets anyone read the key-value store, or only those with a role.
    ACCESS_SET_PUBLIC_KV = Update "access_set_public_kv": (bool, Option<WriteOptions>) => ();
    /// Runs a statement that reads.
    SQL_QUERY = Query "sql_query": (Statement, Option<ReadOptions>) => RowSet;
    /// Runs a statement that writes.
    SQL_EXECUTE = Update "sql_execute": (Statement, Option<SqlWriteOptions>) => Executed;
    /// Runs several statements in one transaction.
    SQL_BATCH = Update "sql_batch": (Vec<Statement>, Option<SqlWriteOptions>) => BatchExecuted;
    /// Says how SQLite would run a statement.
    SQL_EXPLAIN = Query "sql_explain": (Statement,) => Plan;
    /// Describes the tables.
    SQL_SCHEMA = Query "sql_schema": () => Schema;
    /// Applies migrations.
    SQL_MIGRATE = Update "sql_migrate": (Vec<SqlMigration>, Option<WriteOptions>) => Migrated;
    /// Lists the migrations that were applied.
    SQL_MIGRATIONS = Query "sql_migrations": () => Vec<AppliedMigration>;
    /// Defines a named query.
    QUERY_DEFINE = Update "query_define": (QueryDefinition, Option<WriteOptions>) => DefinedQuery;
    /// Drops a named query.
    QUERY_DROP = Update "query_drop": (String, Option<WriteOptions>) => ();
    /// Lists the named queries.
    QUERY_LIST = Query "query_list": () => Vec<DefinedQuery>;
    /// Calls a named query.
    QUERY_CALL = Query "query_call": (String, Params, Option<ReadOptions>) => RowSet;
    /// Versions, sizes and limits.
    DB_META = Query "db_meta": () => Meta;
    /// Checks the structure of the database.
    DB_INTEGRITY_CHECK = Query "db_integrity_check": () => IntegrityReport;
    /// The digest of the image.
    DB_CHECKSUM = Query "db_checksum": () => Checksum;
    /// Answers an error that names `db_refresh_checksum_chunk`.
    DB_REFRESH_CHECKSUM = Update "db_refresh_checksum": () => Checksum;
    /// Goes on with the scan of the image.
    DB_REFRESH_CHECKSUM_CHUNK = Update "db_refresh_checksum_chunk": (Option<u64>,) => ScanProgress;
}
