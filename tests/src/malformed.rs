//! Messages that are no Candid, or that only want to be costly to decode.

/// A number as unsigned LEB128.
pub fn leb128(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (n & 0x7f) as u8;
        n >>= 7;
        if n == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

/// A message of these parts behind the magic bytes.
pub fn didl(parts: &[&[u8]]) -> Vec<u8> {
    [b"DIDL".as_slice(), &parts.concat()].concat()
}

/// Messages with their names that are wrong for every method that takes a text, a list of texts, or an optional number.
pub fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let nested_opts: Vec<u8> = (1..=1_000_u64).flat_map(|next| [vec![0x6e], leb128(next % 1_000)].concat()).collect();
    let wide_record: Vec<u8> = [leb128(1), vec![0x6c], leb128(100_000)]
        .into_iter()
        .chain((0..100_000_u64).map(|field| [leb128(field), vec![0x7f]].concat()))
        .flatten()
        .collect();
    vec![
        ("magic only", b"DIDL".to_vec()),
        ("another magic", b"DIDX\x00\x01\x71\x01k".to_vec()),
        ("a cut magic", b"DI".to_vec()),
        ("JSON", br#"{"key":"value"}"#.to_vec()),
        ("no argument count", didl(&[&[0]])),
        ("argument count, no types", didl(&[&[0, 1]])),
        ("a cut text", didl(&[&[0, 1, 0x71, 5], b"abc"])),
        ("a text of 2^32-1 bytes", didl(&[&[0, 1, 0x71], &leb128(u32::MAX.into())])),
        ("a text of 2^63 bytes", didl(&[&[0, 1, 0x71], &leb128(1 << 63)])),
        ("a length that overflows 64 bits", didl(&[&[0, 1, 0x71], &[0xff; 10], &[0x7f]])),
        ("a length that never ends", didl(&[&[0, 1, 0x71], &[0x80; 1_000]])),
        ("text that is no UTF-8", didl(&[&[0, 1, 0x71, 2, 0xff, 0xfe]])),
        ("a surrogate", didl(&[&[0, 1, 0x71, 3, 0xed, 0xa0, 0x80]])),
        ("bytes after the arguments", didl(&[&[0, 1, 0x71, 1], b"kxxxx"])),
        ("a table of 2^32-1 types", didl(&[&leb128(u32::MAX.into()), &[0]])),
        ("2^32-1 arguments", didl(&[&[0], &leb128(u32::MAX.into())])),
        ("a type that is not in the table", didl(&[&[0, 1, 5, 0]])),
        ("an unknown primitive type", didl(&[&[0, 1, 0x40]])),
        ("a list of 2^31 nulls", didl(&[&[1, 0x6d, 0x7f, 1, 0], &leb128(1 << 31)])),
        ("a list of 2^31 empty records", didl(&[&[2, 0x6d, 1, 0x6c, 0, 1, 0], &leb128(1 << 31)])),
        ("a record of 100,000 fields", didl(&[&wide_record, &[1, 0]])),
        ("a type that is an option of itself, 1,000 long", didl(&[&leb128(1_000), &nested_opts, &[1, 0], &[1; 5_000]])),
        ("a record that holds itself", didl(&[&[1, 0x6c, 1, 0, 0, 1, 0]])),
        ("a principal", didl(&[&[0, 1, 0x68, 1, 1, 4]])),
        ("a boolean that is neither", didl(&[&[0, 1, 0x7e, 2]])),
    ]
}
