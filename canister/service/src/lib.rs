//! The icsql canister: a key-value and SQL service on SQLite in stable memory.
