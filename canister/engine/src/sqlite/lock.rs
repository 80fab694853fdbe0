//! One thread at a time in SQLite.
//!
//! The library is built without its mutexes, since a canister has one thread. Where there are more (native tests of
//! this crate and of those who embed it) this lock stands in for them. A thread that holds it may enter again.

/// Held while the thread may be inside SQLite.
#[must_use]
pub(crate) struct Entered {
    #[cfg(not(target_arch = "wasm32"))]
    _guard: Option<std::sync::MutexGuard<'static, ()>>,
}

#[cfg(target_arch = "wasm32")]
#[inline(always)]
pub(crate) fn enter() -> Entered {
    Entered {}
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::Entered;
    use std::cell::Cell;
    use std::sync::{Mutex, PoisonError};

    static LOCK: Mutex<()> = Mutex::new(());
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn enter() -> Entered {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        // A panic inside (a simulated trap) poisons nothing that the next thread would see half done.
        let _guard = (depth == 0).then(|| LOCK.lock().unwrap_or_else(PoisonError::into_inner));
        Entered { _guard }
    }

    impl Drop for Entered {
        fn drop(&mut self) {
            // Guards are released in reverse order, so the outermost holds the mutex until the last.
            DEPTH.set(DEPTH.get() - 1);
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::enter;
