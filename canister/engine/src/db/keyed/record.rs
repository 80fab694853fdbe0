//! Records: rows as they are stored, <https://www.sqlite.org/fileformat2.html#record_format>.
use crate::limits::KEYED_COLUMNS_MAX;
use crate::sqlite::ValueRef;

/// Serial types of numbers. Above 11 they are even for blobs and odd for texts.
const NULL: usize = 0;
const INTEGER_64: usize = 6;
const REAL: usize = 7;
const ZERO: usize = 8;
const ONE: usize = 9;

/// The value of a column, counted from 0. A record that is shorter has NULL there. `None`: the record contradicts itself.
#[inline]
pub(super) fn value(record: &[u8], column: usize) -> Option<ValueRef<'_>> {
    let mut types = record;
    let header = varint(&mut types)?;
    let mut types = record.get(record.len() - types.len()..header)?;
    let mut offset = header;
    for _ in 0..column {
        if types.is_empty() {
            return Some(ValueRef::Null);
        }
        offset = offset.checked_add(size(varint(&mut types)?)?)?;
    }
    if types.is_empty() {
        return Some(ValueRef::Null);
    }
    let kind = varint(&mut types)?;
    let bytes = record.get(offset..)?.get(..size(kind)?)?;
    Some(match kind {
        NULL => ValueRef::Null,
        REAL => ValueRef::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        ZERO => ValueRef::Integer(0),
        ONE => ValueRef::Integer(1),
        ..=INTEGER_64 => {
            let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
            ValueRef::Integer(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
        }
        _ if kind & 1 == 0 => ValueRef::Blob(bytes),
        _ => ValueRef::Text(bytes),
    })
}

/// Bytes of a value of this serial type.
#[inline]
fn size(kind: usize) -> Option<usize> {
    match kind {
        NULL | ZERO | ONE => Some(0),
        1..=4 => Some(kind),
        5 => Some(6),
        INTEGER_64 | REAL => Some(8),
        10 | 11 => None,
        _ => Some((kind - 12) / 2),
    }
}

/// Takes a number off the front. Five bytes hold every one that a record has.
#[inline]
fn varint(input: &mut &[u8]) -> Option<usize> {
    let mut number = 0_u64;
    for _ in 0..5 {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return usize::try_from(number).ok();
        }
    }
    None
}

/// The serial type of a value, and the bytes of a number.
fn kind(value: &ValueRef<'_>) -> (usize, [u8; 8]) {
    match *value {
        ValueRef::Null => (NULL, [0; 8]),
        // SQLite stores no NaN.
        ValueRef::Real(real) if real.is_nan() => (NULL, [0; 8]),
        ValueRef::Real(real) => (REAL, real.to_be_bytes()),
        ValueRef::Integer(0) => (ZERO, [0; 8]),
        ValueRef::Integer(1) => (ONE, [0; 8]),
        ValueRef::Integer(integer) => {
            // As many bits as it takes with its sign.
            let bits = 65 - (integer ^ (integer >> 63)).leading_zeros();
            let kind = match bits {
                0..=8 => 1,
                9..=16 => 2,
                17..=24 => 3,
                25..=32 => 4,
                33..=48 => 5,
                _ => INTEGER_64,
            };
            (kind, integer.to_be_bytes())
        }
        ValueRef::Text(text) => (13 + 2 * text.len(), [0; 8]),
        ValueRef::Blob(blob) => (12 + 2 * blob.len(), [0; 8]),
    }
}

/// Bytes of a header whose numbers lie in one buffer on the stack: five for each column, and its own size.
const HEADER_BYTES_MAX: usize = 5 * KEYED_COLUMNS_MAX + 2;

/// Bytes that are put together before they are copied in one go.
struct Head {
    bytes: [u8; HEADER_BYTES_MAX],
    len: usize,
}

impl Head {
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    #[inline]
    fn push_varint(&mut self, number: usize) {
        if number >= 0x80 {
            self.push_long(number);
        }
        self.push(number as u8 & 0x7f);
    }

    /// All bytes of a number but the last.
    fn push_long(&mut self, number: usize) {
        let bytes = match number {
            0..0x4000 => 2,
            0x4000..0x20_0000 => 3,
            0x20_0000..0x1000_0000 => 4,
            _ => 5,
        };
        for place in (1..bytes).rev() {
            self.push((number >> (7 * place)) as u8 | 0x80);
        }
    }
}

/// Makes a record of these values, at most [`KEYED_COLUMNS_MAX`] of them, in place of what is in `record`.
pub(super) fn encode(values: &[ValueRef<'_>], record: &mut Vec<u8>) {
    // The header begins with its own size, which is below 128: a byte.
    let mut head = Head { bytes: [0; HEADER_BYTES_MAX], len: 1 };
    let mut body = 0;
    for value in values {
        let (kind, _) = kind(value);
        head.push_varint(kind);
        body += size(kind).unwrap_or(0);
    }
    head.bytes[0] = head.len as u8;
    record.clear();
    record.reserve(head.len + body);
    record.extend_from_slice(&head.bytes[..head.len]);
    for value in values {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => record.extend_from_slice(bytes),
            number => {
                let (kind, bytes) = kind(number);
                record.extend_from_slice(&bytes[8 - size(kind).unwrap_or(0)..]);
            }
        }
    }
}

const _: () = assert!(HEADER_BYTES_MAX < 0x80);
