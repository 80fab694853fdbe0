//! The committed figures are those of the canisters as they are now: the cases at 2,000 rows are measured again, and none
//! may be more than 2 % off, in either direction. `scripts/build --bench` and `scripts/build-fixtures` come first.

use std::process::Command;

#[test]
fn no_figure_has_drifted() {
    let check = Command::new(env!("CARGO_BIN_EXE_icsql-benches")).arg("--check").output().expect("the binary starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&check.stdout), String::from_utf8_lossy(&check.stderr));
    assert!(check.status.success(), "{stderr}\n{stdout}");
}
