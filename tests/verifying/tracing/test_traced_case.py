"""Claims about what checks a statement: to mention a feature is not to exercise it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_entries
from support.judged import core

from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidOperator, UnreadableFile
from rnncli.generating.production import make_vectors
from rnncli.verifying.tracing.conditions import TracedCase
from rnncli.verifying.tracing.tracing import trace_of

TEXT = """\
suite: claims
summary: One case.
golden: float64
cases:
  one:
    op: {op}
    sizes: {{seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 5}}
{rest}
"""


def vector(op, **keys):
    """The vector of one case."""
    rest = "\n".join(f"    {key}: {value}" for key, value in keys.items())
    (entry,) = parse_suite(TEXT.format(op=op, rest=rest), "claims.yaml", Path()).entries
    (made,) = make_vectors([entry])
    if isinstance(made, Exception):
        raise made
    return made


def checked(op, **keys):
    """The names of the statements that a case checks, without the operator."""
    found = trace_of(vector(op, **keys)).found
    return {id_.partition(".")[2] for id_ in found}


@pytest.mark.parametrize("op", ["RNN-14", "GRU-14", "LSTM-14"])
def test_a_clip_that_nothing_reaches_checks_nothing(op):
    """That clip is written is not enough: a pre-activation must be beyond it."""
    far = checked(op, attributes="{clip: 64}")
    near = checked(op, attributes="{clip: 0.25}")

    names = {"clip.bounds", "clip.preactivations", "clip.default"}
    assert names & far == set()
    assert names & near == {"clip.bounds", "clip.preactivations"}
    assert ("clip.within" in far, "clip.within" in near) == (True, False)


def test_full_lengths_check_no_lengths():
    """An implementation that does not read them would pass."""
    full = checked("RNN-14", inputs="{sequence_lens: [3, 3]}")
    ragged = checked("RNN-14", inputs="{sequence_lens: [3, 1]}")

    names = {"sequence_lens.given", "sequence_lens.shape", "x.padding", "y_h.last"}
    assert names & full == set()
    assert names <= ragged
    assert "sequence_lens.default" not in full | ragged


def test_padding_of_zeros_checks_no_padding():
    """What is not there cannot be seen."""
    zeros = "{sequence_lens: [3, 1], X: zeros, B: uniform}"

    assert "x.padding" not in checked("RNN-14", inputs=zeros)


def test_a_given_alpha_checks_no_default():
    """And a default that is used, no given one."""
    given = checked("RNN-14", attributes="{activations: [LeakyRelu], activation_alpha: [0.25]}")
    default = checked(
        "RNN-14", attributes="{activations: [LeakyRelu]}", inputs="{X: {normal: [0, 3]}}"
    )

    assert ("alpha.given" in given, "alpha.default.leakyrelu" in given) == (True, False)
    assert ("alpha.given" in default, "alpha.default.leakyrelu" in default) == (False, True)


def test_a_list_that_is_shorter_than_its_takers_leaves_defaults():
    """Values are consumed in order, so it is the last function that has none."""
    both = "direction: bidirectional, activations: [HardSigmoid, LeakyRelu]"
    found = checked("RNN-14", attributes=f"{{{both}, activation_alpha: [0.25]}}")

    assert "alpha.default.leakyrelu" in found
    assert "alpha.default.hardsigmoid" not in found


def test_a_function_that_stays_on_one_side_is_not_checked():
    """Relu of positive numbers is the identity."""
    positive = "{X: {uniform: [1, 2]}, W: {uniform: [0, 1]}, R: {uniform: [0, 0.1]}}"
    relu = "{activations: [Relu]}"

    assert "functions.relu" not in checked("RNN-14", attributes=relu, inputs=positive)
    assert "functions.relu" in checked("RNN-14", attributes=relu)


def test_a_gate_is_checked_term_by_term():
    """A case without biases notices the products of a gate, and not its biases."""
    without = trace_of(vector("GRU-14")).found["gru.equations.z"]
    biased = trace_of(vector("GRU-14", inputs="{B: uniform}")).found["gru.equations.z"]

    assert "input-product-of-z-dropped" in without
    assert not any("bias" in name for name in without)
    assert {"input-bias-of-z-dropped", "recurrent-bias-of-z-dropped"} <= set(biased)


def test_one_step_from_zero_checks_no_recurrence():
    """Ht-1 is zero: nothing is multiplied by R."""
    found = trace_of(vector("LSTM-14", inputs="{sequence_lens: ones}")).found

    assert not any("recurrent" in name for name in found["lstm.equations.i"])
    assert "lstm.equations.transpose" not in found


def test_the_other_reading_is_another_answer():
    """The clip of h's input is checked where it makes a difference."""
    inside = checked("LSTM-14", attributes="{clip: 2}")
    beyond = checked("LSTM-14", attributes="{clip: 0.5}", inputs="{initial_c: {normal: [0, 3]}}")

    assert ("clip.hidden" in inside, "clip.hidden" in beyond) == (False, True)


def test_statements_of_other_versions_are_not_checked():
    """LSTM-7 has no layout, whose default would else be seen."""
    assert "layout.default" not in checked("LSTM-7")
    assert "layout.default" in checked("LSTM-14")
    assert {"version-7"} == {name for name in checked("LSTM-7") if name.startswith("version")}


def test_what_must_be_refused_checks_refusals_alone():
    """It computes nothing."""
    found = checked("RNN-14", attributes="{clip: 2}", breaks="{attributes: {clip: -1}}")

    assert found == {"clip.refused"}


def test_two_things_broken_check_neither():
    """Which of the two was refused nobody could say."""
    broken = "{attributes: {hidden_size: 4}}"

    assert checked("RNN-14", breaks=broken) == {"hidden_size.refused"}


@pytest.mark.parametrize(
    ("broken", "statement"),
    [
        ("activations: 3", "activations.refused-count"),
        ("activations: Tanh", "activations.refused-count"),
        ("layout: x", "layout.refused"),
        ("direction: 2", "direction.refused"),
        ("hidden_size: x", "hidden_size.refused"),
        ("clip: x", "clip.refused"),
    ],
)
def test_an_attribute_of_a_wrong_type_is_broken_like_any_other(broken, statement):
    """What a node must refuse may be anything."""
    assert checked("RNN-14", breaks=f"{{attributes: {{{broken}}}}}") == {statement}


@pytest.mark.parametrize(
    ("broken", "statement"),
    [
        ("dtypes: {R: uint8}", "types.refused-r"),
        ("shapes: {R: [1, 5, 24]}", "r.refused-shape"),
        ("attributes: {hidden_size: 4}", "hidden_size.refused"),
        ("attributes: {clip: -1}", "clip.refused"),
    ],
)
def test_what_is_broken_of_a_quantised_node_is_told_apart(broken, statement):
    """Its bytes have two types, and its R has units along another axis than that of LSTM."""
    given = {"weights": "initializers", "attributes": "{hidden_size: 5}"}

    assert checked("DynamicQuantizeLSTM-1", **given, breaks=f"{{{broken}}}") == {statement}


@pytest.mark.parametrize("kills", [[], ["peepholes-dropped", "clip-ignored", "lengths-ignored"]])
def test_kills_that_a_manifest_claims_are_not_believed(kills):
    """Every violation is put to the case: a pack may come from anybody."""
    plain = core()["lstm_7_plain"]
    claiming = replace(plain, record=with_entries(plain.record, kills=kills))

    assert trace_of(claiming) == trace_of(plain)


def test_a_case_that_should_run_and_is_invalid_is_refused():
    """A pack may come from anybody."""
    good = vector("RNN-14")
    bad = replace(good, inputs={**good.inputs, "W": good.inputs["W"][:, :2]})

    with pytest.raises(InvalidOperator, match="W must be"):
        trace_of(bad)


@pytest.mark.parametrize("model", [b"\xff\xff\xff", b"\x08\x07"])
def test_a_model_that_is_no_node_is_refused(model):
    """Its node says which names are empty."""
    with pytest.raises(UnreadableFile, match="model"):
        trace_of(replace(vector("RNN-14"), model=model))


def test_names_of_the_node_are_read_from_its_model():
    """The manifest does not have the empty ones."""
    case = TracedCase(vector("LSTM-14", inputs="{initial_c: normal}", outputs="[Y_c]"))

    assert case.node_inputs == ["X", "W", "R", "", "", "", "initial_c"]
    assert case.node_outputs == ["", "", "Y_c"]
    assert {"inputs.empty-name", "inputs.end-early", "outputs.empty-name"} <= checked(
        "LSTM-14", inputs="{initial_c: normal}", outputs="[Y_c]"
    )
