"""Claims about the table of gate orders."""

import pytest

from rnncli.models.weights import FORMS
from rnncli.operators import OPERATORS

ROWS = [row for row in OPERATORS.values() if row.name in {"LSTM-22", "GRU-22", "RNN-22"}]


def test_a_row_is_found_by_library_cell_and_reset():
    """No two rows say the same; WebNN has two layouts."""
    keys = [(form.library, form.cell, form.linear_before_reset, form.spelled) for form in FORMS]

    assert len({*keys}) == len(keys)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_library_has_the_gates_of_the_cell(form):
    """In an order of its own; a bias has blocks for them."""
    gates = {"LSTM": "iofc", "GRU": "zrh", "RNN": "i"}[form.cell]

    assert sorted(form.gates) == sorted(gates)
    assert len(form.spelled) == len(gates)
    assert form.bias != "apart" or (form.gates[-1], form.linear_before_reset) == ("h", 1)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rows_of_onnx_are_those_of_its_operators(row):
    """Every version has the gates and biases of the first."""
    found = {
        (form.gates, form.bias) for form in FORMS if (form.library, form.cell) == ("ONNX", row.type)
    }

    assert found == {(row.gates, row.bias)}
