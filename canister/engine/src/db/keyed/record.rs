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
///
/// Where the sizes before it take a byte each, and its own two at most, it takes half of what [`value_of_any`] does.
#[inline]
pub(super) fn value(record: &[u8], column: usize) -> Option<ValueRef<'_>> {
    let header = usize::from(*record.first()?);
    if header >= 0x80 {
        return value_of_any(record, column);
    }
    let mut offset = header;
    for place in 1..=column {
        if place >= header {
            return Some(ValueRef::Null);
        }
        let kind = usize::from(*record.get(place)?);
        if kind >= 0x80 {
            return value_of_any(record, column);
        }
        offset += size(kind)?;
    }
    let place = column + 1;
    if place >= header {
        return Some(ValueRef::Null);
    }
    let mut kind = usize::from(*record.get(place)?);
    if kind >= 0x80 {
        let second = usize::from(*record.get(place + 1)?);
        if second >= 0x80 || place + 1 >= header {
            return value_of_any(record, column);
        }
        kind = (kind & 0x7f) << 7 | second;
    }
    let bytes = record.get(offset..offset + size(kind)?)?;
    if kind >= 12 {
        return Some(if kind & 1 == 1 { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) });
    }
    number(kind, bytes)
}

#[cold]
#[inline(never)]
fn value_of_any(record: &[u8], column: usize) -> Option<ValueRef<'_>> {
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
    match kind {
        12.. if kind & 1 == 1 => Some(ValueRef::Text(bytes)),
        12.. => Some(ValueRef::Blob(bytes)),
        _ => number(kind, bytes),
    }
}

/// The number, or NULL, of a serial type below 12.
fn number(kind: usize, bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(match kind {
        NULL => ValueRef::Null,
        REAL => ValueRef::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        ZERO => ValueRef::Integer(0),
        ONE => ValueRef::Integer(1),
        1..=INTEGER_64 => {
            let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
            ValueRef::Integer(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
        }
        _ => return None,
    })
}

/// Bytes of a value of this serial type.
#[inline(always)]
fn size(kind: usize) -> Option<usize> {
    const NUMBERS: [usize; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    if kind >= 12 { Some((kind - 12) / 2) } else { NUMBERS.get(kind).copied() }
}

/// Takes a number off the front.
#[inline(always)]
fn varint(input: &mut &[u8]) -> Option<usize> {
    let (&byte, rest) = input.split_first()?;
    if byte >= 0x80 {
        return long_varint(input);
    }
    *input = rest;
    Some(usize::from(byte))
}

/// The same for one of two bytes or more. Five hold every one that a record has.
fn long_varint(input: &mut &[u8]) -> Option<usize> {
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

/// The serial type of a value.
#[inline]
fn kind(value: &ValueRef<'_>) -> usize {
    match *value {
        ValueRef::Null => NULL,
        // SQLite stores no NaN.
        ValueRef::Real(real) if real.is_nan() => NULL,
        ValueRef::Real(_) => REAL,
        ValueRef::Integer(0) => ZERO,
        ValueRef::Integer(1) => ONE,
        // As many bits as it takes with its sign.
        ValueRef::Integer(integer) => match 65 - (integer ^ (integer >> 63)).leading_zeros() {
            0..=8 => 1,
            9..=16 => 2,
            17..=24 => 3,
            25..=32 => 4,
            33..=48 => 5,
            _ => INTEGER_64,
        },
        ValueRef::Text(text) => 13 + 2 * text.len(),
        ValueRef::Blob(blob) => 12 + 2 * blob.len(),
    }
}

fn varint_bytes(number: usize) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// What a record of some values will be.
pub(super) struct Plan {
    header: usize,
    /// Bytes of the record.
    pub(super) bytes: usize,
}

/// Plans a record of at most [`KEYED_COLUMNS_MAX`] values.
#[inline]
pub(super) fn plan(values: &[ValueRef<'_>]) -> Plan {
    // The header begins with its own size, which is below 128: a byte.
    let (mut header, mut body) = (1, 0);
    for value in values {
        let kind = kind(value);
        header += varint_bytes(kind);
        body += size(kind).unwrap_or(0);
    }
    Plan { header, bytes: header + body }
}

/// Writes the record that was planned for these values to `target`, which has as many bytes. `None` if it has not.
#[inline]
pub(super) fn write(values: &[ValueRef<'_>], plan: &Plan, target: &mut [u8]) -> Option<()> {
    let (header, mut body) = target.split_at_mut_checked(plan.header)?;
    let (first, mut header) = header.split_first_mut()?;
    *first = plan.header as u8;
    for value in values {
        let kind = kind(value);
        let places = varint_bytes(kind);
        for place in (1..places).rev() {
            *header.split_off_first_mut()? = (kind >> (7 * place)) as u8 | 0x80;
        }
        *header.split_off_first_mut()? = kind as u8 & 0x7f;
        let bytes = body.split_off_mut(..size(kind)?)?;
        match value {
            ValueRef::Text(value) | ValueRef::Blob(value) => bytes.copy_from_slice(value),
            ValueRef::Integer(integer) => bytes.copy_from_slice(integer.to_be_bytes().get(8 - bytes.len()..)?),
            ValueRef::Real(real) => bytes.copy_from_slice(real.to_be_bytes().get(8 - bytes.len()..)?),
            ValueRef::Null => {}
        }
    }
    Some(())
}

/// Bytes of the longest header: five for each type, and its own size.
const HEADER_BYTES_MAX: usize = 5 * KEYED_COLUMNS_MAX + 1;
const _: () = assert!(HEADER_BYTES_MAX < 0x80);
