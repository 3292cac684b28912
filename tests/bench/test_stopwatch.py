"""Turns are measured by the clock of the terms."""

import itertools

import numpy as np

from rnncli.bench import stopwatch
from rnncli.bench.contestants import Own
from rnncli.bench.stopwatch import CLOCKS, TURN, Stopwatch
from rnncli.bench.workloads import planned
from rnncli.subjects.runtime import question
from rnncli.supervision.connection import Message


def test_a_turn_is_measured_by_its_clock(monkeypatch):
    """Warm-up is not: a process that waits takes no processor time."""
    ticks = itertools.count(0, 5)
    monkeypatch.setattr(stopwatch, "CLOCKS", {**CLOCKS, "cpu": lambda: next(ticks)})
    (plan,) = planned(["tiny"], ["RNN"], "float32", {})
    vector = plan.workload().vector
    watch = Stopwatch(Own({"backend": "numpy", "compute": "native", "call": "session"}, 1))
    request = question(1, vector)
    request.fields.update(seconds=1e-9, clock="cpu")  # turns of one call

    loaded = watch.answer(request)
    turns = [watch.answer(Message(number, TURN, {})).fields["seconds"] for number in (2, 3)]

    assert turns == [5, 5]
    assert next(ticks) == 20
    np.testing.assert_array_equal(loaded.tensors["Y_h"].shape, (1, 2, 4))
