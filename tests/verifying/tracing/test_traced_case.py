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


LENGTHS = {"sequence_lens.given", "sequence_lens.shape", "x.padding", "y_h.last"}
LEAKY = "activations: [LeakyRelu]"
POSITIVE = "{X: {uniform: [1, 2]}, W: {uniform: [0, 1]}, R: {uniform: [0, 0.1]}}"
SHORT = "activations: [HardSigmoid, LeakyRelu], activation_alpha: [0.25]"
# A case -> its operator and keys, statements that it checks, and statements that it does not.
CHECKS = {
    **{
        f"that clip is written is not enough, {op}": (
            (op, {"attributes": "{clip: 64}"}),
            {"clip.within"},
            {"clip.bounds", "clip.preactivations", "clip.default"},
        )
        for op in ("RNN-14", "GRU-14", "LSTM-14")
    },
    **{
        f"a pre-activation is beyond the clip, {op}": (
            (op, {"attributes": "{clip: 0.25}"}),
            {"clip.bounds", "clip.preactivations"},
            {"clip.within", "clip.default"},
        )
        for op in ("RNN-14", "GRU-14", "LSTM-14")
    },
    "full lengths need not be read": (
        ("RNN-14", {"inputs": "{sequence_lens: [3, 3]}"}),
        set(),
        {*LENGTHS, "sequence_lens.default"},
    ),
    "ragged lengths must be": (
        ("RNN-14", {"inputs": "{sequence_lens: [3, 1]}"}),
        LENGTHS,
        {"sequence_lens.default"},
    ),
    "padding of zeros cannot be seen": (
        ("RNN-14", {"inputs": "{sequence_lens: [3, 1], X: zeros, B: uniform}"}),
        set(),
        {"x.padding"},
    ),
    "a given alpha is no default": (
        ("RNN-14", {"attributes": f"{{{LEAKY}, activation_alpha: [0.25]}}"}),
        {"alpha.given"},
        {"alpha.default.leakyrelu"},
    ),
    "a default that is used is no given alpha": (
        ("RNN-14", {"attributes": f"{{{LEAKY}}}", "inputs": "{X: {normal: [0, 3]}}"}),
        {"alpha.default.leakyrelu"},
        {"alpha.given"},
    ),
    "values are consumed in order, so it is the last function that has none": (
        ("RNN-14", {"attributes": f"{{direction: bidirectional, {SHORT}}}"}),
        {"alpha.default.leakyrelu"},
        {"alpha.default.hardsigmoid"},
    ),
    "Relu of positive numbers is the identity": (
        ("RNN-14", {"attributes": "{activations: [Relu]}", "inputs": POSITIVE}),
        set(),
        {"functions.relu"},
    ),
    "Relu of others is not": (
        ("RNN-14", {"attributes": "{activations: [Relu]}"}),
        {"functions.relu"},
        set(),
    ),
    "the clip of h's input makes no difference": (
        ("LSTM-14", {"attributes": "{clip: 2}"}),
        set(),
        {"clip.hidden"},
    ),
    "the clip of h's input makes one": (
        ("LSTM-14", {"attributes": "{clip: 0.5}", "inputs": "{initial_c: {normal: [0, 3]}}"}),
        {"clip.hidden"},
        set(),
    ),
    "LSTM-7 has no layout, whose default would else be seen": (
        ("LSTM-7", {}),
        {"version-7"},
        {"layout.default", "version-1", "version-14", "version-22"},
    ),
    "LSTM-14 has one": (("LSTM-14", {}), {"layout.default"}, {"version-7"}),
}


@pytest.mark.parametrize(("asked", "seen", "unseen"), CHECKS.values(), ids=CHECKS)
def test_a_case_checks_what_it_exercises(asked, seen, unseen):
    """What an implementation could leave out and still be right is not checked."""
    op, keys = asked
    found = checked(op, **keys)

    assert seen <= found
    assert not unseen & found


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


QUANTISED = {"weights": "initializers", "attributes": "{hidden_size: 5}"}


@pytest.mark.parametrize(
    ("op", "keys", "broken", "statement"),
    [
        # It computes nothing.
        ("RNN-14", {"attributes": "{clip: 2}"}, "attributes: {clip: -1}", "clip.refused"),
        # Which of the two was refused nobody could say.
        ("RNN-14", {}, "attributes: {hidden_size: 4}", "hidden_size.refused"),
        # What a node must refuse may be of any type.
        ("RNN-14", {}, "attributes: {activations: 3}", "activations.refused-count"),
        ("RNN-14", {}, "attributes: {activations: Tanh}", "activations.refused-count"),
        ("RNN-14", {}, "attributes: {layout: x}", "layout.refused"),
        ("RNN-14", {}, "attributes: {direction: 2}", "direction.refused"),
        ("RNN-14", {}, "attributes: {hidden_size: x}", "hidden_size.refused"),
        ("RNN-14", {}, "attributes: {clip: x}", "clip.refused"),
        # Its bytes have two types, and its R has units along another axis than that of LSTM.
        ("DynamicQuantizeLSTM-1", QUANTISED, "dtypes: {R: uint8}", "types.refused-r"),
        ("DynamicQuantizeLSTM-1", QUANTISED, "shapes: {R: [1, 5, 24]}", "r.refused-shape"),
        ("DynamicQuantizeLSTM-1", QUANTISED, "attributes: {hidden_size: 4}", "hidden_size.refused"),
        ("DynamicQuantizeLSTM-1", QUANTISED, "attributes: {clip: -1}", "clip.refused"),
    ],
)
def test_what_must_be_refused_checks_the_refusal_of_what_is_broken_alone(
    op, keys, broken, statement
):
    """Like any other attribute, shape or type."""
    assert checked(op, **keys, breaks=f"{{{broken}}}") == {statement}


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
