"""Entries made side by side: each as if it were alone, right or wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import ConfigError, InvalidRequest
from rnncli.generating import production
from rnncli.generating.goldens import groups
from rnncli.generating.production import make_vectors
from rnncli.packs.case_folder import packed
from rnncli.packs.conversion import with_model

SUITE = """
suite: twins
summary: Cases of few structures, each with many inputs.
golden: {golden}
cases:
  twin:
    sizes: {{seq_length: 4, batch_size: 3, input_size: 2, hidden_size: 3}}
    inputs: {{B: uniform, sequence_lens: {lengths}, initial_h: uniform, X: {X}}}
    attributes: {{clip: 0.5, direction: bidirectional}}
    matrix:
      op: [RNN-14, GRU-14, LSTM-14]
      dtype: [float32, float64]
      weights: [inputs, initializers]
      inputs: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}, e: {{}}}}
"""


def entries(golden="float64", lengths="lengths", X="normal"):
    """The cases of a suite of a dozen structures."""
    text = SUITE.format(golden=golden, lengths=lengths, X=X)
    return parse_suite(text, "twins.yaml", Path()).entries


@pytest.mark.parametrize("golden", ["float64", "certified"])
def test_what_is_made_together_is_what_is_made_alone(golden):
    """Every file and every word of the manifest, tolerances and other readings included."""
    found = entries(golden)

    together = [packed(vector) for vector in make_vectors(found)]

    assert len(groups(found)) == 12
    assert together == [packed(vector) for entry in found for vector in make_vectors([entry])]
    assert any(record.alternatives for record, _ in together)


def test_twins_have_other_inputs():
    """Every random tensor is that of its own case."""
    first, second, *_ = make_vectors(entries()[:5])

    for name in ("X", "W", "R", "B", "initial_h"):
        assert not np.array_equal(first.inputs[name], second.inputs[name])


def test_one_that_fails_fails_alone(monkeypatch):
    """Its group is made without it; the sentence names it and no other."""
    found = entries()[:5]
    bad = next(iter(make_vectors([found[2]]))).answers.outputs["Y"]
    monkeypatch.setattr(
        production,
        "well_conditioned",
        lambda wanted, _: np.array([w.tobytes() != bad.tobytes() for w in wanted]),
    )

    outcomes = list(make_vectors(found))

    assert isinstance(outcomes.pop(2), InvalidRequest)
    assert [vector.id for vector in outcomes] == [e.id for e in found if e is not found[2]]


def test_why_a_case_cannot_be_made_names_it():
    """Of a whole group each, where each is too sensitive to judge anybody."""
    found = [entry for entry in entries(X="{normal: [0, 5.0e+37]}") if "float32" in entry.id]
    spoilt = [replace(entry, profile="exact") for entry in found]

    for entry, outcome in zip(spoilt, make_vectors(spoilt), strict=True):
        assert isinstance(outcome, InvalidRequest)
        assert str(outcome).startswith(f"{entry.id}: profile 'exact': ")


def test_what_is_wrong_with_the_text_is_said_of_every_case():
    """Each has the finding with its place."""
    for outcome in make_vectors(entries(lengths="[1, 9, 2]")[:5]):
        assert isinstance(outcome, ConfigError)
        assert "must be between 0 and seq_length = 4, got 9" in str(outcome)


EMPTY = """
suite: empty
summary: One node, written in two ways.
golden: float64
cases:
  ends:
    op: GRU-14
    sizes: {seq_length: 1, batch_size: 1, input_size: 1, hidden_size: 1}
    empty_names: %s
"""


@pytest.mark.parametrize(
    ("written", "names"), [("true", ["X", "W", "R", "", "", ""]), ("false", ["X", "W", "R"])]
)
def test_inputs_left_out_at_the_end_have_empty_names_where_a_case_says_so(written, names):
    """In the model, in its record, and in a model that is made of the record."""
    (vector,) = make_vectors(parse_suite(EMPTY % written, "empty.yaml", Path()).entries)
    again = with_model(replace(vector, model=b""))

    assert list(onnx.ModelProto.FromString(vector.model).graph.node[0].input) == names
    assert (vector.record.empty_names is True) == (written == "true")
    assert again.model == vector.model


OPEN = """\
suite: open
summary: A model as it is exported.
golden: float64
cases:
  sizes:
    op: LSTM-14
    sizes: {seq_length: 4, batch_size: 3, input_size: 2, hidden_size: 5}
    attributes: {layout: %d}
    inputs: {sequence_lens: lengths, initial_h: ones}
    outputs: [Y, Y_h]
    open_sizes: true
"""


def declared(model):
    """The shapes that a model declares, by name."""
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }


@pytest.mark.parametrize("layout", [0, 1])
def test_steps_and_batch_have_names_where_a_case_says_so(layout):
    """In both layouts; a session of ONNX Runtime then takes other sizes, too."""
    (vector,) = make_vectors(parse_suite(OPEN % layout, "open.yaml", Path()).entries)
    again = with_model(replace(vector, model=b""))
    T, N = "seq_length", "batch_size"

    assert again.model == vector.model
    assert vector.record.open_sizes is True
    assert declared(onnx.ModelProto.FromString(vector.model)) == {
        "X": [N, T, 2] if layout else [T, N, 2],
        "W": [1, 20, 2],
        "R": [1, 20, 5],
        "sequence_lens": [N],
        "initial_h": [N, 1, 5] if layout else [1, N, 5],
        "Y": [N, T, 1, 5] if layout else [T, 1, N, 5],
        "Y_h": [N, 1, 5] if layout else [1, N, 5],
    }


def test_only_models_of_onnx_have_open_sizes():
    """OpenVINO's and WebNN's are written with their sizes."""
    with pytest.raises(ConfigError, match="models of WebNN have sizes: 'open_sizes' is for ONNX"):
        parse_suite(EMPTY.replace("GRU-14", "webnn.gru") % "true\n    open_sizes: true", "", Path())


UNREQUESTED = """\
suite: unrequested
summary: With one step, another scope of clip changes Y_h and not Y_c.
cases:
  case:
    op: LSTM-14
    sizes: {seq_length: 1, batch_size: 2, input_size: 2, hidden_size: 3}
    attributes: {clip: 0.5}
    inputs: {initial_c: {normal: [0, 4]}}
    matrix: {outputs: [{h: [Y_h]}, {c: [Y_c]}]}
"""


def test_a_reading_counts_where_it_changes_what_is_requested():
    """Equal answers under two readings are damage to whoever reads the pack."""
    found = {each.id: each for each in make_vectors(parse_suite(UNREQUESTED, "", Path()).entries)}

    assert [*found["lstm_14_case_h"].alternatives] == ["clip-scope=gates"]
    assert not found["lstm_14_case_c"].alternatives
