//! The methods: each decodes, authorises, calls, and maps errors; nothing else.
pub mod access;
pub mod db;
pub mod kv;
pub mod query;
pub mod sql;
pub mod timer;

use crate::codec::general;
use crate::error::Failure;
use crate::guard::{Roles, Rule, too_large};
use crate::host::Host;
use crate::limits::{QUERY_INSTRUCTIONS_MAX, REPLICATED_INSTRUCTIONS_MAX, REPLY_BYTES_MAX};
use crate::ops;
use crate::ops::idempotency::Request;
use crate::service::Service;
use candid::CandidType;
use candid::utils::ArgumentDecoder;
use icsql_engine::{Budget, Writer};
use icsql_types::method::Method;
use icsql_types::{Answer, Error, WriteOptions};

/// Lets a message through its rule and hands its argument to `body`, which replies if it succeeds.
#[inline(always)]
fn raw(
    host: &impl Host,
    service: &mut Service,
    rule: &Rule,
    body: impl FnOnce(&mut Service, &[u8]) -> Result<(), Error>,
) {
    let outcome = match rule.check(host, &service.roles) {
        Ok(bytes) => host.with_argument(bytes, |argument| body(service, argument)),
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        refuse(host, &error);
    }
}

/// The same for a method whose argument and reply the candid crate decodes and encodes.
fn typed<A, R>(
    host: &impl Host,
    service: &mut Service,
    rule: &Rule,
    _types: &Method<A, Answer<R>>,
    body: impl FnOnce(&mut Service, A) -> Result<R, Error>,
) where
    A: for<'a> ArgumentDecoder<'a>,
    R: CandidType + 'static,
{
    raw(host, service, rule, |service, argument| {
        let value = body(service, general::decode(argument)?)?;
        let reply = general::encode(Ok(&value))?;
        if reply.len() > REPLY_BYTES_MAX {
            return Err(too_large("reply", REPLY_BYTES_MAX, reply.len()));
        }
        host.reply(&reply);
        Ok(())
    });
}

/// The same for a method that writes and can be safe to repeat: `body` runs in a transaction, which a call with an
/// idempotency key enters once. Answers whether the call has succeeded.
fn write<A, R>(
    host: &impl Host,
    service: &mut Service,
    rule: &'static Rule,
    _types: &Method<A, Answer<R>>,
    options: impl FnOnce(&A) -> Option<WriteOptions>,
    body: impl FnOnce(&Roles, &Writer<'_>, A) -> Result<R, Failure>,
) -> bool
where
    A: for<'a> ArgumentDecoder<'a>,
    R: CandidType + 'static,
{
    let mut succeeded = false;
    raw(host, service, rule, |service, argument| {
        let arguments: A = general::decode(argument)?;
        let key = options(&arguments).and_then(|options| options.idempotency_key);
        let request = Request::of(host, rule.name, key.as_deref(), argument)?;
        let Service { database, roles, .. } = service;
        let reply = database.write(|writer| {
            let reply = || Ok(general::encode(Ok(&body(roles, writer, arguments)?))?.to_vec());
            match &request {
                Some(request) => ops::idempotency::run(writer, request, reply),
                None => reply(),
            }
        })?;
        host.reply(&reply);
        succeeded = true;
        Ok(())
    });
    succeeded
}

#[cold]
#[inline(never)]
fn refuse(host: &impl Host, error: &Error) {
    match general::encode::<()>(Err(error)) {
        Ok(reply) => host.reply(&reply),
        // An error is always encodable. Should it not be, a reply that does not decode beats a trap that says nothing.
        Err(_) => host.reply(b"DIDL\x00\x00"),
    }
}

/// The most instructions that a read may have.
fn read_instructions(host: &impl Host) -> u64 {
    if host.is_replicated() { REPLICATED_INSTRUCTIONS_MAX } else { QUERY_INSTRUCTIONS_MAX }
}

/// The budget of a read that may have to go through the whole database.
fn read_budget(host: &impl Host) -> Budget {
    Budget { instructions: read_instructions(host), ..Budget::UNLIMITED }
}
