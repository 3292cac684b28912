"""JSON from strangers has one meaning and bounded depth."""

import pytest

from rnncli.errors import InvalidRequest
from rnncli.files.strict_json import DEEPEST, parse_json


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, "x", null, true]}', b'{"a": "\\ud83d\\ude00"}'])
def test_json_is_read(text):
    """Text or its UTF-8 bytes; both halves of a pair are a character."""
    assert ["a"] == list(parse_json(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands in an object twice"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e999]", "1e999 is not finite"),
        ("[" + "1" * 41 + "]", "a number has 41 digits"),
        ('["\\ud800"]', "half a surrogate pair"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"more than {DEEPEST} deep"),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        (b"\xff", "is not JSON: "),
        ("", "is not JSON: "),
        ("[] []", "is not JSON: "),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_has_no_one_meaning_is_refused(text, sentence):
    """Other programs would read another thing, or run out of stack."""
    with pytest.raises(InvalidRequest, match=sentence):
        parse_json(text)
