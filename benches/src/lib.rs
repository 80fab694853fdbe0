//! Cost of calls in IC instructions, side by side with the relatives.
//!
//! [`cases::run`] loads the same data into a subject and measures the same calls on all, [`sequences::run`] what calls cost
//! after others, [`service::run`] methods that only icsql has, [`engine::run`] bulk work inside one message, and
//! [`growth::run`] what many rows change. The program around them prints the table, writes `benches/results.json` and
//! the pages that [`report`] makes of it, and finds drifts. The program `profile` says where one case's instructions go.

pub mod canister;
pub mod cases;
pub mod chart;
pub mod data;
pub mod engine;
pub mod flame;
pub mod growth;
pub mod report;
pub mod results;
pub mod sequences;
pub mod service;
pub mod subject;

/// Compiled modules are kept in the folder that `ICSQL_REPLICA_CACHE` names, if it names one.
fn replica_config() -> icsql_replica::Config {
    let module_cache = std::env::var_os("ICSQL_REPLICA_CACHE").map(std::path::PathBuf::from);
    icsql_replica::Config { module_cache, ..Default::default() }
}
