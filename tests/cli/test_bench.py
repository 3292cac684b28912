"""Claims about `rnncli bench` as a user meets it."""

import json
import os
import signal
import subprocess
import sys

import click
import numpy as np
import onnx
import pytest
from click.shell_completion import ShellComplete
from onnx import TensorProto, helper
from support import families
from support.rivals import on_little_data

from rnncli.bench.workloads import OPSETS, WORKLOADS
from rnncli.cli.group import cli

QUICK = ("--rounds", 2, "--seconds", 1e-4, "--vs", "onnx-reference", "--backend", "numpy")


@pytest.fixture(autouse=True)
def little(monkeypatch):
    """Little is measured besides the implementations."""
    on_little_data(monkeypatch)


def test_a_workload_is_measured(rnncli):
    """A line for each operator and implementation, the runtimes first."""
    done = rnncli("bench", "tiny", *QUICK)

    assert done.code == 0
    assert [(row["operator"], row["implementation"]) for row in done.rows] == [
        (operator, name)
        for operator in ("LSTM", "GRU", "RNN")
        for name in ("onnx-reference", "numpy")
    ]
    assert {row["status"] for row in done.rows} == {"ran"}
    assert all(float(row["ratio"]) == 1 for row in done.rows[::2])
    assert all(float(row["error"]) < 1e-6 for row in done.rows)


def test_json_has_all_rounds_and_what_they_depend_on(rnncli, monkeypatch):
    """Machine, terms and limits in every line."""
    monkeypatch.undo()  # on much data
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    done = rnncli("bench", "tiny", "--op", "GRU", *QUICK, "--json")
    first, second = map(json.loads, done.out.splitlines())

    assert (first["implementation"], second["implementation"]) == ("onnx-reference", "numpy")
    assert len(first["rounds"]) == len(second["rounds"]) == 2
    assert first["terms"]["baseline"] == "onnx-reference"
    assert first["limits"]["flops"] > first["limits"]["bandwidth"] > 0
    assert first["machine"]["numpy"] == np.__version__
    assert "OPENBLAS_CORETYPE=Haswell is set: dropped" in done.err


def test_a_table_is_drawn_on_a_terminal(rnncli, monkeypatch):
    """With bars and geometric means."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = rnncli("bench", "tiny", "lstm_14_peepholes", "--op", "LSTM", *QUICK)

    assert "tiny LSTM  T 5, B 2, I 3, H 4, float32" in done.out
    assert "█" in done.out
    assert "geometric means" in done.out


def test_backends_alone_are_compared_with_the_first(rnncli):
    """No runtime need be installed."""
    own = "numpy,mutant:clip-dropped"
    options = (*QUICK[:4], "--vs", "", "--backend", own, "--bound")
    done = rnncli("bench", "tiny", "--op", "RNN", *options)
    names = [row["implementation"] for row in done.rows]

    assert names == ["numpy", "mutant:clip-dropped"]
    assert done.rows[0]["ratio"] == "1"


def test_sessions_are_measured_of_the_operator_and_of_its_model(rnncli):
    """As runtimes are called: weights held, outputs by name."""
    options = (*QUICK[:4], "--vs", "onnx-reference", "--backend", "numpy", "--session")
    done = rnncli("bench", "tiny", "--op", "GRU", *options)
    names = [row["implementation"] for row in done.rows]

    assert names == ["onnx-reference", "numpy session", "numpy model session"]
    assert {row["status"] for row in done.rows} == {"ran"}
    assert all(float(row["error"]) < 1e-6 for row in done.rows)
    assert rnncli("bench", "tiny", "--session", "--bound").code == 2


def test_a_later_run_is_compared_with_a_stored_one(rnncli, tmp_path):
    """The stored one is made fast beyond hope, so that ours became slower."""
    path = tmp_path / "before.json"
    command = ("bench", "tiny", "--op", "RNN", *QUICK)
    assert rnncli(*command, "-o", path).code == 0
    stored = json.loads(path.read_text())
    assert [len(result["rounds"]) for result in stored["results"]] == [2, 2]

    fine = rnncli(*command, "--against", path, "--max-slowdown", 1e9)
    other = rnncli("bench", "tiny", "--op", "GRU", *QUICK, "--against", path)
    stored["results"][1]["ratio"] = 1e9
    path.write_text(json.dumps(stored))
    slower = rnncli(*command, "--against", path, "--max-slowdown", 5)
    only_told = rnncli(*command, "--against", path)

    assert (fine.code, slower.code, only_told.code) == (0, 1, 0)
    assert "percent longer" in fine.out
    assert "FAIL tiny RNN numpy takes" in slower.err
    assert other.code == 5  # nothing is compared, which is never a success


@pytest.fixture
def model(tmp_path):
    """A model that adds and negates."""
    X, Y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 4]) for n in "XY")
    nodes = [helper.make_node("Add", ["X", "X"], ["Z"]), helper.make_node("Neg", ["Z"], ["Y"])]
    graph = helper.make_graph(nodes, "g", [X], [Y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.save_model(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_a_model_is_measured_and_its_nodes_if_asked_for(rnncli, model):
    """By operator, in those that can tell."""
    told = rnncli("bench", model, "--dim", "N=2", "--nodes", *QUICK, "--json")
    records = [json.loads(line) for line in told.out.splitlines()]

    assert [record["sizes"] for record in records] == ["X [2, 4]"] * 2
    assert records[0]["nodes"] is None
    assert {*records[1]["nodes"]} == {"Add", "Neg"}


@pytest.mark.skipif(sys.platform != "linux", reason="as the runtimes are built for it")
def test_onnx_runtime_tells_what_its_nodes_take(rnncli, model):
    """By its own profiler; it may fuse some."""
    pytest.importorskip("onnxruntime")
    options = ("--dim", "N=2", "--nodes", *QUICK[:4], "--vs", "onnxruntime", "--backend", "numpy")
    done = rnncli("bench", model, *options)

    assert done.code == 0
    table = done.out.split("\n\n")[1].splitlines()
    assert {line.split("\t")[1] for line in table[1:]} == {"onnxruntime", "numpy"}


def test_whole_processes_are_measured(rnncli):
    """Each with what it is compared with."""
    done = rnncli("bench", "startup", "--rounds", 1)
    ours = {row["process"]: row["reference"] for row in done.rows if "rnncli" in row["process"]}

    assert done.code == 0
    assert [*ours] == ["rnncli --help", "rnncli run model.onnx"]
    assert all(float(row["seconds"]) > 0 for row in done.rows)
    assert done.rows[0]["times the reference"] == "1"


def completed(arguments, incomplete):
    """What the shell offers."""
    complete = ShellComplete(cli, {}, "rnncli", "_RNNCLI_COMPLETE")
    return [item.value for item in complete.get_completions(arguments, incomplete)]


def test_the_shell_completes_workloads_and_lists_of_names():
    """The last name of a list, without those that are there."""
    assert {*WORKLOADS, "generation", "startup"} <= {*completed(["bench"], "")}
    assert completed(["bench", "tiny", "--vs"], "onnxruntime,openv") == ["onnxruntime,openvino"]
    assert completed(["bench", "tiny", "--op"], "GRU,") == ["GRU,LSTM", "GRU,RNN"]
    assert "--cases" in completed(["bench", "generation"], "--c")


def test_dtypes_are_those_of_the_workloads():
    """The option lists them without importing the table."""
    command = cli.get_command(click.Context(cli), "bench")
    (dtype,) = (each for each in command.params if each.name == "dtype")

    assert list(dtype.type.choices) == list(OPSETS)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_an_interrupt_leaves_no_process(monkeypatch):
    """The line that says so is all that comes."""
    family = families.started(monkeypatch)
    command = [sys.executable, "-m", "rnncli", "bench", "tiny", *map(str, QUICK[2:])]
    with subprocess.Popen(
        [*command, "--rounds", "1000000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as bench:
        assert family.has(5)
        bench.send_signal(signal.SIGINT)
        assert bench.wait() == 130
        assert bench.stderr.read() == "interrupted\n"
    assert family.is_gone()
