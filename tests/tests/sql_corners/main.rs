//! SQL that is taken to its ends, on the deployed Wasm, whose stack is small and whose instructions are counted: each case is
//! the right answer or a typed error, and never a trap.

mod depth;
mod endless;
mod values;

use icsql_tests::Local;
use icsql_types::{Answer, Error, Value};

/// The code of an error of SQLite; 0 for other errors and for none.
fn code<T>(answer: &Answer<T>) -> i32 {
    match answer {
        Err(Error::Sqlite { code, .. }) => *code,
        _ => 0,
    }
}

fn int(value: i64) -> Value {
    Value::Integer(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Runs `refused`, which must change nothing.
fn without_a_trace<T>(canister: &mut Local, refused: impl FnOnce(&mut Local) -> T) -> T {
    let before = canister.checksum();
    let answer = refused(canister);
    assert_eq!(canister.checksum(), before);
    answer
}
