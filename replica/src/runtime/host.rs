//! The host's side of a running instance: its counter, the log of its heap, access to its memory.

use super::message::Message;
use super::trap::Trap;
use wasmtime::{AsContextMut, Caller, Global, Memory, Table, Val};

/// Bytes of a heap page as dirty pages are charged.
pub(super) const PAGE: usize = 4_096;
pub(super) const PAGES_PER_WASM_PAGE: u32 = 16;

/// What the instance exports for the host.
#[derive(Clone, Copy)]
pub(super) struct Handles {
    pub heap: Memory,
    pub marks: Memory,
    pub counter: Global,
    pub tables_changed: Global,
    pub table: Option<Table>,
}

/// The heap pages that were reported since the last commit or rollback, with their bytes as they were.
/// Invariant between messages: `pages` and `bytes` empty and all marks 0.
#[derive(Default)]
pub(super) struct HeapLog {
    pub pages: Vec<u32>,
    /// 4 KiB for each of `pages`.
    pub bytes: Vec<u8>,
    /// 4 KiB pages of the heap at the start. Pages behind them are not logged: they were not there.
    pub start_pages: u32,
    pub globals: Vec<Val>,
}

/// The data of a wasmtime store.
#[derive(Default)]
pub(crate) struct Host {
    pub(super) handles: Option<Handles>,
    pub(super) log: HeapLog,
    pub(super) message: Option<Message>,
}

/// A call from the canister to the host.
pub(super) struct Call<'a, 'b> {
    pub caller: &'a mut Caller<'b, Host>,
    /// The function's name, for errors.
    pub name: &'static str,
    pub per_byte: u64,
}

impl Call<'_, '_> {
    fn handles(&self) -> Result<Handles, Trap> {
        self.caller.data().handles.ok_or_else(|| Trap::Contract("the instance is not ready".into()))
    }

    pub fn message(&mut self) -> Result<&mut Message, Trap> {
        self.caller.data_mut().message.as_mut().ok_or_else(|| Trap::Contract("no message is being executed".into()))
    }

    /// Takes instructions from the counter.
    pub fn charge(&mut self, instructions: u64) -> Result<(), Trap> {
        let counter = self.handles()?.counter;
        let left = instructions_left(&mut self.caller, counter);
        let after = left.saturating_sub(i64::try_from(instructions).unwrap_or(i64::MAX));
        set_instructions_left(&mut self.caller, counter, after);
        if after < 0 { Err(Trap::OutOfInstructions(0)) } else { Ok(()) }
    }

    /// Pays for the bytes that the function copies.
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<(), Trap> {
        self.charge(self.per_byte.saturating_mul(bytes))
    }

    /// Instructions that the message has used.
    pub fn used(&mut self) -> Result<u64, Trap> {
        let counter = self.handles()?.counter;
        let left = instructions_left(&mut self.caller, counter);
        let message = self.message()?;
        Ok(used(message.limit, left))
    }

    fn range(&self, start: u64, length: u64) -> Result<std::ops::Range<usize>, Trap> {
        let bytes = self.handles()?.heap.data_size(&self.caller) as u64;
        match start.checked_add(length) {
            Some(end) if end <= bytes => Ok(start as usize..end as usize),
            _ => Err(Trap::HeapRange { function: self.name, start, length, bytes }),
        }
    }

    /// A copy of these bytes of the heap.
    pub fn read(&mut self, start: u32, length: u32) -> Result<Vec<u8>, Trap> {
        let range = self.range(start.into(), length.into())?;
        Ok(self.handles()?.heap.data(&self.caller)[range].to_vec())
    }

    /// Logs the pages of a range, so that it can be written.
    pub fn touch(&mut self, range: &std::ops::Range<usize>) -> Result<(), Trap> {
        if range.is_empty() {
            return Ok(());
        }
        let handles = self.handles()?;
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            touch_page(self.caller, &handles, page as u32);
        }
        Ok(())
    }

    /// Writes to the heap.
    pub fn write(&mut self, start: u32, bytes: &[u8]) -> Result<(), Trap> {
        let range = self.range(start.into(), bytes.len() as u64)?;
        self.touch(&range)?;
        self.handles()?.heap.data_mut(&mut self.caller)[range].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes a part of `source` to the heap, and pays for it.
    pub fn copy_part(&mut self, to: u32, offset: u32, length: u32, source: &[u8]) -> Result<(), Trap> {
        self.charge_bytes(length.into())?;
        let (name, from) = (self.name, u64::from(offset));
        let part = usize::try_from(from + u64::from(length)).ok().and_then(|end| source.get(offset as usize..end));
        let part = part.ok_or_else(|| {
            Trap::Contract(format!(
                "ic0.{name} payload: offset {offset} + length {length} exceeds its {} bytes",
                source.len()
            ))
        })?;
        self.write(to, part)
    }

    /// The heap's bytes in this range and the message; the pages are logged for writing if `writes`.
    pub fn heap_and_message(
        &mut self,
        start: u64,
        length: u64,
        writes: bool,
    ) -> Result<(&mut [u8], &mut Message), Trap> {
        let range = self.range(start, length)?;
        if writes {
            self.touch(&range)?;
        }
        let (heap, host) = self.handles()?.heap.data_and_store_mut(self.caller.as_context_mut());
        match (heap.get_mut(range), host.message.as_mut()) {
            (Some(heap), Some(message)) => Ok((heap, message)),
            _ => Err(Trap::Contract("no message is being executed".into())),
        }
    }
}

/// Marks a page and logs its bytes, unless that was done before.
pub(super) fn touch_page(caller: &mut Caller<'_, Host>, handles: &Handles, page: u32) {
    match handles.marks.data_mut(caller.as_context_mut()).get_mut(page as usize) {
        Some(mark) if *mark == 0 => *mark = 1,
        _ => return,
    }
    let (heap, host) = handles.heap.data_and_store_mut(caller.as_context_mut());
    if page < host.log.start_pages {
        let start = page as usize * PAGE;
        host.log.pages.push(page);
        host.log.bytes.extend_from_slice(&heap[start..start + PAGE]);
    }
}

pub(super) fn instructions_left(store: impl AsContextMut, counter: Global) -> i64 {
    counter.get(store).i64().unwrap_or(0)
}

pub(super) fn set_instructions_left(store: impl AsContextMut, counter: Global, left: i64) {
    // The global is a mutable i64 of our own making, so this cannot fail.
    let _ = counter.set(store, Val::I64(left));
}

/// Instructions used of a limit.
pub(super) fn used(limit: u64, left: i64) -> u64 {
    let used = i128::from(limit) - i128::from(left);
    u64::try_from(used.max(0)).unwrap_or(u64::MAX).min(limit)
}
