"""Element types, rounding and distances, against exact arithmetic on integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from rnncli.errors import InvalidRequest
from rnncli.numerics import (
    DTYPES,
    dtype_named,
    dtype_numbered,
    dtype_of,
    round_to,
    ulp_distance,
)

# precision, smallest exponent of a bit, largest exponent: IEEE 754 and bfloat16's definition.
FORMATS = {
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
    "float32": (24, -149, 127),
}
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


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_rows_are_those_of_onnx(row):
    """Number, name and NumPy type agree with ONNX's own; precision with the type's eps."""
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
