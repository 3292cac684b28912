"""Derived tolerances: what they are worth is tried on noise, on emulated and on real runtimes."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from support.agreement import judged_by_onnxruntime, onnxruntime_limits
from support.biased_kernels import BIASED
from support.emulation import NARROW, WIDE, Implementation
from support.examples import examples, part_of
from support.judged import bound
from support.nodes import Limits, nodes
from support.noise import noisy_runs
from support.other_cells import OTHER_CELLS, recurrence_of_cell
from support.recurrences import PREVIOUS, recurrence_of
from support.sound_variants import off_by
from support.tables import every

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.derivation import derive, derive_all, round_up
from rnncli.numerics import DTYPES, FLOAT64, conditioning_problem
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node
from rnncli.packs.pack import open_pack
from rnncli.recurrence.recurrence import Direction

TILES = Path(__file__).parents[3] / "vectors" / "tiles"
STANDARD = PROFILES["standard"]
CELLS = {
    "RNN": {},
    "RNN-relu": {"activations": ["Relu"]},
    "GRU": {"linear_before_reset": 0},
    "GRU-after": {"linear_before_reset": 1},
    "LSTM": {},
    "LSTM-peepholes": {"peepholes": True, "input_forget": 1},
    "LSTM-clip": {"peepholes": True, "clip": 0.8},
    "LSTM-previous": PREVIOUS,
}
MOST_MARGIN = 0.7


def recurrence(case, **options):
    """Return the recurrence of a row of CELLS, or of a cell of no table."""
    if case in OTHER_CELLS:
        return recurrence_of_cell(case, **options)
    return recurrence_of(case.partition("-")[0], **{**CELLS[case], **options})


def evaluated(found):
    """Return its result in float64, rounded once."""
    return backend_named("numpy").run(found, Compute.FLOAT64)


def parts(result):
    """Return every output of a result that there is."""
    return [part for part in (result.Y, *result.last) if part is not None]


def margin(got, wanted, tolerance):
    """Return the largest error in units of the tolerance."""
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    error = np.where(got == wanted, 0.0, np.abs(got - wanted))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(error == 0, 0.0, error / tolerance), initial=0.0))


@pytest.mark.parametrize("case", CELLS)
def test_spread_of_rounding_noise_is_what_is_derived(case):
    """Float32's roundings as random noise, 1,500 times: the deviation found is 1/20 to 1 derived.

    The profile allows no systematic error here, so the tolerance is lambda deviations.
    """
    profile = replace(STANDARD, kr=0.0, ka=0.0)
    found = recurrence(case, T=6, N=2, I=3, H=4)
    derived = derive(found, profile).Y.astype(np.float64)[:, 0] / profile.deviations

    deviation = noisy_runs(found, runs=1500, roundoff=2.0**-24).std(axis=0)

    ratio = deviation[derived > 1e-12] / derived[derived > 1e-12]
    assert 0.05 < np.median(ratio) < 1
    assert ratio.max() < 1.1  # 1 where a single rounding is all there is, and noise of the trial


@pytest.mark.parametrize("gain", [0.9, 1.05, 1.1])
def test_errors_of_units_that_reinforce_one_another_are_derived(gain):
    """R multiplies one direction by the gain in each step, and the states are orthogonal to it.

    Units alone forget their errors at once, and together they do not: deviations of units taken as
    independent are 130 times too small at 1.1, and a plain kernel was 68 tolerances off.
    """
    signs = np.array([1, 1, -1, -1])
    found = recurrence("RNN-relu", T=66, N=2, I=1, H=4)
    found = replace(
        found,
        X=np.ones_like(found.X),
        W=np.array([[[[0.31], [0.92], [0.7], [0.53]]]], np.float32),
        R=(gain / 4 * np.outer(signs, signs)).astype(np.float32)[None, None],
        Wb=np.zeros_like(found.Wb),
        Rb=np.zeros_like(found.Rb),
        initial=tuple(map(np.zeros_like, found.initial)),
    )
    proved = backend_named("certified").run(found, Compute.FLOAT64).Y
    profile = replace(STANDARD, kr=0.0, ka=0.0)
    deviation = noisy_runs(found, runs=300, roundoff=2.0**-24).std(axis=0)
    tolerance = derive(found, STANDARD).Y

    assert (deviation <= derive(found, profile).Y[:, 0] / profile.deviations).all()
    assert max(margin(each.run(found).Y, proved, tolerance) for each in WIDE.values()) < MOST_MARGIN
    assert not conditioning_problem(proved, tolerance)


@every("case", CELLS)
@every("dtype", ["float32", "float16", "bfloat16"])
def test_tolerance_scales_with_the_roundoff(case, dtype):
    """Among well-conditioned cases nothing but the dtype's unit roundoff sets the scale."""
    coarse = derive(recurrence(case, dtype=dtype), STANDARD)
    values = recurrence(case, dtype=dtype)
    fine = derive(replace(values, dtype=DTYPES["float64"]), STANDARD)

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = coarse.Y.astype(np.float64) / fine.Y
    by_unit = ratio * 2.0 ** (DTYPES[dtype].precision - 53)
    assert 0.1 < np.nanmedian(by_unit) < 2


@pytest.mark.parametrize("case", CELLS)
def test_more_deviations_tolerate_more(case):
    """Strict is within standard, and both grow with lambda."""
    found = recurrence(case, D=2, lengths=[4, 0, 2])
    ladder = [replace(STANDARD, deviations=k) for k in (1.0, 3.0, 6.0, 12.0)]
    tolerances = [np.concatenate([p.ravel() for p in parts(derive(found, p_))]) for p_ in ladder]

    for narrow, wide in pairwise(tolerances):
        assert (narrow <= wide).all()
        assert (narrow < wide)[wide > 1e-40].all()
    strict = np.concatenate([p.ravel() for p in parts(derive(found, PROFILES["strict"]))])
    assert (strict <= tolerances[2]).all()


@every("name", [n for n in PROFILES if n not in ("strict", "relative", "exact")])
@every("case", CELLS)
def test_profiles_that_allow_more_tolerate_more(case, name):
    """Narrower accumulators, shortened factors and flushing only widen."""
    found = recurrence(case, dtype="float16" if name == "dtype-accumulator" else "float32")

    for standard, wider in zip(
        parts(derive(found, STANDARD)), parts(derive(found, PROFILES[name])), strict=True
    ):
        assert (standard <= wider).all()


@pytest.mark.parametrize("case", CELLS)
def test_exact_tolerates_nothing(case):
    """Zero everywhere, in the shapes of the result."""
    found = recurrence(case)
    tolerance = derive(found, PROFILES["exact"])

    for zero, golden in zip(parts(tolerance), parts(evaluated(found)), strict=True):
        assert (zero.shape, zero.dtype, zero.any()) == (golden.shape, np.float32, False)


@pytest.mark.parametrize("case", CELLS)
def test_padding_has_no_tolerance(case):
    """Zero past each length, in both directions; a sequence of length 0 has nothing but that."""
    lengths = np.array([2, 0, 4])
    tolerance = derive(recurrence(case, D=2, lengths=lengths), STANDARD)

    padding = np.arange(4)[:, None] >= lengths
    assert not tolerance.Y.swapaxes(1, 2)[padding].any()
    assert (tolerance.Y.swapaxes(1, 2)[~padding] > 0).mean() > 0.9
    assert not any(state[:, 1].any() for state in tolerance.last)


@pytest.mark.parametrize("case", CELLS)
def test_last_state_has_the_tolerance_of_the_last_step(case):
    """Y_h is Y where its sequence ends: at the length forward, at 0 in reverse."""
    lengths = [2, 3, 4]
    tolerance = derive(recurrence(case, D=2, lengths=lengths), STANDARD)

    for n, length in enumerate(lengths):
        assert np.array_equal(tolerance.last[0][0, n], tolerance.Y[length - 1, 0, n])
        assert np.array_equal(tolerance.last[0][1, n], tolerance.Y[0, 1, n])


@pytest.mark.parametrize("lengths", [None, [1, 4, 3]])
@pytest.mark.parametrize("case", CELLS)
def test_reverse_is_forward_over_the_flipped_sequence(case, lengths):
    """The valid part of X flipped gives the tolerances flipped, bit for bit."""
    forward = recurrence(case, lengths=lengths)
    X = forward.X.copy()
    for n, length in enumerate(lengths or [4] * 3):
        X[:length, n] = X[:length, n][::-1]
    there = derive(forward, STANDARD)

    back = derive(replace(forward, X=X, directions=(Direction.REVERSE,)), STANDARD)

    for n, length in enumerate(lengths or [4] * 3):
        assert np.array_equal(back.Y[:length, :, n], there.Y[:length, :, n][::-1])
    for one, other in zip(back.last, there.last, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("case", CELLS)
def test_directions_do_not_mix(case):
    """Two directions at once, alike or not, are the two alone; so are the sequences of a batch."""
    both = recurrence(case, D=2, lengths=[4, 2, 3])
    whole = derive(both, STANDARD)
    other = (both.activations[0], tuple(reversed(both.activations[0])))
    for found in (both, replace(both, activations=other)):
        whole = derive(found, STANDARD)
        for d in range(2):
            cut = slice(d, d + 1)
            alone = replace(
                found,
                **{
                    name: None if (v := getattr(found, name)) is None else v[cut]
                    for name in ("W", "R", "Wb", "Rb", "P", "directions", "activations")
                },
                initial=tuple(state[cut] for state in found.initial),
            )
            np.testing.assert_allclose(derive(alone, STANDARD).Y, whole.Y[:, cut], rtol=0.01)


def test_only_what_is_wanted():
    """Without Y its tolerance is None, and the last states' are the same."""
    found = recurrence("LSTM")
    whole, part = derive(found, STANDARD), derive(replace(found, wants_Y=False), STANDARD)

    assert part.Y is None
    assert all(np.array_equal(a, b) for a, b in zip(part.last, whole.last, strict=True))


@pytest.mark.parametrize("case", CELLS)
def test_a_known_result_saves_evaluating(case):
    """Given the golden result, also one rounded to the dtype, the tolerance is the same."""
    found = recurrence(case, D=2, lengths=[1, 4, 2])

    for a, b in zip(
        parts(derive(found, STANDARD)),
        parts(derive(found, STANDARD, evaluated(found))),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_many_at_once_are_each_alone():
    """Bit for bit: of all kinds, some with infinities, lengths, two directions or no Y."""
    options = [{}, {"D": 2}, {"seed": 1}, {"seed": 2, "lengths": [2, 4, 0]}, {"dtype": "float16"}]
    found = [recurrence(case, **option) for case in CELLS for option in options]
    spoilt = recurrence("LSTM", seed=3)
    spoilt.X[1, 0, 0] = np.inf
    mixed = recurrence("GRU", D=2)
    mixed = replace(mixed, activations=(mixed.activations[0], mixed.activations[1][::-1]))
    found += [spoilt, mixed, replace(recurrence("LSTM", seed=4), wants_Y=False)]
    found += [recurrence("RNN", T=0), recurrence("GRU", N=0)]

    together = derive_all([(one, None) for one in found], STANDARD)

    for one, tolerance in zip(found, together, strict=True):
        alone = derive(one, STANDARD)
        assert (tolerance.Y is None) == (alone.Y is None)
        for a, b in zip(parts(tolerance), parts(alone), strict=True):
            assert np.array_equal(a, b)


@every("sizes", [{"T": 0}, {"N": 0}, {"I": 0}, {"H": 1, "T": 1, "N": 1}])
@every("case", CELLS)
def test_sizes_of_zero_and_one(case, sizes):
    """Empty and smallest sizes have their shapes."""
    found = recurrence(case, **sizes)

    for tolerance, golden in zip(
        parts(derive(found, STANDARD)), parts(evaluated(found)), strict=True
    ):
        assert tolerance.shape == golden.shape
        assert np.isfinite(tolerance).all()


def test_kept_initial_states_are_exact():
    """A sequence of length 0 that keeps its initial state has tolerance 0."""
    found = recurrence("GRU", lengths=[0, 4, 4], readings={"zero-length": "initial"})

    assert not derive(found, STANDARD).last[0][0, 0].any()


@pytest.mark.parametrize("case", CELLS)
def test_nan_in_padding_does_not_leak(case):
    """What is never read changes nothing."""
    found = recurrence(case, D=2, lengths=[1, 4, 2])
    X = found.X.copy()
    X[1:, 0] = np.nan

    for a, b in zip(
        parts(derive(found, STANDARD)), parts(derive(replace(found, X=X), STANDARD)), strict=True
    ):
        assert np.array_equal(a, b)


@every("poison", [np.nan, np.inf, -np.inf])
@every("case", [*CELLS, *OTHER_CELLS])
def test_what_is_not_finite_must_match_exactly(case, poison):
    """One infinite or NaN input: 0 for what is not finite, and finite for all the rest."""
    found = recurrence(case, D=2)
    X = found.X.copy()
    X[1, 0, 0] = poison
    spoilt = replace(found, X=X)

    for tolerance, golden, clean in zip(
        parts(derive(spoilt, STANDARD)),
        parts(evaluated(spoilt)),
        parts(derive(found, STANDARD)),
        strict=True,
    ):
        assert not tolerance[~np.isfinite(golden)].any()
        assert np.isfinite(tolerance).all()
        assert np.array_equal(tolerance[..., 1:, :], clean[..., 1:, :])


@pytest.mark.parametrize("case", ["RNN", "GRU", "GRU-after", "LSTM", "LSTM-peepholes"])
def test_the_largest_numbers_have_tolerances(case):
    """Inputs of 3e38 saturate every gate; nothing overflows on the way."""
    found = recurrence(case)
    huge = np.where(found.X > 0, 3e38, -3e38).astype(np.float32)

    for tolerance in parts(derive(replace(found, X=huge), STANDARD)):
        assert np.isfinite(tolerance).all()
        assert (tolerance < 1e-5).all()


def test_chaos_is_refused():
    """Errors that double with every step are not given a tolerance that means something."""
    found = recurrence("RNN", T=64, H=32)
    golden = evaluated(found)

    assert conditioning_problem(golden.Y, derive(found, STANDARD).Y)


def test_hidden_clipping_follows_its_reading():
    """With clip-scope gates h(C) is not clipped, and its slope counts."""
    gates = recurrence("LSTM-clip", readings={"clip-scope": "gates"}, scale=2.0)
    activations = recurrence("LSTM-clip", readings={"clip-scope": "activations"}, scale=2.0)

    assert not np.array_equal(derive(gates, STANDARD).Y, derive(activations, STANDARD).Y)


def test_outputs_near_zero_are_not_tighter_than_the_dtype():
    """Half of float16's smallest subnormal is tolerated where u*|y| would be less than that."""
    found = recurrence("RNN-relu", dtype="float16", T=1)
    tiny = replace(found, X=found.X * 0, Wb=None, Rb=None, initial=(None,))
    X = np.full_like(tiny.X, 2.0**-20)
    tolerance = derive(replace(tiny, X=X), STANDARD)

    assert (tolerance.Y >= 2.0**-25).all()
    assert (tolerance.Y < 2.0**-18).all()


def within_tolerance(implementations, profile, dtype, count, **drawn):
    """Judge implementations on generated nodes; return the worst margins and what was judged."""
    with_gates = {name: row for name, row in OPERATORS.items() if row.cell.projects}
    operators = tuple(name for name, row in with_gates.items() if dtype in row.dtypes)
    worst, judged = Counter(), Counter()

    @examples(count)
    @given(nodes(**{"dtypes": (dtype,), "operators": operators, **drawn}))
    def judge(node):
        found = bound(node)
        golden = evaluated(found)
        if not all(np.isfinite(part.astype(np.float64)).all() for part in parts(golden)):
            return
        tolerance = derive(found, PROFILES[profile], golden)
        fit = [
            not conditioning_problem(*pair)
            for pair in zip(parts(golden), parts(tolerance), strict=True)
        ]
        softens = any(each.name == "Softplus" for row in found.activations for each in row)
        for name, implementation in implementations.items():
            if (dtype, name, softens) == ("float64", "backwards", True):
                continue  # its softplus is float32's
            for ok, *triple in zip(
                fit, parts(implementation.run(found)), parts(golden), parts(tolerance), strict=True
            ):
                judged[ok] += triple[1].size
                worst[name] = max(worst[name], margin(*triple) if ok else 0.0)

    judge()
    return worst, judged


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_sound_implementations_stay_within(dtype):
    """Four emulated ones, on any node that is fit to judge by: at most 0.7 of the tolerance."""
    worst, judged = within_tolerance(WIDE, "standard", dtype, 50)

    assert judged[True] > part_of(800)
    assert judged[True] > judged[False]
    assert max(worst.values()) <= MOST_MARGIN


class Native(NamedTuple):
    """A backend of the package in the tensors' own arithmetic."""

    name: str

    def run(self, recurrence):
        """Evaluate a recurrence."""
        return backend_named(self.name).run(recurrence, Compute.NATIVE)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sound_implementations_of_the_previous_cell_state_stay_within(dtype):
    """The emulated ones and our own, where the output gate's peephole sees Ct-1."""
    limits = Limits(readings=PREVIOUS["readings"])
    ways = {**WIDE, "numpy": Native("numpy"), "numba": Native("numba")}
    worst, judged = within_tolerance(
        ways, "standard", dtype, 60, operators=("LSTM-22",), limits=limits
    )

    assert judged[True] > max(500, judged[False])
    assert max(worst.values()) <= MOST_MARGIN


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("cell", OTHER_CELLS)
def test_a_cell_of_no_table_has_tolerances(cell, dtype):
    """Sound implementations reach a tenth to a third of them, as with the cells that there are."""
    reached = []
    for seed in range(3):
        found = recurrence_of_cell(cell, dtype=dtype, seed=seed)
        golden, tolerance = evaluate(found, NumPyEngine(FLOAT64)), derive(found, STANDARD)
        for implementation in WIDE.values():
            got = implementation.run(found)
            reached += map(margin, parts(got), parts(golden), parts(tolerance))

    assert 0.1 < max(reached) < 1 / 3


@pytest.mark.parametrize("cell", OTHER_CELLS)
def test_spread_of_rounding_noise_is_what_is_derived_for_a_cell_of_no_table(cell):
    """The same trial as for the cells that there are."""
    profile = replace(STANDARD, kr=0.0, ka=0.0)
    found = recurrence_of_cell(cell, T=6, N=2, I=3, H=4, D=1)
    derived = derive(found, profile).Y.astype(np.float64)[:, 0] / profile.deviations

    ratio = noisy_runs(found, runs=1500, roundoff=2.0**-24).std(axis=0) / derived

    assert 0.05 < np.median(ratio) < 1
    assert ratio.max() < 1.1


@pytest.mark.parametrize(
    ("profile", "dtype"),
    [("dtype-accumulator", "float16"), ("dtype-accumulator", "bfloat16"), ("tf32", "float32")],
)
def test_narrow_implementations_stay_within_their_profile(profile, dtype):
    """Sums in the dtype, and products of shortened factors, judged by the profile that says so."""
    worst, judged = within_tolerance({profile: NARROW[profile]}, profile, dtype, 100)

    assert judged[True] > part_of(500)
    assert worst[profile] <= MOST_MARGIN


@pytest.mark.parametrize(
    ("profile", "dtype"), [("dtype-accumulator", "float16"), ("tf32", "float32")]
)
def test_narrow_implementations_are_told_from_wide_ones(profile, dtype):
    """Long sums in float16, or of tf32 products, are not what the standard profile means."""
    found = recurrence("RNN", T=6, I=300, H=40, dtype=dtype, scale=0.06)
    golden = evaluated(found)
    got = NARROW[profile].run(found)

    assert margin(got.Y, golden.Y, derive(found, PROFILES[profile]).Y) <= MOST_MARGIN
    assert margin(got.Y, golden.Y, derive(found, STANDARD).Y) > MOST_MARGIN


def saturates(row, node, golden):
    """Tell where a gate may lie beyond 17: there the sigmoid of ONNX Runtime's GRU and LSTM is off.

    By up to 4 * 2^-24: it returns -2.4e-7 below -25, and more than 1 above 20. The Softplus of its
    RNN overflows above 88.
    """
    largest = max(np.abs(part).max(initial=0) for part in (node.inputs["X"], *parts(golden)))
    return not largest < (80 if row.type == "RNN" else 8)


@pytest.mark.parametrize("operator", ["RNN-14", "GRU-14", "LSTM-14"])
def test_onnxruntime_stays_within(operator):
    """In float32, where it has the case and is right, by specs/semantics.md."""
    worst, judged = Counter(), Counter()
    row = OPERATORS[operator]

    @examples(80)
    @given(nodes(operators=(operator,), dtypes=("float32",), limits=onnxruntime_limits(row)))
    def judge(node):
        found = bound(node)
        golden = evaluated(found)
        if saturates(row, node, golden):
            return
        names = [output.name for output in row.outputs]
        asked = Node(row, node.attributes, names)
        tolerance = asked.outputs_of(derive(found, STANDARD, golden))
        wanted = asked.outputs_of(golden)
        for name, values in judged_by_onnxruntime(node, tuple(names)).items():
            fit = not conditioning_problem(wanted[name], tolerance[name])
            judged[fit] += values.size
            reached = margin(values, wanted[name], tolerance[name]) if fit else 0.0
            worst[name] = max(worst[name], reached)

    judge()
    assert judged[True] > part_of(500)
    assert max(worst.values()) <= MOST_MARGIN


@pytest.mark.parametrize("scale", [1e-45, 1e-40, 1e-30, 1e-8, 1.0, 3.7e20, 1e38])
def test_rounding_up_is_close_and_on_the_grid(scale):
    """Never less than the value but for noise, at most 1/128 more, and 8 significant bits."""
    values = scale * np.random.default_rng(0).uniform(0.5, 2, 1000)

    found = round_up(values)

    assert found.dtype == np.float32
    assert (found.astype(np.float64) >= values * (1 - 1e-12)).all()
    assert (found.astype(np.float64) <= values * (1 + 2.0**-7) + 2.0**-149).all()
    significand = np.frexp(found.astype(np.float64))[0] * 256
    assert (significand == np.rint(significand)).all()


def test_rounding_up_does_not_see_noise():
    """Numbers on the grid, and all others, stay where they are when their last bits change."""
    grid = np.ldexp(np.arange(128.0, 256.0), -30)
    others = np.random.default_rng(0).uniform(1e-8, 1e-7, 10000)

    for factor in (1 - 2.0**-50, 1 + 2.0**-50):
        assert np.array_equal(round_up(grid), grid)
        assert np.array_equal(round_up(grid * factor), grid)
        assert np.array_equal(round_up(others * factor), round_up(others))


def test_rounding_up_keeps_what_is_no_number():
    """Zero is zero, the least positive number is not, NaN and infinity stay."""
    found = round_up(np.array([0.0, 1e-300, 1e-46, np.inf, np.nan, 1e300]))

    assert found[:3].tolist() == [0.0, 2.0**-149, 2.0**-149]
    assert np.isinf(found[[3, 5]]).all()
    assert np.isnan(found[4])


@pytest.mark.parametrize(
    ("kernel", "least", "most"),
    [
        (BIASED["functions 1 ulp too large"], 1.4, 1.5),
        (BIASED["functions 1 ulp too small"], 1.3, 1.5),
        (BIASED["functions truncated"], 0.7, 0.8),
        (Implementation(arithmetic=off_by(1)), 0.2, 0.4),
    ],
)
def test_errors_of_functions_are_independent_or_faithful(kernel, least, most):
    """Those that are always one unit off add up over 130 steps: the page has the figures."""
    vector = next(v for v in open_pack(TILES).vectors() if v.id == "gru_22_memory")
    found = replace(vector.recurrence, wants_Y=True)

    got, golden = kernel.run(found).Y, evaluated(found).Y
    assert least < margin(got, golden, derive(found, STANDARD).Y) < most
    assert margin(got, golden, derive(found, PROFILES["four-ulp"]).Y) < 1
