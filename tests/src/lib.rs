//! Suites against the deployed icsql Wasm, through the pocket-ic crate.
