"""Claims about gathering findings."""

import pytest

from rnncli.cases.findings import LONGEST_SENTENCE, MOST_FINDINGS, Findings
from rnncli.errors import ConfigError, Place


def test_they_are_raised_in_the_order_of_the_file_once_each():
    """The order in which things are checked does not show."""
    findings = Findings()
    for line, column in [(2, 1), (1, 9), (2, 1), (1, 10)]:
        findings.add(Place("x", line, column), "wrong")

    with pytest.raises(ConfigError) as caught:
        findings.raise_any()

    assert str(caught.value) == "x:1:9: wrong\nx:1:10: wrong\nx:2:1: wrong"


def test_nothing_found_raises_nothing():
    """An empty list is silent."""
    assert Findings().raise_any() is None


def test_there_is_an_end_to_them():
    """A hostile file is not answered with a million lines."""
    findings = Findings()
    for line in range(MOST_FINDINGS - 1):
        findings.add(Place("x", line, 1), "wrong")

    with pytest.raises(ConfigError, match="100 findings; the rest"):
        findings.add(Place("x", 1000, 1), "wrong")


def test_a_sentence_that_quotes_too_much_is_cut():
    """A name of a megabyte does not fill the terminal."""
    findings = Findings()
    findings.add(Place("x", 1, 1), "y" * 1_000_000)

    assert len(findings[0][1]) == LONGEST_SENTENCE + 3
