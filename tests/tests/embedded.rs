//! The example of a canister with the engine inside: what is added is there after upgrades.

use candid::{Decode, Principal};
use icsql_tests::{controller, embedded_wasm, encode, install, pocket_ic, stranger};
use pocket_ic::PocketIc;

fn add(pic: &PocketIc, id: Principal, text: &str) -> i64 {
    let reply = pic.update_call(id, stranger(), "add", encode((text,))).unwrap();
    Decode!(&reply, Result<i64, String>).unwrap().unwrap()
}

fn list(pic: &PocketIc, id: Principal, after: i64) -> Vec<(i64, String)> {
    let reply = pic.query_call(id, stranger(), "list", encode((after,))).unwrap();
    Decode!(&reply, Result<Vec<(i64, String)>, String>).unwrap().unwrap()
}

#[test]
fn what_is_added_is_there_after_an_upgrade() {
    let pic = pocket_ic();
    let id = install(&pic, embedded_wasm());
    assert_eq!(list(&pic, id, 0), []);
    assert_eq!((add(&pic, id, "first"), add(&pic, id, "second")), (1, 2));
    let upgrade = || pic.upgrade_canister(id, embedded_wasm(), encode(()), Some(controller()));
    upgrade().unwrap();
    assert_eq!(list(&pic, id, 0), [(1, "first".to_string()), (2, "second".to_string())]);
    assert_eq!(add(&pic, id, "third"), 3);
    upgrade().unwrap();
    assert_eq!(list(&pic, id, 2), [(3, "third".to_string())]);
}
