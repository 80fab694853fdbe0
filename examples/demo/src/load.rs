//! Puts airports into the key-value store, one update call each, and adds up what the calls cost.

use crate::airports::Airport;
use crate::deployed::Deployed;
use crate::error::Error;
use crate::progress::Progress;
use icsql_types::Written;
use icsql_types::method::KV_PUT;
use serde::Serialize;
use std::time::Instant;

/// Calls that are under way at a time. They run one after the other all the same, but what they cost is then asked for
/// once. The replica keeps the answers of 256 calls.
const BATCH: usize = 64;

/// What loading cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Update calls, which is airports.
    pub calls: u64,
    /// Seconds on this machine, from the first call to the last answer.
    pub seconds: f64,
    /// Instructions of all calls.
    pub instructions: u64,
    /// Cycles that the canister paid for all calls.
    pub cycles: u64,
    /// Instructions of a call, on average, rounded.
    pub instructions_average: u64,
    /// Instructions of the dearest call.
    pub instructions_max: u64,
    /// The key that the dearest call wrote.
    pub dearest_key: String,
}

/// Puts every airport.
///
/// # Errors
/// At the first call that fails; those before it stay.
pub fn load(deployed: &Deployed, airports: &[Airport]) -> Result<Loaded, Error> {
    let progress = Progress::new(airports.len());
    let (started, balance) = (Instant::now(), deployed.balance());
    let (mut total, mut dearest) = (0, (0, ""));
    for (batch, done) in airports.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let submitted = batch.iter().map(|airport| {
            deployed.submit(&KV_PUT, (airport.key.clone(), airport.value.clone(), None)).map(|id| (airport, id))
        });
        for (airport, id) in submitted.collect::<Result<Vec<_>, _>>()? {
            let _: Written = deployed.finish(&format!("kv_put {:?}", airport.key), id)?;
        }
        let costs = deployed.instructions(KV_PUT.name)?;
        if costs.len() != batch.len() {
            let message = format!("the server counted {} messages in place of {}", costs.len(), batch.len());
            return Err(Error::Unexpected { call: KV_PUT.name.into(), message });
        }
        for (airport, instructions) in batch.iter().zip(costs) {
            total += instructions;
            dearest = dearest.max((instructions, &airport.key));
        }
        progress.reached(done + batch.len());
    }
    progress.end();
    let calls = airports.len() as u64;
    Ok(Loaded {
        calls,
        seconds: started.elapsed().as_secs_f64(),
        instructions: total,
        cycles: balance.saturating_sub(deployed.balance()),
        instructions_average: (total + calls / 2).checked_div(calls).unwrap_or(0),
        instructions_max: dearest.0,
        dearest_key: dearest.1.to_owned(),
    })
}
