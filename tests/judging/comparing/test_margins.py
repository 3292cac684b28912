"""Errors beside tolerances, element by element."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.judged import core, vectors_of
from support.tables import every

from rnncli.judging.comparing.margins import MeasuredAttempt, error_map, errors_of, histogram
from rnncli.judging.comparing.verdict import MARGIN_EDGES
from rnncli.numerics import DTYPES

NAN, INF = math.nan, math.inf

# (got, wanted, tolerance), (absolute error, margin)
ELEMENTS = [
    ((1.0, 1.0, 0.0), (0.0, 0.0)),
    ((-0.0, 0.0, 0.0), (0.0, 0.0)),
    ((1.5, 1.0, 0.5), (0.5, 1.0)),
    ((1.5, 1.0, 0.25), (0.5, 2.0)),
    ((2.0**-149, 0.0, 0.0), (2.0**-149, INF)),
    ((NAN, NAN, 0.0), (0.0, 0.0)),
    ((INF, INF, 0.0), (0.0, 0.0)),
    ((-INF, INF, 0.0), (INF, INF)),
    ((NAN, 1.0, 0.5), (INF, INF)),
    ((1.0, NAN, 0.0), (INF, INF)),
    ((INF, 1.0, 0.5), (INF, INF)),
    ((1.0, -INF, 0.0), (INF, INF)),
    ((NAN, INF, 0.0), (INF, INF)),
    ((2.0, 1.0, INF), (1.0, 0.0)),
    ((2.0, 1.0, NAN), (1.0, 0.0)),
    ((INF, 1.0, INF), (INF, INF)),
    ((NAN, 1.0, INF), (INF, INF)),
]


def array(value, dtype="float32"):
    """One element, as outputs have it."""
    return np.full((1, 1, 1), value, DTYPES[dtype].numpy)


@every(("element", "errors"), ELEMENTS)
@every("dtype", ["float32", "float64"])
def test_an_element(element, errors, dtype):
    """Zeros are equal, so are NaN; what is not finite is infinitely far from anything else."""
    got, wanted, tolerance = element

    found = errors_of(array(got, dtype), array(wanted, dtype), array(tolerance))

    assert (found.absolute.item(), found.margin.item()) == errors


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_differences_are_taken_in_float64(dtype):
    """Neighbours far from zero differ, whatever the dtype; nothing is rounded on the way."""
    unit = 2.0 ** (1 - DTYPES[dtype].precision)
    found = errors_of(array(1 + unit, dtype), array(1.0, dtype), array(2.0**-60))

    assert found.absolute.item() == unit
    assert found.margin.item() == unit * 2**60


def test_other_byte_order_is_the_same_number():
    """Results may come from a machine of another kind."""
    got = array(1.5).astype(">f4")

    assert errors_of(got, array(1.5), array(0.0)).margin.item() == 0


POSITIVE = st.floats(1e-300, 1e300)


@given(POSITIVE)
def test_one_step_beyond_the_tolerance_is_beyond_margin_1(tolerance):
    """An error <= tolerance exactly when the quotient, rounded, is at most 1."""
    beyond = array(np.nextafter(tolerance, INF), "float64")
    zero, allowed = array(0.0, "float64"), array(tolerance, "float64")

    assert errors_of(beyond, zero, allowed).margin.item() > 1
    assert errors_of(allowed, zero, allowed).margin.item() == 1


@pytest.mark.parametrize(("steps", "margin"), [(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5)])
def test_units_in_the_last_place_are_allowed_anyway(steps, margin):
    """max_ulp counts where the tolerance is tighter, in every dtype."""
    got = array(1 + steps * 2.0**-10, "float16")

    found = errors_of(got, array(1.0, "float16"), array(0.0), max_ulp=2)

    assert found.margin.item() == margin


@given(hnp.arrays(np.float64, 20, elements=st.floats(0, INF)))
def test_the_histogram_counts_each_margin_once(margin):
    """Bin k has what is at most its edge and above the one before; the last what is beyond."""
    edges = [-1.0, *MARGIN_EDGES, INF]
    counts = [sum(low < value <= high for value in margin) for low, high in pairwise(edges)]

    assert list(histogram(margin)) == counts
    assert sum(counts) == 20


# Y [T, D, N, H], in layout 1 [N, T, D, H]; T 4, N 3, H 5 or so
CASES = ["gru_14_both", "rnn_14_batch_first", "lstm_14_initial"]


def mapped(vector, got):
    """The map of some outputs."""
    return error_map(MeasuredAttempt(vector, got))


@pytest.mark.parametrize("case_id", CASES)
def test_a_wrong_element_is_in_its_row_and_column(case_id):
    """Rows are the steps of the first direction, then of the second, in either layout."""
    vector = core()[case_id]
    Y = vector.answers.outputs["Y"]
    batch_first = vector.record.requirements.layout
    for index in np.ndindex(Y.shape):
        n, t, d, u = index if batch_first else (index[2], index[0], index[1], index[3])
        tolerance = vector.answers.tolerances["Y"][index]
        got = {name: values.copy() for name, values in vector.answers.outputs.items()}
        got["Y"][index] += 1
        found = np.array(mapped(vector, got))

        T = Y.shape[1 if batch_first else 0]
        D = Y.shape[2 if batch_first else 1]
        assert found.shape == (D * T, Y.shape[3])
        assert np.argwhere(found).tolist() == [[d * T + t, u]], n
        if tolerance:
            assert found.max() == pytest.approx(1 / tolerance, rel=1e-6)
        else:
            assert np.isinf(found.max())


def test_last_states_have_a_row_for_each_direction():
    """Where Y is right or absent, the first output that differs is shown."""
    vector = core()["gru_14_both"]
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    got["Y_h"][1, 2, 3] += 1

    found = np.array(mapped(vector, got))

    assert found.shape == got["Y_h"].shape[::2]
    assert np.argwhere(found).tolist() == [[1, 3]]


def test_long_and_wide_outputs_are_condensed():
    """At most 64 x 64, and no error is lost on the way."""
    (vector,) = vectors_of(
        "{op: RNN-14, sizes: {seq_length: 150, batch_size: 2, input_size: 2, hidden_size: 70}}"
    )
    for t, u in ((0, 0), (149, 69), (77, 33)):
        got = {name: values.copy() for name, values in vector.answers.outputs.items()}
        got["Y"][t, 0, 1, u] += 1
        found = np.array(mapped(vector, got))

        assert found.shape == (64, 64)
        ((row, column),) = np.argwhere(found)
        assert abs(row - t * 64 / 150) <= 1
        assert abs(column - u * 64 / 70) <= 1
