"""Fills: generators of input values, named in YAML, each a row of `FILLS`.

Random fills depend only on the tensor's key (seed, case id, input name), so a tensor is the same on
every machine, and adding a case or an input does not change others. The case of a config has no id,
so its inputs do not depend on the file's name. The tensors of cases that differ only in their ids
are made together: n cases have n keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.numerics import Array, DType, randomness, round_to
from rnncli.operators.packed_rows import packed_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rnncli.operators import Input

Keys: TypeAlias = "Sequence[int]"
LENGTHS, LEVELS = ("lengths",), ("levels",)
ALL = ("values", "states", "lengths", "levels")


@dataclass(frozen=True)
class Blank:
    """The shape and dtype of a tensor to fill, for one case or for many alike cases."""

    shape: tuple[int, ...]  # its sizes
    dims: str  # their names, for messages: ``[num_directions, 4*hidden_size, input_size]``
    dtype: DType  # its element type
    seed: int  # the seed of the suite or file
    name: str  # the name of the input
    seq_length: int  # the case's seq_length, or total_tokens, which only lengths use
    packs: bool = False  # whether they say where packed sequences end

    def keys(self, cases: Sequence[str]) -> list[int]:
        """Return the random key of the tensor in each of some cases."""
        return [randomness.seed_key(self.seed, case, self.name) for case in cases]

    @property
    def shape_wanted(self) -> str:
        """The shape in numbers and names."""
        return f"{list(self.shape)} = {self.dims}"

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a fill, a number or word; its kind is a key of `KINDS`."""

    name: str
    kind: str
    default: Any
    summary: str


@dataclass(frozen=True, slots=True)
class ParameterKind:
    """The kind of a parameter: description for messages, test, JSON Schema and Python type."""

    wanted: str
    test: Callable[[Any], bool]
    schema: Mapping[str, Any]
    hold: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Fill:
    """One fill."""

    summary: str  # a description
    # function of a blank, the keys of n tensors and the parameters. It returns float64 values, to
    # be rounded once to the dtype, or integers: n tensors, or one if all are equal.
    make: Callable[..., Array]
    parameters: tuple[Parameter, ...] = ()  # the parameters, in the order of a list
    # the largest possible magnitude, which must be finite in the dtype
    reach: Callable[..., float] = lambda **_: 0.0
    # the problem of the parameters in combination, or ""
    broken: Callable[..., str] = lambda **_: ""
    # the kinds of inputs that it can fill, see `Input.kind`
    kinds: tuple[str, ...] = ("values", "states")


def fill_problems(row: Fill, values: Mapping[str, Any], blank: Blank) -> Iterator[str]:
    """Yield the problems of a fill's parameters, which have the right kinds, for a tensor."""
    if sentence := row.broken(**values):
        yield sentence
        return
    # Fills for lengths alone reach the whole sequence.
    reach = float(blank.seq_length) if row.kinds == LENGTHS else row.reach(**values)
    # The operator checks that lengths do not exceed the sequence.
    if blank.dtype.is_float:
        with np.errstate(over="ignore"):
            held = float(round_to(np.array(reach), blank.dtype))
        if math.isinf(held) and not math.isinf(reach):
            yield f"its values reach {reach:g}, which {blank.dtype} cannot hold"
        return
    limits = np.iinfo(blank.dtype.numpy)
    ends = [*values.values()]
    for value in ends if reach in map(abs, ends) else (*ends, reach):
        if not float(value).is_integer() or not limits.min <= value <= limits.max:
            yield f"{value:g} is not an integer that {blank.dtype} can hold"
            break


def fill(row: Fill, values: Mapping[str, Any], blank: Blank, cases: Sequence[str]) -> Array:
    """Return the filled tensors, [cases, *shape]; each is independent of the others."""
    made = row.make(blank, blank.keys(cases), **values)
    if blank.dtype.is_float and made.dtype != blank.dtype.numpy:
        made = round_to(made, blank.dtype)
    elif not blank.dtype.is_float and made.dtype.kind == "f":
        made = np.rint(made)
    made = made.astype(blank.dtype.numpy, copy=False)
    return np.ascontiguousarray(np.broadcast_to(made, (len(cases), *blank.shape)))


def _bytes(blank: Blank, keys: Keys) -> NDArray[np.int64]:
    limits = np.iinfo(blank.dtype.numpy)
    return randomness.integers(keys, blank.shape, int(limits.min), int(limits.max))


def _middle(blank: Blank, _: Keys) -> Array:
    limits = np.iinfo(blank.dtype.numpy)
    return np.full(blank.shape, (int(limits.min) + int(limits.max) + 1) // 2)


def _constant(blank: Blank, _: Keys, value: float = 0) -> Array:
    return np.full(blank.shape, value, np.float64 if blank.dtype.is_float else np.int64)


def _ramp(blank: Blank, _: Keys, low: float, high: float) -> NDArray[np.float64]:
    made = low + (high - low) * (np.arange(blank.count) / max(blank.count - 1, 1))
    made[1:][-1:] = high  # exactly
    return np.asarray(made).reshape(blank.shape)


def _uniform(blank: Blank, keys: Keys, low: float, high: float) -> NDArray[np.float64]:
    return randomness.uniform(keys, blank.shape, low, high)


_ROOT_BITS = 52


def _weights(blank: Blank, keys: Keys, scale: float) -> NDArray[np.float64]:
    fan_in = max(blank.shape[-1], 1)
    # The root of an integer has the same last bit on every machine.
    root = math.ldexp(math.isqrt((1 << 2 * _ROOT_BITS) // fan_in), -_ROOT_BITS)
    return randomness.uniform(keys, blank.shape, -scale * root, scale * root)


def _one_hot(blank: Blank, keys: Keys, value: float) -> NDArray[np.float64]:
    *rows, classes = blank.shape
    made = np.zeros((len(keys), *blank.shape))
    if made.size:
        hot = randomness.integers(keys, rows, 0, classes - 1)
        np.put_along_axis(made, hot[..., None], value, axis=-1)
    return made


def _dyadic(blank: Blank, keys: Keys, limit: int, denominator: int) -> NDArray[np.float64]:
    numerators = randomness.integers(keys, blank.shape, -limit, limit)
    return np.asarray(numerators.astype(np.float64) / denominator)


def _lengths(blank: Blank, keys: Keys) -> NDArray[np.int64]:
    """Return lengths from 1 to T, shuffled, the longest not first; one sequence has T."""
    count, T = blank.count, blank.seq_length
    if count < 2 or T == 0:
        return np.full(count, T, np.int64)
    spread = 1 + np.arange(count, dtype=np.int64) * (T - 1) // (count - 1)
    order = np.argsort(randomness.uniform_integers(keys, count, 64), axis=-1, kind="stable")
    lengths = spread[order]
    # This exposes kernels that take T from the first sequence.
    return np.where(lengths[:, :1] == T, np.roll(lengths, 1, axis=-1), lengths)


def _rising(blank: Blank, _: Keys) -> NDArray[np.int64]:
    """Return lengths spread from 0 to T in order, so that tiles of the batch differ."""
    count, T = blank.count, blank.seq_length
    if count == 1:
        return np.full(1, T // 2, np.int64)
    return np.arange(count, dtype=np.int64) * T // max(count - 1, 1)


# Special numbers by name, as functions of a dtype.
SPECIAL: Mapping[str, Callable[[DType], float]] = {
    "nan": lambda _: math.nan,
    "inf": lambda _: math.inf,
    "negative_inf": lambda _: -math.inf,
    "negative_zero": lambda _: -0.0,
    "subnormal": lambda dtype: _limit(dtype, "smallest_subnormal"),
    "largest": lambda dtype: _limit(dtype, "max"),
}


def _limit(dtype: DType, name: str) -> float:
    import ml_dtypes

    return float(getattr(ml_dtypes.finfo(dtype.numpy), name))  # type: ignore[no-untyped-call]


def _special(blank: Blank, keys: Keys, every: int, only: str) -> NDArray[np.float64]:
    names = list(SPECIAL) if only == "all" else [only]
    numbers = np.array([SPECIAL[name](blank.dtype) for name in names])
    made = randomness.bell(keys, blank.shape)
    flat = made.reshape(len(keys), blank.count)
    turns = len(range(every - 1, blank.count, every))
    flat[:, every - 1 :: every] = np.resize(numbers, turns)
    return made


def _is_finite(value: Any) -> bool:
    # Integers of YAML have any size; this comparison does not overflow.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= float(np.finfo(np.float64).max)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_finite(value)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31


def _is_power_of_two(value: Any) -> bool:
    return _is_positive(value) and value <= 256 and value & (value - 1) == 0


KINDS: Mapping[str, ParameterKind] = {
    "number": ParameterKind("a finite number", _is_finite, {"type": "number"}, float),
    "any number": ParameterKind("a number", _is_number, {"type": "number"}, float),
    "positive integer": ParameterKind(
        "a positive integer", _is_positive, {"type": "integer", "minimum": 1}, int
    ),
    "power of two": ParameterKind(
        "a power of two up to 256", _is_power_of_two, {"enum": [1 << k for k in range(9)]}, int
    ),
    "special": ParameterKind(
        "all or one of " + ", ".join(SPECIAL),
        lambda value: value in ("all", *SPECIAL),
        {"enum": ["all", *SPECIAL]},
        str,
    ),
}


def _apart(low: float, high: float) -> str:
    far = math.isinf(high - low)
    return f"low and high are too far apart: {low:g} and {high:g}" if far else ""


def _ordered(low: float, high: float) -> str:
    if low > high:
        return f"low must not exceed high, got {low:g} and {high:g}"
    return _apart(low, high)


def _within_8_bits(limit: int, denominator: int) -> str:
    # Eight significand bits make the values exact in every dtype, including bfloat16.
    too_large = limit > 255
    return f"limit must be at most 255, got {limit}/{denominator}" if too_large else ""


def _farthest(**values: float) -> float:
    return max(abs(value) for value in values.values())


FILLS: Mapping[str, Fill] = {
    "zeros": Fill("all zeros", _constant, kinds=ALL),
    "ones": Fill("all ones", partial(_constant, value=1), reach=lambda: 1.0, kinds=ALL),
    "constant": Fill(
        "one value everywhere",
        _constant,
        (Parameter("value", "any number", 0.5, "the value"),),
        reach=_farthest,
        kinds=ALL,
    ),
    "ramp": Fill(
        "evenly spaced values, element by element in the order they are stored",
        _ramp,
        (
            Parameter("low", "number", -1.0, "the first value"),
            Parameter("high", "number", 1.0, "the last value"),
        ),
        reach=_farthest,
        broken=_apart,
    ),
    "uniform": Fill(
        "random, uniform over [low, high)",
        _uniform,
        (
            Parameter("low", "number", -0.5, "the least value"),
            Parameter("high", "number", 0.5, "the bound above"),
        ),
        reach=_farthest,
        broken=_ordered,
    ),
    "normal": Fill(
        "random, bell-shaped: the sum of 12 uniforms, within 6 standard deviations",
        lambda blank, keys, mean, std: mean + std * randomness.bell(keys, blank.shape),
        (
            Parameter("mean", "number", 0.0, "the centre"),
            Parameter("std", "number", 1.0, "the standard deviation"),
        ),
        reach=lambda mean, std: abs(mean) + 6 * abs(std),
    ),
    "weights": Fill(
        "random, uniform over +-scale/sqrt(fan_in), where fan_in is the last dimension",
        _weights,
        (Parameter("scale", "number", 1.5, "1 to 2 keeps gates busy and unsaturated"),),
        reach=_farthest,
    ),
    "scales": Fill(
        "random, uniform over [low, high): with all bytes as weights, these reach 128 times as far",
        _uniform,
        (
            Parameter("low", "number", 0.002, "the least value"),
            Parameter("high", "number", 0.008, "the bound above"),
        ),
        reach=_farthest,
        broken=_ordered,
    ),
    "one_hot": Fill(
        "zeros with one value in each row of the last dimension, at a random index",
        _one_hot,
        (Parameter("value", "number", 1.0, "the value"),),
        reach=_farthest,
    ),
    "dyadic": Fill(
        "random integers in [-limit, limit] over a power of two: sums of products are exact",
        _dyadic,
        (
            Parameter("limit", "positive integer", 4, "the largest numerator"),
            Parameter("denominator", "power of two", 8, "the denominator"),
        ),
        broken=_within_8_bits,
    ),
    "special": Fill(
        "normal, with every n-th element in turn NaN, infinities, -0.0, the least subnormal and"
        " the largest finite number",
        _special,
        (
            Parameter("every", "positive integer", 5, "which elements are special"),
            Parameter("only", "special", "all", "one kind of special number, or all"),
        ),
    ),
    "lengths": Fill(
        "distinct lengths from 1 to seq_length where they fit, shuffled, the longest not first",
        _lengths,
        kinds=LENGTHS,
    ),
    "short": Fill(
        "all lengths one below seq_length, so that every sequence ends in padding",
        lambda blank, _: np.full(blank.count, max(blank.seq_length - 1, 0), np.int64),
        kinds=LENGTHS,
    ),
    "rising": Fill(
        "lengths from 0 to seq_length in rising order; half of it for a single sequence",
        _rising,
        kinds=LENGTHS,
    ),
    "falling": Fill(
        "lengths from seq_length to 0 in falling order; half of it for a single sequence",
        lambda blank, keys: _rising(blank, keys)[::-1],
        kinds=LENGTHS,
    ),
    "packed": Fill(
        "where packed sequences begin and end: lengths that rise as evenly as total_tokens allow",
        lambda blank, _: packed_ends(blank.count, blank.seq_length),
        kinds=LENGTHS,
    ),
    "bytes": Fill("random 8-bit integers, all of the type's equally often", _bytes, kinds=LEVELS),
    "middle": Fill(
        "the middle of an 8-bit type, which stands for 0 where it is the zero point: 0 of int8,"
        " 128 of uint8",
        _middle,
        kinds=LEVELS,
    ),
}

# The default fills of required inputs, by role or its first word.
_DEFAULT_FILLS: Mapping[str, str] = {
    "X": "normal",
    "W": "weights",
    "R": "weights",
    "B": "uniform",
    "bias": "uniform",
    "Wb": "uniform",
    "Rb": "uniform",
    "P": "uniform",
    "initial_h": "uniform",
    "initial_c": "normal",
    "lengths": "lengths",
    "offsets": "packed",
    "W_scale": "scales",
    "R_scale": "scales",
    "key": "normal",
    "value": "normal",
    "decay": "uniform",
    "beta": "uniform",
    "a_log": "uniform",
    "dt_bias": "uniform",
    "W_zero_point": "middle",
    "R_zero_point": "middle",
}


# Parameters of these that are not the fill's own defaults: what is left of a state, and at most
# all of it; and rates of updates.
_OWN_PARAMETERS: Mapping[str, Mapping[str, float]] = {
    "decay": {"low": -1.0, "high": 0.0},
    "beta": {"low": 0.0, "high": 1.0},
}
# The largest of integers by the role of an input, or by its first word, of operators of integers;
# they are uniform over both signs.
_LARGEST: Mapping[str, int] = {
    **dict.fromkeys(("X", "initial", "W", "R"), 100),
    "bias": 2000,
    "initial_c": 8000,
}


def default_fill(row: Input) -> tuple[str, dict[str, Any]]:
    """Return the default fill of a required input: a row of `FILLS`, and all its parameters."""
    name, own = _default(row)
    return name, {p.name: own.get(p.name, p.default) for p in FILLS[name].parameters}


def _default(row: Input) -> tuple[str, Mapping[str, float]]:
    """Return the name and the parameters that are not the fill's own defaults."""
    if not {*row.types.values()} <= {"float32"}:
        role = row.role if row.role in _LARGEST else row.role.partition("_")[0]
        return "uniform", {"low": float(-_LARGEST[role]), "high": float(_LARGEST[role])}
    is_weight = row.role in ("W", "R")
    role = row.role if row.role in _DEFAULT_FILLS else row.role.partition("_")[0]
    name = "bytes" if is_weight and row.kind == "levels" else _DEFAULT_FILLS[role]
    return name, _OWN_PARAMETERS.get(row.role, {})


def default_entry(row: Input) -> str | dict[str, list[float]]:
    """Return the default fill of an input as a config writes it, with no more than it needs."""
    name, own = _default(row)
    return {name: [*own.values()]} if own else name
