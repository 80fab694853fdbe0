//! The platform's timer: it removes entries that have expired, a bounded step at a time, and is set only while entries
//! expire. Nobody sees an expired entry before that either.
use crate::error::Failure;
use crate::host::Host;
use crate::limits::{SWEEP_AGAIN_NS, SWEEP_DELAY_NS, SWEEP_ENTRIES_PER_TIMER, SWEEP_PARTS_PER_TIMER};
use crate::ops::kv::changes::{Changes, Sweep};
use crate::service::Service;

const STEP: Sweep = Sweep { entries: SWEEP_ENTRIES_PER_TIMER, parts: SWEEP_PARTS_PER_TIMER };

/// Sets the timer if an entry expires and the timer would come later than it should.
pub fn arm(host: &impl Host, service: &mut Service) {
    if let Some(expiry) = service.kv.next_expiry {
        set(host, service, expiry.saturating_add(SWEEP_DELAY_NS).max(host.time_ns().saturating_add(SWEEP_AGAIN_NS)));
    }
}

fn set(host: &impl Host, service: &mut Service, at: u64) {
    if service.timer.is_none_or(|set| at < set) {
        host.set_timer(at);
        service.timer = Some(at);
    }
}

/// `canister_global_timer`.
pub fn fire(host: &impl Host, service: &mut Service) {
    service.timer = None;
    let (now, before) = (host.time_ns(), service.kv);
    let Service { database, tables, .. } = &mut *service;
    let swept = database.write(|writer| {
        let mut changes = Changes::begin(writer, tables, now, before)?;
        changes.sweep(STEP)?;
        changes.end()
    });
    match swept {
        Ok(after) => {
            service.kv = after;
            // What has expired and is left needs no further delay.
            match after.next_expiry {
                Some(expiry) if expiry <= now => set(host, service, now.saturating_add(SWEEP_AGAIN_NS)),
                _ => arm(host, service),
            }
        }
        // Stable or heap memory is full, or the database is damaged: whoever calls next is told.
        Err::<_, Failure>(_) => set(host, service, now.saturating_add(SWEEP_DELAY_NS)),
    }
}
