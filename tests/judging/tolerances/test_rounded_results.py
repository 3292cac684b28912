"""Profile `float32-inside`: of 16-bit tensors, results alone are rounded, and once."""

from dataclasses import replace

import numpy as np
import pytest
from support.biased_kernels import biased
from support.emulation import ByTanh, Implementation, Textbook, backwards, in_pairs
from support.judged import core, vectors_of
from support.recurrences import recurrence_of
from support.sound_variants import VARIANTS, BothRational, off_by

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.judgement import judge
from rnncli.judging.tolerances.derivation import answers_of, derive, signals_of
from rnncli.numerics import FLOAT64
from rnncli.numerics.profiles import PROFILES
from rnncli.packs.vector import Attempt, Status

PROFILE, STANDARD = PROFILES["float32-inside"], PROFILES["standard"]
NARROW = [v for v in core().values() if v.record.dtype in {"float16", "bfloat16"}]


def emulated(**settings):
    """An implementation that stores nothing in 16 bits but its results."""
    implementation = Implementation(stores=False, **settings)
    return lambda vector: vector.node.outputs_of(implementation.run(vector.recurrence))


SOUND = {
    "by BLAS": VARIANTS["by BLAS, only outputs stored"],
    "float64": VARIANTS["sums and all else in float64"],
    "kernel of tiles": VARIANTS["kernel of tiles"],
    "backwards, textbook functions": emulated(sums=backwards, arithmetic=Textbook),
    "in pairs, rational functions": emulated(sums=in_pairs, arithmetic=BothRational),
    "sigmoid by tanh": emulated(arithmetic=ByTanh),
    "functions off by 1 unit": emulated(arithmetic=off_by(1)),
}
WRONG = {
    "results truncated": biased("16-bit results truncated"),
    "results rounded down": biased("16-bit results rounded down"),
    "all stored in 16 bits": VARIANTS["by BLAS"],
    "states stored in 16 bits": VARIANTS["states alone are stored"],
    "sums in 16 bits": lambda vector: vector.node.outputs_of(
        Implementation(accumulator=None).run(vector.recurrence)
    ),
}
# Of 46 cases, those that a wrong kernel passes at most: nothing is lost where T is 1 or values are
# few.
MOST_PASSED = 13


def failing(kernel):
    """The ids of the 16-bit cases of core that a kernel fails by the profile."""
    rule = Rule(profile="float32-inside")
    with np.errstate(all="ignore"):
        attempts = [(v, Attempt(Status.RAN, kernel(v))) for v in NARROW]
    return [v.id for v, attempt in attempts if judge(v, attempt, rule).fails]


@pytest.mark.parametrize("name", SOUND)
def test_a_kernel_that_rounds_once_passes(name):
    """Whatever the order of its sums and its functions, as in float32."""
    assert failing(SOUND[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_another_rounding_fails(name):
    """Truncation, and 16 bits anywhere inside, which the standard profile allows."""
    assert len(NARROW) - len(failing(WRONG[name])) <= MOST_PASSED


def test_nearly_every_element_must_be_the_expected_one():
    """The others are next to a tie, and may be the neighbour."""
    count = near = 0
    for vector in NARROW:
        tolerance = derive(vector.recurrence, PROFILE)
        for allowed, golden in zip(
            tolerance.last, derive(vector.recurrence, STANDARD).last, strict=True
        ):
            near += np.count_nonzero(allowed)
            count += np.count_nonzero(golden)
    assert 0 < near < count / 20


@pytest.mark.parametrize("name", ["lstm_14_peepholes", "gru_14_clip", "rnn_14_ragged"])
def test_wider_tensors_are_judged_by_the_standard_profile(name):
    """Bit for bit: there is nothing to round once more."""
    recurrence = core()[name].recurrence

    for own, standard in zip(
        derive(recurrence, PROFILE).last, derive(recurrence, STANDARD).last, strict=True
    ):
        np.testing.assert_array_equal(own, standard)


def test_a_suite_may_be_made_for_such_kernels():
    """Tolerances of its vectors are those that the profile gives any other."""
    sizes = "{seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}"
    case = f"{{op: GRU-22, dtype: float16, profile: float32-inside, sizes: {sizes}}}"
    (vector,) = vectors_of(case)
    other = replace(vector, answers=Rule(profile="float32-inside").answers(vector))

    assert vector.record.profile == "float32-inside"
    for name, tolerance in vector.answers.tolerances.items():
        np.testing.assert_array_equal(tolerance, other.answers.tolerances[name])
    assert not judge(vector, Attempt(Status.RAN, SOUND["by BLAS"](vector))).fails
    assert judge(vector, Attempt(Status.RAN, WRONG["results truncated"](vector))).fails


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signals_are_rounded_once_as_well(dtype):
    """Gates and states of every step pass if they are rounded from float32, and no others."""
    recurrence = recurrence_of("LSTM", dtype=dtype, T=5)
    golden = evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=True)
    answers = answers_of(recurrence, golden, PROFILE)
    rows = [row.row for row in signals_of(recurrence)]

    def margin(implementation):
        inner = recurrence.dtype.numpy if implementation.stores else np.float32
        got = evaluate(recurrence, replace(implementation, dtype=inner), wants_signals=True)
        pairs = zip(
            got.signals[rows], answers.outputs.values(), answers.tolerances.values(), strict=True
        )
        return max(errors_of(*each).margin.max() for each in pairs)

    assert margin(Implementation(stores=False)) <= 1 < margin(Implementation())
