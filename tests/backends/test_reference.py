"""The reference: the equations over lanes, those of several recurrences side by side."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from support.examples import examples
from support.nodes import nodes
from support.recurrences import recurrence_of
from support.stacks import ARRAYS, bound, siblings, stacked

from rnncli.backends import backend_named, reference
from rnncli.backends.backend import Compute
from rnncli.errors import RnncliWarning
from rnncli.judging.tolerances.derivation import derive, derive_all
from rnncli.numerics import FLOAT64
from rnncli.numerics.profiles import PROFILES

pytestmark = pytest.mark.filterwarnings(f"ignore::{RnncliWarning.__module__}.RnncliWarning")
FLOATS = ("float16", "bfloat16", "float32", "float64")


def evaluate(recurrence):
    """Evaluate one, or a stack, in float64."""
    return reference.evaluate(recurrence, reference.NumPyEngine(FLOAT64))


def parts(result):
    """Return every output of a result that there is."""
    return [part for part in (result.Y, *result.last) if part is not None]


@given(nodes(dtypes=FLOATS))
@examples(150)
def test_a_stack_is_bound_as_its_nodes_are(node):
    """Every array has the nodes' own in a row, whatever layout, gates, biases and readings."""
    found = siblings(node)
    alone = [bound(each) for each in found]

    stack = bound(node, stacked(found))

    lengths = [each.lengths for each in alone]
    for name in ARRAYS:
        values = getattr(stack, name)
        if name == "lengths" and any(each is None for each in lengths):
            continue  # sequences that are all as long as X need none
        assert (values is None) == (getattr(alone[0], name) is None)
        for k, each in enumerate(alone):
            assert values is None or np.array_equal(values[k], getattr(each, name), equal_nan=True)


@given(nodes(dtypes=FLOATS))
@examples(150)
def test_a_stack_has_the_bits_that_its_recurrences_have_alone(node):
    """Of the values, and of the tolerances derived from them."""
    found = siblings(node)
    stack = bound(node, stacked(found))

    together = evaluate(stack)
    tolerances = derive_all([(stack, together)], PROFILES["standard"])[0]

    for k, each in enumerate(found):
        alone = evaluate(bound(each))
        for values, own in zip(parts(together), parts(alone), strict=True):
            assert values[k].tobytes() == own.tobytes()
        tolerance = derive(bound(each), PROFILES["standard"], alone)
        for values, own in zip(parts(tolerances), parts(tolerance), strict=True):
            assert values[k].tobytes() == own.tobytes()


@given(nodes(dtypes=("float64",)))
@examples(150)
def test_the_fast_backend_computes_the_same(node):
    """Within float64's own rounding errors, judged by the derived tolerances."""
    recurrence = bound(node)

    found = evaluate(recurrence)
    wanted = backend_named("numpy").run(recurrence, Compute.FLOAT64)

    allowed = parts(derive(recurrence, PROFILES["standard"], found))
    for got, values, limit in zip(parts(found), parts(wanted), allowed, strict=True):
        assert got.shape == values.shape
        same = (got == values) | (np.isnan(got) & np.isnan(values))
        with np.errstate(invalid="ignore"):
            assert (same | (np.abs(got - values) <= limit)).all()


def test_padding_does_not_reach_the_states():
    """What stands behind the end of a sequence is in no output, be it NaN."""
    clean = recurrence_of("LSTM", D=2, lengths=[2, 4, 0])
    spoilt = recurrence_of("LSTM", D=2, lengths=[2, 4, 0])
    spoilt.X[2:, 0], spoilt.X[:, 2] = np.nan, np.inf

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(spoilt)

    for got, wanted in zip(parts(found), parts(evaluate(clean)), strict=True):
        assert np.array_equal(got, wanted)
    assert not found.Y[2:, :, 0].any()
    assert not found.last[0][:, 2].any()


def test_a_walk_can_be_ended_at_every_step(monkeypatch):
    """However many steps are projected at once: a timeout must not wait for them."""
    asked = []
    activity = SimpleNamespace(check=lambda: asked.append("may it go on?"))
    monkeypatch.setattr(reference, "current_activity", lambda: activity)

    evaluate(recurrence_of("RNN", T=7))

    assert len(asked) == 7
