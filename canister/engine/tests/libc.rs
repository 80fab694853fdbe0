//! The C library that SQLite gets on wasm32 (`libc/libc.c`), compiled natively under the prefix `icsql_`, answers as the
//! host's does, on random inputs of every small length and alignment.
#![allow(unsafe_code)]

use icsql_engine as _;
use std::ffi::{c_char, c_int, c_void};

const CASES: u64 = 100_000;

macro_rules! both {
    ($(fn $name:ident($($argument:ident: $type:ty),+) -> $result:ty;)+) => {
        unsafe extern "C" { $(fn $name($($argument: $type),+) -> $result;)+ }
        mod ours {
            use super::*;
            unsafe extern "C" {
                $(
                    #[link_name = concat!("icsql_", stringify!($name))]
                    pub fn $name($($argument: $type),+) -> $result;
                )+
            }
        }
    };
}

both! {
    fn memcpy(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void;
    fn memset(to: *mut c_void, value: c_int, n: usize) -> *mut c_void;
    fn memcmp(left: *const c_void, right: *const c_void, n: usize) -> c_int;
    fn memchr(memory: *const c_void, value: c_int, n: usize) -> *mut c_void;
    fn strlen(string: *const c_char) -> usize;
    fn strchr(string: *const c_char, value: c_int) -> *mut c_char;
    fn strrchr(string: *const c_char, value: c_int) -> *mut c_char;
    fn strcmp(left: *const c_char, right: *const c_char) -> c_int;
    fn strncmp(left: *const c_char, right: *const c_char, n: usize) -> c_int;
    fn strspn(string: *const c_char, set: *const c_char) -> usize;
    fn strcspn(string: *const c_char, set: *const c_char) -> usize;
}

/// xorshift64*, from a seed that every failure names.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Mostly short, sometimes several blocks long.
    fn length(&mut self, max: usize) -> usize {
        let end = [9, 34, 70, 300, max + 1][self.below(5)];
        self.below(end.min(max + 1))
    }

    /// `alphabet` different byte values, from the ends of the range inwards, so that signedness shows.
    fn bytes(&mut self, length: usize, alphabet: usize) -> Vec<u8> {
        (0..length)
            .map(|_| {
                let n = self.below(alphabet) as u8;
                if n.is_multiple_of(2) { n / 2 } else { 255 - n / 2 }
            })
            .collect()
    }
}

/// Calls `case` with a generator of its own per case.
fn run(case: impl Fn(&mut Random)) {
    for seed in 1..=CASES {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&mut random)));
        assert!(outcome.is_ok(), "failed with seed {seed}");
    }
}

#[test]
fn moves_and_fills() {
    run(|random| {
        const ROOM: usize = 1_200;
        let before = random.bytes(ROOM, 256);
        let n = random.length(500);
        let from = random.below(ROOM - n + 1);
        // Near each other half of the time, so that the ranges overlap.
        let to = if random.below(2) == 0 {
            random.below(ROOM - n + 1)
        } else {
            (from + random.below(2 * n + 1)).saturating_sub(n).min(ROOM - n)
        };
        let apart = to.abs_diff(from) >= n;
        let byte = random.next() as c_int;

        let work = |copy: &dyn Fn(*mut u8) -> *mut c_void| {
            let mut memory = before.clone();
            let answer = copy(memory.as_mut_ptr());
            assert_eq!(answer.cast::<u8>(), memory.as_mut_ptr().wrapping_add(to));
            memory
        };
        // SAFETY: both ranges lie within the ROOM bytes at `memory`, and memcpy gets them only if they do not overlap.
        unsafe {
            let moved = work(&|m| ours::memmove(m.add(to).cast(), m.add(from).cast(), n));
            assert_eq!(moved, work(&|m| memmove(m.add(to).cast(), m.add(from).cast(), n)), "memmove {from} {to} {n}");
            if apart {
                let copied = work(&|m| ours::memcpy(m.add(to).cast(), m.add(from).cast(), n));
                assert_eq!(
                    copied,
                    work(&|m| memcpy(m.add(to).cast(), m.add(from).cast(), n)),
                    "memcpy {from} {to} {n}"
                );
            }
            let filled = work(&|m| ours::memset(m.add(to).cast(), byte, n));
            assert_eq!(filled, work(&|m| memset(m.add(to).cast(), byte, n)), "memset {to} {byte} {n}");
        }
    });
}

#[test]
fn compares_and_finds_in_memory() {
    run(|random| {
        let n = random.length(400);
        let (shift_left, shift_right) = (random.below(9), random.below(9));
        let alphabet = [1, 2, 256][random.below(3)];
        let left = random.bytes(n + 9, alphabet);
        let mut right = vec![0; n + 9];
        right[shift_right..shift_right + n].copy_from_slice(&left[shift_left..shift_left + n]);
        if n > 0 && random.below(4) > 0 {
            // Some bytes differ; the first of them decides.
            for _ in 0..1 + random.below(3) {
                right[shift_right + random.below(n)] = random.next() as u8;
            }
        }
        let value = random.next() as c_int;
        // SAFETY: both buffers hold n bytes behind their shift.
        unsafe {
            let a = left.as_ptr().add(shift_left).cast::<c_void>();
            let b = right.as_ptr().add(shift_right).cast::<c_void>();
            assert_eq!(ours::memcmp(a, b, n).signum(), memcmp(a, b, n).signum(), "memcmp {left:?} {right:?}");
            assert_eq!(ours::memcmp(b, a, n).signum(), memcmp(b, a, n).signum(), "memcmp {right:?} {left:?}");
            assert_eq!(ours::memchr(a, value, n), memchr(a, value, n), "memchr {left:?} {value}");
        }
    });
}

#[test]
fn strings() {
    run(|random| {
        // A few values only: equal prefixes, hits in sets, and a NUL at any place.
        let alphabet = [3, 5, 256][random.below(3)];
        let string = |random: &mut Random| {
            let length = random.length(120);
            let mut bytes = random.bytes(length + 9, alphabet);
            bytes.push(0);
            (bytes, random.below(9))
        };
        let (first, first_shift) = string(random);
        let (mut second, second_shift) = string(random);
        if random.below(2) == 0 {
            second[second_shift..]
                .iter_mut()
                .zip(&first[first_shift..])
                .take(random.below(40))
                .for_each(|(to, from)| *to = *from);
            if let Some(last) = second.last_mut() {
                *last = 0;
            }
        }
        let value = if random.below(4) == 0 { 0 } else { first[random.below(first.len())] as c_int };
        let n = random.length(150);
        // SAFETY: both are NUL-terminated behind their shift.
        unsafe {
            let a = first.as_ptr().add(first_shift).cast::<c_char>();
            let b = second.as_ptr().add(second_shift).cast::<c_char>();
            assert_eq!(ours::strlen(a), strlen(a), "strlen {first:?}");
            assert_eq!(ours::strchr(a, value), strchr(a, value), "strchr {first:?} {value}");
            assert_eq!(ours::strrchr(a, value), strrchr(a, value), "strrchr {first:?} {value}");
            assert_eq!(ours::strcmp(a, b).signum(), strcmp(a, b).signum(), "strcmp {first:?} {second:?}");
            assert_eq!(ours::strncmp(a, b, n).signum(), strncmp(a, b, n).signum(), "strncmp {first:?} {second:?} {n}");
            assert_eq!(ours::strspn(a, b), strspn(a, b), "strspn {first:?} {second:?}");
            assert_eq!(ours::strcspn(a, b), strcspn(a, b), "strcspn {first:?} {second:?}");
        }
    });
}
