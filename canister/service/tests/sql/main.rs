//! SQL and named queries, called as the platform would call them, on heap memory.
mod common;
mod differential;
mod execute;
mod migrate;
mod named;
mod page;
mod policy;
mod schema;
