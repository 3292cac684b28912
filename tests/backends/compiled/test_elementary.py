"""The vector functions, over all magnitudes, against float64 and mpmath."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from rnncli.backends.compiled import elementary, vector_lanes

SIZES = {"float32": 4, "float64": 8}
# By function: the same in mpmath.
EXACT = {
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "expm1": mpmath.expm1,
    "exp": mpmath.exp,
}
# The largest arguments that are asked for.
MOST = {"expm1": {"float32": 0, "float64": 0}, "exp": {"float32": 88.72, "float64": 709.78}}


@cache
def elementwise(name, dtype, width):
    """Compile a function of elementary for arrays whose size is a multiple of the width."""
    kind = vector_lanes.vector_type(dtype, width)
    function = getattr(elementary, name)

    @intrinsic
    def apply(_, source, target):
        def emit(context, builder, _, args):
            vector_lanes.store(function(vector_lanes.load(builder, args[0], kind)), args[1])
            return context.get_dummy_value()

        return types.void(source, target), emit

    @njit
    def call(x, y):
        step = width * x.itemsize
        for k in range(x.size // width):
            apply(types.intp(x.ctypes.data) + k * step, types.intp(y.ctypes.data) + k * step)

    return call


def values(name, x, width=4):
    """Apply a function to an array of any size."""
    padded = np.concatenate([x, np.zeros(-len(x) % width, x.dtype)])
    found = np.empty_like(padded)
    elementwise(name, x.dtype.name, width)(padded, found)
    return found[: len(x)]


def strata(dtype, count):
    """Numbers of every exponent and both signs, with all bits of the significand in use."""
    bits = np.random.default_rng(5).integers(0, 1 << (8 * SIZES[dtype] - 1), count, np.uint64)
    integers = bits.astype(f"u{SIZES[dtype]}")
    x = integers.view(dtype)
    x = x[np.isfinite(x)]
    near = np.random.default_rng(6).uniform(-25, 25, count).astype(dtype)
    tail = np.random.default_rng(7).uniform(-110, -80, count).astype(dtype)
    edges = np.array([0.0, 1.0, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
    return np.concatenate([x, -x, near, tail, edges, -edges])


def ulps(found, exact, dtype):
    """Distance in units in the last place of the exact value, at least the smallest subnormal."""
    form = np.finfo(dtype)
    _, exponent = np.frexp(exact)
    unit = np.ldexp(1.0, np.maximum(exponent - form.nmant - 1, form.minexp - form.nmant))
    return np.abs(found.astype(np.float64) - exact) / unit


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_float32_is_within_two_ulp_of_float64(name):
    """Over every exponent, the subnormal results of sigmoid's tail included."""
    x = strata("float32", 1 << 18)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        exact = np.tanh(wide) if name == "tanh" else sigmoid64(wide)

    assert ulps(values(name, x, 16), exact, "float32").max() <= 2


def sigmoid64(x):
    """In float64, whose rounding is nothing beside a unit of float32."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("name", EXACT)
def test_samples_are_within_two_ulp_of_mpmath(name, dtype):
    """An independent evaluation, with fifty digits, of arguments up to MOST."""
    x = strata(dtype, 300)
    if dtype == "float64":
        x = np.concatenate([x, np.random.default_rng(8).uniform(-750, -700, 100)])
    x = np.minimum(x, np.array(MOST[name][dtype], dtype)) if name in MOST else x

    found = values(name, x)

    with mpmath.workdps(50):
        for number, result in zip(x.tolist(), found.tolist(), strict=True):
            exact = EXACT[name](mpmath.mpf(number))
            assert mpmath.fabs(exact - result) <= 2 * unit_of(exact, dtype), (number, result)


def unit_of(exact, dtype):
    """The last place of a number of a format."""
    form = np.finfo(dtype)
    if not exact:
        return mpmath.ldexp(1, int(form.minexp) - form.nmant)
    _, exponent = mpmath.frexp(exact)
    return mpmath.ldexp(1, max(exponent - form.nmant - 1, int(form.minexp) - form.nmant))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize(
    ("name", "of_minus_infinity", "of_infinity"),
    [("sigmoid", 0, 1), ("tanh", -1, 1), ("softplus", 0, np.inf), ("exp", 0, np.inf)],
)
def test_infinity_and_nan(name, dtype, of_minus_infinity, of_infinity):
    """Limits at both ends; NaN stays NaN; a zero keeps its sign where it is the result."""
    x = np.array([-np.inf, np.inf, np.nan, -0.0], dtype)

    low, high, nan, zero = values(name, x)

    assert (low, high) == (of_minus_infinity, of_infinity)
    assert np.isnan(nan)
    assert np.signbit(zero) == (name == "tanh")


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_every_width_gives_the_same_bits(dtype, width):
    """A width is how many at once, nothing else."""
    x = strata(dtype, 500)

    for name in EXACT:
        numbers = np.minimum(x, 0) if name == "expm1" else x
        assert values(name, numbers, width).tobytes() == values(name, numbers, 4).tobytes()


@pytest.mark.parametrize("dtype", SIZES)
def test_processors_without_an_instruction_to_scale_get_the_same_bits(dtype, monkeypatch):
    """In the subnormal tails and up to infinity, too."""
    x = strata(dtype, 500)
    own = [values(name, x) for name in ("sigmoid", "exp")]
    monkeypatch.setattr(elementary, "has_scaling", lambda _: False)
    elementwise.cache_clear()

    portable = [values(name, x) for name in ("sigmoid", "exp")]

    elementwise.cache_clear()
    assert [y.tobytes() for y in portable] == [y.tobytes() for y in own]
