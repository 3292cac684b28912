"""The cells on numbers small enough to check by hand, and their equations as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.cells import CELLS, CellOptions, Parameters

ONE = np.ones((1, 1))

EQUATIONS = {
    "RNN": ["Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)"],
    "GRU": [
        "zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)",
        "rt = f(Xt*(Wr^T) + Ht-1*(Rr^T) + Wbr + Rbr)",
        "ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) + Rbh + Wbh)",
        "ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)",
        "Ht = (1 - zt) (.) ht + zt (.) Ht-1",
    ],
    "LSTM": [
        "it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)",
        "ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)",
        "ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)",
        "Ct = ft (.) Ct-1 + it (.) ct",
        "ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)",
        "Ht = ot (.) h(Ct)",
    ],
}


def gates(*values):
    """Pre-activations of one unit of one sequence, [gates, 1, 1]."""
    return np.array(values, float).reshape(-1, 1, 1)


def parameters(weights, **more):
    """Identity functions, recurrent weights of one unit, one number a gate, and some options."""
    weights = np.array(weights, float)
    functions = {"f": lambda x: x, "g": lambda x: x, "h": lambda x: x}
    functions["blend"] = NumPyArithmetic.blend

    def R(state, gates=slice(None)):
        return state[None] * weights[gates, None, None]

    options = {name: more.pop(name) for name in CellOptions._fields if name in more}
    return Parameters(R=R, options=CellOptions(**options), **{**functions, **more})


def step(kind, p, x, *states):
    """Take one step; the new states as numbers."""
    new = CELLS[kind].step(p, x, tuple(state * ONE for state in states))
    return [state.item() for state in new]


@pytest.mark.parametrize("kind", EQUATIONS)
def test_lines_stand_in_onnx(kind):
    """ONNX's own text of the operator lists these equations, in this order, and no others."""
    _, _, text = onnx.defs.get_schema(kind, 14).doc.partition("Equations (Default:")
    lines = [line[2:] for line in text.splitlines() if line.startswith("* ")]

    assert [line.partition(" #")[0].strip() for line in lines] == EQUATIONS[kind]


@pytest.mark.parametrize("kind", EQUATIONS)
def test_equations_are_the_specifications_lines(kind):
    """Each line of the text, and only those; what follows a line is said of when it holds."""
    lines = CELLS[kind].equations.splitlines()

    assert len(lines) == len(EQUATIONS[kind])
    for line, wanted in zip(lines, EQUATIONS[kind], strict=True):
        assert line.startswith(wanted)


def test_rnn_by_hand():
    """Ht = f(3 + 2*5)."""
    assert step("RNN", parameters([2]), gates(3), 5) == [13]
    assert step("RNN", parameters([2], f=np.negative), gates(3), 5) == [-13]


def test_gru_by_hand():
    """With H 2: z = 1 + 2*3, r = 4 + 2*5, h = 6 + (14*2)*7, Ht = (1-7)*202 + 7*2."""
    assert step("GRU", parameters([3, 5, 7]), gates(1, 4, 6), 2) == [-6 * 202 + 14]


def test_gru_resets_after_the_linear_transformation():
    """The recurrent bias is reset as well: h = 6 + 14*(2*7 + 9)."""
    p = parameters([3, 5, 7], linear_before_reset=True, Rbh=9)

    assert step("GRU", p, gates(1, 4, 6), 2) == [-6 * (6 + 14 * 23) + 14]


def crossed(p):
    """Two units; recurrent weights that swap them in the hidden gate, and are 0 in the others."""
    R = np.array([np.zeros((2, 2)), np.zeros((2, 2)), [[0, 1], [1, 0]]])
    return replace(p, R=lambda state, gates=slice(None): state @ R[gates].swapaxes(1, 2))


@pytest.mark.parametrize(
    ("after", "bias", "hidden"),
    [
        (False, 0, [3 + 5 * 2, 4 + 3 * 1]),  # reset, then swapped: (3*1, 5*2) is (10, 3)
        (True, 0, [3 + 3 * 2, 4 + 5 * 1]),  # swapped to (2, 1), then reset, bias or no bias
        (True, np.array([10, 20]), [3 + 3 * 12, 4 + 5 * 21]),
    ],
)
def test_gru_order_of_reset_and_linear_transformation(after, bias, hidden):
    """With H (1, 2), r (3, 5) and z 0, Ht is h, whose own pre-activation is (3, 4)."""
    p = crossed(parameters([0], linear_before_reset=after, Rbh=bias))
    x = np.array([[[0, 0]], [[3, 5]], [[3, 4]]], float)

    (H,) = CELLS["GRU"].step(p, x, (np.array([[1.0, 2.0]]),))

    assert H.tolist() == [hidden]


def test_lstm_by_hand():
    """With H 1, C 2, gates i, o, f, c: C = 4*2 + 2*5, H = 3*C."""
    assert step("LSTM", parameters([1, 2, 3, 4]), gates(1, 1, 1, 1), 1, 2) == [3 * 18, 18]


def test_lstm_peepholes_see_the_right_cell_state():
    """Ct-1 for i and f, Ct for o."""
    p = parameters([0, 0, 0, 0], P=np.array([[10.0], [100.0], [1000.0]]))
    # i = 1 + 10*2, f = 1 + 1000*2, C = 2001*2 + 21*1, o = 1 + 100*C, H = o*C
    C = 2001 * 2 + 21

    assert step("LSTM", p, gates(1, 1, 1, 1), 0, 2) == [(1 + 100 * C) * C, C]


def test_lstm_output_gate_may_see_the_previous_cell_state():
    """Ct-1 for o as well, whether the gates are coupled or not."""
    P = np.array([[10.0], [100.0], [1000.0]])
    for tied, f in ((False, 1 + 1000 * 2), (True, 1 - 21)):
        p = parameters([0, 0, 0, 0], P=P, peephole_previous=True, input_forget=tied)
        C = f * 2 + 21

        assert step("LSTM", p, gates(1, 1, 1, 1), 0, 2) == [(1 + 100 * 2) * C, C]


def test_lstm_input_forget_couples_the_gates():
    """Then f = 1 - i; what the forget gate would have been does not matter."""
    p = parameters([0, 0, 0, 0], input_forget=True)

    assert step("LSTM", p, gates(0.25, 1, np.nan, 8), 0, 4) == [0.75 * 4 + 2, 0.75 * 4 + 2]


def test_lstm_input_forget_keeps_the_other_peepholes():
    """Then i = 1 + 10*2, o = 1 + 100*C, f = 1 - i; its own peephole is not looked at."""
    P = np.array([[10.0], [100.0], [np.nan]])
    p = parameters([0, 0, 0, 0], P=P, input_forget=True)
    C = (1 - 21) * 2 + 21 * 8

    assert step("LSTM", p, gates(1, 1, np.nan, 8), 0, 2) == [(1 + 100 * C) * C, C]


def test_absent_peepholes_add_nothing():
    """Not even 0 times an infinite cell, which would be NaN."""
    assert step("LSTM", parameters([0] * 4), gates(1, 1, 1, 1), 0, np.inf) == [np.inf, np.inf]

    present = parameters([0] * 4, P=np.zeros((3, 1)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(step("LSTM", present, gates(1, 1, 1, 1), 0, np.inf)).all()


def test_each_activation_is_where_it_belongs():
    """The gates use f, the cell or hidden gate g, the output h."""
    calls = {
        name: (lambda x, n=name: np.full_like(x, {"f": 2, "g": 3, "h": 5}[n])) for name in "fgh"
    }

    assert step("RNN", parameters([0], **calls), gates(0), 0) == [2]
    assert step("GRU", parameters([0] * 3, **calls), gates(0, 0, 0), 7) == [-1 * 3 + 2 * 7]
    assert step("LSTM", parameters([0] * 4, **calls), gates(0, 0, 0, 0), 0, 7) == [2 * 5, 2 * 7 + 6]
