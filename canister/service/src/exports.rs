//! What the Wasm exports. There is no `pre_upgrade`: nothing has to be saved, and nothing can block an upgrade.
#![allow(unsafe_code)] // exporting a function under a name of the platform's choice
use crate::api;
use crate::codec::general;
use crate::guard;
use crate::host::{Host, Ic};
use crate::limits::SMALL_ARGUMENT_BYTES_MAX;
use crate::service::Service;
use icsql_engine::OpenOptions;
use icsql_engine::stable::ic0::Ic0Memory;
use icsql_types::Error;
use std::cell::RefCell;

thread_local! {
    static SERVICE: RefCell<Option<Service>> = const { RefCell::new(None) };
}

/// Opens the service; an error ends the message, so that an install or upgrade that cannot work changes nothing.
fn start() {
    let bytes = Ic.argument_bytes();
    let opened = if bytes > SMALL_ARGUMENT_BYTES_MAX {
        Err(guard::too_large("init argument", SMALL_ARGUMENT_BYTES_MAX, bytes))
    } else {
        Ic.with_argument(bytes, general::decode_init)
            .and_then(|settings| Service::open(Ic0Memory, settings, OpenOptions::default()))
    };
    match opened {
        Ok(mut service) => {
            api::timer::arm(&Ic, &mut service);
            SERVICE.set(Some(service));
        }
        Err(error) => trap(&error),
    }
}

#[cold]
fn trap(error: &Error) -> ! {
    ic0::trap(format!("icsql: {error}").as_bytes())
}

#[inline(always)]
fn with_service(method: impl FnOnce(&Ic, &mut Service)) {
    SERVICE.with_borrow_mut(|service| match service {
        Some(service) => method(&Ic, service),
        None => ic0::trap(b"icsql: a method was called before init"),
    });
}

#[unsafe(export_name = "canister_init")]
extern "C" fn init() {
    start();
}

#[unsafe(export_name = "canister_post_upgrade")]
extern "C" fn post_upgrade() {
    start();
}

#[unsafe(export_name = "canister_inspect_message")]
extern "C" fn inspect_message() {
    let mut name = [0; 64];
    let bytes = ic0::msg_method_name_size();
    if let Some(name) = name.get_mut(..bytes) {
        ic0::msg_method_name_copy(name, 0);
        if SERVICE
            .with_borrow(|service| service.as_ref().is_some_and(|service| guard::accepts(&Ic, &service.roles, name)))
        {
            ic0::accept_message();
        }
    }
}

#[unsafe(export_name = "canister_global_timer")]
extern "C" fn global_timer() {
    with_service(api::timer::fire);
}

macro_rules! methods {
    ($($name:ident = $export:literal => $method:path;)*) => {$(
        #[unsafe(export_name = $export)]
        extern "C" fn $name() {
            with_service(|host, service| $method(host, service));
        }
    )*};
}

methods! {
    kv_put = "canister_update kv_put" => api::kv::put;
    kv_get = "canister_query kv_get" => api::kv::get;
    kv_get_many = "canister_query kv_get_many" => api::kv::get_many;
    kv_set_note = "canister_update kv_set_note" => api::kv::set_note;
    kv_get_note = "canister_query kv_get_note" => api::kv::get_note;
    kv_count = "canister_query kv_count" => api::kv::count;
    kv_get_entry = "canister_query kv_get_entry" => api::kv::entries::get_entry;
    kv_read = "canister_query kv_read" => api::kv::entries::read;
    kv_list = "canister_query kv_list" => api::kv::entries::list;
    kv_put_blob = "canister_update kv_put_blob" => api::kv::entries::put_blob;
    kv_append = "canister_update kv_append" => api::kv::entries::append;
    kv_delete = "canister_update kv_delete" => api::kv::entries::delete;
    kv_delete_many = "canister_update kv_delete_many" => api::kv::entries::delete_many;
    kv_write = "canister_update kv_write" => api::kv::entries::write;
    access_grant = "canister_update access_grant" => api::access::grant;
    access_revoke = "canister_update access_revoke" => api::access::revoke;
    access_list = "canister_query access_list" => api::access::list;
    access_set_public_kv = "canister_update access_set_public_kv" => api::access::set_public_kv;
    sql_query = "canister_query sql_query" => api::sql::query;
    sql_execute = "canister_update sql_execute" => api::sql::execute;
    sql_batch = "canister_update sql_batch" => api::sql::batch;
    sql_explain = "canister_query sql_explain" => api::sql::explain_plan;
    sql_schema = "canister_query sql_schema" => api::sql::schema;
    sql_migrate = "canister_update sql_migrate" => api::sql::migrate;
    sql_migrations = "canister_query sql_migrations" => api::sql::migrations;
    query_define = "canister_update query_define" => api::query::define;
    query_drop = "canister_update query_drop" => api::query::drop;
    query_list = "canister_query query_list" => api::query::list;
    query_call = "canister_query query_call" => api::query::call;
    db_meta = "canister_query db_meta" => api::db::meta;
    db_integrity_check = "canister_query db_integrity_check" => api::db::integrity_check;
    db_checksum = "canister_query db_checksum" => api::db::checksum;
    db_refresh_checksum = "canister_update db_refresh_checksum" => api::db::refresh_checksum;
    db_refresh_checksum_chunk = "canister_update db_refresh_checksum_chunk" => api::db::refresh_checksum_chunk;
}
