"""What commands that judge do with their report, and the options for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.cli.options import SHARED, Written, row
from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.judging.report import VerificationReport

# What is printed with --json is not written to a file called '-'.
FILE = Written("--json prints there")
FILES: Mapping[str, Any] = {
    "junit": row(type=FILE, metavar="FILE", help="Also write JUnit XML."),
    "markdown": row(type=FILE, metavar="FILE", help="Also write Markdown."),
    "html": row(
        type=FILE,
        metavar="FILE",
        help="Also write one self-contained HTML page (extra `report`).",
    ),
    "plot": row(
        type=FILE,
        metavar="FILE",
        help="Also draw the margin of every case and errors over time, to FILE.png, .svg or .pdf"
        " (extra `report`).",
    ),
}
REPORTS: Mapping[str, Any] = {
    name: row(*each.flags, **each.settings, section="Reports")
    for name, each in {"as_json": SHARED["as_json"], **FILES}.items()
}


def reported(
    judge: Callable[..., VerificationReport],
    *what: Any,
    as_json: bool,
    note: Callable[[VerificationReport], str] = lambda _: "",
    **asked: Any,
) -> VerificationReport:
    """Call a function that judges, with its progress shown; print and write its report.

    What there is to note is said before the report, whose last line is its summary.
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import check_reports, show_report, write_reports

    files = {name: asked.pop(name) for name in FILES}
    check_reports(files)
    with progress_bar(unit="cases") as progress:
        report = judge(*what, **asked, progress=progress.reach)
    if said := note(report):
        say(said)
    show_report(report, as_json=as_json)
    write_reports(report, files)
    return report
