"""Claims about ids of captures: fit for every file system, stable, and all different."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnncli.cases.suite.suite import LONGEST_ID
from rnncli.generating.extraction import Capture, ids_of, slug


def capture(node, number, *path):
    """A capture of which only the name matters."""
    described = SimpleNamespace(operator=SimpleNamespace(type="LSTM"))
    return Capture(SimpleNamespace(node=described), ("graph", *path), node, number)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("LSTM_3", "lstm_3"),
        ("/model/rnn/LSTM", "model_rnn_lstm"),
        ("StatefulPartitionedCall/lstm[0]:1", "statefulpartitionedcall_lstm_0_1"),
        ("..\\..\\etc/passwd", "etc_passwd"),
        ("слой", ""),
        ("", ""),
        ("a" * 500 + "/the_end", "a" * 104 + "_the_end"),
    ],
)
def test_slugs(name, wanted):
    """Small letters, digits and underscores; of a long name the end."""
    assert slug(name) == wanted


def test_later_executions_are_numbered():
    """The first is called as its node."""
    captures = [capture(0, 1, "rnn"), capture(0, 2, "rnn"), capture(0, 7, "rnn")]

    assert ids_of(captures) == ["rnn", "rnn_2", "rnn_7"]


def test_a_second_node_of_a_name_has_its_place():
    """And a number where that is the same, too."""
    captures = [
        capture(0, 1, "rnn"),
        capture(1, 1, "If_3.then_branch", "rnn"),
        capture(2, 1, "If_3.then_branch", "rnn"),
    ]
    place = "graph_if_3_then_branch_rnn"

    assert ids_of(captures) == ["rnn", place, f"{place}_2"]


def test_a_node_called_like_an_execution_keeps_its_name():
    """The execution gives way."""
    captures = [capture(0, 1, "rnn"), capture(0, 2, "rnn"), capture(1, 1, "rnn_2")]

    assert ids_of(captures) == ["rnn", "rnn_2_2", "rnn_2"]


def test_a_name_without_letters_is_the_operators():
    """A folder needs a name."""
    assert ids_of([capture(0, 1, "слой"), capture(1, 1, "::")]) == ["lstm", "lstm_2"]


NAMES = st.text(max_size=300) | st.sampled_from(["rnn", "RNN", "rnn_2", "rnn_2_2", "graph_rnn", ""])


@given(st.lists(st.tuples(NAMES, st.sets(st.integers(1, 9), min_size=1)), max_size=8))
def test_all_are_different_and_short(nodes):
    """Whatever the nodes are called."""
    captures = [
        capture(k, number, name)
        for k, (name, numbers) in enumerate(nodes)
        for number in sorted(numbers)
    ]
    ids = ids_of(captures)

    assert len(set(ids)) == len(captures)
    assert all(0 < len(case_id) <= LONGEST_ID for case_id in ids)
    assert all(case_id == slug(case_id) for case_id in ids)
