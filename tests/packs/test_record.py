"""Claims about records: a mapping that is its text, and that its operator allows."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from rnncli.errors import InvalidRequest
from rnncli.packs.manifest import check_case, read_manifest
from rnncli.packs.record import Record, sums_of

ENTRIES = {"id": "é", "atol": 2.5e-07, "flags": [], "files": {"b/y": "2" * 64, "a": "1" * 64}}


@pytest.fixture
def record():
    """A case of two files."""
    return Record.of(ENTRIES)


def test_a_record_reads_as_what_it_was_made_of(record):
    """Every entry is there, in its order."""
    assert list(record.items()) == list(ENTRIES.items())


def test_the_text_is_one_line_of_json(record):
    """As a manifest has it: other letters stay themselves."""
    assert record.text.startswith('{"id": "é", "atol": 2.5e-07'.encode())
    assert b"\n" not in record.text


def test_sums_are_sorted_by_path(record):
    """As `sha256sum --check` reads them."""
    assert record.sums == f"{'1' * 64}  a\n{'2' * 64}  b/y\n".encode()
    assert sums_of({}) == b""


def test_a_record_is_not_written_out_twice(record):
    """What is a record already stays the one it is."""
    assert Record.of(record) is record


def test_a_record_travels_as_its_texts(record):
    """Between processes nothing else goes, not even entries that were read."""
    assert record["id"] == "é"
    found = pickle.loads(pickle.dumps(record))  # noqa: S301 -- our own

    assert (found, found.text, found.sums) == (record, record.text, record.sums)
    assert len(pickle.dumps(found)) < len(record.text) + len(record.sums) + 150


def test_a_number_that_json_has_not_is_refused():
    """NaN in a manifest is our own bug, never text that others cannot read."""
    with pytest.raises(ValueError, match="JSON"):
        Record.of({**ENTRIES, "atol": float("nan")})


CORE = Path(__file__).parents[2] / "vectors/core"
# What is changed in a case -> the rule of the message.
CONTRADICTIONS = {
    "a size for a list": ({"attributes": {"hidden_size": [1, 2]}}, "must be an integer"),
    "an attribute of no operator": ({"attributes": {"hidden": 1}}, "has no attribute 'hidden'"),
    "another number of units": ({"attributes": {"hidden_size": 99}}, "hidden_size is 99"),
    "a direction of none": ({"attributes": {"direction": "up"}}, "must be one of forward"),
    "too few activations": ({"attributes": {"activations": []}}, "activations must name"),
    "an unknown reading": ({"readings": {"odd": "yes"}}, "unknown reading 'odd'"),
    "another's reading": ({"readings": {"quant-scope": "row"}}, "makes no difference to"),
    "no choice of a reading": ({"readings": {"clip-scope": "odd"}}, "must be"),
    "a missing input": ({"inputs": ["X", "W"]}, "input 'R' is required"),
    "a missing size": ({"sizes": {"batch_size": None}}, "needs the sizes"),
    "a size too many": ({"sizes": {"odd": 1}}, "needs the sizes"),
    "no unit": ({"sizes": {"hidden_size": 0}}, "hidden_size"),
    "sizes of no tensor": ({"sizes": {"seq_length": 1 << 62}}, "no tensor has its sizes"),
    "another operator": ({"operator": "GRUCell-3"}, "output 'Y' is not one of Ho"),
    "a dtype of another version": ({"dtype": "bfloat16"}, "X must be"),
    "text": ({"dtype": "string"}, "X must be"),
}


def sound():
    """A sound record, to be changed."""
    return copy.deepcopy(dict(read_manifest(CORE).cases[0]))


def changed(case, changes):
    """Put entries into a record; None takes one away."""
    for name, value in changes.items():
        if isinstance(value, dict):
            case[name] = {k: v for k, v in {**case[name], **value}.items() if v is not None}
        else:
            case[name] = value
    return case


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_record_that_is_no_case_of_its_operator_is_refused(name):
    """Where it is read, in the words of configs and models, and with the name of the case."""
    changes, words = CONTRADICTIONS[name]
    case = sound()
    check_case(case, "cases[0]")
    with pytest.raises(InvalidRequest) as refused:
        check_case(changed(case, changes), "cases[0]")

    assert f"cases[0] ({case['id']}): " in str(refused.value)
    assert words in str(refused.value)


def test_a_case_that_must_be_refused_may_break_any_rule_but_that_of_readings():
    """Its attributes are why it exists; readings are ours."""
    case = changed(sound(), {"expect": "rejection", "attributes": {"hidden_size": [1, 2]}})
    check_case(case, "cases[0]")
    with pytest.raises(InvalidRequest, match="unknown reading 'odd'"):
        check_case(changed(case, {"readings": {"odd": "yes"}}), "cases[0]")
