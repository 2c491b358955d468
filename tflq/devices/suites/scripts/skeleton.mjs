// A target of tflq's conformance suites, in node. It is complete: it runs RESHAPE, and refuses everything else.
//
//     tflq conform make -o suite.npz --level smoke
//     tflq conform run suite.npz --target "node my_target.mjs"
//
// Replace `runModel` by a call of your system; the rest is the protocol.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const SIZES = { bool: 1, int8: 1, uint8: 1, int16: 2, float16: 2, int32: 4, float32: 4, int64: 8, float64: 8 };

/** The system does not support a model. The text is the reason, which reports group: keep it general. */
class Refused extends Error {}

/**
 * Run a model once; return the bytes of its outputs as Buffers, little endian, in C order.
 *
 * `model` is the path of the .tflite file, `operator` the lower-case name of its one operator. Each of `inputs` has
 * type, shape and data (a Buffer), each of `outputs` type and shape. Throw Refused if your system does not support it.
 */
async function runModel(model, operator, inputs, outputs) {
  if (operator !== "reshape" || inputs.length !== 1 || outputs.length !== 1) throw new Refused(`no kernel for ${operator}`);
  if (inputs[0].type !== outputs[0].type || elements(inputs[0].shape) !== elements(outputs[0].shape)) {
    throw new Refused("RESHAPE to another number of elements");
  }
  return [inputs[0].data];
}

const elements = (shape) => shape.reduce((count, size) => count * size, 1);

/** Read case.txt: the number of samples, and type and shape of each input and each output. */
function readDescription(place) {
  const found = { samples: 0, inputs: [], outputs: [] };
  for (const line of readFileSync(join(place, "case.txt"), "utf8").trim().split("\n")) {
    const [kind, first, ...rest] = line.split(/\s+/);
    if (kind === "samples") found.samples = Number(first);
    else found[`${kind}s`].push({ type: first, shape: rest.map(Number) });
  }
  return found;
}

/** Do one case: read in0_0.bin ..., write out0_0.bin ..., each sample on its own. */
async function answer(place) {
  const { samples, inputs, outputs } = readDescription(place);
  if (!outputs.length) throw new Refused("a model that a target must refuse"); // refuse it by its file
  const operator = basename(place).slice(basename(place).indexOf("-") + 1); // cases are named NUMBER-operator
  const results = new Map();
  for (let sample = 0; sample < samples; sample++) {
    const given = inputs.map((input, i) => ({ ...input, data: readFileSync(join(place, `in${sample}_${i}.bin`)) }));
    const made = await runModel(join(place, "model.tflite"), operator, given, outputs);
    for (const [i, { type, shape }] of outputs.entries()) {
      if (made[i].length !== elements(shape) * SIZES[type]) throw new Error(`output ${i} has ${made[i].length} bytes`);
      results.set(`out${sample}_${i}.bin`, made[i]);
    }
  }
  for (const [name, data] of results) writeFileSync(join(place, name), data); // last: a failure leaves no half an answer
}

// A crash costs one case: tflq then calls again for the cases after it.
const folder = process.argv.at(-1);
for (const name of readFileSync(join(folder, "cases.txt"), "utf8").split(/\s+/).filter(Boolean)) {
  try {
    await answer(join(folder, name));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    writeFileSync(join(folder, name, "refused.txt"), error.message.replace(/\s+/g, " "));
  }
}
