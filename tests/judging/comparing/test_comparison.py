"""Comparisons say by how much outputs differ, where, and whether that is tolerated."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.examples import examples
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.judging.comparing import comparison
from rnncli.judging.comparing.comparison import MODEL, UNNAMED, Sides, WorstElement, compare
from rnncli.judging.tolerances.tolerance import Bound, Tolerance
from rnncli.numerics import DTYPES

FLOATS = [row for row in DTYPES.values() if row.is_float]
INTEGERS = [row for row in DTYPES.values() if not row.is_float and row.numpy.kind in "iuV"]


def one(got, wanted, dtype=np.float32, **tolerance):
    """Compare one output named Y."""
    arrays = ({"Y": np.array(values, dtype)} for values in (got, wanted))
    (result,) = compare(*arrays, Tolerance.parse(**tolerance))
    return result


def test_numbers_small_enough_to_check_by_hand():
    """Largest and mean differences over all elements; the worst where it is."""
    result = one([[1, 2, 3], [4, 5, 6]], [[1, 2, 4], [2, 5, 6]])

    assert not result.agrees
    assert (2, 2, 6) == (result.differing, result.unequal, result.size)
    assert (2, 1, 0.5) == (result.max_abs, result.max_rel, result.mean_abs)
    assert 2**23 == result.max_ulp
    assert WorstElement((1, 0), 4, 2, 0) == result.worst


def test_equal_outputs_differ_nowhere():
    """All measures are zero and there is no worst element."""
    result = one([1, 2], [1, 2])

    assert result.agrees
    assert (0, 0, 0, 0) == (result.max_abs, result.max_rel, result.max_ulp, result.mean_abs)
    assert result.worst is None


def test_zeros_of_either_sign_are_equal():
    """-0.0 is 0.0, in every measure."""
    result = one([-0.0, 0.0], [0.0, -0.0])

    assert result.agrees
    assert 0 == result.unequal == result.max_ulp


@every(
    ("got", "wanted", "tolerance", "agrees"),
    [
        (1.5, 1.0, {}, False),
        (1.5, 1.0, {"atol": ["0.5"]}, True),
        (1.5, 1.0, {"atol": ["0.49"]}, False),
        (1.5, 1.0, {"rtol": ["0.5"]}, True),
        (1.0, 1.5, {"rtol": ["0.33"]}, False),
        (1.5, 1.0, {"atol": ["0.25"], "rtol": ["0.25"]}, True),
        (1.5, 1.0, {"atol": ["0.25"], "rtol": ["0.24"]}, False),
        (1 + 2**-23, 1.0, {"max_ulp": ["1"]}, True),
        (1 + 2**-22, 1.0, {"max_ulp": ["1"]}, False),
        (1 + 2**-22, 1.0, {"max_ulp": ["1"], "atol": ["1e-3"]}, True),
        (1e-45, 0.0, {"max_ulp": ["1"]}, True),
        (1e-45, -1e-45, {"max_ulp": ["1"]}, False),
        (-1e-45, 1e-45, {"max_ulp": ["2"]}, True),
        (np.inf, np.inf, {}, True),
        (np.inf, -np.inf, {"atol": ["1e300"], "rtol": ["1e300"]}, False),
        (np.inf, 1.0, {"atol": ["1e300"], "rtol": ["1e300"]}, False),
        (1.0, np.inf, {"atol": ["1e300"], "rtol": ["1e300"]}, False),
        (3.4028235e38, np.inf, {"max_ulp": ["1"]}, True),
        (-np.inf, -np.inf, {"max_ulp": ["1"]}, True),
        (np.nan, np.nan, {}, True),
        (np.nan, np.nan, {"equal_nan": False}, False),
        (
            np.nan,
            np.nan,
            {"equal_nan": False, "max_ulp": ["9e99"], "atol": ["1"], "rtol": ["1"]},
            False,
        ),
        (np.nan, 1.0, {"atol": ["1e300"], "max_ulp": ["9e99"]}, False),
        (1.0, np.nan, {"atol": ["1e300"], "rtol": ["1"]}, False),
        (0.0, np.nan, {"max_ulp": ["9e99"]}, False),
    ],
)
def test_tolerances_combine_as_documented(got, wanted, tolerance, agrees):
    """Equal, or within atol + rtol * |wanted|, or within max_ulp; infinity and NaN by the rules."""
    assert agrees is one([got], [wanted], **tolerance).agrees


def test_unmatched_nan_is_infinitely_far():
    """A NaN that should be a number, or the other way, is the worst there can be."""
    result = one([1, np.nan, 9], [2, 0, 3])

    assert math.inf == result.max_abs == result.max_rel == result.max_ulp == result.mean_abs
    assert ((1,), 0.0) == (result.worst.index, result.worst.wanted)
    assert math.isnan(result.worst.got)


def test_matched_nan_counts_as_equal():
    """A NaN in both places is no difference in any measure, unless that is asked for."""
    result = one([np.nan, 2], [np.nan, 1])

    assert (1, 1, 0.5) == (result.unequal, result.max_abs, result.mean_abs)


def test_a_value_that_must_match_is_allowed_nothing():
    """Beside a NaN or an infinity that is wanted stands no tolerance that is NaN or infinite."""
    for wanted in (np.nan, np.inf):
        assert 0 == one([1.0], [wanted], rtol=["1"]).worst.allowed


def test_each_element_may_have_a_tolerance_of_its_own(monkeypatch):
    """Such an output is judged element by element; another one by the numbers for all."""
    monkeypatch.setattr(comparison, "BLOCK", 3)
    wanted = np.full((2, 4), 64, np.float32)
    allowed = np.float32([[0, 1, 2, 3], [4, 5, 6, 7]])
    tolerance = Tolerance.parse(atol=["9"], max_ulp=["9"])._replace(elements={"Y": allowed})

    got = {"Y": wanted + allowed, "Z": wanted + allowed}
    (within, other) = compare(got, {"Y": wanted, "Z": wanted}, tolerance)
    assert within.agrees
    assert other.agrees

    got["Y"][0, 3] += 0.5
    got["Y"][1, 1] -= 9
    (beyond, _) = compare(got, {"Y": wanted, "Z": wanted}, tolerance)
    assert 1 == beyond.differing
    assert WorstElement((0, 3), 67.5, 64, 3) == beyond.worst


@pytest.mark.parametrize(
    ("given", "agrees"),
    [({"atol": ["3.9"]}, True), ({"atol": ["4.1"]}, False), ({"rtol": ["1.1"]}, False)],
)
def test_a_tolerance_within_which_zeros_agree_does_not_judge(given, agrees):
    """Unless all is equal, so that no tolerance is needed."""
    assert one([1, 3.5], [1, 4], **given).agrees == agrees
    assert one([1, 4], [1, 4], **given).agrees


def test_worst_is_among_those_that_differ():
    """A larger difference that is tolerated does not hide the one that is not."""
    result = one([1010, 1.5], [1000, 1], rtol=["0.1"])

    assert (10, 1, 2) == (result.max_abs, result.differing, result.unequal)
    assert WorstElement((1,), 1.5, 1, 0.1) == result.worst


def test_worst_of_a_tolerated_output_is_still_shown():
    """How close it was is worth knowing when all agree."""
    result = one([1.25, 1], [1, 1], atol=["0.5"])

    assert result.agrees
    assert WorstElement((0,), 1.25, 1, 0.5) == result.worst


def test_worst_is_found_across_blocks(monkeypatch):
    """Cutting tensors into blocks changes no number."""
    rng = np.random.default_rng(0)
    got, wanted = rng.standard_normal((2, 7, 11, 13)).astype(np.float32)
    (whole,) = compare({"Y": got}, {"Y": wanted}, Tolerance.parse(atol=["1"]))
    monkeypatch.setattr(comparison, "BLOCK", 10)
    (cut,) = compare({"Y": got}, {"Y": wanted}, Tolerance.parse(atol=["1"]))

    assert math.isclose(whole.mean_abs, cut.mean_abs)
    for name in ("differing", "unequal", "max_abs", "max_rel", "max_ulp", "worst"):
        assert getattr(whole, name) == getattr(cut, name)


numbers = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan])


@examples(500)
@given(
    pair=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8),
    atol=st.floats(0, 10),
    rtol=st.floats(0, 2),
    equal_nan=st.booleans(),
)
def test_agrees_with_exact_arithmetic(pair, atol, rtol, equal_nan):
    """Every element is judged as fractions judge it, and the measures are theirs."""

    def tolerated(got, wanted):
        if math.isnan(got) or math.isnan(wanted):
            return equal_nan and math.isnan(got) and math.isnan(wanted)
        if math.isinf(got) or math.isinf(wanted):
            return got == wanted
        apart = abs(Fraction(got) - Fraction(wanted))
        bound = Fraction(float(atol + rtol * abs(wanted)))  # itself rounded once or twice
        return Fraction(float(apart)) <= bound

    got, wanted = map(list, zip(*pair, strict=True))
    result = one(got, wanted, atol=[repr(atol)], rtol=[repr(rtol)], equal_nan=equal_nan)

    assert sum(not tolerated(*each) for each in pair) == result.differing
    finite = [each for each in pair if all(map(math.isfinite, each))]
    if len(finite) == len(pair):
        assert max(float(abs(Fraction(g) - Fraction(w))) for g, w in pair) == result.max_abs


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ulp_of_neighbours_is_one(dtype):
    """Values of a float type, sorted, are one ulp apart, whatever its sign bit and width."""
    bits = np.arange(1 << (8 * min(dtype.numpy.itemsize, 2)), dtype=np.uint32)
    values = bits.astype(f"u{min(dtype.numpy.itemsize, 2)}")
    if dtype.numpy.itemsize > 2:
        values = (bits.astype(f"u{dtype.numpy.itemsize}") << 8 * (dtype.numpy.itemsize - 2)) + 1
    numbers = values.view(dtype.numpy)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = numbers.astype(np.float64)
    wide = np.unique(wide[~np.isnan(wide)])
    ordered = wide.astype(dtype.numpy)
    if dtype.numpy.itemsize > 2:
        ordered = ordered[np.isfinite(ordered)]
        below, above = ordered, np.nextafter(ordered, dtype.numpy.type(np.inf))
    else:
        below, above = ordered[:-1], ordered[1:]
    (result,) = compare({"Y": below}, {"Y": above}, Tolerance.parse(max_ulp=["1"]))

    assert 1 == result.max_ulp
    assert not result.differing
    assert result.agrees == (dtype.precision > 1)  # powers of two alone are an ulp from zero


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_exact(dtype):
    """Tolerances do not speak of integers, and their differences are counted exactly."""
    got, wanted = (np.array([each, 1], np.int8).astype(dtype.numpy) for each in (0, 1))
    (result,) = compare(
        {"Y": got}, {"Y": wanted}, Tolerance.parse(atol=["9"], rtol=["9"], max_ulp=["9"])
    )

    assert not result.agrees
    assert (1, 1, None) == (result.differing, result.max_abs, result.max_ulp)
    assert WorstElement((0,), 0, 1, 0.0) == result.worst


def test_the_largest_integers_are_told_apart():
    """Where float64 no longer tells integers apart, the comparison does."""
    result = one([2**63 - 1], [2**63 - 2], np.int64)
    far = one([2**63 - 1], [-(2**63)], np.int64)
    unsigned = one([0], [2**64 - 1], np.uint64)

    assert (1, 1) == (result.differing, result.max_abs)
    assert WorstElement((0,), 2**63 - 1, 2**63 - 2, 0.0) == result.worst
    assert 2.0**64 == far.max_abs == unsigned.max_abs


def test_text_and_bool_are_exact():
    """Text has no distance; a bool is as far from the other as 1 from 0."""
    text = one(["a", "b", "c"], ["a", "x", "y"], object)
    flags = one([True, True], [True, False], bool)

    assert (2, None, None, None) == (text.differing, text.max_abs, text.max_rel, text.mean_abs)
    assert WorstElement((1,), "b", "x", 0.0) == text.worst
    assert (1, 1, 0.5) == (flags.differing, flags.max_abs, flags.mean_abs)
    assert flags.worst.got is True


def test_text_of_any_array_type_is_one_dtype():
    """NumPy's fixed-width text, its bytes and Python strings compare as text."""
    for values in (np.array(["a", "é"]), np.array([b"a", "é".encode()])):
        (result,) = compare({"Y": values}, {"Y": np.array(["a", "é"], object)})
        assert result.agrees


def test_complex_numbers_are_compared_in_the_plane():
    """The distance is that of the plane; ulp is that of the worse part."""
    result = one([3 + 4j, 1], [0, 1 + 2**-23 * 1j], np.complex64)

    assert 5 == result.max_abs
    assert WorstElement((0,), 3 + 4j, 0, 0.0) == result.worst
    assert one([13 + 4j], [10], np.complex64, atol=["5"]).agrees
    assert one([1 + 1j], [1 + (1 + 2**-23) * 1j], np.complex64, max_ulp=["1"]).agrees
    assert one([complex(math.nan, 0)], [complex(0, math.nan)], np.complex64, equal_nan=True).agrees
    assert not one([complex(math.nan, 0)], [1], np.complex64, atol=["9"], equal_nan=True).agrees


def test_float64_is_not_narrowed():
    """One unit in the last place of a float64 is seen, and the largest ones do not overflow."""
    result = one([1 + 2**-52], [1], np.float64)
    huge = one([1.7e308], [-1.7e308], np.float64, atol=["1e300"])

    assert (1, 2**-52, 1) == (result.differing, result.max_abs, result.max_ulp)
    assert (1, math.inf) == (huge.differing, huge.max_abs)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_nothing(shape):
    """Scalars have an empty index, and nothing agrees with nothing."""
    result = one(np.ones(shape), np.zeros(shape))

    assert (math.prod(shape) == 0) is result.agrees
    assert shape == result.shape
    assert result.agrees or (0,) * len(shape) == result.worst.index


def test_any_layout_in_memory_is_the_same():
    """Strides and byte order are not values."""
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for same in (np.asfortranarray(values), values.astype(">f4"), values[::-1][::-1]):
        (result,) = compare({"Y": same}, {"Y": values})
        assert result.agrees


@pytest.mark.parametrize(
    ("sides", "sentences"),
    [
        (
            UNNAMED,
            [
                "expected it, got none",
                "got shape [3, 2], expected [2, 3]",
                "got dtype float64, expected float32",
                "got it, expected none",
            ],
        ),
        (
            Sides(MODEL, "theirs.npz has"),
            [
                "theirs.npz has it, the model gives none",
                "theirs.npz has shape [2, 3], the model gives [3, 2]",
                "theirs.npz has dtype float32, the model gives float64",
                "the model gives it, theirs.npz has none",
            ],
        ),
    ],
)
def test_missing_extra_shape_and_dtype_are_differences(sides, sentences):
    """Each is said in words, in the order wanted, and what nobody wanted comes last."""
    wanted = {"Y": np.zeros(2), "Y_h": np.zeros((2, 3)), "Y_c": np.zeros(2, np.float32)}
    got = {"other": np.zeros(1), "Y_c": np.zeros(2), "Y_h": np.zeros((3, 2))}
    results = compare(got, wanted, sides=sides)

    assert ["Y", "Y_h", "Y_c", "other"] == [each.name for each in results]
    assert sentences == [each.problem for each in results]
    assert not any(each.agrees for each in results)


def test_nothing_compared_with_nothing_is_nothing():
    """No outputs, no findings."""
    assert () == compare({}, {})


def test_tolerances_per_output():
    """A number for one output goes before the number for all."""
    tolerance = Tolerance.parse(atol=["1e-5", "Y_h:1", "a:b:2"], max_ulp=["Y:3"])

    assert (1e-5, 1, 2) == tuple(tolerance.atol.of(name) for name in ("Y", "Y_h", "a:b"))
    assert (3, 0) == (tolerance.max_ulp.of("Y"), tolerance.max_ulp.of("Y_h"))


def test_a_tolerance_for_an_output_without_name():
    """The empty name is a name."""
    assert Bound(0.0, {"": 2.0}) == Bound.parse([":2"])


@pytest.mark.parametrize("text", ["", "abc", "-1", "nan", "inf", "Y:", "Y:abc", "Y:-1", "1e-5:Y"])
def test_what_is_no_tolerance_is_refused(text):
    """The sentence has the text and shows what would be right."""
    with pytest.raises(InvalidRequest, match=rf"tolerance '{text}': write a number >= 0"):
        Bound.parse([text])


@pytest.mark.parametrize("texts", [["1", "2"], ["Y:1", "Y:1"]])
def test_a_tolerance_given_twice_is_refused(texts):
    """Which of the two is meant is not guessed."""
    with pytest.raises(InvalidRequest, match="given twice for the same output"):
        Bound.parse(texts)


def test_a_tolerance_for_an_unknown_output_is_refused():
    """A misspelt name would otherwise tolerate nothing in silence."""
    with pytest.raises(InvalidRequest, match="unknown output 'Y_hh'; did you mean 'Y_h'"):
        compare({"Y_h": np.ones(1)}, {"Y_h": np.ones(1)}, Tolerance.parse(rtol=["Y_hh:1"]))


any_values = hnp.arrays(
    st.sampled_from([np.float16, np.float64, np.int8, np.bool_, np.complex64]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
)


@examples(200)
@given(got=any_values, wanted=any_values, equal_nan=st.booleans())
def test_a_record_is_json(got, wanted, equal_nan):
    """Whatever is compared, the record is strict JSON with every measure."""
    (result,) = compare({"Y": got}, {"Y": wanted}, Tolerance(equal_nan=equal_nan))
    record = json.loads(json.dumps(result.record(), allow_nan=False))

    assert result.agrees is record["agrees"]
    assert list(result.shape) == record["shape"]
    assert {"name", "problem", "differing", "max_abs", "max_rel", "max_ulp", "worst"} <= set(record)


@examples(200)
@given(values=any_values)
def test_everything_equals_itself(values):
    """A tensor compared with itself agrees, if NaN is equal to NaN."""
    (result,) = compare({"Y": values}, {"Y": values.copy()}, Tolerance(equal_nan=True))

    assert result.agrees
    assert result.worst is None
