// Fails unless a Wasm imports nothing but the IC's system API.
//
// usage: node scripts/check-wasm.mjs FILE
import { readFileSync } from "node:fs";

const file = process.argv[2];
const module = new WebAssembly.Module(readFileSync(file));
const foreign = WebAssembly.Module.imports(module).filter(({ module, kind }) => module !== "ic0" || kind !== "function");
if (foreign.length > 0) {
  console.error(`error: ${file} imports what no canister is given:`);
  for (const { module, name, kind } of foreign) console.error(`  ${module}.${name} (${kind})`);
  console.error("An import from `env` is a C function that nobody defines: see canister/engine/libc.");
  process.exit(1);
}
