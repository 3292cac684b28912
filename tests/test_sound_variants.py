"""No suite fails an implementation that is sound, unless the profile of a case says so by name."""

import warnings
from functools import cache

import pytest
from judged import core
from sound_variants import COARSE, SOUND, alarms, judged

from rnncli.cases.suite import load_suite
from rnncli.errors import RnncliWarning
from rnncli.generating.making import make_vectors

SUITES = ["core", "smoke", "diagnostic", "pairwise", "edge", "exact", "openvino"]
# The cases that `standard` grants no four units in: gates and states that stay saturated.
SATURATED = "edge"


@cache
def vectors(suite):
    """The vectors of a shipped suite."""
    if suite == "core":
        return list(core().values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # of an alpha that nobody takes
        return list(make_vectors(load_suite(suite).entries))


def test_there_are_28_of_them():
    """And two kernels that were written from the specification alone."""
    assert len(SOUND) >= 30


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("variant", SOUND)
def test_no_suite_fails_a_sound_variant(variant, suite):
    """Whatever the order of its sums, its formulas of functions, and what it stores."""
    assert alarms(variant, vectors(suite)) == []


def test_functions_off_by_four_units_have_a_profile():
    """Saturated cases fail them by `standard`, and none does by `four-ulp`."""
    saturated = [vector for vector in vectors(SATURATED) if "saturation" in vector.id]

    assert [vector.id for vector in saturated if judged(COARSE, vector).fails]
    assert [v.id for v in saturated if judged(COARSE, v, "four-ulp").fails] == []
