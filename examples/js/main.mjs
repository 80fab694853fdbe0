// Keys and values, then SQL, and the errors of both, in a running icsql. It can be run again and again.
//
// usage: node main.mjs URL CANISTER_ID
//   URL   http://127.0.0.1:8008 for the local replica, https://icp-api.io for the Internet Computer
import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { RejectError } from "@icp-sdk/core/agent";
import { Ed25519KeyIdentity } from "@icp-sdk/core/identity";
import { IcsqlError, connect, unwrap } from "./icsql.mjs";

const [host, canisterId] = parseArgs({ allowPositionals: true }).positionals;
if (!canisterId) {
  console.error("usage: node main.mjs URL CANISTER_ID");
  process.exit(2);
}

/** Runs what must fail with an error of this kind, and answers its details. */
async function refused(kind, call) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof IcsqlError) || error.kind !== kind) throw error;
    return error.details;
  }
  throw new Error(`it was done, and should have been refused with ${kind}`);
}

// Canisters that were deployed with icp-cli's anonymous identity are controlled by nobody in particular.
const db = await connect(host, canisterId);

// Keys and values, by the methods of the contract as they are.
const { version } = unwrap(await db.actor.kv_put("js/greeting", "hello from JavaScript", []));
console.log(`put: version ${version}`);
// An `opt` is an empty list or a list of one.
const [value] = unwrap(await db.actor.kv_get("js/greeting"));
console.log(`get: ${value}`);
const [absent] = unwrap(await db.actor.kv_get("js/nothing"));
console.log(`get of a key that is not there: ${absent}`);
// An error of icsql is a case of a variant, with fields.
const empty = await refused("InvalidArgument", async () => unwrap(await db.actor.kv_put("", "no key", [])));
console.log(`put without a key: InvalidArgument, ${empty.argument}: ${empty.message}`);

// A table, by a migration: it is applied once, and passed over when it was applied before. A program that has the database to
// itself numbers its migrations 1, 2, 3, …; this one shares it with others, so it takes the next number.
const known = unwrap(await db.actor.sql_migrations());
const mine = known.find(({ name }) => name === "js_book");
const applied = await db.migrate([
  {
    version: mine?.version ?? Math.max(0, ...known.map(({ version }) => version)) + 1,
    name: "js_book",
    sql: `CREATE TABLE js_book(id INTEGER PRIMARY KEY, isbn TEXT NOT NULL UNIQUE, title TEXT NOT NULL, year INTEGER NOT NULL) STRICT;
          CREATE INDEX js_book_year ON js_book(year)`,
  },
]);
console.log(`migrations applied: ${applied.length ? applied : "none, it was done before"}`);

// All in one transaction, and with a key: if the answer is lost, the same call is made again and nothing is done twice.
const insert = "INSERT INTO js_book(isbn, title, year) VALUES (?1, ?2, ?3)";
const changes = await db.batch(
  [
    ["DELETE FROM js_book"],
    [insert, ["0-201-03801-3", "The Art of Computer Programming 1", 1968]],
    [insert, ["0-262-01077-1", "Structure and Interpretation of Computer Programs", 1985]],
    [insert, ["0-13-110163-3", "The C Programming Language", 1978]],
  ],
  { idempotencyKey: randomUUID() },
);
console.log(`batch: ${changes.slice(1)} rows inserted`);

// RETURNING answers rows; parameters can have names.
const { rows: returned, cost } = await db.execute(
  "INSERT INTO js_book(isbn, title, year) VALUES (:isbn, :title, :year) RETURNING title, year, year > 1980 AS recent",
  { isbn: "1-59327-828-4", title: "The Rust Programming Language", year: 2018 },
);
console.log(`execute: ${JSON.stringify(returned)}, ${cost.pages_written} pages written`);

// Page by page, here of two rows. Values are never pasted into the text of a statement.
for await (const { rows, stop } of db.pages(
  "SELECT title FROM js_book WHERE year < ?1 ORDER BY year",
  [2_000],
  { maxRows: 2 },
)) {
  console.log(`page: ${rows.map((row) => row.title).join(", ")} (${Object.keys(stop)[0]})`);
}

// A query that an admin defines once, with its parameters' types and its limits, and that anybody may call.
await db.actor.query_drop("js_books_since", []); // NotFound the first time, which does not matter.
unwrap(
  await db.actor.query_define(
    {
      name: "js_books_since",
      sql: "SELECT title, year FROM js_book WHERE year >= :year ORDER BY year",
      params: [{ name: "year", type_name: "integer", nullable: false }],
      callers: { Public: null },
      max_rows: [10],
      max_bytes: [],
      max_instructions: [10_000_000n],
      allow_full_scan: [],
    },
    [],
  ),
);
const stranger = await connect(host, canisterId, Ed25519KeyIdentity.generate());
console.log(`named query, as a stranger: ${JSON.stringify(await stranger.call("js_books_since", { year: 1_980 }))}`);

// Errors say what happened and where; nothing was changed by a call that ends with one.
const twice = await refused("Sqlite", () => db.execute(insert, ["0-13-110163-3", "The same again", 1_988]));
console.log(`a second row of an ISBN: Sqlite, code ${twice.code} (constraint, unique): ${twice.message}`);
const typo = await refused("Sqlite", () => db.query("SELECT titel FROM js_book"));
console.log(`a wrong column: Sqlite, code ${typo.code} at byte ${typo.offset[0]}: ${typo.message}`);
const dear = await refused("BudgetExceeded", () =>
  db.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n", [], {
    maxInstructions: 1_000_000n,
  }),
);
console.log(`a query without an end: BudgetExceeded, ${dear.limit} ${dear.what}`);
const wrong = await refused("InvalidArgument", () => stranger.call("js_books_since", { year: "1980" }));
console.log(`a parameter of another type: InvalidArgument, ${wrong.argument}: ${wrong.message}`);
const denied = await refused("Forbidden", () => stranger.query("SELECT * FROM js_book"));
console.log(`SQL as a stranger: Forbidden, for ${denied.allowed}`);

// Whoever may not write is turned away by the replica itself, before the call costs anything.
try {
  await stranger.execute("DELETE FROM js_book");
  throw new Error("a stranger could write");
} catch (error) {
  if (!(error instanceof RejectError)) throw error;
  console.log(`a write as a stranger: rejected, ${error.code.rejectErrorCode}`);
}
