"""Kernel shapes: the layout of each cell's gates in registers and memory, as a table.

A *panel* is the work of one row of a tile: four vectors of sums, each a *column*, which belong to
one or more vectors of units. The sums of a time step are an array [panel, row, column, lane];
packed weights are [panel, term, column, lane].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

COLUMNS = 4
NONE = -1

Groups = tuple[int, int, int, int]


class Phase(NamedTuple):
    """A matrix product and the equations that follow it.

    Attributes:
        units: number of vectors of units in a panel; each takes COLUMNS / units columns.
        W: the gate of each group of columns in the input weights; NONE if it has none.
        R: the same in the recurrent weights.
    """

    units: int
    W: Groups
    R: Groups


def _alike(units: int, *gates: int) -> Phase:
    """Return a phase whose columns have the same gates in W and R."""
    padded = (*gates, *[NONE] * (COLUMNS - len(gates)))
    groups: Groups = padded  # type: ignore[assignment]
    return Phase(units, groups, groups)


# A GRU that resets before the product computes r first; one that resets after it keeps separate
# sums of W and R for the hidden gate. An LSTM whose o sees the previous C has equations of its own.
PHASES = {
    "RNN": (_alike(4, 0),),
    "GRU": (_alike(2, 0, 1), _alike(4, 2)),
    "GRU after": (Phase(1, (2, 0, 1, NONE), (NONE, 0, 1, 2)),),
    "LSTM": (_alike(1, 0, 1, 2, 3),),
    "LSTM previous": (_alike(1, 0, 1, 2, 3),),
}


class PanelLayout(NamedTuple):
    """The sizes of a shape that kernels compute with.

    Attributes:
        lanes: numbers in a vector.
        number: bytes of a number.
        vector: bytes of a vector.
        row: bytes of a row's sums.
        term: bytes of a panel's weights for one term.
        tallest: rows of a tile.
    """

    lanes: int
    number: int
    vector: int
    row: int
    term: int
    tallest: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The compile-time parameters of a kernel.

    Attributes:
        cell: a key of PHASES.
        plain: whether activations are the defaults, without clip, peepholes or input_forget.
        dtype: of the arithmetic, float32 or float64.
        bits: width of a vector register.
        registers: number of vector registers.
    """

    cell: str
    plain: bool
    dtype: str
    bits: int
    registers: int

    @property
    def code(self) -> str:
        """The shape as a string, which Numba can treat as a constant."""
        fields = (self.cell, int(self.plain), self.dtype, self.bits, self.registers)
        return "/".join(map(str, fields))

    @classmethod
    def of(cls, code: str) -> Shape:
        """Return the shape with a code."""
        cell, plain, dtype, bits, registers = code.split("/")
        return cls(cell, plain == "1", dtype, int(bits), int(registers))

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return 4 if self.dtype == "float32" else 8

    @property
    def lanes(self) -> int:
        """Numbers in a vector."""
        return self.bits // 8 // self.size

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of a time step."""
        return PHASES[self.cell]

    @property
    def width(self) -> int:
        """Columns of a panel of weights: the columns that have a gate."""
        phase = self.phases[0]
        return phase.units * sum(gate != NONE for gate in phase.W)

    @property
    def tallest(self) -> int:
        """Rows of a tile.

        In addition to the sums, registers hold one vector per column and one number of a row.
        """
        return max(1, (self.registers - self.width - 1) // self.width)

    @property
    def layout(self) -> PanelLayout:
        """The sizes that kernels compute with."""
        vector = self.lanes * self.size
        sizes = (self.lanes, self.size, vector, COLUMNS * vector, self.width * vector)
        return PanelLayout(*sizes, self.tallest)
