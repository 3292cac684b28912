"""No suite fails an implementation that is sound, unless the profile of a case says so by name."""

import pytest
from support.shipped import vectors
from support.sound_variants import COARSE, NARROW, SOUND, alarms, judged

SUITES = [
    *("core", "smoke", "diagnostic", "pairwise", "edge", "exact"),
    *("openvino", "openvino_tiles", "webnn", "webnn_tiles", "units"),
]
# The cases that `standard` grants no four units in: gates and states that stay saturated.
SATURATED = ("edge", "saturation")


def test_there_are_28_of_them():
    """And two kernels that were written from the specification alone."""
    assert len(SOUND) >= 30


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("suite", SUITES)
def test_no_suite_fails_a_sound_variant(variant, suite):
    """Whatever the order of its sums, its formulas of functions, and what it stores."""
    assert alarms(variant, vectors(suite)) == []


def test_functions_off_by_four_units_have_a_profile():
    """Saturated cases fail them by `standard`, and none does by `four-ulp`."""
    saturated = vectors(*SATURATED)

    assert [vector.id for vector in saturated if judged(COARSE, vector).fails]
    assert [v.id for v in saturated if judged(COARSE, v, "four-ulp").fails] == []


def test_float16_inside_a_unit_has_a_profile():
    """Most units fail it by their own profile, and none does by `float16-inside`."""
    units = [v for v in vectors("units") if v.record.profile == "standard"]

    assert [vector.id for vector in units if judged(NARROW, vector).fails]
    assert [v.id for v in units if judged(NARROW, v, "float16-inside").fails] == []
