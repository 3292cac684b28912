"""Names from strangers: whatever a model, a pack or a file is called, a terminal only shows it."""

from __future__ import annotations

import re
import sys
import unicodedata

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.tables import every
from support.terminals import shown

# A title, red, C1, marks of direction and of no width, rich's markup, a line of its own.
HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b1m\x7f\u202e\u200f\u200b[red]:boom:\n::error::\t"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model, a config and a file of tensors, all of whose names are malice."""
    folder = tmp_path_factory.mktemp("hostile")
    model, config, tensors = (folder / f"{HOSTILE}{end}" for end in (".onnx", ".yaml", ".npz"))
    weights = {f"{HOSTILE}W": np.ones((1, 3, 2), "f4"), f"{HOSTILE}R": np.ones((1, 3, 3), "f4")}
    names = [f"{HOSTILE}X", *weights]
    node = helper.make_node("RNN", names, [f"{HOSTILE}Y"], name=f"{HOSTILE}N", hidden_size=3)
    given = helper.make_tensor_value_info(names[0], TensorProto.FLOAT, [f"{HOSTILE}T", 1, 2])
    wanted = helper.make_tensor_value_info(f"{HOSTILE}Y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [node],
        HOSTILE,
        [given],
        [wanted],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    model.write_bytes(proto.SerializeToString())
    config.write_text('op: "nonsense\\e]0;owned\\a\\u202e\\n"\n"key\\e[31m": 1\n')
    np.savez(tensors, **weights)
    other = folder / "other.npz"
    np.savez(other, **{name: 2 * values for name, values in weights.items()})
    return {"model": model, "config": config, "tensors": tensors, "other": other}


COMMANDS = (
    *("run {model}", "run {model} --json", "run {model} -i {config}=x.npy", "run {model} {model}"),
    *("inspect {model}", "inspect {model} --json", "inspect {config}", "inspect {tensors}"),
    *("lint {config}", "lint {config} --json", "list {config}", "generate {config}"),
    *("extract {model} -o {new}", "extract {model} -o {new} --node {config}"),
    *("compare {tensors} {other}", "compare {tensors} {other} --json", "compare {model} {other}"),
    *("convert {tensors} {new}.nosuch", "convert {config} {new}", "verify {model} --backend numpy"),
    *("verify {config} --results {model}", "diagnose {config} --results {model}"),
    *(
        "run {model} --dim {config}=2",
        "bench {config}",
        "score {config}",
        "ops {config}",
    ),
    *("run {model} --backend {config}", "mutants {config}", "verify {config} --runtime {config}"),
)


def does_something(text):
    """The characters that do something to a terminal."""
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} - {*"\n\t"}


def words_of(command, files, folder):
    """A command line with the files' names in it."""
    return [word.format(**files, new=folder / HOSTILE) for word in command.split()]


@every("command", COMMANDS)
def test_a_pipe_gets_nothing_that_acts(rnncli, hostile, tmp_path, command):
    """No control character, no line or cell that was not meant; and it is no bug of ours."""
    outcome = rnncli(*words_of(command, hostile, tmp_path))

    assert outcome.code != 70, outcome.err
    assert does_something(outcome.out + outcome.err) == set()
    folds = command.startswith("inspect")  # YAML breaks long text anywhere
    assert folds or not re.search(r"^\s*::error::", outcome.out + outcome.err, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS[:8])
def test_a_drawn_table_has_no_style_but_its_own(rnncli, hostile, tmp_path, monkeypatch, command):
    """Markup in a name is text, and so are escape sequences."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "500")
    outcome = rnncli(*words_of(command, hostile, tmp_path))
    said = outcome.out + outcome.err

    assert "\x1b[31m" not in said
    assert does_something(re.sub(r"\x1b\[[0-9;]*m", "", said)) == set()
    assert "[red]:boom:" in said


def test_a_terminal_gets_nothing_that_acts(hostile):
    """With a bar that runs, and what is said meanwhile."""
    command = [sys.executable, "-m", "rnncli", "run", hostile["model"], hostile["model"]]
    code, text = shown(command)

    assert code == 0, text
    assert "\x1b]0" not in text
    assert "\x1b[31m" not in text
    assert does_something(re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", text)) <= {"\r"}
