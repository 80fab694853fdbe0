// icsql for JavaScript programs: the actor of @icp-sdk/core with values, pages and errors as JavaScript has them. Copy it.
import { Actor, HttpAgent } from "@icp-sdk/core/agent";
// Made from candid/icsql.did by `npm run generate`.
import { idlFactory } from "./bindings/icsql.did.js";

/** What icsql refused: `kind` is a case of `Error` in candid/icsql.did, `details` are its fields. Nothing was changed. */
export class IcsqlError extends Error {
  constructor(kind, details) {
    super(`${kind}: ${JSON.stringify(details, (_, value) => (typeof value === "bigint" ? String(value) : value))}`);
    this.kind = kind;
    this.details = details;
  }
}

/** The value of `{ Ok }`; `{ Err }` is thrown as an IcsqlError. */
export function unwrap(answer) {
  if ("Ok" in answer) return answer.Ok;
  const [[kind, details]] = Object.entries(answer.Err);
  throw new IcsqlError(kind, details);
}

/** Candid's `opt`: nothing for null and undefined. */
const opt = (value) => (value === null || value === undefined ? [] : [value]);

/** A value as SQL takes it. Whole numbers are INTEGER, others REAL; `{ Real: 1 }` and the like say it themselves. */
export function toSql(value) {
  if (value === null || value === undefined) return { Null: null };
  if (typeof value === "bigint") return { Integer: value };
  if (typeof value === "boolean") return { Integer: value ? 1n : 0n };
  if (typeof value === "number") return Number.isSafeInteger(value) ? { Integer: BigInt(value) } : { Real: value };
  if (typeof value === "string") return { Text: value };
  if (value instanceof Uint8Array) return { Blob: value };
  return value;
}

/** A value of a row. An INTEGER that a number cannot hold exactly is a bigint. */
export function fromSql(value) {
  const [[type, inner]] = Object.entries(value);
  if (type !== "Integer") return inner;
  const number = Number(inner);
  return Number.isSafeInteger(number) ? number : inner;
}

/** Parameters: a list by position, an object by name. */
export function toParams(params) {
  if (params === undefined) return { None: null };
  if (Array.isArray(params)) return { Positional: params.map(toSql) };
  return { Named: Object.entries(params).map(([name, value]) => [name, toSql(value)]) };
}

/** Rows as objects, by the names of the columns. */
const objects = ({ columns, rows }) =>
  rows.map((row) => Object.fromEntries(row.map((value, index) => [columns[index], fromSql(value)])));

/** A page of `sql_query` or `query_call`, its rows as objects. */
const page = (found) => ({ ...found, rows: objects(found) });

const readOptions = ({ maxRows, maxBytes, maxInstructions, cursor, allowChanged } = {}) => ({
  max_rows: opt(maxRows),
  max_bytes: opt(maxBytes),
  max_instructions: opt(maxInstructions),
  cursor: opt(cursor),
  allow_changed: opt(allowChanged),
});

const writeOptions = ({ idempotencyKey, maxRows, maxBytes, maxInstructions, maxPages } = {}) => ({
  idempotency_key: opt(idempotencyKey),
  max_rows: opt(maxRows),
  max_bytes: opt(maxBytes),
  max_instructions: opt(maxInstructions),
  max_pages: opt(maxPages),
});

/** An icsql canister. `actor` has all methods of candid/icsql.did as they are; the methods here are those for SQL. */
export class Icsql {
  constructor(/** @type {import("./bindings/icsql.did.d.ts")._SERVICE} */ actor) {
    this.actor = actor;
  }

  /** Applies those of a list of `{ version, name, sql }` that were not applied yet, and answers their versions. */
  async migrate(migrations) {
    return [...unwrap(await this.actor.sql_migrate(migrations, [])).applied];
  }

  /** Runs a statement that writes: `{ changes, lastRowid, rows, cost, … }`, the rows are those of RETURNING. */
  async execute(sql, params, options) {
    const statement = { sql, params: [toParams(params)] };
    const done = unwrap(await this.actor.sql_execute(statement, [writeOptions(options)]));
    return { ...done, lastRowid: done.last_rowid, rows: objects(done) };
  }

  /** Runs `[sql, params]`s in one transaction: all happen or none. Answers how many rows each changed. */
  async batch(statements, options) {
    const list = statements.map(([sql, params]) => ({ sql, params: [toParams(params)] }));
    const done = unwrap(await this.actor.sql_batch(list, [writeOptions(options)]));
    return done.results.map((result) => Number(result.changes));
  }

  /** The rows of the first page of a statement that reads: up to 1,000 unless `maxRows` says more. */
  async query(sql, params, options) {
    for await (const { rows } of this.pages(sql, params, options)) return rows;
  }

  /** All pages of a statement that reads. A page's cursor asks for the next; if somebody writes in between, a `Conflict`
   * is thrown, unless `allowChanged` is set. Each page runs the statement from its start: read long tables by their key. */
  async *pages(sql, params, options = {}) {
    const statement = { sql, params: [toParams(params)] };
    for (let cursor = options.cursor; ; ) {
      const found = unwrap(await this.actor.sql_query(statement, [readOptions({ ...options, cursor })]));
      yield page(found);
      [cursor] = found.cursor;
      if (cursor === undefined) return;
    }
  }

  /** The rows of the first page of a named query. */
  async call(name, params, options) {
    return page(unwrap(await this.actor.query_call(name, toParams(params), [readOptions(options)]))).rows;
  }
}

/** icsql at a host, called as this identity; as nobody without one. */
export async function connect(host, canisterId, identity) {
  // A local network has a root key of its own, which has to be fetched; that of the Internet Computer is built in. Either
  // way the agent checks the certificate of every update and the signature of every query.
  const shouldFetchRootKey = ["127.0.0.1", "localhost"].includes(new URL(host).hostname);
  const agent = await HttpAgent.create({ host, identity, shouldFetchRootKey, verifyQuerySignatures: true });
  return new Icsql(Actor.createActor(idlFactory, { agent, canisterId }));
}
