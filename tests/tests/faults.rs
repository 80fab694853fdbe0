//! Transactions of every kind on the engine in a deployed Wasm: stopped at every stable write, after any share of their
//! instructions, and where stable memory cannot grow. What is left is what was before or what comes after, it is whole,
//! and the same transaction works then.

use candid::{Decode, Principal};
use icsql_engine::limits::commit_reserve;
use icsql_replica::{CanisterSettings, Fault, InstallMode, Outcome, Replica};
use icsql_tests::{encode, engine_wasm, replica};

const SCHEMA: &str = "
    CREATE TABLE log(id INTEGER PRIMARY KEY, key TEXT);
    CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent(id) ON DELETE CASCADE);
    CREATE TRIGGER child_gone AFTER DELETE ON child BEGIN INSERT INTO log(key) VALUES ('c' || old.id); END;
    CREATE TRIGGER logged AFTER INSERT ON log BEGIN UPDATE parent SET name = name || 'x' WHERE id > 3; END;
    CREATE VIRTUAL TABLE note USING fts5(title, body);
    INSERT INTO note VALUES ('one', 'the lake is freezing'), ('two', 'the river flows');
    INSERT INTO parent(name) VALUES ('a'), ('b'), ('c'), ('d');
    INSERT INTO child(parent) SELECT 1 + value % 4 FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,11]');
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO kv SELECT printf('%04d', i), printf('%0100d', i) FROM n;
    DELETE FROM kv WHERE key BETWEEN '0200' AND '0300';";

const WRITES: &[(&str, &str)] = &[
    ("insert", "INSERT INTO kv VALUES ('new', 'x')"),
    ("update", "UPDATE kv SET value = 'y' WHERE key = '0007'"),
    ("update of many rows", "UPDATE kv SET value = value || 'y' WHERE key LIKE '%7'"),
    ("replace", "INSERT OR REPLACE INTO kv VALUES ('0007', 'y')"),
    ("delete", "DELETE FROM kv WHERE key < '0100'"),
    ("overflow pages", "INSERT INTO kv VALUES ('large', printf('%050000d', 1))"),
    ("growth", "INSERT INTO log(key) VALUES (zeroblob(9000000))"),
    ("a new table", "CREATE TABLE other(id INTEGER PRIMARY KEY, x); INSERT INTO other(x) VALUES (1), (2)"),
    ("dropping a table", "DROP TABLE child"),
    ("building an index", "CREATE INDEX main.by_value ON kv(value)"),
    ("ALTER TABLE", "ALTER TABLE log ADD COLUMN more TEXT DEFAULT 'm'; ALTER TABLE log RENAME COLUMN key TO k"),
    ("VACUUM", "VACUUM"),
    ("full-text search", "INSERT INTO note VALUES ('a new note', 'about the lake')"),
    ("a cascade of triggers", "DELETE FROM parent WHERE id <= 3"),
    (
        "a savepoint undone inside",
        "INSERT INTO kv VALUES ('kept', 'k') --undone-- DELETE FROM kv; CREATE TABLE gone(x)",
    ),
];

struct Canister {
    replica: Replica,
    id: Principal,
}

type State = (u64, u64, String);

impl Canister {
    fn deploy() -> Self {
        let mut replica = replica();
        let id = replica.create_canister(CanisterSettings::default());
        replica.install(id, InstallMode::Install, &engine_wasm(), &[], Principal::anonymous()).reply();
        let mut canister = Self { replica, id };
        canister.run(SCHEMA).expect("the schema is sound");
        canister
    }

    fn update(&mut self, method: &str, argument: &[u8]) -> Outcome {
        self.replica.update(self.id, Principal::anonymous(), method, argument)
    }

    /// The instructions of COMMIT and the pages that it wrote, or why not.
    fn run(&mut self, sql: &str) -> Result<(u64, u64), String> {
        let reply = self.update("run", &encode((sql,))).result.map_err(|reject| format!("{reject:?}"))?;
        Decode!(&reply, Result<(u64, u64), String>).expect("the canister's own type")
    }

    fn state(&mut self) -> State {
        let reply = self.update("state", &encode(())).reply();
        let state = Decode!(&reply, Result<State, String>).expect("the canister's own type").expect("it can be read");
        assert_eq!(state.2, "ok");
        state
    }

    /// Back to a stable memory, as after an upgrade.
    fn restore(&mut self, stable: &[u8]) {
        self.replica.install(self.id, InstallMode::Reinstall, &engine_wasm(), &[], Principal::anonymous()).reply();
        self.replica.set_stable_memory(self.id, stable).expect("it fits");
        self.replica.install(self.id, InstallMode::UPGRADE, &engine_wasm(), &[], Principal::anonymous()).reply();
    }
}

#[test]
fn a_transaction_of_any_kind_that_is_stopped_leaves_no_trace() {
    let mut canister = Canister::deploy();
    let stable = canister.replica.stable_memory(canister.id).unwrap();
    let mut met = 0;
    for (name, sql) in WRITES {
        canister.restore(&stable);
        let before = canister.state();
        let cost = canister.update("run", &encode((sql,))).cost;
        let after = canister.state();
        assert_ne!(before.0, after.0, "{name}");
        let mut faults: Vec<Fault> = (1..=8)
            .map(|part| Fault { trap_after_instructions: Some(cost.instructions * part / 12), ..Fault::default() })
            .collect();
        faults.push(Fault { fail_stable_grow: Some(1), ..Fault::default() });
        let writes = [1, 2, 3, 4, 5, 7, 11, 20];
        faults.extend(writes.map(|n| Fault { fail_stable_write: Some(n), ..Fault::default() }));
        canister.restore(&stable);
        for fault in faults {
            canister.replica.set_fault(fault);
            let outcome = canister.run(sql);
            canister.replica.clear_fault();
            if outcome.is_ok() {
                // The fault was not met: there were fewer writes.
                assert!(fault.trap_after_instructions.is_none(), "{name}: {fault:?}");
                assert_eq!(canister.state().0, after.0, "{name}: {fault:?}");
                canister.restore(&stable);
                continue;
            }
            met += 1;
            assert_eq!(canister.state(), before, "{name}: {fault:?}: {outcome:?}");
        }
        canister.run(sql).unwrap_or_else(|error| panic!("{name}: the next transaction failed: {error}"));
        assert_eq!(canister.state().0, after.0, "{name}");
    }
    assert!(met > 150, "only {met} faults were met");
}

/// What is kept back for COMMIT is enough, and not much too much.
#[test]
fn a_commit_takes_at_most_what_is_kept_back_for_it() {
    let mut canister = Canister::deploy();
    for sql in [
        "UPDATE kv SET value = 'z' WHERE key = '0009'",
        "UPDATE kv SET value = printf('%0100d', 7)",
        "INSERT INTO kv VALUES ('large', printf('%0400000d', 1))",
        "INSERT INTO log(key) VALUES (zeroblob(4000000))",
        "CREATE INDEX main.by_value ON kv(value)",
    ] {
        let (instructions, pages) = canister.run(sql).unwrap();
        let reserve = commit_reserve(u32::try_from(pages).unwrap(), 4_096);
        assert!(instructions <= reserve, "{sql}: {pages} pages took {instructions}, {reserve} are kept back");
        assert!(instructions * 3 > reserve, "{sql}: {pages} pages took {instructions}, {reserve} are kept back");
    }
}
