"""What a pack may hold as the answers of a case."""

import numpy as np
import pytest

from rnncli.errors import UnreadableFile
from rnncli.vectors.vector import stored_answers

RECORD = {"id": "a", "expect": "result", "outputs": ["Y", "Y_h"]}
REJECTED = {**RECORD, "expect": "rejection"}
ONES = np.ones(2, np.float32)
BOTH = {"Y": ONES, "Y_h": ONES}


def test_answers_are_those_that_the_case_asks_for():
    """Outputs and tolerances by the record's names, in its order; none of a case to be refused."""
    assert BOTH == stored_answers(RECORD, BOTH, BOTH).outputs
    assert {} == stored_answers(REJECTED, {}, {}).outputs


FOREIGN = {
    "an output of another name": ({"Y": ONES, "Z": ONES}, BOTH, "holds outputs Y, Z"),
    "a tolerance of another name": (BOTH, {"Y": ONES, "Z": ONES}, "holds tolerances Y, Z"),
    "no tolerances": (BOTH, {}, "holds tolerances none, and should hold Y, Y_h"),
    "another shape": (BOTH, {**BOTH, "Y": ONES[:1]}, r"output 'Y' has shape \[1\]"),
    "a tolerance of integers": (BOTH, {**BOTH, "Y": np.ones(2, int)}, "is int64"),
    "a tolerance by which NaN passes": (BOTH, {**BOTH, "Y": ONES * np.nan}, "or NaN"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_answers_that_judge_nothing_are_refused(name):
    """Neither a KeyError nor a pass comes of names, shapes and types that do not fit."""
    outputs, tolerances, reason = FOREIGN[name]

    with pytest.raises(UnreadableFile, match=f"a: .*{reason}"):
        stored_answers(RECORD, outputs, tolerances)


def test_a_case_to_be_refused_has_no_answers():
    """Outputs beside a case that must be refused are another case's."""
    with pytest.raises(UnreadableFile, match="holds outputs Y, Y_h, and should hold none"):
        stored_answers(REJECTED, BOTH, BOTH)
