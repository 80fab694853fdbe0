//! Compiles the vendored SQLite, for wasm32 and for the host with the same options (`vendor/sqlite/flags.txt`).
//!
//! Always at `-O2`: a development build must not make SQLite ten times slower. Everything that SQLite exports gets the
//! prefix `icsql_`, so that the engine can be linked beside another SQLite. Paths of the machine do not reach the objects.
//!
//! For wasm32 that takes a clang. Where there is none, or `ICSQL_PREBUILT=1` says so, the archive in
//! `vendor/sqlite-wasm32` is linked, which holds the same objects; `ICSQL_PREBUILT=0` forbids it.

#[path = "build/prebuilt.rs"]
mod prebuilt;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Names that are tried for a clang with the wasm32 target, in this order. `scripts/setup` installs the first.
const CLANGS: &[&str] = &[
    "clang-19",
    "/usr/lib/llvm-19/bin/clang",
    "/opt/homebrew/opt/llvm@19/bin/clang",
    "/usr/local/opt/llvm@19/bin/clang",
    "/opt/homebrew/opt/llvm/bin/clang",
    "/usr/local/opt/llvm/bin/clang",
    "clang",
    "clang-22",
    "clang-21",
    "clang-20",
    "clang-18",
    "clang-17",
];

fn main() {
    let manifest_dir = PathBuf::from(var("CARGO_MANIFEST_DIR"));
    let root = manifest_dir.join("../..").canonicalize().expect("the workspace's root exists");
    let vendor = root.join("vendor/sqlite");
    let libc = manifest_dir.join("libc");
    let out_dir = PathBuf::from(var("OUT_DIR"));
    let wasm = var("CARGO_CFG_TARGET_FAMILY").split(',').any(|family| family == "wasm");
    for path in [&vendor, &libc, &root.join(prebuilt::FOLDER)] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    for path in ["build.rs", "build"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if wasm && use_prebuilt() {
        match prebuilt::check(&root) {
            Ok(folder) => prebuilt::link(&folder),
            Err(problem) => fail(&problem),
        }
        return;
    }

    let source = read(&vendor.join("sqlite3.c"));
    fs::write(out_dir.join("icsql_rename.h"), rename_header(&source)).expect("OUT_DIR can be written to");

    let base = base(&root, &libc, wasm);
    let mut sqlite = base.clone();
    for (name, value) in flags(&read(&vendor.join("flags.txt"))) {
        sqlite.define(&name, value.as_deref());
    }
    sqlite.define("NDEBUG", None).include(&out_dir).include(&vendor).file(libc.join("amalgamation.c"));
    sqlite.compile("icsql_sqlite3");

    let mut library = base;
    // Or the compiler would turn the loop in memset() into a call of memset().
    library.flag("-fno-builtin").file(libc.join("libc.c"));
    library.compile("icsql_libc");
}

/// Whether to link the archive that was built before.
fn use_prebuilt() -> bool {
    println!("cargo::rerun-if-env-changed={}", prebuilt::VARIABLE);
    match env::var(prebuilt::VARIABLE).as_deref() {
        Ok("1") => true,
        Ok("0") => false,
        Err(env::VarError::NotPresent) | Ok("") => !compiler_is_named() && find_wasm_clang().is_none(),
        other => fail(&format!("{} is {other:?}; 1 links the prebuilt SQLite, 0 compiles it", prebuilt::VARIABLE)),
    }
}

fn base(root: &Path, libc: &Path, wasm: bool) -> cc::Build {
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).warnings(false).include(libc);
    build.flag(format!("-ffile-prefix-map={}=.", root.display()));
    // errno is never read, and without it sqrt() is one instruction.
    build.flag("-fno-math-errno");
    if !wasm {
        // A panic in a callback unwinds through SQLite's frames.
        build.flag("-fexceptions");
        return build;
    }
    choose_wasm_compiler(&mut build);
    build.include(libc.join("include")).flag("-nostdlibinc");
    // Without bulk memory: memory.copy and memory.fill cost more than the loops in libc.c at every length.
    build.flag("-msimd128").flag("-mnontrapping-fptoint").flag("-mno-bulk-memory");
    // Else the compiler writes calls of the plain names, which the headers rename.
    for name in ["memchr", "strchr", "strcmp", "strcspn", "strncmp", "strrchr", "strspn"] {
        build.flag(format!("-fno-builtin-{name}"));
    }
    build
}

/// Leaves the compiler to the `cc` crate if the user names one, and looks for a clang otherwise.
fn choose_wasm_compiler(build: &mut cc::Build) {
    if compiler_is_named() {
        return;
    }
    let Some((clang, version)) = find_wasm_clang() else {
        fail(
            "No clang that can compile SQLite for wasm32 was found. Run scripts/setup, or: on Debian and Ubuntu \
             `sudo apt-get install clang-19 llvm-19`, on macOS `brew install llvm@19` (Apple's own clang lacks the target). \
             A clang elsewhere is named with CC_wasm32_unknown_unknown, its llvm-ar with AR_wasm32_unknown_unknown. \
             Without ICSQL_PREBUILT=0 none is needed.",
        );
    };
    build.compiler(clang);
    if !named("AR") {
        let beside = Path::new(clang).with_file_name("llvm-ar");
        let archiver = [format!("llvm-ar-{version}").into(), beside].into_iter().find(|tool| runs(tool));
        build.archiver(archiver.unwrap_or_else(|| "llvm-ar".into()));
    }
}

fn named(tool: &str) -> bool {
    [format!("{tool}_wasm32_unknown_unknown"), format!("{tool}_wasm32-unknown-unknown")].iter().any(set)
}

fn compiler_is_named() -> bool {
    named("CC")
}

/// The first of [`CLANGS`] that can be used, with its major version.
fn find_wasm_clang() -> Option<(&'static str, String)> {
    CLANGS.iter().find_map(|clang| Some((*clang, wasm_clang(clang)?)))
}

fn fail(problem: &str) -> ! {
    eprintln!("{problem}");
    std::process::exit(1)
}

/// The major version of this clang, if it exists and has the wasm32 target.
fn wasm_clang(clang: &str) -> Option<String> {
    let ask = |argument| Command::new(clang).arg(argument).output().ok().filter(|output| output.status.success());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let targets = text(ask("--print-targets")?.stdout);
    let version = text(ask("-dumpversion")?.stdout);
    targets.contains("wasm32").then(|| version.trim().split('.').next().unwrap_or_default().to_owned())
}

fn runs(tool: &Path) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn set(name: &String) -> bool {
    println!("cargo::rerun-if-env-changed={name}");
    env::var_os(name).is_some()
}

/// The options in `flags.txt`: a line is empty, a comment, or `-DNAME[=VALUE]` followed by its reason.
fn flags(text: &str) -> Vec<(String, Option<String>)> {
    let mut flags = Vec::new();
    for line in text.lines() {
        let option = line.split('#').next().unwrap_or_default().trim();
        if option.is_empty() {
            continue;
        }
        let definition = option.strip_prefix("-D").unwrap_or_else(|| panic!("flags.txt: not an option: {line}"));
        flags.push(match definition.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (definition.to_owned(), None),
        });
    }
    flags
}

/// `#define sqlite3_x icsql_sqlite3_x` for each function and variable that is marked SQLITE_API.
fn rename_header(source: &str) -> String {
    let mut names = BTreeSet::new();
    let mut macros = BTreeSet::new();
    let mut rest = source;
    while let Some((line, after)) = rest.split_once('\n') {
        if line.starts_with("SQLITE_API") {
            // The declarator may be on a later line, and one declaration names one thing.
            let end = rest.find(['{', ';']).unwrap_or(rest.len());
            names.extend(declared_name(&rest[..end]));
        } else if let Some(definition) = line.strip_prefix("#define sqlite3") {
            // `#define sqlite3_mutex_enter(X)`: a function that this configuration replaces by a macro.
            let length = definition.find(|c: char| !is_word(c)).unwrap_or(definition.len());
            if definition[length..].starts_with('(') {
                macros.insert(format!("sqlite3{}", &definition[..length]));
            }
        }
        rest = after;
    }
    assert!(names.len() > 300, "the declarations in sqlite3.c look otherwise than expected: {} names", names.len());
    names.difference(&macros).map(|name| format!("#define {name} icsql_{name}\n")).collect()
}

/// The first word that begins with `sqlite3` and is followed by what only a declarator is followed by.
fn declared_name(declaration: &str) -> Option<String> {
    let mut position = 0;
    while let Some(found) = declaration[position..].find("sqlite3") {
        let start = position + found;
        let word = &declaration[start..];
        let length = word.find(|c: char| !is_word(c)).unwrap_or(word.len());
        let follows = word[length..].trim_start().chars().next();
        let begins_word = !declaration[..start].ends_with(is_word);
        if begins_word && matches!(follows, None | Some('(' | ')' | '[' | '=')) {
            return Some(word[..length].to_owned());
        }
        position = start + length;
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn read(path: &Path) -> String {
    // The amalgamation is ASCII but for some comments.
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name}"))
}
