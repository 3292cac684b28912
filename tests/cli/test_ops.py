"""`rnncli ops`, `backends` and `formats`."""

from __future__ import annotations

import json

from support.tables import every

from rnncli.operators import OPERATORS
from rnncli.recurrence import quantisation
from rnncli.recurrence.readings import READINGS


def test_every_operator_is_listed(rnncli):
    """One line for each row, in a pipe tab-separated."""
    assert [row["operator"] for row in rnncli("ops").rows] == list(OPERATORS)


@every("name", OPERATORS)
def test_page_shows_everything_of_the_row(rnncli, name):
    """Inputs, outputs, attributes, equations, activations and readings are all on the page."""
    row, page = OPERATORS[name], rnncli("ops", name).out
    tensors = [tensor.name for tensor in (*row.inputs, *row.outputs)]
    choices = [
        f"{reading}={choice}" for reading in row.readings for choice in READINGS[reading].choices
    ]

    activations = (
        row.activations if row.dialect.startswith("ONNX") else map(str.lower, row.activations)
    )
    for word in (*tensors, *row.attributes, *activations, *row.dtypes, *choices):
        assert word in page
    assert all(
        line.partition("   or 1 - it")[0] in page for line in row.cell.equations.splitlines()
    )
    assert row.quantised == all(line in page for line in quantisation.EQUATIONS.splitlines())


@every("name", OPERATORS)
def test_json_is_one_object(rnncli, name):
    """`--json` holds the same row for scripts."""
    record = json.loads(rnncli("ops", name, "--json").out)

    assert record["name"] == name
    assert [row["name"] for row in record["inputs"]] == [row.name for row in OPERATORS[name].inputs]


def test_opset_between_versions_is_explained(rnncli):
    """There is no LSTM-15; opset 15 uses LSTM-14."""
    outcome = rnncli("ops", "LSTM-15")

    assert outcome.code == 2
    assert outcome.err.endswith("; opset 15 uses LSTM-14\n")


def test_backends_and_formats_are_listed(rnncli):
    """The tables of what can be plugged in name the built-in rows."""
    assert "numpy" in {row["backend"] for row in rnncli("backends").rows}
    assert {"npz", "h5", "pb"} <= {row["extension"] for row in rnncli("formats").rows}
    assert json.loads(rnncli("backends", "--json").out.splitlines()[0])["backend"] == "reference"


@every("operator, is_there", [("LSTM-14", True), ("webnn.lstm", False)])
def test_equations_have_no_option_that_the_operator_lacks(rnncli, operator, is_there):
    """WebNN's LSTM has no input_forget, so that its forget gate has one line."""
    text = rnncli("ops", operator).out

    assert ("1 - it with input_forget" in text) is is_there
    assert "  ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)" in text
