"""Claims about `rnncli extract` as a user meets it."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import quantize_dynamic
from support.gru_places import HELD, PLACES, text_of
from support.real_models import PATHS, recorded
from support.terminals import shown

from rnncli.files.described import jsonable
from rnncli.packs.pack import open_pack

HEADER = '<ir_version: 8, opset_import: ["" : 17, "pkg" : 1, "com.microsoft" : 1]>\n'
GTCRN = PATHS["gtcrn_simple"]


def saved(path, text):
    """Write a model that is given as text."""
    onnx.save(onnx.parser.parse_model(HEADER + text), path)
    return path


@pytest.fixture
def scan(tmp_path):
    """A model whose GRU runs four times."""
    return saved(tmp_path / "scan.onnx", text_of("Scan", HELD))


def test_the_same_inputs_give_the_same_bytes(rnncli, tmp_path):
    """Given or generated from the same seed; another seed gives others."""
    inputs, _ = recorded(GTCRN)
    np.savez(tmp_path / "in.npz", **inputs)
    given = ["--inputs", tmp_path / "in.npz", "--node", "GRU_70*"]
    made = ["--seed", 5, "--node", "GRU_70*"]
    digests = [
        rnncli("extract", GTCRN, "-o", tmp_path / f"pack{k}", *options).rows[0]["digest"]
        for k, options in enumerate((given, given, made, made, ["--seed", 6, *made[2:]]))
    ]

    assert digests[0] == digests[1]
    assert digests[2] == digests[3]
    assert len(set(digests)) == 3


@pytest.mark.parametrize("place", PLACES)
def test_a_node_is_named_as_inspect_names_it(rnncli, tmp_path, place):
    """What `inspect` prints as its place can be pasted after `--node`."""
    model = saved(tmp_path / "m.onnx", text_of(place, HELD))
    nodes = json.loads(rnncli("inspect", model, "--json").out)["recurrent_nodes"]
    done = rnncli("extract", model, "-o", tmp_path / "pack", "--node", nodes[0]["where"])

    assert (done.code, done.err) == (0, "")


def test_a_terminal_sees_progress(scan, tmp_path):
    """On standard error, and gone when it is done."""
    command = [sys.executable, "-m", "rnncli", "extract", scan, "-o", tmp_path / "pack"]
    code, said = shown(command, stdout=subprocess.PIPE)

    assert code == 0, said
    assert "cases" in said


def test_a_long_quantised_node_keeps_the_steps_that_can_judge(rnncli, tmp_path):
    """Each step rounds its states to 8 bits, until the last steps may be anything."""
    path, pack = tmp_path / "int8.onnx", tmp_path / "pack"
    quantize_dynamic(PATHS["lstm_packed_bi_ts"], path, reduce_range=True)
    done = rnncli("extract", path, "--dim", "batch=2,seq=100", "-o", pack)
    (vector,) = open_pack(pack).vectors()
    steps = vector.record.sizes["seq_length"]

    assert done.code == 0
    assert f"warning: m_lstm_quant: kept {steps} of 100 steps: with all of them Y is" in done.err
    assert 8 < steps < 100
    assert vector.record.summary.endswith(f"The first {steps} of its 100 steps.")
    assert vector.inputs["X"].shape[0] == steps
    assert vector.inputs["sequence_lens"].max() <= steps
    judged = rnncli("verify", pack, "--runtime", "onnxruntime")
    assert judged.code == 0, judged.out


def test_extracted_cases_judge_onnxruntime(rnncli, tmp_path):
    """With the integers of the model, by derived tolerances."""
    path = tmp_path / "int8.onnx"
    quantize_dynamic(PATHS["lstm_packed_bi_ts"], path, reduce_range=True)
    inputs, _ = recorded(PATHS["lstm_packed_bi_ts"])
    np.savez(tmp_path / "inputs.npz", **inputs)
    done = rnncli("extract", path, "--inputs", tmp_path / "inputs.npz", "-o", tmp_path / "pack")
    assert done.code == 0, done.err

    (vector,) = open_pack(tmp_path / "pack").vectors()
    judged = rnncli("verify", tmp_path / "pack", "--runtime", "onnxruntime")

    assert vector.record.operator == "DynamicQuantizeLSTM-1"
    assert vector.inputs["W"].dtype == np.int8
    assert set(vector.initializers) > {"W", "R_scale", "R_zero_point"}
    assert judged.code == 0, judged.out


UNIT = """
unit (uint8[2,1,1] x) => (uint8[2,1,1,1] yq, float[1,1,1] h)
<float s = {0.0078125}, uint8 z = {128}, int8[1,1,1] w = {64}, int8 zero = {0},
 int32[1,2] b = {9, 0}>
{
  X = DequantizeLinear (x, s, z)
  W = DequantizeLinear (w, s, zero)
  B = DequantizeLinear (b, s)
  y, h = RNN <hidden_size = 1> (X, W, W, B)
  yq = com.microsoft.QuantizeLinear (y, s, z)
}
"""


UNIT_OF_ONNX = UNIT.replace("com.microsoft.", "")


def test_a_unit_is_kept_or_the_node_inside_it(rnncli, tmp_path):
    """All DequantizeLinear that feed a node and the QuantizeLinear that reads it, or --inner."""
    model = saved(tmp_path / "model.onnx", UNIT)
    for folder, options in {"unit": [], "inner": ["--inner"]}.items():
        assert rnncli("extract", model, "-o", tmp_path / folder, *options).code == 0
    (node,) = json.loads(rnncli("inspect", model, "--json").out)["recurrent_nodes"]
    ((unit,), (inner,)) = (open_pack(tmp_path / each).manifest.cases for each in ("unit", "inner"))

    level = {"scale": 0.0078125, "zero_point": 0}
    assert jsonable(unit.quantise) == node["quantise"]
    assert jsonable(unit.quantise) == {
        "X": {"type": "uint8", **level, "zero_point": 128},
        "W": {"type": "int8", **level},
        "R": {"type": "int8", **level},
        "B": {"type": "int32", **level},
        "Y": {"type": "uint8", **level, "zero_point": 128},
    }
    assert not inner.quantise
    assert unit.outputs == inner.outputs == ["Y", "Y_h"]
    assert rnncli("verify", tmp_path / "unit", "--runtime", "onnxruntime").code == 0


@pytest.mark.parametrize("opset", [12, 13, 14])
def test_a_unit_of_an_older_opset_is_one_of_the_newer_text(rnncli, tmp_path, opset):
    """RNN-7 is RNN-14 without its layout; a quantiser writes it into the models of opset 12."""
    proto = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]>' + UNIT_OF_ONNX)
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    done = rnncli("extract", tmp_path / "model.onnx", "-o", tmp_path / "unit")
    (unit,) = open_pack(tmp_path / "unit").manifest.cases

    assert (done.code, done.err) == (0, "")
    assert (unit.operator, unit.requirements.opset) == ("RNN-14", 21)
    assert [*unit.quantise] == ["X", "W", "R", "B", "Y"]
    assert rnncli("verify", tmp_path / "unit", "--runtime", "onnxruntime").code == 0


# Scale of X -> whether its unit is one.
SCALES = {0.0078125: True, -0.0078125: False, 0.0: False}


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_extracted_can_be_read(rnncli, tmp_path, scale):
    """A scale that no unit has leaves the tensor real, which is said."""
    text = UNIT.replace("{0.0078125}", "{1}").replace("(x, s, z)", "(x, sx, z)")
    proto = onnx.parser.parse_model(HEADER + text.replace("<float s", "<float sx = {1}, float s"))
    for tensor, value in zip(proto.graph.initializer, (scale, 0.0078125), strict=False):
        tensor.float_data[:] = [value]
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    done = rnncli("extract", tmp_path / "model.onnx", "-o", tmp_path / "unit")
    sentence = "X is taken without DequantizeLinear and QuantizeLinear, as real numbers"

    assert done.code == 0, done.err
    assert (sentence in done.err) is not SCALES[scale]
    pack = open_pack(tmp_path / "unit")
    (record,) = pack.manifest.cases
    pack.read(pack.case(record.id)).parse()
    assert ("X" in record.quantise) is SCALES[scale]


def test_what_cannot_be_read_back_is_not_put_in_place(rnncli, monkeypatch, tmp_path):
    """The folder does not appear."""
    model = saved(tmp_path / "model.onnx", UNIT)
    monkeypatch.setattr("rnncli.models.node_listing.dress_problems", lambda *_, **__: ())
    proto = onnx.load(model)
    proto.graph.initializer[0].float_data[:] = [-1.0]
    onnx.save(proto, model)
    done = rnncli("extract", model, "-o", tmp_path / "unit")

    assert done.code == 2
    assert "must be a positive float32 number" in done.err
    assert not (tmp_path / "unit").exists()
