//! SQLite for wasm32 as `scripts/prebuild-sqlite` built it, for those who have no clang. The archive belongs to the sources
//! whose hashes stand beside it; with others it is refused.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable that asks for the archive (1) or forbids it (0).
pub const VARIABLE: &str = "ICSQL_PREBUILT";

/// Where the archive is, from the project's root.
pub const FOLDER: &str = "vendor/sqlite-wasm32";

/// The library's name, as linkers take it.
const LIBRARY: &str = "icsql_sqlite3_wasm32";

/// What the archive is made of, from the project's root: files, and folders with all that is in them.
const SOURCES: &[&str] = &[
    "canister/engine/build.rs",
    "canister/engine/libc",
    "vendor/sqlite/flags.txt",
    "vendor/sqlite/sqlite3.c",
    "vendor/sqlite/sqlite3.h",
];

/// Hashes, a line each: SHA-256 in hex, two spaces, a path from the project's root. Of the archive and of every source.
const HASHES: &str = "sha256sums.txt";

/// Tells Cargo to link the archive.
pub fn link(folder: &Path) {
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=static={LIBRARY}");
}

/// The folder of the archive, after a look at whether it is the one that belongs to the sources.
pub fn check(root: &Path) -> Result<PathBuf, String> {
    let advice =
        "Run scripts/prebuild-sqlite, which needs clang, or compile SQLite with a clang of your own (scripts/setup).";
    let folder = root.join(FOLDER);
    let path = folder.join(HASHES);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}. {advice}", path.display()))?;
    let mut recorded = BTreeMap::new();
    for line in text.lines() {
        let (hash, file) = line.split_once("  ").ok_or_else(|| format!("{FOLDER}/{HASHES}: not a hash: {line}"))?;
        recorded.insert(file.to_owned(), hash.to_owned());
    }
    let mut files = vec![format!("{FOLDER}/lib{LIBRARY}.a")];
    for source in SOURCES {
        walk(root, source, &mut files)?;
    }
    for file in files {
        let bytes = fs::read(root.join(&file)).map_err(|error| format!("{file}: {error}. {advice}"))?;
        let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        match recorded.remove(&file) {
            Some(hash) if hash == found => {}
            Some(_) => return Err(format!("{file} is not what the SQLite in {FOLDER} was built from. {advice}")),
            None => return Err(format!("{file} is new since the SQLite in {FOLDER} was built. {advice}")),
        }
    }
    match recorded.keys().next() {
        Some(file) => Err(format!("{file} is gone since the SQLite in {FOLDER} was built. {advice}")),
        None => Ok(folder),
    }
}

/// Appends the files at `path`, as paths from the root.
fn walk(root: &Path, path: &str, files: &mut Vec<String>) -> Result<(), String> {
    let problem = |error| format!("{path}: {error}");
    if !root.join(path).is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(root.join(path)).map_err(problem)? {
        let name = entry.map_err(problem)?.file_name();
        walk(root, &format!("{path}/{}", name.to_string_lossy()), files)?;
    }
    Ok(())
}
