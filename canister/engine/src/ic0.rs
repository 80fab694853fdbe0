//! What the engine asks of the system API beside stable memory.
#![allow(unsafe_code)]

mod sys {
    #[link(wasm_import_module = "ic0")]
    unsafe extern "C" {
        pub(super) safe fn time() -> u64;
        pub(super) safe fn performance_counter(counter_type: u32) -> u64;
        pub(super) fn trap(src: usize, size: usize) -> !;
    }
}

/// Nanoseconds since 1970-01-01 UTC.
pub(crate) fn time_ns() -> u64 {
    sys::time()
}

/// Instructions of this message up to now.
pub(crate) fn instructions() -> u64 {
    sys::performance_counter(0)
}

/// Ends the message and undoes it.
pub(crate) fn trap(reason: &str) -> ! {
    // SAFETY: the range is that of a string that is alive.
    unsafe { sys::trap(reason.as_ptr().addr(), reason.len()) }
}
