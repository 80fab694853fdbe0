//! Stable memory.

use super::contexts::*;
use super::*;
use crate::runtime::stable::WASM_PAGE;

/// `stable_size` and the like answer 32-bit page numbers up to this.
const STABLE_PAGES_32: u64 = 65_536;

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
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
