"""Claims about `rnncli run --against`: whole models in a runtime."""

import json
import shlex

import numpy as np
import onnx
import pytest
from support.real_models import PATHS, recorded

from rnncli.files.formats.format import DataSet
from rnncli.files.formats.onnx_folder import write_test_case
from rnncli.jobs.plugins import Plugin
from rnncli.subjects import runtimes
from rnncli.subjects.runtimes import known_subjects

# Fault -> a model that has it, and the first of its nodes in which it shows.
SHOWN = {
    "lengths": ("lstm_packed_bi_ts", "graph / /m/LSTM"),
    "bias": ("loop_gru_script_ts", "graph / /Loop.body / /GRU"),
    "reset": ("gtcrn_simple", "graph / GRU_700"),
}
SUM = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3, 2, 3] X) => (float[3, 1, 2, 2] out, float[2] twice)
<float[1, 6, 3] W = {1, 2, 3, 1, 2, 3, 1, 2, 3, 3, 2, 1, 3, 2, 1, 3, 2, 1}, float[2] b = {1, 2},
 float[1, 6, 2] R = {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}> {
    out = GRU <hidden_size: int = 2> (X, W, R)
    twice = Add (b, b)
}"""


@pytest.fixture
def faulty(monkeypatch):
    """A package that adds a runtime with faults."""
    where = "support.faulty_runtimes:FaultyRuntime"
    found = {"faulty": Plugin("runtime", "faulty", where, "tests")}
    monkeypatch.setattr(runtimes, "plugins", lambda kind: found)
    known_subjects.cache_clear()
    yield
    known_subjects.cache_clear()


@pytest.fixture
def given(tmp_path):
    """The options that give a model its recorded inputs."""

    def options(name):
        inputs, _ = recorded(PATHS[name])
        np.savez(tmp_path / f"{name}.npz", **inputs)
        return [PATHS[name], "--inputs", tmp_path / f"{name}.npz"]

    return options


@pytest.mark.parametrize("name", PATHS)
def test_onnxruntime_computes_real_models_right(rnncli, given, name):
    """A line an output, with its worst element; a branch that is not taken is told."""
    done = rnncli("run", *given(name), "--against", "onnxruntime", "--allow-unexercised")

    assert done.code == 0
    assert "FAIL" not in done.err
    assert [row["output"] for row in done.rows] == [*recorded(PATHS[name])[1]]
    assert {row["verdict"] for row in done.rows} == {"agrees"}
    assert all(row["against"].startswith("onnxruntime 1.") for row in done.rows)
    assert any(row["worst at"].startswith("[") for row in done.rows)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_onnxruntime_is_right_on_made_inputs(rnncli, seed):
    """An output of one element, a sigmoid near 0, is approximated to an error absolute in 1."""
    asked = ["--seed", seed, "--against", "onnxruntime", "--allow-unexercised"]
    done = rnncli("run", PATHS["silero_vad_16k_op15"], *asked)

    assert done.code == 0, done.err
    assert {row["verdict"] for row in done.rows} == {"agrees"}


def test_openvino_is_fed_by_the_models_own_names(rnncli, tmp_path):
    """An input that is cast has the name of the cast there as well."""
    text = SUM.replace("] X)", "] X, int64[2] n)").replace("(X, W, R)", '(X, W, R, "", k)')
    cast = text.replace("    out =", "    k = Cast <to = 6> (n)\n    out =")
    onnx.save(onnx.parser.parse_model(cast), tmp_path / "cast.onnx")
    done = rnncli("run", tmp_path / "cast.onnx", "--against", "openvino")

    assert (done.code, [row["verdict"] for row in done.rows]) == (0, ["agrees", "agrees"])


@pytest.mark.parametrize("fault", SHOWN)
@pytest.mark.usefixtures("faulty")
def test_a_fault_is_named_at_its_node(rnncli, given, monkeypatch, tmp_path, fault):
    """With the known bug that it is, and commands that show it again."""
    monkeypatch.chdir(tmp_path)
    name, node = SHOWN[fault]
    asked = ["--against", "faulty", "--runtime-option", f"fault={fault}"]
    done = rnncli("run", *given(name), *asked, "--json")
    (run,) = json.loads(done.out)["runs"]
    found = run["against"]["node"]

    assert done.code == 1
    assert not any(output["agrees"] for output in run["against"]["comparison"])
    assert f"FAIL {PATHS[name]} against faulty" in done.err
    assert f"first recurrent node that is wrong by itself: {node} (" in done.err
    assert (found["node"], found["execution"]) == (node, 1)
    assert found["verdict"]["verdict"] == "differs"
    assert any(fault in hypothesis for hypothesis in found["verdict"]["fits"])
    *_, repeat = done.err.splitlines()
    extract, verify = (shlex.split(line) for line in repeat.removeprefix("  repeat: ").split("&&"))
    assert rnncli(*extract[1:]).code == 0
    again = rnncli(*verify[1:])
    assert again.code == 1
    assert found["verdict"]["id"] in again.err


@pytest.fixture
def summing(tmp_path):
    """A model of a GRU, and of a sum that has nothing to do with it."""
    onnx.save(onnx.parser.parse_model(SUM), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_nodes_that_are_right_alone_are_not_accused(rnncli, summing, faulty):
    """The fault of a node that is not recurrent is not theirs; the output that is right says so."""
    done = rnncli("run", summing, "--against", "faulty", "--runtime-option", "fault=add")

    assert (done.code, [row["verdict"] for row in done.rows]) == (1, ["agrees", "differs"])
    assert "twice: 2 of 2 differ" in done.err
    assert ": faulty gives 0, the model gives 4 +- " in done.err
    assert "its recurrent nodes are right alone, 1 execution: look at its other nodes" in done.err
    assert "twice: faulty gives nothing but zeros" in done.err


def test_dimensions_that_are_left_open_are_named_where_they_are_what_fails(
    rnncli, tmp_path, faulty
):
    """The runtime is asked once more, with a model that declares the sizes of the run."""
    onnx.save(onnx.parser.parse_model(SUM.replace("3, 2, 3] X", "T, 2, 3] X")), tmp_path / "m.onnx")
    asked = ["--against", "faulty", "--runtime-option", "fault=open"]
    done = rnncli("run", tmp_path / "m.onnx", *asked)

    assert done.code == 1
    assert "right where the model declares the sizes of this run" in done.err


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [("refusal", (3, "refuses the model: ")), ("death", (1, "crashed: ended with exit code 7"))],
)
@pytest.mark.usefixtures("faulty")
def test_a_runtime_without_an_answer_is_not_right(rnncli, summing, fault, wanted):
    """It is no success, and there are no lines of outputs."""
    done = rnncli("run", summing, "--against", "faulty", "--runtime-option", f"fault={fault}")

    assert (done.code, done.out) == (wanted[0], "")
    assert f"FAIL {summing} against faulty" in done.err
    assert wanted[1] in done.err


@pytest.mark.parametrize("noise", ["1e5", "1e8"])
def test_an_output_that_noise_drowns_is_not_judged(rnncli, tmp_path, noise):
    """Zeros would agree within what roundings make of it."""
    text = SUM.replace("    out =", "    made =").replace(
        "    twice", "    up = Add (made, a)\n    out = Sub (up, a)\n    twice"
    )
    text = text.replace("float[2] b =", f"float a = {{{noise}}}, float[2] b =")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    done = rnncli("run", tmp_path / "m.onnx", "--against", "onnxruntime", "--json")
    (run,) = json.loads(done.out)["runs"]

    assert (done.code, run["against"]["comparison"][0]["agrees"]) == (5, True)
    assert "of 12 cannot be judged: zeros might agree, too" in done.err


def test_tolerances_may_be_ones_own(rnncli, summing, faulty):
    """A fault of 4 is within 5, as is right; within 3 it is not."""
    asked = ["--against", "faulty", "--runtime-option", "fault=add"]

    assert rnncli("run", summing, *asked, "--atol", "twice:3").code == 1
    done = rnncli("run", summing, "--against", "onnxruntime", "--atol", "1e-5", "--json")
    (run,) = json.loads(done.out)["runs"]
    assert done.code == 0
    assert {output["agrees"] for output in run["against"]["comparison"]} == {True}


def test_each_data_set_is_asked(rnncli, summing, faulty, tmp_path):
    """Inputs and number of a data set are those of the line and of the repetition."""
    X = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 2, 3)
    sets = [DataSet(inputs={"X": values}) for values in (X, X * X)]
    write_test_case(tmp_path / "zoo", sets, {"model.onnx": summing.read_bytes()})
    done = rnncli("run", tmp_path / "zoo", "--against", "onnxruntime")

    assert done.code == 0
    assert [row["data set"] for row in done.rows] == [
        *["test_data_set_0"] * 2, *["test_data_set_1"] * 2
    ]  # fmt: skip


FREE = (
    SUM.replace("float[3, 2, 3] X", "float[T, N, 3] X")
    .replace("(float[3, 1, 2, 2] out, float[2] twice)", "(float[T, 1, N, 2] out)")
    .replace(", float[2] b = {1, 2}", "")
    .replace("    twice = Add (b, b)\n", "")
)


def saved(text, path):
    """A model of a text, saved to a path, which is returned."""
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@pytest.mark.parametrize(
    ("runtime", "attribute", "shapes"),
    [
        ("openvino", "layout: int = 1", ("float[N, T, 3] X", "float[N, T, 1, 2] out")),
        ("opencv", 'direction: string = "reverse"', ("float[T, N, 3] X", "float[T, 1, N, 2] out")),
    ],
)
def test_known_bugs_fail_without_an_option(rnncli, tmp_path, runtime, attribute, shapes):
    """They cannot be seen in one step of one sequence, as free sizes of 1 would be."""
    pytest.importorskip({"opencv": "cv2"}.get(runtime, runtime))
    text = FREE.replace("hidden_size: int = 2", f"hidden_size: int = 2, {attribute}")
    text = text.replace("float[T, N, 3] X", shapes[0]).replace("float[T, 1, N, 2] out", shapes[1])
    model = saved(text, tmp_path / "m.onnx")

    assert rnncli("run", model, "--against", runtime).code == 1
    assert rnncli("run", model, "--against", "onnxruntime").code == (3 if "layout" in text else 0)


def test_an_ignored_input_forget_fails_without_an_option(rnncli, tmp_path):
    """In OpenVINO the forget gate does not become what the input gate leaves."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[T, N, 3] X) => (float[T, 1, N, 2] out)
    <float[1] a = {0.3}, int64[3] w = {1, 8, 3}, int64[3] r = {1, 8, 2}> {
        W = Expand (a, w)
        R = Expand (a, r)
        out = LSTM <hidden_size: int = 2, input_forget: int = 1> (X, W, R)
    }"""
    model = saved(text, tmp_path / "m.onnx")

    assert rnncli("run", model, "--against", "openvino").code == 1
    assert rnncli("run", model, "--against", "onnxruntime").code == 0


def test_lengths_that_a_runtime_ignores_fail_without_an_option(rnncli):
    """OpenVINO reads none of those of an export of PyTorch, which is named."""
    result = rnncli(
        "run", PATHS["lstm_packed_bi_ts"], "--against", "openvino", "--dim", "batch=3,seq=7"
    )

    assert result.code == 1
    assert "known bug in node graph / /m/LSTM (LSTM-14), which gives all" in result.err
    assert "fits lengths-ignored" in result.err
