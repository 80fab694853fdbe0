//! A memory that fails when it is told to, and takes a message back when it traps, as the platform does.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use super::heap::HeapMemory;
use super::{Memory, MemoryError, Operation, WASM_PAGE_BYTES};

/// Bytes of an undo page.
const UNDO_BYTES: u64 = 4_096;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It answers [`MemoryError::Injected`] and changes nothing.
    Error,
    /// It traps before it changes anything: unwinds with a [`Trap`].
    Trap,
    /// A write traps after its first bytes, as many as this; other operations as [`Fault::Trap`]. The torn write can
    /// be seen only with [`FaultMemory::keep_on_trap`].
    TrapAfter(usize),
}

/// The payload with which a trap unwinds. [`message`] catches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    /// Why.
    pub reason: String,
}

/// Unwinds with a [`Trap`], without a word from the panic hook.
pub(crate) fn trap(reason: String) -> ! {
    resume_unwind(Box::new(Trap { reason }))
}

/// What a message that trapped leaves: nothing but this.
pub type Trapped = Trap;

/// Operations since the memory was made, whether they failed or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of [`Memory::read`].
    pub reads: u64,
    /// Calls of [`Memory::write`].
    pub writes: u64,
    /// Calls of [`Memory::grow`].
    pub growths: u64,
    /// Bytes that were asked for.
    pub bytes_read: u64,
    /// Bytes that were to be written.
    pub bytes_written: u64,
}

#[derive(Default)]
struct State {
    counts: Counts,
    /// Armed faults: the count of the operation at which each fires, the n it was asked for with, and how.
    faults: Vec<(Operation, u64, u64, Fault)>,
    undo: Option<Undo>,
    keep_on_trap: bool,
}

/// What the memory was at the start of the message.
struct Undo {
    size_pages: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

/// A [`HeapMemory`] that counts its operations and fails those it is told to. A clone shares everything.
///
/// Each fault fires once. Faults of one kind may be armed together.
#[derive(Clone, Default)]
pub struct FaultMemory {
    heap: HeapMemory,
    state: Rc<RefCell<State>>,
}

impl FaultMemory {
    /// A memory over `heap`, which goes on to share its bytes.
    pub fn new(heap: HeapMemory) -> Self {
        Self { heap, state: Rc::default() }
    }

    /// The memory below, without counting and faults.
    pub fn heap(&self) -> &HeapMemory {
        &self.heap
    }

    /// Makes the `nth` operation of this kind from now on fail, counted from 1. Zero never fires.
    pub fn fail(&self, operation: Operation, nth: u64, fault: Fault) {
        let mut state = self.state.borrow_mut();
        let at = state.counts.of(operation).saturating_add(nth);
        if nth > 0 {
            state.faults.push((operation, at, nth, fault));
        }
    }

    /// Forgets the faults that have not fired, and says whether there were any.
    pub fn disarm(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let armed = !state.faults.is_empty();
        state.faults.clear();
        armed
    }

    /// Operations so far.
    pub fn counts(&self) -> Counts {
        self.state.borrow().counts
    }

    /// Whether a trap leaves the memory as it is at that moment, torn, in place of taking the message back.
    pub fn keep_on_trap(&self, keep: bool) {
        self.state.borrow_mut().keep_on_trap = keep;
    }

    /// The fault that is due at this operation, which it counts.
    fn due(&self, operation: Operation, bytes: usize) -> Option<(u64, Fault)> {
        let mut state = self.state.borrow_mut();
        let bytes = bytes as u64;
        let counts = &mut state.counts;
        match operation {
            Operation::Read => (counts.reads, counts.bytes_read) = (counts.reads + 1, counts.bytes_read + bytes),
            Operation::Write => {
                (counts.writes, counts.bytes_written) = (counts.writes + 1, counts.bytes_written + bytes);
            }
            Operation::Grow => counts.growths += 1,
        }
        let now = counts.of(operation);
        let due = state.faults.iter().position(|&(armed, at, ..)| armed == operation && at == now)?;
        let (_, _, nth, fault) = state.faults.swap_remove(due);
        Some((nth, fault))
    }

    /// Keeps what `offset .. offset + len` held at the start of the message.
    fn remember(&self, offset: u64, len: u64) {
        let mut state = self.state.borrow_mut();
        let Some(undo) = &mut state.undo else { return };
        let end = offset.saturating_add(len).min(undo.size_pages * WASM_PAGE_BYTES);
        for page in offset / UNDO_BYTES..end.div_ceil(UNDO_BYTES) {
            undo.pages.entry(page).or_insert_with(|| {
                let mut bytes = vec![0; UNDO_BYTES as usize];
                // Within the memory: an undo page is a part of a Wasm page.
                let _ = self.heap.read(page * UNDO_BYTES, &mut bytes);
                bytes
            });
        }
    }

    fn restore(&self, undo: &Undo) {
        self.heap.shrink(undo.size_pages);
        for (page, bytes) in &undo.pages {
            // Lay within the memory when it was kept.
            let _ = self.heap.write(page * UNDO_BYTES, bytes);
        }
    }
}

impl Counts {
    fn of(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Read => self.reads,
            Operation::Write => self.writes,
            Operation::Grow => self.growths,
        }
    }
}

fn injected(operation: Operation, nth: u64) -> ! {
    trap(format!("{operation:?} {nth} was told to trap"))
}

impl Memory for FaultMemory {
    fn size(&self) -> u64 {
        self.heap.size()
    }

    fn grow(&self, pages: u64) -> Result<u64, MemoryError> {
        match self.due(Operation::Grow, 0) {
            None => self.heap.grow(pages),
            Some((nth, Fault::Error)) => Err(MemoryError::Injected { operation: Operation::Grow, nth }),
            Some((nth, _)) => injected(Operation::Grow, nth),
        }
    }

    fn read(&self, offset: u64, dst: &mut [u8]) -> Result<(), MemoryError> {
        match self.due(Operation::Read, dst.len()) {
            None => self.heap.read(offset, dst),
            Some((nth, Fault::Error)) => Err(MemoryError::Injected { operation: Operation::Read, nth }),
            Some((nth, _)) => injected(Operation::Read, nth),
        }
    }

    fn write(&self, offset: u64, src: &[u8]) -> Result<(), MemoryError> {
        let due = self.due(Operation::Write, src.len());
        let len = match due {
            None => src.len(),
            Some((nth, Fault::Error)) => return Err(MemoryError::Injected { operation: Operation::Write, nth }),
            Some((nth, Fault::Trap)) => injected(Operation::Write, nth),
            Some((_, Fault::TrapAfter(len))) => len.min(src.len()),
        };
        self.remember(offset, len as u64);
        let written = self.heap.write(offset, &src[..len]);
        match due {
            Some((nth, _)) => injected(Operation::Write, nth),
            None => written,
        }
    }
}

/// Runs `body` as one message: a [`Trap`] in it takes back what it did to `memory`, and comes out as an error. Any
/// other panic is also taken back, and goes on.
///
/// What `body` did to the heap stays, other than on the platform: drop what it used, and open the database again.
///
/// # Errors
/// The trap.
///
/// # Panics
/// If a message of this memory is running: messages do not nest.
pub fn message<T>(memory: &FaultMemory, body: impl FnOnce() -> T) -> Result<T, Trapped> {
    {
        let mut state = memory.state.borrow_mut();
        assert!(state.undo.is_none(), "messages do not nest");
        state.undo = Some(Undo { size_pages: memory.size(), pages: BTreeMap::new() });
    }
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let (undo, keep) = {
        let mut state = memory.state.borrow_mut();
        (state.undo.take(), state.keep_on_trap)
    };
    match outcome {
        Ok(value) => Ok(value),
        Err(payload) => {
            if let (Some(undo), false) = (undo, keep) {
                memory.restore(&undo);
            }
            match payload.downcast::<Trap>() {
                Ok(trap) => Err(*trap),
                Err(payload) => resume_unwind(payload),
            }
        }
    }
}
