"""Profiles say what each dtype's arithmetic may round."""

import pytest
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.numerics import DTYPES
from rnncli.numerics.profiles import ACCUMULATORS, PROFILES, profile_named

FLOATS = ["float64", "float32", "float16", "bfloat16"]


@pytest.mark.parametrize("name", PROFILES)
def test_rows_know_their_name(name):
    """A profile is found by the name it carries, and its accumulator exists."""
    profile = profile_named(name)

    assert (str(profile), profile.accumulator in ACCUMULATORS) == (name, True)
    assert profile.summary


def test_misspelt_profile_is_suggested():
    """An unknown name is an error that helps."""
    with pytest.raises(InvalidRequest, match="'strikt'; did you mean 'strict'"):
        profile_named("strikt")
    with pytest.raises(InvalidRequest, match="there are standard, strict"):
        profile_named("qqqqq")


@every("dtype", FLOATS)
@every("profile", PROFILES.values(), ids=str)
def test_no_accumulator_is_narrower_than_the_dtype(profile, dtype):
    """Float64 tensors are summed in float64 whatever the profile."""
    row = DTYPES[dtype]

    assert profile.rounding(row).accumulator <= 2.0**-row.precision


@pytest.mark.parametrize(
    ("profile", "dtype", "accumulator", "factor"),
    [
        ("standard", "float16", 2.0**-24, 0),
        ("standard", "float64", 2.0**-53, 0),
        ("dtype-accumulator", "float16", 2.0**-11, 0),
        ("dtype-accumulator", "bfloat16", 2.0**-8, 0),
        ("tf32", "float32", 2.0**-24, 2.0**-11),
        ("tf32", "float16", 2.0**-24, 0),  # whose factors have no more bits than that
        ("tf32", "float64", 2.0**-53, 0),  # which no such unit multiplies
    ],
)
def test_roundoff_by_profile_and_dtype(profile, dtype, accumulator, factor):
    """Unit roundoffs of sums, and of the factors of products."""
    rounding = PROFILES[profile].rounding(DTYPES[dtype])

    assert (rounding.accumulator, rounding.factor) == (accumulator, factor)


@pytest.mark.parametrize(
    ("dtype", "subnormal", "normal"),
    [
        ("float32", 2.0**-149, 2.0**-126),
        ("float16", 2.0**-24, 2.0**-14),
        ("bfloat16", 2.0**-133, 2.0**-126),
        ("float64", 2.0**-1074, 2.0**-1022),
    ],
)
def test_errors_near_zero_have_a_floor(dtype, subnormal, normal):
    """Half the smallest subnormal; where subnormals become zero, the smallest normal."""
    row = DTYPES[dtype]

    assert PROFILES["standard"].rounding(row).floor == subnormal / 2
    assert PROFILES["flush-to-zero"].rounding(row).floor == normal


@pytest.mark.parametrize(
    ("profile", "dtype", "step", "chunk"),
    [
        ("standard", "float16", "float32", 1),
        ("standard", "float32", "float32", 1),
        ("dtype-accumulator", "bfloat16", "bfloat16", 1),
        ("chunked", "bfloat16", "float32", 128),
    ],
)
def test_steps_of_linear_recurrences(profile, dtype, step, chunk):
    """They are computed in float32 at least, unless sums are in the dtype; one by one, or not."""
    row = PROFILES[profile]

    assert row.step(DTYPES[dtype]).name == step
    assert row.rounding(DTYPES[step]).chunk == chunk
