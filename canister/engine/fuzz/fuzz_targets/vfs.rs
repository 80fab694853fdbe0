//! Histories of the database's file, against a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| icsql_engine::fuzz::vfs(bytes));
