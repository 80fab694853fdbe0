//! The methods `db_…`.
use super::{read_budget, typed};
use crate::error::Failure;
use crate::guard;
use crate::host::Host;
use crate::limits::{
    KEY_BYTES_MAX, KEYS_MAX, NAMED, NOTE_BYTES_MAX, REPLY_BYTES_MAX, SCAN_BYTES_DEFAULT, SCAN_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use crate::ops;
use crate::schema::SCHEMA_VERSION;
use crate::service::Service;
use icsql_engine::Reader;
use icsql_types::{Error, Limit, Limits, Meta, method};

/// The limits that every client of the key-value store meets.
pub const LIMITS: Limits = Limits {
    key_bytes_max: KEY_BYTES_MAX as u32,
    value_bytes_max: VALUE_BYTES_MAX as u32,
    note_bytes_max: NOTE_BYTES_MAX as u32,
    keys_per_call_max: KEYS_MAX as u32,
    reply_bytes_max: REPLY_BYTES_MAX as u32,
};

/// `db_meta`.
pub fn meta(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::DB_META, &method::DB_META, |service, ()| {
        let meta = service.database.meta();
        Ok(Meta {
            icsql_version: env!("CARGO_PKG_VERSION").to_owned(),
            sqlite_version: icsql_engine::sqlite_version().to_owned(),
            layout_version: meta.layout_version,
            schema_version: SCHEMA_VERSION,
            page_size: meta.page_bytes,
            pages: meta.image_pages.into(),
            image_bytes: meta.image_bytes,
            transaction: meta.transaction_id,
            digest: ops::db::hex(meta.digest),
            stable_memory_pages: service.stable.size(),
            limits: LIMITS,
            all_limits: NAMED.iter().map(|&(name, value)| Limit { name: name.to_owned(), value }).collect(),
        })
    });
}

/// `db_integrity_check`.
pub fn integrity_check(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::DB_INTEGRITY_CHECK, &method::DB_INTEGRITY_CHECK, |service, ()| {
        let meta = service.database.meta();
        let budget = read_budget(host);
        let check =
            |reader: &Reader<'_>| Ok::<_, Failure>(ops::db::integrity_check(reader, &meta, budget.instructions)?);
        Ok(service.database.read_within(&budget, check).0?)
    });
}

/// `db_checksum`.
pub fn checksum(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::DB_CHECKSUM, &method::DB_CHECKSUM, |service, ()| {
        Ok(ops::db::checksum(&service.database.meta()))
    });
}

/// `db_refresh_checksum`.
pub fn refresh_checksum(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::DB_REFRESH_CHECKSUM, &method::DB_REFRESH_CHECKSUM, |_, ()| {
        Err(Error::UseInstead {
            method: method::DB_REFRESH_CHECKSUM_CHUNK.name.to_owned(),
            message: "the digest is never stale, db_checksum answers it; to compare the image with it call \
                      db_refresh_checksum_chunk until the scan is complete"
                .to_owned(),
        })
    });
}

/// `db_refresh_checksum_chunk`.
pub fn refresh_checksum_chunk(host: &impl Host, service: &mut Service) {
    typed(
        host,
        service,
        &guard::DB_REFRESH_CHECKSUM_CHUNK,
        &method::DB_REFRESH_CHECKSUM_CHUNK,
        |service, (bytes_max,)| {
            let bytes_max = bytes_max.unwrap_or(SCAN_BYTES_DEFAULT).min(SCAN_BYTES_MAX);
            let progress = service.database.verify_chunk(bytes_max).map_err(Failure::from)?;
            Ok(ops::db::progress(progress))
        },
    );
}
