//! A check of UTF-8 that is quick for ASCII, which most keys and many values are.
#![allow(unsafe_code)] // one conversion of bytes that were checked

/// Bytes looked at in one step.
const STEP: usize = 8;
/// The bit that no ASCII byte has, for each byte of a step.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// `bytes` as text, if they are UTF-8.
///
/// The standard library looks at single bytes until it comes to an aligned address, which costs five times as much on
/// a text of 100 bytes that follows a Candid header.
#[inline]
pub fn checked(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and such bytes are UTF-8 of their own.
        return Some(unsafe { core::str::from_utf8_unchecked(bytes) });
    }
    core::str::from_utf8(bytes).ok()
}

#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut seen = 0;
    for step in steps {
        seen |= u64::from_le_bytes(*step);
    }
    for byte in rest {
        seen |= u64::from(*byte);
    }
    seen & HIGH_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn it_agrees_with_the_standard_library() {
        // Every byte at every place of a text of every length around a few steps.
        for length in 0..27 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = byte;
                    assert_eq!(checked(&bytes), core::str::from_utf8(&bytes).ok(), "{bytes:?}");
                }
            }
        }
        let text = "aé∑𝄞\u{0}".repeat(9);
        for start in 0..text.len() {
            for end in start..text.len() {
                let bytes = &text.as_bytes()[start..end];
                assert_eq!(checked(bytes), core::str::from_utf8(bytes).ok(), "{start}..{end}");
            }
        }
    }
}
