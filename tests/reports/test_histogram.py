"""Claims about the histogram of margins."""

from __future__ import annotations

import re
from xml.dom import minidom

import pytest
from support.verifications import REPORTS, every_verdict, histogram, judged, output, report

from rnncli.judging.comparing.verdict import MARGIN_EDGES, Verdict
from rnncli.reports.html import draw_margins, margin_counts

COUNTS = list(range(1, len(MARGIN_EDGES) + 2))


def bars(svg):
    """The bars by what they are."""
    return re.findall(r'id="((?:within|beyond)-\d+)"', svg)


def test_all_outputs_count():
    """Whatever their verdict; those that could not be compared have none."""
    assert sum(margin_counts(REPORTS["one"])) == 80
    assert margin_counts(REPORTS["empty"]) == [0] * (len(MARGIN_EDGES) + 1)
    short = report([judged("rnn_14_short", Verdict.PASS, {"outputs": (output(histogram=(3, 4)),)})])
    assert margin_counts(short)[:3] == [3, 4, 0]
    assert sum(margin_counts(every_verdict())) == sum(
        sum(output.histogram) for case in every_verdict().cases for output in case.details.outputs
    )


def test_a_bar_for_each_bin_on_its_side_of_the_tolerance():
    """Margins up to 1 are within it."""
    within = MARGIN_EDGES.index(1.0) + 1
    sides = [f"{'within' if k < within else 'beyond'}-{k}" for k in range(len(COUNTS))]

    assert bars(draw_margins(COUNTS)) == sides


@pytest.mark.parametrize("k", range(len(COUNTS)))
def test_a_single_bin_is_drawn(k):
    """Wherever it is; others are left out."""
    svg = draw_margins(histogram(k, k))

    assert [bar.partition("-")[2] for bar in bars(svg)] == [str(k)]
    assert "tolerance" in svg


def test_it_is_an_element_that_describes_itself():
    """Well-formed, of no fixed size, with a label for those who do not see it, without a style."""
    svg = draw_margins([10**6, *[0] * 8, 3, *[0] * 4])
    root = minidom.parseString(svg).documentElement  # noqa: S318 -- ours

    assert root.getAttribute("role") == "img"
    assert "1000000 elements are exact, 0 within their tolerance, 3 beyond" in root.getAttribute(
        "aria-label"
    )
    assert not root.hasAttribute("width")
    assert "<style" not in svg


def test_the_same_counts_give_the_same_bytes():
    """No date, no random identifier, no word of who made it."""
    assert draw_margins(COUNTS) == draw_margins(COUNTS)
    assert "<metadata" not in draw_margins(COUNTS)
    assert "<!--" not in draw_margins(COUNTS)
