//! Puts entries into the store, one update call each, and adds up what the calls cost.

use crate::airports::Entry;
use crate::deployed::Deployed;
use crate::error::Error;
use crate::show::thousands;
use icsql_types::Written;
use icsql_types::method::KV_PUT;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Calls that are under way at a time. They run one after the other all the same, but what they cost is then asked for
/// once. The replica keeps the answers of 256 calls.
const BATCH: usize = 64;
/// Plain lines of progress, where there is no terminal.
const LINES: usize = 4;

/// What loading cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Update calls, which is entries.
    pub calls: u64,
    /// Seconds on this machine, from the first call to the last answer.
    pub seconds: f64,
    /// Instructions of all calls.
    pub instructions: u64,
    /// Instructions of a call, on average, rounded.
    pub instructions_average: u64,
    /// Instructions of the dearest call.
    pub instructions_max: u64,
    /// The key that the dearest call wrote.
    pub dearest_key: String,
}

/// Puts every entry.
///
/// # Errors
/// At the first call that fails; those before it stay.
pub fn load(deployed: &Deployed, entries: &[Entry]) -> Result<Loaded, Error> {
    let progress = Progress::new(entries.len());
    let started = Instant::now();
    let (mut total, mut dearest) = (0, (0, ""));
    for (batch, done) in entries.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let submitted = batch.iter().map(|entry| {
            deployed.submit(&KV_PUT, (entry.key.clone(), entry.value.clone(), None)).map(|id| (entry, id))
        });
        for (entry, id) in submitted.collect::<Result<Vec<_>, _>>()? {
            let _: Written = deployed.finish(&format!("kv_put {:?}", entry.key), id)?;
        }
        let costs = deployed.instructions(KV_PUT.name)?;
        if costs.len() != batch.len() {
            let message = format!("the server counted {} messages in place of {}", costs.len(), batch.len());
            return Err(Error::Unexpected { call: KV_PUT.name.into(), message });
        }
        for (entry, instructions) in batch.iter().zip(costs) {
            total += instructions;
            dearest = dearest.max((instructions, &entry.key));
        }
        progress.reached(done + batch.len());
    }
    progress.end();
    let calls = entries.len() as u64;
    Ok(Loaded {
        calls,
        seconds: started.elapsed().as_secs_f64(),
        instructions: total,
        instructions_average: (total + calls / 2).checked_div(calls).unwrap_or(0),
        instructions_max: dearest.0,
        dearest_key: dearest.1.to_owned(),
    })
}

/// A bar on a terminal, a few lines elsewhere; both on stderr.
enum Progress {
    Bar(ProgressBar),
    Lines { total: usize, printed: std::cell::Cell<usize> },
}

impl Progress {
    fn new(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines { total, printed: std::cell::Cell::new(0) };
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let template = "  {bar:40} {human_pos} of {human_len} airports, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self::Bar(bar)
    }

    fn reached(&self, done: usize) {
        match self {
            Self::Bar(bar) => bar.set_position(done as u64),
            Self::Lines { total, printed } => {
                let step = done * LINES / total;
                if step > printed.replace(step) {
                    eprintln!("  {} of {} airports", thousands(done as u64), thousands(*total as u64));
                }
            }
        }
    }

    fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
