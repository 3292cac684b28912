"""ONNX's node cases as one model with one test data set, to be extracted and scored."""

from pathlib import Path

import onnx
from onnx import compose, numpy_helper


def write_as_one(folder, cases):
    """Write a model that holds cases side by side, and their inputs; return its folder."""
    graphs, tensors = [], []
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
