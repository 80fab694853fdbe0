//! Cost of calls in IC instructions, side by side with the relatives.
//!
//! [`cases::run`] loads the same data into a subject and measures the same calls on all; the program around it prints
//! the table, writes `benches/results.json` and finds drifts. The program `profile` says where one case's instructions go.

pub mod cases;
pub mod data;
pub mod engine;
pub mod results;
pub mod subject;
