"""Coverage besides bugs: the sizes, second calls, dtypes and operators of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rnncli.operators import OPERATORS
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.judging.scoring.kill_matrix import VectorRow

# Widths that kernels are built on: vectors, tiles, blocks and chunks, and the range of a byte.
EDGES = (4, 8, 16, 32, 64, 128, 256)
AXES = {"T": "steps", "N": "sequences", "I": "inputs", "H": "units"}
THREADS = "races, shared buffers: a pack is called sequentially"


class CoverageItem(NamedTuple):
    """The coverage of one dimension.

    Attributes:
        what: the dimension, such as "H, units".
        covered: what is covered, in words.
        missing: what is not covered, in words; "" if nothing is missing.
    """

    what: str
    covered: str
    missing: str


def coverage_of(rows: Sequence[VectorRow]) -> list[CoverageItem]:
    """Return the coverage of some vectors."""
    return [*(_sizes(axis, rows) for axis in AXES), _calls(rows), _threads(), *_named(rows)]


def _sizes(axis: str, rows: Iterable[VectorRow]) -> CoverageItem:
    sizes = sorted({row.sizes[axis] for row in rows})
    crossed = [edge for edge in EDGES if sizes[-1] > edge]
    words = f"{_spelled(sizes[:6])}{' ...' if len(sizes) > 6 else ''}, at most {sizes[-1]}"
    beyond = f"; beyond {_spelled(crossed)}" if crossed else ""
    missing = [f"beyond {_spelled(EDGES[len(crossed) :])}"] if len(crossed) < len(EDGES) else []
    ones = ["1"] if 1 not in sizes else []
    return CoverageItem(f"{axis}, {AXES[axis]}", words + beyond, "; ".join(ones + missing))


def _calls(rows: Sequence[VectorRow]) -> CoverageItem:
    again = sum(row.calls > 1 for row in rows)
    once = len(rows) - again
    missing = f"{once} of {len(rows)} {plural(once, 'is', 'are')} called once" if once else ""
    return CoverageItem("second calls", f"{again} of {counted(len(rows), 'case')}", missing)


def _threads() -> CoverageItem:
    return CoverageItem("threads", "nothing", THREADS)


def _named(rows: Sequence[VectorRow]) -> list[CoverageItem]:
    """Return the coverage of dtypes and operator versions, among those of the same types."""
    operators = list(dict.fromkeys(row.operator for row in rows))
    types = {OPERATORS[name].type for name in operators}
    versions = [row for row in OPERATORS.values() if row.type in types]
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    every = dict.fromkeys(dtype for row in versions for dtype in row.dtypes)
    absent = [dtype for dtype in every if dtype not in dtypes]
    return [
        CoverageItem("dtypes", _spelled(dtypes), _spelled(absent)),
        CoverageItem(
            "operators",
            _spelled(operators),
            _spelled(row.name for row in versions if row.name not in operators),
        ),
    ]


def _spelled(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
