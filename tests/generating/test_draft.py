"""The other readings of a case that a draft is solved under."""

from dataclasses import replace

import pytest
from valid_nodes import valid_node

from rnncli.generating.draft import other_readings
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

PREVIOUS = {"peephole-o": "previous"}


@pytest.mark.parametrize("is_given", [True, False])
def test_the_peephole_of_the_output_gate_matters_where_there_is_one(is_given):
    """To an operator that has the reading; the other choice is the other cell state."""
    row = OPERATORS["LSTM-14"]
    attributes, inputs = valid_node(row.name)
    node = Node(replace(row, readings={**row.readings, **PREVIOUS}), attributes)
    recurrence = node.recurrence(inputs if is_given else without_P(inputs))

    found = dict(other_readings(node, recurrence))

    assert ("peephole-o=new" in found) == is_given
    if is_given:
        assert not node.under(found["peephole-o=new"]).recurrence(inputs).options.peephole_previous


def without_P(inputs):
    """Leave the peepholes out."""
    return {name: values for name, values in inputs.items() if name != "P"}
