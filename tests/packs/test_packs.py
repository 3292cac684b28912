"""Claims about packs: ONNX's own tools read them, and a pack that was tampered with is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec.structs import fields
from onnx import numpy_helper
from support.small_suite import small_suite

import rnncli
from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.described import entries_of
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import MANIFEST
from rnncli.packs.pack import is_pack, open_pack
from rnncli.packs.record import CaseRecord, Golden


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """The small suite as ONNX and raw folders, and as one file."""
    root = tmp_path_factory.mktemp("packs")
    for layout in ("onnx", "raw", "npz"):
        plan = GenerationPlan(suite=small_suite(), layout=layout)
        assert generate(plan, root / layout, lambda _: None).failed == ()
    return root


@pytest.fixture
def pack(packs, tmp_path):
    """A copy to be spoilt."""
    return Path(shutil.copytree(packs / "onnx", tmp_path / "pack"))


@pytest.mark.parametrize("layout", ["onnx", "raw", "npz"])
def test_vectors_are_read_back(packs, layout):
    """Outputs and tolerances have the same names and shapes, dtypes are the case's."""
    vectors = list(open_pack(packs / layout).vectors())

    assert len(vectors) == len(small_suite().entries)
    for vector in vectors:
        assert [*entries_of(vector.record)] == [
            row.name for row in fields(CaseRecord) if row.required
        ]
        assert list(vector.inputs) == vector.record.inputs
        answers = vector.answers
        if vector.record.expect == "result":
            assert list(answers.outputs) == list(answers.tolerances) == vector.record.outputs
        for name, values in answers.outputs.items():
            assert answers.tolerances[name].shape == values.shape
            assert answers.tolerances[name].dtype == np.float32
            assert (answers.tolerances[name] >= 0).all()


def test_goldens_are_what_rnncli_run_computes(packs):
    """Our own evaluation of each model lies within the tolerances, so does every loaded input."""
    for record in open_pack(packs / "onnx").manifest.cases:
        if record.expect == "rejection":
            continue
        vector = open_pack(packs / "onnx").read(record)
        folder = packs / "onnx" / f"test_{record.id}"
        outputs = rnncli.evaluate_model(rnncli.load_model(folder / "model.onnx"), vector.fed)
        for name, wanted in vector.answers.outputs.items():
            error = np.abs(outputs[name].astype(np.float64) - wanted.astype(np.float64))
            same = np.isnan(wanted.astype(np.float64)) & np.isnan(outputs[name].astype(np.float64))
            assert (same | (error <= vector.answers.tolerances[name])).all(), record.id


def test_onnx_loads_the_folders_as_its_own(packs):
    """Models pass the full checker; input_K and output_K are those of the graph, by position."""
    for record in open_pack(packs / "onnx").manifest.cases:
        folder = packs / "onnx" / f"test_{record.id}"
        if record.expect == "result":
            onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
        model = onnx.load(folder / "model.onnx")
        held = {each.name for each in model.graph.initializer}
        assert held == ({"W", "R", "B", "P"} & held if record.weights != "inputs" else set())
        assert bool(held) == (record.weights == "initializers")
        for role, values in (("input", model.graph.input), ("output", model.graph.output)):
            for k, info in enumerate(values):
                path = folder / "test_data_set_0" / f"{role}_{k}.pb"
                if role == "output" and record.expect == "rejection":
                    assert not path.exists()
                    continue
                tensor = onnx.TensorProto.FromString(path.read_bytes())
                assert tensor.name == info.name
                assert numpy_helper.to_array(tensor).shape == tuple(
                    dim.dim_value for dim in info.type.tensor_type.shape.dim
                )


def test_a_vector_is_read_by_its_id(packs):
    """Or by the record of its case; a slip is told the nearest id."""
    pack = open_pack(packs / "onnx")

    assert pack.read("lstm_14_clip").record == pack.case("lstm_14_clip")
    with pytest.raises(InvalidRequest, match="did you mean 'lstm_14_clip'"):
        pack.read("lstm_14_clib")


def test_another_reading_is_stored_and_tagged(packs):
    """Clipping the input of h changes the LSTM: both answers are there, and the tag."""
    vector = open_pack(packs / "onnx").read(open_pack(packs / "onnx").case("lstm_14_clip"))
    (name, other) = next(iter(vector.alternatives.items()))

    assert name == "clip-scope=gates"
    assert vector.record.tags == ["reading:clip-scope"]
    assert not np.array_equal(other.outputs["Y"], vector.answers.outputs["Y"])


def test_nan_in_a_valid_step_is_tagged(packs):
    """What runtimes make of NaN differs: the case says so, and its golden is not certified."""
    record = open_pack(packs / "onnx").case("rnn_14_nan")

    assert record.tags == ["non-portable"]
    assert record.golden == Golden(kind="float64")


def test_a_case_to_be_refused_says_why(packs):
    """It has no outputs, and its reason is the sentence of our own refusal."""
    record = open_pack(packs / "onnx").case("lstm_14_shape")

    assert record.expect == "rejection"
    assert "W must be [1, 20, 3]" in record.reason


def test_certified_goldens_say_with_how_many_bits(packs):
    """Precision and passes of the proof are in the manifest."""
    golden = open_pack(packs / "onnx").case("gru_22_half_float64").golden

    assert golden.kind == "certified"
    assert golden.bits >= 53
    assert golden.passes >= 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: record.update(format="other"),
        lambda record: record.pop("cases"),
        lambda record: record["cases"][0].pop("requirements"),
        lambda record: record["cases"][0].update(files={"../../etc/passwd": "0" * 64}),
        lambda record: record["cases"][0].update(files={"/etc/passwd": "0" * 64}),
        lambda record: record.update(summary="another"),
        lambda record: record.update(cases="none"),
    ],
)
def test_a_manifest_that_was_changed_is_refused(pack, spoil):
    """An entry missing, a path out of the pack, or any other change: nothing is read."""
    record = json.loads((pack / MANIFEST).read_bytes())
    spoil(record)
    (pack / MANIFEST).write_text(json.dumps(record))

    with pytest.raises(UnreadableFile, match=r"manifest\.json"):
        open_pack(pack)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"a": NaN}'])
def test_a_manifest_that_is_none_is_refused(tmp_path, content):
    """Truncated, foreign or empty JSON is one sentence."""
    (tmp_path / MANIFEST).write_bytes(content)

    assert is_pack(tmp_path)
    with pytest.raises(UnreadableFile, match=r"manifest\.json"):
        open_pack(tmp_path)


def test_an_altered_pack_is_not_converted(pack, tmp_path):
    """A conversion would launder it."""
    next(iter(pack.rglob("output_0.pb"))).write_bytes(b"")

    with pytest.raises(InvalidRequest, match="altered"):
        convert_pack(open_pack(pack), tmp_path / "npz", "npz")
    assert not (tmp_path / "npz").exists()


def test_an_unknown_case_is_suggested(packs):
    """A misspelt id names the nearest."""
    with pytest.raises(InvalidRequest, match="did you mean 'lstm_14_clip'"):
        open_pack(packs / "onnx").case("lstm_14_clap")


def test_a_pack_is_known_by_the_beginning_of_its_digest(packs):
    """However it is written; another one is another pack."""
    digest = open_pack(packs / "raw").manifest.digest

    for asked in ("", digest, digest[:12], digest[:12].upper()):
        assert open_pack(packs / "raw", asked).manifest.digest == digest
    with pytest.raises(InvalidRequest, match="is another pack: its digest is"):
        open_pack(packs / "raw", digest[1:12])
