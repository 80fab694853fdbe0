//! A canister under measurement, on a replica of its own.

use candid::Principal;
use candid::utils::{ArgumentEncoder, decode_one, encode_args};
use candid::{CandidType, Deserialize};
use icsql_replica::{CanisterSettings, Config, Cost, InstallMode, Profile, Replica};
use icsql_types::Answer;
use icsql_types::method::Method;

/// More than any run of the cases spends.
const CYCLES: u128 = 1_000_000_000_000_000_000;

/// The controller of every subject, who makes the calls.
pub fn controller() -> Principal {
    Principal::self_authenticating(b"the controller of every subject")
}

/// An installed canister.
pub struct Deployed {
    /// The replica that it runs on.
    pub replica: Replica,
    id: Principal,
    wasm: Vec<u8>,
    argument: Vec<u8>,
}

impl Deployed {
    /// Installs a Wasm with this argument.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn new(wasm: &[u8], argument: &[u8], config: Config) -> Result<Self, String> {
        let mut replica = Replica::new(config);
        let id = replica.create_canister(CanisterSettings {
            controllers: vec![controller()],
            cycles: CYCLES,
            ..CanisterSettings::default()
        });
        let mut deployed = Self { replica, id, wasm: wasm.to_vec(), argument: argument.to_vec() };
        deployed.install(InstallMode::Install)?;
        Ok(deployed)
    }

    fn install(&mut self, mode: InstallMode) -> Result<Cost, String> {
        let outcome = self.replica.install(self.id, mode, &self.wasm, &self.argument, controller());
        outcome.result.map(|_| outcome.cost).map_err(|reject| format!("{mode:?}: {reject}"))
    }

    /// Upgrades to the same Wasm and answers what that cost.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn upgrade(&mut self) -> Result<Cost, String> {
        self.install(InstallMode::UPGRADE)
    }

    /// Makes the canister empty again, its stable memory too.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn reinstall(&mut self) -> Result<(), String> {
        self.install(InstallMode::Reinstall).map(drop)
    }

    /// Calls a method as the controller, replicated also if it is a query. Answers the reply and what the call cost.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn call(&mut self, method: &str, argument: &[u8]) -> Result<(Vec<u8>, Cost), String> {
        self.call_as(controller(), method, argument)
    }

    /// As [`Deployed::call`], as somebody else.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn call_as(&mut self, who: Principal, method: &str, argument: &[u8]) -> Result<(Vec<u8>, Cost), String> {
        let outcome = self.replica.update(self.id, who, method, argument);
        let reply = outcome.result.map_err(|reject| format!("{method}: {reject}"))?;
        Ok((reply, outcome.cost))
    }

    /// Calls a query method without replication: nothing that it does stays.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn query(&mut self, method: &str, argument: &[u8]) -> Result<Vec<u8>, String> {
        self.replica
            .query(self.id, controller(), method, argument)
            .result
            .map_err(|reject| format!("{method}: {reject}"))
    }

    /// Calls a method of icsql's and expects `Ok`.
    ///
    /// # Errors
    /// The reject or the canister's error, in words.
    pub fn own<A: ArgumentEncoder, R: CandidType + for<'a> Deserialize<'a>>(
        &mut self,
        method: &Method<A, Answer<R>>,
        arguments: A,
    ) -> Result<(R, Cost), String> {
        let (reply, cost) = self.call(method.name, &encode(arguments))?;
        match decode_one::<Answer<R>>(&reply) {
            Ok(Ok(value)) => Ok((value, cost)),
            Ok(Err(error)) => Err(format!("{}: {error}", method.name)),
            Err(error) => Err(format!("{}: the reply has another shape: {error}", method.name)),
        }
    }

    /// The profiles of the messages since this was asked last, in order.
    ///
    /// # Errors
    /// The replica's reject, in words.
    pub fn take_profiles(&mut self) -> Result<Vec<Profile>, String> {
        self.replica.take_profiles(self.id).map_err(|reject| reject.to_string())
    }
}

/// Encodes arguments.
pub(crate) fn encode<A: ArgumentEncoder>(arguments: A) -> Vec<u8> {
    encode_args(arguments).expect("arguments of the benchmarks can be encoded")
}
