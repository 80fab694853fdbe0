//! Queries that answer the instructions spent until their body ran, which is what decoding the argument cost.

use ic_cdk::api::performance_counter;

/// Leaves a heap whose allocator and panic hook are set up, so that not every query has to do it again.
#[ic_cdk::init]
fn init() {}

#[ic_cdk::query]
fn text(_argument: String) -> u64 {
    performance_counter(0)
}

#[ic_cdk::query]
fn texts(_argument: Vec<String>) -> u64 {
    performance_counter(0)
}
