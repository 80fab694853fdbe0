//! Random histories against a map, with the clock going on: what entries are, what conditions say, what lists show, and
//! what is left in the tables. A failure prints seed and step; `ICSQL_SEED` runs that seed alone.
use crate::common::{Canister, Random};
use crate::entries::{DELETE_MANY, append, delete, get, get_entry, list_all, put, put_blob, put_op, read, write};
use icsql_canister::api::kv;
use icsql_canister::limits::{SWEEP_DELAY_NS, VALUE_PART_BYTES};
use icsql_engine::{Error as EngineError, Reader};
use icsql_types::{Condition, Deleted, Entry, Error, KvList, KvOperation, KvValue, Values, WriteOptions};
use std::collections::BTreeMap;

const SECOND: usize = 1_000_000_000;
const KEYS: [&str; 14] = ["a", "a\0", "aa", "ab", "a_", "a%", "b", "ba", "bb\u{10ffff}", "é", "éa", "z", "zz", "zzz"];

#[derive(Clone, Debug)]
struct Stored {
    value: KvValue,
    version: u64,
    expires_at: Option<u64>,
    note: Option<String>,
}

type Map = BTreeMap<String, Stored>;

fn bytes_of(value: &KvValue) -> &[u8] {
    match value {
        KvValue::Text(text) => text.as_bytes(),
        KvValue::Blob(blob) => blob,
    }
}

/// What an expired entry leaves: nothing.
fn expire(map: &mut Map, now: u64) {
    map.retain(|_, stored| stored.expires_at.is_none_or(|at| at > now));
}

fn put_in(map: &mut Map, key: &str, value: KvValue, version: u64, expires_at: Option<u64>) {
    let note = map.remove(key).and_then(|stored| stored.note);
    map.insert(key.to_owned(), Stored { value, version, expires_at, note });
}

fn entry_of(key: &str, stored: &Stored, with_value: bool) -> Entry {
    let Stored { value, version, expires_at, note } = stored.clone();
    let size = bytes_of(&value).len() as u64;
    Entry { key: key.to_owned(), value: with_value.then_some(value), size, version, expires_at, note }
}

struct History {
    random: Random,
    canister: Canister,
    map: Map,
    /// Keys that have just expired, to be written to before they are swept.
    expired: Vec<&'static str>,
}

impl History {
    fn key(&mut self) -> &'static str {
        if self.random.below(2) == 0
            && let Some(key) = self.expired.pop()
        {
            return key;
        }
        KEYS[self.random.below(KEYS.len())]
    }

    fn text(&mut self) -> String {
        char::from(b'a' + self.random.below(26) as u8).to_string().repeat(self.random.below(300))
    }

    fn bytes(&mut self) -> Vec<u8> {
        // Now and then so many that the value goes into parts.
        let length = match self.random.below(8) {
            0 => VALUE_PART_BYTES - 2 + self.random.below(5),
            1 => self.random.below(3 * VALUE_PART_BYTES),
            _ => self.random.below(500),
        };
        let seed = self.random.below(256);
        (0..length).map(|at| (at ^ seed) as u8).collect()
    }

    fn condition(&mut self, key: &str) -> Option<Condition> {
        match self.random.below(8) {
            0 => Some(Condition::Absent),
            1 => Some(Condition::Present),
            2 => Some(Condition::Version(self.random.below(300) as u64)),
            3 => self.map.get(key).map(|stored| Condition::Version(stored.version)),
            _ => None,
        }
    }

    fn operation(&mut self) -> KvOperation {
        let key = self.key();
        let condition = self.condition(key);
        match self.random.below(7) {
            0 => KvOperation::Delete { key: key.to_owned(), condition },
            1 | 2 => {
                let note = (self.random.below(3) > 0).then(|| self.text());
                KvOperation::Note { key: key.to_owned(), note, condition }
            }
            _ => {
                let value =
                    if self.random.below(2) == 0 { KvValue::Text(self.text()) } else { KvValue::Blob(self.bytes()) };
                // Some are past already.
                let at = self.canister.now - SECOND as u64 + self.random.below(12 * SECOND) as u64;
                put_op(key, value, (self.random.below(2) == 0).then_some(at), condition)
            }
        }
    }

    /// What `kv_write` should do.
    fn expect(&self, operations: &[KvOperation]) -> Result<Map, Error> {
        let version = self.canister.service.database.next_transaction_id();
        let mut map = self.map.clone();
        for (index, operation) in operations.iter().enumerate() {
            expire(&mut map, self.canister.now);
            let (KvOperation::Put { key, condition, .. }
            | KvOperation::Delete { key, condition }
            | KvOperation::Note { key, condition, .. }) = operation;
            let found = map.get(key).map(|stored| stored.version);
            let met = match condition {
                None => true,
                Some(Condition::Absent) => found.is_none(),
                Some(Condition::Present) => found.is_some(),
                Some(Condition::Version(version)) => found == Some(*version),
            };
            if !met {
                return Err(Error::ConditionFailed { index: index as u32, key: key.clone(), version: found });
            }
            match operation {
                KvOperation::Put { key, value, expires_at, .. } => {
                    put_in(&mut map, key, value.clone(), version, *expires_at);
                }
                KvOperation::Delete { key, .. } => drop(map.remove(key)),
                KvOperation::Note { key, note, .. } => match map.get_mut(key) {
                    Some(stored) => stored.note = note.clone(),
                    None => return Err(Error::NotFound { what: "key".to_owned(), name: key.clone() }),
                },
            }
        }
        Ok(map)
    }

    fn step(&mut self) {
        let now = self.canister.now;
        let is_expired =
            |key: &&str| self.map.get(*key).is_some_and(|stored| stored.expires_at.is_some_and(|at| at <= now));
        self.expired.extend(KEYS.into_iter().filter(is_expired));
        expire(&mut self.map, now);
        let key = self.key();
        let version = self.canister.service.database.next_transaction_id();
        match self.random.below(16) {
            0 => {
                let text = self.text();
                assert_eq!(put(&mut self.canister, key, &text), version);
                put_in(&mut self.map, key, KvValue::Text(text), version, None);
            }
            1 => {
                let bytes = self.bytes();
                assert_eq!(put_blob(&mut self.canister, key, &bytes).unwrap().version, version);
                put_in(&mut self.map, key, KvValue::Blob(bytes), version, None);
            }
            2..=4 => {
                let count = 1 + self.random.below(6);
                let operations: Vec<KvOperation> = (0..count).map(|_| self.operation()).collect();
                let expected = self.expect(&operations);
                let outcome = write(&mut self.canister, &operations);
                match expected {
                    Ok(map) => {
                        outcome.unwrap();
                        self.map = map;
                    }
                    Err(error) => assert_eq!(outcome, Err(error)),
                }
            }
            5 | 6 => {
                let bytes = self.bytes();
                let outcome = append(&mut self.canister, key, &bytes);
                match self.map.get_mut(key) {
                    Some(Stored { value: KvValue::Text(_), .. }) => assert!(outcome.is_err(), "{outcome:?}"),
                    Some(stored) => {
                        let KvValue::Blob(blob) = &mut stored.value else { unreachable!("texts come before") };
                        blob.extend_from_slice(&bytes);
                        stored.version = version;
                        assert_eq!(outcome.unwrap().size, blob.len() as u64);
                    }
                    None => {
                        assert_eq!(outcome.unwrap().version, version);
                        put_in(&mut self.map, key, KvValue::Blob(bytes), version, None);
                    }
                }
            }
            7 => {
                let deleted = delete(&mut self.canister, key);
                assert_eq!(deleted.deleted, u64::from(self.map.remove(key).is_some()));
            }
            8 => {
                let keys: Vec<&str> = (0..self.random.below(4)).map(|_| self.key()).collect();
                let deleted = self.canister.call::<Deleted>(DELETE_MANY, (&keys, None::<WriteOptions>)).unwrap();
                let gone = keys.iter().filter(|key| self.map.remove(**key).is_some()).count();
                assert_eq!(deleted.deleted, gone as u64);
            }
            9 | 14 => {
                let note = (self.random.below(3) > 0).then(|| self.text());
                let outcome = self.canister.call::<()>(kv::set_note, (key, &note, None::<WriteOptions>));
                match self.map.get_mut(key) {
                    Some(stored) => stored.note = note,
                    None => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
                }
            }
            10 | 11 => {
                let time = self.random.below(8 * SECOND) as u64;
                self.canister.wait(time);
            }
            12 if self.random.below(4) == 0 => {
                self.canister.wait(2 * SWEEP_DELAY_NS);
                expire(&mut self.map, self.canister.now);
            }
            13 => self.look_at_values(key),
            _ => self.look_at_lists(),
        }
    }

    fn look_at_values(&mut self, key: &str) {
        expire(&mut self.map, self.canister.now);
        let stored = self.map.get(key).cloned();
        let expected = stored.as_ref().map(|stored| entry_of(key, stored, true));
        assert!(get_entry(&mut self.canister, key) == expected, "{key:?}");
        match &stored {
            Some(Stored { value: KvValue::Blob(_), .. }) => assert!(get(&mut self.canister, key).is_err()),
            Some(Stored { value: KvValue::Text(text), .. }) => {
                assert_eq!(get(&mut self.canister, key), Ok(Some(text.clone())));
                let values = self.canister.call::<Values>(kv::get_many, (vec![key, "missing"],)).unwrap().values;
                assert_eq!(values, [Some(text.clone()), None]);
            }
            None => assert_eq!(get(&mut self.canister, key), Ok(None)),
        }
        let note = self.canister.call::<Option<String>>(kv::get_note, (key,));
        assert_eq!(note.ok(), stored.as_ref().map(|stored| stored.note.clone()));
        let (offset, length) = (self.random.below(150_000), self.random.below(150_000));
        let part = read(&mut self.canister, key, offset as u64, length as u32).unwrap();
        assert_eq!(part.is_some(), stored.is_some());
        if let (Some(part), Some(stored)) = (part, stored) {
            let bytes = bytes_of(&stored.value);
            let start = offset.min(bytes.len());
            assert!(part.bytes == bytes[start..(start + length).min(bytes.len())], "{offset} {length}");
            assert_eq!((part.size, part.version), (bytes.len() as u64, stored.version));
        }
    }

    fn look_at_lists(&mut self) {
        expire(&mut self.map, self.canister.now);
        assert_eq!(self.canister.call::<u64>(kv::count, ()), Ok(self.map.len() as u64));
        let values = self.random.below(2) == 0;
        let bound = |history: &mut Self| (history.random.below(3) > 0).then(|| history.key().to_owned());
        let mut request = KvList {
            reverse: Some(self.random.below(2) == 0),
            values: Some(values),
            limit: Some(1 + self.random.below(6) as u32),
            ..KvList::default()
        };
        if self.random.below(2) == 0 {
            request.prefix = bound(self);
        } else {
            (request.from, request.to) = (bound(self), bound(self));
        }
        let mut expected: Vec<Entry> = self
            .map
            .iter()
            .filter(|(key, _)| request.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix.as_str())))
            .filter(|(key, _)| request.from.as_ref().is_none_or(|from| *key >= from))
            .filter(|(key, _)| request.to.as_ref().is_none_or(|to| *key < to))
            .map(|(key, stored)| entry_of(key, stored, values))
            .collect();
        if request.reverse == Some(true) {
            expected.reverse();
        }
        assert!(list_all(&mut self.canister, &request) == expected, "{request:?}");
    }

    /// The tables hold what they should and nothing else, and the heap knows it.
    fn check_tables(&self) {
        let service = &self.canister.service;
        let number = |sql: &str| {
            let number = |reader: &Reader<'_>| reader.query_row(sql, (), |row| row.integer(0));
            service
                .database
                .read(number)
                .map(Option::unwrap_or_default)
                .unwrap_or_else(|error: EngineError| panic!("{error}"))
        };
        for broken in [
            "SELECT count(*) FROM main.kv WHERE (version < 0) <> (key IN (SELECT key FROM main.kv_expiry))",
            "SELECT count(*) FROM main.kv_expiry WHERE key NOT IN (SELECT key FROM main.kv)",
            "SELECT count(*) FROM main.kv_note WHERE key NOT IN (SELECT key FROM main.kv)",
            "SELECT count(*) FROM main.kv_part WHERE key NOT IN (SELECT key FROM main.kv WHERE typeof(value) = 'integer')",
            "SELECT count(*) FROM main.kv WHERE typeof(value) = 'integer' AND value <> \
             (SELECT sum(length(bytes)) FROM main.kv_part AS p WHERE p.key = kv.key) \
             AND key NOT IN (SELECT key FROM main.kv_expiry)",
        ] {
            assert_eq!(number(broken), 0, "{broken}");
        }
        let known = service.database.read(icsql_canister::ops::kv::State::of).unwrap();
        assert_eq!(service.kv, known);
        if let Some(expiry) = known.next_expiry {
            assert!(self.canister.timer.is_some_and(|at| at <= expiry.max(self.canister.now) + SWEEP_DELAY_NS));
        }
    }
}

#[test]
fn random_histories_agree_with_a_map() {
    let alone = std::env::var("ICSQL_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in alone.map_or(1..=8, |seed: u64| seed..=seed) {
        let mut history =
            History { random: Random(seed), canister: Canister::install(), map: Map::new(), expired: Vec::new() };
        for step in 0..400 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                history.step();
                if step % 20 == 0 {
                    history.check_tables();
                }
            }));
            assert!(outcome.is_ok(), "seed {seed}, step {step}");
            if history.random.below(40) == 0 {
                history = History { canister: history.canister.upgrade(), ..history };
            }
        }
        // In the end everything that expires is swept.
        history.canister.wait(100 * SECOND as u64 + 2 * SWEEP_DELAY_NS);
        expire(&mut history.map, history.canister.now);
        history.check_tables();
        assert_eq!(history.canister.service.kv.next_expiry, None, "seed {seed}");
        let left = history
            .canister
            .service
            .database
            .read(|reader: &Reader<'_>| reader.query_row("SELECT count(*) FROM main.kv", (), |row| row.integer(0)));
        assert_eq!(left, Ok::<_, EngineError>(Some(history.map.len() as i64)), "seed {seed}");
    }
}
