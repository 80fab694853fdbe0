//! The deployed Wasm says and exports what `candid/icsql.did` promises, and needs nothing but the platform.

use std::collections::BTreeSet;

use icsql_tests::{icsql_wasm, root};
use icsql_types::method::{ALL, Mode};
use wasmparser::{Parser, Payload};

#[test]
fn the_metadata_is_the_contract() {
    let wasm = icsql_wasm();
    let contract = std::fs::read_to_string(root().join("candid/icsql.did")).unwrap();
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(&wasm) {
        if let Payload::CustomSection(section) = payload.unwrap()
            && section.name() == "icp:public candid:service"
        {
            found.push(String::from_utf8(section.data().to_vec()).unwrap());
        }
    }
    assert_eq!(found, [contract]);
}

#[test]
fn the_exports_are_the_methods_of_the_contract() {
    let wasm = icsql_wasm();
    let mut exported = BTreeSet::new();
    for payload in Parser::new(0).parse_all(&wasm) {
        if let Payload::ExportSection(section) = payload.unwrap() {
            let names = section.into_iter().map(|export| export.unwrap().name.to_string());
            exported.extend(names.filter(|name| name.starts_with("canister_")));
        }
    }
    let methods = ALL.iter().map(|(name, mode)| match mode {
        Mode::Query => format!("canister_query {name}"),
        Mode::Update => format!("canister_update {name}"),
    });
    let hooks = ["canister_init", "canister_post_upgrade", "canister_inspect_message", "canister_global_timer"]
        .map(str::to_string);
    assert_eq!(exported, methods.chain(hooks).collect());
}

#[test]
fn the_imports_are_the_platforms() {
    for payload in Parser::new(0).parse_all(&icsql_wasm()) {
        if let Payload::ImportSection(section) = payload.unwrap() {
            for import in section.into_imports() {
                let import = import.unwrap();
                assert_eq!(import.module, "ic0", "import {}", import.name);
            }
        }
    }
}
