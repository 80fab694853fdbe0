//! What the engine asks of the place where it runs: time, an instruction counter, a seed, and a way to end the
//! message with everything undone.
use std::rc::Rc;

/// The surroundings of a [`Database`](crate::Database).
pub trait Env {
    /// Nanoseconds since 1970-01-01 UTC. The same during a whole message.
    fn time_ns(&self) -> u64;

    /// Instructions that the message has executed up to now.
    ///
    /// On the Internet Computer it is `performance_counter(0)`. Elsewhere it is a count that grows with the virtual
    /// machine's steps (see [`Env::steps`]), so that budgets can be tested natively.
    fn instructions(&self) -> u64;

    /// Told before each look at the counter how many steps of SQLite's virtual machine have passed since the last.
    fn steps(&self, steps: u64) {
        let _ = steps;
    }

    /// Seed of SQLite's `random()`. All replicas of a subnet must agree on it, so it can hold no secret.
    fn seed(&self) -> [u8; 32] {
        let mut seed = *b"icsql random() holds no secrets.";
        for (byte, time) in seed.iter_mut().zip(self.time_ns().to_le_bytes()) {
            *byte ^= time;
        }
        seed
    }
}

/// Ends the message: on the Internet Computer everything that it did is undone; elsewhere it unwinds with
/// [`Trap`](crate::stable::fault::Trap), and whoever catches that must undo what was written.
pub(crate) fn trap(reason: &str) -> ! {
    #[cfg(target_arch = "wasm32")]
    crate::ic0::trap(reason);
    #[cfg(not(target_arch = "wasm32"))]
    crate::stable::fault::trap(reason.to_owned())
}

/// The surroundings that fit the target: the system API on wasm32, [`HostEnv`] elsewhere.
pub fn default_env() -> Rc<dyn Env> {
    #[cfg(target_arch = "wasm32")]
    return Rc::new(IcEnv);
    #[cfg(not(target_arch = "wasm32"))]
    Rc::new(HostEnv::default())
}

/// The Internet Computer's system API.
#[cfg(target_arch = "wasm32")]
#[derive(Debug, Default)]
pub struct IcEnv;

#[cfg(target_arch = "wasm32")]
impl Env for IcEnv {
    fn time_ns(&self) -> u64 {
        crate::ic0::time_ns()
    }

    fn instructions(&self) -> u64 {
        crate::ic0::instructions()
    }
}

/// A deterministic stand-in for tests and tools: a clock that is set by hand, and an instruction counter fed by
/// SQLite's steps at [`HostEnv::INSTRUCTIONS_PER_STEP`].
#[derive(Debug, Default)]
pub struct HostEnv {
    time_ns: std::cell::Cell<u64>,
    instructions: std::cell::Cell<u64>,
}

impl HostEnv {
    /// What a step of the virtual machine counts for. Only tests see it.
    pub const INSTRUCTIONS_PER_STEP: u64 = 50;

    /// Sets the clock, in nanoseconds since 1970-01-01 UTC.
    pub fn set_time_ns(&self, time_ns: u64) {
        self.time_ns.set(time_ns);
    }
}

impl Env for HostEnv {
    fn time_ns(&self) -> u64 {
        self.time_ns.get()
    }

    fn instructions(&self) -> u64 {
        self.instructions.get()
    }

    fn steps(&self, steps: u64) {
        let more = steps.saturating_mul(Self::INSTRUCTIONS_PER_STEP);
        self.instructions.set(self.instructions.get().saturating_add(more));
    }
}
