"""Numerics over NumPy arrays: element types, functions, rounding, distances, and what can judge."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, RnncliWarning, did_you_mean, listed
from rnncli.talk.words import plural, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True, slots=True)
class DType:
    """An element type."""

    name: str  # its name in YAML, on the command line and in messages
    numpy: np.dtype[Any]  # the NumPy (or ml_dtypes) type that holds it in memory
    onnx: int  # its number in ``onnx.TensorProto.DataType``
    # significand bits with the hidden one; 0 for types that are not floating point
    precision: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether its values are floating-point numbers."""
        return self.precision > 0

    @property
    def native_to_numpy(self) -> bool:
        """Whether NumPy itself, without ml_dtypes, can store it in a file."""
        return self.numpy.kind != "V" and self.numpy.type.__module__ == "numpy"

    def text(self, value: object) -> str:
        """Return a number with enough digits to distinguish it from its neighbours."""
        if not self.precision or not isinstance(value, float):
            return str(value)
        return f"{value:.{math.ceil(1 + self.precision * math.log10(2))}g}"


_NATIVE = (
    DType("float32", np.dtype(np.float32), 1, 24),
    DType("uint8", np.dtype(np.uint8), 2),
    DType("int8", np.dtype(np.int8), 3),
    DType("uint16", np.dtype(np.uint16), 4),
    DType("int16", np.dtype(np.int16), 5),
    DType("int32", np.dtype(np.int32), 6),
    DType("int64", np.dtype(np.int64), 7),
    DType("string", np.dtype(object), 8),
    DType("bool", np.dtype(np.bool_), 9),
    DType("float16", np.dtype(np.float16), 10, 11),
    DType("float64", np.dtype(np.float64), 11, 53),
    DType("uint32", np.dtype(np.uint32), 12),
    DType("uint64", np.dtype(np.uint64), 13),
    DType("complex64", np.dtype(np.complex64), 14),
    DType("complex128", np.dtype(np.complex128), 15),
)
_BY_NAME = {row.name: row for row in _NATIVE}
_BY_NUMPY = {row.numpy: row for row in _NATIVE}
_BY_ONNX = {row.onnx: row for row in _NATIVE}

INTEGERS = tuple(row.name for row in _NATIVE if row.numpy.kind in "iu")


@cache
def _add_others() -> None:
    """Add the types of ml_dtypes, whose import takes 3 % of the time of running a small model."""
    import ml_dtypes

    for row in (
        DType("bfloat16", np.dtype(ml_dtypes.bfloat16), 16, 8),
        DType("float8e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), 17, 4),
        DType("float8e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz), 18, 4),
        DType("float8e5m2", np.dtype(ml_dtypes.float8_e5m2), 19, 3),
        DType("float8e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz), 20, 3),
        DType("uint4", np.dtype(ml_dtypes.uint4), 21),
        DType("int4", np.dtype(ml_dtypes.int4), 22),
        DType("float4e2m1", np.dtype(ml_dtypes.float4_e2m1fn), 23, 2),
        DType("float8e8m0", np.dtype(ml_dtypes.float8_e8m0fnu), 24, 1),
        DType("uint2", np.dtype(ml_dtypes.uint2), 25),
        DType("int2", np.dtype(ml_dtypes.int2), 26),
        DType("float6e2m3", np.dtype(ml_dtypes.float6_e2m3fn), 27, 4),
        DType("float6e3m2", np.dtype(ml_dtypes.float6_e3m2fn), 28, 3),
    ):
        _BY_NAME[row.name] = _BY_NUMPY[row.numpy] = _BY_ONNX[row.onnx] = row


def _found(table: Mapping[Any, DType], key: Any) -> DType | None:
    """Look up NumPy's own types first, then all types."""
    if key not in table:
        _add_others()
    return table.get(key)


class _DTypes(Mapping[str, DType]):
    """The rows by name, in the order of ONNX's numbers."""

    def __getitem__(self, name: str) -> DType:
        row = _found(_BY_NAME, name)
        if row is None:
            raise KeyError(name)
        return row

    def __iter__(self) -> Iterator[str]:
        _add_others()
        return iter(_BY_NAME)

    def __len__(self) -> int:
        _add_others()
        return len(_BY_NAME)


DTYPES: Mapping[str, DType] = _DTypes()


def dtype_named(name: str) -> DType:
    """Return the row of a name.

    Raises:
        InvalidRequest: unknown.
    """
    try:
        return DTYPES[name]
    except KeyError:
        raise InvalidRequest(f"unknown dtype '{name}'{did_you_mean(name, DTYPES)}") from None


def dtype_of(values: Array | np.dtype[Any]) -> DType:
    """Return the row of an array's element type in any byte order; text of any width is `string`.

    Raises:
        InvalidRequest: tensors cannot have that type.
    """
    dtype = values if isinstance(values, np.dtype) else values.dtype
    if dtype.kind in "UST":
        return DTYPES["string"]
    row = _BY_NUMPY.get(dtype) or _found(_BY_NUMPY, dtype.newbyteorder("="))
    if row is None:
        raise InvalidRequest(f"no tensor can hold elements of type {dtype}")
    return row


def dtype_numbered(onnx_number: int) -> DType:
    """Return the row for a number of ``onnx.TensorProto.DataType``.

    Raises:
        InvalidRequest: unknown.
    """
    row = _found(_BY_ONNX, onnx_number)
    if row is None:
        raise InvalidRequest(f"unknown tensor element type number {onnx_number}")
    return row


class NumPyArithmetic:
    """The functions of `recurrence.cells.Arithmetic` for arrays, in the arrays' own precision."""

    tanh = staticmethod(np.tanh)
    expm1 = staticmethod(np.expm1)
    exp = staticmethod(np.exp)
    sqrt = staticmethod(np.sqrt)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)
    absolute = staticmethod(np.abs)

    @staticmethod
    def sigmoid(x: Any, /) -> Any:
        """1/(1 + e^-x), both branches at once; the negative tail keeps its relative accuracy."""
        e = np.abs(x)
        np.negative(e, out=e)
        np.exp(e, out=e)  # never overflows, unlike e^-x
        return np.where(x < 0, e, 1) / (1 + e)

    @staticmethod
    def softplus(x: Any, /) -> Any:
        """max(x, 0) + log1p(e^-|x|), because log(1 + e^x) overflows above 88.7 in float32."""
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    @staticmethod
    def zero_below(x: Any, bound: float, *, inclusive: bool) -> Any:
        """0 where x < bound (inclusive: x <= bound), else x; NaN stays NaN."""
        return np.where(x <= bound if inclusive else x < bound, 0, x)

    @staticmethod
    def nonnegative_else(x: Any, otherwise: Any, /) -> Any:
        """X where x >= 0, else `otherwise`, which is NaN if x is."""
        return np.where(x >= 0, x, otherwise)

    @staticmethod
    def blend(z: Any, h: Any, H: Any, /) -> Any:
        """(1 - z) (.) h + z (.) H as the specification writes it, including for infinities."""
        return (1 - z) * h + z * H


def round_to(values: Array, dtype: DType) -> Array:
    """Round float64 (or float32) values once, to nearest even, to a floating-point type.

    NumPy's own casts to float16 and float32 round once; those of ml_dtypes go through float32 and
    round twice, so its types are rounded here on the float64 value itself. The cast decides the
    result of overflow: infinity, NaN or the largest number. float8e8m0, only powers of two, has
    neither zero nor a significand to round, so the cast decides its values.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if values.dtype == np.float64 and not dtype.native_to_numpy and dtype.precision > 1:
            import ml_dtypes

            info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
            _, above = math.frexp(float(info.smallest_subnormal))  # a power of two, which has 0.5
            # Scaling by powers of two is exact, so `rint` is the only rounding. A carry to the next
            # power of two is harmless, because the result is a float64.
            _, exponent = np.frexp(values)
            quantum = np.maximum(exponent - dtype.precision, above - 1)
            values = np.asarray(np.ldexp(np.rint(np.ldexp(values, -quantum)), quantum))
        return values.astype(dtype.numpy)


def ready_to_round(values: Array, dtype: DType) -> Array:
    """Return values that an assignment to a dtype rounds at most once.

    A cast to NumPy's own types, or from float32, rounds once; `round_to` handles the others. The
    result is contiguous, because casts to 16 bits from other layouts take up to five times as long.
    """
    if values.dtype == dtype.numpy:
        return values
    once = values.dtype == np.float32 or dtype.native_to_numpy
    return np.ascontiguousarray(values) if once else round_to(values, dtype)


def ulp_distance(a: Array, b: Array) -> Array:
    """Return the ulp distances between a and b, elementwise, as float64.

    Both zeros are one number. Infinity is one step above the largest finite number. The distance is
    infinite if exactly one is NaN, and zero if both are.

    Args:
        a: an array of any floating-point dtype, or of integers of at most 63 bits, in any byte
            order.
        b: an array of the same dtype and shape.
    """
    steps_a, steps_b = _steps(a), _steps(b)
    # In uint64 the difference of two int64 values is exact, however far apart they are.
    distance = np.where(
        steps_a >= steps_b,
        steps_a.astype(np.uint64) - steps_b.astype(np.uint64),
        steps_b.astype(np.uint64) - steps_a.astype(np.uint64),
    ).astype(np.float64)
    nan_a, nan_b = np.isnan(a.astype(np.float64)), np.isnan(b.astype(np.float64))
    distance[nan_a != nan_b] = np.inf
    distance[nan_a & nan_b] = 0
    return np.asarray(distance)


def _steps(values: Array) -> Array:
    """Return the ranks of floating-point values in order, as int64; both zeros are 0."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    size = values.dtype.itemsize
    if size == 1:
        return _ranks(values.dtype)[values.view(np.uint8)]
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    bits = np.atleast_1d(np.ascontiguousarray(native)).view(f"i{size}").astype(np.int64)
    magnitude = bits & ((1 << (8 * size - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude).reshape(values.shape)


@cache
def _ranks(dtype: np.dtype[Any]) -> Array:
    """Return the ranks of all values of a one-byte type; not all have a sign in bit 7 (float4)."""
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    return np.searchsorted(np.unique(values), values)


def warn_of_nan(inputs: Iterable[Array], outputs: Mapping[str, Array]) -> None:
    """Warn if outputs have NaN and all inputs are finite: float64, too, overflows on the way."""
    made = [name for name, values in outputs.items() if _any(np.isnan, values)]
    if made and not any(_any(lambda v: ~np.isfinite(v), values) for values in inputs):
        warnings.warn(
            f"{listed(made)} {plural(len(made), 'has', 'have')} NaN, although no input has one or"
            " an infinity: numbers overflowed on the way, or NaN is the answer; of a recurrent node"
            " `--backend certified` tells which",
            RnncliWarning,
            stacklevel=3,
        )


# The largest tolerance that a pack may give an output, as a fraction of its largest value.
LIMIT = 0.05
# The largest that a user may give, just below 1: within the largest value, zeros would pass.
WIDEST = 1 - 2.0**-40
# The limit in roundings for coarser dtypes: in bfloat16 the first three steps of well-conditioned
# recurrences have errors of 7 to 60 roundings, and a wrong gate a larger one.
ROUNDINGS = 64
# The largest in levels, if they are hardly apart.
LEVELS = 1


# The largest part of a value that is told in percent.
MOST_OF = 10


def limit_of(wanted: Array) -> float:
    """Return the largest tolerance an output may have, as a fraction of its largest value."""
    return max(LIMIT, ROUNDINGS * 2.0 ** -dtype_of(wanted).precision)


def well_conditioned(wanted: Array, tolerance: Array) -> Array:
    """Return which outputs of a stack [n, ...] have no `conditioning_problem`, [n]."""
    n, *shape = wanted.shape
    if not math.prod(shape):
        return np.ones(n, np.bool_)
    widest = tolerance.reshape(n, -1).max(axis=1).astype(np.float64)  # a NaN is larger than all
    wide = wanted.astype(np.float64).reshape(n, -1)
    if wanted.dtype.kind in "iu":
        return np.asarray(widest <= np.maximum(LEVELS, LIMIT * np.ptp(wide, axis=1)))
    size = np.abs(wide)
    largest = np.max(size, axis=1, initial=0.0, where=np.isfinite(size))
    fit = widest <= limit_of(wanted) * np.where(largest == 0, 1.0, largest)
    return np.asarray(fit & np.isfinite(widest))


def conditioning_problem(wanted: Array, tolerance: Array, limit: float | None = None) -> str:
    """Return why an output cannot judge an implementation, or "".

    The tolerance of an output of zeros is compared with 1, the magnitude of activations. An empty
    output has no problem.

    Args:
        wanted: an output.
        tolerance: the tolerance of each of its elements, in its shape.
        limit: the largest tolerance, as a fraction of the largest value. By default `limit_of`, or
            of levels, whose zero may lie anywhere, `LIMIT` of the distance between them.
    """
    if not tolerance.size:
        return ""
    bad = ~np.isfinite(tolerance)
    if bad.any():
        where = _index(int(np.argmax(bad)), wanted.shape)
        return f"nothing can be said about its element {where}: its tolerance is not finite"
    worst = int(np.argmax(tolerance))
    widest, where = float(tolerance.reshape(-1)[worst]), _index(worst, wanted.shape)
    if limit is None and wanted.dtype.kind in "iu":
        apart = int(wanted.max()) - int(wanted.min())
        if widest <= max(LEVELS, LIMIT * apart):
            return ""
        return f"tolerance {widest:.3g} at {where} is too wide for levels that are {apart} apart"
    size = np.abs(wanted.astype(np.float64))
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size))) or 1.0
    limit = limit_of(wanted) if limit is None else limit
    if widest <= limit * largest:
        return ""
    use = "zeros would agree, too"
    if limit != WIDEST:
        use = f"at most {limit:.0%} tell a right result from a wrong one"
    part = widest / largest
    of = f"{part:.0%} of" if part <= MOST_OF else f"{times(part)}"
    return f"tolerance {widest:.3g} at {where} is {of} the largest value {largest:.3g}; {use}"


def _index(position: int, shape: tuple[int, ...]) -> list[int]:
    return [int(k) for k in np.unravel_index(position, shape)]


def tolerance_problem(tolerance: Array, output: Array | None, *, may_be_wide: bool = False) -> str:
    """Return why a tolerance is not valid for an output, or "".

    Args:
        tolerance: the tolerance of each element.
        output: the output; None if there is none.
        may_be_wide: whether it may be too wide to judge by, as that of a signal, by which nothing
            passes that does not pass by its outputs.
    """
    if output is None:
        return "has no output beside it"
    if tolerance.shape != output.shape:
        return f"has shape {list(tolerance.shape)}, and the output {list(output.shape)}"
    if not dtype_of(tolerance).is_float:
        return f"is {dtype_of(tolerance)}, and should be float32"
    if not (np.isfinite(tolerance) & (tolerance >= 0)).all():
        return "has elements that are negative, infinite or NaN"
    problem = "" if may_be_wide else conditioning_problem(output, tolerance)
    return f"is too wide: {problem}" if problem else ""


def says_nothing(outputs: Iterable[Array]) -> str:
    """Return why outputs say nothing of a computation, or "": a kernel that has none gives them.

    One element may be any number, so outputs of one element each say nothing only if all are NaN.
    """
    numbers = [
        v.astype(np.float64).ravel() for v in outputs if v.size and v.dtype.kind not in "OSUc"
    ]
    if numbers and all(np.isnan(each).all() for each in numbers):
        return "each output is NaN throughout"
    several = [each for each in numbers if each.size > 1]
    if several and all(np.array_equal(each, np.roll(each, 1), True) for each in several):
        return "each output is one number throughout"
    return ""


def _any(holds: Callable[[Array], Array], values: Array) -> bool:
    return dtype_of(values).is_float and bool(holds(values).any())
