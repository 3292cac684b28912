"""Claims about records of cases: one that its operator's specification forbids is refused."""

import copy
from pathlib import Path

import pytest

from rnncli.errors import InvalidRequest
from rnncli.packs.manifest import check_case, read_manifest

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


def record():
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
    case = record()
    check_case(case, "cases[0]")
    with pytest.raises(InvalidRequest) as refused:
        check_case(changed(case, changes), "cases[0]")

    assert f"cases[0] ({case['id']}): " in str(refused.value)
    assert words in str(refused.value)


def test_a_case_that_must_be_refused_may_break_any_rule_but_that_of_readings():
    """Its attributes are why it exists; readings are ours."""
    case = changed(record(), {"expect": "rejection", "attributes": {"hidden_size": [1, 2]}})
    check_case(case, "cases[0]")
    with pytest.raises(InvalidRequest, match="unknown reading 'odd'"):
        check_case(changed(case, {"readings": {"odd": "yes"}}), "cases[0]")
