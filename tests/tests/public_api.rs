//! The public Rust interface of icsql-engine and icsql-types changes only on purpose: each has it as a text,
//! `public-api.txt` beside its manifest. For wasm32, where it is used.

use icsql_tests::root;
use public_api::Builder;
use std::process::Command;
use std::{env, fs};

/// Writes the texts anew.
const UPDATE: &str = "ICSQL_UPDATE_PUBLIC_API=1 cargo test --workspace --test public_api";

fn unchanged(package: &str, folder: &str) {
    let target = root().join("target/public-api");
    // rustdoc's JSON is not stable: public-api reads the format of the compiler that scripts/versions.env names.
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--package", package, "--target", "wasm32-unknown-unknown"])
        .args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTC_BOOTSTRAP", "1")
        // Nothing is linked, so nothing has to be compiled.
        .env("ICSQL_PREBUILT", "1")
        .status();
    assert!(status.expect("cargo runs").success(), "{package} could not be documented; run scripts/setup");
    let json = target.join(format!("wasm32-unknown-unknown/doc/{}.json", package.replace('-', "_")));
    let api = Builder::from_rustdoc_json(&json).omit_blanket_impls(true).omit_auto_trait_impls(true).build();
    let api = api.unwrap_or_else(|error| panic!("{error}: is it rustc of the version in scripts/versions.env?"));
    let found: String = api.items().map(|item| format!("{item}\n")).collect();

    let path = root().join(folder).join("public-api.txt");
    if env::var_os("ICSQL_UPDATE_PUBLIC_API").is_some() {
        fs::write(&path, &found).expect("the text can be written");
        return;
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let only = |these: &str, others: &str, sign: &str| -> String {
        let others: std::collections::HashSet<_> = others.lines().collect();
        these.lines().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    let changes = only(&recorded, &found, "-") + &only(&found, &recorded, "+");
    assert!(
        recorded == found,
        "the public interface of {package} is not what {folder}/public-api.txt says:\n{changes}\
         If that is meant, run `{UPDATE}`, and say in CHANGELOG.md what users notice."
    );
}

#[test]
fn the_engines_interface_changes_only_on_purpose() {
    unchanged("icsql-engine", "canister/engine");
}

#[test]
fn the_interface_of_the_types_changes_only_on_purpose() {
    unchanged("icsql-types", "canister/types");
}
