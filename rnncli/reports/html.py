"""A verification as a self-contained page, with the histogram of its margins."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rnncli.judging.comparing.margins import MARGIN_EDGES
from rnncli.judging.comparing.verdict import MEANINGS
from rnncli.reports.pages import rendered, write_page
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from rnncli.judging.report import VerificationReport


def write_html(path: Path, report: VerificationReport) -> None:
    """Write a page with the summary, the grids, the histogram of margins and every case.

    Raises:
        Unsupported: the extra `report` is not installed.
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    write_page(path, page(report))


def page(report: VerificationReport) -> str:
    """Return the page."""
    from markupsafe import Markup

    from rnncli.reports.page_data import page_data

    counts = margin_counts(report)
    total = report.total
    return rendered(
        "report",
        report=report,
        total=total,
        verdicts=[name for name in MEANINGS if total.counts[name]],
        meanings=MEANINGS,
        histogram=Markup(draw_margins(counts)) if any(counts) else "",  # noqa: S704 -- ours
        data=page_data(report),
    )


# The positions of bins without a place or an end on a logarithmic axis: exact elements, the
# smallest and the largest margins.
EXACT, SMALLEST, LARGEST = (2e-4, 7e-4), 1e-3, 1e4
TICKS = {0.00037: "0", 0.01: "0.01", 0.1: "0.1", 1: "1", 10: "10", 100: "100", 1000: "1000"}


def margin_counts(report: VerificationReport) -> list[int]:
    """Return the number of elements of all outputs in each bin of `MARGIN_EDGES`."""
    counts = [0] * (len(MARGIN_EDGES) + 1)
    for case in report.cases:
        for output in case.verdict.outputs:
            for k, count in enumerate(output.histogram):
                counts[k] += count
    return counts


def draw_margins(counts: Sequence[int]) -> str:
    """Return the histogram as an SVG element, margins and counts on logarithmic axes.

    Bars within the tolerance are in groups `within-K`, those beyond it in `beyond-K`: the page
    colours them, and everything else, for light and dark.

    Args:
        counts: of `margin_counts`; not all zero.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    from rnncli.reports.plots import STYLE

    with style.context(STYLE):
        figure = Figure(figsize=(4.9, 2.6), layout="constrained")
        axes = figure.add_subplot()
        _draw_bars(axes, counts)
        _draw_scales(axes)
        for patch in (figure.patch, axes.patch):
            patch.set_visible(False)
        stream = io.StringIO()
        about = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=about)
    return _element(stream.getvalue(), counts)


def _draw_bars(axes: Axes, counts: Sequence[int]) -> None:
    edges = (SMALLEST, *MARGIN_EDGES[1:], LARGEST)
    bins = (EXACT, *pairwise(edges))
    for k, ((low, high), count) in enumerate(zip(bins, counts, strict=True)):
        if count:
            bar = axes.bar(low, count, high - low, align="edge", linewidth=0)
            bar[0].set_gid(f"{'within' if high <= 1 else 'beyond'}-{k}")
    axes.axvline(1, linestyle="--", linewidth=1.2).set_gid("tolerance-line")


def _draw_scales(axes: Axes) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(EXACT[0] / 1.3, LARGEST)
    axes.set_ylim(bottom=0.5)
    axes.set_xticks(list(TICKS), list(TICKS.values()))
    axes.minorticks_off()
    axes.tick_params(length=3)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("margin = error / tolerance")
    axes.set_ylabel("elements")
    place = axes.get_xaxis_transform()
    axes.text(1, 1.02, "tolerance", transform=place, ha="center", va="bottom")


def _element(document: str, counts: Sequence[int]) -> str:
    """Return the SVG element of a document, without its size and its style, with a description."""
    tolerance = MARGIN_EDGES.index(1.0) + 1
    label = (
        f"Histogram of margins: {counted(counts[0], 'element is', 'elements are')} exact,"
        f" {sum(counts[1:tolerance])} within their tolerance, {sum(counts[tolerance:])} beyond it."
    )
    svg = document[document.index("<svg") :].strip()
    svg = re.sub(r"<defs>\s*<style.*?</defs>", "", svg, count=1, flags=re.DOTALL)
    kept = " ".join(re.findall(r'(?:xmlns[:\w]*|viewBox)="[^"]*"', svg[: svg.index(">")]))
    return re.sub(r"<svg [^>]*>", f'<svg {kept} role="img" aria-label="{label}">', svg, count=1)
