"""Attentions in chunks have the reference's outputs, and where they cannot, are not chunked."""

import numpy as np
import pytest
from support.linear_recurrences import RULES, attention_of

from rnncli.backends.backend import Compute
from rnncli.backends.in_place.attention import CHUNK, attend_in_chunks, attends_in_chunks
from rnncli.backends.in_place.prepared_calls import NotFiniteError
from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.backends.reference import ReferenceBackend
from rnncli.numerics import FLOAT32, FLOAT64

NUMPY, REFERENCE = NumPyBackend(), ReferenceBackend()
LARGE = {"dk": 32, "dv": 32, "decay": (-1.5, 0.0), "beta": (0.0, 1.0)}


def same_bits(recurrence, compute=Compute.FLOAT64):
    """Whether NumPy's outputs are the reference's, in every bit."""
    found, wanted = (backend.run(recurrence, compute) for backend in (NUMPY, REFERENCE))
    pairs = zip((found.Y, *found.last), (wanted.Y, *wanted.last), strict=True)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("T", [2, CHUNK, CHUNK + 1, 3 * CHUNK - 1])
@pytest.mark.parametrize(
    "form",
    [
        {"group": 1, "dtype": "float16", "states_dtype": "float32"},
        {"per_key": True, "past": False, "scale": 0.3},
        {"shared_beta": True, "dv": 40, "K": 3},
    ],
)
def test_chunks_round_to_the_outputs_of_the_reference(rule, T, form):
    """Errors of float64 are lost when outputs are rounded."""
    recurrence = attention_of(rule, T=T, **{**LARGE, **form})

    assert attends_in_chunks(recurrence, FLOAT64)
    assert same_bits(recurrence)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["query", "key", "value", "decay", "beta", "past_state"])
def test_what_is_not_finite_is_left_to_the_reference(name, poison):
    """Which has it where the equations do; a decay of -inf leaves 0, which is finite."""

    def poisoned(inputs):
        inputs[name].reshape(-1)[3] = poison

    recurrence = attention_of(T=CHUNK + 2, change=poisoned, **LARGE)

    if (name, poison) != ("decay", -np.inf):
        with pytest.raises(NotFiniteError):
            attend_in_chunks(recurrence, FLOAT64)
    assert same_bits(recurrence)


def test_decays_that_grow_are_left_to_the_reference():
    """Their products could overflow where steps do not."""
    recurrence = attention_of(T=CHUNK, **{**LARGE, "decay": (-1.0, 0.1)})

    with pytest.raises(NotFiniteError):
        attend_in_chunks(recurrence, FLOAT64)
    assert same_bits(recurrence)


@pytest.mark.parametrize(
    ("change", "dtype"),
    [
        ({}, FLOAT32),
        ({"T": 1}, FLOAT64),
        ({"N": 0}, FLOAT64),
        ({"dk": 31}, FLOAT64),
        ({"readings": {"state-round": "step"}}, FLOAT64),
    ],
)
def test_others_are_not_chunked(change, dtype):
    """Native sums would be further from steps; few steps and small states gain nothing."""
    recurrence = attention_of(**{**LARGE, "T": CHUNK, **change})
    compute = Compute.FLOAT64 if dtype == FLOAT64 else Compute.NATIVE

    assert not attends_in_chunks(recurrence, dtype)
    assert same_bits(recurrence, compute)
