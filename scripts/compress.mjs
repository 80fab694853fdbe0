// Compresses a file as gzip does, by about 4 % better: what a canister is installed from counts in bytes.
//
//   node scripts/compress.mjs FILE COMPRESSED
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

const [input, output] = process.argv.slice(2);
const tools = path.join(import.meta.dirname, "../.tools/");
const zopfli = createRequire(tools)("@gfx/zopfli");
await writeFile(output, await zopfli.gzipAsync(await readFile(input), { numiterations: 5 }));
