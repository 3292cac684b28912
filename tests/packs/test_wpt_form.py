"""Cases in the form of web-platform-tests, and the test file that runs a pack of them."""

import json
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.small_webnn import small_webnn, vectors
from support.webnn_baseline import checkout

from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs import raw_form, wpt_form
from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack

ROOT = Path(__file__).parents[2]
LOADER = ROOT / "docs/harnesses/webnn.https.any.js"
RUNNER = ROOT / "tests/support/wpt_runner.mjs"
PLAN = GenerationPlan(suite=small_webnn(), layout="wpt")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -0.1, 65504.0)
made = cache(vectors)


def graph_of(case_id):
    """The graph of a case, as a reader of its file gets it."""
    return json.loads(wpt_form.files_of(made()[case_id])["wpt.json"])["graph"]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A folder with a pack in this form, named as the test file expects it."""
    folder = tmp_path_factory.mktemp("wpt") / "pack"
    assert generate(PLAN, folder, lambda _: None).failed == ()
    return open_pack(folder)


# The methods of MLGraphBuilder: what a call of them passes before the options, and returns.
METHODS = {
    "gru": ("input weight recurrentWeight steps hiddenSize", ["outputHidden"]),
    "gruCell": ("input weight recurrentWeight hiddenState hiddenSize", "outputHidden"),
    "lstm": ("input weight recurrentWeight steps hiddenSize", ["outputHidden", "outputCell"]),
    "lstmCell": (
        "input weight recurrentWeight hiddenState cellState hiddenSize",
        ["outputHidden", "outputCell"],
    ),
}
OPTIONS = {
    "webnn_gru_plain": None,
    "webnn_gru": {"resetAfter": False, "layout": "rzn", "activations": ["relu", "tanh"]},
    "webnn_lstm_part": None,
    "webnn_lstm_peepholes": {
        "peepholeWeight": "peepholeWeight",
        "initialCellState": "initialCellState",
        "returnSequence": False,
        "layout": "ifgo",
    },
    "webnn_grucell_cell_float32": {"bias": "bias"},
    "webnn_lstmcell_cell_float16": {"bias": "bias"},
}


@pytest.mark.parametrize("case_id", OPTIONS)
def test_arguments_are_those_of_the_method(case_id):
    """In its order, and the options that the node has; absent ones are left to the defaults."""
    (operator,) = graph_of(case_id)["operators"]
    names, outputs = METHODS[operator["name"]]
    passed = [pair for argument in operator["arguments"] for pair in argument.items()]

    options = dict([pair for pair in passed if pair[0] == "options"]).get("options")
    assert options == OPTIONS[case_id]
    sizes = {"steps": 2, "hiddenSize": 4}
    assert [pair for pair in passed if pair[0] != "options"] == [
        (name, sizes.get(name, name)) for name in names.split()
    ]
    assert operator["outputs"] == outputs


def test_a_third_output_is_there_if_it_is_returned():
    """And only the outputs that are asked for have expected values."""
    graph = graph_of("webnn_lstm_full_float32")
    names = ["outputHidden", "outputCell", "outputSequence"]

    assert graph["operators"][0]["outputs"] == names
    assert [*graph["expectedOutputs"]] == names
    assert [*graph_of("webnn_lstm_part")["expectedOutputs"]] == ["outputCell"]


def test_weights_that_the_model_holds_are_constants():
    """The others are inputs."""
    inputs = graph_of("webnn_gru_full_float16")["inputs"]

    held = [name for name, row in inputs.items() if row.get("constant")]
    assert held == ["weight", "recurrentWeight", "bias", "recurrentBias"]
    assert {*inputs} - {*held} == {"input", "initialHiddenState"}
    assert not [row for row in graph_of("webnn_gru_plain")["inputs"].values() if "constant" in row]


@pytest.mark.parametrize("case_id", ["webnn_lstm_full_float32", "webnn_lstm_full_float16"])
def test_numbers_are_the_elements(case_id):
    """Bit for bit, also those that JSON has no number for; tolerances, too."""
    vector = made()[case_id]
    values = np.array(SPECIAL, vector.inputs["input"].dtype)
    changed = replace(vector, inputs={**vector.inputs, "input": values})
    graph = wpt_form.case_of(changed)["graph"]
    graph = json.loads(json.dumps(graph, allow_nan=False))

    stored = {**changed.inputs, **changed.answers.outputs}
    for name, row in {**graph["inputs"], **graph["expectedOutputs"]}.items():
        tensor = stored[name]
        assert row["descriptor"] == {"dataType": str(tensor.dtype), "shape": [*tensor.shape]}
        again = np.array([*map(float, row["data"])]).astype(tensor.dtype)
        np.testing.assert_array_equal(again.view(np.uint8), tensor.ravel().view(np.uint8))
    for name, tolerance in changed.answers.tolerances.items():
        again = np.array(graph["expectedOutputs"][name]["tolerance"], np.float32)
        np.testing.assert_array_equal(again, tolerance.ravel())


def test_outputs_under_another_reading_stand_beside_the_expected_ones():
    """In the same form."""
    graph = graph_of("webnn_lstm_peepholes")
    (answers,) = made()["webnn_lstm_peepholes"].alternatives.values()

    assert [*graph["otherReadings"]] == ["peephole-o=new"]
    found = graph["otherReadings"]["peephole-o=new"]
    assert [*found] == [*graph["expectedOutputs"]] == ["outputHidden", "outputCell"]
    assert found["outputHidden"]["data"] == answers.outputs["outputHidden"].ravel().tolist()
    assert found["outputHidden"]["data"] != graph["expectedOutputs"]["outputHidden"]["data"]
    assert "otherReadings" not in graph_of("webnn_lstm_part")


def test_a_second_call_is_a_test_of_its_own():
    """With its own inputs and outputs; every name is another."""
    files = wpt_form.files_of(made()["webnn_lstm_twice"])
    first, second = (json.loads(files[path]) for path in ("wpt.json", "calls/1/wpt.json"))

    assert (first["name"], second["name"]) == ("webnn_lstm_twice", "webnn_lstm_twice call 1")
    assert first["graph"]["inputs"] != second["graph"]["inputs"]
    assert first["graph"]["expectedOutputs"] != second["graph"]["expectedOutputs"]


def test_a_pack_of_them_is_a_raw_pack(pack, tmp_path):
    """Every file has its checksum; the vectors come back, and the same files are made of them."""
    assert [*pack.problems()] == []
    for vector in pack.vectors():
        assert raw_form.files_of(vector).items() <= wpt_form.files_of(vector).items()
    convert_pack(pack, tmp_path / "raw", "raw")
    convert_pack(open_pack(tmp_path / "raw"), tmp_path / "again", "wpt")

    assert open_pack(tmp_path / "again").manifest.sums() == pack.manifest.sums()


def test_another_layout_replaces_the_files_of_the_one_before(tmp_path):
    """Nothing of it is left, and nothing is foreign."""
    generate(PLAN, tmp_path / "pack", lambda _: None)
    assert [*tmp_path.rglob("calls/1/wpt.json")]

    assert generate(replace(PLAN, layout="raw"), tmp_path / "pack", lambda _: None).warnings == ()
    assert not [*tmp_path.rglob("wpt.json")]


def said(pack, *mode):
    """What each case does in the test file, by name; None if it passes."""
    node = shutil.which("node")
    if not node:
        pytest.skip("no node on the PATH")
    done = subprocess.run(
        [node, RUNNER, LOADER, pack.folder.parent, *mode],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", [("stored", "0"), ("stored", "0.99"), ("reading",)], ids=str)
def test_the_test_file_passes_what_the_pack_accepts(pack, mode):
    """The outputs, others within the tolerances, and those of another reading."""
    names = [vector.id for vector in pack.vectors()]

    found = said(pack, *mode)
    assert found == dict.fromkeys([*names, "webnn_lstm_twice call 1"])


def test_the_test_file_fails_what_is_further_off(pack):
    """Every case, with the output, its values and its tolerance in the message."""
    found = said(pack, "stored", "1.5")

    assert len(found) == len(pack.manifest.cases) + 1
    assert all("[0] is " in message and " +- " in message for message in found.values())


def test_the_graphs_are_calls_that_webnn_baseline_takes(pack):
    """Arguments, options and operands as they stand there give the outputs."""
    assert {*said(pack, "baseline", checkout()).values()} == {None}
