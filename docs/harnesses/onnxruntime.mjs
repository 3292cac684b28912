// A harness for ONNX Runtime in Node, its packages onnxruntime-web (WebAssembly) and onnxruntime-node (native):
//
//   npm install onnxruntime-web --ignore-scripts
//   rnncli verify vectors/core --harness 'node docs/harnesses/onnxruntime.mjs onnxruntime-web'
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const name = process.argv[2] ?? "onnxruntime-web";
const require = createRequire(join(process.cwd(), "node_modules", "here.js"));
const ort = require(name);
const version = ort.env.versions[name.replace("onnxruntime-", "")];
const executionProviders = [name === "onnxruntime-web" ? "wasm" : "cpu"];
ort.env.logLevel = "fatal";
ort.env.wasm.numThreads = 1;

// Element type -> the array that holds it; 16-bit types travel as their bits.
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  int64: BigInt64Array,
};
let loaded = { model: "", session: null };

async function session(model) {
  if (loaded.model !== model) {
    const options = { executionProviders, intraOpNumThreads: 1 };
    loaded = { model, session: await ort.InferenceSession.create(readFileSync(model), options) };
  }
  return loaded.session;
}

function tensor({ file, dtype, shape }) {
  if (!(dtype in ARRAYS)) throw new Error(`its tensors cannot be ${dtype}`);
  const bytes = readFileSync(file);
  const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return new ort.Tensor(dtype, new ARRAYS[dtype](own), shape);
}

async function run({ model, inputs, outputs, dir }) {
  const feeds = Object.fromEntries(Object.entries(inputs).map(([name, row]) => [name, tensor(row)]));
  const made = await (await session(model)).run(feeds, outputs);
  return Object.fromEntries(
    outputs.map((name) => {
      const { data, type, dims } = made[name];
      writeFileSync(join(dir, `${name}.bin`), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
      return [name, { file: `${name}.bin`, dtype: type, shape: dims }];
    }),
  );
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.cmd === "stop") break;
  let reply = { version: 1, implementation: { name, version, language: "JavaScript" } };
  if (request.cmd === "run") {
    // It throws whatever it does not implement or accept.
    reply = await run(request).then(
      (outputs) => ({ outputs }),
      (error) => ({ skipped: true, message: String(error.message ?? error) }),
    );
    reply = { seq: request.seq, ...reply };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
process.exit(0);
