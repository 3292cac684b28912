"""Kernel shapes: the processor's registers, and how each cell's gates lie in them and in memory.

A *panel* is the work of one row of a tile: four vectors of sums, each a *column*, which belong to
one or more vectors of units. The sums of a time step are an array [panel, row, column, lane];
packed weights are [panel, term, column, lane].
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import llvmlite.binding
from numba.core import config

from rnncli.errors import InvalidRequest

VARIABLE = "RNNCLI_VECTOR_BITS"
WIDTHS = (512, 256, 128)


class Registers(NamedTuple):
    """The vector registers that kernels are written for."""

    bits: int  # of one register
    number: int  # number of registers


@cache
def registers() -> Registers:
    """Return this processor's registers, with the width of the environment variable if it is set.

    Every width is correct on every processor, because LLVM splits vectors that are too wide.

    Raises:
        InvalidRequest: the variable is not a width.
    """
    features = llvmlite.binding.get_host_cpu_features()
    own = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    width = os.environ.get(VARIABLE, "").strip() or str(own)
    if width not in map(str, WIDTHS):
        widths = ", ".join(map(str, WIDTHS))
        raise InvalidRequest(
            f"environment variable {VARIABLE} must be one of {widths}, got '{width}'"
        )
    many = features.get("avx512vl") or platform.machine().lower() in {"aarch64", "arm64"}
    return Registers(int(width), 32 if many else 16)


def has_scaling() -> bool:
    """Return whether the processor can multiply by powers of two (AVX-512's scalef) at every width.

    The answer is that of the processor that Numba compiles for, which may be configured.
    """
    is_own = config.CPU_NAME is None and config.CPU_FEATURES is None
    return is_own and bool(llvmlite.binding.get_host_cpu_features().get("avx512vl"))


COLUMNS = 4
NONE = -1

Groups = tuple[int, int, int, int]


class Phase(NamedTuple):
    """A matrix product and the equations that follow it."""

    units: int  # number of vectors of units in a panel; each takes COLUMNS / units columns
    W: Groups  # the gate of each group of columns in the input weights; NONE if it has none
    R: Groups  # the same in the recurrent weights


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
    """The sizes of a shape that kernels compute with."""

    lanes: int  # numbers in a vector
    number: int  # bytes of a number
    vector: int  # bytes of a vector
    row: int  # bytes of a row's sums
    term: int  # bytes of a panel's weights for one term
    tallest: int  # rows of a tile


@dataclass(frozen=True, slots=True)
class Shape:
    """The compile-time parameters of a kernel."""

    cell: str  # a key of PHASES, or the name of a cell without gates
    plain: bool  # whether activations are the defaults, without clip, peepholes or input_forget
    dtype: str  # of the arithmetic, float32 or float64
    bits: int  # width of a vector register
    registers: int  # number of vector registers

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
        """Columns of a panel of weights: the columns that have a gate, or all of another matrix."""
        if self.cell not in PHASES:
            return COLUMNS
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
