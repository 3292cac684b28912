"""Claims about the limits of the machine."""

import pytest

from rnncli.bench import machine


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits_are_measured(monkeypatch, dtype, threads):
    """Operations and bytes of what was done, over the time it took."""
    monkeypatch.setattr(machine, "ORDER", 8)
    monkeypatch.setattr(machine, "COPIED", 1 << 10)
    monkeypatch.setattr(machine, "_seconds", lambda function: (function(), 0.5)[1])

    assert machine.measure(dtype, threads) == (2 * 8**3 / 0.5, 2 * 1024 / 0.5)
