//! Reading a canister's log.

use super::{decode, encode, settings};
use crate::replica::Replica;
use crate::replica::canister::CallResult;
use candid::Principal;
use ic_management_canister_types as ic;

impl Replica {
    pub(super) fn fetch_logs(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::FetchCanisterLogsArgs,) = decode(argument)?;
        let canister = self.canister(&args.canister_id)?;
        settings::check_log_viewer(canister, &caller)?;
        let wanted = |index: u64, time: u64| match &args.filter {
            None => true,
            Some(ic::CanisterLogFilter::ByIdx { start, end }) => (*start..*end).contains(&index),
            Some(ic::CanisterLogFilter::ByTimestampNanos { start, end }) => (*start..*end).contains(&time),
        };
        let lines = canister.log.iter().filter(|line| wanted(line.index, line.time_nanos));
        let canister_log_records = lines
            .map(|line| ic::CanisterLogRecord {
                idx: line.index,
                timestamp_nanos: line.time_nanos,
                content: line.content.clone(),
            })
            .collect();
        encode((ic::FetchCanisterLogsResult { canister_log_records },))
    }
}
