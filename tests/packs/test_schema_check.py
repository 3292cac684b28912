"""Claims about our checks of JSON by a schema, held to those of the package jsonschema."""

import json
from pathlib import Path

import jsonschema
import pytest
from odd_json import spoilt, without_formats

from rnncli.errors import InvalidRequest
from rnncli.packs.manifest import manifest_schema
from rnncli.packs.schema_check import SchemaCheck, check
from rnncli.subjects.harness_messages import MESSAGES

CORE = Path(__file__).parents[2] / "vectors" / "core"
WHERE = "it"


def follows(value, schema):
    """Whether our check lets a value pass."""
    try:
        check(value, schema, WHERE)
    except InvalidRequest:
        return False
    return True


def a_case():
    """A case of the core pack with a second call, and with other readings."""
    cases = json.loads((CORE / "manifest.json").read_bytes())["cases"]
    return next(case for case in cases if "later_calls" in case and case["attributes"])


CASE = without_formats(manifest_schema()["properties"]["cases"]["items"])
MESSAGE = {
    "outputs": {"Y": {"file": "0.bin", "dtype": "float32", "shape": [1, 2]}},
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [(CASE, a_case()), *[(MESSAGES[kind], MESSAGE) for kind in MESSAGES]],
    ids=["a case", *MESSAGES],
)
def test_a_value_passes_if_it_follows_the_schema(schema, value):
    """With anything odd in any place, the two checks agree; so they do on what is right."""
    judge = jsonschema.Draft202012Validator(without_formats(schema))
    wrong = 0

    for each in (value, *spoilt(value)):
        assert follows(each, without_formats(schema)) == judge.is_valid(each), each
        wrong += not judge.is_valid(each)
    assert wrong > 3


SENTENCES = {
    "a type": ({"type": "integer"}, True, "it must be integer, got True"),
    "types": ({"type": ["string", "null"]}, 1, "it must be string or null, got 1"),
    "a constant": ({"const": "a"}, "b", "it must be 'a', got 'b'"),
    "a choice": ({"enum": ["a", 1]}, [], "it must be one of 'a', 1, got an array of 0"),
    "a pattern": ({"pattern": "a+"}, "ab", "it must match a+, got 'ab'"),
    "a path": ({"format": "rnncli-path"}, "../x", "it does not name a file: "),
    "a range": ({"minimum": 0}, -1, "it must be from 0 to any, got -1"),
    "duplicates": ({"uniqueItems": True}, [1, 1], "it must not have duplicates, got an array of 2"),
    "an entry too few": ({"required": ["a"]}, {}, "it has no 'a'"),
    "an entry too many": ({"additionalProperties": False}, {"a": 1}, "it has an unknown entry 'a'"),
    "a name": ({"propertyNames": {"pattern": "b"}}, {"a": 1}, "a name in it must match b, got 'a'"),
    "the last of several": (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        1,
        "it must be null, got 1",
    ),
    "its place": (
        {"properties": {"a": {"items": {"additionalProperties": {"type": "string"}}}}},
        {"a": [{}, {"b": 1}]},
        "it.a[1].b must be string, got 1",
    ),
    "the place of a name": (
        {"items": {"propertyNames": {"pattern": "b"}}},
        [{"a": 1}],
        "a name in it[0] must match b, got 'a'",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_violation_is_one_sentence_with_its_place(name):
    """The same one each time, although a schema is compiled once."""
    schema, value, sentence = SENTENCES[name]
    checked = SchemaCheck(schema)

    for _ in range(2):
        with pytest.raises(InvalidRequest) as caught:
            checked(value, WHERE)
        assert str(caught.value).startswith(sentence)
