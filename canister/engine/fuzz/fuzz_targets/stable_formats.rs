//! Bytes that could be anything, read as each of the formats in stable memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| icsql_engine::fuzz::stable_formats(bytes));
