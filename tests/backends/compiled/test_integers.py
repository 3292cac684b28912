"""The compiled integer LSTM: which nodes it computes, in which pieces, and which it leaves."""

import numpy as np
import pytest
from support import shipped
from support.integer_lstms import integer_lstm_of

pytest.importorskip("numba")

from rnncli.backends import backend_named
from rnncli.backends.compiled import integers
from rnncli.errors import Unsupported
from rnncli.recurrence.recurrence import Compute

NUMBA, REFERENCE = backend_named("numba"), backend_named("reference")


def assert_same(recurrence):
    """Both back ends give the same integers, of the same types."""
    found, wanted = (each.run(recurrence, Compute.FLOAT64) for each in (NUMBA, REFERENCE))
    pairs = [(found.Y, wanted.Y), *zip(found.last, wanted.last, strict=True)]
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs, strict=True)


def never(*_):
    """Stand for the reference."""
    raise AssertionError("the kernel did not compute this")


def test_every_case_of_the_suite_is_computed_by_the_kernel(monkeypatch):
    """None is handed on; scalar integers judge the numbers in tests of the recurrence."""
    monkeypatch.setattr(integers, "evaluate", never)

    for vector in shipped.vectors("tflite"):
        for call in vector.calls:
            found = NUMBA.run(call.recurrence, Compute.FLOAT64)
            made = call.node.outputs_of(found)
            for name, values in call.answers.outputs.items():
                np.testing.assert_array_equal(made[name], values, strict=True)


def test_time_is_cut_into_blocks(monkeypatch):
    """Between two looks at the clock the states are kept."""
    monkeypatch.setattr(integers, "BLOCK", 1)
    assert_same(integer_lstm_of(T=7))


@pytest.mark.parametrize("missing", ["steps", "states"])
def test_what_is_absent_is_none(missing):
    """Without steps the states stay as they were; without states they are at rest."""
    assert_same(integer_lstm_of(**{"steps": {"T": 0}, "states": {"states": None}}[missing]))


def test_sums_that_wrap_are_handed_on():
    """As a bug has them; the kernel knows no other result than the defined one."""
    recurrence = integer_lstm_of(factor=1e6)
    with pytest.raises(Unsupported, match="more than 32 bits"):
        NUMBA.run(recurrence, Compute.FLOAT64)

    form = recurrence.options.integers
    assert_same(recurrence.opting(integers=form._replace(wraps=True)))
