"""How reports show themselves: as HTML in a notebook, and as plots.

Reports are data, and lie below what draws them. So a class says only that it is displayed, and the
tables below name what draws each, as "module:attribute", imported on first use.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Class -> a function from one of it to HTML.
HTML: Mapping[str, str] = {
    "Comparison": "rnncli.reports.notebook:comparison",
    "Diagnosis": "rnncli.reports.notebook:diagnosis",
    "DiagnosisReport": "rnncli.reports.notebook:diagnosis_report",
    "GenerationReport": "rnncli.reports.notebook:generation",
    "KillMatrix": "rnncli.reports.notebook:kill_matrix",
    "RelationReport": "rnncli.reports.notebook:relations",
    "ScoreReport": "rnncli.reports.notebook:score",
    "VerificationReport": "rnncli.reports.notebook:verification",
}
# Class -> a function from one of it, and the arguments of `plot`, to a figure.
PLOTS: Mapping[str, str] = {"VerificationReport": "rnncli.reports.pages:plot"}


class Displayed:
    """A report that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(_drawn(HTML, self))


def plotted(report: object, *arguments: Any) -> Any:
    """Return the figure of a report."""
    return _drawn(PLOTS, report, *arguments)


def _drawn(table: Mapping[str, str], report: object, *arguments: Any) -> Any:
    draw: Any = pkgutil.resolve_name(table[type(report).__name__])
    return draw(report, *arguments)
