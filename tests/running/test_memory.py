"""Claims about the memory that a run takes, of a process as the system sees it."""

import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.measured import measured

WEIGHTS = ("W", "R")


def model(T, N, K, H, folder):
    """Write a model of an RNN that holds its weights, and its input."""
    shapes = {"X": (T, N, K), "W": (1, H, K), "R": (1, H, H)}
    numbers = np.random.default_rng(1)
    values = {n: numbers.random(s, np.float32) / 64 for n, s in shapes.items()}
    infos = {
        name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in {**shapes, "Y": (T, 1, N, H)}.items()
    }
    node = helper.make_node("RNN", list(shapes), ["Y"], hidden_size=H)
    held = [numpy_helper.from_array(values[name], name) for name in WEIGHTS]
    graph = helper.make_graph([node], "g", [infos["X"]], [infos["Y"]], held)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8),
        folder / f"{H}.onnx",
    )
    np.savez(folder / f"{H}.npz", X=values["X"])
    return 4 * sum(np.prod(shape) for shape in (*shapes.values(), (T, N, H), (T, N, H)))


def peak(file, *options):
    """Return the bytes that a run of a model took at most, all of its process."""
    output = file.with_name("out.npz")
    done = measured("run", file, "--compute", "native", "-o", output, *options)
    assert done.code == 0, done.words
    return done.peak


@pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="os.wait4 is of Unix alone")
@pytest.mark.parametrize("given", [True, False], ids=["given", "generated"])
def test_a_run_takes_what_its_tensors_take(tmp_path, given):
    """At most 1.3 times inputs, weights, outputs and projected gates, beside Python itself."""
    model(2, 1, 2, 2, tmp_path)
    needed = model(64, 32, 1024, 1024, tmp_path)

    tiny, large = (
        peak(file, *(["--inputs", str(file.with_suffix(".npz"))] if given else []))
        for file in (tmp_path / "2.onnx", tmp_path / "1024.onnx")
    )

    assert large - tiny < 1.3 * needed
