// A harness for WebNN in a browser of the Chromium family, in Node; it needs no package:
//
//   rnncli verify webnn/ --harness 'node docs/harnesses/webnn_browser.mjs chromium'
//
// Further arguments are given to the browser. WEBNN_DEVICE is cpu, gpu or npu.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [program = "chromium", ...more] = process.argv.slice(2);
const device = process.env.WEBNN_DEVICE ?? "cpu";

// Operator -> the arguments of its method before the options, and its outputs, in order.
const SEQUENCE = ["input", "weight", "recurrentWeight", "steps", "hiddenSize"];
const CELL = ["input", "weight", "recurrentWeight", "hiddenState"];
const OPERATORS = {
  "webnn.gru": [SEQUENCE, ["outputHidden", "outputSequence"]],
  "webnn.gruCell": [[...CELL, "hiddenSize"], ["outputHidden"]],
  "webnn.lstm": [SEQUENCE, ["outputHidden", "outputCell", "outputSequence"]],
  "webnn.lstmCell": [[...CELL, "cellState", "hiddenSize"], ["outputHidden", "outputCell"]],
};

// The page asks for one job after the other; what it answers is the question for the next.
async function page(device) {
  const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const textOf = (bytes) => btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join(""));

  async function run({ method, names, results, attributes, tensors, outputs }) {
    const context = await navigator.ml.createContext({ deviceType: device });
    const builder = new MLGraphBuilder(context);
    const values = { ...attributes };
    const feeds = {};
    for (const [name, { dataType, shape, constant, content }] of Object.entries(tensors)) {
      const bytes = bytesOf(content).buffer;
      if (constant) {
        values[name] = builder.constant({ dataType, shape }, bytes);
      } else {
        values[name] = builder.input(name, { dataType, shape });
        feeds[name] = await context.createTensor({ dataType, shape, writable: true });
        context.writeTensor(feeds[name], bytes);
      }
    }
    const options = Object.fromEntries(
      Object.entries(values).filter(([name]) => !names.includes(name)),
    );
    const made = [builder[method](...names.map((name) => values[name]), options)].flat();
    const wanted = Object.fromEntries(outputs.map((name) => [name, made[results.indexOf(name)]]));
    const graph = await builder.build(wanted);
    const filled = {};
    for (const [name, { dataType, shape }] of Object.entries(wanted)) {
      filled[name] = await context.createTensor({ dataType, shape, readable: true });
    }
    context.dispatch(graph, feeds, filled);
    const read = {};
    for (const [name, tensor] of Object.entries(filled)) {
      const content = textOf(new Uint8Array(await context.readTensor(tensor)));
      read[name] = { dtype: tensor.dataType, shape: [...tensor.shape], content };
    }
    context.destroy?.();
    return read;
  }

  let answer = { agent: navigator.userAgent, webnn: "ml" in navigator };
  for (;;) {
    const body = JSON.stringify(answer);
    const job = await (await fetch("/", { method: "POST", body })).json();
    answer = await run(job).then(
      (read) => ({ read }),
      (error) => ({ error: String(error) }),
    );
  }
}

let waiting = null; // the response that the page waits for
let answered = null; // takes what the page says
const server = createServer((request, response) => {
  if (request.method !== "POST") {
    response.setHeader("Content-Type", "text/html");
    response.end(`<script>(${page})(${JSON.stringify(device)})</script>`);
    return;
  }
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    waiting = response;
    answered(JSON.parse(Buffer.concat(chunks)));
  });
});

function nextAnswer() {
  return new Promise((resolve) => {
    answered = resolve;
  });
}

const profile = mkdtempSync(join(tmpdir(), "webnn-"));
let browser = null;

async function start() {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = ["--headless=new", "--no-first-run", `--user-data-dir=${profile}`];
  const features = "--enable-features=WebMachineLearningNeuralNetwork";
  const address = `http://127.0.0.1:${server.address().port}/`;
  const stdio = ["ignore", "ignore", "pipe"];
  browser = spawn(program, [...own, features, ...more, address], { stdio });
  let said = ""; // its last line, which tells why it ends
  createInterface({ input: browser.stderr }).on("line", (line) => {
    said = line.trim() || said;
  });
  const failed = (why) => {
    process.stderr.write(`${program}: ${why}\n`);
    process.exit(1);
  };
  browser.on("error", (error) => failed(error.message));
  // "close" comes after the last line, but only once all of its processes have ended.
  browser.on("exit", (code, signal) => {
    const how = signal ? `ended by ${signal}` : `ended with exit code ${code}`;
    const tell = () => failed(said ? `${how}: ${said}` : how);
    browser.once("close", tell);
    setTimeout(tell, 1000);
  });
  const { agent, webnn } = await nextAnswer();
  if (!webnn) failed("has no navigator.ml");
  const [, version] = agent.match(/Chrome\/([\d.]+)/) ?? [null, agent];
  return { version: 1, implementation: { name: `WebNN in Chromium, ${device}`, version } };
}

async function run({ case: node, inputs, initializers, outputs, dir }) {
  if (!(node.operator in OPERATORS)) return { skipped: true, message: `no operator ${node.operator}` };
  const [names, results] = OPERATORS[node.operator];
  const tensors = {};
  for (const [constant, rows] of [[false, inputs], [true, initializers]]) {
    for (const [name, { file, dtype, shape }] of Object.entries(rows)) {
      tensors[name] = { dataType: dtype, shape, constant, content: readFileSync(file, "base64") };
    }
  }
  const method = node.operator.replace("webnn.", "");
  const answer = nextAnswer();
  waiting.end(JSON.stringify({ method, names, results, attributes: node.attributes, tensors, outputs }));
  const { read, error } = await answer;
  if (error) return { skipped: true, message: error };
  const described = {};
  for (const [name, { dtype, shape, content }] of Object.entries(read)) {
    writeFileSync(join(dir, `${name}.bin`), content, "base64");
    described[name] = { file: `${name}.bin`, dtype, shape };
  }
  return { outputs: described };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.cmd === "stop") break;
  const reply = request.cmd === "start" ? await start() : { seq: request.seq, ...(await run(request)) };
  process.stdout.write(JSON.stringify(reply) + "\n");
}
browser?.removeAllListeners("exit");
browser?.once("exit", () => {
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
});
browser?.kill();
