"""How reports show themselves: as text, as HTML in a notebook, and as plots.

Reports are data, and lie below what draws them. So a class says only that it is displayed, and the
tables below name what draws each, as "module:attribute", imported on first use.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

from rnncli.talk.words import marked, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

# Class -> the beginning of the names of its functions in `rnncli.reports.shown`: NAME_lines, from
# one of it to lines of text, and NAME_html.
SHOWN: Mapping[str, str] = {
    "Comparison": "comparison",
    "Diagnosis": "diagnosis",
    "DiagnosisReport": "diagnosis_report",
    "GenerationReport": "generation",
    "KillMatrix": "kill_matrix",
    "ScoreReport": "score",
    "VerificationReport": "verification",
}
TEXTS = {name: f"rnncli.reports.shown:{function}_lines" for name, function in SHOWN.items()}
HTML = {name: f"rnncli.reports.shown:{function}_html" for name, function in SHOWN.items()}
# Class -> a function from one of it, and the arguments of `plot`, to a figure.
PLOTS: Mapping[str, str] = {"VerificationReport": "rnncli.reports.verification:plot"}
SENTENCES: Mapping[str, str] = {"JudgedCase": "rnncli.reports.failures:sentences_of"}


class Displayed:
    """A report that `print` shows as text, and a notebook as HTML."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(_lines(self)[-1])}>"

    def _repr_html_(self) -> str:
        return str(_drawn(HTML, self))


class Conclusion(Displayed):
    """A report of which a script asks how it ended: it is true only if it passed."""

    __slots__ = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the command that gives this report."""
        raise NotImplementedError

    @property
    def passed(self) -> bool:
        """Whether the exit code is 0: nothing is wrong, and something was judged."""
        return not self.exit_code

    def __bool__(self) -> bool:
        return self.passed


def _lines(report: Displayed) -> list[str]:
    return [marked(line) for line in _drawn(TEXTS, report)]


def plotted(report: object, *arguments: Any) -> Any:
    """Return the figure of a report."""
    return _drawn(PLOTS, report, *arguments)


def sentences(case: object) -> tuple[str, ...]:
    """Return what there is to say about one case."""
    found: tuple[str, ...] = _drawn(SENTENCES, case)
    return found


def _drawn(table: Mapping[str, str], report: object, *arguments: Any) -> Any:
    draw: Any = pkgutil.resolve_name(table[type(report).__name__])
    return draw(report, *arguments)
