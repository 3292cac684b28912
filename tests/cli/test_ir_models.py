"""Claims about models of OpenVINO as a user meets them: run, inspect, extract."""

import json

import numpy as np
import openvino
import pytest
from real_models import DATA

GTCRN = DATA / "gtcrn" / "gtcrn_simple.onnx"
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
