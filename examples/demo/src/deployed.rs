//! A deployed canister on a server: typed calls, and what they cost.

use crate::error::Error;
use candid::utils::{ArgumentEncoder, decode_one, encode_args};
use candid::{CandidType, Principal};
use icsql_types::Answer;
use icsql_types::method::{Method, Mode};
use pocket_ic::common::rest::RawMessageId;
use pocket_ic::{CanisterSettings, PocketIc, RejectResponse};
use serde::{Deserialize, Serialize};

/// Cycles that the canister starts with: enough for years of this.
const CYCLES: u128 = 1_000_000_000_000_000;

/// The instance that `icsql-replica --ic` shows to agents.
const INSTANCE: usize = 0;

/// An icsql canister on the instance that agents reach too.
pub struct Deployed {
    pic: PocketIc,
    http: reqwest::blocking::Client,
    /// The instance's address, without a slash at the end.
    pub url: String,
    /// The canister.
    pub canister: Principal,
    /// Who may write, beside everybody who does not say who they are: agents without an identity.
    pub controller: Principal,
}

/// What a call costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Price {
    /// Instructions of the whole message.
    pub instructions: u64,
    /// What the canister pays in cycles when the call is an update: these, and the platform's fees. A query is free.
    pub cycles: u64,
}

/// The replica's answer about the messages since the last call began; more fields are ignored.
#[derive(Deserialize)]
struct Costs {
    messages: Vec<MessageCost>,
}

#[derive(Deserialize)]
struct MessageCost {
    entry: String,
    cost: Cost,
}

#[derive(Deserialize)]
struct Cost {
    instructions: u64,
}

impl Deployed {
    /// Creates a canister on the server at `server` and installs `wasm` with an empty argument, as a plain deploy does.
    /// Until [`hand_over`](Self::hand_over), calls that agents make wait.
    ///
    /// # Errors
    /// When the server does not answer, or was started without `--ic`.
    pub fn new(server: &reqwest::Url, wasm: Vec<u8>) -> Result<Self, Error> {
        let http = reqwest::blocking::Client::new();
        let status = server.join("status").map_err(|e| unreachable_at(server, &e))?;
        http.get(status).send().and_then(|r| r.error_for_status()).map_err(|e| unreachable_at(server, &e))?;
        let url = format!("{}/instances/{INSTANCE}", server.as_str().trim_end_matches('/'));
        if !http.get(format!("{url}/auto_progress")).send().is_ok_and(|response| response.status().is_success()) {
            let message = "it has no instance for agents: start icsql-replica with --ic".into();
            return Err(Error::Server { url: server.to_string(), message });
        }
        let pic = PocketIc::new_from_existing_instance(server.clone(), INSTANCE, None);
        // Calls run when this program waits for them, so that it is told what each cost.
        pic.stop_progress();
        let controller = Principal::self_authenticating(b"icsql demo");
        let controllers = Some(vec![controller, Principal::anonymous()]);
        let settings = CanisterSettings { controllers, ..CanisterSettings::default() };
        let canister = pic.create_canister_with_settings(Some(controller), Some(settings));
        pic.add_cycles(canister, CYCLES);
        pic.install_canister(canister, wasm, Vec::new(), Some(controller));
        Ok(Self { pic, http, url, canister, controller })
    }

    /// Lets calls run by themselves from here on, as agents expect it.
    pub fn hand_over(&self) {
        self.pic.auto_progress();
    }

    /// Calls a query method as `caller`: as a query, whose reply and instructions are answered, and once more as an update,
    /// to see what that takes in cycles.
    ///
    /// # Errors
    /// When the call is rejected, or the canister answers with an error.
    pub fn query<A, R>(
        &self,
        caller: Principal,
        method: &Method<A, Answer<R>>,
        arguments: A,
    ) -> Result<(R, Price), Error>
    where
        A: ArgumentEncoder,
        R: CandidType + for<'a> Deserialize<'a>,
    {
        debug_assert_eq!(method.mode, Mode::Query);
        let rejected = |e: RejectResponse| Error::Rejected { call: method.name.into(), message: e.reject_message };
        let argument = encode(method.name, arguments)?;
        let reply = self.pic.query_call(self.canister, caller, method.name, argument.clone()).map_err(rejected)?;
        let answer = decode(method.name, &reply)?;
        let instructions = self.instructions_of_one(method.name)?;
        let before = self.balance();
        let reply = self.pic.update_call(self.canister, caller, method.name, argument).map_err(rejected)?;
        let _: R = decode(method.name, &reply)?;
        Ok((answer, Price { instructions, cycles: before.saturating_sub(self.balance()) }))
    }

    /// Calls an update method as the controller and answers what it cost.
    ///
    /// # Errors
    /// When the call is rejected, or the canister answers with an error.
    pub fn update<A, R>(&self, method: &Method<A, Answer<R>>, arguments: A) -> Result<(R, Price), Error>
    where
        A: ArgumentEncoder,
        R: CandidType + for<'a> Deserialize<'a>,
    {
        debug_assert_eq!(method.mode, Mode::Update);
        let before = self.balance();
        let id = self.submit(method, arguments)?;
        let answer = self.finish(method.name, id)?;
        let instructions = self.instructions_of_one(method.name)?;
        Ok((answer, Price { instructions, cycles: before.saturating_sub(self.balance()) }))
    }

    /// The canister's cycles.
    pub fn balance(&self) -> u64 {
        u64::try_from(self.pic.cycle_balance(self.canister)).unwrap_or(u64::MAX)
    }

    /// Hands an update call in. Several that are handed in one after the other run in this order at the first
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// When the call is rejected.
    pub fn submit<A: ArgumentEncoder, R>(&self, method: &Method<A, R>, arguments: A) -> Result<RawMessageId, Error> {
        let argument = encode(method.name, arguments)?;
        let submitted = self.pic.submit_call(self.canister, self.controller, method.name, argument);
        submitted.map_err(|e| Error::Rejected { call: method.name.into(), message: e.reject_message })
    }

    /// Waits for the answer to an update call. `call` names it in errors.
    ///
    /// # Errors
    /// When the call is rejected, or the canister answers with an error.
    pub fn finish<R: CandidType + for<'a> Deserialize<'a>>(&self, call: &str, id: RawMessageId) -> Result<R, Error> {
        let reply = self.pic.await_call(id);
        decode(call, &reply.map_err(|e| Error::Rejected { call: call.into(), message: e.reject_message })?)
    }

    fn instructions_of_one(&self, method: &str) -> Result<u64, Error> {
        match self.instructions(method)?[..] {
            [instructions] => Ok(instructions),
            ref other => Err(unexpected(method, format!("the server counted {} messages, not one", other.len()))),
        }
    }

    /// Instructions of each execution of this method since the last call began, in order.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn instructions(&self, method: &str) -> Result<Vec<u64>, Error> {
        let url = format!("{}/icsql/cost", self.url);
        let failed = |e: reqwest::Error| Error::Server {
            url: self.url.clone(),
            message: format!("it does not say what calls cost: {}", innermost(&e)),
        };
        let response = self.http.get(url).send().and_then(|r| r.error_for_status()).map_err(failed)?;
        let costs: Costs = response.json().map_err(failed)?;
        Ok(costs.messages.into_iter().filter(|m| m.entry == method).map(|m| m.cost.instructions).collect())
    }
}

fn encode<A: ArgumentEncoder>(call: &str, arguments: A) -> Result<Vec<u8>, Error> {
    encode_args(arguments).map_err(|e| unexpected(call, format!("its arguments cannot be encoded: {e}")))
}

fn decode<R: CandidType + for<'a> Deserialize<'a>>(call: &str, reply: &[u8]) -> Result<R, Error> {
    let answer: Answer<R> =
        decode_one(reply).map_err(|e| unexpected(call, format!("the reply is of another type: {e}")))?;
    answer.map_err(|error| Error::Answered { call: call.into(), error })
}

fn unexpected(call: &str, message: String) -> Error {
    Error::Unexpected { call: call.into(), message }
}

fn unreachable_at(server: &reqwest::Url, error: &dyn std::error::Error) -> Error {
    Error::Server { url: server.to_string(), message: format!("it does not answer: {}", innermost(error)) }
}

/// The cause at the end of an error's chain, which names the reason; those before it repeat the address.
fn innermost(mut error: &dyn std::error::Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
