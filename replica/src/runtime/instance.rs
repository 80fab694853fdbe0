//! A canister's running instance, and the log that takes a message's changes back.

use super::host::{Handles, HeapLog, Host, PAGE, PAGES_PER_WASM_PAGE, instructions_left, set_instructions_left, used};
use super::message::Message;
use super::trap::Trap;
use crate::types::Cost;
use crate::wasm::{COUNTER, HEAP, MARKS, Metadata, Module, START, TABLE, TABLES_CHANGED, engine, global_export};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime::{AsContextMut, Global, Ref, Store, TypedFunc, Val};

/// Instructions for each heap page that a message changes.
pub(crate) const HEAP_PAGE_INSTRUCTIONS: u64 = 1_000;
/// Native stack for canister code and the host functions below it, bytes.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// What of the module is called.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The start function.
    Start,
    /// An exported function.
    Export(String),
    /// A function of the table, with its environment.
    Callback(u32, u32),
}

/// An instantiated module.
pub(crate) struct Instance {
    module: Arc<Module>,
    store: Store<Host>,
    handles: Handles,
    globals: Vec<Global>,
    exports: HashMap<String, TypedFunc<(), ()>>,
    /// A message has run since the last commit or rollback.
    open: bool,
    /// See [`revision`](Self::revision).
    revision: u64,
    /// Why the instance cannot be used any more: it could not be made anew after a rollback.
    broken: Option<String>,
}

impl Instance {
    /// Instantiates the module; the start function is not run.
    pub fn new(module: &Arc<Module>) -> Result<Self, Trap> {
        let failed = |e: wasmtime::Error| Trap::from_engine(&e, 0);
        let missing = |what: &str| Trap::Wasm(format!("the module lost its export {what}"));
        let engine = engine().map_err(|e| Trap::Wasm(e.to_string()))?;
        let mut store = Store::new(engine, Host::default());
        let instance = module.pre.instantiate(&mut store).map_err(failed)?;
        let memory = |store: &mut Store<Host>, name| instance.get_memory(store, name).ok_or_else(|| missing(name));
        let heap = memory(&mut store, HEAP)?;
        let marks = memory(&mut store, MARKS)?;
        let global =
            |store: &mut Store<Host>, name: &str| instance.get_global(store, name).ok_or_else(|| missing(name));
        let handles = Handles {
            heap,
            marks,
            counter: global(&mut store, COUNTER)?,
            tables_changed: global(&mut store, TABLES_CHANGED)?,
            table: instance.get_table(&mut store, TABLE),
        };
        let globals = (0..module.metadata.mutable_globals)
            .map(|i| global(&mut store, &global_export(i)))
            .collect::<Result<_, _>>()?;
        let mut exports = HashMap::new();
        let metadata = &module.metadata;
        let names = metadata.methods.iter().map(|(name, kind)| format!("{}{name}", kind.prefix()));
        for name in names.chain(metadata.system_exports.iter().cloned()).chain([START.to_owned()]) {
            if let Ok(function) = instance.get_typed_func::<(), ()>(&mut store, &name) {
                exports.insert(name, function);
            }
        }
        store.data_mut().handles = Some(handles);
        Ok(Self {
            module: Arc::clone(module),
            store,
            handles,
            globals,
            exports,
            open: false,
            revision: next_revision(),
            broken: None,
        })
    }

    /// Whether the module has a start function.
    pub fn has_start(&self) -> bool {
        self.exports.contains_key(START)
    }

    /// What the module says about itself.
    pub fn metadata(&self) -> &Metadata {
        &self.module.metadata
    }

    /// A number that no other heap of this process has: as long as it stays, heap and globals stay.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> u64 {
        self.handles.heap.data_size(&self.store) as u64
    }

    /// Runs one message. Its changes to the heap stay open until [`commit`](Self::commit) or
    /// [`rollback`](Self::rollback); its changes to stable memory are open in the message that comes back.
    pub fn run(&mut self, entry: &Entry, mut message: Message) -> (Message, Result<(), Trap>, Cost) {
        if let Some(reason) = &self.broken {
            let trap = Trap::Wasm(reason.clone());
            return (message, Err(trap), Cost::default());
        }
        if !self.open {
            self.begin();
        }
        let limit = message.limit;
        let stop = message.fault.trap_after_instructions.filter(|n| *n < limit);
        message.limit = stop.unwrap_or(limit);
        let (context, start) = (message.context, message.limit);
        if let Some(profiler) = &mut message.profiler {
            profiler.start(start);
        }
        set_instructions_left(&mut self.store, self.handles.counter, i64::try_from(start).unwrap_or(i64::MAX));
        self.store.data_mut().message = Some(message);
        let result = self.call(entry).map_err(|e| Trap::from_engine(&e, limit));
        let result = match (result, stop) {
            (Err(Trap::OutOfInstructions(_)), Some(n)) => Err(Trap::Fault(format!("stopped after {n} instructions"))),
            (result, _) => result,
        };
        let left = instructions_left(&mut self.store, self.handles.counter);
        let Some(mut message) = self.store.data_mut().message.take() else {
            unreachable!("the message stays in the store while its code runs")
        };
        message.fault = Default::default();
        if let Some(profiler) = &mut message.profiler {
            profiler.settle(left);
        }
        if let Some(abandoned) = message.pending_call.take() {
            message.balance = message.balance.saturating_add(abandoned.cycles);
        }
        let heap_pages = if context.charges_heap_pages() { self.dirty_pages() } else { 0 };
        let cost = Cost {
            instructions: used(start, left) + heap_pages * HEAP_PAGE_INSTRUCTIONS,
            heap_pages,
            stable_pages: message.stable.dirty_pages(),
            stable_bytes_read: message.stable_bytes_read,
            stable_bytes_written: message.stable_bytes_written,
            reply_bytes: match &message.response {
                Some(Ok(reply)) => reply.len() as u64,
                _ => 0,
            },
            compilation: 0,
        };
        (message, result, cost)
    }

    fn call(&mut self, entry: &Entry) -> wasmtime::Result<()> {
        match entry {
            Entry::Start => self.call_export(START),
            Entry::Export(name) => self.call_export(name),
            Entry::Callback(index, env) => {
                let missing = || Trap::NoFunction(format!("entry {index} of the table"));
                let table = self.handles.table.ok_or_else(missing)?;
                let Some(Ref::Func(Some(function))) = table.get(&mut self.store, u64::from(*index)) else {
                    return Err(missing().into());
                };
                let function = function.typed::<u32, ()>(&self.store).map_err(|_| missing())?;
                function.call(&mut self.store, *env)
            }
        }
    }

    fn call_export(&mut self, name: &str) -> wasmtime::Result<()> {
        let function = self.exports.get(name).ok_or_else(|| Trap::NoFunction(name.to_owned()))?;
        function.call(&mut self.store, ())
    }

    fn begin(&mut self) {
        self.open = true;
        let globals = self.globals.iter().map(|g| g.get(&mut self.store)).collect();
        let pages = self.handles.heap.size(&self.store) as u32 * PAGES_PER_WASM_PAGE;
        let log = &mut self.store.data_mut().log;
        log.start_pages = pages;
        log.globals = globals;
    }

    fn pages(&self) -> u32 {
        self.handles.heap.size(&self.store) as u32 * PAGES_PER_WASM_PAGE
    }

    /// 4 KiB heap pages whose bytes are not as they were; pages that were not there count if they are not zero.
    fn dirty_pages(&self) -> u64 {
        let heap = self.handles.heap.data(&self.store);
        let log = &self.store.data().log;
        let logged = log.pages.iter().zip(log.bytes.chunks_exact(PAGE));
        let changed = logged.filter(|(page, before)| {
            let start = **page as usize * PAGE;
            heap[start..start + PAGE] != **before
        });
        let new = heap[log.start_pages as usize * PAGE..].chunks_exact(PAGE);
        (changed.count() + new.filter(|page| page.iter().any(|b| *b != 0)).count()) as u64
    }

    /// Keeps what has run since the last commit or rollback.
    pub fn commit(&mut self) {
        if !self.open {
            return;
        }
        self.close();
        self.revision = next_revision();
        if self.tables_changed() {
            // Tables and dropped segments do not outlive a message on the IC: it builds a fresh instance for each.
            let heap = self.handles.heap.data(&self.store).to_vec();
            let globals: Vec<Val> = self.globals.iter().map(|g| g.get(&mut self.store)).collect();
            self.rebuild(&heap, &globals);
        }
    }

    /// Takes back what has run since the last commit or rollback.
    pub fn rollback(&mut self) {
        if !self.open {
            return;
        }
        let (heap, host) = self.handles.heap.data_and_store_mut(&mut self.store);
        for (page, before) in host.log.pages.iter().zip(host.log.bytes.chunks_exact(PAGE)) {
            let start = *page as usize * PAGE;
            heap[start..start + PAGE].copy_from_slice(before);
        }
        let start_pages = host.log.start_pages;
        let globals = std::mem::take(&mut host.log.globals);
        let grown = self.pages() > start_pages;
        self.close();
        if grown || self.tables_changed() {
            // A Wasm memory cannot shrink, so the instance is made anew. Rare, and costs a copy of the heap.
            let heap = self.handles.heap.data(&self.store)[..start_pages as usize * PAGE].to_vec();
            self.rebuild(&heap, &globals);
        } else {
            for (global, value) in self.globals.iter().zip(globals) {
                let _ = global.set(&mut self.store, value);
            }
        }
    }

    fn tables_changed(&mut self) -> bool {
        self.handles.tables_changed.get(&mut self.store).i32() != Some(0)
    }

    /// Clears the marks and the log.
    fn close(&mut self) {
        self.open = false;
        let last = self.pages() as usize;
        let log = std::mem::take(&mut self.store.data_mut().log);
        let marks = self.handles.marks.data_mut(&mut self.store);
        for page in &log.pages {
            marks[*page as usize] = 0;
        }
        // The pages that were new, and the one behind the end, which can be marked though it is not there.
        marks[log.start_pages as usize..=last].fill(0);
        let HeapLog { mut pages, mut bytes, mut globals, .. } = log;
        pages.clear();
        globals.clear();
        // The buffers are used again, unless a message needed unusually much.
        if bytes.capacity() > 64 << 20 {
            bytes = Vec::new();
        }
        bytes.clear();
        self.store.data_mut().log = HeapLog { pages, bytes, start_pages: 0, globals };
    }

    /// Replaces the instance by a new one with these contents.
    fn rebuild(&mut self, heap: &[u8], globals: &[Val]) {
        let rebuilt = Self::new(&self.module).and_then(|mut new| {
            let wasm_page = PAGE * PAGES_PER_WASM_PAGE as usize;
            let missing = (heap.len() / wasm_page) as u64
                - new.handles.heap.size(&new.store).min((heap.len() / wasm_page) as u64);
            new.handles.heap.grow(&mut new.store, missing).map_err(|e| Trap::Wasm(format!("{e:#}")))?;
            new.handles.heap.data_mut(&mut new.store)[..heap.len()].copy_from_slice(heap);
            for (global, value) in new.globals.iter().zip(globals) {
                global.set(&mut new.store.as_context_mut(), *value).map_err(|e| Trap::Wasm(format!("{e:#}")))?;
            }
            Ok(new)
        });
        match rebuilt {
            Ok(new) => *self = new,
            Err(trap) => self.broken = Some(format!("the instance could not be restored: {trap}")),
        }
    }

    /// A copy of the heap and of the mutable globals, for a snapshot.
    pub fn save(&mut self) -> (Vec<u8>, Vec<Val>) {
        let globals = self.globals();
        (self.handles.heap.data(&self.store).to_vec(), globals)
    }

    /// The values of the mutable globals, in the order of the module.
    pub fn globals(&mut self) -> Vec<Val> {
        self.globals.iter().map(|g| g.get(&mut self.store)).collect()
    }

    /// An instance with the contents of a snapshot.
    pub fn load(module: &Arc<Module>, heap: &[u8], globals: &[Val]) -> Result<Self, Trap> {
        let mut instance = Self::new(module)?;
        instance.rebuild(heap, globals);
        match instance.broken.take() {
            Some(reason) => Err(Trap::Wasm(reason)),
            None => Ok(instance),
        }
    }
}

fn next_revision() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs `work` where there is stack enough for canister code: on this thread if it was made here, else on a new one.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread_local!(static ENOUGH: Cell<bool> = const { Cell::new(false) });
    if ENOUGH.get() {
        return work();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("canister".into()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, || {
            ENOUGH.set(true);
            work()
        });
        let joined = match running {
            Ok(running) => running.join(),
            Err(error) => panic!("no thread for canister code: {error}"),
        };
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
