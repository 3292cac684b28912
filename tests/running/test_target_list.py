"""Claims about lists of targets in YAML."""

import pytest
from support.tables import every

from rnncli.errors import ConfigError
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.running.request import ListedTarget, Request
from rnncli.running.target_list import read_targets

LIST = """\
- a.onnx
- model: sub/b.onnx
  dim: {batch: 2, seq: 0x10}
  shape: {x: [1, 3], s: []}
  inputs: {sr: 8000, lens: [3, 1], x: x.npz::X, on: true}
- {model: c.onnx, inputs: real.npz, expected: out.npz}
"""


def listed(tmp_path, text):
    """What a list says."""
    (tmp_path / "models.yaml").write_text(text)
    return read_targets(tmp_path / "models.yaml")


def test_each_target_has_its_own(tmp_path):
    """Paths are those beside the list; numbers are what `-i` takes."""
    a, b, c = listed(tmp_path, LIST)

    assert a == ListedTarget(str(tmp_path / "a.onnx"))
    assert b.target == str(tmp_path / "sub/b.onnx")
    assert (b.dims, b.shapes) == ({"batch": 2, "seq": 16}, {"x": (1, 3), "s": ()})
    assert b.input_files == {
        "sr": "8000", "lens": "[3, 1]", "x": str(tmp_path / "x.npz::X"), "on": "true"
    }  # fmt: skip
    assert (c.inputs_from, c.input_files) == (str(tmp_path / "real.npz"), {})
    assert c.expected_from == str(tmp_path / "out.npz")


def test_the_command_line_comes_first(tmp_path):
    """It changes what it names, and nothing else."""
    _, b, c = listed(tmp_path, LIST)
    request = Request(tolerance=EXACT, dims={"batch": 9}, inputs_from="mine.npz", seed=3)

    assert b.asked(request).dims == {"batch": 9, "seq": 16}
    assert b.asked(request).shapes == b.shapes
    assert b.asked(request).seed == 3
    assert c.asked(request).inputs_from == "mine.npz"
    assert c.asked(Request(tolerance=EXACT)).inputs_from.endswith("real.npz")
    assert c.asked(Request(tolerance=EXACT, expected_from="o.npz")).expected_from == "o.npz"


@every(
    ("text", "sentence"),
    [
        ("a: 1", "1:1: a list of models must be a list, got a mapping"),
        ("- 3", "1:3: an entry must be a mapping"),
        ("- {modl: a.onnx}", "1:4: unknown key 'modl'; did you mean 'model'?"),
        ("- {dim: {n: 1}}", "1:3: 'model' is missing"),
        ("- {model: a, expected: 3}", "'expected' must be a path, got 3"),
        ("- {model: [a]}", "1:11: 'model' must be a path, got a list of 1"),
        ("- {model: a, dim: {n: -1}}", "a size must be an integer >= 0, got -1"),
        ("- {model: a, dim: {n: true}}", "a size must be an integer >= 0, got true"),
        ("- {model: a, dim: 3}", "'dim' must be a mapping"),
        ("- {model: a, shape: {x: 3}}", "a shape must be a list of sizes, got 3"),
        ("- {model: a, inputs: 3}", "'inputs' must be a path, got 3"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path_factory, text, sentence):
    """File, line and column."""
    with pytest.raises(ConfigError) as told:
        listed(tmp_path_factory.mktemp("list"), text)

    assert f"models.yaml:{sentence}" in str(told.value) or sentence in str(told.value)
