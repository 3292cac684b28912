"""A runtime that fails, and is right if it optimises nothing, is told so by every command."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.real_models import PATHS

from rnncli.subjects.implementation import Implementation
from rnncli.subjects.runtimes import RuntimeRow

UNOPTIMISED = "optimization=none"
SENTENCE = f"right with --runtime-option {UNOPTIMISED}: its graph optimisations are what fails"
CORE = Path(__file__).parents[2] / "vectors" / "core"
CASE = "id:gru_14_clip"
MODEL = PATHS["loop_gru_script_ts"]
# Command -> its arguments, and where its JSON has the setting.
ASKED = {
    "run": (["run", MODEL, "--json", "--against"], lambda lines: lines[0]["runs"][0]["against"]),
    "stream": (["stream", MODEL, "--relation", "float64", "--json", "--runtime"], lambda ls: ls[1]),
    "verify": (["verify", CORE, "-k", CASE, "--json", "--runtime"], lambda lines: lines[1]),
}


@pytest.fixture
def optimising(monkeypatch):
    """A runtime with faults in what it optimises."""
    row = RuntimeRow(
        "support.faulty_runtimes:FaultyRuntime", "", unoptimised={"optimization": "none"}
    )
    monkeypatch.setattr("rnncli.subjects.runtimes.known_subjects", lambda: {"optimising": row})


def found(rnncli, command, fault, *more):
    """The line of a command on a fault, and what it says beside its JSON."""
    words, line = ASKED[command]
    done = rnncli(*words, "optimising", "--runtime-option", f"fault={fault}", *more)
    assert done.code == 1, done.err
    return line([*map(json.loads, done.out.splitlines())]), done.err


@pytest.mark.parametrize("fault", ["bias", "end"])
@pytest.mark.parametrize("command", ASKED)
@pytest.mark.usefixtures("optimising")
def test_which_of_the_two_is_right_is_said(rnncli, command, fault):
    """The verdict stays: what the runtime does by itself is wrong, or takes it down."""
    line, told = found(rnncli, command, fault)
    plain, _ = found(rnncli, command, fault, "--runtime-option", "optimization=basic")

    assert line["right_with"] == plain["right_with"] == UNOPTIMISED
    assert command != "run" or SENTENCE in told


@pytest.mark.parametrize(
    ("name", "settings", "asked", "is_right", "told"),
    [
        ("onnxruntime", {}, [{"optimization": "none"}], True, UNOPTIMISED),
        ("onnxruntime", {"ep": "X"}, [{"ep": "X", "optimization": "none"}], True, UNOPTIMISED),
        ("onnxruntime", {}, [{"optimization": "none"}], False, ""),
        ("onnxruntime", {"optimization": "none"}, [], True, ""),
        ("openvino", {}, [], True, ""),
    ],
)
def test_it_is_asked_once_where_it_has_optimisations(name, settings, asked, is_right, told):
    """With all else that it was told; what is as wrong without them is not excused."""
    seen = []

    def ask(subject):
        seen.append(subject.settings)
        return is_right

    assert Implementation(runtime=name, runtime_option=settings).right_with(ask) == told
    assert seen == asked


def test_a_quantised_product_is_right_without_them(rnncli, tmp_path):
    """ONNX Runtime 1.32 rounds x to 8 bits where W alone has levels: off by 0.05."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[8,16] x) => (float[8,16] y) <float s = {0.01}, uint8 z = {117}>
        { w = DequantizeLinear (W, s, z)  y = MatMul (x, w) }"""
    model = onnx.parser.parse_model(text)
    W = np.random.default_rng(1).integers(0, 256, (16, 16), np.uint8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "W"))
    onnx.save(model, tmp_path / "m.onnx")
    done = rnncli("run", tmp_path / "m.onnx", "--against", "onnxruntime")

    assert done.code == 1
    assert SENTENCE in done.err
