"""A verification as one self-contained page: it fetches nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rnncli import __version__
from rnncli.errors import Unsupported
from rnncli.formats.atomic import atomic_file
from rnncli.judging.hypotheses import sentence_of
from rnncli.judging.verdict import MEANINGS
from rnncli.reports.failures import printable, times

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

    from rnncli.judging.verification import VerificationReport

NEEDED = ("jinja2", "matplotlib")


def check_extra() -> None:
    """Make sure that pages can be made.

    Raises:
        Unsupported: the extra `report` is not installed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"an HTML report needs {' and '.join(missing)};"
            " install it with: pip install 'rnncli[report]'"
        )


def write_html(path: Path, report: VerificationReport) -> None:
    """Write a page with the summary, the grids, the histogram of margins and every case.

    Its style, script and data are inside; a content security policy forbids everything else. The
    same report gives the same bytes.

    Raises:
        Unsupported: the extra `report` is not installed.
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    check_extra()
    with atomic_file(path) as temporary:
        temporary.write_text(page(report), encoding="utf-8", newline="\n")


def page(report: VerificationReport) -> str:
    """Return the page."""
    from markupsafe import Markup

    from rnncli.reports.histogram import draw_margins, margin_counts
    from rnncli.reports.page_data import page_data

    counts = margin_counts(report)
    script = _part("script.js")
    total = report.total
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            total=total,
            verdicts=[name for name in MEANINGS if total.counts[name]],
            meanings=MEANINGS,
            histogram=Markup(draw_margins(counts)) if any(counts) else "",  # noqa: S704 -- ours
            data=page_data(report),
            style=Markup(_part("style.css")),  # noqa: S704 -- ours
            script=Markup(script),  # noqa: S704 -- ours
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=__version__,
        )
    )


def _environment() -> Environment:
    """Return where the template lives; all text in it is escaped, and of legible characters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rnncli.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"times": times, "printable": printable, "meaning": sentence_of}
    return environment


def _part(name: str) -> str:
    return (files("rnncli.reports") / "page" / name).read_text(encoding="utf-8")
