"""Claims about `rnncli extract` as a user meets it."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import quantize_dynamic
from support.gru_places import HELD, PLACES, WEIGHTS, text_of
from support.real_models import PATHS, recorded
from support.terminals import shown

from rnncli.files.described import jsonable
from rnncli.files.formats.format import DataSet
from rnncli.files.formats.onnx_folder import write_test_case
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


def test_a_model_becomes_a_pack(rnncli, scan, tmp_path):
    """Standard output is data: a heading and a line; nothing on standard error."""
    done = rnncli("extract", scan, "-o", tmp_path / "pack")
    (row,) = done.rows

    assert (done.code, done.err) == (0, "")
    assert (row["suite"], row["cases"], row["layout"]) == ("extracted-scan", "4", "onnx")
    assert row["digest"] == json.loads((tmp_path / "pack/manifest.json").read_text())["digest"]


def test_what_the_nodes_could_not_have_wrong_is_told(rnncli, tmp_path):
    """At 16 steps of 3 sequences nothing; a step of a sequence needs neither R nor a row more."""
    text = """g (float[T, N, 3] X) => (float[T, 1, N, 2] out)
    <float[1] a = {0.3}, int64[3] w = {1, 6, 3}, int64[3] r = {1, 6, 2}> {
        W = Expand (a, w)  R = Expand (a, r)  out = GRU <hidden_size: int = 2> (X, W, R)
    }"""
    asked = ["extract", saved(tmp_path / "m.onnx", text), "-o", tmp_path / "pack"]

    assert "not exercised" not in rnncli(*asked).err
    done = rnncli(*asked, "--dim", "T=1,N=1")
    assert done.code == 0
    assert "warning: not exercised: recurrent product of 'GRU_2' (H is zero whenever" in done.err
    assert "warning: not exercised: sequences beyond the first of 'GRU_2'" in done.err


def test_what_an_earlier_pack_loses_is_told(rnncli, tmp_path):
    """Two models of one name have a pack of one name; nothing is said of the same again."""
    for folder, sizes in (("a", "4, 2"), ("b", "5, 2")):
        (tmp_path / folder).mkdir()
        text = f"""g (float[{sizes}, 3] X, float[1, 6, 3] W) => (float[d, batch, 2] out)
        <float[1,6,2] R = {{1,2,3,4,5,6,6,5,4,3,2,1}}>
        {{ "", out = GRU <hidden_size: int = 2> (X, W, R) }}"""
        saved(tmp_path / folder / "m.onnx", text)
    done = [rnncli("extract", tmp_path / f"{x}/m.onnx", "-o", tmp_path / "ex") for x in "aabb"]

    assert [each.code for each in done] == [0, 0, 0, 0]
    told = f"warning: {tmp_path}/ex: of the earlier pack, 1 case was changed ("
    assert [told in each.err for each in done] == [False, False, True, False]


def test_listed_models_have_a_pack_each(rnncli, scan, tmp_path):
    """With sizes of their own; one that fails does not keep the others from being made."""
    text = """g (float[seq, batch, 3] X, float[1, 6, 3] W) => (float[d, batch, 2] out)
    <float[1,6,2] R = {1,2,3,4,5,6,6,5,4,3,2,1}>
    { "", out = GRU <hidden_size: int = 2> (X, W, R) }"""
    saved(tmp_path / "sized.onnx", text)
    entries = ["- scan.onnx", "- {model: sized.onnx, dim: {seq: 4, batch: 5}}", "- gone.onnx"]
    (tmp_path / "models.yaml").write_text("\n".join(entries))
    done = rnncli("extract", "--from", tmp_path / "models.yaml", "-o", tmp_path / "packs")
    (record,) = open_pack(tmp_path / "packs/sized").cases

    assert [row["cases"] for row in done.rows] == ["4", "1"]
    assert [row["pack"] for row in done.rows] == [
        f"{tmp_path}/packs/{n}" for n in ("scan", "sized")
    ]
    assert (done.code, done.err) == (2, f"{tmp_path}/gone.onnx: no such file\n")
    assert (record["sizes"]["seq_length"], record["sizes"]["batch_size"]) == (4, 5)
    both = rnncli("extract", scan, "--from", tmp_path / "models.yaml", "-o", tmp_path / "x")
    assert (both.code, "MODEL and --from are both given" in both.err) == (2, True)
    assert rnncli("extract", "-o", tmp_path / "x").code == 5


def test_json_is_one_object(rnncli, scan, tmp_path):
    """What the table says."""
    done = rnncli("extract", scan, "-o", tmp_path / "pack", "--json")

    assert json.loads(done.out)["cases"] == 4


def test_the_pack_is_a_target_of_the_other_commands(rnncli, scan, tmp_path):
    """It is listed, inspected, converted, and run: each case agrees with its golden."""
    pack = tmp_path / "pack"
    rnncli("extract", scan, "-o", pack)
    inspected = json.loads(rnncli("inspect", pack, "--json").out)

    assert rnncli("list", pack, "-k", "gru").out.splitlines() == [
        *("gru_1", "gru_1_2", "gru_1_3", "gru_1_4")
    ]
    assert (inspected["damaged"], inspected["weights"]) == ({}, {"initializers": 4})
    assert rnncli("convert", pack, tmp_path / "npz", "--format", "npz").code == 0
    ran = rnncli("run", pack, "--json", "--max-ulp", "0", "--atol", "0")
    assert (ran.code, len(ran.out.splitlines())) == (0, 4)
    assert rnncli("generate", "smoke", "-o", pack).code == 2


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


def test_inputs_are_given_shaped_or_sized_as_in_run(rnncli, tmp_path):
    """`-i`, `--shape` and `--dim` mean the same."""
    text = """g (float[seq, batch, 3] X, float[1, 6, 3] W) => (float[d, batch, 2] out)
    <float[1,6,2] R = {1,2,3,4,5,6,6,5,4,3,2,1}>
    { "", out = GRU <hidden_size: int = 2> (X, W, R) }"""
    model = saved(tmp_path / "m.onnx", text)
    np.save(tmp_path / "W.npy", WEIGHTS["W"])
    options = ["-i", f"W={tmp_path / 'W.npy'}"]
    rnncli("extract", model, "-o", tmp_path / "dims", *options, "--dim", "seq=7,batch=3")
    rnncli("extract", model, "-o", tmp_path / "shape", *options, "--shape", "X=7,3,3")
    (by_dims,), (by_shape,) = (
        json.loads((tmp_path / name / "manifest.json").read_text())["cases"]
        for name in ("dims", "shape")
    )

    assert by_dims == by_shape
    assert by_dims["sizes"] == {
        "seq_length": 7, "batch_size": 3, "input_size": 3, "hidden_size": 2
    }  # fmt: skip
    assert by_dims["weights"] == "inputs"


def test_test_data_sets_are_what_it_runs_on(rnncli, tmp_path):
    """A model-zoo folder has inputs of its own; `--data-set` takes one of them."""
    sets = [DataSet(inputs={"X": WEIGHTS["X"] * k}) for k in (1, 2, 3)]
    model = onnx.parser.parse_model(HEADER + text_of("graph", HELD)).SerializeToString()
    write_test_case(tmp_path / "zoo", sets, {"model.onnx": model})
    rnncli("extract", tmp_path / "zoo", "-o", tmp_path / "all")
    rnncli("extract", tmp_path / "zoo", "-o", tmp_path / "one", "--data-set", 1)

    assert rnncli("list", tmp_path / "all").out.split() == ["gru_0", "gru_0_2", "gru_0_3"]
    assert rnncli("list", tmp_path / "one").out.split() == ["gru_0"]
    suite = json.loads((tmp_path / "one" / "manifest.json").read_text())["suite"]
    assert suite == "extracted-zoo"


def test_limits_warn_and_name_their_option(rnncli, scan, tmp_path):
    """Less than everything is still a success."""
    done = rnncli("extract", scan, "-o", tmp_path / "pack", "--max-cases", 3)

    assert (done.code, done.rows[0]["cases"]) == (0, "3")
    assert done.err == "warning: 1 further executions left out by --max-cases 3\n"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--node", "GRU_11"], (5, "no recurrent node 'GRU_11'; did you mean 'GRU_1'?")),
        (["--max-bytes", "100"], (5, "up to 296 bytes, more than --max-bytes 100")),
        (["--profile", "stric"], (2, "did you mean 'strict'")),
        (["--profile", "exact"], (2, "no capture can become a case: gru_1: profile 'exact'")),
        (["--max-bytes", "3G"], (2, "at most 2000000000 bytes, got '3G'")),
        (["--max-bytes", "much"], (2, "expected a size such as 200M, got 'much'")),
        (["--max-cases", "0"], (2, "x>=1")),
        (["--data-set", "0"], (2, "--data-set 0, but it has no test data sets")),
        (["--shape", "Y=1"], (2, "no input 'Y' to give a shape")),
    ],
)
def test_a_wrong_request_writes_nothing(rnncli, scan, tmp_path, options, wanted):
    """The exit code tells what kind of wrong, the line says what."""
    done = rnncli("extract", scan, "-o", tmp_path / "pack", *options)

    assert (done.code, done.out) == (wanted[0], "")
    assert wanted[1] in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["scan.onnx"]


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("lstm_14_peepholes", (2, "is a config of one operator; `extract` is for models")),
        ("nothing.onnx", (2, "nothing.onnx: no such file")),
        ("none.onnx", (5, "none.onnx: has no recurrent node")),
        ("unknown.onnx", (3, "1 recurrent node cannot be evaluated here: 'graph / lstm' (com.")),
    ],
)
def test_what_has_no_recurrent_node_is_refused(rnncli, tmp_path, monkeypatch, target, wanted):
    """One line that names it."""
    saved(tmp_path / "none.onnx", "g (float[2] x) => (float[2] y) { y = Identity (x) }")
    node = "[lstm] y = com.microsoft.AttnLSTM (x)"
    saved(tmp_path / "unknown.onnx", f"g (float[2] x) => (float[2] y) {{ {node} }}")
    monkeypatch.chdir(tmp_path)
    done = rnncli("extract", target, "-o", "pack")

    assert (done.code, len(done.err.splitlines())) == (wanted[0], 1)
    assert wanted[1] in done.err


def test_a_foreign_folder_is_found_before_the_model_runs(rnncli, tmp_path):
    """Nobody waits for a run whose result has no place."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    done = rnncli("extract", tmp_path / "no-such.onnx", "-o", tmp_path / "full")

    assert done.code == 2
    assert "the folder holds other files" in done.err


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
    assert "quantise" not in inner
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
    monkeypatch.setattr("rnncli.models.quantised_units.dress_problems", lambda *_, **__: ())
    proto = onnx.load(model)
    proto.graph.initializer[0].float_data[:] = [-1.0]
    onnx.save(proto, model)
    done = rnncli("extract", model, "-o", tmp_path / "unit")

    assert done.code == 2
    assert "must be a positive float32 number" in done.err
    assert not (tmp_path / "unit").exists()
