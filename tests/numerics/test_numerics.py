"""Element types, rounding and distances, against exact arithmetic on integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.tables import every

import rnncli
from rnncli.errors import InvalidRequest, RnncliWarning
from rnncli.numerics import (
    DTYPES,
    DType,
    dtype_named,
    dtype_numbered,
    dtype_of,
    round_to,
    ulp_distance,
    warn_of_nan,
)

# precision, smallest exponent of a bit, largest exponent: IEEE 754 and bfloat16's definition.
FORMATS = {"float16": (11, -24, 15), "bfloat16": (8, -133, 127), "float32": (24, -149, 127)}
FLOATS = [row for row in DTYPES.values() if row.is_float]


def nearest(value: float, precision: int, smallest: int, largest: int) -> float:
    """Round a float64 to nearest even, exactly."""
    if not math.isfinite(value) or value == 0:
        return value
    exact = Fraction(value)
    quantum = Fraction(2) ** max(math.frexp(value)[1] - precision, smallest)
    rounded = round(exact / quantum) * quantum  # of a Fraction: half to even
    if abs(rounded) >= Fraction(2) ** (largest + 1):
        return math.copysign(math.inf, value)
    return math.copysign(float(rounded), value)


def rounded(values: list[float], dtype: str) -> list[float]:
    """What the package makes of them, widened again."""
    return round_to(np.array(values), DTYPES[dtype]).astype(np.float64).tolist()


def same(a: float, b: float) -> bool:
    """Equal, sign of zero included; NaN is NaN."""
    return (math.isnan(a) and math.isnan(b)) or (
        a == b and math.copysign(1, a) == math.copysign(1, b)
    )


def hard_values(dtype: str) -> list[float]:
    """Neighbourhoods of ties: normal, subnormal, at the carry, at overflow, at underflow."""
    precision, smallest, largest = FORMATS[dtype]
    exponents = (smallest, smallest + 1, smallest + precision, -1, 0, 7, largest - precision + 1)
    centres = [
        (n + half) * 2.0**e
        for e in exponents
        for n in (0, 1, 2, 3, 2 ** (precision - 1), 2**precision - 2, 2**precision - 1)
        for half in (0.0, 0.25, 0.5, 0.75)
    ]
    around = [f(c) for c in centres for f in (float, _up, _down)]
    return [sign * value for value in around for sign in (1, -1)]


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def _down(value: float) -> float:
    return math.nextafter(value, -math.inf)


@pytest.mark.parametrize("dtype", FORMATS)
def test_rounding_is_to_nearest_even_at_every_edge(dtype):
    """Ties, their neighbours, subnormals, the carry to the next power of two, overflow."""
    values = [*hard_values(dtype), 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.8e308]
    wanted = [nearest(value, *FORMATS[dtype]) for value in values]

    found = rounded(values, dtype)

    assert [v for v, f, w in zip(values, found, wanted, strict=True) if not same(f, w)] == []


@pytest.mark.parametrize("dtype", FORMATS)
def test_rounding_any_float64_is_exact_arithmetic_rounded(dtype):
    """Random bit patterns of float64, and random values near the dtype's range."""
    _, smallest, largest = FORMATS[dtype]

    @examples(300)
    @given(
        st.lists(
            st.floats()
            | st.builds(math.ldexp, st.floats(-2, 2), st.integers(smallest - 3, largest + 2)),
            min_size=1,
            max_size=50,
        )
    )
    def agrees(values):
        wanted = [nearest(value, *FORMATS[dtype]) for value in values]
        assert all(map(same, rounded(values, dtype), wanted))

    agrees()


def test_bfloat16_is_not_rounded_twice():
    """Just above a tie: through float32 it would become the tie, and then go to even."""
    value = 1 + 2.0**-8 + 2.0**-40

    direct = round_to(np.array([value]), DTYPES["bfloat16"]).astype(np.float64)

    assert direct.tolist() == [1 + 2.0**-7]
    assert np.array([value]).astype(ml_dtypes.bfloat16).astype(np.float64).tolist() == [1.0]


# float8e8m0 has no significand to round.
NARROW = [row for row in FLOATS if row.numpy.itemsize <= 2 and row.name != "float8e8m0"]


def finite_values(row: DType) -> list[tuple[float, int]]:
    """All finite values of at most two bytes that are not negative, ascending, with their bits."""
    size = row.numpy.itemsize
    bits = np.arange(1 << (8 * size), dtype=f"u{size}")
    values = bits.view(row.numpy).astype(np.float64).tolist()
    found = {v + 0.0: b for v, b in zip(values, bits.tolist(), strict=True) if 0 <= v < math.inf}
    return sorted(found.items())


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_every_gap_is_rounded_to_its_nearer_end(row):
    """Between any two neighbours: the middle goes to the even one, a hair off it to the nearer."""
    with np.errstate(invalid="ignore"):
        values = finite_values(row)
    ends = list(pairwise(values))
    middles = [(low + high) / 2 for (low, _), (high, _) in ends]
    even = [low if low_bits % 2 == 0 else high for (low, low_bits), (high, _) in ends]
    wanted = {
        float: even,
        _down: [low for (low, _), _ in ends],
        _up: [high for _, (high, _) in ends],
    }

    assert len(ends) >= 7
    for nudge, side in wanted.items():
        assert rounded([nudge(middle) for middle in middles], row.name) == side
        assert rounded([-nudge(middle) for middle in middles], row.name) == [-v for v in side]


@pytest.mark.parametrize("dtype", FORMATS)
def test_float32_is_rounded_as_its_float64_is(dtype):
    """Any bit pattern of float32, infinities, NaN and subnormals among them."""
    bits = np.random.default_rng(0).integers(0, 2**32, 50_000, dtype=np.uint32)
    values = bits.view(np.float32)
    with np.errstate(invalid="ignore"):
        wanted = [nearest(value, *FORMATS[dtype]) for value in values.astype(float).tolist()]

    found = round_to(values, DTYPES[dtype])

    assert found.dtype == DTYPES[dtype].numpy
    with np.errstate(invalid="ignore"):
        assert all(map(same, found.astype(np.float64).tolist(), wanted))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("source", [np.float64, np.float32])
def test_shape_and_dtype_are_kept(dtype, source):
    """Scalars, empty and strided arrays of either source."""
    for values in (np.array(1.5), np.zeros((0, 3)), np.ones((4, 6))[::2, ::3]):
        found = round_to(values.astype(source), DTYPES[dtype])
        assert found.shape == values.shape
        assert found.dtype == DTYPES[dtype].numpy
        assert np.array_equal(found.astype(np.float64), values)


def ordinal(bits: int, width: int) -> int:
    """Number a floating-point value by its bits, both zeros 0."""
    sign = bits >> (width - 1)
    magnitude = bits & ((1 << (width - 1)) - 1)
    return -magnitude if sign else magnitude


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_ulp_distance_counts_values_between(dtype):
    """As Python integers count them, for any pair; up to the rounding of the count to float64."""
    width = 8 * DTYPES[dtype].numpy.itemsize
    pattern = st.integers(0, 2**width - 1)

    @examples(300)
    @given(st.lists(st.tuples(pattern, pattern), min_size=1, max_size=30))
    def agrees(pairs):
        a, b = (
            np.array(side, f"u{width // 8}").view(DTYPES[dtype].numpy)
            for side in zip(*pairs, strict=True)
        )
        nan = [
            (bool(np.isnan(np.float64(x))), bool(np.isnan(np.float64(y))))
            for x, y in zip(a, b, strict=True)
        ]
        wanted = [
            (0.0 if all(n) else math.inf)
            if any(n)
            else float(abs(ordinal(x, width) - ordinal(y, width)))
            for (x, y), n in zip(pairs, nan, strict=True)
        ]
        assert ulp_distance(a, b).tolist() == wanted

    with np.errstate(invalid="ignore"):
        agrees()


@pytest.mark.parametrize("row", [row for row in FLOATS if row.numpy.itemsize == 1], ids=str)
def test_ulp_distance_of_all_pairs_of_bytes(row):
    """From a to b: how many distinct values lie in (a, b]; NaN is infinitely far from any."""
    with np.errstate(invalid="ignore"):
        a, b = np.meshgrid(*2 * [np.arange(256, dtype=np.uint8).view(row.numpy)])
        wide = a[0].astype(np.float64).tolist()
        distances = ulp_distance(a, b).tolist()
    place = {value: k for k, value in enumerate(sorted({v for v in wide if not math.isnan(v)}))}

    for x, line in zip(wide, distances, strict=True):
        if math.isnan(x):
            assert line == [0.0 if math.isnan(y) else math.inf for y in wide]
        else:
            assert line == [math.inf if math.isnan(y) else abs(place[x] - place[y]) for y in wide]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ulp_distance_sees_through_byte_order(dtype):
    """Big-endian values are as far apart as the same values in the machine's order."""
    low, high = np.array([-1.0, 0.0, 1.5], dtype), np.array([1.0, np.inf, 1.75], dtype)
    foreign = low.dtype.newbyteorder()

    distances = ulp_distance(low.astype(foreign), high.astype(foreign))

    assert distances.tolist() == ulp_distance(low, high).tolist()


@pytest.mark.parametrize(("a", "b", "distance"), [(0.0, -0.0, 0), (1.0, 1 + 2**-52, 1)])
def test_ulp_distance_of_scalars(a, b, distance):
    """Arrays without dimensions give one without; and an empty one gives an empty one."""
    found = ulp_distance(np.array(a), np.array(b))

    assert found.shape == ()
    assert found == distance
    assert ulp_distance(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)


def test_ulp_distance_spans_the_whole_of_float64():
    """From -inf to inf: past 2**63, where the difference of two int64 would wrap."""
    assert ulp_distance(np.array(-np.inf), np.array(np.inf)) == float(2 * (0x7FF << 52))


# Where we spell a type as NumPy does.
SPELLED = {"FLOAT": "float32", "DOUBLE": "float64"}


@every("row", DTYPES.values(), ids=str)
def test_rows_are_those_of_onnx(row):
    """Number, name and NumPy type agree with ONNX's own; precision with the type's eps."""
    name = onnx.TensorProto.DataType.Name(row.onnx)
    assert SPELLED.get(name, name.lower()) == row.name
    assert onnx.helper.tensor_dtype_to_np_dtype(row.onnx) == row.numpy
    assert dtype_numbered(row.onnx) is row
    assert dtype_named(row.name) is row
    if row.is_float and row.name != "float8e8m0":
        assert float(ml_dtypes.finfo(row.numpy).eps) == 2.0 ** (1 - row.precision)


def test_every_element_type_of_onnx_has_a_row():
    """All but UNDEFINED."""
    assert {row.onnx for row in DTYPES.values()} == set(onnx.TensorProto.DataType.values()) - {0}


@pytest.mark.parametrize("row", FLOATS, ids=str)
def test_dtype_of_sees_through_byte_order(row):
    """Big-endian tensors have the same dtype; text of any width is `string`."""
    assert dtype_of(np.zeros(2, row.numpy)) is row
    assert dtype_of(np.zeros(2, row.numpy.newbyteorder(">"))) is row
    assert dtype_of(np.array(["abc"])).name == "string"
    assert dtype_of(np.array([b"abc"])).name == "string"


def test_types_that_no_tensor_has_are_refused():
    """Dates and records are not tensors; a misspelt name gets a suggestion."""
    with pytest.raises(InvalidRequest, match="datetime64"):
        dtype_of(np.zeros(1, "M8[s]"))
    with pytest.raises(InvalidRequest, match="did you mean 'bfloat16'"):
        dtype_named("bfloat")
    with pytest.raises(InvalidRequest, match="number 99"):
        dtype_numbered(99)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_a_nan_that_arithmetic_made_is_warned_of(dtype):
    """Where an input is not finite, and where outputs are infinite, it is not."""
    fed, made = np.ones(3, dtype), np.array([1, np.nan], dtype)
    with pytest.warns(RnncliWarning, match="^Y, Y_h have NaN, although no input has one or"):
        warn_of_nan([fed, np.arange(3)], {"Y": made, "Y_h": made, "Y_c": fed, "n": np.arange(3)})

    warn_of_nan([fed, np.array([np.inf], dtype)], {"Y": made})
    warn_of_nan([made], {"Y": made})
    warn_of_nan([fed], {"Y": np.array([np.inf], dtype)})
    warn_of_nan([np.array(["text"])], {"Y": np.array(["text"]), "Z": np.zeros(0, dtype)})


def test_evaluation_warns_of_what_overflowed_on_the_way():
    """The answer is infinite, and `certified` has it."""
    X, W, R = np.full((12, 1, 1), 2.0), np.ones((1, 3, 1)), np.ones((1, 3, 1))
    node = {"activations": ["Affine", "Relu"], "activation_alpha": [1], "activation_beta": [0]}
    with pytest.warns(RnncliWarning, match="Y, Y_h have NaN"):
        found = rnncli.evaluate("GRU-14", {"X": X, "W": W, "R": R}, **node)

    assert np.isnan(found["Y_h"]).all()
    right = rnncli.evaluate("GRU-14", {"X": X, "W": W, "R": R}, backend="certified", **node)
    assert np.isinf(right["Y_h"]).all()
