"""Claims about plots of verifications."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.verifications import CASES, REPORTS, judged, output, report

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.judging.comparing.verdict import Verdict
from rnncli.reports import pages
from rnncli.reports.plots import MOST_LINES, image, plot_verification, write_plot

KINDS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def over_time(case_id, *directions, verdict=Verdict.DIFFERS, margin=5.0, steps=3):
    """A case with these errors at its steps, by direction."""
    wrong = {"outputs": (output(verdict=verdict, margin=margin),)}
    case = judged(case_id, verdict, wrong, sizes={"seq_length": steps})
    return case._replace(error_over_time=directions)


def plotted(*cases):
    """The axes of the plot of some cases."""
    return plot_verification(report(cases)).axes


def texts(axes):
    """Names of lines or marks."""
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("name", [name for name, found in REPORTS.items() if found.cases])
def test_every_report_can_be_drawn(name):
    """Hostile names, margins that are not finite and thousands of cases included."""
    figure = plot_verification(REPORTS[name])

    for kind, start in KINDS.items():
        assert image(figure, kind).startswith(start)


def test_a_report_of_nothing_is_no_picture():
    """An empty plot could be taken for a good one."""
    with pytest.raises(InvalidRequest, match="no case was judged"):
        plot_verification(REPORTS["empty"])


def test_a_mark_for_each_case_by_verdict():
    """Counted in the legend; of refused ones there are no values."""
    margins = plotted(*(judged(name, *said) for name, said in CASES.items()))[0]

    assert "differs (4)" in texts(margins)
    assert "refused (2)" in texts(margins)
    assert sum(len(marks.get_offsets()) for marks in margins.collections) == len(CASES)
    assert margins.get_yticklabels()[-1].get_text() == "no values"


def test_what_is_no_number_is_not_drawn_as_exact():
    """Beside an output that could not be compared, too."""
    outputs = (output("Y_h", Verdict.DIFFERS, 0.0, problem="missing"), output("Y", margin=math.nan))
    (margins,) = plotted(judged("lstm_14_nan", Verdict.DIFFERS, {"outputs": outputs}))

    assert margins.collections[0].get_offsets()[0][1] > 1e6


def test_cases_of_an_operator_stand_side_by_side():
    """Its versions in their order, whatever the pack's; few share a label."""
    few = [judged(f"gru_{version}_a", Verdict.PASS, {"outputs": (output(),)}) for version in (7, 3)]
    many = [judged(f"gru_14_{k}", Verdict.PASS, {"outputs": (output(),)}) for k in range(60)]
    (margins,) = plotted(*many, *few)

    assert [label.get_text() for label in margins.get_xticklabels()] == ["3 to 7", "14"]
    assert [label.get_text() for label in margins.get_xticklabels(minor=True)] == ["GRU"]


def test_errors_over_time_are_those_that_fail():
    """A line for each direction; an error of zero and an infinite one are at the ends."""
    fails = over_time("lstm_14_both", (0.0, 2.0, math.inf), (3.0, 4.0, 5.0))
    passes = over_time("lstm_14_right", (0.1, 0.1, 0.1), verdict=Verdict.PASS, margin=0.1)
    _, errors = plotted(fails, passes)
    first, second, *_ = errors.lines

    assert texts(errors) == ["lstm_14_both, forward", "lstm_14_both, reverse"]
    assert list(second.get_ydata()) == [3.0, 4.0, 5.0]
    assert list(first.get_xdata()) == [0, 1, 2]
    assert first.get_ydata()[0] < 1e-3
    assert first.get_ydata()[2] > 1e6


def test_directions_that_are_right_are_drawn_if_asked_for():
    """Beside a wrong one they say nothing; a case wrong in its last state alone has no line."""
    half = over_time("lstm_14_both", (0.5, 0.0), (0.5, 4.0))
    last = over_time("lstm_14_last", (0.5, 0.9))
    nan = over_time("lstm_14_nan", (0.5, math.nan))

    assert texts(plotted(half, last, nan)[1]) == ["lstm_14_both, reverse", "lstm_14_nan"]
    assert plotted(last)[1].get_title() == "cases with the largest margins"
    assert texts(report([half]).plot(["lstm_14_both"]).axes[1]) == [
        "lstm_14_both, forward",
        "lstm_14_both, reverse",
    ]


def test_runs_of_steps_stand_where_they_begin():
    """A case of 1000 steps has 250 errors here."""
    (_, errors) = plotted(over_time("lstm_14_long", tuple([2.0] * 250), steps=1000))

    assert list(errors.lines[0].get_xdata()[:3]) == [0, 4, 8]


def test_without_failures_the_worst_are_drawn_and_alike_lines_share_a_name():
    """Those beyond the eighth are grey, and counted."""
    alike = [over_time(f"gru_14_{k}", (0.5, 0.5), verdict=Verdict.PASS) for k in range(3)]
    others = [over_time(f"rnn_14_{k}", (2.0 + k, 3.0)) for k in range(20)]

    assert texts(plotted(*alike)[1]) == ["gru_14_0 and 2 more"]
    names = texts(plotted(*others)[1])
    assert names[0] == "12 other lines"
    assert len(names) == MOST_LINES + 1


def test_cases_are_chosen_by_id():
    """Also ones that pass; a misspelt one is an error."""
    fails = over_time("lstm_14_wrong", (3.0, 4.0))
    passes = over_time("lstm_14_right", (0.1, 0.1), verdict=Verdict.PASS)
    both = report([fails, passes])

    assert texts(both.plot(["lstm_14_right"]).axes[1]) == ["lstm_14_right"]
    with pytest.raises(InvalidRequest, match="no case 'lstm_14_rihgt'; did you mean"):
        both.plot(["lstm_14_rihgt"])


def test_a_plot_is_written_as_its_suffix_says(tmp_path):
    """The same report gives the same bytes."""
    for kind, start in KINDS.items():
        paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
        for path in paths:
            write_plot(path, REPORTS["every verdict"])
        assert paths[0].read_bytes().startswith(start)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_cannot_be_drawn_is_said_before_the_run(monkeypatch):
    """An unknown suffix, or a missing package with the command that installs it."""
    with pytest.raises(InvalidRequest, match=r"cannot write a\.gif: a plot is \.png, \.svg, \.pdf"):
        pages.check_plot("a.gif")
    pages.check_plot("a.PNG")
    monkeypatch.setattr(pages, "find_spec", lambda _: None)
    with pytest.raises(Unsupported, match=r"matplotlib; install it with: .*pip'? install"):
        pages.check_plot("a.png")
    with pytest.raises(Unsupported, match="a plot needs matplotlib"):
        replace(REPORTS["one"]).plot()


def test_a_notebook_shows_a_plot():
    """Whatever backend it has."""
    assert REPORTS["one"].plot()._repr_png_().startswith(KINDS["png"])


@pytest.mark.parametrize("seconds", ["x", "9" * 40, "1e9", "-" + "9" * 20])
def test_a_date_of_the_environment_that_is_none_is_told_before_anything_runs(monkeypatch, seconds):
    """Matplotlib reads it for every file, also for one without a date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    with pytest.raises(InvalidRequest, match="SOURCE_DATE_EPOCH must be a date in seconds"):
        pages.check_extra()
    with pytest.raises(InvalidRequest, match="SOURCE_DATE_EPOCH must be a date in seconds"):
        pages.check_plot("a.png")


def test_a_date_of_the_environment_changes_nothing(monkeypatch):
    """The files have none."""
    figure = plot_verification(REPORTS["one"])
    plain = image(figure, "svg")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    pages.check_plot("a.svg")

    assert image(figure, "svg") == plain
