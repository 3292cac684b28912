"""Inputs of later calls: other than the first call's, and the first call's as they always were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_suite import small_suite

from rnncli.cases.case import key_of
from rnncli.cases.suite.suite import suite_findings
from rnncli.errors import ConfigError

ONE = """\
suite: one
summary: One case.
seed: 3
cases:
  case:
    op: GRU-14
    sizes: {{seq_length: {T}, batch_size: {N}, input_size: 2, hidden_size: 3}}
    inputs: {{sequence_lens: {lengths}, B: uniform, initial_h: {initial}}}
    calls: {calls}
"""


def inputs(call, lengths="lengths", *, T=5, N=3, initial="uniform", calls=2):
    """The inputs of a call of the one case."""
    text = ONE.format(lengths=lengths, T=T, N=N, initial=initial, calls=calls)
    (entry,) = small_suite(text).entries
    return {name: stack[0] for name, stack in entry.case().stacked([entry.id], call).items()}


def test_the_first_call_is_what_a_case_of_one_call_is():
    """To the last bit."""
    alone = inputs(0, calls=1)

    for name, values in inputs(0).items():
        assert values.tobytes() == alone[name].tobytes()


def test_every_input_is_another():
    """Of the same shape and dtype."""
    first, second = inputs(0), inputs(1)

    for name, values in first.items():
        assert second[name].shape == values.shape
        assert second[name].dtype == values.dtype
        assert second[name].tobytes() != values.tobytes()


@given(T=st.integers(2, 9), N=st.integers(1, 9))
def test_lengths_of_the_fill_are_others(T, N):
    """Whatever the sizes, from 1 to T, in the order the second call has them."""
    first, second = (inputs(call, T=T, N=N)["sequence_lens"] for call in (0, 1))

    assert first.tolist() != second.tolist()
    assert second.min() >= 1
    assert second.max() <= T


@pytest.mark.parametrize(
    ("lengths", "again"),
    [("[2, 4, 1]", [1, 4, 2]), ("[2, 4, 2]", [2, 2, 4]), ("[3, 3, 3]", [3, 3, 3])],
)
def test_lengths_that_are_given_are_turned_around(lengths, again):
    """Reversed; moved on by one where that is the same; the same where no order is another."""
    assert inputs(1, lengths)["sequence_lens"].tolist() == again


def test_what_depends_on_no_key_is_turned_around():
    """A ramp falls where it rose."""
    first, second = (inputs(call, initial="ramp")["initial_h"] for call in (0, 1))

    assert np.array_equal(first.ravel(), second.ravel()[::-1])


def test_keys_of_calls_are_those_of_no_case():
    """No id has a slash."""
    assert key_of("a", 0) == "a"
    assert key_of("a", 1) == "a/1"


@pytest.mark.parametrize("calls", ["0", "3", "-1", "1000000000", "2.0", "true", "two"])
def test_other_numbers_of_calls_are_refused(calls):
    """One or two."""
    with pytest.raises(ConfigError, match="'calls' must be an integer from 1 to 2"):
        inputs(0, calls=calls)


def test_a_case_that_must_be_refused_has_one_call(tmp_path):
    """There is nothing that a second one could be compared with."""
    text = ONE.format(T=3, N=2, lengths="null", initial="null", calls=2)
    text += "    breaks: {drop: [W]}\n"
    (finding,) = suite_findings(text, "one.yaml", tmp_path)

    assert "must be refused has no results that 'calls' could be about" in finding[1]


SHAPES = """\
suite: shapes
summary: One case whose later calls have sizes of their own.
cases:
  case:
    op: GRU-14
    open_sizes: true
    sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 3}
    inputs: {sequence_lens: [1, 3], initial_h: uniform}
    calls: [{sizes: {seq_length: 5, batch_size: 4}, inputs: {sequence_lens: [0, 5, 0, 2]}}, LATER]
"""
LATER = "{sizes: {batch_size: 1}, inputs: {sequence_lens: lengths}}"


def test_a_later_call_has_the_sizes_and_the_inputs_that_it_is_given():
    """What it does not name is the first call's, and is filled for the sizes there are."""
    (entry,) = small_suite(SHAPES.replace("LATER", LATER)).entries
    first, cases = entry.case(), [entry.case(call) for call in range(entry.calls)]
    made = [case.stacked([entry.id], call, first) for call, case in enumerate(cases)]

    assert [each["X"].shape for each in made] == [(1, 3, 2, 2), (1, 5, 4, 2), (1, 3, 1, 2)]
    assert [each["initial_h"].shape[2] for each in made] == [2, 4, 1]
    assert [each["sequence_lens"][0].tolist() for each in made] == [[1, 3], [0, 5, 0, 2], [3]]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (LATER, "{sizes: {hidden_size: 4}}", "and 'hidden_size' is the model's"),
        (LATER, "{attributes: {clip: 1}}", "unknown key 'attributes'"),
        (LATER, "{inputs: [1]}", "'inputs' of a later call of case 'case' must be a mapping"),
        (LATER, "{inputs: {h0: uniform}}", "unknown input 'h0'"),
        (LATER, "{inputs: {initial_h: null}}", "call 3 must have the inputs of the first"),
        (LATER, "{inputs: {B: uniform}}", "call 3 must have the inputs of the first"),
        (LATER, "{inputs: {sequence_lens: [4, 1]}}", "sequence_lens"),
        (LATER, "3", "a later call of case 'case' must be a mapping"),
        ("open_sizes: true", "open_sizes: false", "which 'open_sizes: true' allows"),
    ],
)
def test_what_a_session_cannot_be_asked_is_found(old, new, words, tmp_path):
    """Its model has weights, attributes and inputs, and sizes unless they are open."""
    text = SHAPES.replace(old, new).replace("LATER", LATER)
    found = suite_findings(text.replace(old, new), "shapes.yaml", tmp_path)

    assert any(words in sentence for _, sentence in found), found


def test_a_key_that_a_later_call_lacks_is_told_once(tmp_path):
    """It is not also taken for a section."""
    text = SHAPES.replace("LATER", "{size: {}}")
    found = suite_findings(text, "shapes.yaml", tmp_path)

    assert [sentence for _, sentence in found] == ["unknown key 'size'; did you mean 'sizes'?"]
