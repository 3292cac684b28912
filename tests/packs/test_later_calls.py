"""Packs of cases with a second call, in every layout, whole and damaged."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace as with_entries
from support.forged_packs import resealed, write_manifest
from support.second_calls import SHAPES, TEXT
from support.small_suite import small_suite

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.described import jsonable
from rnncli.files.formats import read_tensors
from rnncli.generating.generation import GenerationPlan, check, generate
from rnncli.generating.production import make_vectors
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import JOURNAL, MANIFEST, read_record
from rnncli.packs.pack import open_pack

LAYOUTS = ("onnx", "raw", "npz", "h5")


def made(folder, text=TEXT, layout="onnx"):
    """Generate a pack."""
    plan = GenerationPlan(suite=small_suite(text), layout=layout)
    assert generate(plan, folder, lambda _: None).failed == ()
    return plan


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """One in each layout."""
    root = tmp_path_factory.mktemp("twice")
    for layout in LAYOUTS:
        made(root / layout, layout=layout)
    return root


@pytest.fixture
def pack(packs, tmp_path):
    """A copy to be spoilt."""
    return Path(shutil.copytree(packs / "onnx", tmp_path / "pack"))


def files(folder):
    """Every file's bytes by path, but for the journal of what the pack was made from."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != JOURNAL
    }


def test_the_first_call_has_the_bytes_of_a_case_of_one_call(packs, tmp_path):
    """Its folder and all that its record says but of the later call and what it adds."""
    made(tmp_path / "once", TEXT.replace("calls: 2", "calls: 1"))
    once, both = files(tmp_path / "once"), files(packs / "onnx")

    shared = {path: content for path, content in both.items() if "/" in path and "_1/" not in path}
    assert shared == {path: content for path, content in once.items() if "/" in path}
    for before, after in zip(
        open_pack(tmp_path / "once").manifest.cases,
        open_pack(packs / "onnx").manifest.cases,
        strict=True,
    ):
        assert before.later_calls is UNSET
        assert before == with_entries(
            after, files=before.files, tags=before.tags, later_calls=UNSET
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_call_is_read_back(packs, layout):
    """Of the same shapes, with the weights that the model holds, and with other lengths."""
    for vector in open_pack(packs / layout).vectors():
        assert len(vector.calls) == 1 + len(vector.record.later_calls or ())
        for call, asked in enumerate(vector.calls):
            assert asked.call == call
            assert list(asked.inputs) == vector.record.inputs
            assert list(asked.answers.outputs) == vector.record.outputs
        for later in vector.later:
            same = [n for n, v in later.inputs.items() if np.array_equal(v, vector.inputs[n])]
            held = [n for n in ("W", "R") if vector.record.weights == "initializers"]
            assert same == held


def test_second_calls_have_names_of_their_own_in_one_file(packs):
    """Those of the first are what they would be alone."""
    names = {n.partition("/")[2] for n in read_tensors(packs / "npz" / "vectors.npz")}

    assert {"inputs/X", "outputs/Y", "calls/1/inputs/X", "calls/1/tolerances/Y"} <= names


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_layouts_convert_into_each_other(packs, tmp_path, layout, other):
    """To the bytes that `generate` writes."""
    convert_pack(open_pack(packs / layout), tmp_path / "pack", other)

    assert files(tmp_path / "pack") == files(packs / other)


def test_other_readings_of_a_second_call_stand_beside_those_of_the_first(packs):
    """Each call has those that matter to it."""
    (record,) = [c for c in open_pack(packs / "onnx").manifest.cases if c.id == "lstm_14_clip"]

    assert any("/readings/" in path for path in record.files)
    assert any("/readings_1/" in path for path in record.files)
    assert record.later_calls[0].alternatives


def test_check_and_resumption_know_second_calls(pack):
    """A lost file is found, and made again; nothing else is written."""
    plan = GenerationPlan(suite=small_suite(TEXT))
    lost = pack / "test_lstm_14_given" / "test_data_set_1" / "output_0.pb"
    content = lost.read_bytes()
    lost.unlink()

    found = [(str(lost.relative_to(pack)), "missing")]
    assert [*check(plan, pack, lambda _: None).findings] == found
    assert generate(plan, pack, lambda _: None).warnings == ()
    assert lost.read_bytes() == content


def test_files_of_a_second_call_that_is_gone_are_removed(pack):
    """They were ours; it is told that the case is another."""
    once = GenerationPlan(suite=small_suite(TEXT.replace("calls: 2", "calls: 1")))

    (said,) = generate(once, pack, lambda _: None).warnings

    assert "4 cases were changed (rnn_14_fill, " in said
    assert not [path for path in files(pack) if "_1/" in path]


@pytest.mark.parametrize(
    ("name", "part"),
    [("input_0.pb", "inputs"), ("output_1.pb", "answers"), ("tolerance_0.pb", "answers")],
)
def test_a_truncated_second_call_is_damage(pack, name, part):
    """The first can still be read."""
    path = pack / "test_lstm_14_given" / "test_data_set_1" / name
    path.write_bytes(path.read_bytes()[:-3])
    resealed(pack)
    vector = open_pack(pack).read(open_pack(pack).case("lstm_14_given"))

    assert vector.answers.outputs
    with pytest.raises(UnreadableFile, match=name):
        getattr(vector.later[0], part)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (10**9, "later_calls must be array"),
        (-1, "later_calls must be array"),
        ([{}], "later_calls[0] has no"),
        ([None], "later_calls[0] must be object"),
        ([{"golden": {"kind": "none"}, "alternatives": ["../x"], "tolerance": {}}], "alternatives"),
        (
            [{"golden": {"kind": "none"}, "alternatives": [], "tolerance": {}, "files": {}}],
            "files",
        ),
        (
            [
                {
                    "golden": {"kind": "none"},
                    "alternatives": [],
                    "tolerance": {"Z": {"rtol": 0, "atol": 0}},
                }
            ],
            "'Z'",
        ),
    ],
)
def test_what_a_hostile_manifest_says_of_later_calls_is_refused(pack, later, words):
    """In one sentence."""
    case = {**jsonable(open_pack(pack).case("lstm_14_given")), "later_calls": later}

    with pytest.raises(InvalidRequest) as caught:
        read_record(case, "cases[0]")
    assert words in str(caught.value)


def test_files_of_a_second_call_stay_below_their_case(pack):
    """A link out of the pack is not followed, and a folder that is missing is named."""
    folder = pack / "test_lstm_14_given" / "test_data_set_1"
    shutil.move(folder, pack.parent / "outside")
    with pytest.raises(UnreadableFile, match="test_data_set_1"):
        open_pack(pack).read(open_pack(pack).case("lstm_14_given"))
    folder.symlink_to(pack.parent / "outside")
    with pytest.raises(UnreadableFile, match="link"):
        open_pack(pack).read(open_pack(pack).case("lstm_14_given"))


def test_more_later_calls_than_there_are_folders_are_damage(pack):
    """Nothing is made of what is only claimed."""
    data = json.loads((pack / MANIFEST).read_bytes())
    data["cases"][0]["later_calls"] *= 1000
    write_manifest(pack, data)
    vector = next(open_pack(pack).vectors())

    assert len(vector.calls) == 1001
    with pytest.raises(UnreadableFile, match="test_data_set_2"):
        assert vector.later[1].answers
    assert json.loads((pack / MANIFEST).read_bytes())["cases"][0]["id"] == vector.id


def test_a_second_call_that_asks_nothing_else_is_refused():
    """All inputs are constants, and the weights are the model's."""
    text = TEXT.partition("cases:")[0] + (
        "cases:\n  same:\n    op: RNN-14\n    weights: initializers\n    inputs: {X: ones}\n"
    )
    (error,) = make_vectors(small_suite(text).entries)

    assert str(error) == "rnn_14_same: call 2: every input is the same as in the first call"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_calls_of_other_sizes_come_back_from_every_layout(tmp_path, layout):
    """Each with its own sizes in its record; the model has names for them."""
    made(tmp_path / "onnx", SHAPES)
    convert_pack(open_pack(tmp_path / "onnx"), tmp_path / "there", layout)
    convert_pack(open_pack(tmp_path / "there"), tmp_path / "back", "onnx")

    assert files(tmp_path / "back") == files(tmp_path / "onnx")
    for vector in open_pack(tmp_path / "there").vectors():
        assert [each.record.sizes["batch_size"] for each in vector.calls] == [2, 4, 1]
        assert [each.inputs["X"].shape[:2] for each in vector.calls] == [(3, 2), (5, 4), (2, 1)]
        assert vector.record.requirements.largest_size == 5
        assert vector.has_one_model


@pytest.mark.parametrize(("layout", "file"), [("c", "case.h"), ("hex", "case.svh")])
def test_forms_for_kernels_have_the_sizes_of_every_call(tmp_path, layout, file):
    """Beside those of the case."""
    made(tmp_path / "onnx", SHAPES)
    convert_pack(open_pack(tmp_path / "onnx"), tmp_path / "there", layout)
    text = (tmp_path / "there" / "test_gru_14_fed" / file).read_text()

    for name, size in {"": 3, "CALL1_": 5, "CALL2_": 2}.items():
        assert f"gru_14_fed_{name}SEQ_LENGTH {size}\n" in text


def test_other_sizes_need_a_model_that_leaves_them_open(tmp_path):
    """A hostile manifest says otherwise."""
    made(tmp_path / "pack", SHAPES)
    case = jsonable(open_pack(tmp_path / "pack").case("gru_14_fed"))
    del case["open_sizes"]

    with pytest.raises(InvalidRequest, match="has no 'open_sizes'"):
        read_record(case, "cases[0]")


def test_no_other_size_of_a_later_call_is_open(tmp_path):
    """The model's weights fix it, whatever a manifest says."""
    made(tmp_path / "pack", SHAPES)
    case = jsonable(open_pack(tmp_path / "pack").case("gru_14_fed"))
    case["later_calls"][0]["sizes"]["hidden_size"] += 1

    with pytest.raises(InvalidRequest, match="a later call has another hidden_size"):
        read_record(case, "cases[0]")


def test_sizes_of_calls_in_a_raw_pack_are_those_of_the_manifest(tmp_path):
    """A file that says otherwise is damage, also with the right checksum."""
    made(tmp_path / "pack", SHAPES, "raw")
    path = tmp_path / "pack" / "test_gru_14_fed" / "case.json"
    path.write_text(path.read_text().replace('"batch_size": 4', '"batch_size": 3'))
    resealed(tmp_path / "pack")

    with pytest.raises(UnreadableFile, match="the sizes of a call are not those"):
        open_pack(tmp_path / "pack").read(open_pack(tmp_path / "pack").case("gru_14_fed"))
