//! House rules that the compiler does not check: which layer may know of which, where `unsafe` is, how long a file gets.
//! Each rule says what to do in place of what it forbids.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may hold `unsafe` code, each with the reason. Everything else goes through their safe interfaces.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("canister/engine/src/ic0.rs", "the system API"),
    ("canister/engine/src/stable/ic0.rs", "the system API"),
    ("canister/engine/src/stable/digest.rs", "loads of 16 bytes for the page hash"),
    ("canister/engine/src/sqlite/alloc.rs", "SQLite's allocator"),
    ("canister/engine/src/sqlite/pcache.rs", "SQLite's page cache"),
    ("canister/engine/src/sqlite/connection.rs", "handles of SQLite"),
    ("canister/engine/src/sqlite/keyed.rs", "handles of SQLite"),
    ("canister/engine/src/sqlite/statement.rs", "handles of SQLite"),
    ("canister/engine/src/sqlite/sys/mod.rs", "the raw bindings"),
    ("canister/engine/src/vfs/shim.rs", "the callbacks of the VFS"),
    ("canister/engine/src/text.rs", "UTF-8 that was just checked"),
    ("canister/engine/tests/heap.rs", "an allocator that counts"),
    ("canister/engine/tests/heap_limit.rs", "an allocator that refuses"),
    ("canister/engine/tests/libc.rs", "calls the C library under test"),
    ("canister/service/src/exports.rs", "exports functions under names of the platform's choice"),
    ("canister/service/src/host.rs", "the system API"),
    ("replica/src/wasm/artifact.rs", "loads modules that were compiled before"),
];

/// Files that may be longer than [`LINES_MAX`], each with the reason.
const LONG_FILES: &[(&str, &str)] =
    &[("replica/src/wasm/instrument.rs", "one pass over a module, whose steps share the rewriter's state")];
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the workspace").to_owned()
}

/// The `.rs` files below a folder of the project, as paths from its root, without build products.
fn sources(folder: &str) -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    walk(&path, found);
                }
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    let from_root =
        |path: PathBuf| path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
    found.into_iter().map(from_root).collect()
}

/// The file's text without comments that take a line.
fn code(path: &str) -> String {
    let text = fs::read_to_string(root().join(path)).expect(path);
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// What follows each `prefix::` in the code: `prefix::a::b` gives `a::b`, `prefix::{a, b::c}` gives `a` and `b::c`.
fn paths_after(code: &str, prefix: &str) -> Vec<String> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut paths = Vec::new();
    for (position, found) in code.match_indices(&format!("{prefix}::")) {
        if code[..position].ends_with(|c: char| is_path(c) || c == '$') {
            continue;
        }
        let rest = &code[position + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            paths.push(rest.chars().take_while(|c| is_path(*c)).collect());
            continue;
        };
        let mut depth = 0;
        let mut member = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => paths.push(core::mem::take(&mut member)),
                c if depth == 0 && is_path(c) => member.push(c),
                _ => {}
            }
        }
        paths.push(member);
    }
    paths
}

/// No file below `folder` names one of `forbidden` at the crate's root, except for the paths in `allowed`.
fn layer_does_not_know(folder: &str, forbidden: &[&str], allowed: &[&str], advice: &str) {
    let files = sources(folder);
    assert!(!files.is_empty(), "{folder} has no sources; the layout changed, and this rule must follow");
    for file in files {
        let code = code(&file);
        // From the top folder of a layer, `super::super` is the crate's root.
        let depth = file[folder.len()..].matches('/').count();
        let supers = vec!["super"; depth + 1].join("::");
        let mut paths = paths_after(&code, "crate");
        paths.extend(paths_after(&code, &supers));
        for path in paths {
            let first = path.split(':').next().unwrap_or_default();
            let fine = allowed.iter().any(|allowed| path == *allowed || path.starts_with(&format!("{allowed}::")));
            assert!(fine || !forbidden.contains(&first), "{file} uses `{path}`: {advice}");
        }
    }
}

#[test]
fn paths_are_found_in_every_form() {
    let found =
        paths_after("use crate::a::b;\nuse crate::{c, d::{e, f}, g::h};\nlet x = crate::i();\nother_crate::j", "crate");
    assert_eq!(found, ["a::b", "c", "d::", "g::h", "i"]);
}

#[test]
fn stable_stands_on_nothing() {
    let advice = "the stable layer is below everything; hand what it needs down as an argument";
    layer_does_not_know("canister/engine/src/stable", &["vfs", "sqlite", "db", "env"], &[], advice);
}

#[test]
fn vfs_and_sqlite_do_not_meet() {
    let advice = "`db` joins the two by the VFS's name; only the raw bindings and SQLite's lock are common";
    layer_does_not_know("canister/engine/src/vfs", &["sqlite", "db"], &["sqlite::sys", "sqlite::lock"], advice);
    layer_does_not_know("canister/engine/src/sqlite", &["vfs", "db", "stable"], &[], advice);
}

#[test]
fn operations_of_the_service_do_not_know_its_interface() {
    let advice = "`api` decodes, authorises and maps errors, `ops` is plain functions on a transaction";
    layer_does_not_know("canister/service/src/ops", &["api", "exports"], &[], advice);
}

#[test]
fn the_engine_knows_neither_candid_nor_the_service() {
    let manifest = fs::read_to_string(root().join("canister/engine/Cargo.toml")).expect("the engine's manifest");
    for name in ["candid", "ic-cdk", "icsql-types", "icsql-canister"] {
        let depends = manifest.lines().any(|line| line.split(['=', '.', ' ']).next() == Some(name));
        assert!(
            !depends,
            "icsql-engine depends on {name}: types of the interface belong to icsql-types and the service"
        );
    }
}

#[test]
fn the_engine_never_waits() {
    for file in sources("canister/engine/src") {
        let code = code(&file);
        let waits =
            code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| ["async", "await"].contains(&word));
        assert!(!waits, "{file} is async: a transaction must not span an await; wait outside of the engine");
    }
}

#[test]
fn unsafe_code_is_where_it_is_listed() {
    let mut listed: Vec<&str> = UNSAFE_FILES.iter().map(|(file, _)| *file).collect();
    for file in ["canister", "replica", "tests", "benches", "cli"].into_iter().flat_map(sources) {
        if file == "tests/tests/architecture.rs" || !code(&file).contains("allow(unsafe_code") {
            continue;
        }
        let position = listed.iter().position(|name| *name == file);
        let position = position
            .unwrap_or_else(|| panic!("{file} allows unsafe code: use a safe interface of those in UNSAFE_FILES"));
        listed.swap_remove(position);
    }
    assert!(listed.is_empty(), "no longer unsafe, strike them from UNSAFE_FILES: {listed:?}");
}

#[test]
fn files_are_of_a_length_that_can_be_read() {
    for file in ["canister", "replica", "tests", "benches", "cli"].into_iter().flat_map(sources) {
        let lines = fs::read_to_string(root().join(&file)).expect(&file).lines().count();
        let listed = LONG_FILES.iter().any(|(name, _)| *name == file);
        assert!(
            lines <= LINES_MAX || listed,
            "{file} has {lines} lines, the limit is {LINES_MAX}: split it by what its parts know"
        );
    }
}
