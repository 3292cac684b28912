"""Shapes of kernels, whose vectors are as wide as the processor or the environment says."""

from __future__ import annotations

import pytest
from support.tables import every

from rnncli.backends.compiled.kernel_shapes import (
    COLUMNS,
    NONE,
    PHASES,
    Shape,
    has_scaling,
    registers,
)
from rnncli.errors import InvalidRequest
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


@every("cell", PHASES)
@every("dtype", ["float32", "float64"])
@every(("bits", "registers"), REGISTERS)
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


@pytest.fixture(autouse=True)
def forgetful():
    """Ask again in every test, and after it."""
    registers.cache_clear()
    yield
    registers.cache_clear()


@pytest.mark.parametrize("bits", [512, 256, 128])
def test_the_variable_is_obeyed(monkeypatch, bits):
    """Narrower and wider vectors than the processor's are both possible."""
    monkeypatch.setenv("RNNCLI_VECTOR_BITS", str(bits))

    assert registers().bits == bits


@pytest.mark.parametrize(
    ("features", "machine", "expected"),
    [
        ({"avx512f": True, "avx512vl": True, "avx2": True, "fma": True}, "x86_64", (512, 32)),
        ({"avx512f": False, "avx2": True, "fma": True}, "x86_64", (256, 16)),
        ({"sse4.2": True}, "AMD64", (128, 16)),
        ({"neon": True}, "aarch64", (128, 32)),
        ({"neon": True}, "arm64", (128, 32)),
    ],
)
def test_features_say_how_wide_and_how_many(monkeypatch, features, machine, expected):
    """AVX-512, AVX2, what every x86-64 has, and NEON."""
    monkeypatch.delenv("RNNCLI_VECTOR_BITS", raising=False)
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    monkeypatch.setattr("platform.machine", lambda: machine)

    assert tuple(registers()) == expected


@pytest.mark.parametrize("value", ["64", "1024", "wide"])
def test_other_widths_are_refused(monkeypatch, value):
    """With the variable, what it may be and what it was."""
    monkeypatch.setenv("RNNCLI_VECTOR_BITS", value)

    with pytest.raises(InvalidRequest, match=f"one of 512, 256, 128, got '{value}'"):
        registers()


@pytest.mark.parametrize(
    ("features", "name", "has_it"),
    [
        ({"avx512vl": True}, None, True),
        ({"avx512vl": True}, "generic", False),
        ({"avx2": True}, None, False),
        ({}, None, False),
    ],
)
def test_scaling_is_for_processors_that_code_is_made_for(monkeypatch, features, name, has_it):
    """Numba's environment may name another than this one."""
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    monkeypatch.setattr("numba.core.config.CPU_NAME", name)

    assert has_scaling() is has_it
