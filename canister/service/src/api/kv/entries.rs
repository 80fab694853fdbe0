//! Methods for blobs, whole entries, lists and several changes at once.
use super::{at_index, check_count, check_key, commit, no_key};
use crate::api::{raw, typed};
use crate::codec::{arguments, general, replies};
use crate::error::Failure;
use crate::guard::{self, Rule, too_large};
use crate::host::Host;
use crate::limits::{NOTE_BYTES_MAX, OPERATIONS_MAX, VALUE_BYTES_MAX};
use crate::ops;
use crate::ops::idempotency::Request;
use crate::ops::kv::changes::Changes;
use crate::ops::kv::entry;
use crate::service::Service;
use candid::CandidType;
use candid::utils::ArgumentDecoder;
use icsql_engine::ValueRef;
use icsql_types::method::{self, Method};
use icsql_types::{Answer, Appended, ByteBuf, Deleted, Error, KvOperation, KvValue, Part, WriteOptions, Written};

/// `kv_get_entry`.
pub fn get_entry(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::KV_GET_ENTRY, &method::KV_GET_ENTRY, |service, (key,)| {
        check_key(&key)?;
        Ok(service.database.read(|reader| entry::get(reader, &service.tables, &key, host.time_ns()))?)
    });
}

/// `kv_read`.
pub fn read(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::KV_READ, &method::KV_READ, |service, (key, offset, length)| {
        check_key(&key)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > VALUE_BYTES_MAX {
            return Err(too_large("length", VALUE_BYTES_MAX, length));
        }
        let part = service.database.read(|reader| {
            let Some(found) = entry::visible(reader, &service.tables, &key, host.time_ns())? else { return Ok(None) };
            let bytes = entry::read(reader, &service.tables, &key, &found, offset, length)?;
            Ok::<_, Failure>(Some(Part { bytes, size: found.size, version: found.version }))
        })?;
        Ok(part)
    });
}

/// `kv_list`.
pub fn list(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::KV_LIST, &method::KV_LIST, |service, (list,)| {
        Ok(service.database.read(|reader| ops::kv::list::page(reader, &service.tables, &list, host.time_ns()))?)
    });
}

/// `kv_put_blob`.
pub fn put_blob(host: &impl Host, service: &mut Service) {
    raw(host, service, &guard::KV_PUT_BLOB, |service, argument| {
        let (key, value, options) = general::decode::<(String, ByteBuf, Option<WriteOptions>)>(argument)?;
        check_key(&key)?;
        check_bytes("value", value.len())?;
        let options = options.unwrap_or_default();
        let request = Request::of(host, guard::KV_PUT_BLOB.name, options.idempotency_key.as_deref(), argument)?;
        super::put_value(host, service, request.as_ref(), &key, ValueRef::Blob(&value))
    });
}

/// `kv_append`.
pub fn append(host: &impl Host, service: &mut Service) {
    let options = |(_, _, options): &(String, ByteBuf, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::KV_APPEND, &method::KV_APPEND, options, |changes, (key, bytes, _)| {
        check_key(&key)?;
        check_bytes("bytes", bytes.len())?;
        let size = changes.append(&key, &bytes)?;
        Ok(Appended { version: changes.version(), size })
    });
}

/// `kv_delete`.
pub fn delete(host: &impl Host, service: &mut Service) {
    raw(host, service, &guard::KV_DELETE, |service, argument| {
        // A key without options is sent as it is to `kv_get`.
        if let Some(key) = arguments::key(argument) {
            return delete_key(host, service, None, key);
        }
        let (key, options) = general::decode::<(String, Option<WriteOptions>)>(argument)?;
        let options = options.unwrap_or_default();
        let request = Request::of(host, guard::KV_DELETE.name, options.idempotency_key.as_deref(), argument)?;
        delete_key(host, service, request.as_ref(), &key)
    });
}

fn delete_key(host: &impl Host, service: &mut Service, request: Option<&Request<'_>>, key: &str) -> Result<(), Error> {
    check_key(key)?;
    commit(host, service, request, |changes| {
        let deleted = u64::from(changes.delete(key)?);
        Ok(replies::deleted(deleted, changes.version()))
    })
}

/// `kv_delete_many`.
pub fn delete_many(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(Vec<String>, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::KV_DELETE_MANY, &method::KV_DELETE_MANY, options, |changes, (keys, _)| {
        check_count(keys.len())?;
        let mut deleted = 0;
        for (index, key) in keys.iter().enumerate() {
            check_key(key).map_err(|error| at_index(error, index))?;
            deleted += u64::from(changes.delete(key)?);
        }
        Ok(Deleted { deleted, version: changes.version() })
    });
}

/// `kv_write`.
pub fn write(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(Vec<KvOperation>, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::KV_WRITE, &method::KV_WRITE, options, |changes, (operations, _)| {
        if operations.len() > OPERATIONS_MAX {
            return Err(too_large("operations", OPERATIONS_MAX, operations.len()).into());
        }
        for (index, operation) in operations.iter().enumerate() {
            check_operation(operation).map_err(|error| at_index(error, index))?;
            perform(changes, index as u32, operation)?;
        }
        Ok(Written { version: changes.version() })
    });
}

fn check_operation(operation: &KvOperation) -> Result<(), Error> {
    match operation {
        KvOperation::Put { key, value, .. } => {
            check_key(key)?;
            let bytes = match value {
                KvValue::Text(text) => text.len(),
                KvValue::Blob(blob) => blob.len(),
            };
            check_bytes("value", bytes)
        }
        KvOperation::Delete { key, .. } => check_key(key),
        KvOperation::Note { key, note, .. } => {
            check_key(key)?;
            note.as_ref().map_or(Ok(()), |note| guard::at_most("note", NOTE_BYTES_MAX, note))
        }
    }
}

fn perform(changes: &mut Changes<'_>, index: u32, operation: &KvOperation) -> Result<(), Failure> {
    match operation {
        KvOperation::Put { key, value, expires_at, condition } => {
            changes.check(index, key, *condition)?;
            let value = match value {
                KvValue::Text(text) => ValueRef::Text(text.as_bytes()),
                KvValue::Blob(blob) => ValueRef::Blob(blob),
            };
            changes.put(key, value, *expires_at)
        }
        KvOperation::Delete { key, condition } => {
            changes.check(index, key, *condition)?;
            changes.delete(key).map(drop)
        }
        KvOperation::Note { key, note, condition } => {
            changes.check(index, key, *condition)?;
            if changes.set_note(key, note.as_deref())? { Ok(()) } else { Err(no_key(key.clone()).into()) }
        }
    }
}

/// A method that changes entries in one transaction.
pub(super) fn change<A, R>(
    host: &impl Host,
    service: &mut Service,
    rule: &'static Rule,
    _types: &Method<A, Answer<R>>,
    options: impl FnOnce(&A) -> Option<WriteOptions>,
    body: impl FnOnce(&mut Changes<'_>, A) -> Result<R, Failure>,
) where
    A: for<'a> ArgumentDecoder<'a>,
    R: CandidType + 'static,
{
    raw(host, service, rule, |service, argument| {
        let arguments: A = general::decode(argument)?;
        let options = options(&arguments).unwrap_or_default();
        let request = Request::of(host, rule.name, options.idempotency_key.as_deref(), argument)?;
        commit(host, service, request.as_ref(), |changes| Ok(general::encode(Ok(&body(changes, arguments)?))?.to_vec()))
    });
}

fn check_bytes(what: &str, bytes: usize) -> Result<(), Error> {
    if bytes > VALUE_BYTES_MAX { Err(too_large(what, VALUE_BYTES_MAX, bytes)) } else { Ok(()) }
}
