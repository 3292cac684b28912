"""What a comparison of tensors looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.reports.tables import shown

if TYPE_CHECKING:
    from rnncli.judging.comparison import OutputComparison

COLUMNS = (
    *("output", "dtype", "shape", "verdict", "differing"),
    *("max abs", "max rel", "max ulp", "mean abs", "worst at", "got", "wanted"),
)


def row(output: OutputComparison) -> tuple[Any, ...]:
    """Return an output's line in the table of `rnncli compare`."""
    verdict = output.problem or ("agrees" if output.agrees else "differs")
    worst = (None, None, None)
    if output.worst:
        worst = (_index(output.worst.index), output.worst.got, output.worst.wanted)
    return (
        output.name,
        output.dtype,
        f"[{', '.join(map(str, output.shape))}]",
        verdict,
        None if output.problem else f"{output.differing} of {output.size}",
        output.max_abs,
        output.max_rel,
        output.max_ulp,
        output.mean_abs,
        *worst,
    )


def difference(output: OutputComparison) -> str:
    """Return the sentence for an output that differs."""
    if output.problem or output.worst is None:
        return f"{output.name}: {output.problem}"
    worst = output.worst
    ulp = "" if output.max_ulp is None else f" (up to {shown(output.max_ulp)} ulp)"
    return (
        f"{output.name}: {output.differing} of {output.size} differ{ulp}, worst at"
        f" {_index(worst.index)}: got {shown(worst.got)}, expected {shown(worst.wanted)}"
        f" +- {shown(worst.allowed)}"
    )


def _index(index: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, index))}]"
