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
PLOT = "rnncli.reports.plots:plot_verification"
WRITE_PLOT = "rnncli.reports.plots:write_figure"


class Displayed:
    """A report that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        draw: Any = pkgutil.resolve_name(HTML[type(self).__name__])
        return str(draw(self))
