"""Claims about models of OpenVINO as a user meets them: run, inspect, extract."""

import json

import numpy as np
import openvino
import pytest
from openvino import opset5
from support.real_models import DATA

from rnncli.files.formats import read_tensors

GTCRN = DATA / "gtcrn" / "gtcrn_simple.onnx"
LOOP = DATA / "exports" / "loop_gru_script_ts.onnx"
TARGET = "rnnsequence_5_both"


@pytest.fixture(scope="module")
def gtcrn(tmp_path_factory):
    """A speech denoiser, converted by openvino."""
    path = tmp_path_factory.mktemp("ir") / "gtcrn.xml"
    openvino.save_model(openvino.convert_model(GTCRN), path)
    return path


def test_run_gives_the_outputs_of_the_pack(rnncli, tmp_path):
    """On the inputs of the case, from its files."""
    pack = tmp_path / "pack"
    assert rnncli("generate", "openvino", "--format", "ir", "-o", pack, "-k", TARGET).code == 0
    case = pack / f"test_{TARGET}"
    npz = tmp_path / "in.npz"
    described = json.loads((case / "case.json").read_text())
    (data_set,) = described["data_sets"]

    def tensor(each):
        return np.fromfile(case / each["file"], each["dtype"]).reshape(each["shape"])

    np.savez(npz, **{each["name"]: tensor(each) for each in data_set["inputs"]})
    done = rnncli("run", case / "model.xml", "--inputs", npz, "-o", tmp_path / "out.npz")

    assert (done.code, done.err) == (0, "")
    outputs = np.load(tmp_path / "out.npz")
    assert {name: outputs[name].tolist() for name in outputs} == {
        each["name"]: tensor(each).tolist() for each in data_set["outputs"]
    }


def test_run_refuses_a_larger_model_and_names_extract(rnncli, gtcrn):
    """One line, exit code 3."""
    done = rnncli("run", gtcrn)

    assert (done.code, len(done.err.splitlines())) == (3, 1)
    assert "`rnncli extract` takes recurrent nodes out" in done.err


def test_inspect_lists_the_recurrent_nodes(rnncli, gtcrn):
    """Type and version, sizes, direction and activations."""
    done = rnncli("inspect", gtcrn, "--json")
    record = json.loads(done.out)

    assert done.code == 0
    assert len(record["recurrent_nodes"]) == 14
    assert record["not_evaluated"] == []
    first = record["recurrent_nodes"][0]
    assert first["operator"] == "GRUSequence-5"
    assert first["attributes"]["activations"] == ["sigmoid", "tanh"]
    assert first["attributes"]["direction"] in ("forward", "bidirectional")
    assert first["inputs"]["W"] == [1, 48, 8]


def test_extract_makes_a_pack_that_openvino_passes(rnncli, gtcrn, tmp_path):
    """Each node with its weights, on the values that reached it in OpenVINO."""
    pack = tmp_path / "pack"
    done = rnncli("extract", gtcrn, "-o", pack, "--max-cases", "3")
    (row,) = done.rows

    assert (done.code, row["suite"], row["cases"]) == (0, "extracted-gtcrn", "3")
    (line,) = done.err.splitlines()
    assert line.endswith("11 further executions left out by --max-cases 3")
    judged = rnncli("verify", pack, "--runtime", "openvino", "--json")
    verdicts = [json.loads(each) for each in judged.out.splitlines()]
    assert judged.code == 0
    assert sum(each.get("verdict") == "pass" for each in verdicts) == 3


def test_extract_feeds_the_given_inputs(rnncli, gtcrn, tmp_path):
    """Inputs of zeros give other values in the node than generated ones do."""
    zeros = tmp_path / "zeros.npz"
    shapes = json.loads(rnncli("inspect", gtcrn, "--json").out)["inputs"]
    sizes = {name: json.loads(text.partition(" ")[2]) for name, text in shapes.items()}
    np.savez(zeros, **{name: np.zeros(shape, "f") for name, shape in sizes.items()})
    packs = {"random": (), "zeros": ("--inputs", zeros)}
    for name, more in packs.items():
        rnncli("extract", gtcrn, "-o", tmp_path / name, "--max-cases", "1", *more)

    digests = {json.loads((tmp_path / n / "manifest.json").read_text())["digest"] for n in packs}
    assert len(digests) == 2
    wrong = rnncli("extract", gtcrn, "-o", tmp_path / "wrong", "-i", f"nope={zeros}")
    assert wrong.code == 2
    assert "nope" in wrong.err


def outputs_of(pack):
    """The outputs Y_h or Ho of every case, in the order of the pack."""
    cases = json.loads((pack / "manifest.json").read_text())["cases"]
    found = []
    for case in cases:
        name = {"GRUSequence-5": "Ho", "GRU-14": "Y_h"}[case["operator"]]
        path = pack / f"test_{case['id']}" / "test_data_set_0"
        (number,) = [k for k, each in enumerate(case["outputs"]) if each == name]
        found.append(np.ravel(read_tensors(path / f"output_{number}.pb")[name]))
    return found


def test_the_nodes_of_a_loop_become_cases_as_those_of_the_same_model_of_onnx(rnncli, tmp_path):
    """One for each trip, with the same outputs; OpenVINO passes them."""
    converted = tmp_path / "loop.xml"
    openvino.save_model(openvino.convert_model(LOOP), converted, compress_to_fp16=False)
    h = np.random.default_rng(1).normal(size=(1, 2, 16)).astype("f")
    np.savez(tmp_path / "in.npz", h=h, n=np.int64(4))
    packs = {LOOP: tmp_path / "onnx", converted: tmp_path / "ir"}
    for model, pack in packs.items():
        done = rnncli("extract", model, "-o", pack, "--inputs", tmp_path / "in.npz")
        assert (done.code, done.err) == (0, "")

    ours, theirs = (outputs_of(pack) for pack in packs.values())
    assert (len(ours), len(theirs)) == (4, 4)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
    assert rnncli("verify", packs[converted], "--runtime", "openvino").code == 0


def stack(*activations):
    """A model of nodes with these activations, one above the other; two are of two directions."""
    x = values = opset5.parameter([2, 3, 5], np.float32, "x")
    for k, names in enumerate(activations):
        D = len(names)
        parts = [np.ones((2, D, 5), "f"), np.full(2, 3, "i4")]
        parts += [np.full(shape, 0.1, "f") for shape in ((D, 5, 5), (D, 5, 5), (D, 5))]
        node = opset5.rnn_sequence(
            *(values, *map(opset5.constant, parts), 5),
            *(("forward", "bidirectional")[D - 1], names, [], []),
            name=f"n{k}",
        )
        values = opset5.reduce_mean(node.output(0), opset5.constant([1]), keep_dims=False)
    return openvino.Model([opset5.result(values)], [x], "m")


@pytest.mark.parametrize(
    ("activations", "left", "reason"),
    [
        ([["tanh"], ["relu"], ["hardsigmoid"]], "n2", "'hardsigmoid'"),
        ([["tanh"], ["tanh", "relu"], ["relu"]], "n1", "both directions of a RNNSequence"),
    ],
    ids=["openvino-refuses-it", "openvino-runs-it"],
)
def test_a_node_that_is_refused_leaves_the_others(rnncli, activations, left, reason, tmp_path):
    """The message says which, and why; it is not in the pack."""
    openvino.save_model(stack(*activations), tmp_path / "m.xml")
    done = rnncli("extract", tmp_path / "m.xml", "-o", tmp_path / "pack")
    record = json.loads(rnncli("inspect", tmp_path / "m.xml", "--json").out)

    assert (done.code, [row["cases"] for row in done.rows]) == (0, ["2"])
    assert f"graph / {left}: left out: RNNSequence-5 cannot be evaluated here: " in done.err
    assert reason in done.err
    assert [node["node"] for node in record["not_evaluated"]] == [left]
    assert left not in [node["node"] for node in record["recurrent_nodes"]]
    assert reason in record["not_evaluated"][0]["reason"]


@pytest.mark.parametrize(
    ("activations", "options"),
    [([["hardsigmoid"]], ()), ([["tanh"], ["elu"]], ("--node", "n1"))],
    ids=["all", "wanted"],
)
def test_nothing_but_refused_nodes_is_not_supported(rnncli, activations, options, tmp_path):
    """Exit code 3 of `extract` and `run`, and a reason."""
    openvino.save_model(stack(*activations), tmp_path / "m.xml")
    done = rnncli("extract", tmp_path / "m.xml", "-o", tmp_path / "pack", *options)

    assert (done.code, len(done.err.splitlines())) == (3, 1)
    assert "1 recurrent node cannot be evaluated here: 'graph / n" in done.err
    assert activations[-1][0] in done.err
    assert not (tmp_path / "pack").exists()
    assert rnncli("run", tmp_path / "m.xml").code == 3
