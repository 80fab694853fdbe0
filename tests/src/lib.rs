//! Suites against the deployed icsql Wasm, through the pocket-ic crate.
//!
//! They run on the project's own replica, or on a PocketIC server if `POCKET_IC_BIN` names one. This crate holds what
//! the suites share: where the Wasm and the server are, and a deployed canister with typed calls.

pub mod local;
pub mod malformed;
pub mod random;

pub use local::Local;

use std::path::{Path, PathBuf};

use candid::utils::{ArgumentEncoder, decode_one, encode_args};
use candid::{CandidType, Principal};
use icsql_replica::{Config, Replica};
use icsql_types::Answer;
use icsql_types::method::{Method, Mode};
use pocket_ic::{PocketIc, PocketIcBuilder, RejectResponse};

/// Cycles that every canister of the suites starts with.
const CYCLES: u128 = 1_000_000_000_000_000;

/// The principal that controls every canister of the suites.
pub fn controller() -> Principal {
    Principal::self_authenticating(b"controller")
}

/// A principal that controls nothing.
pub fn stranger() -> Principal {
    Principal::self_authenticating(b"stranger")
}

/// The project's root folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Wasm of icsql that `scripts/build` made.
pub fn icsql_wasm() -> Vec<u8> {
    read_built(&root().join("target/icsql.wasm"), "scripts/build")
}

/// The Wasm of a canister of `tests/canisters`, by its folder's name.
pub fn fixture_wasm(name: &str) -> Vec<u8> {
    let file = format!("{}_canister.wasm", name.replace('-', "_"));
    read_built(
        &root().join("tests/canisters/target/wasm32-unknown-unknown/release").join(file),
        "scripts/build-fixtures",
    )
}

/// The Wasm of `benches/engine`, which runs SQL on the bare engine; `scripts/build --bench` makes it.
pub fn engine_wasm() -> Vec<u8> {
    read_built(&root().join("target/engine-bench.wasm"), "scripts/build --bench")
}

/// The Wasm of the canister that adopts the database of ic-sqlite-vfs.
pub fn adopter_wasm() -> Vec<u8> {
    let file = "tests/adoption/target/wasm32-unknown-unknown/release/adopter_canister.wasm";
    read_built(&root().join(file), "scripts/build-fixtures")
}

/// The Wasm of `examples/embedded`.
pub fn embedded_wasm() -> Vec<u8> {
    let file = "examples/embedded/target/wasm32-unknown-unknown/release/embedded.wasm";
    read_built(&root().join(file), "scripts/build-fixtures")
}

/// The Wasm of `examples/caller`.
pub fn caller_wasm() -> Vec<u8> {
    let file = "target/canister/wasm32-unknown-unknown/canister/icsql_example_caller.wasm";
    read_built(&root().join(file), "scripts/build-fixtures")
}

fn read_built(path: &Path, command: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}: run `{command}` first", path.display()))
}

/// Whether the suites run on the project's own replica and not on a PocketIC server.
pub fn on_own_replica() -> bool {
    std::env::var_os("POCKET_IC_BIN").is_none()
}

/// A replica in this process, for what the PocketIC protocol does not offer: costs and faults inside a message.
///
/// Compiled modules are kept in the folder that `ICSQL_REPLICA_CACHE` names, as the server keeps them.
pub fn replica() -> Replica {
    let module_cache = std::env::var_os("ICSQL_REPLICA_CACHE").map(PathBuf::from);
    Replica::new(Config { module_cache, ..Config::default() })
}

/// The replica's binary, which Cargo built beside this test.
pub fn replica_binary() -> PathBuf {
    // <target>/<profile>/deps/<test> -> <target>/<profile>/icsql-replica
    let test = std::env::current_exe().expect("a test knows its own path");
    let replica = test.ancestors().nth(2).expect("tests are in a folder of the profile's").join("icsql-replica");
    assert!(replica.is_file(), "{}: run `cargo build -p icsql-replica` first", replica.display());
    replica
}

/// An instance with one application subnet, on the server that `POCKET_IC_BIN` names or on the replica that Cargo built
/// beside this test.
pub fn pocket_ic() -> PocketIc {
    let builder = PocketIcBuilder::new().with_application_subnet();
    if !on_own_replica() {
        return builder.build();
    }
    builder.with_server_binary(replica_binary()).build()
}

/// An icsql canister on an instance of its own, controlled by [`controller`].
pub struct Icsql {
    /// The instance.
    pub pic: PocketIc,
    /// The canister.
    pub id: Principal,
}

impl Icsql {
    /// Installs the Wasm with an empty argument, as a plain deploy does.
    pub fn deploy() -> Self {
        let pic = pocket_ic();
        let id = install(&pic, icsql_wasm());
        Self { pic, id }
    }

    /// Upgrades the canister to the same Wasm. `argument` is raw.
    pub fn upgrade(&self, argument: Vec<u8>) -> Result<(), RejectResponse> {
        self.pic.upgrade_canister(self.id, icsql_wasm(), argument, Some(controller()))
    }

    /// Calls a method in its own mode, as `caller`; a reject fails the test.
    pub fn call_as<A: ArgumentEncoder, R: CandidType + for<'a> candid::Deserialize<'a>>(
        &self,
        caller: Principal,
        method: &Method<A, R>,
        arguments: A,
    ) -> R {
        let reply = self.call_raw(caller, method, encode(arguments));
        let reply = reply.unwrap_or_else(|reject| panic!("{} was rejected: {reject}", method.name));
        decode(method.name, &reply)
    }

    /// Calls a method in its own mode, as the controller; a reject fails the test.
    pub fn call<A: ArgumentEncoder, R: CandidType + for<'a> candid::Deserialize<'a>>(
        &self,
        method: &Method<A, R>,
        arguments: A,
    ) -> R {
        self.call_as(controller(), method, arguments)
    }

    /// Calls as the controller and expects `Ok`.
    pub fn ok<A: ArgumentEncoder, R: CandidType + for<'a> candid::Deserialize<'a>>(
        &self,
        method: &Method<A, Answer<R>>,
        arguments: A,
    ) -> R {
        self.call(method, arguments).unwrap_or_else(|error| panic!("{}: {error}", method.name))
    }

    /// Sends raw bytes to a method in its own mode.
    pub fn call_raw<A, R>(
        &self,
        caller: Principal,
        method: &Method<A, R>,
        argument: Vec<u8>,
    ) -> Result<Vec<u8>, RejectResponse> {
        match method.mode {
            Mode::Query => self.pic.query_call(self.id, caller, method.name, argument),
            Mode::Update => self.pic.update_call(self.id, caller, method.name, argument),
        }
    }

    /// Puts as the controller and answers the version.
    pub fn put(&self, key: &str, value: &str) -> u64 {
        self.ok(&icsql_types::method::KV_PUT, (key.to_string(), value.to_string(), None)).version
    }

    /// Gets as the controller.
    pub fn get(&self, key: &str) -> Option<String> {
        self.ok(&icsql_types::method::KV_GET, (key.to_string(),))
    }
}

/// Installs a canister with an empty argument, controlled by [`controller`].
pub fn install(pic: &PocketIc, wasm: Vec<u8>) -> Principal {
    let id = pic.create_canister_with_settings(Some(controller()), None);
    pic.add_cycles(id, CYCLES);
    pic.install_canister(id, wasm, Vec::new(), Some(controller()));
    id
}

/// Whether a text is what a document says: `…` stands for anything, and it does not matter where lines are broken, which
/// with Candid also puts a separator behind a last member.
pub fn fits(expected: &str, found: &str) -> bool {
    let words = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.replace("; }", " }").replace(", )", ")").replace("( ", "(").replace(" )", ")")
    };
    let (expected, found) = (words(expected), words(found));
    let mut parts = expected.split('…').map(str::trim);
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            match rest.split_once(before) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

/// Encodes arguments as Candid.
pub fn encode<A: ArgumentEncoder>(arguments: A) -> Vec<u8> {
    encode_args(arguments).expect("arguments of the suites can be encoded")
}

/// Decodes a reply; one of another type fails the test.
pub fn decode<R: CandidType + for<'a> candid::Deserialize<'a>>(method: &str, reply: &[u8]) -> R {
    decode_one(reply).unwrap_or_else(|error| panic!("{method} answered another type: {error}"))
}
