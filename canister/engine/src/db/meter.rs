//! Keeps a call within its budget and counts what it uses.
//!
//! A call without a budget pays for none of this but one look at [`Meter::is_on`] for each statement.
use super::budget::{Budget, Exceeded, Limited, Metrics};
use super::error::Error;
use crate::env::Env;
use crate::limits::commit_reserve;
use crate::sqlite::{Counts, Params, Watch};
use crate::vfs::{DatabaseFile, Operations};
use core::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a call with a budget has come to.
#[derive(Clone, Copy, Default)]
struct State {
    on: bool,
    budget: Budget,
    /// The counter when the call began.
    started: u64,
    operations: Operations,
    metrics: Metrics,
    /// The first limit that was met.
    exceeded: Option<Exceeded>,
    /// Instructions of statements that were run inside another's row closure, which do not count for that one.
    nested: u64,
}

/// One for each database; a call with a budget that is made inside another one has a state of its own.
pub(super) struct Meter {
    env: Rc<dyn Env>,
    page_bytes: u64,
    state: RefCell<State>,
    on: Cell<bool>,
}

impl Meter {
    pub(super) fn new(env: Rc<dyn Env>, page_bytes: u32) -> Self {
        Self { env, page_bytes: page_bytes.into(), state: RefCell::default(), on: Cell::new(false) }
    }

    /// Whether the call that runs has a budget.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.get()
    }

    /// The instruction counter.
    pub(super) fn now(&self) -> u64 {
        self.env.instructions()
    }

    /// Begins a call; the state that this answers goes to [`Meter::end`].
    pub(super) fn begin(&self, budget: &Budget, operations: Operations) -> Outer {
        let new = State { on: true, budget: *budget, started: self.now(), operations, ..State::default() };
        self.on.set(true);
        Outer(self.state.replace(new))
    }

    /// What the call that runs has used so far.
    pub(super) fn metrics(&self, operations: Operations) -> Metrics {
        let state = *self.state.borrow();
        self.metrics_of(&state, operations)
    }

    fn metrics_of(&self, state: &State, operations: Operations) -> Metrics {
        let mut metrics = state.metrics;
        if state.on {
            metrics.instructions = self.now().saturating_sub(state.started);
            metrics.pages_read = operations.pages_read.wrapping_sub(state.operations.pages_read);
            metrics.pages_written = operations.pages_written.wrapping_sub(state.operations.pages_written);
            metrics.stable_reads = operations.reads.wrapping_sub(state.operations.reads);
            metrics.stable_writes = operations.writes.wrapping_sub(state.operations.writes);
        }
        metrics
    }

    /// Ends a call and answers what it used. Whether a call around it goes on: [`Meter::is_on`].
    pub(super) fn end(&self, outer: Outer, operations: Operations, committed: bool) -> Metrics {
        let state = self.state.replace(outer.0);
        self.on.set(outer.0.on);
        let mut metrics = self.metrics_of(&state, operations);
        metrics.over_budget = committed && metrics.instructions > state.budget.instructions;
        metrics
    }

    /// The limit that the call has met, if it has. It does not go away: a write that met one cannot be committed.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.state.borrow().exceeded
    }

    fn within(&self, what: Limited, limit: u64, needed: u64) -> Result<(), Error> {
        if needed <= limit {
            return Ok(());
        }
        let exceeded = Exceeded { what, limit, needed };
        self.state.borrow_mut().exceeded.get_or_insert(exceeded);
        Err(Error::Budget(exceeded))
    }

    fn budget(&self) -> Budget {
        self.state.borrow().budget
    }

    pub(super) fn check_sql(&self, sql: &str) -> Result<(), Error> {
        self.within(Limited::SqlBytes, self.budget().sql_bytes, sql.len() as u64)
    }

    pub(super) fn check_params(&self, params: &impl Params) -> Result<(), Error> {
        let limit = self.budget().value_bytes;
        params.each(
            |_| Ok(0),
            |_, value| self.within(Limited::ValueBytes, limit, value.as_bytes().map_or(8, |bytes| bytes.len() as u64)),
        )
    }

    /// Whether there are instructions left at `now`.
    pub(super) fn check_instructions(&self, now: u64) -> Result<(), Error> {
        let (limit, started) = {
            let state = self.state.borrow();
            (state.budget.instructions, state.started)
        };
        self.within(Limited::Instructions, limit, now.saturating_sub(started))
    }

    /// Counts a row before it is handed out.
    pub(super) fn row(&self, bytes: u64, largest: u64) -> Result<(), Error> {
        let (budget, metrics) = {
            let state = self.state.borrow();
            (state.budget, state.metrics)
        };
        let (rows, result_bytes) = (metrics.rows + 1, metrics.result_bytes.saturating_add(bytes));
        self.within(Limited::Rows, budget.rows, rows)?;
        self.within(Limited::ValueBytes, budget.value_bytes, largest)?;
        self.within(Limited::ResultBytes, budget.result_bytes, result_bytes)?;
        let metrics = &mut self.state.borrow_mut().metrics;
        (metrics.rows, metrics.result_bytes) = (rows, result_bytes);
        Ok(())
    }

    pub(super) fn prepared(&self, instructions: u64) {
        self.state.borrow_mut().metrics.prepare_instructions += instructions;
    }

    pub(super) fn committed(&self, instructions: u64) {
        self.state.borrow_mut().metrics.commit_instructions += instructions;
    }

    /// Instructions of nested statements up to now; goes to [`Meter::ran`].
    pub(super) fn nested(&self) -> u64 {
        self.state.borrow().nested
    }

    /// A statement has been run: begun at `begun` with this much nested, bound at `bound`.
    pub(super) fn ran(&self, begun: u64, bound: u64, nested_before: u64, counts: Counts) {
        let now = self.now();
        let mut state = self.state.borrow_mut();
        let nested = state.nested.saturating_sub(nested_before);
        state.nested = nested_before.saturating_add(now.saturating_sub(begun));
        let metrics = &mut state.metrics;
        metrics.statements += 1;
        metrics.bind_instructions += bound.saturating_sub(begun);
        metrics.execute_instructions += now.saturating_sub(bound).saturating_sub(nested);
        metrics.vm_steps += counts.vm_steps;
        metrics.full_scan_steps += counts.full_scan_steps;
        metrics.sorts += counts.sorts;
    }
}

/// The state of the call around one that has begun.
pub(super) struct Outer(State);

/// What the connection asks: the meter about budgets, the file about room.
pub(super) struct Watcher {
    pub(super) meter: Rc<Meter>,
    pub(super) file: Rc<RefCell<DatabaseFile>>,
}

impl Watch for Watcher {
    fn stop(&self, steps: u64, holds_more_than: &dyn Fn(u64) -> bool) -> bool {
        let meter = &self.meter;
        meter.env.steps(steps);
        if !meter.is_on() {
            return false;
        }
        let budget = meter.budget();
        let pages_max = budget.dirty_pages.min(budget.changed_bytes / meter.page_bytes);
        let over_pages = pages_max < u64::from(u32::MAX) && holds_more_than(pages_max) && {
            let (what, limit, unit) = if budget.dirty_pages <= pages_max {
                (Limited::DirtyPages, budget.dirty_pages, 1)
            } else {
                (Limited::ChangedBytes, budget.changed_bytes, meter.page_bytes)
            };
            meter.within(what, limit, (pages_max + 1).saturating_mul(unit)).is_err()
        };
        over_pages || meter.check_instructions(meter.now()).is_err()
    }

    fn may_commit(&self, image_pages: u32, dirty_pages: u32) -> bool {
        let meter = &self.meter;
        if meter.is_on() {
            let budget = meter.budget();
            let bytes = u64::from(dirty_pages).saturating_mul(meter.page_bytes);
            let end = meter.now().saturating_add(commit_reserve(dirty_pages, meter.page_bytes));
            let within = meter
                .within(Limited::DirtyPages, budget.dirty_pages, dirty_pages.into())
                .and_then(|()| meter.within(Limited::ChangedBytes, budget.changed_bytes, bytes))
                .and_then(|()| meter.check_instructions(end));
            if within.is_err() {
                return false;
            }
        }
        self.file.borrow_mut().reserve(image_pages, dirty_pages)
    }
}
