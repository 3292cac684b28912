"""Bugs of gates: reset, update, coupled gates and peepholes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import where
from rnncli.mutants.mutant import (
    GRU,
    LSTM,
    Family,
    Variant,
    each_direction,
    parameters,
    reading,
    stepped,
)
from rnncli.mutants.weights import gate_zeroed
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.mutant import Right
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence


reset_bug = Family("linear_before_reset", "linear_before_reset = 0 is right.", GRU)
AFTER = "linear_before_reset != 0 is right."
ZERO_STATE = "Right where Ht-1 is zero."


@reset_bug(unless.RESETS_BEFORE)
def linear_before_reset_ignored(recurrence: Recurrence) -> Recurrence:
    """The reset gate is applied before the linear transformation also where linear_before_reset is
    not 0.
    """
    return recurrence.opting(linear_before_reset=False)


@reset_bug(unless.RESETS_AFTER, effect=AFTER)
def linear_before_reset_always(recurrence: Recurrence) -> Recurrence:
    """The reset gate is applied after the linear transformation also where linear_before_reset is
    0.
    """
    return recurrence.opting(linear_before_reset=True)


@reset_bug(unless.RESETS_BEFORE, unless.NO_RECURRENT_BIAS)
def linear_before_reset_bias_outside(recurrence: Recurrence) -> Recurrence:
    """With linear_before_reset, Rbh is added after the reset gate is applied."""
    if recurrence.Rb is None or not recurrence.options.linear_before_reset:
        return recurrence
    Wb = np.zeros_like(recurrence.Rb) if recurrence.Wb is None else recurrence.Wb.copy()
    Rb = recurrence.Rb.copy()
    Wb[:, 2] += Rb[:, 2]
    Rb[:, 2] = 0
    return replace(recurrence, Wb=Wb, Rb=Rb)


NOTHING_MOVES = where(
    lambda r: r.options.linear_before_reset and r.Rb is None,
    "linear_before_reset is not 0 and no recurrent bias is given",
)


@reset_bug(NOTHING_MOVES, effect=AFTER)
def linear_before_reset_always_bias_outside(recurrence: Recurrence) -> Recurrence:
    """The reset gate is applied to Ht-1*(Rh^T) also where linear_before_reset is 0, and never to
    Rbh.
    """
    return linear_before_reset_bias_outside(recurrence.opting(linear_before_reset=True))


def calls_of_f(
    function: Callable[[list[Value]], list[Value]],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change that replaces the values of f in a step, in order of the calls.

    A step is computed once to get the values, and again with their replacements; None leaves a
    value to f.
    """

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        values: list[Value] = []

        def record(v: Value) -> Value:
            values.append(p.f(v))
            return values[-1]

        right(replace(p, f=record), x, states)
        replaced = iter(function(values))

        def replay(v: Value) -> Value:
            value = next(replaced)
            return p.f(v) if value is None else value

        return right(replace(p, f=replay), x, states)

    return stepped(step)


@reset_bug(unless.NO_STEP, changes=calls_of_f, effect=ZERO_STATE)
def reset_ignored(values: list[Value]) -> list[Value]:
    """The reset gate is 1."""
    z, r = values[0]
    return [np.stack([z, np.ones_like(r)])]


@reset_bug(unless.NO_STEP, changes=calls_of_f, effect=ZERO_STATE)
def reset_inverted(values: list[Value]) -> list[Value]:
    """The reset gate is 1 - rt."""
    z, r = values[0]
    return [np.stack([z, 1 - r])]


update_bug = Family("update gate", "Wrong from the first step on.", GRU)


def blend(function: Callable[[Value, Value, Value], Value]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that computes Ht from zt, ht and Ht-1 by a function."""
    return parameters(lambda p: replace(p, blend=function))


@update_bug(unless.NO_STEP, changes=blend)
def z_inverted(z: Value, h: Value, H: Value) -> Value:
    """Ht = zt (.) ht + (1 - zt) (.) Ht-1."""
    return z * h + (1 - z) * H


@update_bug(unless.NO_STEP, changes=blend)
def z_ignored(_: Value, h: Value, __: Value) -> Value:
    """Ht = ht: the update gate is not applied."""
    return h


@update_bug(unless.NO_STEP, changes=blend)
def z_of_old_state_only(z: Value, h: Value, H: Value) -> Value:
    """Ht = ht + zt (.) Ht-1."""
    return h + z * H


@update_bug(unless.NO_STEP, changes=blend)
def z_of_new_state_only(z: Value, h: Value, H: Value) -> Value:
    """Ht = (1 - zt) (.) ht + Ht-1."""
    return (1 - z) * h + H


peephole_bug = Family("peepholes", "Without P everything is right.", LSTM, unless.NO_PEEPHOLES)


@peephole_bug()
def peepholes_dropped(recurrence: Recurrence) -> Recurrence:
    """P is not read."""
    return replace(recurrence, P=None)


@peephole_bug(
    changes=reading("P"),
    each=[Variant("i", 0), Variant("o", 1), Variant("f", 2, unless.COUPLED)],
)
def peepholes_dropped_from_X(k: int, values: Array) -> Array:
    """The peephole of gate {} is not added."""
    return gate_zeroed(k, values)


@peephole_bug(
    changes=reading("P"),
    each=[Variant(order, order) for order in ("ifo", "ofi", "oif", "fio", "foi")],
)
def peepholes_in_order_X(order: str, values: Array) -> Array:
    """P is read in the order {} instead of iof."""
    return values[:, [order.index(gate) for gate in "iof"]]


OLD_CELL = where(lambda r: r.options.peephole_previous, "Ct-1 is right: peephole-o is previous")


@peephole_bug(OLD_CELL, unless.NO_STEP)
def peepholes_of_old_cell_for_o(recurrence: Recurrence) -> Recurrence:
    """Po is multiplied by Ct-1."""
    return recurrence.opting(peephole_previous=True)


@peephole_bug(unless.NO_STEP, changes=stepped)
def peepholes_of_h(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Pi and Pf are multiplied by Ht-1."""
    if p.P is None:
        return right(p, x, states)
    x = x.copy()
    x[0] += p.P[0] * states[0]
    x[2] += p.P[2] * states[0]
    return right(replace(p, P=np.stack([0 * p.P[0], p.P[1], 0 * p.P[2]])), x, states)


coupling_bug = Family("input_forget", "input_forget = 0 is right.", LSTM)


@coupling_bug(unless.UNCOUPLED, unless.CELL_STARTS_AT_ZERO)
def input_forget_ignored(recurrence: Recurrence) -> Recurrence:
    """input_forget is not read: the forget gate is computed from its weights."""
    return recurrence.opting(input_forget=False)


@coupling_bug(unless.COUPLED, unless.CELL_STARTS_AT_ZERO)
def input_forget_always(recurrence: Recurrence) -> Recurrence:
    """The forget gate is 1 - it also where input_forget is 0.

    input_forget = 1 is right.
    """
    return recurrence.opting(input_forget=True)


@coupling_bug(unless.UNCOUPLED)
def input_forget_other_way(recurrence: Recurrence) -> Recurrence:
    """With input_forget, the input gate is 1 - ft."""
    if not recurrence.options.input_forget:
        return recurrence
    change = calls_of_f(lambda values: [1 - values[1], None, None])
    return change(recurrence.opting(input_forget=False))


forget_bug = Family("forget bias", of=LSTM)


@forget_bug(unless.COUPLED, unless.CELL_STARTS_AT_ZERO)
def forget_bias_plus_one(recurrence: Recurrence) -> Recurrence:
    """1 is added to the bias of the forget gate.

    Cells forget too slowly; a single step from a zero cell is right.
    """
    forget = CELLS["LSTM"].gates.index("f")
    given = recurrence.Wb
    D, G, H, _ = recurrence.W.shape
    Wb = np.zeros((D, G, H), recurrence.dtype.numpy) if given is None else given.copy()
    Wb = Wb.astype(np.float64)
    Wb[:, forget] += 1
    return replace(recurrence, Wb=Wb)


finer_peephole_bug = Family(
    "peepholes", "Without P, and where Ct is right, everything is right.", LSTM
)
NEW_CELL = where(lambda r: not r.options.peephole_previous, "Ct is right: peephole-o is new")


@finer_peephole_bug(NEW_CELL, unless.NO_PEEPHOLES, unless.NO_STEP)
def peepholes_of_new_cell_for_o(recurrence: Recurrence) -> Recurrence:
    """Po is multiplied by Ct, although the reading peephole-o says Ct-1."""
    return recurrence.opting(peephole_previous=False)


reported_reset_bug = Family("linear_before_reset", of=GRU)


def _adding_products(right: Right) -> Right:
    """Return a GRU's step whose product with Rh adds to the one of the step before."""
    held: Value = 0

    def step(p: Parameters, x: Value, states: States) -> States:
        def product(H: Value) -> Value:
            nonlocal held
            found = p.R(H)
            held = held + found[2]
            return np.stack([*found[:2], held])

        return right(replace(p, R=product), x, states)

    return step


def _biased_later(right: Right) -> Right:
    """Return a GRU's step that has no Rbh the first time."""
    is_first = True

    def step(p: Parameters, x: Value, states: States) -> States:
        nonlocal is_first
        given = replace(p, Rbh=0) if is_first else p
        is_first = False
        return right(given, x, states)

    return step


def _stepping(recurrence: Recurrence, kind: Callable[[Right], Right]) -> Recurrence:
    step = kind(recurrence.cell.step)
    return replace(recurrence, cell=replace(recurrence.cell, step=step))


def _accumulates(recurrence: Recurrence) -> bool:
    """Whether there is no B, linear_before_reset, and a batch of three."""
    r = recurrence
    return bool(
        r.options.linear_before_reset and r.Wb is None and r.Rb is None and r.X.shape[1] >= 3
    )


NOTHING_ADDS = where(
    lambda r: not _accumulates(r), "B is given, or the reset is before, or N is below 3"
)
INITIAL_H = where(lambda r: r.initial[0] is not None, "initial_h is given")


@reported_reset_bug(NOTHING_ADDS, changes=each_direction, unreached="no earlier product shows")
def linear_output_accumulates_without_bias(recurrence: Recurrence) -> Recurrence:
    """Without B, linear_before_reset adds Ht-1*(Rh^T) to that of the step before, from a batch of
    three on.

    The first steps are right, and so are nodes with B.
    """
    if not _accumulates(recurrence):
        return recurrence
    return _stepping(recurrence, _adding_products)


@reported_reset_bug(
    unless.RESETS_BEFORE,
    unless.NO_RECURRENT_BIAS,
    unless.NO_STEP,
    INITIAL_H,
    changes=each_direction,
)
def first_step_lacks_hidden_bias(recurrence: Recurrence) -> Recurrence:
    """Without initial_h the first step of linear_before_reset leaves Rbh out.

    Nodes with an initial_h are right.
    """
    if recurrence.initial[0] is not None or not recurrence.options.linear_before_reset:
        return recurrence
    return _stepping(recurrence, _biased_later)
