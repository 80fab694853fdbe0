//! The methods: each decodes, authorises, calls, and maps errors; nothing else.
pub mod db;
pub mod kv;

use crate::codec::general;
use crate::guard::Rule;
use crate::host::Host;
use crate::limits::{QUERY_INSTRUCTIONS_MAX, REPLICATED_INSTRUCTIONS_MAX};
use candid::CandidType;
use candid::utils::ArgumentDecoder;
use icsql_engine::Budget;
use icsql_types::method::Method;
use icsql_types::{Answer, Error};

/// Lets a message through its rule and hands its argument to `body`, which replies if it succeeds.
#[inline(always)]
fn raw(host: &impl Host, rule: &Rule, body: impl FnOnce(&[u8]) -> Result<(), Error>) {
    let outcome = match rule.check(host) {
        Ok(bytes) => host.with_argument(bytes, body),
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        refuse(host, &error);
    }
}

/// The same for a method whose argument and reply the candid crate decodes and encodes.
fn typed<A, R>(host: &impl Host, rule: &Rule, _types: &Method<A, Answer<R>>, body: impl FnOnce(A) -> Result<R, Error>)
where
    A: for<'a> ArgumentDecoder<'a>,
    R: CandidType,
{
    raw(host, rule, |argument| {
        let value = body(general::decode(argument)?)?;
        host.reply(&general::encode(Ok(&value))?);
        Ok(())
    });
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

/// The instructions for a read that may have to go through the whole database.
fn read_budget(host: &impl Host) -> Budget {
    let instructions = if host.is_replicated() { REPLICATED_INSTRUCTIONS_MAX } else { QUERY_INSTRUCTIONS_MAX };
    Budget { instructions, ..Budget::UNLIMITED }
}
