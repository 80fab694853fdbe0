//! Replies of the hot methods. Each encodes the smallest subtype of its declared reply, since every byte costs 50
//! instructions, and is one piece, since every append costs 500.

use crate::limits::{KEYS_MAX, REPLY_BYTES_MAX};

/// `variant { Ok : opt text }`, up to the text's length: the case, and "there is one".
const VALUE: &[u8] = b"DIDL\x02\x6e\x71\x6b\x01\xbc\x8a\x01\x00\x01\x01\x00\x01";
/// `variant { Ok : null }`: null is a subtype of every option.
pub const NO_VALUE: &[u8] = b"DIDL\x01\x6b\x01\xbc\x8a\x01\x7f\x01\x00\x00";
/// `variant { Ok : record { version : nat64 } }`, up to the number.
const WRITTEN: &[u8] = b"DIDL\x02\x6c\x01\x98\xce\xc7\xe7\x07\x78\x6b\x01\xbc\x8a\x01\x00\x01\x01\x00";
/// `variant { Ok : record { deleted : nat64; version : nat64 } }`, up to the numbers.
const DELETED: &[u8] =
    b"DIDL\x02\x6c\x02\xd9\xcb\xbd\x96\x01\x78\x98\xce\xc7\xe7\x07\x78\x6b\x01\xbc\x8a\x01\x00\x01\x01\x00";
/// `variant { Ok : record { next : opt nat32; values : vec opt text } }`, up to `next`; fields go by their hash.
const VALUES: &[u8] = b"DIDL\x05\x6e\x71\x6d\x00\x6e\x79\x6c\x02\xf3\x89\x8a\xc8\x04\x02\xe2\x87\xdc\xfd\x04\x01\
                        \x6b\x01\xbc\x8a\x01\x03\x01\x04\x00";

/// The whole reply of `kv_put`.
pub fn written(version: u64) -> [u8; WRITTEN.len() + 8] {
    let mut reply = [0; WRITTEN.len() + 8];
    reply[..WRITTEN.len()].copy_from_slice(WRITTEN);
    reply[WRITTEN.len()..].copy_from_slice(&version.to_le_bytes());
    reply
}

/// The whole reply of `kv_delete` and `kv_delete_many`.
pub fn deleted(deleted: u64, version: u64) -> Vec<u8> {
    [DELETED, &deleted.to_le_bytes(), &version.to_le_bytes()].concat()
}

/// The reply of `kv_get` for a key that exists, in a buffer that is kept from call to call and so always starts right.
pub struct Value(Vec<u8>);

impl Value {
    /// A reply without its value, with room for one of [`VALUE_BYTES_FIRST`].
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(VALUE.len() + LEB_BYTES_MAX + VALUE_BYTES_FIRST);
        bytes.extend_from_slice(VALUE);
        Self(bytes)
    }

    /// Takes `value` in place of what is there.
    #[inline]
    pub fn set(&mut self, value: &[u8]) {
        self.0.truncate(VALUE.len());
        self.0.reserve(LEB_BYTES_MAX + value.len());
        push_length(&mut self.0, value.len());
        self.0.extend_from_slice(value);
    }

    /// The whole reply.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for Value {
    fn default() -> Self {
        Self::new()
    }
}

/// The reply of `kv_get_many` while it grows. It lives in a buffer that is kept from call to call.
pub struct Values<'a> {
    bytes: &'a mut Vec<u8>,
    count: usize,
    full: bool,
}

/// Largest LEB128 form of a length that fits 32 bits.
const LEB_BYTES_MAX: usize = 5;
/// Bytes of a value up to which the buffer of a single reply need not grow.
const VALUE_BYTES_FIRST: usize = 4_000;
/// What is reserved for an entry before its value is known, in bytes.
const VALUE_BYTES_EXPECTED: usize = 128;
/// Room at the front of the buffer: what comes before the values is known last.
const FRONT: usize = VALUES.len() + 5 + LEB_BYTES_MAX;

impl<'a> Values<'a> {
    /// Starts a reply for `count` keys in `bytes`, in place of what is there.
    pub fn new(bytes: &'a mut Vec<u8>, count: usize) -> Self {
        bytes.clear();
        // Values are often about this long; growing in steps would copy what is there each time.
        bytes.reserve(FRONT + count.min(KEYS_MAX) * VALUE_BYTES_EXPECTED);
        bytes.resize(FRONT, 0);
        Self { bytes, count: 0, full: false }
    }

    /// Adds an entry. `false`: it does not fit any more; nothing was added and nothing can be from now on.
    #[must_use]
    pub fn push(&mut self, value: Option<&[u8]>) -> bool {
        let more = 1 + value.map_or(0, |value| LEB_BYTES_MAX + value.len());
        if self.full || self.count >= KEYS_MAX || self.bytes.len() + more > REPLY_BYTES_MAX {
            self.full = true;
            return false;
        }
        match value {
            None => self.bytes.push(0),
            Some(value) => {
                self.bytes.push(1);
                push_length(self.bytes, value.len());
                self.bytes.extend_from_slice(value);
            }
        }
        self.count += 1;
        true
    }

    /// How many entries were added.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The whole reply: all entries that were added, and the index of the first that was not.
    pub fn finish(self) -> &'a [u8] {
        let mut front = Vec::with_capacity(FRONT);
        front.extend_from_slice(VALUES);
        if self.full {
            front.push(1);
            front.extend_from_slice(&(self.count as u32).to_le_bytes());
        } else {
            front.push(0);
        }
        push_length(&mut front, self.count);
        let start = FRONT - front.len();
        let reply = &mut self.bytes[start..];
        reply[..front.len()].copy_from_slice(&front);
        reply
    }
}

#[inline(always)]
fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}
