//! The methods of the canister, called as the platform would call them, on heap memory.
mod access;
mod common;
mod db;
mod entries;
mod expiry;
mod histories;
mod kv;
mod large_values;
