"""Errors that no element shows: kernels that lean one way are named, and sound ones are not."""

import numpy as np
import pytest
from support.biased_kernels import BIASED, biased, leans
from support.judged import core
from support.sound_variants import VARIANTS, cases_of

import rnncli
from rnncli.judging.comparing.bias import FEWEST_CALLS, biases_of
from rnncli.judging.comparing.verdict import MeanError
from rnncli.subjects.implementation import Implementation

CORE = "vectors/core"
FLOAT32 = rnncli.Selected(require="dtype=float32")


def means(*outward):
    """Calls in float32 with these mean errors away from zero, and none up."""
    return [("float32", MeanError(each, 0.0)) for each in outward]


@pytest.mark.parametrize(
    ("outward", "toward", "said"),
    [
        ([0.02, 0.04] * 10, "away from zero", True),
        ([-0.02, -0.04] * 10, "toward zero", True),
        ([0.02, 0.04, -0.03] * 20, "away from zero", False),  # some lean, others do not
        ([0.002, 0.004] * 500, "away from zero", False),  # as functions of sound kernels do
        ([-0.002, 0.003] * 45 + [1.0] * 5, "away from zero", False),  # few calls are outliers
        ([0.0] * 20, "toward zero", False),
    ],
)
def test_a_bias_is_sure_and_large(outward, toward, said):
    """Many standard errors beyond what functions cause, in many calls."""
    first, _ = biases_of(means(*outward))

    assert (first.toward, first.excess > 5, first.of) == (toward, said, len(outward))


def test_the_numbers_are_those_of_the_page():
    """The mean and its standard error with one of 20 calls at each end taken for the next one."""
    outward = [-9.0, -0.01, *[0.01, 0.03] * 9]
    clipped = [-0.01, *outward[1:-1], 0.03]
    error = np.std(clipped, ddof=1) / np.sqrt(20)
    first, second = biases_of(means(*outward))

    assert first.mean == pytest.approx(np.mean(clipped))
    assert first.z == pytest.approx(np.mean(clipped) / error)
    assert first.excess == pytest.approx((np.mean(clipped) - 0.004) / error)
    assert (first.calls, second.mean, second.z, second.excess) == (18, 0, 0, 0)


def test_too_few_calls_say_nothing():
    """Whatever they are."""
    assert [*biases_of(means(*[0.03, 0.04] * FEWEST_CALLS)[: FEWEST_CALLS - 1])] == []


@pytest.mark.parametrize("name", ["term by term", "functions off by 1 unit", "tanh by exp"])
def test_a_sound_kernel_is_not_biased(name):
    """Its errors lean less than functions may, or by chance; `tanh by exp` fails three cases."""
    found, _ = leans(VARIANTS[name], cases_of(name, core().values()))

    assert [bias.sentence for bias in found if bias.excess > 5] == []


@pytest.mark.parametrize(
    ("name", "dtype", "toward"),
    [
        ("states truncated by 1 bit", "float32", "toward zero"),
        ("sums rounded down", "float32", "down"),
        ("weights * (1 + 3e-7)", "float32", "away from zero"),
        ("functions 1 ulp too large", "float32", "up"),
        ("16-bit results truncated", "float16", "toward zero"),
        ("16-bit results truncated", "bfloat16", "toward zero"),
    ],
)
def test_a_biased_kernel_is_named_and_no_case_fails_it(name, dtype, toward):
    """The direction of its errors over the pack, of which each is within its tolerance."""
    found, failing = leans(biased(name), core().values())

    said = {(bias.dtype, bias.toward) for bias in found if bias.excess > 5}
    assert (dtype, toward) in said
    assert failing == 0


@pytest.mark.parametrize(
    ("name", "max_bias", "code"),
    [
        ("states truncated by 1 bit", None, 0),
        ("states truncated by 1 bit", 5, 1),
        ("states truncated by 1 bit", 20, 0),
        ("term by term", 5, 0),
    ],
)
def test_verify_reports_a_bias_and_fails_where_asked(name, max_bias, code):
    """Every case passes; `--max-bias` makes it a failure of the run."""
    function = VARIANTS[name] if name in VARIANTS else biased(name)
    report = rnncli.verify(
        CORE, Implementation(function=function), cases=FLOAT32, max_bias=max_bias
    )

    assert (report.total.fails, report.exit_code) == (0, code)
    is_said = name in BIASED and max_bias != 20
    fails = f": fails, since --max-bias is {max_bias}" if max_bias else ""
    sentence = (
        "biased: errors in float32 lean toward zero, by 0.017 of the tolerance in the mean, in 132"
        f" of 142 calls (z = -17.6, 13.4 of it beyond what sound functions cause){fails}"
    )
    assert [line for line in str(report).splitlines() if "biased" in line] == [sentence] * is_said


def test_a_run_that_measures_no_bias_does_not_pass_where_asked():
    """Too few calls of each dtype."""
    function = Implementation(function=lambda vector: vector.answers.outputs)
    some = rnncli.Selected(select="id:lstm_14_peepholes")
    report = rnncli.verify(CORE, function, cases=some, max_bias=5)

    assert (report.exit_code, report.shortfall) == (
        5,
        "no dtype has 20 calls to judge a bias by, which --max-bias requires",
    )
