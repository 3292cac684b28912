// A harness for one forward RNN layer with Tanh, all float32: node harness.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const DEFAULTS = { direction: "forward", layout: 0, activations: "Tanh" };
const REPEATED = ["hidden_size", "output_sequence"]; // which shapes and requested outputs say

function refusal({ operator, dtype, attributes, quantise }) {
  if (!operator.startsWith("RNN-")) return `no ${operator}`;
  if (dtype !== "float32") return `no ${dtype}`;
  if (quantise) return "no integers";
  const others = Object.keys(attributes).filter((name) => !REPEATED.includes(name));
  const extra = others.filter((name) => `${attributes[name]}` !== `${DEFAULTS[name]}`);
  return extra.length ? `no ${extra.join(", ")}` : "";
}

// The elements of an input, of four bytes each; undefined if there is no such input.
function load(Elements, tensor) {
  return tensor && new Elements(new Uint8Array(readFileSync(tensor.file)).buffer);
}

function run({ X, W, R, B, sequence_lens, initial_h }) {
  const [T, N, I] = X.shape;
  const H = R.shape[2];
  const [x, w, r, b, h0] = [X, W, R, B, initial_h].map((tensor) => load(Float32Array, tensor));
  const lengths = load(Int32Array, sequence_lens);
  const y = new Float32Array(T * N * H);
  const h = h0 ?? new Float32Array(N * H);
  for (let row = 0; row < T * N; row++) {
    const n = row % N;
    if (lengths && (row - n) / N >= lengths[n]) continue; // Y stays 0, and the state as it is
    for (let u = 0; u < H; u++) {
      let sum = b ? b[u] + b[H + u] : 0;
      for (let i = 0; i < I; i++) sum += w[u * I + i] * x[row * I + i];
      for (let j = 0; j < H; j++) sum += r[u * H + j] * h[n * H + j];
      y[row * H + u] = Math.tanh(sum);
    }
    h.set(y.subarray(row * H, (row + 1) * H), n * H);
  }
  return { Y: [y, [T, 1, N, H]], Y_h: [h, [1, N, H]] };
}

function answer({ seq, case: node, inputs, initializers, outputs, dir }) {
  const message = refusal(node);
  if (message) return { seq, skipped: true, message };
  const found = run({ ...inputs, ...initializers });
  const saved = outputs.map((name) => {
    const [data, shape] = found[name];
    writeFileSync(join(dir, `${name}.bin`), data);
    return [name, { file: `${name}.bin`, dtype: "float32", shape }];
  });
  return { seq, outputs: Object.fromEntries(saved) };
}

const implementation = { name: "my-kernel", version: "1.0", language: "JavaScript" };
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.cmd === "stop") break;
  const reply = request.cmd === "run" ? answer(request) : { version: 1, implementation };
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
