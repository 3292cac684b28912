"""Tables and sentences for comparisons of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from rnncli.numerics import dtype_named
from rnncli.reports.tables import draw_table, is_drawn, print_table, shown
from rnncli.talk.terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.judging.comparing.comparison import OutputComparison

COLUMNS = (
    *("output", "dtype", "shape", "verdict", "differing"),
    *("max abs", "max rel", "max ulp", "mean abs", "worst at", "got", "wanted"),
)
TERMINAL_COLUMNS = 8
# The largest meaningful distance in ulp: 1 and -1 are 2 billion ulp apart in float32.
MOST_ULP = 1e6


def print_comparison(outputs: Sequence[OutputComparison]) -> None:
    """Print a line for each output; on a terminal the widest columns become sentences below."""
    rows = [row(output) for output in outputs]
    if not is_drawn():
        print_table(COLUMNS, rows)
        return
    draw_table(COLUMNS[:TERMINAL_COLUMNS], [row[:TERMINAL_COLUMNS] for row in rows])
    for output in outputs:
        if not output.agrees:
            click.echo(one_line(difference(output)))


def row(output: OutputComparison) -> tuple[Any, ...]:
    """Return an output's line in the table of `rnncli compare`."""
    verdict = output.problem or ("agrees" if output.agrees else "differs")
    worst: tuple[str | None, ...] = (None, None, None)
    if output.worst:
        got, wanted = (value_text(output.dtype, v) for v in (output.worst.got, output.worst.wanted))
        worst = (index_text(output.worst.index), got, wanted)
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
    return (
        f"{output.name}: {output.differing} of {output.size} differ{up_to(output.max_ulp)},"
        f" worst at {index_text(worst.index)}: got {value_text(output.dtype, worst.got)},"
        f" expected {value_text(output.dtype, worst.wanted)} +- {shown(worst.allowed)}"
    )


def up_to(max_ulp: float | None) -> str:
    """Return the largest error in units in the last place in words, or "" if meaningless."""
    return "" if max_ulp is None or max_ulp > MOST_ULP else f" (up to {shown(max_ulp)} ulp)"


def ulp_text(max_ulp: float) -> str:
    """Write units in the last place for a cell of a table."""
    return f"over {MOST_ULP:g}" if max_ulp > MOST_ULP else f"{max_ulp:.3g}"


def value_text(dtype: str, value: object) -> str:
    """Return a number with enough digits to distinguish it from its neighbours in its dtype."""
    precision = dtype_named(dtype).precision
    if not precision or not isinstance(value, float):
        return str(value)
    return f"{value:.{math.ceil(1 + precision * math.log10(2))}g}"


def index_text(index: tuple[int, ...]) -> str:
    """Return an element's index as text."""
    return f"[{','.join(map(str, index))}]"
