"""Which cases of a suite every sound implementation answers alike."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged import core
from support.recurrences import recurrence_of
from support.small_suite import small_suite
from support.tables import every

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.errors import InvalidRequest
from rnncli.generating.production import make_vectors
from rnncli.judging.tolerances.sound_values import exactness_problem, overflow_problem
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.recurrence import Result

LINEAR = {
    "RNN": {"activations": ["Relu"]},
    "GRU": {"activations": ["HardSigmoid", "Relu"], "activation_alpha": [0.25]},
    "LSTM": {"activations": ["HardSigmoid", "Relu", "Affine"], "activation_alpha": [0.25, 1.0]},
}


def dyadic(kind, dtype="float32", unit=4, **options):
    """Return a recurrence of integers over a power of two, one step forward."""
    found = recurrence_of(kind, dtype=dtype, **LINEAR[kind], **{"T": 1, **options})
    generator = np.random.default_rng(3)

    def small(values):
        return (generator.integers(-2, 3, values.shape) / unit).astype(values.dtype)

    return replace(
        found,
        X=small(found.X),
        W=small(found.W),
        R=small(found.R),
        Wb=small(found.Wb),
        Rb=small(found.Rb),
        initial=tuple(small(state) for state in found.initial),
    )


def golden_of(recurrence):
    """Evaluate it."""
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", LINEAR)
def test_dyadic_cases_are_exact(kind, dtype):
    """Small integers over 4, through piecewise linear functions."""
    found = dyadic(kind, dtype)

    assert exactness_problem(found, golden_of(found)) == ""
    assert exactness_problem(replace(found, wants_Y=False), golden_of(found)) == ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_one_step_of_whole_numbers_is_exact_in_sixteen_bits(dtype):
    """Few bits are enough for whole numbers."""
    found = dyadic("RNN", dtype, unit=1)

    assert exactness_problem(found, golden_of(found)) == ""


@pytest.mark.parametrize("kind", LINEAR)
def test_normal_numbers_are_not_exact(kind):
    """The sentence names the output and both values."""
    found = recurrence_of(kind, T=4, I=20, **LINEAR[kind])

    problem = exactness_problem(found, golden_of(found))

    assert "Y is not exact: summed in float32, first term first" in problem


def test_other_golden_is_not_exact():
    """One element off is found, in the last states too."""
    found = dyadic("LSTM")
    golden = golden_of(found)
    C = golden.last[1].copy()
    C[0, 1, 2] += 0.25

    problem = exactness_problem(found, Result(golden.Y, (golden.last[0], C)))

    assert "Y_c is not exact" in problem
    assert "[0, 1, 2]" in problem


def test_sums_that_another_order_would_round_are_not_exact():
    """2^24 + 1 - 2^24 is exact from one end only by luck; the terms' bits tell."""
    found = dyadic("RNN")
    X = np.zeros_like(found.X)
    X[..., 0] = 2.0**23
    found = replace(found, X=X, W=np.ones_like(found.W), R=np.zeros_like(found.R))
    found = replace(found, Wb=np.full_like(found.Wb, 1.0), Rb=np.full_like(found.Rb, 2.0**23 - 1))

    assert "another order of summation could round" in exactness_problem(found, golden_of(found))


def test_empty_is_exact():
    """Nothing to add up."""
    for sizes in ({"T": 0}, {"N": 0}):
        found = recurrence_of("GRU", **{"T": 2, **sizes})
        assert exactness_problem(found, golden_of(found)) == ""


TEXT = """\
suite: large
summary: One case.
seed: 5
golden: float64
cases:
  case:
    op: {op}
    dtype: {dtype}
    profile: {profile}
    sizes: {{seq_length: {T}, batch_size: 1, input_size: 2, hidden_size: 2}}
    attributes: {{activations: {activations}}}
    inputs: {{X: {X}, W: {W}, R: {R}, B: null}}
"""
RELU, SIGMOID_RELU = "[Relu]", "[Sigmoid, Relu]"


def made(op="RNN-14", **more):
    """The vector of a case, or the sentence that refuses it."""
    known = {"dtype": "float32", "profile": "standard", "T": 3, "activations": "null"}
    known |= {"X": "ones", "W": "weights", "R": "weights"}
    (found,) = make_vectors(small_suite(TEXT.format(op=op, **(known | more))).entries)
    return str(found) if isinstance(found, InvalidRequest) else found


def test_sums_that_could_overflow_on_their_way_are_refused():
    """Two terms of 3e38 of opposite signs are 0 together, and infinity in float32 one by one."""
    sentence = made(X="{constant: 3.0e+38}", W="[[[0.9, -0.9], [0.5, -0.5]]]", R="zeros")

    assert "the terms of a gate add up to 5.4e+38 in modulus, and float32" in sentence
    assert "some order could overflow on its way" in sentence


def test_one_large_term_is_no_overflow():
    """No partial sum is beyond it."""
    assert made(X="{constant: 3.0e+38}", W="[[[0.9, 0], [0, 0.5]]]", R="zeros").record


@pytest.mark.parametrize(("profile", "refused"), [("standard", False), ("dtype-accumulator", True)])
def test_the_accumulator_is_that_of_the_profile(profile, refused):
    """Float16 tensors may be summed in float32, or may not."""
    found = made(
        dtype="float16", profile=profile, X="{constant: 40000}", W="[[[1, 1], [1, 1]]]", R="zeros"
    )

    assert isinstance(found, str) is refused
    if refused:
        assert "add up to 8e+04 in modulus, and float16" in found


def test_a_state_beyond_the_dtype_that_only_grows_is_sound():
    """In any arithmetic infinity stays infinity."""
    vector = made(
        dtype="float16",
        activations=RELU,
        X="{constant: 200}",
        W="{constant: 200}",
        R="{constant: 2}",
    )

    assert np.isinf(vector.answers.outputs["Y"].astype(np.float64)).any()


def test_a_state_beyond_the_dtype_that_is_subtracted_is_refused():
    """Infinity minus infinity is NaN where the state is kept in float16, and 0 in real numbers."""
    sentence = made(
        dtype="float16",
        activations=RELU,
        X="{constant: 200}",
        W="{constant: 200}",
        R="[[[1, -1], [1, -1]]]",
    )

    assert (
        "a kernel that keeps its states in float16 has nan at canonical Y[1, 0, 0, 0]" in sentence
    )


def test_both_forms_of_a_blend_are_tried():
    """Half of h and half of H is infinite where h + z (H - h) is NaN."""
    sentence = made(
        "GRU-14",
        dtype="float16",
        activations=SIGMOID_RELU,
        X="{constant: 300}",
        W="[[[0, 0], [0, 0], [0, 0], [0, 0], [200, 200], [200, 200]]]",
        R="zeros",
        T=4,
    )

    assert isinstance(sentence, str)
    assert "a kernel that keeps its states in float16 has nan at canonical Y" in sentence


def test_a_state_near_the_largest_number_is_refused():
    """65504 is the largest float16; rounding errors decide on which side 65500 is."""
    sentence = made(
        dtype="float16", activations=RELU, X="{constant: 250}", W="{constant: 131}", R="zeros"
    )

    assert "a state is within 2% of 6.55e+04, the largest float16" in sentence


def test_a_state_beyond_the_accumulator_is_refused():
    """Nothing is wider than float32 there."""
    sentence = made(
        activations="[Affine]", X="{constant: 1.0e+30}", W="{constant: 1}", R="{constant: 4.0e+8}"
    )

    assert "float32" in sentence


@every("case_id", core())
def test_no_committed_case_overflows(case_id):
    """Every sound implementation can be judged by it."""
    vector = core()[case_id]
    if vector.record.expect != "result":
        return
    recurrence = vector.recurrence
    golden = Result(None, ())

    assert not overflow_problem(recurrence, golden, PROFILES[vector.record.profile])


@given(st.integers(-8, 8), st.sampled_from([RELU, "null"]))
def test_powers_of_two_below_the_limits_pass_and_beyond_are_refused(exponent, activations):
    """The sum of two equal terms is refused from the largest number on."""
    found = made(
        activations=activations,
        X=f"{{constant: {2.0 ** (126 + exponent / 8):.17g}}}",
        W="{constant: 1}",
        R="zeros",
        T=1,
    )

    assert isinstance(found, str) is (2 * 2.0 ** (126 + exponent / 8) >= (1 - 2.0**-6) * 2.0**128)
