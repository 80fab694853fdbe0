//! The canisters that are compared: where their Wasm is and in which shape they answer.

use std::path::{Path, PathBuf};

use candid::{CandidType, Decode, Deserialize, Encode, Reserved};
use icsql_types::{Deleted, Entry, KvList, KvOperation, KvPage, KvValue};

/// This project.
pub const ICSQL: &str = "icsql";
/// icsql where it could be used by key, but by SQL.
pub const ICSQL_SQL: &str = "icsql-sql";
/// The nearest relative.
pub const IC_SQLITE_VFS: &str = "ic-sqlite-vfs";
/// The engine on memories on the heap, for bulk work only.
pub const SQLITE_HEAP: &str = "sqlite-heap";
/// `StableBTreeMap` of ic-stable-structures.
pub const BTREEMAP: &str = "btreemap";
/// All of them, in the order of tables.
pub const NAMES: [&str; 5] = [ICSQL, ICSQL_SQL, IC_SQLITE_VFS, SQLITE_HEAP, BTREEMAP];

/// A canister with the methods `kv_put`, `kv_get` and `kv_get_many`. All take the same arguments.
pub struct Subject {
    /// Its name in the results.
    pub name: &'static str,
    wasm: PathBuf,
    /// The command that builds it, for the message that it is missing.
    built_by: &'static str,
    many_reply: ManyReply,
}

/// The `Ok` of `kv_get_many`.
enum ManyReply {
    /// `vec opt text`
    Values,
    /// `record { values : vec opt text; next : opt nat32 }`
    Page,
}

#[derive(CandidType, Deserialize)]
struct Page {
    values: Vec<Option<String>>,
    next: Option<u32>,
}

/// The subjects in the order of the table.
pub fn all(root: &Path) -> Vec<Subject> {
    const FIXTURES: &str = "scripts/build-fixtures";
    let fixtures = root.join("tests/canisters/target/wasm32-unknown-unknown/release");
    vec![
        Subject {
            name: ICSQL,
            wasm: root.join("target/icsql.wasm"),
            built_by: "scripts/build",
            many_reply: ManyReply::Page,
        },
        Subject {
            name: IC_SQLITE_VFS,
            wasm: fixtures.join("sqlite_vfs_canister.wasm"),
            built_by: FIXTURES,
            many_reply: ManyReply::Values,
        },
        Subject {
            name: BTREEMAP,
            wasm: fixtures.join("btreemap_canister.wasm"),
            built_by: FIXTURES,
            many_reply: ManyReply::Values,
        },
    ]
}

impl Subject {
    /// Reads the Wasm.
    pub fn load(&self) -> Result<Vec<u8>, String> {
        read_built(self.name, &self.wasm, self.built_by)
    }

    /// The argument of `kv_put`. icsql's trailing `opt WriteOptions` is left out, so that all get the same bytes.
    pub fn put_argument(key: &str, value: &str) -> Vec<u8> {
        Encode!(&key, &value).expect("texts can be encoded")
    }

    /// The argument of `kv_get`.
    pub fn get_argument(key: &str) -> Vec<u8> {
        Encode!(&key).expect("a text can be encoded")
    }

    /// The argument of `kv_get_many`.
    pub fn get_many_argument(keys: &[String]) -> Vec<u8> {
        Encode!(&keys).expect("texts can be encoded")
    }

    /// The argument of `kv_list` for so many entries from a key on, with their values.
    pub fn list_argument(from: &str, limit: u32) -> Vec<u8> {
        let list = KvList { from: Some(from.to_string()), limit: Some(limit), values: Some(true), ..KvList::default() };
        Encode!(&list).expect("a list can be encoded")
    }

    /// The argument of `kv_write` that puts these keys and values.
    pub fn write_argument(puts: Vec<(String, String)>) -> Vec<u8> {
        let put =
            |(key, value)| KvOperation::Put { key, value: KvValue::Text(value), expires_at: None, condition: None };
        Encode!(&puts.into_iter().map(put).collect::<Vec<_>>()).expect("operations can be encoded")
    }

    /// The keys and texts that `kv_list` answered.
    pub fn decode_list(reply: &[u8]) -> Result<Vec<(String, String)>, String> {
        let page = ok(Decode!(reply, Result<KvPage, Reserved>))?;
        let pair = |entry: Entry| match entry.value {
            Some(KvValue::Text(value)) => Ok((entry.key, value)),
            other => Err(format!("{} has the value {other:?}", entry.key)),
        };
        page.entries.into_iter().map(pair).collect()
    }

    /// How many keys `kv_delete` deleted.
    pub fn decode_delete(reply: &[u8]) -> Result<u64, String> {
        ok(Decode!(reply, Result<Deleted, Reserved>)).map(|deleted| deleted.deleted)
    }

    /// Checks that the put was carried out.
    pub fn check_put(reply: &[u8]) -> Result<(), String> {
        ok(Decode!(reply, Result<Reserved, Reserved>)).map(drop)
    }

    /// The value that `kv_get` answered.
    pub fn decode_get(reply: &[u8]) -> Result<Option<String>, String> {
        ok(Decode!(reply, Result<Option<String>, Reserved>))
    }

    /// The values that `kv_get_many` answered; an error unless it answered all of them.
    pub fn decode_get_many(&self, reply: &[u8]) -> Result<Vec<Option<String>>, String> {
        match self.many_reply {
            ManyReply::Values => ok(Decode!(reply, Result<Vec<Option<String>>, Reserved>)),
            ManyReply::Page => {
                let page = ok(Decode!(reply, Result<Page, Reserved>))?;
                match page.next {
                    None => Ok(page.values),
                    Some(next) => Err(format!("stopped at key {next}")),
                }
            }
        }
    }
}

/// Reads a file that a command makes, and names the command if it is not there.
pub(crate) fn read_built(what: &str, path: &Path, built_by: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{what}: {}: {error}. Build it with `{built_by}`.", path.display()))
}

fn ok<T>(decoded: Result<Result<T, Reserved>, candid::Error>) -> Result<T, String> {
    match decoded {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Reserved)) => Err("the canister answered an error".to_string()),
        Err(error) => Err(format!("the reply has another shape: {error}")),
    }
}
