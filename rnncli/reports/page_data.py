"""The data of each case for the script of a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rnncli.judging.report import largest_margin
from rnncli.operators import OPERATORS
from rnncli.reports.comparisons import index_text, ulp_text, value_text
from rnncli.reports.failures import diagnosed, excerpt, notes, reasons, times
from rnncli.talk.terminal import visible

if TYPE_CHECKING:
    from rnncli.judging.comparing.verdict import CaseVerdict, OutputVerdict
    from rnncli.judging.report import JudgedCase, VerificationReport

# The letters of an error map, each for margins up to 10^((k - 15) / 5): 0.001 to 1,000,000 in steps
# of 2 dB, so that 1, the tolerance, is the upper end of a letter. "." is exact, "!" beyond the
# last.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
TOLERANCE = 15
# The outputs that have a value for every step.
OF_EVERY_STEP = {
    row.name for operator in OPERATORS.values() for row in operator.outputs if row.role == "Y"
}


def page_data(report: VerificationReport) -> dict[str, Any]:
    """Return all cases, in the pack's order, as shown on the page: as text, without NaN."""
    return {
        "letters": LETTERS,
        "tolerance": TOLERANCE,
        "cases": [_case(report, case) for case in report.cases],
    }


def _case(report: VerificationReport, case: JudgedCase) -> dict[str, Any]:
    record, verdict = case.record, case.verdict
    margin = largest_margin(verdict.outputs)
    return {
        "id": visible(verdict.id),
        "verdict": str(verdict.verdict),
        "fails": verdict.fails,
        "expected": verdict.fails_as_expected,
        "allowed": bool(verdict.allowed),
        "operator": visible(record["operator"]),
        "dtype": visible(record["dtype"]),
        "flags": list(map(visible, record["flags"])),
        "summary": visible(record["summary"]),
        "margin": times(margin),
        "order": -1 if margin is None else min(margin, 1e300),
        "seconds": verdict.seconds,
        "reasons": list(map(visible, (*reasons(case), *diagnosed(report, case)))),
        "cause": _cause(report, verdict.id),
        "notes": list(map(visible, notes(report, case))),
        "outputs": [_output(output, record["dtype"]) for output in verdict.outputs],
        "map": _map(case),
        "repeat": visible(report.repeat(verdict)),
    }


def _cause(report: VerificationReport, case_id: str) -> str:
    """Return the bug that explains a case, as spelled in the page's address; "" for none."""
    cause = report.diagnosis and report.diagnosis.cause_of(case_id)
    return f"{cause.cell}:{cause.hypothesis}" if cause else ""


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
    got, wanted = value_text(dtype, worst.got), value_text(dtype, worst.wanted)
    return [
        *(name, verdict, *found, *errors),
        *(index_text(worst.index), got, f"{wanted} ± {worst.tolerance:.3g}"),
    ]


def _map(case: JudgedCase) -> dict[str, Any] | None:
    """Return an error map as a line of letters per row, with the meaning of the rows."""
    record, verdict = case.record, case.verdict
    if not verdict.error_map:
        return None
    name = _mapped(verdict)
    direction = record["requirements"].get("direction", "forward")
    both = direction == "bidirectional"
    is_Y = name in OF_EVERY_STEP
    return {
        "output": visible(name),
        "rows": ["".join(map(letter, row)) for row in verdict.error_map],
        "panels": ["forward", "reverse"] if both and is_Y else [visible(direction)],
        "steps": record["sizes"].get("seq_length", 1) if is_Y else 0,
        "units": record["sizes"].get("hidden_size", 1),
    }


def _mapped(verdict: CaseVerdict) -> str:
    """Return the name of the output shown in an error map."""
    return next((output.name for output in verdict.outputs if output.differing), "")


def letter(margin: float) -> str:
    """Return the letter of a margin."""
    if margin <= 0:
        return "."
    if not margin <= 1e6:
        return "!"
    # A margin just above the tolerance must not be rounded down to it.
    step = max(math.ceil(5 * math.log10(margin) - 1e-9), 1 if margin > 1 else -TOLERANCE)
    return LETTERS[step + TOLERANCE]
