// Puts, gets, and meets an error, in a running icsql.
//
// usage: node main.mjs URL CANISTER_ID
//   URL   http://127.0.0.1:8008 for the local replica, https://icp-api.io for the Internet Computer
import { parseArgs } from "node:util";
import { Actor, HttpAgent, RejectError } from "@icp-sdk/core/agent";
import { Ed25519KeyIdentity } from "@icp-sdk/core/identity";
// Made from candid/icsql.did by `npm run generate`.
import { idlFactory } from "./bindings/icsql.did.js";

const [host, canisterId] = parseArgs({ allowPositionals: true }).positionals;
if (!canisterId) {
  console.error("usage: node main.mjs URL CANISTER_ID");
  process.exit(2);
}

// A local network has a root key of its own, which has to be fetched; that of the Internet Computer is built in. Either
// way the agent checks the certificate of every update and the signature of every query.
const shouldFetchRootKey = ["127.0.0.1", "localhost"].includes(new URL(host).hostname);

/** @returns {Promise<import("./bindings/icsql.did.d.ts")._SERVICE>} icsql, called as this identity; as nobody without one. */
async function icsql(identity) {
  const agent = await HttpAgent.create({ host, identity, shouldFetchRootKey, verifyQuerySignatures: true });
  return Actor.createActor(idlFactory, { agent, canisterId });
}

/** The value of `{ Ok }`; `{ Err }` is thrown as an IcsqlError. */
function unwrap(answer) {
  if ("Ok" in answer) return answer.Ok;
  const [[kind, details]] = Object.entries(answer.Err);
  throw new IcsqlError(kind, details);
}

/** What icsql refused: `kind` is a case of `Error` in candid/icsql.did, `details` are its fields. Nothing was changed. */
class IcsqlError extends Error {
  constructor(kind, details) {
    super(`${kind}: ${JSON.stringify(details, (_, value) => (typeof value === "bigint" ? String(value) : value))}`);
    this.kind = kind;
    this.details = details;
  }
}

// Canisters that were deployed with icp-cli's anonymous identity are controlled by nobody in particular.
const db = await icsql();
const { version } = unwrap(await db.kv_put("js/greeting", "hello from JavaScript", []));
console.log(`put: version ${version}`);
// An `opt` is an empty list or a list of one.
const [value] = unwrap(await db.kv_get("js/greeting"));
console.log(`get: ${value}`);
const [absent] = unwrap(await db.kv_get("js/nothing"));
console.log(`get of a key that is not there: ${absent}`);

// An error of icsql is a case of a variant, with fields.
try {
  unwrap(await db.kv_put("", "no key", []));
  throw new Error("an empty key was taken");
} catch (error) {
  if (!(error instanceof IcsqlError) || error.kind !== "InvalidArgument") throw error;
  console.log(`put without a key: ${error.kind}, ${error.details.argument}: ${error.details.message}`);
}

// Whoever may not write is turned away by the replica itself, before the call costs anything.
const stranger = await icsql(Ed25519KeyIdentity.generate());
try {
  unwrap(await stranger.kv_put("js/greeting", "changed", []));
  throw new Error("a stranger could write");
} catch (error) {
  if (!(error instanceof RejectError)) throw error;
  console.log(`put as a stranger: rejected, ${error.code.rejectErrorCode}`);
}
