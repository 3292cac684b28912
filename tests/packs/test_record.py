"""Claims about records: objects that are a line of JSON, and that their operator allows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from msgspec.structs import replace

from rnncli.errors import InvalidRequest
from rnncli.files.described import entries_of, jsonable
from rnncli.packs.manifest import read_manifest, read_record
from rnncli.packs.record import as_json, sums_of

CORE = Path(__file__).parents[2] / "vectors/core"
FILES = {"test_a/b/y": "2" * 64, "test_a/a": "1" * 64}


@pytest.fixture
def record():
    """A case of two files, in words of other letters."""
    return replace(read_manifest(CORE).cases[0], id="a", summary="é", files=FILES)


def test_a_record_is_one_line_of_json_that_reads_as_itself(record):
    """As a manifest has it: other letters stay themselves."""
    text = as_json(record)

    assert text.startswith('{"id": "a", "summary": "é", "operator": "')
    assert "\n" not in text
    assert read_record(json.loads(text), "it") == record


def test_entries_that_are_not_there_are_not_written(record):
    """A case without second calls, levels or a horizon says nothing of them."""
    assert [*json.loads(as_json(record))] == [*entries_of(record)]
    assert {"later_calls", "quantise", "horizon"}.isdisjoint(entries_of(record))


def test_sums_are_sorted_by_path(record):
    """As `sha256sum --check` reads them."""
    assert sums_of(record.files) == f"{'1' * 64}  test_a/a\n{'2' * 64}  test_a/b/y\n".encode()
    assert sums_of({}) == b""


def test_a_record_travels_between_processes(record):
    """With all that it was read as."""
    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301 -- our own


def test_a_number_that_json_has_not_is_refused(record):
    """NaN in a manifest is our own bug, never text that others cannot read."""
    with pytest.raises(ValueError, match="JSON"):
        as_json(replace(record, attributes={"clip": float("nan")}))


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
    return jsonable(read_manifest(CORE).cases[0])


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
    read_record(case, "cases[0]")
    with pytest.raises(InvalidRequest) as refused:
        read_record(changed(case, changes), "cases[0]")

    assert f"cases[0] ({case['id']}): " in str(refused.value)
    assert words in str(refused.value)


def test_a_case_that_must_be_refused_may_break_any_rule_but_that_of_readings():
    """Its attributes are why it exists; readings are ours."""
    case = changed(sound(), {"expect": "rejection", "attributes": {"hidden_size": [1, 2]}})
    read_record(case, "cases[0]")
    with pytest.raises(InvalidRequest, match="unknown reading 'odd'"):
        read_record(changed(case, {"readings": {"odd": "yes"}}), "cases[0]")
