// META: title=Packs of rnncli in the layout wpt
// META: global=window,dedicatedworker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu
// META: script=/webnn/resources/utils.js
// META: timeout=long

// A test of web-platform-tests for a pack of the layout wpt: put it into webnn/rnncli/ of a checkout,
// and the pack beside it as webnn/rnncli/pack/. Each case is a test, judged by the pack's tolerances.

'use strict';

const readJson = (path) => {
  const request = new XMLHttpRequest();
  request.open('GET', path, /*async=*/ false);
  request.send();
  if (request.status !== 200) {
    throw new Error(`cannot read ${path}: status ${request.status}`);
  }
  return JSON.parse(request.responseText);
};

const packTests = readJson('pack/manifest.json')
    .cases.flatMap(({files}) => Object.keys(files))
    .filter((path) => path.endsWith('/wpt.json'))
    .map((path) => readJson(`pack/${path}`));

// Returns the first element that is further from the expected one than its tolerance, in words.
const findDifference = (results, expectedOutputs) => {
  for (const [name, {data, tolerance}] of Object.entries(expectedOutputs)) {
    const result = results[name];
    const isBits = result instanceof Uint16Array;  // of float16
    for (let k = 0; k < data.length; ++k) {
      const actual = isBits ? float16AsUint16ToNumber(result[k]) : result[k];
      const expected = Number(data[k]);
      const same = actual === expected || (Number.isNaN(actual) && Number.isNaN(expected));
      if (!same && !(Math.abs(actual - expected) <= Number(tolerance[k]))) {
        return `${name}[${k}] is ${actual}, expected ${expected} +- ${tolerance[k]}`;
      }
    }
  }
  return null;
};

const buildExecuteAndJudge = async (context, builder, graph) => {
  const {result, intermediateOperands} = await buildAndExecuteGraph(context, builder, graph);
  const difference = findDifference(result, graph.expectedOutputs);
  const isAnotherReading = Object.values(graph.otherReadings ?? {})
      .some((outputs) => findDifference(result, outputs) === null);
  assert_true(difference === null || isAnotherReading, difference);
  // One tolerance for all elements, as WPT has it, is not asked for: no results are left to compare.
  return {result: {}, intermediateOperands};
};

webnn_conformance_test(packTests, buildExecuteAndJudge, () => ({metricType: 'ATOL', value: 0}));
