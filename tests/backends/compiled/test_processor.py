"""The width of vectors is the processor's or the environment's."""

from __future__ import annotations

import pytest

from rnncli.backends.compiled.processor import has_scaling, registers
from rnncli.errors import InvalidRequest


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
