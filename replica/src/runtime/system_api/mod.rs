//! The functions of `ic0`, and those that instrumented code calls.

use super::host::{Call, Handles, Host, PAGES_PER_WASM_PAGE, instructions_left, touch_page};
use super::trap::Trap;
use crate::profile::Profiler;
use crate::wasm::{HOST_MODULE, ModuleError, api_cost};
use wasmtime::{AsContextMut, Caller, Linker};

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

/// The pair `<name>_size` and `<name>_copy` over bytes that `$value` finds in the message.
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

mod calls;
mod canister;
mod contexts;
mod cycles;
mod message;
mod stable;

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

/// `bytes[offset..offset + length]`, empty when there is no such part.
fn part(bytes: &[u8], offset: u32, length: u32) -> Vec<u8> {
    let end = offset as usize + length as usize;
    bytes.get(offset as usize..end).map(<[u8]>::to_vec).unwrap_or_default()
}

/// All functions that a canister's module may import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> Result<Linker<Host>, ModuleError> {
    let mut linker = Linker::new(engine);
    instrumentation(&mut linker)?;
    message::link(&mut linker)?;
    cycles::link(&mut linker)?;
    canister::link(&mut linker)?;
    calls::link(&mut linker)?;
    stable::link(&mut linker)?;
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
    profiling(linker)
}

/// The call stack, reported by code that is compiled for profiles. While nothing is recorded it goes nowhere.
fn profiling(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    fn record<T: Default>(caller: &mut Caller<'_, Host>, work: impl FnOnce(&mut Profiler, i64) -> T) -> T {
        let host = caller.data();
        let (Some(handles), true) = (host.handles, host.message.as_ref().is_some_and(|m| m.profiler.is_some())) else {
            return T::default();
        };
        let left = instructions_left(caller.as_context_mut(), handles.counter);
        let profiler = caller.data_mut().message.as_mut().and_then(|m| m.profiler.as_mut());
        profiler.map(|profiler| work(profiler, left)).unwrap_or_default()
    }
    linker
        .func_wrap(HOST_MODULE, "profile_enter", |mut caller: Caller<'_, Host>, function: u32| -> u32 {
            record(&mut caller, |profiler, left| profiler.enter(function, left))
        })
        .map_err(link_error)?;
    linker
        .func_wrap(HOST_MODULE, "profile_leave", |mut caller: Caller<'_, Host>, depth: u32| {
            record(&mut caller, |profiler, left| profiler.leave(depth, left));
        })
        .map_err(link_error)?;
    Ok(())
}
