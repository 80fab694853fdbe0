//! A development replica of the Internet Computer: runs canisters' Wasm on this machine and counts their
//! instructions with the weights of the IC.
//!
//! It is a tool for tests and measurements. There is no consensus, no networking between nodes and no security
//! boundary; it is not for production. Where it disagrees with PocketIC, PocketIC is right.
//!
//! [`Replica`] is the whole of it: create canisters, install code, call, look at [`Cost`]s, inject [`Fault`]s.
//!
//! # What it covers
//! - `init`, the start function, `pre_upgrade`, `post_upgrade`, updates, queries, replicated and composite queries,
//!   `inspect_message`, the global timer, heartbeats (on [`Replica::tick`]); calls between canisters with replies,
//!   rejects, cleanup callbacks and cycles; the management canister; traps with full rollback.
//! - The 32-bit system API. Certified data is certified in queries that come through the IC's HTTP interface;
//!   elsewhere `data_certificate_present` answers 0.
//! - Cycles as an account: base fees, instructions and call fees are charged, rent is not.
//!
//! # As a server
//! [`serve`] and the binary `icsql-replica` speak the protocol of a PocketIC server, so that suites written with
//! the `pocket-ic` crate run on it: `POCKET_IC_BIN=…/icsql-replica cargo test`. An instance has one subnet, and HTTP
//! gateways to its canisters' `http_request` when they are asked for. Not there:
//! state directories, ICP features, HTTP outcalls, threshold keys, snapshot files. Two endpoints are
//! the replica's own:
//! - `GET /instances/{i}/icsql/cost` answers `{"messages": [{canister, entry, cost}, …]}` with a [`MessageCost`] for
//!   each message since the last call began;
//! - `POST /instances/{i}/icsql/fault` takes a [`Fault`] as JSON, e.g. `{"fail_stable_write": 2}`, for the next message.
//!
//! With [`ServerConfig::ic`] (`icsql-replica --ic`) the server also speaks the IC's HTTP interface, for agents, icp-cli
//! and browsers: `/api/v2/status` and, under `/api/{v2,v3,v4}/{canister,subnet}/<id>/`, `call` (v2 answers 202, v3 and
//! v4 wait for the answer), `query` and `read_state`. Senders' signatures (Ed25519, secp256k1, P-256, canister
//! signatures, delegations) are checked; certificates and answers to queries are signed. WebAuthn keys, `sender_info`,
//! subnet metrics and API boundary nodes are not there. On the same port `http://<canister-id>.localhost:<port>/…` and
//! `?canisterId=<canister-id>` reach canisters' `http_request`.
//!
//! With [`IcConfig::state_dir`] (`--state-dir DIR`) that instance outlives the process. Its state is saved within a second or
//! two of a change (large states less often: a save takes at most a fifth of the time), and when the server ends by Ctrl-C or
//! SIGTERM, which loses nothing that was answered. A process that is killed loses what came after the last save; the state
//! is then the older one, whole. Answers to calls are not kept, only that they were answered. Instances made through the
//! PocketIC protocol stay in memory.
//!
//! # What is different from the IC
//! - One subnet, one node; messages run one after another in the order in which they were sent.
//! - A rollback of a message that grew the heap makes the instance anew and copies the heap; others only restore
//!   the pages that were written.
#![warn(missing_docs)]

mod cycles;
mod gateway;
mod http;
mod limits;
mod profile;
mod replica;
mod runtime;
mod server;
mod state;
mod types;
mod wasm;

pub use candid::Principal;
pub use profile::{CallCost, Frame, FunctionCost, Profile};
pub use replica::{CanisterSettings, IngressId, Replica};
pub use server::{IcConfig, ServerConfig, serve};
pub use state::{StateDir, StateError};
pub use types::{
    Config, Cost, ErrorCode, Fault, INGRESS_BYTES_MAX, INSPECT_INSTRUCTIONS_MAX, INSTALL_INSTRUCTIONS_MAX, InstallMode,
    LogLine, MessageCost, Outcome, QUERY_INSTRUCTIONS_MAX, QUERY_REPLY_BYTES_MAX, REPLY_BYTES_MAX, Reject,
    STABLE_BYTES_MAX, Status, UPDATE_INSTRUCTIONS_MAX,
};
pub use wasm::{Metadata, Module, ModuleCache, ModuleError};
