//! How far something is: a bar or a spinner on a terminal, a few lines elsewhere; all on stderr.

use crate::show::thousands;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

/// Plain lines of progress, where there is no terminal.
const LINES: usize = 4;
/// How often a bar is drawn anew while nothing else happens.
const TICK: Duration = Duration::from_millis(200);

/// How far something with a known number of parts is.
pub enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere.
    Lines { total: usize, printed: Cell<usize> },
}

impl Progress {
    /// Nothing of `total` airports is done.
    pub fn new(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines { total, printed: Cell::new(0) };
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let template = "  {bar:40} {human_pos} of {human_len} airports, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(TICK);
        Self::Bar(bar)
    }

    /// So many are done.
    pub fn reached(&self, done: usize) {
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

    /// All are done.
    pub fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows on a terminal that `work` is under way, and for how long.
pub fn waiting<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}, {elapsed}") {
        spinner.set_style(style);
    }
    spinner.set_message(what);
    spinner.enable_steady_tick(TICK);
    let done = work();
    spinner.finish_and_clear();
    done
}
