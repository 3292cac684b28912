"""The decorator `every`: a claim about all rows of a table is one test."""

import inspect

import pytest
from support.tables import every


@every("x", [1, 2, 3], ids=["one", "two", "three"])
@every("y, z", [(0, 1), pytest.param(5, 5, id="fives"), (5, 5)])
def claim(base, x, y, z):
    """Holds for one, breaks for two where y and z are large, and fails for three."""
    if x == 1:
        pytest.skip("not of one")
    if x == 3:
        pytest.fail("never of three")
    assert base + x + y + z < 20


def test_all_rows_that_break_it_are_named():
    """Of every combination; rows that are skipped are passed over."""
    with pytest.raises(BaseExceptionGroup) as caught:
        claim(base=10)

    two, three = caught.value.exceptions
    assert caught.value.message == "2 of 3 rows: two, three"
    assert two.message == "2 of 3 rows: fives, 5-5"
    assert three.message == "3 of 3 rows: 0-1, fives, 5-5"
    assert [type(error) for error in two.exceptions] == [AssertionError] * 2


def test_a_claim_about_no_row_is_skipped():
    """Of any table, or of one within another."""
    with pytest.raises(pytest.skip.Exception, match="not of one"):
        every("x", [1])(claim.__wrapped__)(base=10)
    with pytest.raises(pytest.skip.Exception, match="not of one"):
        claim.__wrapped__(base=10, x=1)


def test_its_fixtures_are_what_no_row_gives():
    """The names of rows are no fixtures."""
    assert [*inspect.signature(claim).parameters] == ["base"]


def test_a_table_needs_rows():
    """A claim about nothing would pass for ever."""
    with pytest.raises(AssertionError, match="a table without a row"):
        every("x", [])
