//! Pages of entries in the order of their keys.
use super::entry::{self, Found};
use super::{NOTE, Tables, VALUE};
use crate::error::Failure;
use crate::guard::{at_most, too_large};
use crate::limits::{
    KEY_BYTES_MAX, LIST_BYTES_MAX, LIST_ENTRIES_DEFAULT, LIST_ENTRIES_MAX, LIST_ENTRY_BYTES, LIST_KEYS_SCANNED_MAX,
    VALUE_BYTES_MAX,
};
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, KeyRange, KeyedRow, Reader};
use icsql_types::{Entry, Error, KvList, KvPage};

/// First byte of a cursor: its layout's version. A byte for the direction and the last key that was looked at follow.
const CURSOR_VERSION: u8 = 1;

/// The keys that are still to come. Bounds are compared as bytes and need not be UTF-8.
struct Range {
    from: Vec<u8>,
    /// Exclusive.
    to: Option<Vec<u8>>,
    reverse: bool,
}

impl Range {
    fn of(list: &KvList) -> Result<Self, Error> {
        for (what, text) in [("prefix", &list.prefix), ("from", &list.from), ("to", &list.to)] {
            if let Some(text) = text {
                at_most(what, KEY_BYTES_MAX, text)?;
            }
        }
        let reverse = list.reverse.unwrap_or(false);
        let bytes = |text: &Option<String>| text.as_ref().map(|text| text.as_bytes().to_vec());
        let mut range = match &list.prefix {
            None => Self { from: bytes(&list.from).unwrap_or_default(), to: bytes(&list.to), reverse },
            Some(_) if list.from.is_some() || list.to.is_some() => {
                return Err(invalid("prefix", "a list has either a prefix or a range"));
            }
            Some(prefix) => Self { from: prefix.as_bytes().to_vec(), to: after(prefix.as_bytes()), reverse },
        };
        if let Some(cursor) = &list.cursor {
            range.go_on(cursor)?;
        }
        Ok(range)
    }

    /// Leaves out what a page before has looked at.
    fn go_on(&mut self, cursor: &[u8]) -> Result<(), Error> {
        let other = || invalid("cursor", "it is none of a page of the same keys in the same order");
        let (&[version, reverse], last) = cursor.split_first_chunk().ok_or_else(other)?;
        let below = |to: &Vec<u8>| last < to.as_slice();
        if version != CURSOR_VERSION
            || reverse != u8::from(self.reverse)
            || last.len() > KEY_BYTES_MAX
            || last < self.from.as_slice()
            || !self.to.as_ref().is_none_or(below)
        {
            return Err(other());
        }
        if self.reverse {
            self.to = Some(last.to_vec());
        } else {
            // The first that comes after it.
            self.from = [last, &[0]].concat();
        }
        Ok(())
    }

    fn cursor(&self, last: &str) -> Vec<u8> {
        [&[CURSOR_VERSION, u8::from(self.reverse)], last.as_bytes()].concat()
    }
}

/// The first byte string after all that begin with `prefix`; `None` if there is none.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut bytes = prefix[..=kept].to_vec();
    bytes[kept] += 1;
    Some(bytes)
}

/// A page in the making.
struct Page {
    entries: Vec<Entry>,
    entries_max: usize,
    bytes: usize,
    bytes_max: usize,
    /// The last key that was looked at.
    last: String,
    scanned: usize,
}

impl Page {
    fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max || self.scanned >= LIST_KEYS_SCANNED_MAX
    }

    /// Takes the entry of a row if it fits, with its value if `with_value` and it fits.
    fn take(
        &mut self,
        reader: &Reader<'_>,
        row: &KeyedRow<'_>,
        with_value: bool,
        now: u64,
        note: impl FnOnce(&str) -> Result<Option<String>, Failure>,
    ) -> Result<bool, Failure> {
        let key = row.text(0)?;
        let found = Found::of_row(reader, row, key)?;
        if !found.is_expired(now) {
            let note = note(key)?;
            let least = LIST_ENTRY_BYTES + key.len() + note.as_ref().map_or(0, String::len);
            let size = if with_value { usize::try_from(found.size).unwrap_or(usize::MAX) } else { 0 };
            let fits = |bytes: usize| self.bytes.saturating_add(bytes) <= self.bytes_max;
            let whole = size <= VALUE_BYTES_MAX && fits(least.saturating_add(size));
            // A page of one entry holds at least what is known without the value; a value above the limit of a page
            // never comes with a list.
            let alone = self.entries.is_empty() || (size > VALUE_BYTES_MAX && fits(least));
            if !whole && !alone {
                return Ok(false);
            }
            let value = if with_value && whole {
                Some(entry::value_of_row(reader, key, &found, row.value(VALUE)?)?)
            } else {
                None
            };
            self.bytes += least + if whole { size } else { 0 };
            self.entries.push(found.into_entry(key, value, note));
        }
        self.scanned += 1;
        self.last.clear();
        self.last.push_str(key);
        Ok(true)
    }
}

/// The next page of a list, as it is at `now`, in nanoseconds since 1970.
///
/// # Errors
/// [`Error::InvalidArgument`] and [`Error::TooLarge`] for what is asked for; the engine's.
pub fn page(reader: &Reader<'_>, tables: &Tables, list: &KvList, now: u64) -> Result<KvPage, Failure> {
    let range = Range::of(list)?;
    let entries_max = list.limit.map_or(LIST_ENTRIES_DEFAULT, |limit| limit as usize);
    if entries_max == 0 {
        return Err(invalid("limit", "it is 0; leave it out or ask for at least one entry").into());
    }
    if entries_max > LIST_ENTRIES_MAX {
        return Err(too_large("limit", LIST_ENTRIES_MAX, entries_max).into());
    }
    let bytes_max = list.max_bytes.map_or(LIST_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if bytes_max > LIST_BYTES_MAX {
        return Err(too_large("max_bytes", LIST_BYTES_MAX, bytes_max).into());
    }
    let with_values = list.values.unwrap_or(false);
    let mut page = Page { entries: Vec::new(), entries_max, bytes: 0, bytes_max, last: String::new(), scanned: 0 };
    let mut complete = true;
    let mut notes = Notes::open(reader, tables, &range)?;
    let keys = KeyRange { from: &range.from, to: range.to.as_deref(), reverse: range.reverse };
    reader.scan(&tables.entries, &keys, |row| {
        if page.is_full() || !page.take(reader, row, with_values, now, |key| notes.get(key))? {
            complete = false;
            return Ok::<_, Failure>(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let cursor = (!complete).then(|| range.cursor(&page.last).into());
    Ok(KvPage { entries: page.entries, cursor })
}

/// The notes of a page's keys. Most keys have none: after a look for the next one, those before it need no other.
struct Notes<'r> {
    reader: &'r Reader<'r>,
    tables: &'r Tables,
    range: &'r Range,
    /// The next key with a note in the direction of the list; none: no other key has one.
    next: Option<(String, String)>,
}

impl<'r> Notes<'r> {
    fn open(reader: &'r Reader<'r>, tables: &'r Tables, range: &'r Range) -> Result<Self, Failure> {
        let mut notes = Self { reader, tables, range, next: None };
        notes.look(range.from.as_slice(), range.to.as_deref())?;
        Ok(notes)
    }

    /// Looks for the next key with a note between two bounds.
    fn look(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<(), Failure> {
        let keys = KeyRange { from, to, reverse: self.range.reverse };
        let mut next = None;
        self.reader.scan(&self.tables.notes, &keys, |row| {
            next = Some((row.text(0)?.to_owned(), row.text(NOTE)?.to_owned()));
            Ok::<_, EngineError>(ControlFlow::Break(()))
        })?;
        self.next = next;
        Ok(())
    }

    /// The note of a key. Keys come in the order of the list.
    fn get(&mut self, key: &str) -> Result<Option<String>, Failure> {
        let passed = |next: &str| if self.range.reverse { next > key } else { next < key };
        if self.next.as_ref().is_some_and(|(next, _)| passed(next)) {
            // Notes of keys that are not listed, since they have expired, lie in between.
            match self.range.reverse {
                false => self.look(key.as_bytes(), self.range.to.as_deref())?,
                true => self.look(&self.range.from, Some(&[key.as_bytes(), &[0]].concat()))?,
            }
        }
        match self.next.take_if(|(next, _)| next == key) {
            None => Ok(None),
            Some((_, note)) => {
                match self.range.reverse {
                    false => self.look(&[key.as_bytes(), &[0]].concat(), self.range.to.as_deref())?,
                    true => self.look(&self.range.from, Some(key.as_bytes()))?,
                }
                Ok(Some(note))
            }
        }
    }
}

#[cold]
fn invalid(argument: &str, message: &str) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::after;

    #[test]
    fn the_bound_after_a_prefix() {
        for (prefix, bound) in [
            (b"".as_slice(), None),
            (b"\xff", None),
            (b"\xff\xff\xff", None),
            (b"a", Some(b"b".as_slice())),
            (b"a\xff", Some(b"b")),
            (b"a\xff\xff", Some(b"b")),
            (b"\xfea", Some(b"\xfeb")),
            (b"a\0", Some(b"a\x01")),
            (b"a\x7f", Some(b"a\x80")),
        ] {
            assert_eq!(after(prefix).as_deref(), bound, "{prefix:x?}");
        }
    }
}
