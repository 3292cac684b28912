"""ONNX's own recurrent node cases as one model with one test data set, to be extracted and scored.

PYTHONPATH=tests python -m support.onnx_cases onnx_cases && rnncli extract onnx_cases -o onnx_pack
rnncli score onnx_pack && rnncli score onnx_pack --onnx
"""

import sys
import warnings
from pathlib import Path

import onnx
from onnx import compose, numpy_helper
from onnx.backend.test.loader import load_model_tests

RECURRENT = {"RNN", "GRU", "LSTM"}


def recurrent_cases():
    """The node cases with a recurrent node, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other cases divide by zero
        cases = {case.name: case for case in load_model_tests(kind="node")}
    return {name: case for name, case in cases.items() if _is_recurrent(case.model)}


def _is_recurrent(model):
    return any(node.op_type in RECURRENT for node in model.graph.node)


def write_as_one(folder):
    """Write a model that holds all of them side by side, and their inputs; return its folder."""
    graphs, tensors = [], []
    cases = recurrent_cases()
    for name, case in cases.items():
        graphs.append(compose.add_prefix_graph(case.model.graph, f"{name}/"))
        graphs[-1].node[0].name = name
        inputs, _ = case.data_sets[0]
        tensors += zip(inputs, graphs[-1].input, strict=True)
    first = next(iter(cases.values())).model
    model = onnx.helper.make_model(_side_by_side(graphs), opset_imports=first.opset_import)
    model.ir_version = first.ir_version
    data = Path(folder) / "test_data_set_0"
    data.mkdir(parents=True)
    (Path(folder) / "model.onnx").write_bytes(model.SerializeToString())
    for k, (values, value_info) in enumerate(tensors):
        tensor = numpy_helper.from_array(values, value_info.name)
        (data / f"input_{k}.pb").write_bytes(tensor.SerializeToString())
    return Path(folder)


def _side_by_side(graphs):
    every = {
        part: [each for graph in graphs for each in getattr(graph, part)]
        for part in ("node", "input", "output", "initializer")
    }
    return onnx.helper.make_graph(
        every["node"], "recurrent", every["input"], every["output"], every["initializer"]
    )


if __name__ == "__main__":
    write_as_one(sys.argv[1])
