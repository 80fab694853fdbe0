//! The methods `sql_…`.
use super::{raw, read_budget, read_instructions, typed};
use crate::codec::general;
use crate::error::Failure;
use crate::guard::{self, Rule, too_large};
use crate::host::Host;
use crate::limits::{SQL_DECODING_UNITS_PER_BYTE, SQL_STATEMENTS_MAX, SQL_WRITE_PAGES_MAX, sql_write_instructions_max};
use crate::ops::idempotency::{self, Request};
use crate::ops::sql::execute::{self, Limits};
use crate::ops::sql::page::{self, page};
use crate::ops::sql::value::{Bound, Rows};
use crate::ops::sql::{cost, explain, migrate, plan, policy, schema};
use crate::service::Service;
use candid::CandidType;
use candid::utils::ArgumentDecoder;
use icsql_engine::{Budget, Metrics, Writer};
use icsql_types::method::{self, Method};
use icsql_types::{
    Answer, BatchExecuted, Error, Executed, Migrated, Role, Schema, SqlMigration, SqlWriteOptions, Statement,
    StatementResult, WriteOptions,
};

/// The role of a caller whom a rule has let through.
pub(super) fn role(host: &impl Host, service: &Service) -> Role {
    service.roles.of_caller(host).unwrap_or(Role::Reader)
}

/// `sql_query`.
pub fn query(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::SQL_QUERY, &method::SQL_QUERY, |service, (statement, options)| {
        let options = options.unwrap_or_default();
        let limits = page::Limits::new(&options, read_instructions(host))?;
        let params = Bound::new(statement.params.as_ref())?;
        let policy = policy::reads(role(host, service));
        page(&service.database, policy, &statement.sql, &params, limits, &options)
    });
}

/// `sql_execute`.
pub fn execute(host: &impl Host, service: &mut Service) {
    let role = role(host, service);
    let write = Write {
        rule: &guard::SQL_EXECUTE,
        types: &method::SQL_EXECUTE,
        key: |(_, options): &(Statement, Option<SqlWriteOptions>)| options.as_ref()?.idempotency_key.clone(),
        schema: false,
    };
    write.run(
        host,
        service,
        |max, (_, options)| Limits::new(&options.clone().unwrap_or_default(), max),
        |limits| limits.budget,
        |writer, service_schema, limits, (statement, _)| {
            let statements = core::slice::from_ref(statement);
            execute::execute(writer, policy::writes(role), service_schema, statements, limits, false)
        },
        |(results, rows): (Vec<StatementResult>, Rows), transaction, metrics| {
            let StatementResult { changes, last_rowid, columns, rows: returned } =
                results.into_iter().next().unwrap_or_default();
            let cost = cost(metrics, rows.count, rows.bytes);
            Executed { changes, last_rowid, columns, rows: returned, transaction, cost }
        },
    );
}

/// `sql_batch`.
pub fn batch(host: &impl Host, service: &mut Service) {
    let role = role(host, service);
    let write = Write {
        rule: &guard::SQL_BATCH,
        types: &method::SQL_BATCH,
        key: |(_, options): &(Vec<Statement>, Option<SqlWriteOptions>)| options.as_ref()?.idempotency_key.clone(),
        schema: false,
    };
    write.run(
        host,
        service,
        |max, (statements, options)| {
            if statements.len() > SQL_STATEMENTS_MAX {
                return Err(too_large("statements", SQL_STATEMENTS_MAX, statements.len()));
            }
            Limits::new(&options.clone().unwrap_or_default(), max)
        },
        |limits| limits.budget,
        |writer, service_schema, limits, (statements, _)| {
            execute::execute(writer, policy::writes(role), service_schema, statements, limits, true)
        },
        |(results, rows): (Vec<StatementResult>, Rows), transaction, metrics| BatchExecuted {
            results,
            transaction,
            cost: cost(metrics, rows.count, rows.bytes),
        },
    );
}

/// `sql_migrate`.
pub fn migrate(host: &impl Host, service: &mut Service) {
    let write = Write {
        rule: &guard::SQL_MIGRATE,
        types: &method::SQL_MIGRATE,
        key: |(_, options): &(Vec<SqlMigration>, Option<WriteOptions>)| options.as_ref()?.idempotency_key.clone(),
        schema: true,
    };
    let now_ns = host.time_ns();
    write.run(
        host,
        service,
        |max, (migrations, _)| {
            migrate::check(migrations)?;
            Ok(Budget { instructions: max, dirty_pages: SQL_WRITE_PAGES_MAX, ..Budget::UNLIMITED })
        },
        |budget| *budget,
        |writer, service_schema, _, (migrations, _)| migrate::migrate(writer, service_schema, migrations, now_ns),
        |(applied, broken_queries), transaction, metrics| Migrated {
            applied,
            broken_queries,
            transaction,
            cost: cost(metrics, 0, 0),
        },
    );
}

/// `sql_explain`.
pub fn explain_plan(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::SQL_EXPLAIN, &method::SQL_EXPLAIN, |service, (statement,)| {
        crate::ops::sql::check_sql(&statement.sql)?;
        let policy = policy::writes(role(host, service));
        let plan = |reader: &icsql_engine::Reader<'_>| plan::explain(&reader.restricted(policy), &statement.sql);
        let (plan, metrics) = service.database.read_within(&read_budget(host), plan);
        plan.map_err(|failure| explain(failure, &metrics))
    });
}

/// `sql_schema`.
pub fn schema(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::SQL_SCHEMA, &method::SQL_SCHEMA, |service, ()| {
        let role = role(host, service);
        let tables = |reader: &icsql_engine::Reader<'_>| schema::tables(reader, role);
        let (tables, metrics) = service.database.read_within(&read_budget(host), tables);
        let tables = tables.map_err(|failure| explain(failure, &metrics))?;
        Ok(Schema { tables, transaction: service.database.meta().transaction_id })
    });
}

/// `sql_migrations`.
pub fn migrations(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::SQL_MIGRATIONS, &method::SQL_MIGRATIONS, |service, ()| {
        Ok(service.database.read(migrate::applied)?)
    });
}

/// A method that writes by SQL within a budget, and can be safe to repeat.
struct Write<A: 'static, R: 'static, K> {
    rule: &'static Rule,
    types: &'static Method<A, Answer<R>>,
    key: K,
    /// Whether foreign keys are checked as a whole at the end.
    schema: bool,
}

/// What a call answers: made now, or encoded before the transaction ended so that it could be remembered.
enum Reply<T> {
    Made(T),
    Encoded(Vec<u8>),
}

impl<A, R, K> Write<A, R, K>
where
    A: for<'a> ArgumentDecoder<'a>,
    R: CandidType + 'static,
    K: FnOnce(&A) -> Option<String>,
{
    /// `limits` of the most instructions and the arguments; the `budget` in them; `body` runs in the transaction; `reply`
    /// is made of what it did, the transaction's id and what was used. With an idempotency key the reply is made before
    /// the commit, which it then does not count.
    fn run<L, T>(
        self,
        host: &impl Host,
        service: &mut Service,
        limits: impl FnOnce(u64, &A) -> Result<L, Error>,
        budget: impl FnOnce(&L) -> Budget,
        body: impl FnOnce(&Writer<'_>, &[u8; 32], &L, &A) -> Result<T, Failure>,
        reply: impl FnOnce(T, u64, &Metrics) -> R,
    ) {
        let _ = self.types;
        raw(host, service, self.rule, |service, argument| {
            let arguments: A = general::decode_within(argument, SQL_DECODING_UNITS_PER_BYTE)?;
            let limits = limits(sql_write_instructions_max(service.database.meta().image_bytes), &arguments)?;
            let key = (self.key)(&arguments);
            let request = Request::of(host, self.rule.name, key.as_deref(), argument)?;
            let Service { database, service_schema, queries, .. } = service;
            let cookie = database.read(|reader| Ok::<_, Failure>(reader.schema_cookie()))?;
            let mut make = Some(reply);
            let within = |writer: &Writer<'_>| match &request {
                None => Ok::<_, Failure>(Reply::Made(body(writer, service_schema, &limits, &arguments)?)),
                Some(request) => Ok(Reply::Encoded(idempotency::run(writer, request, || {
                    let done = body(writer, service_schema, &limits, &arguments)?;
                    let Some(make) = make.take() else { return Err(again()) };
                    Ok(general::encode(Ok(&make(done, writer.id(), &writer.metrics())))?.to_vec())
                })?)),
            };
            let budget = budget(&limits);
            let (outcome, metrics) = if self.schema {
                database.write_schema(&budget, within)
            } else {
                database.write_within(&budget, within)
            };
            let encoded = match outcome.map_err(|failure| explain(failure, &metrics))? {
                Reply::Encoded(bytes) => bytes,
                Reply::Made(done) => {
                    let Some(make) = make.take() else { return Err(again().into()) };
                    general::encode(Ok(&make(done, database.meta().transaction_id, &metrics)))?.to_vec()
                }
            };
            database.read(|reader| {
                if let Ok(queries) = queries
                    && reader.schema_cookie() != cookie
                {
                    crate::ops::sql::queries::prepare(reader, queries);
                }
                Ok::<_, Failure>(())
            })?;
            host.reply(&encoded);
            Ok(())
        });
    }
}

/// A reply is made once; there is no way to here.
#[cold]
fn again() -> Failure {
    Error::Other { code: "internal".to_owned(), message: "a reply was made twice".to_owned() }.into()
}
