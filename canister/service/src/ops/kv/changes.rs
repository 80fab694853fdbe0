//! Changes of entries in one transaction.
//!
//! As long as no entry expires and no value is in parts, which the heap knows, each change is a statement or two. Else
//! what was stored is looked up first, so that nothing of it is left behind.
use super::entry::{self, Found, Stored};
use super::{State, Tables, parts};
use crate::error::Failure;
use crate::guard::too_large;
use crate::limits::{
    REMOVED_PARTS_MAX, SWEEP_ENTRIES_PER_WRITE, SWEEP_PARTS_PER_WRITE, VALUE_IN_PARTS_BYTES_MAX, VALUE_PART_BYTES,
};
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Sql, ValueRef, Writer};
use icsql_types::{Condition, Error};

static SET_EXPIRY: Sql = Sql::new("INSERT OR REPLACE INTO main.kv_expiry(key, expires_at) VALUES (?1, ?2)");
static REMOVE_EXPIRY: Sql = Sql::new("DELETE FROM main.kv_expiry WHERE key = ?1");
static EXPIRED: Sql =
    Sql::new("SELECT key FROM main.kv_expiry WHERE expires_at <= ?1 ORDER BY expires_at, key LIMIT ?2");

/// Statements to keep prepared.
pub static STATEMENTS: &[&Sql] = &[&SET_EXPIRY, &REMOVE_EXPIRY, &EXPIRED];

/// How much expired data one step of sweeping removes.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Entries.
    pub entries: u32,
    /// Parts of their values.
    pub parts: u64,
}

impl Sweep {
    /// What a write does beside its own work.
    pub const BESIDE_A_WRITE: Self = Self { entries: SWEEP_ENTRIES_PER_WRITE, parts: SWEEP_PARTS_PER_WRITE };
}

/// A transaction on the entries.
pub struct Changes<'w> {
    writer: &'w Writer<'w>,
    tables: &'w Tables,
    now: u64,
    version: u64,
    stored_version: i64,
    /// Before this transaction.
    before: State,
    /// Whether an entry that expires, or a value in parts, can be there.
    careful: bool,
    parts_removed: u64,
    changed: bool,
}

impl<'w> Changes<'w> {
    /// Starts at `now`, in nanoseconds since 1970, on entries that are in the state `before`.
    ///
    /// # Errors
    /// If no further transaction can be numbered.
    pub fn begin(writer: &'w Writer<'w>, tables: &'w Tables, now: u64, before: State) -> Result<Self, Failure> {
        let version = writer.id();
        let stored_version = super::stored_version(version)?;
        Ok(Self {
            writer,
            tables,
            now,
            version,
            stored_version,
            before,
            careful: !before.is_plain(),
            parts_removed: 0,
            changed: false,
        })
    }

    /// The id of this transaction if it has changed anything that can be seen, else of the one before.
    pub fn version(&self) -> u64 {
        if self.changed { self.version } else { self.version.saturating_sub(1) }
    }

    /// Ends the transaction's work, with a step of sweeping, and answers the state that is true once it is committed.
    ///
    /// # Errors
    /// The engine's.
    pub fn end(mut self) -> Result<State, Failure> {
        if !self.careful {
            return Ok(self.before);
        }
        if self.before.next_expiry.is_some_and(|at| at <= self.now) {
            self.sweep(Sweep::BESIDE_A_WRITE)?;
        }
        Ok(State::of(self.writer)?)
    }

    /// Checks the condition of the operation `index` of a list.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`].
    pub fn check(&self, index: u32, key: &str, condition: Option<Condition>) -> Result<(), Failure> {
        let Some(condition) = condition else { return Ok(()) };
        let version = entry::version(self.writer, self.tables, key, self.now)?;
        let met = match condition {
            Condition::Absent => version.is_none(),
            Condition::Present => version.is_some(),
            Condition::Version(expected) => version == Some(expected),
        };
        if met { Ok(()) } else { Err(Error::ConditionFailed { index, key: key.to_owned(), version }.into()) }
    }

    /// Writes a value: adds the key or replaces its value and its expiry. The note stays, unless the entry had expired.
    ///
    /// # Errors
    /// The engine's; a time of expiry that cannot be stored.
    pub fn put(&mut self, key: &str, value: ValueRef<'_>, expires_at: Option<u64>) -> Result<(), Failure> {
        if self.careful
            && let Some(found) = entry::find(self.writer, self.tables, key)?
        {
            self.remove_parts(key, &found)?;
            if found.is_expired(self.now) {
                self.writer.remove(&self.tables.notes, key)?;
            }
            if found.expires_at.is_some() && expires_at.is_none() {
                self.writer.execute(&REMOVE_EXPIRY, (key,))?;
            }
        }
        if let Some(expires_at) = expires_at {
            self.careful = true;
            self.writer.execute(&SET_EXPIRY, (key, stored_time(expires_at)?))?;
        }
        self.replace(key, value, expires_at.is_some())
    }

    fn replace(&mut self, key: &str, value: ValueRef<'_>, expires: bool) -> Result<(), Failure> {
        let version = if expires { -self.stored_version } else { self.stored_version };
        self.writer.put(&self.tables.entries, &[key.into(), version.into(), value])?;
        self.changed = true;
        Ok(())
    }

    /// Removes a key with its note. `false`: there was no such key.
    ///
    /// # Errors
    /// The engine's.
    pub fn delete(&mut self, key: &str) -> Result<bool, Failure> {
        if !self.careful {
            let deleted = self.writer.remove(&self.tables.entries, key)?;
            if deleted {
                self.writer.remove(&self.tables.notes, key)?;
                self.changed = true;
            }
            return Ok(deleted);
        }
        let Some(found) = entry::find(self.writer, self.tables, key)? else { return Ok(false) };
        self.remove(key, &found)?;
        let deleted = !found.is_expired(self.now);
        self.changed |= deleted;
        Ok(deleted)
    }

    /// Removes all that is stored of an entry.
    fn remove(&mut self, key: &str, found: &Found) -> Result<(), Failure> {
        self.remove_parts(key, found)?;
        self.remove_but_parts(key, found)
    }

    fn remove_but_parts(&self, key: &str, found: &Found) -> Result<(), Failure> {
        self.writer.remove(&self.tables.entries, key)?;
        self.writer.remove(&self.tables.notes, key)?;
        if found.expires_at.is_some() {
            self.writer.execute(&REMOVE_EXPIRY, (key,))?;
        }
        Ok(())
    }

    fn remove_parts(&mut self, key: &str, found: &Found) -> Result<(), Failure> {
        if found.stored != Stored::Parts {
            return Ok(());
        }
        let parts = found.size.div_ceil(VALUE_PART_BYTES as u64);
        self.parts_removed = self.parts_removed.saturating_add(parts);
        if self.parts_removed > REMOVED_PARTS_MAX {
            let bytes = |parts: u64| usize::try_from(parts).unwrap_or(usize::MAX).saturating_mul(VALUE_PART_BYTES);
            let what = "bytes of large values that the call removes";
            return Err(too_large(what, bytes(REMOVED_PARTS_MAX), bytes(self.parts_removed)).into());
        }
        parts::remove_last(self.writer, key, u64::MAX)?;
        Ok(())
    }

    /// Sets the note of a key, or removes it. `false`: there is no such key.
    ///
    /// # Errors
    /// The engine's.
    pub fn set_note(&mut self, key: &str, note: Option<&str>) -> Result<bool, Failure> {
        let exists = entry::version(self.writer, self.tables, key, self.now)?.is_some();
        if exists {
            self.changed = true;
            match note {
                Some(note) => self.writer.put(&self.tables.notes, &[key.into(), note.into()])?,
                None => drop(self.writer.remove(&self.tables.notes, key)?),
            }
        }
        Ok(exists)
    }

    /// Appends to a blob, which begins empty if there is no such key, and answers its size. Expiry and note stay.
    ///
    /// # Errors
    /// The engine's; a value that is text; one that would get too large.
    pub fn append(&mut self, key: &str, bytes: &[u8]) -> Result<u64, Failure> {
        let mut found = entry::find(self.writer, self.tables, key)?;
        if let Some(expired) = found.filter(|found| found.is_expired(self.now)) {
            self.remove(key, &expired)?;
            found = None;
        }
        let (stored, size) = found.map_or((Stored::Blob, 0), |found| (found.stored, found.size));
        if stored == Stored::Text {
            return Err(Error::Other {
                code: "not a blob".to_owned(),
                message: "the key's value is text, and kv_append goes on with a blob".to_owned(),
            }
            .into());
        }
        let new_size = size.saturating_add(bytes.len() as u64);
        if new_size > VALUE_IN_PARTS_BYTES_MAX {
            return Err(too_large("value", VALUE_IN_PARTS_BYTES_MAX as usize, new_size as usize).into());
        }
        let expires = found.is_some_and(|found| found.expires_at.is_some());
        // What shares a part with the first byte that is new.
        let part = VALUE_PART_BYTES as u64;
        let first = if stored == Stored::Parts { size / part } else { 0 };
        let start = first * part;
        let mut tail = match &found {
            Some(found) if size > start => {
                entry::read(self.writer, self.tables, key, found, start, (size - start) as usize)?
            }
            _ => Vec::new(),
        };
        tail.extend_from_slice(bytes);
        if stored == Stored::Blob && tail.len() <= VALUE_PART_BYTES {
            self.replace(key, ValueRef::Blob(&tail), expires)?;
        } else {
            self.careful = true;
            parts::write(self.writer, key, first, &tail)?;
            self.replace(key, ValueRef::Integer(new_size as i64), expires)?;
        }
        Ok(new_size)
    }

    /// Removes what has expired, the oldest first, as far as the step reaches.
    ///
    /// # Errors
    /// The engine's.
    pub fn sweep(&mut self, step: Sweep) -> Result<(), Failure> {
        let mut expired = Vec::new();
        self.writer.query(&EXPIRED, (stored_now(self.now), step.entries), |row| {
            expired.push(row.text(0)?.to_owned());
            Ok::<_, EngineError>(ControlFlow::Continue(()))
        })?;
        let mut parts_left = step.parts;
        for key in expired {
            let found =
                entry::find(self.writer, self.tables, &key)?.ok_or_else(|| entry::damaged(&key, "it is gone"))?;
            if found.stored == Stored::Parts {
                let (removed, all) = parts::remove_last(self.writer, &key, parts_left)?;
                if !all {
                    return Ok(());
                }
                parts_left = parts_left.saturating_sub(removed);
            }
            self.remove_but_parts(&key, &found)?;
        }
        Ok(())
    }
}

/// A time as it is stored.
fn stored_time(time: u64) -> Result<i64, Failure> {
    i64::try_from(time).map_err(|_| {
        let message = format!("{time} is above {}, the last that can be stored, in the year 2262", i64::MAX);
        Error::InvalidArgument { argument: "expires_at".to_owned(), message }.into()
    })
}

/// Now, to compare with stored times: none is above [`i64::MAX`].
pub fn stored_now(now: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}
