//! Where a message's instructions went: the tree of its call stacks.
//!
//! The host hears of every function that is entered and of every call that has come back, and reads the counter. What
//! went since the last report belongs to the function on top of the stack. Functions of the system are frames of their
//! own, with what they cost beside the operator that called them.

use crate::runtime::{Entry, HEAP_PAGE_INSTRUCTIONS};
use crate::types::Cost;
use std::collections::HashMap;
use std::sync::Arc;

/// Different call stacks that one profile tells apart. Once there are so many, what further ones cost belongs to their
/// longest known part.
const FRAMES_MAX: usize = 1 << 20;

/// A function as called from one stack of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index of the caller's frame, which is smaller than this one's; `None` for the message itself.
    pub parent: Option<usize>,
    /// The function's name; `ic0.…` for the system's; `dirty heap pages` for their fee.
    pub name: Arc<str>,
    /// Instructions, those of the functions that it called left out.
    pub instructions: u64,
    /// How often it was called from here; for dirty heap pages their number.
    pub calls: u64,
    /// Those of the instructions that went between the message's first and last reading of `performance_counter(0)`;
    /// all frames' together are the difference that the canister saw.
    pub counted_instructions: u64,
    /// Calls between the two readings.
    pub counted_calls: u64,
}

/// Where the instructions of one message went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What ran: an export, e.g. `canister_update kv_put`; `start`; or `callback`.
    pub entry: String,
    /// What the message cost; its instructions are the sum of the frames'.
    pub cost: Cost,
    /// Callers come before what they call; the first is the message.
    pub frames: Vec<Frame>,
}

/// What a function cost, whoever called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCost {
    /// The function's name. Functions of the same name, such as instances of a generic one, are one.
    pub name: Arc<str>,
    /// Instructions of its own code.
    pub exclusive: u64,
    /// Instructions from its calls to their ends, each counted once however deep it recurses.
    pub inclusive: u64,
    /// Number of calls.
    pub calls: u64,
}

/// What the calls of one function by another cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCost {
    /// The caller's name.
    pub caller: Arc<str>,
    /// The name of the function called.
    pub function: Arc<str>,
    /// Instructions of the calls, with all that was called in them. What recurses is in it once for each level.
    pub inclusive: u64,
    /// Number of calls.
    pub calls: u64,
}

impl Profile {
    /// The same profile without what went before the first and after the last reading of `performance_counter(0)`;
    /// the cost stays the message's.
    pub fn counted(&self) -> Self {
        let frames = self.frames.iter().cloned().map(|frame| Frame {
            instructions: frame.counted_instructions,
            calls: frame.counted_calls,
            ..frame
        });
        Self { entry: self.entry.clone(), cost: self.cost, frames: frames.collect() }
    }

    /// The frames' instructions together.
    pub fn instructions(&self) -> u64 {
        self.frames.iter().map(|frame| frame.instructions).sum()
    }

    /// For each frame its instructions with those of all that it called.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut inclusive: Vec<u64> = self.frames.iter().map(|frame| frame.instructions).collect();
        for (index, frame) in self.frames.iter().enumerate().rev() {
            if let Some(parent) = frame.parent {
                inclusive[parent] += inclusive[index];
            }
        }
        inclusive
    }

    /// The functions that ran, dearest first by their own code.
    pub fn functions(&self) -> Vec<FunctionCost> {
        let mut positions: HashMap<&str, usize> = HashMap::new();
        let mut functions: Vec<FunctionCost> = Vec::new();
        for (frame, inclusive) in self.frames.iter().zip(self.inclusive()) {
            let position = *positions.entry(&frame.name).or_insert_with(|| {
                let name = Arc::clone(&frame.name);
                functions.push(FunctionCost { name, exclusive: 0, inclusive: 0, calls: 0 });
                functions.len() - 1
            });
            let function = &mut functions[position];
            function.exclusive += frame.instructions;
            function.calls += frame.calls;
            if !self.callers(frame).any(|caller| caller.name == frame.name) {
                function.inclusive += inclusive;
            }
        }
        functions.retain(|f| (f.exclusive, f.inclusive, f.calls) != (0, 0, 0));
        functions.sort_by(|a, b| (b.exclusive, b.inclusive, &a.name).cmp(&(a.exclusive, a.inclusive, &b.name)));
        functions
    }

    /// One line for each stack that cost something, `outermost;…;innermost instructions`: the input of flame graph tools.
    pub fn folded(&self) -> String {
        let mut out = String::new();
        for frame in self.frames.iter().filter(|frame| frame.instructions > 0) {
            let mut names: Vec<&str> = self.callers(frame).map(|caller| &*caller.name).collect();
            names.reverse();
            names.push(&frame.name);
            // A semicolon parts names, so none may hold one.
            let names: Vec<String> = names.into_iter().map(|name| name.replace(';', ",")).collect();
            out.push_str(&format!("{} {}\n", names.join(";"), frame.instructions));
        }
        out
    }

    /// Who called the functions that `chosen` picks by name, directly; dearest first.
    pub fn calls_of(&self, chosen: impl Fn(&str) -> bool) -> Vec<CallCost> {
        let mut positions: HashMap<(&str, &str), usize> = HashMap::new();
        let mut calls: Vec<CallCost> = Vec::new();
        for (frame, inclusive) in self.frames.iter().zip(self.inclusive()) {
            let Some(parent) = frame.parent.filter(|_| chosen(&frame.name) && frame.calls > 0) else { continue };
            let caller = &self.frames[parent].name;
            let position = *positions.entry((caller, &frame.name)).or_insert_with(|| {
                let (caller, function) = (Arc::clone(caller), Arc::clone(&frame.name));
                calls.push(CallCost { caller, function, inclusive: 0, calls: 0 });
                calls.len() - 1
            });
            calls[position].inclusive += inclusive;
            calls[position].calls += frame.calls;
        }
        calls.sort_by(|a, b| {
            (b.inclusive, b.calls, &a.caller, &a.function).cmp(&(a.inclusive, a.calls, &b.caller, &b.function))
        });
        calls
    }

    fn callers<'a>(&'a self, frame: &'a Frame) -> impl Iterator<Item = &'a Frame> {
        std::iter::successors(frame.parent, |index| self.frames[*index].parent).map(|index| &self.frames[index])
    }
}

struct Node {
    parent: usize,
    function: u32,
    /// Since the last reading of the counter, or since the message began.
    recent: Share,
    /// Between its first and last reading.
    counted: Share,
    /// Before its first reading.
    before: Share,
}

#[derive(Clone, Copy, Default)]
struct Share {
    instructions: u64,
    calls: u64,
}

impl Share {
    fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.calls += other.calls;
    }
}

impl Node {
    fn new(parent: usize, function: u32) -> Self {
        let none = Share::default();
        Self { parent, function, recent: none, counted: none, before: none }
    }
}

/// Records one message.
#[derive(Default)]
pub(crate) struct Profiler {
    /// The first is the message, which is no function.
    nodes: Vec<Node>,
    children: HashMap<(usize, u32), usize>,
    /// Nodes of the functions that run, the message at the bottom.
    stack: Vec<usize>,
    /// Instructions that were left at the last report.
    left: u64,
    /// The counter has been read.
    counting: bool,
}

impl Profiler {
    /// The message begins with so many instructions.
    pub fn start(&mut self, limit: u64) {
        self.nodes.push(Node::new(0, 0));
        self.nodes[0].recent.calls = 1;
        self.stack.push(0);
        self.left = limit;
    }

    /// Whatever was used since the last report belongs to the function on top.
    pub fn settle(&mut self, left: i64) {
        // The block that runs out of instructions takes the counter below 0, but the message pays no more than it may.
        let left = u64::try_from(left).unwrap_or(0);
        if let Some(node) = self.stack.last().and_then(|top| self.nodes.get_mut(*top)) {
            node.recent.instructions += self.left.saturating_sub(left);
        }
        self.left = left;
    }

    /// A function begins; the depth of the stack with it.
    pub fn enter(&mut self, function: u32, left: i64) -> u32 {
        self.settle(left);
        let parent = self.stack.last().copied().unwrap_or(0);
        let new = self.nodes.len();
        let node = match self.children.get(&(parent, function)) {
            Some(node) => *node,
            None if new >= FRAMES_MAX => parent,
            None => {
                self.nodes.push(Node::new(parent, function));
                self.children.insert((parent, function), new);
                new
            }
        };
        self.nodes[node].recent.calls += 1;
        self.stack.push(node);
        self.stack.len() as u32
    }

    /// The function at this depth of the stack has control again.
    pub fn leave(&mut self, depth: u32, left: i64) {
        self.settle(left);
        self.stack.truncate(depth as usize);
    }

    /// The canister reads `performance_counter(0)`.
    pub fn count(&mut self, left: i64) {
        self.settle(left);
        for node in &mut self.nodes {
            let recent = std::mem::take(&mut node.recent);
            if self.counting { node.counted.add(recent) } else { node.before.add(recent) }
        }
        self.counting = true;
    }

    /// The profile of the message, once the instructions left at its end are settled. `names` of the functions by index.
    pub fn finish(self, entry: &Entry, cost: Cost, names: &[String]) -> Profile {
        let entry = match entry {
            Entry::Start => "start".to_owned(),
            Entry::Export(name) => name.clone(),
            Entry::Callback(..) => "callback".to_owned(),
        };
        let mut shared: HashMap<u32, Arc<str>> = HashMap::new();
        let name = |function: u32| match names.get(function as usize) {
            Some(name) if !name.is_empty() => Arc::from(name.as_str()),
            _ => Arc::from(format!("function {function}")),
        };
        let mut frames: Vec<Frame> = Vec::with_capacity(self.nodes.len() + 1);
        for (index, node) in self.nodes.iter().enumerate() {
            let (parent, name) = match index {
                0 => (None, Arc::from("message")),
                _ => {
                    (Some(node.parent), Arc::clone(shared.entry(node.function).or_insert_with(|| name(node.function))))
                }
            };
            let mut all = node.before;
            all.add(node.counted);
            all.add(node.recent);
            frames.push(Frame {
                parent,
                name,
                instructions: all.instructions,
                calls: all.calls,
                counted_instructions: node.counted.instructions,
                counted_calls: node.counted.calls,
            });
        }
        if cost.heap_pages > 0 {
            frames.push(Frame {
                parent: Some(0),
                name: "dirty heap pages".into(),
                instructions: cost.heap_pages * HEAP_PAGE_INSTRUCTIONS,
                calls: cost.heap_pages,
                counted_instructions: 0,
                counted_calls: 0,
            });
        }
        Profile { entry, cost, frames }
    }
}
