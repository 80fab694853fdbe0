//! Calls to other canisters.

use super::contexts::*;
use super::*;
use crate::cycles;
use crate::runtime::message::OutgoingCall;
use crate::types::REPLY_BYTES_MAX;
use candid::Principal;

/// Longest time that a best-effort call may take.
const TIMEOUT_SECONDS_MAX: u32 = 300;

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, call_new, CALL, |c,
                                  callee: u32,
                                  callee_length: u32,
                                  name: u32,
                                  name_length: u32,
                                  reply: u32,
                                  reply_env: u32,
                                  reject: u32,
                                  reject_env: u32|
     -> () {
        c.charge_bytes(u64::from(callee_length) + u64::from(name_length))?;
        drop_pending(&mut c)?;
        let callee = c.read(callee, callee_length)?;
        let callee = Principal::try_from_slice(&callee)
            .map_err(|e| Trap::Contract(format!("ic0.call_new: the callee is not a principal: {e}")))?;
        let method = String::from_utf8(c.read(name, name_length)?)
            .map_err(|_| Trap::Contract("ic0.call_new: the method's name is not valid UTF-8".into()))?;
        c.message()?.pending_call = Some(OutgoingCall {
            callee,
            method,
            argument: Vec::new(),
            cycles: 0,
            reply: (reply, reply_env),
            reject: (reject, reject_env),
            cleanup: None,
            timeout_seconds: None,
        });
        Ok(())
    });
    ic0!(linker, call_on_cleanup, CALL, |c, function: u32, env: u32| -> () {
        let call = pending(&mut c)?;
        if call.cleanup.replace((function, env)).is_some() {
            return Err(Trap::Contract("ic0.call_on_cleanup: already called for this call".into()));
        }
        Ok(())
    });
    ic0!(linker, call_data_append, CALL, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let argument = &mut pending(&mut c)?.argument;
        let total = argument.len() + bytes.len();
        if total > REPLY_BYTES_MAX {
            return Err(Trap::Contract(format!(
                "ic0.call_data_append: application payload size ({total}) cannot be larger than {REPLY_BYTES_MAX}"
            )));
        }
        argument.extend_from_slice(&bytes);
        Ok(())
    });
    ic0!(linker, call_with_best_effort_response, CALL, |c, timeout_seconds: u32| -> () {
        let call = pending(&mut c)?;
        if call.timeout_seconds.replace(timeout_seconds.min(TIMEOUT_SECONDS_MAX)).is_some() {
            return Err(Trap::Contract("ic0.call_with_best_effort_response: already called for this call".into()));
        }
        Ok(())
    });
    ic0!(linker, call_cycles_add, CALL_CYCLES, |c, amount: u64| -> () { add_cycles(&mut c, amount.into()) });
    ic0!(linker, call_cycles_add128, CALL_CYCLES, |c, high: u64, low: u64| -> () {
        add_cycles(&mut c, wide(high, low))
    });
    ic0!(linker, call_perform, CALL, |c| -> u32 {
        pending(&mut c)?;
        let message = c.message()?;
        let Some(call) = message.pending_call.take() else { return Ok(0) };
        let (method, argument) = (call.method.len() as u64, call.argument.len() as u64);
        let (needed, fee) = match message.context.replicated() {
            true => (cycles::call(method, argument), cycles::transmission(method + argument)),
            false => (0, 0),
        };
        if message.calls.len() >= message.calls_left || message.balance < needed {
            // The cycles return to the balance, as if the call had not been made.
            message.balance = message.balance.saturating_add(call.cycles);
            return Ok(2);
        }
        message.balance -= fee;
        message.calls.push(call);
        Ok(0)
    });
    Ok(())
}

/// Abandons a call that was begun but not performed.
fn drop_pending(call: &mut Call<'_, '_>) -> Result<(), Trap> {
    let message = call.message()?;
    if let Some(abandoned) = message.pending_call.take() {
        message.balance = message.balance.saturating_add(abandoned.cycles);
    }
    Ok(())
}

fn pending<'a>(call: &'a mut Call<'_, '_>) -> Result<&'a mut OutgoingCall, Trap> {
    let name = call.name;
    call.message()?
        .pending_call
        .as_mut()
        .ok_or_else(|| Trap::Contract(format!("ic0.{name}: there is no call; ic0.call_new must come first")))
}

fn add_cycles(call: &mut Call<'_, '_>, amount: u128) -> Result<(), Trap> {
    pending(call)?;
    let message = call.message()?;
    if message.balance < amount {
        return Err(Trap::OutOfCycles(format!(
            "the call should carry {amount} cycles, but the balance is {}",
            message.balance
        )));
    }
    message.balance -= amount;
    if let Some(pending) = message.pending_call.as_mut() {
        pending.cycles = pending.cycles.saturating_add(amount);
    }
    Ok(())
}
