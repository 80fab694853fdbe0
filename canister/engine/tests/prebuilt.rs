//! The prebuilt SQLite belongs to the sources, and one that does not is refused with words.
#[allow(dead_code, reason = "what only the build script needs")]
#[path = "../build/prebuilt.rs"]
mod prebuilt;

use prebuilt::{FOLDER, check};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_archive_was_built_from_these_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert_eq!(check(&root), Ok(root.join(FOLDER)));
}

/// A tree of small files in the places of the real ones, with the hashes that belong to them.
struct Tree(PathBuf);

const FILES: &[&str] = &[
    "canister/engine/build.rs",
    "canister/engine/libc/libc.c",
    "canister/engine/libc/include/math.h",
    "vendor/sqlite/flags.txt",
    "vendor/sqlite/sqlite3.c",
    "vendor/sqlite/sqlite3.h",
    "vendor/sqlite-wasm32/libicsql_sqlite3_wasm32.a",
];

impl Tree {
    fn new(name: &str) -> Self {
        let tree = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let _ = fs::remove_dir_all(&tree.0);
        let mut sums = String::new();
        for file in FILES {
            tree.write(file, file);
            let hash: String = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect();
            sums += &format!("{hash}  {file}\n");
        }
        tree.write("vendor/sqlite-wasm32/sha256sums.txt", &sums);
        assert_eq!(check(&tree.0), Ok(tree.0.join(FOLDER)));
        tree
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The refusal names `what`, and what to do.
    fn is_refused(&self, what: &str) {
        let problem = check(&self.0).unwrap_err();
        assert!(problem.contains(what) && problem.contains("scripts/prebuild-sqlite"), "{problem}");
    }
}

#[test]
fn an_archive_of_other_sources_is_refused() {
    for file in FILES {
        let tree = Tree::new("changed");
        tree.write(file, "changed");
        tree.is_refused(&format!("{file} is not what"));
    }
    let tree = Tree::new("new");
    tree.write("canister/engine/libc/include/new.h", "");
    tree.is_refused("canister/engine/libc/include/new.h is new");

    let tree = Tree::new("gone");
    fs::remove_file(tree.0.join("canister/engine/libc/include/math.h")).unwrap();
    tree.is_refused("canister/engine/libc/include/math.h is gone");

    let tree = Tree::new("nothing");
    fs::remove_dir_all(tree.0.join(FOLDER)).unwrap();
    tree.is_refused("sha256sums.txt");
}
