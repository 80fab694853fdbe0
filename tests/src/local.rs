//! A deployed icsql canister on a replica in this process, for what the PocketIC protocol does not offer: what a message
//! costs, and faults inside it.

use std::fmt::Debug;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, Deserialize, Principal};
use icsql_replica::{CanisterSettings, Cost, Fault, InstallMode, Outcome, Replica};
use icsql_types::method::{self, Method, Mode};
use icsql_types::{
    Answer, Checksum, Error, Executed, Params, ReadOptions, RowSet, SqlWriteOptions, Statement, Value, WriteOptions,
};

use crate::{decode, encode, icsql_wasm, replica};

/// An icsql canister on a replica in this process, controlled by the anonymous principal.
pub struct Local {
    /// The replica.
    pub replica: Replica,
    /// The canister.
    pub id: Principal,
    /// Its controller, which makes all calls.
    pub controller: Principal,
}

impl Local {
    /// Installs the Wasm with an empty argument.
    pub fn deploy() -> Self {
        let controller = Principal::anonymous();
        let mut replica = replica();
        let id = replica.create_canister(CanisterSettings::default());
        replica.install(id, InstallMode::Install, &icsql_wasm(), &[], controller).reply();
        Self { replica, id, controller }
    }

    /// Installs the same Wasm anew, on an empty stable memory.
    pub fn reinstall(&mut self) {
        self.replica.install(self.id, InstallMode::Reinstall, &icsql_wasm(), &[], self.controller).reply();
    }

    /// Upgrades to the same Wasm.
    pub fn upgrade(&mut self) {
        self.replica.install(self.id, InstallMode::UPGRADE, &icsql_wasm(), &[], self.controller).reply();
    }

    /// Sends raw bytes to a method in its own mode.
    pub fn send(&mut self, method: &str, mode: Mode, argument: &[u8]) -> Outcome {
        match mode {
            Mode::Query => self.replica.query(self.id, self.controller, method, argument),
            Mode::Update => self.replica.update(self.id, self.controller, method, argument),
        }
    }

    /// Calls a method in its own mode. `None`: the message was stopped.
    pub fn try_call<A: ArgumentEncoder, R>(
        &mut self,
        method: &Method<A, Answer<R>>,
        arguments: A,
    ) -> (Option<Answer<R>>, Cost)
    where
        R: CandidType + for<'a> Deserialize<'a>,
    {
        let outcome = self.send(method.name, method.mode, &encode(arguments));
        (outcome.result.ok().map(|reply| decode(method.name, &reply)), outcome.cost)
    }

    /// Calls a method in its own mode; a message that was stopped fails the test.
    pub fn answer<A: ArgumentEncoder, R>(&mut self, method: &Method<A, Answer<R>>, arguments: A) -> Answer<R>
    where
        R: CandidType + for<'a> Deserialize<'a>,
    {
        let outcome = self.send(method.name, method.mode, &encode(arguments));
        let reply = outcome.result.unwrap_or_else(|reject| panic!("{} was stopped: {reject}", method.name));
        decode(method.name, &reply)
    }

    /// Calls a method and expects `Ok`.
    pub fn call<A: ArgumentEncoder, R>(&mut self, method: &Method<A, Answer<R>>, arguments: A) -> R
    where
        R: CandidType + for<'a> Deserialize<'a>,
    {
        self.answer(method, arguments).unwrap_or_else(|error| panic!("{}: {error}", method.name))
    }

    /// Puts and answers the version.
    pub fn put(&mut self, key: &str, value: &str) -> u64 {
        self.call(&method::KV_PUT, (key.to_owned(), value.to_owned(), None::<WriteOptions>)).version
    }

    /// Gets.
    pub fn get(&mut self, key: &str) -> Option<String> {
        self.call(&method::KV_GET, (key.to_owned(),))
    }

    /// Runs a statement that reads.
    pub fn query(&mut self, statement: &Statement, options: ReadOptions) -> Answer<RowSet> {
        self.answer(&method::SQL_QUERY, (statement.clone(), Some(options)))
    }

    /// The rows of a statement that reads, which must fit one page.
    pub fn rows(&mut self, sql: &str) -> Answer<Vec<Vec<Value>>> {
        let options = ReadOptions { max_rows: Some(100_000), ..ReadOptions::default() };
        let page = self.query(&statement(sql), options)?;
        assert!(page.cursor.is_none(), "{sql}: more than one page");
        Ok(page.rows)
    }

    /// Runs a statement that writes.
    pub fn execute(&mut self, sql: &str) -> Answer<Executed> {
        self.answer(&method::SQL_EXECUTE, (statement(sql), None::<SqlWriteOptions>))
    }

    /// Runs a statement that writes and expects `Ok`.
    pub fn run(&mut self, sql: &str) -> Executed {
        self.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The digest of the image and what it is the digest of.
    pub fn checksum(&mut self) -> Checksum {
        self.call(&method::DB_CHECKSUM, ())
    }

    /// The whole stable memory.
    pub fn stable_memory(&self) -> Vec<u8> {
        self.replica.stable_memory(self.id).expect("the canister exists")
    }

    /// Compares every page with its hash.
    pub fn expect_clean_scan(&mut self) {
        let scan = self.call(&method::DB_REFRESH_CHECKSUM_CHUNK, (Some(512 << 20),));
        assert_eq!((scan.complete, scan.damaged_total, scan.digest_matches), (true, 0, Some(true)), "{scan:?}");
    }

    /// Makes a call under the faults that `fault` has for 1, 2, …, up to the first that it does not meet. Each one that is
    /// met must end the message, or be answered as full storage if it refuses growth, and leave stable memory, the digest,
    /// and what `state` looks at as they were. Answers what the call answered at last, and how many faults were met.
    pub fn under_faults<S: PartialEq + Debug, R: Debug>(
        &mut self,
        fault: impl Fn(u64) -> Fault,
        mut state: impl FnMut(&mut Self) -> S,
        mut call: impl FnMut(&mut Self, u64) -> Option<Answer<R>>,
    ) -> (R, u64) {
        let before = (state(self), self.checksum(), self.stable_memory());
        for n in 1.. {
            let fault = fault(n);
            self.replica.set_fault(fault);
            let answer = call(self, n);
            self.replica.clear_fault();
            match answer {
                Some(Ok(done)) => return (done, n - 1),
                Some(Err(Error::StorageFull { .. })) if fault.fail_stable_grow.is_some() => {}
                Some(Err(error)) => panic!("{fault:?}: {error}"),
                None if fault.fail_stable_grow.is_none() => {}
                None => panic!("{fault:?}: growth that is refused ended the message"),
            }
            let after = state(self);
            assert!(after == before.0, "{fault:?} left a trace: {:?} became {after:?}", before.0);
            assert_eq!(self.checksum(), before.1, "{fault:?}");
            assert!(self.stable_memory() == before.2, "{fault:?}: stable memory has changed");
        }
        unreachable!("the loop ends at the first call that succeeds")
    }
}

/// A statement without parameters.
pub fn statement(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), params: None }
}

/// A statement with parameters by position.
pub fn with(sql: &str, values: Vec<Value>) -> Statement {
    Statement { sql: sql.to_owned(), params: Some(Params::Positional(values)) }
}
