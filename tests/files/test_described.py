"""Claims about classes of records: what they check is what their JSON Schema says."""

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pytest
from msgspec import UNSET, Meta, UnsetType
from support.odd_json import FORMAT_CHECKER, spoilt
from support.verifications import claimed

from rnncli.errors import InvalidRequest
from rnncli.files import described
from rnncli.files.described import (
    Described,
    Identifiers,
    Sums,
    Texts,
    check,
    jsonable,
    read,
    schema_of,
)
from rnncli.judging.claim import Claim
from rnncli.packs.record import CaseRecord
from rnncli.reports.verification_schema import VerdictLine
from rnncli.subjects.harness_messages import MESSAGES

CORE = Path(__file__).parents[2] / "vectors" / "core"
WHERE = "it"


def follows(value, kind):
    """Whether our check lets a value pass."""
    try:
        check(value, kind, WHERE)
    except InvalidRequest:
        return False
    return True


def a_case():
    """A case of the core pack with a second call, and with other readings."""
    cases = json.loads((CORE / "manifest.json").read_bytes())["cases"]
    return next(case for case in cases if "later_calls" in case and case["attributes"])


MESSAGE = {
    "outputs": {"Y": {"file": "0.bin", "dtype": "float32", "shape": [1, 2]}},
}
KINDS = {
    "a case": (CaseRecord, a_case()),
    "a claim": (Claim, jsonable(claimed().claim)),
    **{kind: (row, MESSAGE) for kind, row in MESSAGES.items() if kind != "started"},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_value_passes_if_it_follows_the_schema(name):
    """With anything odd in any place, the two checks agree; so they do on what is right."""
    kind, value = KINDS[name]
    judge = jsonschema.Draft202012Validator(schema_of(kind), format_checker=FORMAT_CHECKER)
    wrong = 0

    for each in (value, *spoilt(value)):
        assert follows(each, kind) == judge.is_valid(each), each
        wrong += not judge.is_valid(each)
    assert wrong > 3


class Words(StrEnum):
    """Words, not all of which are taken."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


Word = described.own_type("Word", Literal["yes", "no"], Words)


class Inner(described.Distinct):
    """An inner record."""

    names: Annotated[Texts | UnsetType, "some names"] = UNSET
    paths: Sums | UnsetType = UNSET


class Counted(Described):
    """A record with defaults, for our own code."""

    count: Annotated[described.Whole, "how many"] = 0
    largest: described.Number = 0.0
    word: Annotated[Word, "a word"] = Words.YES


class Outer(Described):
    """An outer record."""

    inner: Annotated[Inner, "what is inside"]
    rows: list[dict[str, str]] | UnsetType = UNSET


SENTENCES = {
    "a type": (int, True, "it must be integer, got True"),
    "types": (str | None, 1, "it must be string or null, got 1"),
    "a constant": (Literal["a"], "b", "it must be 'a', got 'b'"),
    "a choice": (Literal["a", 1], [], "it must be one of 'a', 1, got an array of 0"),
    "a pattern": (Annotated[str, Meta(pattern="^a+$")], "ab", "it must match ^a+$, got 'ab'"),
    "a path": (described.RelativePath, "../x", "it does not name a file: "),
    "a range": (described.Whole, -1, "it must be from 0 to any, got -1"),
    "a limited range": (Annotated[int, Meta(ge=0, le=5)], 6, "it must be from 0 to 5, got 6"),
    "a length": (
        Annotated[list[int], Meta(max_length=1)],
        [1, 2],
        "it must have at most 1 entries, got an array of 2",
    ),
    "the second of two limits": (
        Annotated[list[str], described.UNIQUE, Meta(max_length=1)],
        ["a", "b"],
        "it must have at most 1 entries, got an array of 2",
    ),
    "duplicates": (Texts, ["a", "a"], "it must not have duplicates, got an array of 2"),
    "names of files": (Identifiers, ["a", "b/c"], "it[1] does not name a file: "),
    "an entry too few": (Outer, {}, "it has no 'inner'"),
    "an entry too many": (Inner, {"a": 1}, "it has an unknown entry 'a'"),
    "half a character": (Inner, {"\ud800": 1}, "it has an unknown entry '\\ud800'"),
    "a number or a word": (
        described.Number,
        "x",
        "it must be number or 'inf' or '-inf' or 'nan', got 'x'",
    ),
    "a word of others": (
        Counted,
        {"count": 1, "largest": 1, "word": "maybe"},
        "it.word must be one of 'yes', 'no', got 'maybe'",
    ),
    "an entry with a default": (Counted, {"count": 1, "word": "no"}, "it has no 'largest'"),
    "one of many with a default": (
        list[Counted | None],
        [None, {"count": 1, "largest": 1.0}],
        "it[1] has no 'word'",
    ),
    "one of some by name": (dict[str, Counted], {"a": {"count": 1}}, "it.a has no 'largest'"),
    "a path as a name": (
        Outer,
        {"inner": {"paths": {"/x": "0" * 64}}},
        "a name in it.inner.paths does not name a file: ",
    ),
    "a checksum": (
        Sums,
        {"x": "0" * 64 + "\n"},
        "it.x must match ^[0-9a-f]{64}$, got",
    ),
    "its place": (
        Outer,
        {"inner": {}, "rows": [{}, {"b": 1}]},
        "it.rows[1].b must be string, got 1",
    ),
    "the place of a name": (
        list[Sums],
        [{"..": "0" * 64}],
        "a name in it[0] does not name a file: ",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_violation_is_one_sentence_with_its_place(name):
    """What the value is of, where it is, and what it should be."""
    kind, value, sentence = SENTENCES[name]

    with pytest.raises(InvalidRequest) as caught:
        check(value, kind, WHERE)
    assert str(caught.value).startswith(sentence)


def test_classes_with_lists_without_duplicates_refuse_duplicates():
    """Only a `Distinct` asks; a class that forgot to be one would take anything."""
    rows = [*described.subclasses(Described)]
    listed = [row for row in rows if described.unique_lists(row)]

    assert {CaseRecord, VerdictLine} <= {*listed}
    assert [row for row in listed if not issubclass(row, described.Distinct)] == []


def test_annotations_describe_the_schema():
    """A text in an entry's annotation is its description, a docstring that of its class."""
    schema = schema_of(Outer)

    assert schema["description"] == "An outer record."
    inner = schema["properties"]["inner"]
    assert inner["description"] == "what is inside"
    assert inner["properties"]["names"]["description"] == "some names"


@pytest.mark.parametrize("largest", [0.5, math.inf, -math.inf])
def test_a_record_comes_back_from_json(largest):
    """Numbers that JSON has not are text there; a word is one of its enumeration again."""
    record = Counted(3, largest, Words.NO)
    written = json.loads(json.dumps(jsonable(record), allow_nan=False))

    assert read(written, Counted, WHERE) == record
    assert schema_of(Counted)["required"] == ["count", "largest", "word"]
