//! The canister itself: identity, time, certified data, counters, log, environment variables.

use super::contexts::*;
use super::*;
use crate::cycles;
use crate::types::Status;
use candid::Principal;

/// Most bytes of log that one message may write.
const LOG_BYTES_MAX: usize = 4_096;
/// Bytes of a trap's message that are kept.
const TRAP_BYTES_MAX: u32 = 16 * 1024;
/// Bytes of certified data.
const CERTIFIED_DATA_BYTES_MAX: u32 = 32;

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    bytes!(linker, canister_self_size, canister_self_copy, NOT_START, |m| m.environment.canister.as_slice());
    bytes!(linker, subnet_self_size, subnet_self_copy, NOT_START, |m| m.environment.subnet.as_slice());
    bytes!(linker, root_key_size, root_key_copy, NOT_START, |m| m.environment.root_key);
    bytes!(linker, data_certificate_size, data_certificate_copy, CERTIFICATE, |m| m
        .data_certificate
        .as_ref()
        .ok_or_else(|| Trap::Contract("ic0.data_certificate: there is no certificate here".into()))?);
    ic0!(linker, subnet_self_node_count, NOT_START, |_c| -> u32 { Ok(cycles::NODES) });
    ic0!(linker, canister_status, NOT_START, |c| -> u32 {
        Ok(match c.message()?.environment.status {
            Status::Running => 1,
            Status::Stopping => 2,
            Status::Stopped => 3,
        })
    });
    ic0!(linker, canister_version, NOT_START, |c| -> u64 { Ok(c.message()?.environment.version) });
    ic0!(linker, certified_data_set, CERTIFY, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        if length > CERTIFIED_DATA_BYTES_MAX {
            return Err(Trap::Contract(format!(
                "ic0.certified_data_set: the data has {length} bytes, more than {CERTIFIED_DATA_BYTES_MAX}"
            )));
        }
        let data = c.read(start, length)?;
        c.message()?.certified_data = Some(data);
        Ok(())
    });
    ic0!(linker, data_certificate_present, NOT_START, |c| -> u32 {
        let message = c.message()?;
        Ok((message.data_certificate.is_some() && CERTIFICATE & message.context.bit() != 0).into())
    });
    ic0!(linker, time, NOT_START, |c| -> u64 { Ok(c.message()?.environment.time_nanos) });
    ic0!(linker, global_timer_set, TIMER, |c, at: u64| -> u64 {
        Ok(std::mem::replace(&mut c.message()?.global_timer, at))
    });
    ic0!(linker, performance_counter, ANYWHERE, |c, kind: u32| -> u64 {
        let used = c.used()?;
        let message = c.message()?;
        match kind {
            0 => {
                let left = i64::try_from(message.limit.saturating_sub(used)).unwrap_or(i64::MAX);
                if let Some(profiler) = &mut message.profiler {
                    profiler.count(left);
                }
                Ok(used)
            }
            1 => Ok(message.call_instructions + used),
            _ => Err(Trap::Contract(format!("ic0.performance_counter: there is no counter of type {kind}"))),
        }
    });
    ic0!(linker, is_controller, ANYWHERE, |c, start: u32, length: u32| -> u32 {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let principal = Principal::try_from_slice(&bytes)
            .map_err(|e| Trap::Contract(format!("ic0.is_controller: not a principal: {e}")))?;
        Ok(c.message()?.environment.controllers.contains(&principal).into())
    });
    ic0!(linker, in_replicated_execution, ANYWHERE, |c| -> u32 { Ok(c.message()?.context.replicated().into()) });
    // The price per byte holds for the bytes that are kept; one of `trap`'s 53 is for copying the message.
    ic0!(linker, debug_print, ANYWHERE, |c, start: u32, length: u32| -> () {
        let kept = log_room(&mut c, length)?;
        c.charge_bytes(kept)?;
        let line = c.read(start, length)?;
        log(&mut c, line)
    });
    ic0!(linker, trap, ANYWHERE, |c, start: u32, length: u32| -> () {
        let kept = log_room(&mut c, length)?;
        c.charge(kept * c.per_byte.saturating_sub(1) + u64::from(length))?;
        let text = c.read(start, length.min(TRAP_BYTES_MAX))?;
        Err(Trap::Explicit(String::from_utf8_lossy(&text).into_owned()))
    });
    variable_functions(linker)
}

fn log_room(call: &mut Call<'_, '_>, length: u32) -> Result<u64, Trap> {
    Ok((LOG_BYTES_MAX - call.message()?.log_bytes).min(length as usize) as u64)
}

fn log(call: &mut Call<'_, '_>, mut line: Vec<u8>) -> Result<(), Trap> {
    let message = call.message()?;
    line.truncate(LOG_BYTES_MAX - message.log_bytes);
    message.log_bytes += line.len();
    message.log.push(line);
    Ok(())
}

fn variable_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, env_var_count, ANYWHERE, |c| -> u32 { Ok(c.message()?.environment.variables.len() as u32) });
    ic0!(linker, env_var_name_size, ANYWHERE, |c, index: u32| -> u32 { Ok(variable(&mut c, index)?.len() as u32) });
    ic0!(linker, env_var_name_copy, ANYWHERE, |c, index: u32, to: u32, offset: u32, length: u32| -> () {
        let name = variable(&mut c, index)?;
        c.copy_part(to, offset, length, name.as_bytes())
    });
    ic0!(linker, env_var_name_exists, ANYWHERE, |c, start: u32, length: u32| -> u32 {
        let name = c.read(start, length)?;
        Ok(c.message()?.environment.variables.iter().any(|v| v.0.as_bytes() == name).into())
    });
    ic0!(linker, env_var_value_size, ANYWHERE, |c, start: u32, length: u32| -> u32 {
        Ok(value(&mut c, start, length)?.len() as u32)
    });
    ic0!(linker, env_var_value_copy, ANYWHERE, |c,
                                                start: u32,
                                                name_length: u32,
                                                to: u32,
                                                offset: u32,
                                                length: u32|
     -> () {
        let value = value(&mut c, start, name_length)?;
        c.copy_part(to, offset, length, value.as_bytes())
    });
    Ok(())
}

fn variable(call: &mut Call<'_, '_>, index: u32) -> Result<String, Trap> {
    let name = call.name;
    let variables = &call.message()?.environment.variables;
    variables.get(index as usize).map(|v| v.0.clone()).ok_or_else(|| {
        Trap::Contract(format!("ic0.{name}: index {index} is beyond the {} environment variables", variables.len()))
    })
}

fn value(call: &mut Call<'_, '_>, start: u32, length: u32) -> Result<String, Trap> {
    let name = call.read(start, length)?;
    let variables = &call.message()?.environment.variables;
    variables.iter().find(|v| v.0.as_bytes() == name).map(|v| v.1.clone()).ok_or_else(|| {
        Trap::Contract(format!("ic0.{}: no environment variable '{}'", call.name, String::from_utf8_lossy(&name)))
    })
}
