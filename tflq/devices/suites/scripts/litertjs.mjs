// LiteRT.js (WebAssembly, XNNPACK) in node as a target, in the protocol of docs/target-protocol.md.
//
//     npm install @litertjs/core
//     tflq learn --target litertjs --types uint8 -o litert-js.yaml
//
// The package is looked up from the current folder. Its interface takes float32, int32 and 8-bit unsigned tensors:
// models with other inputs or outputs are refused with its own words.

import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const ARRAYS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array, int16: Int16Array };

/** Load the package. It was written for browsers: give it the two names of theirs that it needs. */
async function runtime() {
  const entry = createRequire(join(process.cwd(), "package.json")).resolve("@litertjs/core");
  const code = join(dirname(entry), "..", "wasm");
  globalThis.self = globalThis;
  globalThis.importScripts = (path) => vm.runInThisContext(readFileSync(path, "utf8"), { filename: path });
  globalThis.require = createRequire(entry);
  globalThis.__dirname = code;
  globalThis.__filename = join(code, "litert_wasm_internal.js");
  console.log = console.info = console.warn = () => {}; // the delegate reports itself for each model
  const litert = await import(pathToFileURL(entry).href);
  await litert.loadLiteRt(code + "/");
  return litert;
}

function described(place) {
  const facts = { samples: 0, inputs: [], outputs: [] };
  for (const line of readFileSync(join(place, "case.txt"), "utf8").trim().split("\n")) {
    const [kind, type, ...shape] = line.split(/\s+/);
    if (kind === "samples") facts.samples = Number(type);
    if (kind === "input") facts.inputs.push({ type, shape: shape.map(Number) });
    if (kind === "output") facts.outputs.push({ type, shape: shape.map(Number) });
  }
  return facts;
}

function read(path, { type }) {
  if (!(type in ARRAYS)) throw new TypeError(`${type} is not a type of LiteRT.js`);
  const bytes = readFileSync(path);
  return new ARRAYS[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

async function answer(litert, place) {
  const facts = described(place);
  const model = await litert.loadAndCompile(new Uint8Array(readFileSync(join(place, "model.tflite"))), {
    accelerator: "wasm",
  });
  try {
    const results = new Map();
    for (let sample = 0; sample < facts.samples; sample++) {
      const given = facts.inputs.map(
        (input, i) => new litert.Tensor(read(join(place, `in${sample}_${i}.bin`), input), input.shape),
      );
      const made = await model.run(given);
      for (const [i, output] of facts.outputs.entries()) {
        const data = await made[i].data();
        if (data.constructor !== ARRAYS[output.type]) {
          throw new TypeError(`output ${i} is ${data.constructor.name}, not ${output.type}`);
        }
        results.set(`out${sample}_${i}.bin`, Buffer.from(data.slice().buffer));
      }
      for (const tensor of [...given, ...made]) tensor.delete();
    }
    for (const [name, bytes] of results) writeFileSync(join(place, name), bytes);
  } finally {
    model.delete();
  }
}

const folder = process.argv.at(-1);
const litert = await runtime();
for (const name of readFileSync(join(folder, "cases.txt"), "utf8").trim().split(/\s+/)) {
  const place = join(folder, name);
  try {
    await answer(litert, place);
  } catch (error) {
    writeFileSync(join(place, "refused.txt"), String(error).replace(/\s+/g, " ").slice(0, 300));
  }
}
process.exit(0);
