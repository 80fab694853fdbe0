//! The functions of `ic0`, and those that instrumented code calls.

use super::host::{Call, Handles, Host, PAGES_PER_WASM_PAGE, touch_page};
use super::message::{Context, OutgoingCall};
use super::stable::WASM_PAGE;
use super::trap::Trap;
use crate::cycles;
use crate::types::{REPLY_BYTES_MAX, Status};
use crate::wasm::{HOST_MODULE, ModuleError, api_cost};
use candid::Principal;
use wasmtime::{AsContextMut, Caller, Linker};

/// Most bytes of log that one message may write.
const LOG_BYTES_MAX: usize = 4_096;
/// Bytes of certified data.
const CERTIFIED_DATA_BYTES_MAX: u32 = 32;
/// Longest time that a best-effort call may take.
const TIMEOUT_SECONDS_MAX: u32 = 300;
/// `stable_size` and the like answer 32-bit page numbers up to this.
const STABLE_PAGES_32: u64 = 65_536;

const fn set(contexts: &[Context]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < contexts.len() {
        bits |= contexts[i].bit();
        i += 1;
    }
    bits
}

const ANYWHERE: u32 = u32::MAX;
const NOT_START: u32 = !Context::Start.bit();
const ARGUMENT: u32 = set(&[
    Context::Init,
    Context::Inspect,
    Context::Update,
    Context::ReplicatedQuery,
    Context::Query,
    Context::CompositeQuery,
    Context::Reply,
    Context::CompositeReply,
]);
const REJECT_CODE: u32 = set(&[
    Context::Reply,
    Context::Reject,
    Context::Cleanup,
    Context::CompositeReply,
    Context::CompositeReject,
    Context::CompositeCleanup,
]);
const REJECT_MESSAGE: u32 = set(&[Context::Reject, Context::CompositeReject]);
const RESPOND: u32 = set(&[
    Context::Update,
    Context::ReplicatedQuery,
    Context::Query,
    Context::CompositeQuery,
    Context::Reply,
    Context::Reject,
    Context::CompositeReply,
    Context::CompositeReject,
]);
const DEADLINE: u32 = RESPOND | set(&[Context::Cleanup, Context::CompositeCleanup]);
const AVAILABLE: u32 = set(&[Context::Update, Context::ReplicatedQuery, Context::Reply, Context::Reject]);
const REFUNDED: u32 = set(&[Context::Reply, Context::Reject]);
const BURN: u32 = set(&[
    Context::Init,
    Context::PreUpgrade,
    Context::Update,
    Context::Reply,
    Context::Reject,
    Context::Cleanup,
    Context::System,
]);
const INSPECT: u32 = set(&[Context::Inspect]);
const CALL: u32 = set(&[
    Context::Update,
    Context::CompositeQuery,
    Context::Reply,
    Context::Reject,
    Context::CompositeReply,
    Context::CompositeReject,
    Context::System,
]);
const CALL_CYCLES: u32 = set(&[Context::Update, Context::Reply, Context::Reject, Context::System]);
const CERTIFY: u32 = BURN;
const TIMER: u32 = BURN;
const CERTIFICATE: u32 =
    set(&[Context::Query, Context::CompositeQuery, Context::CompositeReply, Context::CompositeReject]);

/// Defines one function of `ic0`: checks the context, pays the fixed cost, runs the body.
macro_rules! ic0 {
    ($linker:ident, $name:ident, $allowed:expr, |$c:ident $(, $arg:ident: $ty:ty)*| -> $ret:ty $body:block) => {{
        let cost = api_cost(stringify!($name));
        let function = move |mut caller: Caller<'_, Host> $(, $arg: $ty)*| -> wasmtime::Result<$ret> {
            #[allow(unused_mut)]
            let mut $c = Call { caller: &mut caller, name: stringify!($name), per_byte: cost.per_byte };
            enter(&mut $c, $allowed, cost.fixed)?;
            Ok(run(move || $body)?)
        };
        $linker.func_wrap("ic0", stringify!($name), function).map_err(link_error)?;
    }};
}

fn run<T>(body: impl FnOnce() -> Result<T, Trap>) -> Result<T, Trap> {
    body()
}

fn link_error(error: wasmtime::Error) -> ModuleError {
    ModuleError::Invalid(format!("the system API does not link: {error:#}"))
}

fn enter(call: &mut Call<'_, '_>, allowed: u32, fixed: u64) -> Result<(), Trap> {
    let context = call.message()?.context;
    if allowed & context.bit() == 0 {
        return Err(Trap::Contract(format!("\"ic0_{}\" cannot be executed in {} mode", call.name, context.name())));
    }
    call.charge(fixed)
}

fn wide(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn narrow(value: u128, name: &str) -> Result<u64, Trap> {
    u64::try_from(value).map_err(|_| Trap::Contract(format!("ic0.{name}: {value} cycles do not fit into 64 bits")))
}

/// All functions that a canister's module may import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> Result<Linker<Host>, ModuleError> {
    let mut linker = Linker::new(engine);
    instrumentation(&mut linker)?;
    message_functions(&mut linker)?;
    cycles_functions(&mut linker)?;
    canister_functions(&mut linker)?;
    call_functions(&mut linker)?;
    stable_functions(&mut linker)?;
    cost_functions(&mut linker)?;
    variable_functions(&mut linker)?;
    Ok(linker)
}

fn instrumentation(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    fn handles(caller: &Caller<'_, Host>) -> wasmtime::Result<Handles> {
        caller.data().handles.ok_or_else(|| Trap::Contract("the instance is not ready".into()).into())
    }
    linker
        .func_wrap(HOST_MODULE, "out_of_instructions", || -> wasmtime::Result<()> {
            Err(Trap::OutOfInstructions(0).into())
        })
        .map_err(link_error)?;
    linker
        .func_wrap(HOST_MODULE, "touch", |mut caller: Caller<'_, Host>, page: u32| -> wasmtime::Result<()> {
            let handles = handles(&caller)?;
            touch_page(&mut caller, &handles, page);
            touch_page(&mut caller, &handles, page.saturating_add(1));
            Ok(())
        })
        .map_err(link_error)?;
    linker
        .func_wrap(
            HOST_MODULE,
            "bulk",
            |mut caller: Caller<'_, Host>, start: u32, length: u32| -> wasmtime::Result<()> {
                let handles = handles(&caller)?;
                let mut call = Call { caller: &mut caller, name: "", per_byte: 1 };
                call.charge_bytes(length.into())?;
                let end = u64::from(start) + u64::from(length);
                // A range outside of the heap traps in the operation itself.
                if end <= handles.heap.data_size(&caller) as u64 {
                    Call { caller: &mut caller, name: "", per_byte: 1 }.touch(&(start as usize..end as usize))?;
                }
                Ok(())
            },
        )
        .map_err(link_error)?;
    linker
        .func_wrap(HOST_MODULE, "charge", |mut caller: Caller<'_, Host>, length: u32| -> wasmtime::Result<()> {
            Ok(Call { caller: &mut caller, name: "", per_byte: 1 }.charge_bytes(length.into())?)
        })
        .map_err(link_error)?;
    linker
        .func_wrap(HOST_MODULE, "grown", |mut caller: Caller<'_, Host>, old: u32| -> wasmtime::Result<()> {
            if old != u32::MAX {
                let handles = handles(&caller)?;
                let pages = |wasm_pages: u64| (wasm_pages * u64::from(PAGES_PER_WASM_PAGE)) as usize;
                let new = pages(handles.heap.size(&caller));
                if let Some(marks) = handles.marks.data_mut(caller.as_context_mut()).get_mut(pages(old.into())..new) {
                    marks.fill(1);
                }
            }
            Ok(())
        })
        .map_err(link_error)?;
    Ok(())
}

/// `<name>_size` and `<name>_copy` over bytes that `$take` moves out of the message and `$put` back in.
macro_rules! bytes {
    ($linker:ident, $size:ident, $copy:ident, $allowed:expr, |$m:ident| $value:expr) => {
        ic0!($linker, $size, $allowed, |c| -> u32 {
            let $m = c.message()?;
            Ok($value.len() as u32)
        });
        ic0!($linker, $copy, $allowed, |c, to: u32, offset: u32, length: u32| -> () {
            let $m = c.message()?;
            let value: Vec<u8> = part(&$value, offset, length);
            let total = $value.len();
            c.charge_bytes(length.into())?;
            if value.len() != length as usize {
                return Err(Trap::Contract(format!(
                    "ic0.{} payload: offset {offset} + length {length} exceeds its {total} bytes",
                    c.name
                )));
            }
            c.write(to, &value)
        });
    };
}

/// `bytes[offset..offset + length]`, empty when there is no such part.
fn part(bytes: &[u8], offset: u32, length: u32) -> Vec<u8> {
    let end = offset as usize + length as usize;
    bytes.get(offset as usize..end).map(<[u8]>::to_vec).unwrap_or_default()
}

fn message_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    bytes!(linker, msg_arg_data_size, msg_arg_data_copy, ARGUMENT, |m| m.argument);
    bytes!(linker, msg_caller_size, msg_caller_copy, NOT_START, |m| m.caller.as_slice());
    bytes!(linker, msg_caller_info_data_size, msg_caller_info_data_copy, NOT_START, |_m| [0u8; 0]);
    bytes!(linker, msg_caller_info_signer_size, msg_caller_info_signer_copy, NOT_START, |_m| [0u8; 0]);
    bytes!(linker, msg_reject_msg_size, msg_reject_msg_copy, REJECT_MESSAGE, |m| m.reject.1.as_bytes());
    bytes!(linker, msg_method_name_size, msg_method_name_copy, INSPECT, |m| m.method.as_bytes());
    ic0!(linker, msg_reject_code, REJECT_CODE, |c| -> u32 { Ok(c.message()?.reject.0) });
    ic0!(linker, msg_deadline, DEADLINE, |c| -> u64 { Ok(c.message()?.deadline) });
    ic0!(linker, msg_reply_data_append, RESPOND, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        let total = message.reply.len() + bytes.len();
        if total > message.reply_bytes_max {
            return Err(Trap::Contract(format!(
                "ic0.{name}: application payload size ({total}) cannot be larger than {}",
                message.reply_bytes_max
            )));
        }
        message.reply.extend_from_slice(&bytes);
        Ok(())
    });
    ic0!(linker, msg_reply, RESPOND, |c| -> () {
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        message.response = Some(Ok(std::mem::take(&mut message.reply)));
        Ok(())
    });
    ic0!(linker, msg_reject, RESPOND, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        if bytes.len() > message.reply_bytes_max {
            return Err(Trap::Contract(format!(
                "ic0.{name}: application payload size ({length}) cannot be larger than {}",
                message.reply_bytes_max
            )));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Trap::Contract(format!("ic0.{name}: the message is not valid UTF-8")))?;
        message.response = Some(Err(text));
        Ok(())
    });
    ic0!(linker, accept_message, INSPECT, |c| -> () {
        let message = c.message()?;
        if std::mem::replace(&mut message.accepted, true) {
            return Err(Trap::Contract("ic0.accept_message: the function was already called".into()));
        }
        Ok(())
    });
    Ok(())
}

fn not_responded(can: bool, name: &str) -> Result<(), Trap> {
    if can { Ok(()) } else { Err(Trap::Contract(format!("ic0.{name}: the call is already replied"))) }
}

fn cycles_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, msg_cycles_available, AVAILABLE, |c| -> u64 { narrow(c.message()?.available, c.name) });
    ic0!(linker, msg_cycles_available128, AVAILABLE, |c, to: u32| -> () {
        let value = c.message()?.available;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, msg_cycles_refunded, REFUNDED, |c| -> u64 { narrow(c.message()?.refunded, c.name) });
    ic0!(linker, msg_cycles_refunded128, REFUNDED, |c, to: u32| -> () {
        let value = c.message()?.refunded;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, msg_cycles_accept, AVAILABLE, |c, most: u64| -> u64 { narrow(accept(&mut c, most.into())?, c.name) });
    ic0!(linker, msg_cycles_accept128, AVAILABLE, |c, high: u64, low: u64, to: u32| -> () {
        let accepted = accept(&mut c, wide(high, low))?;
        c.write(to, &accepted.to_le_bytes())
    });
    ic0!(linker, cycles_burn128, BURN, |c, high: u64, low: u64, to: u32| -> () {
        let message = c.message()?;
        let burned = message.balance.min(wide(high, low));
        message.balance -= burned;
        c.write(to, &burned.to_le_bytes())
    });
    ic0!(linker, canister_cycle_balance, NOT_START, |c| -> u64 { narrow(c.message()?.balance, c.name) });
    ic0!(linker, canister_cycle_balance128, NOT_START, |c, to: u32| -> () {
        let value = c.message()?.balance;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, canister_liquid_cycle_balance128, NOT_START, |c, to: u32| -> () {
        let value = c.message()?.balance;
        c.write(to, &value.to_le_bytes())
    });
    Ok(())
}

fn accept(call: &mut Call<'_, '_>, most: u128) -> Result<u128, Trap> {
    let message = call.message()?;
    let accepted = message.available.min(most);
    message.available -= accepted;
    message.balance = message.balance.saturating_add(accepted);
    Ok(accepted)
}

fn canister_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
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
        match kind {
            0 => Ok(used),
            1 => Ok(c.message()?.call_instructions + used),
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
        let text = c.read(start, length)?;
        Err(Trap::Explicit(String::from_utf8_lossy(&text).into_owned()))
    });
    Ok(())
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

fn call_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
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
        let fee = if message.context.replicated() {
            cycles::call(call.method.len() as u64, call.argument.len() as u64)
        } else {
            0
        };
        if message.calls.len() >= message.calls_left || message.balance < fee {
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

fn stable_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    let dirty = api_cost("stable_write").dirty_page;
    let dirty64 = api_cost("stable64_write").dirty_page;
    ic0!(linker, stable_size, ANYWHERE, |c| -> u32 { small(c.message()?.stable.pages()) });
    ic0!(linker, stable_grow, ANYWHERE, |c, pages: u32| -> u32 {
        small(c.message()?.stable.pages())?;
        let limit = STABLE_PAGES_32 * WASM_PAGE;
        Ok(grow(&mut c, pages.into(), limit)?.map_or(u32::MAX, |p| p as u32))
    });
    ic0!(linker, stable_read, ANYWHERE, |c, to: u32, offset: u32, length: u32| -> () {
        small(c.message()?.stable.pages())?;
        stable_read(&mut c, to.into(), offset.into(), length.into())
    });
    ic0!(linker, stable_write, ANYWHERE, |c, offset: u32, from: u32, length: u32| -> () {
        small(c.message()?.stable.pages())?;
        stable_write(&mut c, offset.into(), from.into(), length.into(), dirty)
    });
    ic0!(linker, stable64_size, ANYWHERE, |c| -> u64 { Ok(c.message()?.stable.pages()) });
    ic0!(linker, stable64_grow, ANYWHERE, |c, pages: u64| -> u64 {
        Ok(grow(&mut c, pages, u64::MAX)?.unwrap_or(u64::MAX))
    });
    ic0!(linker, stable64_read, ANYWHERE, |c, to: u64, offset: u64, length: u64| -> () {
        stable_read(&mut c, to, offset, length)
    });
    ic0!(linker, stable64_write, ANYWHERE, |c, offset: u64, from: u64, length: u64| -> () {
        stable_write(&mut c, offset, from, length, dirty64)
    });
    Ok(())
}

fn small(pages: u64) -> Result<u32, Trap> {
    if pages > STABLE_PAGES_32 { Err(Trap::StableTooLarge) } else { Ok(pages as u32) }
}

fn grow(call: &mut Call<'_, '_>, pages: u64, limit: u64) -> Result<Option<u64>, Trap> {
    let message = call.message()?;
    message.stable_grows += 1;
    if message.fault.fail_stable_grow == Some(message.stable_grows) {
        return Ok(None);
    }
    Ok(message.stable.grow(pages, limit.min(message.environment.stable_bytes_max)))
}

fn stable_read(call: &mut Call<'_, '_>, to: u64, offset: u64, length: u64) -> Result<(), Trap> {
    call.charge_bytes(length)?;
    if !call.message()?.stable.holds(offset, length) {
        return Err(Trap::StableRange);
    }
    let (heap, message) = call.heap_and_message(to, length, true)?;
    message.stable.read(offset, heap);
    message.stable_bytes_read += length;
    access_limit(message.stable.accessed_bytes(), message.stable_access_max)
}

fn stable_write(call: &mut Call<'_, '_>, offset: u64, from: u64, length: u64, dirty: u64) -> Result<(), Trap> {
    call.charge_bytes(length)?;
    let message = call.message()?;
    if !message.stable.holds(offset, length) {
        return Err(Trap::StableRange);
    }
    let pages = message.stable.clean_pages(offset, length);
    call.charge(dirty.saturating_mul(pages))?;
    let (heap, message) = call.heap_and_message(from, length, false)?;
    message.stable_writes += 1;
    if message.fault.fail_stable_write == Some(message.stable_writes) {
        return Err(Trap::Fault(format!("stable write {} of this message", message.stable_writes)));
    }
    message.stable.write(offset, heap);
    message.stable_bytes_written += length;
    access_limit(message.stable.accessed_bytes(), message.stable_access_max)
}

fn access_limit(bytes: u64, most: u64) -> Result<(), Trap> {
    if bytes > most { Err(Trap::StableAccess(most)) } else { Ok(()) }
}

fn cost_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, cost_call, ANYWHERE, |c, name: u64, payload: u64, to: u32| -> () {
        c.write(to, &cycles::call(name, payload).to_le_bytes())
    });
    ic0!(linker, cost_create_canister, ANYWHERE, |c, to: u32| -> () {
        c.write(to, &cycles::CREATE_CANISTER.to_le_bytes())
    });
    ic0!(linker, cost_http_request, ANYWHERE, |c, request: u64, reply: u64, to: u32| -> () {
        c.write(to, &cycles::http_request(request, reply).to_le_bytes())
    });
    // There are no threshold keys here, so no key's name is known: answer 1, "invalid curve or algorithm", is for
    // curves; 2 says that the key does not exist.
    ic0!(linker, cost_sign_with_ecdsa, ANYWHERE, |c, start: u32, length: u32, curve: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, curve, 1)
    });
    ic0!(linker, cost_sign_with_schnorr, ANYWHERE, |c, start: u32, length: u32, algorithm: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, algorithm, 2)
    });
    ic0!(linker, cost_vetkd_derive_key, ANYWHERE, |c, start: u32, length: u32, curve: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, curve, 1)
    });
    Ok(())
}

fn unknown_key(call: &mut Call<'_, '_>, start: u32, length: u32, kind: u32, kinds: u32) -> Result<u32, Trap> {
    call.charge_bytes(length.into())?;
    call.read(start, length)?;
    Ok(if kind < kinds { 2 } else { 1 })
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
