// A harness for webnn-baseline, WebNN's operators in double precision, in Node:
//
//   git clone https://github.com/webmachinelearning/webnn-baseline
//   rnncli verify webnn/ --harness 'node docs/harnesses/webnn_baseline.mjs webnn-baseline'
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const checkout = process.argv[2] ?? "webnn-baseline";
const { version } = JSON.parse(readFileSync(join(checkout, "package.json")));

async function load(file) {
  return import(pathToFileURL(resolve(checkout, "src", file)));
}

const { Tensor } = await load("lib/tensor.js");
const { relu } = await load("relu.js");
const { sigmoid } = await load("sigmoid.js");
const { tanh } = await load("tanh.js");
const FUNCTIONS = { relu, sigmoid, tanh };

// Operator -> its method, the method's arguments before the options, and its outputs, in order.
const SEQUENCE = ["input", "weight", "recurrentWeight", "steps", "hiddenSize"];
const CELL = ["input", "weight", "recurrentWeight", "hiddenState"];
const OPERATORS = {
  "webnn.gru": [(await load("gru.js")).gru, SEQUENCE, ["outputHidden", "outputSequence"]],
  "webnn.gruCell": [(await load("gru_cell.js")).gruCell, [...CELL, "hiddenSize"], ["outputHidden"]],
  "webnn.lstm": [
    (await load("lstm.js")).lstm,
    SEQUENCE,
    ["outputHidden", "outputCell", "outputSequence"],
  ],
  "webnn.lstmCell": [
    (await load("lstm_cell.js")).lstmCell,
    [...CELL, "cellState", "hiddenSize"],
    ["outputHidden", "outputCell"],
  ],
};

// Element type -> its array, and conversions from and to numbers if it holds their bits.
const ARRAYS = {
  float64: { array: Float64Array },
  float32: { array: Float32Array },
  float16: { array: Uint16Array, decode: fromHalf, encode: toHalf },
};

function fromHalf(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const magnitude = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  const value = exponent < 31 ? magnitude : fraction ? NaN : Infinity;
  return bits >> 15 ? -value : value;
}

// Round to the nearest, ties to even; bits of neighbours are neighbours, across powers of two, too.
function toHalf(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(magnitude)), -14);
  const units = magnitude / 2 ** (exponent - 10);
  const below = Math.floor(units);
  const up = units - below > 0.5 || (units - below === 0.5 && below % 2 === 1);
  return sign | (((exponent + 14) << 10) + below + up);
}

function tensor({ file, dtype, shape }) {
  if (!(dtype in ARRAYS)) throw new Error(`no tensors of ${dtype}`);
  const { array, decode = Number } = ARRAYS[dtype];
  const bytes = readFileSync(file);
  const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return new Tensor(shape, Array.from(new array(own), decode));
}

function run({ case: node, inputs, initializers, outputs, dir }) {
  if (!(node.operator in OPERATORS)) throw new Error(`no operator ${node.operator}`);
  const [method, names, results] = OPERATORS[node.operator];
  const options = { ...node.attributes };
  if (options.activations) {
    options.activations = options.activations.map((name) => {
      if (!(name in FUNCTIONS)) throw new Error(`no activation ${name}`);
      return FUNCTIONS[name];
    });
  }
  for (const [name, row] of Object.entries({ ...inputs, ...initializers })) options[name] = tensor(row);
  const made = [method(...names.map((name) => options[name]), options)].flat();
  const { array, encode = Number } = ARRAYS[node.dtype];
  return Object.fromEntries(
    outputs.map((name) => {
      const { data, shape } = made[results.indexOf(name)];
      writeFileSync(join(dir, `${name}.bin`), new array(data.map(encode)));
      return [name, { file: `${name}.bin`, dtype: node.dtype, shape }];
    }),
  );
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.cmd === "stop") break;
  let reply = { version: 1, implementation: { name: "webnn-baseline", version, language: "JavaScript" } };
  if (request.cmd === "run") {
    reply = { seq: request.seq };
    try {
      reply.outputs = run(request);
    } catch (error) {
      // It throws whatever it does not accept.
      Object.assign(reply, { skipped: true, message: error.message });
    }
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
