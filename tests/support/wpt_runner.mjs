// Runs a test of web-platform-tests for WebNN without a browser, and prints what each case did:
//
//   node wpt_runner.mjs TEST FOLDER stored SHIFT    answers are the pack's, off by SHIFT tolerances
//   node wpt_runner.mjs TEST FOLDER reading         ... those of the first other reading, if there is one
//   node wpt_runner.mjs TEST FOLDER baseline PATH   answers are those of a checkout of webnn-baseline
//
// FOLDER has what TEST reads. The functions here do as those of the same names in webnn/resources/utils.js.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [test, folder, mode, argument] = process.argv.slice(2);

globalThis.XMLHttpRequest = class {
  open(method, path) {
    this.path = join(folder, path);
  }
  send() {
    this.responseText = readFileSync(this.path, "utf8");
    this.status = 200;
  }
};
globalThis.assert_true = (holds, message) => {
  if (!holds) throw new Error(message);
};
globalThis.float16AsUint16ToNumber = (bits) => {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const magnitude = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  const value = exponent < 31 ? magnitude : fraction ? NaN : Infinity;
  return bits >> 15 ? -value : value;
};
globalThis.webnn_conformance_test = async (tests, build, tolerance) => {
  const said = {};
  for (const { name, graph } of tests) {
    try {
      const { result } = await build(null, null, graph);
      tolerance(graph);
      said[name] = Object.keys(result).length ? "results are left" : null;
    } catch (error) {
      said[name] = error.message;
    }
  }
  process.stdout.write(JSON.stringify(said));
};

function stored({ expectedOutputs }, shift) {
  return Object.fromEntries(
    Object.entries(expectedOutputs).map(([name, { data, tolerance, descriptor }]) => {
      const values = data.map(Number);
      if (shift) return [name, values.map((value, k) => value + shift * Number(tolerance[k]))];
      return [name, descriptor.dataType === "float16" ? Uint16Array.from(values, toHalf) : values];
    }),
  );
}

// The bits of a value that float16 has.
function toHalf(value) {
  for (let bits = 0; bits < 0x10000; bits++) {
    if (Object.is(float16AsUint16ToNumber(bits), value)) return bits;
  }
  throw new Error(`${value} is not a number of float16`);
}

async function computed({ inputs, operators: [{ name, arguments: args, outputs }] }) {
  const load = async (file) => import(pathToFileURL(resolve(argument, "src", file)));
  const { Tensor } = await load("lib/tensor.js");
  const method = (await load(`${name.replace("Cell", "_cell")}.js`))[name];
  const functions = {};
  for (const each of ["relu", "sigmoid", "tanh"]) functions[each] = (await load(`${each}.js`))[each];
  const operands = Object.fromEntries(
    Object.entries(inputs).map(([name, { data, descriptor }]) => [
      name,
      new Tensor(descriptor.shape, data.map(Number)),
    ]),
  );
  const operand = (value) => (typeof value === "string" && operands[value]) || value;
  const positional = args.flatMap((each) =>
    Object.entries(each).map(([name, value]) => {
      if (name !== "options") return operand(value);
      const options = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, operand(v)]));
      if (options.activations) options.activations = options.activations.map((k) => functions[k]);
      return options;
    }),
  );
  if (!args.some((each) => "options" in each)) positional.push({}); // which webnn-baseline requires
  const made = method(...positional);
  const named = Array.isArray(outputs) ? outputs.map((k, n) => [k, made[n]]) : [[outputs, made]];
  return Object.fromEntries(named.map(([name, { data }]) => [name, data]));
}

globalThis.buildAndExecuteGraph = async (context, builder, graph) => {
  const [reading] = Object.values(graph.otherReadings ?? {});
  const modes = {
    stored: () => stored(graph, Number(argument)),
    reading: () => stored({ expectedOutputs: reading ?? graph.expectedOutputs }, 0),
    baseline: () => computed(graph),
  };
  return { result: await modes[mode](), intermediateOperands: {} };
};

vm.runInThisContext(readFileSync(test, "utf8"), { filename: test });
