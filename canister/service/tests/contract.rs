//! `candid/icsql.did` is what the code decodes and encodes.
use candid::types::internal::TypeContainer;
use candid_parser::utils::{CandidSource, service_equal};
use icsql_canister::guard::RULES;
use icsql_types::method::{self, Mode};
use std::collections::BTreeSet;
use std::path::Path;

fn did() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../candid/icsql.did"))
}

/// The service as the code has it, printed as Candid.
fn service_of_the_code() -> String {
    let mut container = TypeContainer::new();
    let service = method::service(&mut container);
    candid::pretty::candid::compile(&container.env, &Some(service))
}

#[test]
fn the_candid_file_equals_the_code() {
    let code = service_of_the_code();
    // Structural equality of every method and of the init argument, both ways.
    if let Err(error) = service_equal(CandidSource::Text(&code), CandidSource::File(did())) {
        panic!("candid/icsql.did differs from the code: {error}\nthe code says:\n{code}");
    }
}

#[test]
fn every_method_has_a_rule() {
    let methods: BTreeSet<_> = method::ALL.iter().map(|(name, _)| *name).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(methods, rules);
    assert_eq!((methods.len(), rules.len()), (method::ALL.len(), RULES.len()), "a name occurs twice");
}

/// The built Wasm's exports of methods, as the platform reads them.
fn exported_methods() -> BTreeSet<String> {
    let path = std::env::var("ICSQL_WASM")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/icsql.wasm").to_owned());
    let wasm = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}; run scripts/build first"));
    let mut exports = BTreeSet::new();
    for payload in wasmparser::Parser::new(0).parse_all(&wasm) {
        if let wasmparser::Payload::ExportSection(section) = payload.unwrap() {
            exports.extend(section.into_iter().map(|export| export.unwrap().name.to_owned()));
        }
    }
    exports
}

#[test]
fn the_wasm_exports_the_methods_and_no_others() {
    let mut expected: BTreeSet<String> = method::ALL
        .iter()
        .map(|(name, mode)| match mode {
            Mode::Query => format!("canister_query {name}"),
            Mode::Update => format!("canister_update {name}"),
        })
        .collect();
    for entry in ["canister_init", "canister_post_upgrade", "canister_inspect_message", "canister_global_timer"] {
        expected.insert(entry.to_owned());
    }
    let exported: BTreeSet<String> =
        exported_methods().into_iter().filter(|name| name.starts_with("canister_")).collect();
    assert_eq!(exported, expected);
}
