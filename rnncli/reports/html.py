"""A verification as one self-contained page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.judging.verdict import MEANINGS
from rnncli.reports.pages import rendered, write_page

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.judging.verification import VerificationReport


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

    from rnncli.reports.histogram import draw_margins, margin_counts
    from rnncli.reports.page_data import page_data

    counts = margin_counts(report)
    total = report.total
    return rendered(
        "report",
        parts=("list",),
        report=report,
        total=total,
        verdicts=[name for name in MEANINGS if total.counts[name]],
        meanings=MEANINGS,
        histogram=Markup(draw_margins(counts)) if any(counts) else "",  # noqa: S704 -- ours
        data=page_data(report),
    )
