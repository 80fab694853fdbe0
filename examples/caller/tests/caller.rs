//! The example on a replica, with a deployed icsql.

use candid::{CandidType, Decode, Deserialize, Encode, Principal};
use icsql_tests::{Icsql, caller_wasm, controller, encode, stranger};
use icsql_types::method::ACCESS_GRANT;
use icsql_types::{Error, Grant, Role};

/// The example's `Failure`, as a client of its own would write it.
#[derive(CandidType, Deserialize, Debug)]
enum Failure {
    Refused(Error),
    NotSent(String),
    Unknown(String),
}

struct Example {
    icsql: Icsql,
    id: Principal,
}

impl Example {
    fn deploy(database: impl FnOnce(&Icsql) -> Principal) -> Self {
        let icsql = Icsql::deploy();
        let id = icsql.pic.create_canister_with_settings(Some(controller()), None);
        icsql.pic.add_cycles(id, 1_000_000_000_000_000);
        let argument = Encode!(&database(&icsql)).unwrap();
        icsql.pic.install_canister(id, caller_wasm(), argument, Some(controller()));
        Self { icsql, id }
    }

    fn remember(&self, name: &str, text: &str) -> Result<u64, Failure> {
        let reply = self.icsql.pic.update_call(self.id, stranger(), "remember", encode((name, text))).unwrap();
        Decode!(&reply, Result<u64, Failure>).unwrap()
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let reply = self.icsql.pic.update_call(self.id, stranger(), "names", encode((prefix,))).unwrap();
        Decode!(&reply, Result<Vec<String>, Failure>).unwrap()
    }

    fn recall(&self, name: &str) -> Result<Option<String>, Failure> {
        let reply = self.icsql.pic.update_call(self.id, stranger(), "recall", encode((name,))).unwrap();
        Decode!(&reply, Result<Option<String>, Failure>).unwrap()
    }
}

#[test]
fn it_puts_and_gets_and_says_what_is_wrong() {
    let example = Example::deploy(|icsql| icsql.id);
    // It has no role yet.
    let refused = example.remember("greeting", "hello").unwrap_err();
    assert!(matches!(&refused, Failure::Refused(Error::Forbidden { method, .. }) if method == "kv_put"), "{refused:?}");
    let icsql = &example.icsql;
    icsql.ok(&ACCESS_GRANT, (Grant { who: example.id, role: Role::Writer }, None));
    let first = example.remember("greeting", "hello").unwrap();
    assert!(example.remember("greeting", "hello again").unwrap() > first);
    assert_eq!(example.recall("greeting").unwrap().as_deref(), Some("hello again"));
    assert_eq!(example.recall("farewell").unwrap(), None);
    assert_eq!(icsql.get("greeting").as_deref(), Some("hello again"));
    example.remember("greenhouse", "tomatoes").unwrap();
    assert_eq!(example.names("gre").unwrap(), ["greenhouse", "greeting"]);
    assert_eq!(example.names("greet").unwrap(), ["greeting"]);
    assert!(example.names("x").unwrap().is_empty());
    let too_long = example.remember(&"k".repeat(1_025), "").unwrap_err();
    assert!(matches!(&too_long, Failure::Refused(Error::TooLarge { limit: 1_024, actual: 1_025, .. })), "{too_long:?}");
    // The example is upgraded; what it remembers is in icsql.
    let argument = Encode!(&icsql.id).unwrap();
    icsql.pic.upgrade_canister(example.id, caller_wasm(), argument, Some(controller())).unwrap();
    assert_eq!(example.recall("greeting").unwrap().as_deref(), Some("hello again"));
}

#[test]
fn a_call_that_does_not_get_through_is_told_apart() {
    let nobody = Example::deploy(|_| Principal::from_slice(&[1, 2, 3]));
    let missing = nobody.remember("a", "b").unwrap_err();
    assert!(matches!(&missing, Failure::NotSent(words) if words.contains("not found")), "{missing:?}");
    // A canister that is stopped rejects with a code that others use after a change as well, so nothing is sure.
    let stopped = Example::deploy(|icsql| icsql.id);
    stopped.icsql.pic.stop_canister(stopped.icsql.id, Some(controller())).unwrap();
    let unknown = stopped.remember("a", "b").unwrap_err();
    assert!(matches!(&unknown, Failure::Unknown(words) if words.contains("is stopped")), "{unknown:?}");
}
