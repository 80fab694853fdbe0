//! Types of the methods `kv_…`.
use candid::CandidType;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// A value of the key-value store.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum KvValue {
    /// Text.
    Text(String),
    /// Bytes.
    Blob(#[serde(with = "serde_bytes")] Vec<u8>),
}

/// What must hold of an entry for a write to it to be done.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no such key.
    Absent,
    /// There is such a key.
    Present,
    /// The entry has this version.
    Version(u64),
}

/// A part of a `kv_write`.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields' names say it, and candid/icsql.did in full
pub enum KvOperation {
    /// Writes a value.
    Put { key: String, value: KvValue, expires_at: Option<u64>, condition: Option<Condition> },
    /// Removes a key with its note.
    Delete { key: String, condition: Option<Condition> },
    /// Sets or removes the note of a key.
    Note { key: String, note: Option<String>, condition: Option<Condition> },
}

/// An entry of the key-value store.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value; none if it was not asked for, or is too large for a reply.
    pub value: Option<KvValue>,
    /// Bytes of the value.
    pub size: u64,
    /// Id of the transaction that wrote the value.
    pub version: u64,
    /// When it expires, in nanoseconds since 1970.
    pub expires_at: Option<u64>,
    /// Its note.
    pub note: Option<String>,
}

/// What `kv_list` is asked for.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct KvList {
    /// Keys that begin with these bytes.
    pub prefix: Option<String>,
    /// Keys from this on; not together with a prefix.
    pub from: Option<String>,
    /// Keys below this; not together with a prefix.
    pub to: Option<String>,
    /// From the last to the first.
    pub reverse: Option<bool>,
    /// With their values.
    pub values: Option<bool>,
    /// Most entries.
    pub limit: Option<u32>,
    /// Most bytes of keys, values and notes.
    pub max_bytes: Option<u64>,
    /// Where the page before ended.
    pub cursor: Option<ByteBuf>,
}

/// A page of entries.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct KvPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page goes on; none at the end.
    pub cursor: Option<ByteBuf>,
}

/// What a delete did.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Entries that were there and are gone.
    pub deleted: u64,
    /// Id of the transaction; of the last one if nothing was there.
    pub version: u64,
}

/// A value that was appended to.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Id of the transaction.
    pub version: u64,
    /// Bytes of the whole value now.
    pub size: u64,
}

/// A part of a value.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes; fewer than asked for at the value's end.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Bytes of the whole value.
    pub size: u64,
    /// Version of the entry.
    pub version: u64,
}
