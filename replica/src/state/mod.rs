//! A replica's state in a directory, so that it outlives the process.
//!
//! ```text
//! DIR/lock      held by the process that uses the directory
//! DIR/state     "icsql-replica state <version> <SHA-256 of the rest>\n", then JSON: everything but long bytes
//! DIR/blobs/    modules, chunks and memories in segments of 1 MiB, each file named by the SHA-256 of its contents
//! ```
//! A save writes the blobs that are not there yet, then `state` under another name, and renames it: whoever opens the
//! directory finds the old state or the new one, whole. What a save has finished survives a crash of the machine, as far as
//! its disk keeps its word. Opening checks every hash and reads everything before anything is used.

mod blobs;

use crate::replica::{Captured, HeapImage, Memories, MemoryRecord, Record, Replica, SEGMENT_BYTES};
use crate::runtime::{Chunk, StableMemory, WASM_PAGE};
use crate::types::Config;
use blobs::Blobs;
pub(crate) use blobs::Hash;
use candid::Principal;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the file `state` begins with.
const MAGIC: &str = "icsql-replica state";
/// Version of the layout.
const VERSION: u32 = 1;
const STATE: &str = "state";
const PARTIAL: &str = "state.partial";
const LOCK: &str = "lock";
const BLOBS: &str = "blobs";

/// Why a state directory cannot be used.
#[derive(Debug)]
pub enum StateError {
    /// Another process uses it.
    InUse(PathBuf),
    /// It holds something else.
    Foreign(PathBuf),
    /// A later version of the replica wrote it.
    Newer {
        /// The directory.
        directory: PathBuf,
        /// The version of its layout.
        version: u32,
    },
    /// Its contents are not as they were written: what is wrong.
    Damaged(String),
    /// A canister is of a kind that cannot be kept: which.
    Unsupported(String),
    /// The file system failed.
    Io {
        /// What was being done, to which file.
        doing: String,
        /// What the system says.
        error: std::io::Error,
    },
}

impl std::fmt::Display for StateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "{} is in use by another replica; stop that one first", path.display()),
            Self::Foreign(path) => write!(
                f,
                "{} holds other files than a replica's state; name an empty or a new directory",
                path.display()
            ),
            Self::Newer { directory, version } => write!(
                f,
                "{} was written by a newer replica (layout {version}; this one reads up to {VERSION}); use that one",
                directory.display()
            ),
            Self::Damaged(what) => {
                write!(
                    f,
                    "the saved state is damaged and was not loaded: {what}; restore it from a copy, or name a new directory"
                )
            }
            Self::Unsupported(what) => write!(f, "the state cannot be saved: {what}"),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for StateError {}

/// Names what failed.
fn failed<'a>(doing: &str, path: &'a Path) -> impl FnOnce(std::io::Error) -> StateError + use<'a> {
    let doing = doing.to_owned();
    move |error| StateError::Io { doing: format!("{doing} {}", path.display()), error }
}

/// What the file `state` holds.
#[derive(Serialize, Deserialize)]
struct Saved {
    replica: Record,
    /// What the server in front of the replica keeps.
    front: serde_json::Value,
}

/// A memory of a canister, or of one of its snapshots.
type MemoryKey = (Principal, Option<Vec<u8>>);

/// A memory as it was last saved, so that a save need not hash what has stayed as it was.
enum Known {
    Stable(StableMemory),
    Heap(u64),
    SnapshotHeap(Arc<Vec<u8>>),
}

/// A directory with a replica's state. It belongs to this process until it is dropped.
pub struct StateDir {
    path: PathBuf,
    blobs: Blobs,
    stable: HashMap<MemoryKey, (Known, MemoryRecord)>,
    heaps: HashMap<MemoryKey, (Known, MemoryRecord)>,
    /// Held for the lock on it.
    _lock: File,
}

impl StateDir {
    /// Opens a directory, which is made if it is not there, and the replica that was saved in it; a new one if none was.
    /// `config.time_nanos` is the least time that the replica's clock shows.
    ///
    /// # Errors
    /// When the directory is in use, is not a replica's, is from a newer version, or is damaged. Nothing in it is changed
    /// then.
    pub fn open(path: &Path, config: Config) -> Result<(Self, Replica), StateError> {
        let (directory, replica, _) = Self::open_with_front(path, |_| config)?;
        Ok((directory, replica))
    }

    /// Opens as [`open`](Self::open) does. `config` may depend on what the front end has kept, `null` at first; that is
    /// also given back.
    pub(crate) fn open_with_front(
        path: &Path,
        config: impl FnOnce(&serde_json::Value) -> Config,
    ) -> Result<(Self, Replica, serde_json::Value), StateError> {
        std::fs::create_dir_all(path).map_err(failed("cannot make the directory", path))?;
        refuse_foreign(path)?;
        let lock = lock(path)?;
        let saved = read_state(path)?;
        let mut directory = Self {
            blobs: Blobs::open(path.join(BLOBS))?,
            path: path.to_owned(),
            stable: HashMap::new(),
            heaps: HashMap::new(),
            _lock: lock,
        };
        let Some(Saved { replica: record, front }) = saved else {
            let replica = Replica::new(config(&serde_json::Value::Null));
            return Ok((directory, replica, serde_json::Value::Null));
        };
        let config = config(&front);
        let least = config.time_nanos;
        let mut replica = Replica::restore(config, record.clone(), &|hash| directory.blobs.read(hash))?;
        replica.set_time(replica.time().max(least));
        // All of it is known now, and so are the blobs that nothing needs any more.
        let captured = replica.capture(|_| true)?;
        let used = directory.remember(&captured, &record);
        directory.blobs.retain(&used);
        Ok((directory, replica, front))
    }

    /// Saves the replica's state: all of it, or with an error what was saved before stays.
    ///
    /// # Errors
    /// When the file system fails, or a canister's code is of a kind that cannot be kept.
    pub fn save(&mut self, replica: &mut Replica) -> Result<(), StateError> {
        let captured = replica.capture(|revision| self.knows(revision))?;
        self.write(captured, serde_json::Value::Null)
    }

    /// Whether the heap of this revision is in the directory.
    pub(crate) fn knows(&self, revision: u64) -> bool {
        self.heaps.values().any(|(known, _)| matches!(known, Known::Heap(r) if *r == revision))
    }

    /// Writes what was captured, with what the front end keeps.
    pub(crate) fn write(&mut self, mut captured: Captured, front: serde_json::Value) -> Result<(), StateError> {
        for (record, memories) in captured.record.canisters.iter_mut().zip(&captured.memories) {
            let id = record.id;
            record.stable = self.write_stable(&(id, None), &memories.stable)?;
            if let (Some(code), Some((module, heap))) = (&mut record.code, &memories.code) {
                self.blobs.put_as(Hash(module.hash), &module.wasm)?;
                code.heap = self.write_heap(&(id, None), heap)?;
            }
            for chunks in memories.all_chunks() {
                for (hash, bytes) in chunks {
                    self.blobs.put_as(Hash(*hash), bytes)?;
                }
            }
            for (record, snapshot) in record.snapshots.iter_mut().zip(&memories.snapshots) {
                let key = (id, Some(record.id.clone()));
                self.blobs.put_as(Hash(snapshot.module.hash), &snapshot.module.wasm)?;
                record.code.heap = match self.heaps.get(&key) {
                    Some((Known::SnapshotHeap(heap), known)) if Arc::ptr_eq(heap, &snapshot.heap) => known.clone(),
                    _ => self.write_bytes(&snapshot.heap)?,
                };
                record.stable = self.write_stable(&key, &snapshot.stable)?;
            }
        }
        self.blobs.sync()?;
        let Captured { record, memories } = captured;
        let saved = Saved { replica: record, front };
        self.publish(&saved)?;
        let captured = Captured { record: saved.replica, memories };
        let record = captured.record.clone();
        let used = self.remember(&captured, &record);
        self.blobs.retain(&used);
        Ok(())
    }

    /// Writes `state` and puts it in the old one's place.
    fn publish(&self, saved: &Saved) -> Result<(), StateError> {
        let (partial, state) = (self.path.join(PARTIAL), self.path.join(STATE));
        let body = serde_json::to_vec(saved)
            .map_err(|e| StateError::Unsupported(format!("the state does not fit into JSON: {e}")))?;
        let head = format!("{MAGIC} {VERSION} {}\n", Hash::of(&body));
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(head.as_bytes())?;
            file.write_all(&body)?;
            file.sync_all()
        });
        written.map_err(failed("cannot write", &partial))?;
        std::fs::rename(&partial, &state).map_err(failed("cannot replace", &state))?;
        blobs::sync_directory(&self.path)
    }

    fn write_stable(&mut self, key: &MemoryKey, memory: &StableMemory) -> Result<MemoryRecord, StateError> {
        let known = match self.stable.get(key) {
            Some((Known::Stable(known), record)) => Some((known, record)),
            _ => None,
        };
        let chunks = SEGMENT_BYTES / WASM_PAGE;
        let mut record = MemoryRecord { bytes: memory.bytes(), segments: Vec::new() };
        for number in 0..record.bytes.div_ceil(SEGMENT_BYTES) {
            let pages = number * chunks..((number + 1) * chunks).min(memory.pages());
            // A segment at the end of either memory may have another length.
            let same = |known: &StableMemory| {
                known.pages().min((number + 1) * chunks) == pages.end
                    && pages.clone().all(|page| same_chunk(known.chunk(page), memory.chunk(page)))
            };
            let hash = match known.filter(|(known, _)| same(known)) {
                Some((_, record)) => record.segments.get(number as usize).copied().flatten(),
                None if pages.clone().all(|page| memory.chunk(page).is_none()) => None,
                None => {
                    let bytes: Vec<u8> = pages
                        .flat_map(|page| memory.chunk(page).map_or([0; WASM_PAGE as usize], |chunk| **chunk))
                        .collect();
                    Some(self.blobs.put(&bytes)?)
                }
            };
            record.segments.push(hash);
        }
        Ok(record)
    }

    fn write_heap(&mut self, key: &MemoryKey, heap: &HeapImage) -> Result<MemoryRecord, StateError> {
        match &heap.bytes {
            Some(bytes) => self.write_bytes(bytes),
            None => {
                let found =
                    self.heaps.values().find(|(known, _)| matches!(known, Known::Heap(r) if *r == heap.revision));
                let (_, record) = found.ok_or_else(|| {
                    StateError::Unsupported(format!("the heap of canister {} was not captured", key.0))
                })?;
                Ok(record.clone())
            }
        }
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<MemoryRecord, StateError> {
        let mut record = MemoryRecord { bytes: bytes.len() as u64, segments: Vec::new() };
        for segment in bytes.chunks(SEGMENT_BYTES as usize) {
            let zeros = segment.iter().all(|b| *b == 0);
            record.segments.push(if zeros { None } else { Some(self.blobs.put(segment)?) });
        }
        Ok(record)
    }

    /// Notes what the directory holds now; the blobs that this is.
    fn remember(&mut self, captured: &Captured, record: &Record) -> std::collections::HashSet<Hash> {
        self.stable.clear();
        self.heaps.clear();
        let mut used = std::collections::HashSet::new();
        for (record, memories) in record.canisters.iter().zip(&captured.memories) {
            let id = record.id;
            used.extend(record.stable.segments.iter().flatten());
            used.extend(memories.all_chunks().flat_map(|chunks| chunks.keys().map(|hash| Hash(*hash))));
            self.stable.insert((id, None), (Known::Stable(memories.stable.clone()), record.stable.clone()));
            if let (Some(code), Some((module, heap))) = (&record.code, &memories.code) {
                used.insert(Hash(module.hash));
                used.extend(code.heap.segments.iter().flatten());
                self.heaps.insert((id, None), (Known::Heap(heap.revision), code.heap.clone()));
            }
            for (record, snapshot) in record.snapshots.iter().zip(&memories.snapshots) {
                let key = (id, Some(record.id.clone()));
                used.insert(Hash(snapshot.module.hash));
                used.extend(record.code.heap.segments.iter().flatten());
                used.extend(record.stable.segments.iter().flatten());
                let heap = Known::SnapshotHeap(Arc::clone(&snapshot.heap));
                self.heaps.insert(key.clone(), (heap, record.code.heap.clone()));
                self.stable.insert(key, (Known::Stable(snapshot.stable.clone()), record.stable.clone()));
            }
        }
        used
    }
}

impl Memories {
    /// The chunk stores of the canister and of its snapshots.
    fn all_chunks(&self) -> impl Iterator<Item = &std::collections::BTreeMap<[u8; 32], Arc<Vec<u8>>>> {
        std::iter::once(&self.chunks).chain(self.snapshots.iter().map(|snapshot| &snapshot.chunks))
    }
}

fn same_chunk(a: Option<&Chunk>, b: Option<&Chunk>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Refuses a directory without a state, but with files that are not this replica's.
fn refuse_foreign(path: &Path) -> Result<(), StateError> {
    if path.join(STATE).exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(failed("cannot read the directory", path))? {
        let name = entry.map_err(failed("cannot read the directory", path))?.file_name();
        // What the first save leaves behind when it does not come to its end.
        if ![LOCK, PARTIAL, BLOBS].iter().any(|own| name == *own) {
            return Err(StateError::Foreign(path.to_owned()));
        }
    }
    Ok(())
}

fn lock(path: &Path) -> Result<File, StateError> {
    let file = path.join(LOCK);
    let lock = File::options().create(true).truncate(false).write(true).open(&file);
    let lock = lock.map_err(failed("cannot open", &file))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StateError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed("cannot lock", &file)(error)),
    }
}

/// The file `state`, checked; `None` when there is none.
fn read_state(path: &Path) -> Result<Option<Saved>, StateError> {
    let file = path.join(STATE);
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("cannot read", &file)(error)),
    };
    let damaged = |what: &str| StateError::Damaged(format!("{}: {what}", file.display()));
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).and_then(|rest| rest.strip_prefix(b" "));
    let rest = rest.ok_or_else(|| StateError::Foreign(path.to_owned()))?;
    let end = rest.iter().position(|b| *b == b'\n').ok_or_else(|| damaged("its first line has no end"))?;
    let (head, body) = (&rest[..end], &rest[end + 1..]);
    let head = std::str::from_utf8(head).map_err(|_| damaged("its first line is no text"))?;
    let (version, hash) = head.split_once(' ').ok_or_else(|| damaged("its first line is incomplete"))?;
    let version: u32 = version.parse().map_err(|_| damaged("its first line has no version"))?;
    if version > VERSION {
        return Err(StateError::Newer { directory: path.to_owned(), version });
    }
    if Hash::of(body).to_string() != hash {
        return Err(damaged("its contents do not match their SHA-256"));
    }
    serde_json::from_slice(body)
        .map(Some)
        .map_err(|e| damaged(&format!("its contents are not what they should be: {e}")))
}
