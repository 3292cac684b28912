"""How each cell's gates lie in registers and memory: rows of a table, and what follows from them.

A *panel* is what one row of a tile computes at once: four vectors of sums, a *column* each, that
belong to one or more vectors of units. The sums of a time step are an array [panel, row, column,
lane]; packed weights are [panel, term, column, lane].
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
        units: vectors of units in a panel; each takes COLUMNS / units columns.
        W: the gate of each group of columns in the input weights; NONE where there is none.
        R: the same in the recurrent weights.
    """

    units: int
    W: Groups
    R: Groups


def _alike(units: int, *gates: int) -> Phase:
    """Return a phase whose columns hold the same gates of W and R."""
    padded = (*gates, *[NONE] * (COLUMNS - len(gates)))
    groups: Groups = padded  # type: ignore[assignment]
    return Phase(units, groups, groups)


# A GRU that resets before the product needs r first, one that resets after it keeps W's and R's
# sums of the hidden gate apart.
PHASES = {
    "RNN": (_alike(4, 0),),
    "GRU": (_alike(2, 0, 1), _alike(4, 2)),
    "GRU after": (Phase(1, (2, 0, 1, NONE), (NONE, 0, 1, 2)),),
    "LSTM": (_alike(1, 0, 1, 2, 3),),
}


class PanelLayout(NamedTuple):
    """What of a shape the kernels calculate with.

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
    """All that is known when a kernel is compiled.

    Attributes:
        cell: a key of PHASES.
        plain: default activations, neither clip nor peepholes nor input_forget.
        dtype: of the arithmetic, float32 or float64.
        bits: of a vector register.
        registers: how many there are.
    """

    cell: str
    plain: bool
    dtype: str
    bits: int
    registers: int

    @property
    def code(self) -> str:
        """The shape as one string, which Numba can carry as a constant."""
        fields = (self.cell, int(self.plain), self.dtype, self.bits, self.registers)
        return "/".join(map(str, fields))

    @classmethod
    def of(cls, code: str) -> Shape:
        """Return the shape of a code."""
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
        """Columns of a panel of weights: those that have a gate, times their vectors."""
        phase = self.phases[0]
        return phase.units * sum(gate != NONE for gate in phase.W)

    @property
    def tallest(self) -> int:
        """Rows of a tile.

        Besides the sums, a step holds a vector of each column and a number of one row.
        """
        return max(1, (self.registers - self.width - 1) // self.width)

    @property
    def layout(self) -> PanelLayout:
        """What the kernels calculate with."""
        vector = self.lanes * self.size
        sizes = (self.lanes, self.size, vector, COLUMNS * vector, self.width * vector)
        return PanelLayout(*sizes, self.tallest)
