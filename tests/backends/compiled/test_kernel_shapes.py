"""What follows from a kernel's shape."""

from __future__ import annotations

import pytest

from rnncli.backends.compiled.kernel_shapes import COLUMNS, NONE, PHASES, Shape
from rnncli.recurrence.cells import CELLS

REGISTERS = [(512, 32), (256, 16), (128, 32), (128, 16)]


@pytest.mark.parametrize("cell", PHASES)
def test_every_gate_is_somewhere_once(cell):
    """In the columns of W and in those of R, over all phases of a step."""
    gates = list(range(len(CELLS[cell.partition(" ")[0]].gates)))

    for weights in ("W", "R"):
        held = [gate for phase in PHASES[cell] for gate in getattr(phase, weights)]
        assert sorted(gate for gate in held if gate != NONE) == gates
        assert all(len(getattr(phase, weights)) == COLUMNS for phase in PHASES[cell])


@pytest.mark.parametrize("cell", PHASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("bits", "registers"), REGISTERS)
def test_a_tile_fits_the_registers(cell, dtype, bits, registers):
    """Sums, a step's columns and the number of a row; one row there is always."""
    shape = Shape(cell, True, dtype, bits, registers)

    needed = shape.tallest * shape.width + shape.width + 1
    assert shape.tallest >= 1
    assert needed <= registers
    assert {phase.units * sum(g != NONE for g in phase.R) for phase in shape.phases} == {
        shape.width
    }


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("cell", PHASES)
def test_a_code_is_the_whole_shape(cell, plain):
    """It comes back as it went."""
    shape = Shape(cell, plain, "float64", 256, 16)

    assert Shape.of(shape.code) == shape
