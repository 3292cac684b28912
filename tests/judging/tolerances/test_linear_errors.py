"""Tolerances of linear recurrences, tried on sound kernels of many kinds, and on bugs."""

from dataclasses import replace

import numpy as np
import pytest
from support.examples import part_of
from support.linear_draws import attention, convolution
from support.linear_judging import evaluated, judged, parts
from support.linear_kernels import (
    ATTENTION_BUGS,
    CHUNKED,
    CONVOLUTION_BUGS,
    CONVOLUTIONS,
    SEQUENTIAL,
    Convolution,
    Kernel,
)
from support.tables import every

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import Unsupported
from rnncli.judging.tolerances.derivation import answers_of, derive, derive_all
from rnncli.judging.tolerances.sound_values import exactness_problem, overflow_problem
from rnncli.numerics import FLOAT64
from rnncli.numerics.profiles import PROFILES

STANDARD = PROFILES["standard"]
# dtype of the tensors, of the states
TYPES = [("float32", None), ("float16", None), ("bfloat16", "float32"), ("float32", "float16")]
COUNTS = {"float32": 240, "float16": 80, "bfloat16": 80}
MOST_MARGIN = 0.7


@pytest.mark.parametrize(("dtype", "states"), TYPES)
def test_sound_attentions_stay_within(dtype, states):
    """One step after another, whatever the order of sums: in the median a fifth of a tolerance."""
    made = [attention(seed, dtype, states) for seed in range(part_of(COUNTS[dtype]))]
    (margins,) = judged(SEQUENTIAL.values(), made, "standard")

    assert margins.shape[1] > 0.9 * len(made)
    assert margins.max() <= MOST_MARGIN
    assert dtype != "float32" or np.median(margins, axis=1).min() > 0.1


@pytest.mark.parametrize(("dtype", "states"), TYPES[:3])
def test_attentions_in_chunks_have_a_profile(dtype, states):
    """In chunks of 16 to 128 steps: all stay within `chunked`, and float32 fails by `standard`."""
    made = [attention(seed, dtype, states) for seed in range(part_of(COUNTS[dtype]))]
    margins, by_standard = judged(CHUNKED.values(), made, "chunked", "standard")

    assert margins.shape[1] > 0.9 * len(made)
    assert margins.max() <= MOST_MARGIN
    if dtype == "float32":
        assert np.median(margins, axis=1).min() > 0.02
        assert 0.02 < np.mean(by_standard > 1) < 0.4


def test_steps_that_are_all_alike_stay_within():
    """Their errors add up: without that, plain kernels were off by 3.3 tolerances of `standard`."""
    made = [in_which_all_steps_are_alike(attention(seed, T=130)) for seed in range(part_of(48))]
    (sequential,) = judged(SEQUENTIAL.values(), made, "standard")
    (chunked,) = judged(CHUNKED.values(), made, "chunked")

    assert min(sequential.shape[1], chunked.shape[1]) > 0.8 * len(made)
    assert max(sequential.max(), chunked.max()) <= MOST_MARGIN
    assert np.median(sequential, axis=1).min() > 0.05


def in_which_all_steps_are_alike(recurrence):
    """The same with the inputs of the first step throughout."""
    return replace(recurrence, X=np.broadcast_to(recurrence.X[:1], recurrence.X.shape).copy())


@every("bug", ATTENTION_BUGS)
def test_bugs_of_attentions_fail(bug):
    """By both profiles, wherever they change the result of a sound kernel."""
    made = [attention(seed) for seed in range(part_of(100))]
    changed = [r for r in made if are_other(Kernel().run(r), Kernel(bug=bug).run(r))]
    margins = judged([Kernel(bug=bug)], changed, "standard", "chunked")

    assert (margins > 1).mean(axis=-1).min() > 0.95


def are_other(a, b):
    """Whether any output of two results differs."""
    return any(np.any(one != other) for one, other in zip(parts(a), parts(b), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_sound_convolutions_stay_within(dtype):
    """Whether the sum is rounded before silu or not, and whatever formula silu has."""
    made = [convolution(seed, dtype) for seed in range(part_of(240))]
    (margins,) = judged(CONVOLUTIONS.values(), made, "standard")

    assert margins.shape[1] == len(made)
    assert margins.max() <= MOST_MARGIN
    assert dtype != "float32" or np.median(margins, axis=1).min() > 0.05


@every("bug", CONVOLUTION_BUGS)
def test_bugs_of_convolutions_fail(bug):
    """Wherever they change the result."""
    made = [convolution(seed, activation="silu") for seed in range(part_of(100))]
    changed = [r for r in made if are_other(Convolution().run(r), Convolution(bug=bug).run(r))]
    (margins,) = judged([Convolution(bug=bug)], changed, "standard")

    assert (margins > 1).mean() > 0.95


def test_the_state_of_a_convolution_is_exact():
    """It has copies of inputs."""
    assert not derive(convolution(2), STANDARD).last[1].any()


@every("made", [attention, convolution])
def test_many_and_stacks_are_each_alone(made):
    """Bit for bit, whichever are derived at once; without Y its tolerance is None."""
    found = [made(seed) for seed in range(12)]

    for one, whole in zip(found, derive_all([(r, None) for r in found], STANDARD), strict=True):
        alone = derive(replace(one, wants_Y=False), STANDARD)
        stack = replace(
            one,
            **{n: getattr(one, n)[None] for n in ("X", "W", "R")},
            Wb=None if one.Wb is None else one.Wb[None],
            initial=tuple(None if state is None else state[None] for state in one.initial),
        )
        stacked = derive(stack, STANDARD)
        assert alone.Y is None
        for a, b, c in zip(alone.last, whole.last, stacked.last, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c[0])
        assert np.array_equal(whole.Y, stacked.Y[0])


@every("poison", [np.nan, np.inf, -np.inf])
@every("tensor", ["X", "key", "value", "decay", "beta"])
@every("rule", ["gated", "gated_delta"])
def test_what_is_not_finite_must_match_exactly(poison, tensor, rule):
    """0 for what is not finite, finite for the rest of the head, as before for other heads."""
    clean = attention(3, T=5, dk=4, dv=3, K=2, rule=rule)
    column = dict(
        zip(["X", "key", "value", "decay", "beta"], np.cumsum([0, *widths_of(clean)]), strict=False)
    )[tensor]
    if column == clean.X.shape[-1]:
        return
    X = clean.X.copy()
    X[2, 0, column] = poison
    spoilt = replace(clean, X=X)
    golden, found = evaluated(spoilt), derive(spoilt, STANDARD)

    for wanted, tolerance, before in zip(
        parts(golden), parts(found), parts(derive(clean, STANDARD)), strict=True
    ):
        assert not tolerance[~np.isfinite(wanted)].any()
        assert np.isfinite(tolerance).all()
        axis = -2 if wanted.ndim == 4 and wanted is golden.Y else 1
        others = np.arange(1, wanted.shape[axis])
        assert np.array_equal(tolerance.take(others, axis), before.take(others, axis))


def widths_of(recurrence):
    """Return the numbers of X of each tensor but the last."""
    return recurrence.options.attention.widths[:-1]


def test_a_decay_of_minus_infinity_clears_errors():
    """What is written afterwards is all that is left, and has the errors of one step."""
    found = attention(5, T=17, dk=4, dv=2, K=1, rule="gated")
    assert found.options.attention.decays
    X = found.X.copy()
    X[16, :, -found.options.attention.decays :] = -np.inf
    alone = replace(found, X=X[16:], initial=(None, np.zeros_like(evaluated(found).last[1])))

    cleared = derive(replace(found, X=X), STANDARD)
    np.testing.assert_allclose(cleared.Y[16], derive(alone, STANDARD).Y[0], rtol=0.02)


def test_states_that_are_rounded_in_each_step_have_wider_tolerances():
    """By the reading state-round."""
    once = attention(4, "float16", "float16", T=33, rule="gated")
    each = attention(4, "float16", "float16", {"state-round": "step"}, T=33, rule="gated")

    assert (derive(each, STANDARD).last[1] > 2 * derive(once, STANDARD).last[1]).mean() > 0.5


def test_steps_are_unsupported():
    """There are no signals of them."""
    with pytest.raises(Unsupported, match="LinearAttention: signals of every step"):
        evaluate(attention(0), NumPyEngine(FLOAT64), wants_signals=True)
    assert not answers_of(attention(0), evaluated(attention(0)), STANDARD).outputs


def test_exact_values_are_not_known():
    """So that the profile `exact` is refused."""
    found = convolution(0)

    assert "CausalConv" in exactness_problem(found, evaluated(found))


def test_what_could_overflow_is_refused():
    """A decay beyond float32's range, of a state of zeros: a kernel has NaN there."""
    found = attention(5, T=5, dk=4, dv=2, K=1, rule="gated")
    X = found.X.copy()
    X[0, :, -found.options.attention.decays :] = 100.0

    assert overflow_problem(found, evaluated(found), STANDARD) == ""
    large = replace(found, X=X)
    assert "a decay, or the terms" in overflow_problem(large, evaluated(large), STANDARD)
