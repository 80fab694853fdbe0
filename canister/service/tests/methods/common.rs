//! A whole service on heap memory, called as the platform would: argument bytes in, reply bytes out.
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Deserialize, decode_args, encode_args};
use icsql_canister::api::timer;
use icsql_canister::host::{Caller, Host};
use icsql_canister::service::Service;
use icsql_engine::OpenOptions;
use icsql_engine::stable::heap::HeapMemory;
use icsql_types::{Answer, Error, InitArg};
use std::cell::{Cell, RefCell};

/// The one controller.
pub const CONTROLLER: &[u8] = b"controller";

/// One message.
pub struct Message {
    argument: Vec<u8>,
    caller: Caller,
    time_ns: u64,
    timer: Cell<Option<u64>>,
    reads: Cell<u32>,
    replies: RefCell<Vec<Vec<u8>>>,
}

impl Message {
    /// From a controller, or from a stranger.
    pub fn new(argument: Vec<u8>, controller: bool) -> Self {
        Self::from(argument, if controller { CONTROLLER } else { b"stranger" }, 0)
    }

    pub fn from(argument: Vec<u8>, caller: &[u8], time_ns: u64) -> Self {
        let caller = Caller::new(caller).expect("a principal of the tests is short");
        let (timer, reads, replies) = Default::default();
        Self { argument, caller, time_ns, timer, reads, replies }
    }
}

impl Host for Message {
    fn argument_bytes(&self) -> usize {
        self.argument.len()
    }

    fn with_argument<R>(&self, bytes: usize, body: impl FnOnce(&[u8]) -> R) -> R {
        self.reads.set(self.reads.get() + 1);
        body(&self.argument[..bytes])
    }

    fn caller(&self) -> Caller {
        self.caller
    }

    fn is_controller(&self, principal: &Caller) -> bool {
        principal.as_slice() == CONTROLLER
    }

    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn set_timer(&self, at_ns: u64) {
        self.timer.set(Some(at_ns));
    }

    fn is_replicated(&self) -> bool {
        true
    }

    fn reply(&self, bytes: &[u8]) {
        self.replies.borrow_mut().push(bytes.to_vec());
    }
}

pub type Endpoint = fn(&Message, &mut Service);

/// A canister.
pub struct Canister {
    pub stable: HeapMemory,
    pub service: Service,
    /// The clock, in nanoseconds since 1970.
    pub now: u64,
    /// When the global timer is due.
    pub timer: Option<u64>,
}

impl Canister {
    pub fn install() -> Self {
        Self::on(HeapMemory::new()).unwrap()
    }

    pub fn on(stable: HeapMemory) -> Result<Self, Error> {
        Self::on_at(stable, 1_000_000_000_000_000_000)
    }

    fn on_at(stable: HeapMemory, now: u64) -> Result<Self, Error> {
        let service = Service::open(stable.clone(), InitArg::default(), OpenOptions::default())?;
        let mut canister = Self { stable, service, now, timer: None };
        canister.run(timer::arm, Message::from(Vec::new(), CONTROLLER, now));
        Ok(canister)
    }

    /// Drops the heap, and with it the timer, and keeps stable memory.
    pub fn upgrade(self) -> Self {
        let (stable, now) = (self.stable.clone(), self.now);
        drop(self);
        Self::on_at(stable, now).unwrap()
    }

    /// Lets time go by, with the timer firing when it is due.
    pub fn wait(&mut self, nanoseconds: u64) {
        let end = self.now + nanoseconds;
        while let Some(at) = self.timer.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.timer = None;
            let replies = self.run(timer::fire, Message::from(Vec::new(), CONTROLLER, self.now));
            assert!(replies.is_empty(), "a timer has nobody to reply to");
        }
        self.now = end;
    }

    fn run(&mut self, endpoint: Endpoint, message: Message) -> Vec<Vec<u8>> {
        endpoint(&message, &mut self.service);
        self.timer = message.timer.get().or(self.timer);
        message.replies.into_inner()
    }

    /// Sends raw bytes and answers the reply. There is exactly one, whatever the bytes are.
    pub fn send(&mut self, endpoint: Endpoint, argument: Vec<u8>, controller: bool) -> Vec<u8> {
        let message = Message { time_ns: self.now, ..Message::new(argument, controller) };
        self.deliver(endpoint, message)
    }

    /// Sends a message and answers the reply.
    pub fn deliver(&mut self, endpoint: Endpoint, message: Message) -> Vec<u8> {
        let mut replies = self.run(endpoint, message);
        assert_eq!(replies.len(), 1, "a message gets one reply");
        replies.remove(0)
    }

    /// Calls as a controller, with the reply decoded at its declared type.
    pub fn call<T>(&mut self, endpoint: Endpoint, arguments: impl ArgumentEncoder) -> Answer<T>
    where
        T: CandidType + for<'a> Deserialize<'a>,
    {
        let reply = self.send(endpoint, encode_args(arguments).unwrap(), true);
        decode::<(Answer<T>,)>(&reply).0
    }
}

pub fn decode<A: for<'a> ArgumentDecoder<'a>>(reply: &[u8]) -> A {
    decode_args(reply).expect("the reply decodes at its declared type")
}

/// Whether the method looked at its argument before it answered.
pub fn reads_argument(canister: &mut Canister, endpoint: Endpoint, message: &Message) -> bool {
    endpoint(message, &mut canister.service);
    message.reads.get() > 0
}

/// xorshift64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}
