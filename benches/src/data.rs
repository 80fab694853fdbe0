//! The data that every subject gets: keys of 10 bytes, values of 100 bytes.

use std::ops::RangeInclusive;

/// Row counts for which a key has 10 bytes and the samples are apart.
pub const ROWS_RANGE: RangeInclusive<u32> = 200..=999_980;

/// Calls of which a case reports the median.
pub const SAMPLES: u32 = 11;

/// The key of a row: `key-000000`, `key-000001`, …
pub fn key(row: u32) -> String {
    format!("key-{row:06}")
}

/// A text of 100 bytes that differs in every row and in every revision of a row.
pub fn value(row: u32, revision: u32) -> String {
    let text = format!("{:0100}", u64::from(row) * 1_000 + u64::from(revision));
    debug_assert_eq!(text.len(), 100);
    text
}

/// The row that the sample is about: samples are spread over the whole key range, away from its ends.
pub fn sample_row(rows: u32, sample: u32) -> u32 {
    let part = rows / SAMPLES;
    part * sample + part / 2
}
