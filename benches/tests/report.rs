//! The pages show the committed results and nothing else: `cargo run -p icsql-benches -- --report` makes them of
//! `benches/results.json`.

use std::path::PathBuf;

use icsql_benches::{report, results};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn pages_show_the_committed_results() {
    let committed = results::load(&root().join("benches/results.json")).unwrap();
    for (path, wanted) in report::pages(&root(), &committed).unwrap() {
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == wanted,
            "{} shows other figures than benches/results.json: run `cargo run -p icsql-benches -- --report`",
            path.display()
        );
    }
}

#[test]
fn every_case_is_explained() {
    let committed = results::load(&root().join("benches/results.json")).unwrap();
    assert_eq!(report::unexplained(&committed), [""; 0], "add these to `GROUPS` in benches/src/report.rs");
}
