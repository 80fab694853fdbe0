//! Keeps an instance's state in its directory: soon after each change, and at the end.

use crate::http::Node;
use crate::state::{Hash, StateDir, StateError};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time from a change to the save that follows, at least.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many times as long as a save takes the pause behind it is, at least: large states are saved less often.
const PAUSE: u32 = 4;

/// Saves an instance.
pub(super) struct Saver {
    node: Arc<Node>,
    directory: Mutex<StateDir>,
    /// What the replica's changes counted at the last save; `u64::MAX` before the first.
    saved: AtomicU64,
}

/// What is kept beside the replica's own state.
pub(super) fn front(seed: &[u8; 32], calls: Value) -> Value {
    json!({ "key_seed": Hash(*seed), "calls": calls })
}

/// The seed of the keys in what [`front`] made.
pub(super) fn seed_of(front: &Value) -> Result<[u8; 32], StateError> {
    let seed = front["key_seed"].as_str().and_then(|text| text.parse::<Hash>().ok());
    seed.map(|hash| hash.0).ok_or_else(|| StateError::Damaged("it has no keys".into()))
}

/// The calls in what [`front`] made.
pub(super) fn calls_of(front: &Value) -> Value {
    front["calls"].clone()
}

impl Saver {
    pub fn new(node: Arc<Node>, directory: StateDir) -> Self {
        Self { node, directory: Mutex::new(directory), saved: AtomicU64::new(u64::MAX) }
    }

    /// Saves soon after each change, until it is aborted.
    pub async fn run(self: Arc<Self>) {
        let mut pause = INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let saver = Arc::clone(&self);
            let started = Instant::now();
            match tokio::task::spawn_blocking(move || saver.save(false)).await {
                Ok(Ok(())) => {}
                // The next save may succeed; what was saved before is still there.
                Ok(Err(error)) => eprintln!("icsql-replica: {error}"),
                Err(error) => eprintln!("icsql-replica: a save failed: {error}"),
            }
            pause = INTERVAL.max(started.elapsed() * PAUSE);
        }
    }

    /// Saves for the last time. Nobody works on the instance afterwards, so that nothing is answered that is not saved.
    pub fn finish(&self) -> Result<(), StateError> {
        self.save(true)
    }

    fn save(&self, last: bool) -> Result<(), StateError> {
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if !last && self.node.instance.replica(|replica| replica.changes()) == self.saved.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (captured, changes, calls) = self.node.capture(|revision| directory.knows(revision), last)?;
        directory.write(captured, front(self.node.keys.seed(), calls))?;
        self.saved.store(changes, Ordering::Relaxed);
        Ok(())
    }
}
