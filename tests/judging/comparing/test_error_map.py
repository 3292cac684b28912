"""Where in time and among the units an output is wrong."""

import numpy as np
import pytest
from judged import core, vectors_of

from rnncli.judging.comparing.error_map import error_map
from rnncli.judging.comparing.margins import MeasuredAttempt

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
    batch_first = vector.record["requirements"]["layout"]
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
