"""Claims about manifests from strangers: none leads out of its pack, none is our own bug."""

import copy
import json
import shutil
from pathlib import Path

import pytest
from support.forged_packs import write_manifest
from support.odd_json import places, put
from support.small_suite import small_suite

from rnncli.errors import RnncliError, UnreadableFile
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import MANIFEST
from rnncli.packs.pack import open_pack
from rnncli.reports.inspection import pack_record
from rnncli.subjects.implementation import Implementation

CLIP = "lstm_14_clip"
EVIL = "a/../../../../evil"
# What stands where something else should.
ODD = (None, True, -1, 10**30, 0.5, "", "x", EVIL, "a\nb", "\x1b[2J", [], [1], ["x", "x"], {}, [[]])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The small suite as folders."""
    root = tmp_path_factory.mktemp("made")
    plan = GenerationPlan(suite=small_suite(), selection="clip or shape")
    assert generate(plan, root, lambda _: None).failed == ()
    return root


@pytest.fixture
def pack(made, tmp_path):
    """A copy to be spoilt."""
    return Path(shutil.copytree(made, tmp_path / "pack"))


def case_of(record):
    """The case with another answer."""
    return next(case for case in record["cases"] if case["id"] == CLIP)


def two_alike(record):
    """Give two cases one id."""
    record["cases"].append(copy.deepcopy(case_of(record)))


SPOILS = {
    "an id": lambda record: case_of(record).update(id=EVIL),
    "an id with a line feed": lambda record: case_of(record).update(id="a\nb"),
    "an id of two parts": lambda record: case_of(record).update(id="a/b"),
    "another reading": lambda record: case_of(record).update(alternatives=[EVIL]),
    "a reading that is none": lambda record: case_of(record).update(alternatives=["a=b"]),
    "a file": lambda record: case_of(record).update(files={EVIL: "0" * 64}),
    "a file of another case": lambda record: case_of(record).update(files={"test_x/y": "0" * 64}),
    "a file of the pack": lambda record: record.update(files={EVIL: "0" * 64}),
    "two cases of one id": two_alike,
    "an operator": lambda record: case_of(record).update(operator="LSTM-15"),
    "a dtype": lambda record: case_of(record).update(dtype="float31"),
    "an input": lambda record: case_of(record).update(inputs=[EVIL]),
    "an output": lambda record: case_of(record).update(outputs=["Z"]),
    "a tolerance": lambda record: case_of(record)["tolerance"].update(Y={"rtol": -1, "atol": 0}),
    "a layout": lambda record: record.update(layout="../../x"),
    "an unknown entry": lambda record: case_of(record).update(more=1),
    "a requirement": lambda record: case_of(record)["requirements"].update(opset="14"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_nothing_is_read_or_written_outside_the_pack(spoil, pack, tmp_path):
    """The digest is right and the names are not: refused before a path is made of one."""
    record = json.loads((pack / MANIFEST).read_bytes())
    SPOILS[spoil](record)
    write_manifest(pack, record)

    with pytest.raises(UnreadableFile, match=r"manifest\.json: "):
        convert_pack(open_pack(pack), tmp_path / "out", "onnx")
    assert [pack] == [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "use",
    [
        lambda pack: pack.select("clip"),
        lambda pack: pack.case(CLIP),
        lambda pack: [*pack.vectors()],
        lambda pack: pack.cases,
        pack_record,
        lambda pack: Implementation(results="some.npz").require_room(pack),
        lambda pack: pack.read(next(case for case in pack.manifest.cases if case.id == CLIP)),
    ],
    ids=["select", "case", "vectors", "cases", "inspect", "results", "read"],
)
def test_a_node_that_cannot_be_is_refused_when_its_case_is_used(use, pack):
    """Those of other cases are not even checked, but no case is used unchecked."""
    record = json.loads((pack / MANIFEST).read_bytes())
    case_of(record)["attributes"]["hidden_size"] = 99
    write_manifest(pack, record)
    read = open_pack(pack)
    other = next(case["id"] for case in record["cases"] if case["id"] != CLIP)

    assert read.read(read.case(other)).id == other
    with pytest.raises(UnreadableFile, match=rf"manifest\.json: cases\[\d+\] \({CLIP}\): .*is 99"):
        use(read)


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_any_other_value_is_refused_or_does_no_harm(odd, pack):
    """At every place of a record, with the right digest: one sentence, or a pack that is read."""
    record = json.loads((pack / MANIFEST).read_bytes())
    record["cases"] = [case_of(record)]
    record["notes"] = {"A": "b"}
    sentences = [sentence_of(pack, put(record, path, odd)) for path in places(record)]

    assert {"\n" in sentence for sentence in sentences} == {False}


def sentence_of(pack, record):
    """Why a pack with such a manifest cannot be read; "" when it can."""
    try:
        write_manifest(pack, record)
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""  # there is no digest of such a thing
    try:
        read = open_pack(pack)
        pack_record(read)
        read_all(read)
    except RnncliError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "content",
    [
        b'{"format": "rnncli-pack-1", "format": "rnncli-pack-1"}',
        b'{"format": "\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 50 + b"1" + b"}" * 50,
        b'{"seed": ' + b"9" * 5000 + b"}",
        b'{"seed": 1e999}',
        b'{"seed": -Infinity}',
        b"\xef\xbb\xbf[]",
        b"\0",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_json_that_is_none_is_one_sentence(content, tmp_path):
    """Keys twice, half characters, endless nesting and numbers."""
    (tmp_path / MANIFEST).write_bytes(content)

    with pytest.raises(UnreadableFile, match=r"manifest\.json: [^\n]{1,300}$"):
        open_pack(tmp_path)


@pytest.mark.parametrize("part", ["", "test_data_set_0", "readings", "model.onnx"])
def test_a_link_in_a_pack_is_not_followed(part, pack, tmp_path):
    """Also to what has the right checksums."""
    shutil.move(pack / f"test_{CLIP}" / part, tmp_path / "elsewhere")
    (pack / f"test_{CLIP}" / part).parent.mkdir(exist_ok=True)
    Path(str(pack / f"test_{CLIP}" / part).rstrip("/")).symlink_to(tmp_path / "elsewhere")
    read = open_pack(pack)

    assert {"is a symbolic link" in word for _, word in read.problems()} == {True}
    with pytest.raises(UnreadableFile, match=r"is a symbolic link; links in .* are not followed"):
        read_all(read)


def read_all(pack):
    """Read every part of a case."""
    for vector in pack.vectors():
        assert vector.model
        assert vector.inputs is not None
        assert vector.answers is not None
        assert vector.alternatives is not None
