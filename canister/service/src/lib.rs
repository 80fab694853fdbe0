//! The icsql canister: a key-value and SQL service on SQLite in stable memory.
pub mod codec;
pub mod guard;
pub mod host;
pub mod limits;
