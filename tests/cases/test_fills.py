"""Claims about fills: same bits everywhere, in range, exact where they say so."""

import hashlib
import math
from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from support.tables import every

from rnncli.cases.fills import (
    FILLS,
    KINDS,
    SPECIAL,
    Blank,
    default_entry,
    default_fill,
    fill,
    fill_problems,
)
from rnncli.numerics import dtype_named
from rnncli.operators import OPERATORS
from rnncli.operators.packed_rows import packed_ends

FLOATS = ("float16", "bfloat16", "float32", "float64")
FLOAT_FILLS = [name for name, row in FILLS.items() if "values" in row.kinds]
LENGTH_FILLS = [name for name, row in FILLS.items() if "lengths" in row.kinds]


def blank(shape=(2, 3, 5), dtype="float32", name="X", seq_length=7):
    """A tensor to be filled."""
    return Blank(shape, "[...]", dtype_named(dtype), 7, name, seq_length)


def filled_all(name, *values, cases, into=None, **named):
    """Fill the tensors of some cases, missing parameters by default."""
    row = FILLS[name]
    defaults = {parameter.name: parameter.default for parameter in row.parameters}
    in_order = dict(zip(defaults, values, strict=False))
    return fill(row, {**defaults, **in_order, **named}, into or blank(), cases)


def filled(name, *values, case="case", **named):
    """Fill one tensor."""
    (found,) = filled_all(name, *values, cases=[case], **named)
    return found


@pytest.mark.parametrize("name", FILLS)
def test_defaults_of_parameters_are_of_their_kind(name):
    """A row contradicts itself nowhere."""
    for parameter in FILLS[name].parameters:
        assert KINDS[parameter.kind].test(parameter.default)


@every("dtype", FLOATS)
@every("shape", [(2, 3, 5), (1,), (0,), (3, 0, 2), (4, 1)])
@every("name", FLOAT_FILLS)
def test_float_fills_have_the_shape_and_dtype(name, shape, dtype):
    """Every fill fills every shape, empty ones too, in every dtype, in memory order."""
    found = filled(name, into=blank(shape, dtype))

    assert found.shape == shape
    assert found.dtype == dtype_named(dtype).numpy
    assert found.flags.c_contiguous


@pytest.mark.parametrize("name", LENGTH_FILLS)
def test_fills_of_lengths_make_integers(name):
    """Lengths are int32, for no sequence too."""
    values = {} if name != "constant" else {"value": 3.0}

    for count in (0, 1, 4):
        found = filled(name, into=blank((count,), "int32"), **values)
        assert (found.shape, found.dtype) == ((count,), np.int32)


@every(
    ("count", "total", "ends"),
    [
        (4, 9, [0, 2, 5, 9]),
        (4, 3, [0, 1, 2, 3]),
        (2, 7, [0, 7]),
        (5, 12, [0, 1, 4, 7, 12]),
        (4, 100, [0, 17, 50, 100]),
    ],
)
def test_packed_sequences_have_a_token_each_and_rise(count, total, ends):
    """From 0 to the number of tokens; lengths differ where they can."""
    assert packed_ends(count, total).tolist() == ends


# The first 16 hex digits of SHA-256 over the bytes of each fill, float64 where it can be: these
# never change.
PINNED = {
    "zeros": "b393978842a0fa3d",
    "ones": "44a2420d6f45ff85",
    "constant": "a25bbfbd5d694e83",
    "ramp": "c9fff9e04deddf95",
    "uniform": "a7bccc4c06584145",
    "normal": "df0ba54af51b0353",
    "weights": "bb35cd546554c80b",
    "one_hot": "b4174d4aa43a795b",
    "dyadic": "8711108fc8f8cd9b",
    "special": "5da00a1693632cc9",
    "lengths": "57f9b5a3820f0215",
    "short": "b6183dabdec65bc1",
    "packed": "3163f7415e83569d",
    "rising": "1a3668b740ae653c",
    "falling": "f6521620e85be71b",
    "scales": "9a7721a8b0a3348c",
    "bytes": "af34dc632199c52d",
    "middle": "5e8a75acf27058e4",
}
OF_LENGTHS = [name for name, row in FILLS.items() if row.kinds == ("lengths",)]
OF_LEVELS = [name for name, row in FILLS.items() if row.kinds == ("levels",)]


def element_type(name, otherwise):
    """Return a type that a fill can fill, by default the given one."""
    return "int32" if name in OF_LENGTHS else "uint8" if name in OF_LEVELS else otherwise


@pytest.mark.parametrize("name", FILLS)
def test_bits_are_pinned(name):
    """Vectors are regenerated, so the same YAML gives the same bits for ever."""
    into = blank((5,) if name in OF_LENGTHS else (4, 5), element_type(name, "float64"))
    digest = hashlib.sha256(filled(name, into=into).tobytes()).hexdigest()

    assert digest[:16] == PINNED[name]


@pytest.mark.parametrize("name", ["uniform", "normal", "weights", "one_hot", "dyadic"])
@pytest.mark.parametrize("change", [{"seed": 8}, {"name": "W"}])
def test_random_fills_depend_on_seed_and_name(name, change):
    """Each tensor has bits of its own."""
    here = blank((8, 9))

    assert not np.array_equal(filled(name, into=here), filled(name, into=replace(here, **change)))


@pytest.mark.parametrize("name", ["uniform", "normal", "weights", "one_hot", "dyadic"])
def test_random_fills_depend_on_the_case(name):
    """And so has each case."""
    here = blank((8, 9))

    assert not np.array_equal(filled(name, into=here), filled(name, into=here, case="other"))


@every("shape", [(4, 5), (3,), (2, 0), (1, 1)])
@every("name", FILLS)
def test_cases_filled_together_have_what_they_have_alone(name, shape):
    """A tensor depends on its own case only, and its memory is its own."""
    into = blank(shape[:1] if name in OF_LENGTHS else shape, element_type(name, "bfloat16"))
    cases = [f"case_{k}" for k in range(9)]

    together = filled_all(name, cases=cases, into=into)

    assert [t.tobytes() for t in together] == [
        filled(name, into=into, case=case).tobytes() for case in cases
    ]
    assert together.flags.c_contiguous


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (0.1, 0.3), (-3, -2.75), (2, 2)])
def test_uniform_stays_in_its_bounds(low, high, dtype):
    """Rounded to the dtype, no value leaves the rounded bounds."""
    found = filled("uniform", low, high, into=blank((5000,), dtype)).astype(np.float64)
    bounds = np.array([low, high], np.float64).astype(dtype_named(dtype).numpy)
    below, above = bounds.astype(np.float64)

    assert below <= found.min()
    assert found.max() <= above
    assert abs(found.mean() - (low + high) / 2) <= 0.03 * (high - low) + 0.01


def test_normal_has_its_mean_and_deviation():
    """As asked for, within 6 deviations."""
    found = filled("normal", 2.0, 3.0, into=blank((50_000,), "float64"))

    assert abs(found.mean() - 2) < 0.06
    assert abs(found.std() - 3) < 0.06
    assert np.abs(found - 2).max() < 18


@pytest.mark.parametrize("fan_in", [1, 2, 3, 64, 1000])
def test_weights_reach_scale_over_root_of_fan_in_and_no_farther(fan_in):
    """The bound is the real one, to 50 bits: its square times fan_in is the square of scale."""
    found = filled("weights", 1.5, into=blank((4000 // fan_in + 1, fan_in), "float64"))
    reach = Fraction(float(np.abs(found).max()))

    assert Fraction(9, 4) * Fraction(98, 100) < reach * reach * fan_in <= Fraction(9, 4)


def test_ramp_hits_both_ends():
    """Evenly spaced, both ends exact, also where a step is not."""
    found = filled("ramp", 0.1, 0.7, into=blank((7,), "float64"))

    assert (found[0], found[-1]) == (0.1, 0.7)
    assert np.allclose(np.diff(found), 0.1, rtol=1e-12)
    assert filled("ramp", 3.0, 5.0, into=blank((1,))).tolist() == [3.0]


def test_one_hot_has_one_value_in_each_row():
    """At an index of its own in each row."""
    found = filled("one_hot", 2.5, into=blank((50, 4, 5)))

    assert np.all(np.sort(found, axis=-1) == [0, 0, 0, 0, 2.5])
    assert set(found.argmax(-1).ravel().tolist()) == set(range(5))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("limit", "denominator"), [(4, 8), (255, 256), (1, 1)])
def test_dyadic_values_are_exact_in_every_dtype(limit, denominator, dtype):
    """Integers over a power of two, both ends reached."""
    found = filled("dyadic", limit, denominator, into=blank((20_000,), dtype)).astype(np.float64)
    numerators = found * denominator

    assert np.array_equal(numerators, np.rint(numerators))
    assert (numerators.min(), numerators.max()) == (-limit, limit)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_numbers_come_in_turn(dtype):
    """NaN, infinities, -0.0, the least subnormal and the largest finite number survive rounding."""
    found = filled("special", 2, into=blank((12,), dtype))
    limits = ml_dtypes.finfo(dtype_named(dtype).numpy)

    assert np.isfinite(found[::2].astype(np.float64)).all()
    nan, inf, negative_inf, zero, subnormal, largest = found[1::2].astype(np.float64)
    assert math.isnan(nan)
    assert (inf, negative_inf) == (math.inf, -math.inf)
    assert (zero, math.copysign(1, zero)) == (0, -1)
    assert (subnormal, largest) == (float(limits.smallest_subnormal), float(limits.max))


@pytest.mark.parametrize("kind", SPECIAL)
def test_one_kind_of_special_number_can_be_asked_for(kind):
    """Every third element, the others normal."""
    found = filled("special", 3, kind, into=blank((9,), "float64"))

    assert len({found[k].tobytes() for k in (2, 5, 8)}) == 1
    assert np.isfinite(np.delete(found, [2, 5, 8])).all()


@every("T", [0, 1, 2, 3, 7, 1000])
@every("count", [0, 1, 2, 3, 4, 5, 30])
def test_lengths_are_what_finds_bugs(count, T):
    """1 and T are there, the longest is not first and alone, and they differ where they can."""
    found = filled("lengths", into=blank((count,), "int32", "sequence_lens", T)).tolist()

    assert all(min(1, T) <= length <= T for length in found)
    if count > 1 and T > 1:
        assert {1, T} <= set(found)
        assert found.index(T) > 0
        assert found.count(T) == 1
        assert len(set(found)) == min(count, T)
    if count == 1:
        assert found == [T]


@pytest.mark.parametrize(
    ("name", "T", "count", "lengths"),
    [
        ("short", 4, 3, [3, 3, 3]),
        ("short", 0, 2, [0, 0]),
        ("rising", 4, 5, [0, 1, 2, 3, 4]),
        ("rising", 3, 9, [0, 0, 0, 1, 1, 1, 2, 2, 3]),
        ("rising", 5, 1, [2]),
        ("rising", 5, 0, []),
        ("falling", 4, 3, [4, 2, 0]),
    ],
)
def test_lengths_in_order(name, T, count, lengths):
    """Each tile of a batch has another longest sequence, or none has all steps."""
    into = blank((count,), "int32", "sequence_lens", T)

    assert filled(name, into=into).tolist() == lengths


@pytest.mark.parametrize(
    ("name", "values", "dtype", "sentence"),
    [
        ("constant", {"value": 1e39}, "float32", "reach 1e+39, which float32 cannot hold"),
        ("constant", {"value": 65520.0}, "float16", "float16 cannot hold"),
        ("constant", {"value": 2.5}, "int32", "2.5 is not an integer that int32 can hold"),
        ("constant", {"value": 3e9}, "int32", "not an integer that int32"),
        ("constant", {"value": math.nan}, "int32", "nan is not an integer"),
        ("constant", {"value": math.inf}, "int32", "inf is not an integer"),
        ("normal", {"mean": 0.0, "std": 2e4}, "float16", "reach 120000"),
        ("uniform", {"low": 1.0, "high": 0.0}, "float32", "low must not exceed high"),
        ("uniform", {"low": -1.7e308, "high": 1.7e308}, "float64", "too far apart"),
        ("ramp", {"low": 1.7e308, "high": -1.7e308}, "float64", "too far apart"),
        ("dyadic", {"limit": 256, "denominator": 2}, "float32", "at most 255"),
    ],
)
def test_parameters_that_cannot_be_are_refused(name, values, dtype, sentence):
    """Nothing overflows in silence."""
    (found,) = fill_problems(FILLS[name], values, blank(dtype=dtype))

    assert sentence in found


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 65504.0])
def test_constants_that_can_be_are_kept(value):
    """Infinities, NaN and the sign of zero, in the narrowest dtype."""
    assert not list(fill_problems(FILLS["constant"], {"value": value}, blank(dtype="float16")))
    found = filled("constant", value, into=blank(dtype="float16"))
    assert np.array_equal(found, np.full((2, 3, 5), value), equal_nan=True)
    assert np.all(np.signbit(found) == (math.copysign(1, value) < 0))


def test_every_role_has_a_default_fill():
    """A required input of any operator can be left out."""
    for operator in OPERATORS.values():
        for row in operator.inputs:
            name, values = default_fill(row)
            assert row.kind in FILLS[name].kinds
            assert [*values] == [each.name for each in FILLS[name].parameters]
            entry = default_entry(row)
            given = entry[name] if isinstance(entry, dict) else []
            usual = [each.default for each in FILLS[name].parameters]
            assert [*values.values()] == [*given, *usual[len(given) :]]


@pytest.mark.parametrize(("dtype", "middle"), [("int8", 0), ("uint8", 128)])
def test_bytes_are_all_of_a_type_around_the_middle(dtype, middle):
    """A weight is as often above its zero point as below."""
    found = filled("bytes", into=blank((50_000,), dtype))
    counts = np.unique(found, return_counts=True)[1]

    assert filled("middle", into=blank((3,), dtype)).tolist() == [middle] * 3
    assert len(counts) == 256
    assert 130 < counts.min() <= counts.max() < 260
