// Sends memory.copy and memory.fill through memmove and memset of canister/engine/libc/libc.c: the IC counts 100 instructions and
// one per byte for either operator, a third of a byte for those functions.
//
// rustc cannot be told to leave the two operators alone, since the standard library comes compiled with them. wasm-opt's
// lowering pass turns each into a call of a function that it adds, which copies byte by byte. This replaces the bodies of
// those functions in the text that wasm-opt wrote.
//
// usage: node scripts/memory-calls.mjs FILE.wat
import { readFileSync, writeFileSync } from "node:fs";

const file = process.argv[2];
let text = readFileSync(file, "utf8");

for (const [added, ours] of [["__memory_copy", "memmove"], ["__memory_fill", "memset"]]) {
  const start = text.indexOf(`\n (func $${added} `);
  if (start < 0) continue; // The operator does not occur.
  if (!text.includes(`\n (func $${ours} `)) {
    console.error(`error: ${file} has no function ${ours}; is canister/engine/libc/libc.c linked in, with its names?`);
    process.exit(1);
  }
  const signature = text.slice(start, text.indexOf("\n", start + 1));
  const parameters = [...signature.matchAll(/\(param (\$\S+) i32\)/g)].map((match) => match[1]);
  if (parameters.length !== 3) {
    console.error(`error: ${added} looks otherwise than expected: ${signature.trim()}`);
    process.exit(1);
  }
  const end = text.indexOf("\n )\n", start) + "\n )\n".length;
  const values = parameters.map((name) => `(local.get ${name})`).join(" ");
  text = `${text.slice(0, start)}${signature}\n  (drop (call $${ours} ${values}))\n )\n${text.slice(end)}`;
}
writeFileSync(file, text);
