"""A verification as a self-contained page."""

from __future__ import annotations

import io
import math
import re
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from rnncli.files.atomic import write_text
from rnncli.files.seals import MARKUP
from rnncli.judging.comparing.margins import MARGIN_EDGES
from rnncli.judging.comparing.verdict import MEANINGS
from rnncli.judging.report import largest_margin
from rnncli.numerics import dtype_named
from rnncli.operators import OPERATORS
from rnncli.reports.failures import diagnosed, excerpt, notes, reasons
from rnncli.reports.pages import rendered
from rnncli.reports.verification import biased_sentences
from rnncli.talk.words import counted, index_text, times, ulp_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.judging.comparing.verdict import OutputVerdict
    from rnncli.judging.report import JudgedCase, VerificationReport


# The positions of bins without a place or an end on a logarithmic axis: exact elements, the
# smallest and the largest margins.
EXACT, SMALLEST, LARGEST = (2e-4, 7e-4), 1e-3, 1e4
TICKS = {0.00037: "0", 0.01: "0.01", 0.1: "0.1", 1: "1", 10: "10", 100: "100", 1000: "1000"}
# The letters of an error map, each for margins up to 10^((k - 15) / 5): 0.001 to 1,000,000 in steps
# of 2 dB, so that 1, the tolerance, is the upper end of a letter. "." is exact, "!" beyond the
# last.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
TOLERANCE = 15
MOST = 10**18  # elements that a bar shows; Matplotlib takes no larger integers
# The outputs that have a value for every step.
OF_EVERY_STEP = {
    row.name for operator in OPERATORS.values() for row in operator.outputs if row.role == "Y"
}


def write_html(path: Path, report: VerificationReport) -> None:
    """Write a page with the summary, the grids, the histogram of margins and every case."""
    write_text(path, page(report), MARKUP)


def page(report: VerificationReport) -> str:
    """Return the page."""
    from markupsafe import Markup

    counts = margin_counts(report)
    total = report.total
    return rendered(
        "report",
        report=report,
        total=total,
        verdicts=[name for name in MEANINGS if total.counts[name]],
        meanings=MEANINGS,
        biases=[*biased_sentences(report)],
        histogram=Markup(draw_margins(counts)) if any(counts) else "",  # noqa: S704 -- ours
        data=page_data(report),
    )


def margin_counts(report: VerificationReport) -> list[int]:
    """Return the number of elements of all outputs in each bin of `MARGIN_EDGES`."""
    outputs = (output for case in report.cases for output in case.details.outputs)
    none = [0] * (len(MARGIN_EDGES) + 1)  # that of an output may end early
    found = zip_longest(none, *(output.histogram for output in outputs), fillvalue=0)
    return [sum(counts) for counts in found]


def draw_margins(counts: Sequence[int]) -> str:
    """Return the histogram as an SVG element, margins and counts on logarithmic axes.

    Bars within the tolerance are in groups `within-K`, those beyond it in `beyond-K`: the page
    colours them, and everything else, for light and dark.
    """
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    from rnncli.reports.plots import STYLE

    with style.context(STYLE):
        figure = Figure(figsize=(4.9, 2.6), layout="constrained")
        axes = figure.add_subplot()
        bins = (EXACT, *pairwise((SMALLEST, *MARGIN_EDGES[1:], LARGEST)))
        for k, ((low, high), count) in enumerate(zip(bins, counts, strict=True)):
            if count:
                bar = axes.bar(low, min(count, MOST), high - low, align="edge", linewidth=0)
                bar[0].set_gid(f"{'within' if high <= 1 else 'beyond'}-{k}")
        axes.axvline(1, linestyle="--", linewidth=1.2).set_gid("tolerance-line")

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

        for patch in (figure.patch, axes.patch):
            patch.set_visible(False)
        stream = io.StringIO()
        about = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=about)

    # The element alone, without its size and its style, with a description.
    tolerance = MARGIN_EDGES.index(1.0) + 1
    label = (
        f"Histogram of margins: {counted(counts[0], 'element is', 'elements are')} exact,"
        f" {sum(counts[1:tolerance])} within their tolerance, {sum(counts[tolerance:])} beyond it."
    )
    document = stream.getvalue()
    svg = document[document.index("<svg") :].strip()
    svg = re.sub(r"<defs>\s*<style.*?</defs>", "", svg, count=1, flags=re.DOTALL)
    kept = " ".join(re.findall(r'(?:xmlns[:\w]*|viewBox)="[^"]*"', svg[: svg.index(">")]))
    return re.sub(r"<svg [^>]*>", f'<svg {kept} role="img" aria-label="{label}">', svg, count=1)


def page_data(report: VerificationReport) -> dict[str, Any]:
    """Return all cases, in the pack's order, as shown on the page: as text, without NaN."""
    cases = []
    for case in report.cases:
        record, verdict = case.record, case.details
        margin = largest_margin(verdict.outputs)
        cause = report.diagnosis and report.diagnosis.cause_of(verdict.id)
        cases.append(
            {
                "id": visible(verdict.id),
                "verdict": str(verdict.verdict),
                "fails": verdict.fails,
                "expected": verdict.fails_as_expected,
                "allowed": bool(verdict.allowed),
                "operator": visible(record.operator),
                "dtype": visible(record.dtype),
                "flags": list(map(visible, record.flags)),
                "summary": visible(record.summary),
                "margin": times(margin),
                "order": -1 if margin is None else min(margin, 1e300),
                "seconds": verdict.seconds,
                "reasons": list(map(visible, (*reasons(case), *diagnosed(report, case)))),
                "cause": f"{cause.cell}:{cause.hypothesis}" if cause else "",
                "notes": list(map(visible, notes(report, case))),
                "outputs": [_output(output, record.dtype) for output in verdict.outputs],
                "map": _map(case),
                "repeat": visible(report.repeat(verdict)),
            }
        )
    return {"letters": LETTERS, "tolerance": TOLERANCE, "cases": cases}


def _output(output: OutputVerdict, dtype: str) -> list[str]:
    """Return a row of the table of outputs; the script holds its heading."""
    name, verdict = visible(output.name), str(output.verdict)
    if output.problem:
        return [name, verdict, visible(excerpt(output.problem))]
    found = [f"{output.differing} of {output.size}", times(output.margin)]
    errors = [f"{output.max_abs:.3g}", ulp_text(output.max_ulp)]
    if not output.worst:
        return [name, verdict, *found, *errors, "", "", ""]
    worst = output.worst
    got, wanted = map(dtype_named(dtype).text, (worst.got, worst.wanted))
    return [
        *(name, verdict, *found, *errors),
        *(index_text(worst.index), got, f"{wanted} ± {worst.tolerance:.3g}"),
    ]


def _map(case: JudgedCase) -> dict[str, Any] | None:
    """Return an error map as a line of letters per row, with the meaning of the rows."""
    record, verdict = case.record, case.details
    if not verdict.error_map:
        return None
    name = next((output.name for output in verdict.outputs if output.differing), "")
    direction = record.requirements.direction
    both = direction == "bidirectional"
    is_Y = name in OF_EVERY_STEP
    return {
        "output": visible(name),
        "rows": ["".join(map(letter, row)) for row in verdict.error_map],
        "panels": ["forward", "reverse"] if both and is_Y else [visible(direction)],
        "steps": record.sizes.get("seq_length", 1) if is_Y else 0,
        "units": record.sizes.get("hidden_size", 1),
    }


def letter(margin: float) -> str:
    """Return the letter of a margin."""
    if margin <= 0:
        return "."
    if not margin <= 1e6:
        return "!"
    # A margin just above the tolerance must not be rounded down to it.
    step = max(math.ceil(5 * math.log10(margin) - 1e-9), 1 if margin > 1 else -TOLERANCE)
    return LETTERS[step + TOLERANCE]
