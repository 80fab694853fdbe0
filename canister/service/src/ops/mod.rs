//! What the service does in the database: plain functions that hold the SQL. They know nothing of messages and Candid.
pub mod access;
pub mod db;
pub mod idempotency;
pub mod kv;
pub mod sql;
