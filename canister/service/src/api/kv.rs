//! The methods `kv_…`.
pub mod entries;

use super::{raw, read_budget, timer, typed};
use crate::codec::{arguments, general, replies};
use crate::error::Failure;
use crate::guard::{self, at_most, too_large};
use crate::host::Host;
use crate::limits::{KEY_BYTES_MAX, KEY_BYTES_MIN, KEYS_MAX, NOTE_BYTES_MAX, REPLY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::ops;
use crate::ops::idempotency::Request;
use crate::ops::kv::changes::Changes;
use crate::service::Service;
use entries::change;
use icsql_engine::{Reader, ValueRef};
use icsql_types::{Error, WriteOptions, method};

/// `kv_put`.
#[inline(always)]
pub fn put(host: &impl Host, service: &mut Service) {
    raw(host, service, &guard::KV_PUT, |service, argument| match arguments::key_and_value(argument) {
        Some((key, value)) => {
            check_key(key)?;
            at_most("value", VALUE_BYTES_MAX, value)?;
            put_value(host, service, None, key, ValueRef::Text(value.as_bytes()))
        }
        None => put_unusual(host, service, argument),
    });
}

#[cold]
#[inline(never)]
fn put_unusual(host: &impl Host, service: &mut Service, argument: &[u8]) -> Result<(), Error> {
    let (key, value, options) = general::decode::<(String, String, Option<WriteOptions>)>(argument)?;
    check_key(&key)?;
    at_most("value", VALUE_BYTES_MAX, &value)?;
    let options = options.unwrap_or_default();
    let request = Request::of(host, guard::KV_PUT.name, options.idempotency_key.as_deref(), argument)?;
    put_value(host, service, request.as_ref(), &key, ValueRef::Text(value.as_bytes()))
}

/// Puts a value that was checked, and replies.
#[inline(always)]
fn put_value(
    host: &impl Host,
    service: &mut Service,
    request: Option<&Request<'_>>,
    key: &str,
    value: ValueRef<'_>,
) -> Result<(), Error> {
    if request.is_some() || !service.kv.is_plain() {
        return put_carefully(host, service, request, key, value);
    }
    let version = ops::kv::put(&mut service.database, &service.tables, key, value)?;
    host.reply(&replies::written(version));
    Ok(())
}

#[cold]
#[inline(never)]
fn put_carefully(
    host: &impl Host,
    service: &mut Service,
    request: Option<&Request<'_>>,
    key: &str,
    value: ValueRef<'_>,
) -> Result<(), Error> {
    commit(host, service, request, |changes| {
        changes.put(key, value, None)?;
        Ok(replies::written(changes.version()).to_vec())
    })
}

/// Runs `body` on the entries in one transaction, which a call with an idempotency key enters once, and replies with what
/// it answers.
fn commit(
    host: &impl Host,
    service: &mut Service,
    request: Option<&Request<'_>>,
    body: impl FnOnce(&mut Changes<'_>) -> Result<Vec<u8>, Failure>,
) -> Result<(), Error> {
    let (now, before) = (host.time_ns(), service.kv);
    let mut after = None;
    let Service { database, tables, .. } = &mut *service;
    let reply = database.write(|writer| {
        let run = || {
            let mut changes = Changes::begin(writer, tables, now, before)?;
            let reply = body(&mut changes)?;
            after = Some(changes.end()?);
            Ok(reply)
        };
        match request {
            Some(request) => ops::idempotency::run(writer, request, run),
            None => run(),
        }
    })?;
    // None: the call was one that was done before.
    if let Some(after) = after {
        service.kv = after;
        timer::arm(host, service);
    }
    host.reply(&reply);
    Ok(())
}

/// `kv_get`.
#[inline(always)]
pub fn get(host: &impl Host, service: &mut Service) {
    raw(host, service, &guard::KV_GET, |service, argument| {
        let found = match arguments::key(argument) {
            Some(key) => get_checked(host, service, key)?,
            None => get_unusual(host, service, argument)?,
        };
        host.reply(if found { service.value.bytes() } else { replies::NO_VALUE });
        Ok(())
    });
}

/// Leaves the reply in the service's buffer if there is such a key.
#[inline(always)]
fn get_checked(host: &impl Host, service: &mut Service, key: &str) -> Result<bool, Error> {
    check_key(key)?;
    let now = now_if_needed(host, service);
    let Service { database, tables, value: reply, .. } = service;
    let found = database.read(|reader| ops::kv::get(reader, tables, key, now, |value| reply.set(value)))?;
    let bytes = reply.bytes().len();
    if bytes > REPLY_BYTES_MAX {
        return Err(too_large("reply", REPLY_BYTES_MAX, bytes));
    }
    Ok(found.is_some())
}

#[cold]
#[inline(never)]
fn get_unusual(host: &impl Host, service: &mut Service, argument: &[u8]) -> Result<bool, Error> {
    let (key,) = general::decode::<(String,)>(argument)?;
    get_checked(host, service, &key)
}

/// `kv_get_many`.
pub fn get_many(host: &impl Host, service: &mut Service) {
    raw(host, service, &guard::KV_GET_MANY, |service, argument| {
        let Some(keys) = arguments::keys(argument) else { return get_many_unusual(host, service, argument) };
        check_count(keys.count())?;
        match keys.decode() {
            Some(keys) => get_many_checked(host, service, &keys),
            None => get_many_unusual(host, service, argument),
        }
    });
}

fn get_many_checked<K: AsRef<str>>(host: &impl Host, service: &mut Service, keys: &[K]) -> Result<(), Error> {
    for (index, key) in keys.iter().enumerate() {
        check_key(key.as_ref()).map_err(|error| at_index(error, index))?;
    }
    let now = now_if_needed(host, service);
    let Service { database, tables, values: reply, .. } = service;
    let mut values = replies::Values::new(reply, keys.len());
    let all = database.read(|reader| {
        for key in keys {
            let added = ops::kv::get(reader, tables, key.as_ref(), now, |value| values.push(Some(value)))?;
            if !added.unwrap_or_else(|| values.push(None)) {
                return Ok(false);
            }
        }
        Ok::<_, Failure>(true)
    })?;
    if !all && values.count() == 0 {
        return Err(Error::Other {
            code: "reply full".to_owned(),
            message: format!("the value of the first key alone is larger than a reply of {REPLY_BYTES_MAX} bytes"),
        });
    }
    host.reply(values.finish());
    Ok(())
}

#[cold]
#[inline(never)]
fn get_many_unusual(host: &impl Host, service: &mut Service, argument: &[u8]) -> Result<(), Error> {
    let (keys,) = general::decode::<(Vec<String>,)>(argument)?;
    check_count(keys.len())?;
    get_many_checked(host, service, &keys)
}

/// Now, if an entry could have expired by now.
#[inline(always)]
fn now_if_needed(host: &impl Host, service: &Service) -> Option<u64> {
    if service.kv.next_expiry.is_some() { Some(host.time_ns()) } else { None }
}

/// `kv_set_note`.
pub fn set_note(host: &impl Host, service: &mut Service) {
    let options = |(_, _, options): &(String, Option<String>, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::KV_SET_NOTE, &method::KV_SET_NOTE, options, |changes, (key, note, _)| {
        check_key(&key)?;
        if let Some(note) = &note {
            at_most("note", NOTE_BYTES_MAX, note)?;
        }
        if changes.set_note(&key, note.as_deref())? { Ok(()) } else { Err(no_key(key).into()) }
    });
}

/// `kv_get_note`.
pub fn get_note(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::KV_GET_NOTE, &method::KV_GET_NOTE, |service, (key,)| {
        check_key(&key)?;
        let Service { database, tables, .. } = service;
        let note = database.read(|reader| ops::kv::get_note(reader, tables, &key, host.time_ns()))?;
        note.ok_or_else(|| no_key(key))
    });
}

/// `kv_count`.
pub fn count(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::KV_COUNT, &method::KV_COUNT, |service, ()| {
        let count = |reader: &Reader<'_>| Ok::<_, Failure>(ops::kv::count(reader, host.time_ns())?);
        Ok(service.database.read_within(&read_budget(host), count).0?)
    });
}

#[inline(always)]
fn check_key(key: &str) -> Result<(), Error> {
    if key.len() < KEY_BYTES_MIN {
        return Err(empty_key());
    }
    at_most("key", KEY_BYTES_MAX, key)
}

#[cold]
fn empty_key() -> Error {
    Error::InvalidArgument {
        argument: "key".to_owned(),
        message: format!("it is empty; a key has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes"),
    }
}

/// Says which of many keys an error is about.
#[cold]
fn at_index(error: Error, index: usize) -> Error {
    match error {
        Error::TooLarge { what, limit, actual } => Error::TooLarge { what: format!("{what} {index}"), limit, actual },
        Error::InvalidArgument { argument, message } => {
            Error::InvalidArgument { argument: format!("{argument} {index}"), message }
        }
        other => other,
    }
}

fn check_count(count: usize) -> Result<(), Error> {
    if count > KEYS_MAX { Err(too_large("keys", KEYS_MAX, count)) } else { Ok(()) }
}

#[cold]
fn no_key(key: String) -> Error {
    Error::NotFound { what: "key".to_owned(), name: key }
}
