//! The reference canister of ic-sqlite-vfs is upgraded to one on this engine, which adopts its database.

use candid::{CandidType, Deserialize, Principal};
use icsql_tests::{adopter_wasm, controller, decode, encode, fixture_wasm, install, pocket_ic};
use pocket_ic::PocketIc;

const ROWS: u32 = 120;

/// How a message ended that adopted pages: pages done, pages in all, whether it is complete, instructions.
type Adopted = (u32, u32, bool, u64);

struct Canister {
    pic: PocketIc,
    id: Principal,
}

fn value(row: u32) -> String {
    // Up to three pages of ic-sqlite-vfs.
    format!("value {row} ").repeat(if row.is_multiple_of(60) { 4_000 } else { 5 })
}

fn key(row: u32) -> String {
    format!("key-{row:06}")
}

impl Canister {
    /// On ic-sqlite-vfs, with [`ROWS`] rows.
    fn deploy() -> Self {
        let pic = pocket_ic();
        let id = install(&pic, fixture_wasm("sqlite-vfs"));
        let canister = Self { pic, id };
        (0..ROWS).for_each(|row| canister.put(&key(row), &value(row)));
        canister
    }

    fn upgrade(&self, wasm: Vec<u8>, argument: Vec<u8>) {
        self.pic.upgrade_canister(self.id, wasm, argument, Some(controller())).unwrap();
    }

    fn update<R: CandidType + for<'a> Deserialize<'a>>(&self, method: &str, argument: Vec<u8>) -> R {
        decode(method, &self.pic.update_call(self.id, controller(), method, argument).unwrap())
    }

    fn query<R: CandidType + for<'a> Deserialize<'a>>(&self, method: &str, argument: Vec<u8>) -> R {
        decode(method, &self.pic.query_call(self.id, controller(), method, argument).unwrap())
    }

    fn put(&self, key: &str, value: &str) {
        self.update::<Result<(), String>>("kv_put", encode((key, value))).unwrap();
    }

    fn get(&self, key: &str) -> Option<String> {
        self.query::<Result<Option<String>, String>>("kv_get", encode((key,))).unwrap()
    }

    fn expect_rows(&self) {
        for row in 0..ROWS {
            assert!(self.get(&key(row)) == Some(value(row)), "row {row}");
        }
        assert_eq!(self.get("no such key"), None);
    }

    /// The database is whole; answers the id of its last transaction.
    fn verify(&self) -> u64 {
        let (whole, transaction_id) = self.update::<Result<(bool, u64), String>>("verify", encode(())).unwrap();
        assert!(whole);
        transaction_id
    }
}

#[test]
fn an_upgrade_from_ic_sqlite_vfs_keeps_every_row() {
    let canister = Canister::deploy();
    canister.upgrade(adopter_wasm(), encode((None::<u64>,)));
    let adopted = canister.query::<Option<Adopted>>("adopted", encode(())).unwrap();
    assert!(adopted.2 && adopted.0 == adopted.1, "{adopted:?}");
    canister.expect_rows();
    // Two migrations in one transaction, and one for each row.
    assert_eq!(canister.verify(), 1 + u64::from(ROWS));
    canister.put("key-000007", "after the upgrade");
    assert_eq!(canister.get("key-000007").as_deref(), Some("after the upgrade"));
    assert_eq!(canister.verify(), 2 + u64::from(ROWS));

    let back = canister.pic.upgrade_canister(canister.id, fixture_wasm("sqlite-vfs"), vec![], Some(controller()));
    back.expect_err("ic-sqlite-vfs opened an adopted image");
    assert_eq!(canister.get("key-000008"), Some(value(8)));
}

#[test]
fn an_adoption_in_chunks_can_be_given_up_for_ic_sqlite_vfs() {
    let canister = Canister::deploy();
    let chunk = encode((Some(100_000_u64),));
    canister.upgrade(adopter_wasm(), chunk.clone());
    let adopted = canister.query::<Option<Adopted>>("adopted", encode(())).unwrap();
    assert_eq!((adopted.0, adopted.2), (6, false));
    canister.query::<Result<Option<String>, String>>("kv_get", encode(("key-000000",))).unwrap_err();

    canister.upgrade(fixture_wasm("sqlite-vfs"), vec![]);
    canister.expect_rows();
    canister.put("in between", "a row of ic-sqlite-vfs");

    canister.upgrade(adopter_wasm(), chunk);
    let mut messages = 1;
    loop {
        let argument = encode((100_000_u64,));
        let (_, pages_total, complete, _) =
            canister.update::<Result<Adopted, String>>("adopt_chunk", argument).unwrap();
        messages += 1;
        if complete {
            assert_eq!(messages, pages_total.div_ceil(6));
            break;
        }
    }
    canister.expect_rows();
    assert_eq!(canister.get("in between").as_deref(), Some("a row of ic-sqlite-vfs"));
    assert_eq!(canister.verify(), 2 + u64::from(ROWS));
}

/// What the documentation says an adoption costs: with a checksum to compare with, and without.
#[test]
fn an_adoption_costs_what_is_said() {
    const PAGE_BYTES: u64 = 16_384;
    for (refreshed, limit) in [(false, 3.5), (true, 16.0)] {
        let canister = Canister::deploy();
        (0..20).for_each(|row| canister.put(&key(row), &"x".repeat(60_000)));
        if refreshed {
            let argument = encode((4_u64 << 20,));
            canister.pic.update_call(canister.id, controller(), "db_refresh_checksum_chunk", argument).unwrap();
        }
        canister.upgrade(adopter_wasm(), encode((None::<u64>,)));
        let (_, pages, _, instructions) = canister.query::<Option<Adopted>>("adopted", encode(())).unwrap();
        let per_byte = instructions as f64 / (u64::from(pages) * PAGE_BYTES) as f64;
        println!("checksum {refreshed}: {instructions} instructions for {pages} pages, {per_byte:.2} a byte");
        assert!(per_byte < limit && per_byte > limit / 2.0, "checksum {refreshed}: {per_byte:.2} instructions a byte");
    }
}
