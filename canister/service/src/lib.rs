//! The icsql canister: a key-value and SQL service on SQLite in stable memory.
//!
//! Calls go one way: this file's exports → [`api`] → [`ops`] → the engine.
pub mod api;
pub mod codec;
pub mod error;
pub mod guard;
pub mod host;
pub mod limits;
pub mod ops;
pub mod schema;
pub mod service;

#[cfg(target_arch = "wasm32")]
mod exports;
