//! Arguments of the hot methods, decoded from the encodings that callers really send.
//!
//! Each function answers `None` for everything else, well-formed or not; the caller then asks [`super::general`].

/// `(text)`.
const ONE_TEXT: &[u8] = b"DIDL\x00\x01\x71";
/// `(vec text)`.
const VEC_TEXT: &[u8] = b"DIDL\x01\x6d\x71\x01\x00";
/// `(text, text)`, without options.
const TWO_TEXTS: &[u8] = b"DIDL\x00\x02\x71\x71";
/// `(text, text, null)`.
const TWO_TEXTS_NULL: &[u8] = b"DIDL\x00\x03\x71\x71\x7f";
/// `(text, text, opt record { idempotency_key : opt text })` as the candid crate numbers the types: it enters a type before
/// its parts.
const TWO_TEXTS_OPT_OUTER_FIRST: &[u8] = b"DIDL\x03\x6e\x01\x6c\x01\xf1\x8f\x9a\x83\x0f\x02\x6e\x71\x03\x71\x71\x00";
/// The same as JavaScript agents number them: parts first.
const TWO_TEXTS_OPT_INNER_FIRST: &[u8] = b"DIDL\x03\x6e\x71\x6c\x01\xf1\x8f\x9a\x83\x0f\x00\x6e\x01\x03\x71\x71\x02";

/// The argument of `kv_get`.
pub fn key(argument: &[u8]) -> Option<&str> {
    let mut input = Input(argument.strip_prefix(ONE_TEXT)?);
    let key = input.text()?;
    input.0.is_empty().then_some(key)
}

/// The arguments of `kv_put` without options: key and value.
pub fn key_and_value(argument: &[u8]) -> Option<(&str, &str)> {
    let (texts, has_option) = if let Some(rest) = argument.strip_prefix(TWO_TEXTS_OPT_INNER_FIRST) {
        (rest, true)
    } else if let Some(rest) = argument.strip_prefix(TWO_TEXTS_OPT_OUTER_FIRST) {
        (rest, true)
    } else if let Some(rest) = argument.strip_prefix(TWO_TEXTS) {
        (rest, false)
    } else {
        (argument.strip_prefix(TWO_TEXTS_NULL)?, false)
    };
    let mut input = Input(texts);
    let key = input.text()?;
    let value = input.text()?;
    // The options are null, or a record whose one field is null.
    let rest = if has_option { matches!(input.0, [0] | [1, 0]) } else { input.0.is_empty() };
    rest.then_some((key, value))
}

/// The argument of `kv_get_many`: how many keys there are, before any of them is looked at.
pub fn keys(argument: &[u8]) -> Option<Keys<'_>> {
    let mut input = Input(argument.strip_prefix(VEC_TEXT)?);
    let count = input.length()?;
    // Each key takes a byte at least, so the count bounds what is allocated for them.
    (count <= input.0.len()).then_some(Keys { count, input })
}

/// Keys that are still to be decoded.
pub struct Keys<'a> {
    count: usize,
    input: Input<'a>,
}

impl<'a> Keys<'a> {
    /// How many keys the argument announces.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All keys, or `None` if the argument is not what it announced.
    pub fn decode(mut self) -> Option<Vec<&'a str>> {
        let mut keys = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            keys.push(self.input.text()?);
        }
        self.input.0.is_empty().then_some(keys)
    }
}

/// What is left of the argument.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// A LEB128 number below 2^28, which is above every message's size.
    #[inline(always)]
    fn length(&mut self) -> Option<usize> {
        let mut length = 0;
        for (index, &byte) in self.0.iter().take(4).enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Some(length);
            }
        }
        None
    }

    #[inline(always)]
    fn text(&mut self) -> Option<&'a str> {
        let length = self.length()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        icsql_engine::utf8(text)
    }
}
