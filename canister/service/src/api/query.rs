//! The methods `query_…`.
use super::read_instructions;
use super::{typed, write};
use crate::error::Failure;
use crate::guard;
use crate::host::Host;
use crate::ops::sql::page::{Limits, page};
use crate::ops::sql::{policy, queries};
use crate::service::Service;
use icsql_types::{Callers, Error, QueryDefinition, ReadOptions, Role, WriteOptions, method};

/// `query_define`.
pub fn define(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(QueryDefinition, Option<WriteOptions>)| options.clone();
    let (rule, types) = (&guard::QUERY_DEFINE, &method::QUERY_DEFINE);
    let defined = write(host, service, rule, types, options, |_, writer, (definition, _)| {
        Limits::new(&options_of(&definition), read_instructions(host))?;
        queries::define(writer, &definition)
    });
    if defined {
        reload(service);
    }
}

/// `query_drop`.
pub fn drop(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(String, Option<WriteOptions>)| options.clone();
    let (rule, types) = (&guard::QUERY_DROP, &method::QUERY_DROP);
    if write(host, service, rule, types, options, |_, writer, (name, _)| queries::drop(writer, &name)) {
        reload(service);
    }
}

/// Reads the definitions anew.
fn reload(service: &mut Service) {
    let Service { database, queries, .. } = service;
    *queries = database
        .read(|reader| Ok::<_, Failure>(queries::load_prepared(reader)))
        .unwrap_or_else(|failure| Err(failure.into()));
}

/// `query_list`.
pub fn list(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::QUERY_LIST, &method::QUERY_LIST, |service, ()| {
        let Service { database, queries, .. } = service;
        let queries = queries.as_ref().map_err(Error::clone)?;
        Ok(database.read(|reader| {
            let examined = queries.values().map(|definition| queries::examine_defined(reader, definition));
            Ok::<_, Failure>(examined.collect())
        })?)
    });
}

/// `query_call`.
pub fn call(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::QUERY_CALL, &method::QUERY_CALL, |service, (name, params, options)| {
        let queries = service.queries.as_ref().map_err(Error::clone)?;
        let Some(definition) = queries.get(&name) else {
            return Err(Error::NotFound { what: "query".to_owned(), name });
        };
        if let Callers::Role(least) = definition.callers
            && service.roles.of_caller(host).is_none_or(|role| role < least)
        {
            return Err(guard::QUERY_CALL.forbidden(least));
        }
        let options = options.unwrap_or_default();
        // What is asked for must be allowed by itself, and is then cut to what the definition allows.
        let asked = Limits::new(&options, read_instructions(host))?;
        let defined = Limits::new(&options_of(definition), read_instructions(host))?;
        let least = |asked: u64, defined: u64| asked.min(defined);
        let limits = Limits {
            rows: least(if options.max_rows.is_some() { asked.rows } else { defined.rows }, defined.rows),
            bytes: least(asked.bytes, defined.bytes),
            instructions: least(asked.instructions, defined.instructions),
        };
        let params = queries::parameters(definition, &params)?;
        page(&service.database, policy::reads(Role::Reader), &definition.sql, &params, limits, &options)
    });
}

/// The limits of a definition, as options.
fn options_of(definition: &QueryDefinition) -> ReadOptions {
    ReadOptions {
        max_rows: definition.max_rows,
        max_bytes: definition.max_bytes,
        max_instructions: definition.max_instructions,
        cursor: None,
        allow_changed: None,
    }
}
