"""Packs as raw files: what others read in them, and refusals of damaged and hostile ones."""

import hashlib
import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from support.forged_packs import resealed
from support.odd_json import FORMAT_CHECKER, spoilt
from support.second_calls import TEXT, twice
from support.small_suite import small_suite
from support.tables import every

from rnncli.cases.library import specs_folder
from rnncli.cases.schemas import schema_text
from rnncli.errors import InvalidRequest, UnreadableFile, Unsupported
from rnncli.files.described import check as check_record
from rnncli.files.formats.raw import content_of, tensor_from
from rnncli.files.formats.stored import NARROW
from rnncli.generating.generation import GenerationPlan, check, generate
from rnncli.generating.production import make_vectors
from rnncli.numerics import DTYPES
from rnncli.packs.pack import open_pack
from rnncli.packs.raw_form import CASE, RawRecord, as_text, case_schema, files_of, raw_case
from rnncli.packs.vector import Answers

CORE = Path(__file__).parents[2] / "vectors" / "core"
ID = "lstm_14_given"
PLAN = GenerationPlan(suite=small_suite(TEXT), layout="raw")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A raw pack with second calls, other readings and weights that models hold."""
    folder = tmp_path_factory.mktemp("raw") / "pack"
    assert generate(PLAN, folder, lambda _: None).failed == ()
    return folder


@pytest.fixture
def pack(made, tmp_path):
    """A copy to be spoilt."""
    return shutil.copytree(made, tmp_path / "pack")


def read(pack, case_id=ID):
    """The case, read at once."""
    return open_pack(pack).read(open_pack(pack).case(case_id))


def edited(pack, change, case_id=ID):
    """Let a function change the content of `case.json`, and the manifest with it."""
    path = pack / f"test_{case_id}" / CASE
    case = json.loads(path.read_text())
    change(case)
    path.write_text(json.dumps(case))
    resealed(pack)


def test_a_tensor_is_its_elements_and_nothing_else(made):
    """Little-endian, in C order: eight lines of any language read it."""
    case = json.loads((made / f"test_{ID}" / CASE).read_text())
    described = case["data_sets"][0]["inputs"][0]
    content = (made / f"test_{ID}" / described["file"]).read_bytes()

    X = read(made).inputs["X"]
    assert (described["name"], described["dtype"], described["shape"]) == (
        "X",
        "float32",
        [4, 3, 2],
    )
    assert struct.unpack("<24f", content) == tuple(X.ravel())
    assert described["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_case_says_in_words_what_a_kernel_must_know(made):
    """Defaults and absent inputs included, and what each reading means."""
    case = json.loads((made / "test_lstm_14_clip" / CASE).read_text())

    assert "gates in W, R and B: i, o, f, c" in case["in_words"]
    assert "B: absent" in case["in_words"]
    assert any(sentence.startswith("attribute clip: 0.2") for sentence in case["in_words"])
    assert case["readings"]["zero-length"]["means"] == "zero"
    assert "clip-scope=gates" in case["data_sets"][0]["other_readings"]


def test_the_committed_schema_is_current():
    """`rnncli schema case` writes it; nobody edits it."""
    schema = case_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    path = specs_folder() / "schema/case.schema.json"

    assert path.read_text(encoding="utf-8") == schema_text(schema)


def exact(vector):
    """The vector with tolerances of 0."""
    answers = vector.answers
    zeros = {name: np.zeros_like(values) for name, values in answers.tolerances.items()}
    return replace(vector, answers=Answers(answers.outputs, zeros))


def test_every_case_of_core_follows_the_schema(made):
    """As do cases with second calls, with tolerances of 0, and without answers."""
    judge = jsonschema.Draft202012Validator(case_schema())
    odd = [*make_vectors(list(small_suite().select("shape"))), exact(twice()[ID])]
    core = [as_text(raw_case(each).case) for each in (*open_pack(CORE).vectors(), *odd)]
    own = [path.read_text() for path in made.glob(f"test_*/{CASE}")]
    found = [*map(json.loads, (*core, *own))]
    outputs = [each for case in found for data in case["data_sets"] for each in data["outputs"]]

    assert len(found) > 180
    assert {len(case["data_sets"]) for case in found} >= {1, 2}
    assert {case["expect"] for case in found} == {"result", "rejection"}
    assert {each["tolerance"] == 0 for each in outputs} == {True, False}
    for case in found:
        judge.validate(case)


def test_the_schema_is_what_is_read(made):
    """With anything odd in any place, a case follows the schema or is refused for that place."""
    case = json.loads((made / f"test_{ID}" / CASE).read_text())
    judge = jsonschema.Draft202012Validator(case_schema(), format_checker=FORMAT_CHECKER)
    wrong = 0

    for each in spoilt(case):
        if judge.is_valid(each):
            check_record(each, RawRecord, "the case")
        else:
            wrong += 1
            with pytest.raises(InvalidRequest, match=r"^(a name in )?the case"):
                check_record(each, RawRecord, "the case")
    assert wrong > 500


def test_check_finds_what_was_altered_or_lost(pack):
    """As in folders of ONNX."""
    lost = pack / f"test_{ID}" / "calls/1/outputs/Y.bin"
    lost.unlink()
    altered = pack / f"test_{ID}" / "inputs/X.bin"
    altered.write_bytes(altered.read_bytes()[::-1])

    found = [*check(PLAN, pack, lambda _: None).findings]
    assert found == [
        (f"test_{ID}/calls/1/outputs/Y.bin", "missing"),
        (f"test_{ID}/inputs/X.bin", "altered"),
    ]
    altered.unlink()  # what was edited is not replaced
    assert generate(PLAN, pack, lambda _: None).warnings == ()
    assert check(PLAN, pack, lambda _: None).findings == ()


def test_another_layout_replaces_the_files_of_the_one_before(pack):
    """Nothing of it is left, and nothing is foreign."""
    assert generate(replace(PLAN, layout="onnx"), pack, lambda _: None).warnings == ()
    assert not [*pack.rglob("*.bin"), *pack.rglob("case.json")]


@every("name", [name for name in DTYPES if name != "string"])
def test_every_dtype_keeps_its_bits(name):
    """Those of ml_dtypes too; an element narrower than a byte has the byte to itself."""
    row = DTYPES[name]
    content = np.random.default_rng(5).bytes(6 * row.numpy.itemsize)
    values = tensor_from(content, row, (2, 3))

    again = tensor_from(content_of(values), row, (2, 3))
    assert again.dtype == values.dtype == row.numpy
    assert again.tobytes() == values.tobytes()
    if name != "bool" and name not in NARROW:
        assert content_of(values) == content


def test_special_values_are_kept():
    """The file of a tensor has their bits."""
    vector = twice()[ID]
    special = np.array([np.nan, -np.inf, -0.0, 1e-45, 0, 0], np.float32).reshape(3, 2)
    files = files_of(replace(vector, inputs={**vector.inputs, "X": special}))

    assert files["inputs/X.bin"] == special.tobytes()


def test_what_the_form_cannot_say_is_refused():
    """In one sentence: text, and tolerances of another dtype."""
    vector = twice()[ID]
    words = replace(vector, inputs={"X": np.array(["a"], object)})
    with pytest.raises(Unsupported, match="X is text"):
        raw_case(words)

    wide = {name: values.astype(np.float64) for name, values in vector.answers.tolerances.items()}
    with pytest.raises(Unsupported, match="tolerance of Y is float64"):
        raw_case(replace(vector, answers=Answers(vector.answers.outputs, wide)))


def first(case, role="inputs"):
    """The description of the first tensor."""
    return case["data_sets"][0][role][0]


HOSTILE = {
    "a path out of the case": (lambda c: first(c).update(file="../../secret"), "'..'"),
    "an absolute path": (lambda c: first(c).update(file="/etc/passwd"), "absolute"),
    "a file of the folder": (lambda c: first(c).update(file="extra.bin"), "not listed"),
    "a shape of another size": (lambda c: first(c).update(shape=[4, 3, 3]), "has 96 bytes"),
    "a huge shape": (lambda c: first(c).update(shape=[1 << 62] * 3), "has more than"),
    "many dimensions": (lambda c: first(c).update(shape=[1] * 99), "99 dimensions"),
    "a negative shape": (lambda c: first(c).update(shape=[-4, 3, 2]), "must be from 0"),
    "another dtype": (lambda c: first(c).update(dtype="float16"), "has 96 bytes"),
    "an unknown dtype": (lambda c: first(c).update(dtype="float33"), "float33"),
    "text": (lambda c: first(c).update(dtype="string"), "dtype must be one of"),
    "another checksum": (lambda c: first(c).update(sha256="0" * 64), "checksum"),
    "no checksum": (lambda c: first(c).pop("sha256"), "sha256"),
    "a number for a tolerance": (
        lambda c: first(c, "outputs").update(tolerance=1),
        "outputs[0].tolerance must be string or 0, got 1",
    ),
    "a tolerance without a checksum": (
        lambda c: first(c, "outputs").pop("tolerance_sha256"),
        "outputs[0] has no 'tolerance_sha256'",
    ),
    "an unknown entry": (lambda c: c.update(more=1), "has an unknown entry 'more'"),
    "no words": (lambda c: c.pop("in_words"), "has no 'in_words'"),
    "another case": (lambda c: c.update(dtype="float64"), "'dtype' is not the one"),
    "other readings": (lambda c: c["readings"].pop("zero-length"), "readings"),
    "an input less": (lambda c: c["data_sets"][0]["inputs"].pop(), "has inputs"),
    "an output less": (lambda c: c["data_sets"][0]["outputs"].pop(), "has outputs"),
    "a data set less": (lambda c: c["data_sets"].pop(), "has outputs none"),
    "another format": (lambda c: c.update(format="rnncli-raw-9"), "format"),
    "no data sets": (lambda c: c.update(data_sets={}), "must be array"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_case_is_refused(pack, name):
    """Whoever changed `case.json` gets one sentence, and no file outside the case is read."""
    change, words = HOSTILE[name]
    edited(pack, change)

    with pytest.raises(UnreadableFile) as caught:
        read(pack)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_tolerance_that_accepts_anything_is_refused(pack, value):
    """NaN, an infinity and a negative number are none."""
    path = pack / f"test_{ID}" / "tolerances/Y.bin"
    content = np.full(path.stat().st_size // 4, value, "<f4").tobytes()
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edited(pack, lambda case: first(case, "outputs").update(tolerance_sha256=digest))

    with pytest.raises(UnreadableFile, match="negative, infinite or NaN"):
        read(pack)


@pytest.mark.parametrize("name", [CASE, "inputs", "inputs/X.bin"])
def test_links_are_not_followed(pack, name):
    """Neither of a file nor of a folder."""
    path = pack / f"test_{ID}" / name
    shutil.move(path, pack.parent / "outside")
    path.symlink_to(pack.parent / "outside")

    with pytest.raises(UnreadableFile, match="link"):
        read(pack)
