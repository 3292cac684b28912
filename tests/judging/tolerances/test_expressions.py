"""What a cell's step computes from what."""

import pytest
from support.other_cells import OTHER_CELLS, row

from rnncli.errors import Unsupported
from rnncli.judging.tolerances.expressions import (
    Activated,
    NewState,
    State,
    by_old_states,
    crosses,
    equations,
    linear,
)
from rnncli.recurrence.cells import CELLS, CellOptions

PLAIN = {"peepholes": False, "bias": True}


def letters(found):
    """Return the letters of every group, sorted."""
    groups = {group for group, _ in found.groups.values()}
    return sorted("".join(node.label for node in group) for group in groups)


@pytest.mark.parametrize(
    ("cell", "flags", "wanted"),
    [
        ("RNN", {}, ["f"]),
        ("GRU", {}, ["ff", "g"]),
        ("LSTM", {}, ["fff", "g", "h"]),
        ("LSTM", {"peepholes": True}, ["fff", "g", "h"]),
        (
            "LSTM",
            {"peepholes": True, "options": CellOptions(peephole_previous=True)},
            ["fff", "g", "h"],
        ),
        ("LSTM", {"options": CellOptions(input_forget=True)}, ["ff", "g", "h"]),
    ],
)
def test_gates_that_need_no_other_are_evaluated_together(cell, flags, wanted):
    """The GRU's hidden gate waits for the reset; C is known, so that what looks at it need not."""
    assert letters(equations(CELLS[cell], **{**PLAIN, **flags})) == wanted


def test_a_state_in_another_is_a_symbol():
    """H is computed from the new C; how that came about no longer counts."""
    found = equations(CELLS["LSTM"], **PLAIN)
    H, C = found.new

    inner = {type(leaf) for node in linear(H) for leaf in linear(node.of)}
    assert NewState in inner
    assert State not in inner
    assert {leaf.label for leaf in linear(C) if isinstance(leaf, State)} == {1}
    assert found.in_order == (1, 0)
    assert any(isinstance(leaf, State) and leaf.label for leaf in by_old_states(H, found.new))


def test_a_blend_is_linear_in_both_its_factors():
    """H = (1 - z) (.) h + z (.) H by z is H - h, not |H| + |h|; two products have two errors."""
    (H,) = equations(CELLS["GRU"], **PLAIN).new

    gates = [leaf for leaf in linear(H) if isinstance(leaf, Activated)]
    assert len(gates) == 2
    assert len(linear(H)) == 3
    assert len(crosses(H)) == 2


@pytest.mark.parametrize(
    "cell",
    [
        row("R of C", "f", 2, lambda p, x, s: (s[0], p.f(x[0] + p.R(s[1])[0]))),
        row("R of the new C", "f", 2, lambda p, x, s: (p.R(C := p.f(x[0]) * s[1])[0], C)),
        row("three states", "f", 3, lambda p, x, s: (p.f(x[0]), s[1] * s[0], s[2] * s[0])),
    ],
    ids=lambda cell: cell.name,
)
def test_what_tolerances_are_not_derived_for_is_refused(cell):
    """With the cell's name, and what is wanted."""
    with pytest.raises(Unsupported, match=f"cell {cell.name}: .*R applied to H alone"):
        equations(cell, **PLAIN)


@pytest.mark.parametrize("cell", OTHER_CELLS.values(), ids=list(OTHER_CELLS))
def test_a_cell_is_read_once(cell):
    """Its expressions are the same objects each time."""
    assert equations(cell, **PLAIN) is equations(cell, **PLAIN)
