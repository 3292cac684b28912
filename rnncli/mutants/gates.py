"""Bugs of gates: reset, update, coupled gates and peepholes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import GRU, LSTM, arrays, family, parameters, row, stepped
from rnncli.mutants.equivalence import (
    CELL_STARTS_AT_ZERO,
    COUPLED,
    NO_PEEPHOLES,
    NO_RECURRENT_BIAS,
    NO_STEP,
    RESETS_AFTER,
    RESETS_BEFORE,
    UNCOUPLED,
    where,
)
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Right
    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence


def _reset_bias_outside(recurrence: Recurrence) -> Recurrence:
    """Add Rbh to Wbh: the reset gate then does not multiply it."""
    if recurrence.Rb is None or not recurrence.linear_before_reset:
        return recurrence
    Wb = np.zeros_like(recurrence.Rb) if recurrence.Wb is None else recurrence.Wb.copy()
    Rb = recurrence.Rb.copy()
    Wb[:, 2] += Rb[:, 2]
    Rb[:, 2] = 0
    return replace(recurrence, Wb=Wb, Rb=Rb)


def _always_outside(recurrence: Recurrence) -> Recurrence:
    return _reset_bias_outside(replace(recurrence, linear_before_reset=True))


def _calls_of_f(
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


def _without_reset(values: list[Value]) -> list[Value]:
    z, r = values[0]
    return [np.stack([z, np.ones_like(r)])]


def _reset_inverted(values: list[Value]) -> list[Value]:
    z, r = values[0]
    return [np.stack([z, 1 - r])]


def _input_from_forget(recurrence: Recurrence) -> Recurrence:
    """I = 1 - f instead of f = 1 - i."""
    if not recurrence.input_forget:
        return recurrence
    change = _calls_of_f(lambda values: [1 - values[1], None, None])
    return change(replace(recurrence, input_forget=False))


def _blended(blend: Callable[[Value, Value, Value], Value], p: Parameters) -> Parameters:
    return replace(p, blend=blend)


def _blends() -> Iterator[Mutant]:
    for id_, sentence, blend in (
        ("z-inverted", "Ht = zt (.) ht + (1 - zt) (.) Ht-1.", lambda z, h, H: z * h + (1 - z) * H),
        ("z-ignored", "Ht = ht: the update gate is not applied.", lambda _, h, __: h),
        ("z-of-old-state-only", "Ht = ht + zt (.) Ht-1.", lambda z, h, H: h + z * H),
        ("z-of-new-state-only", "Ht = (1 - zt) (.) ht + Ht-1.", lambda z, h, H: (1 - z) * h + H),
    ):
        yield row(
            id_,
            GRU,
            sentence,
            "Wrong from the first step on.",
            parameters(partial(_blended, blend)),
            NO_STEP,
        )


def _resets() -> Iterator[Mutant]:
    before, after = "linear_before_reset = 0 is right.", "linear_before_reset != 0 is right."
    yield row(
        "linear-before-reset-ignored",
        GRU,
        "The reset gate is applied before the linear transformation also where"
        " linear_before_reset is not 0.",
        before,
        lambda r: replace(r, linear_before_reset=False),
        RESETS_BEFORE,
    )
    yield row(
        "linear-before-reset-always",
        GRU,
        "The reset gate is applied after the linear transformation also where"
        " linear_before_reset is 0.",
        after,
        lambda r: replace(r, linear_before_reset=True),
        RESETS_AFTER,
    )
    yield row(
        "linear-before-reset-bias-outside",
        GRU,
        "With linear_before_reset, Rbh is added after the reset gate is applied.",
        before,
        _reset_bias_outside,
        RESETS_BEFORE,
        NO_RECURRENT_BIAS,
    )
    yield row(
        "linear-before-reset-always-bias-outside",
        GRU,
        "The reset gate is applied to Ht-1*(Rh^T) also where linear_before_reset is 0, and never"
        " to Rbh.",
        after,
        _always_outside,
        where(
            lambda r: r.linear_before_reset and r.Rb is None,
            "linear_before_reset is not 0 and no recurrent bias is given",
        ),
    )
    for id_, sentence, function in (
        ("reset-ignored", "The reset gate is 1.", _without_reset),
        ("reset-inverted", "The reset gate is 1 - rt.", _reset_inverted),
    ):
        yield row(id_, GRU, sentence, "Right where Ht-1 is zero.", _calls_of_f(function), NO_STEP)


def _couplings() -> Iterator[Mutant]:
    yield row(
        "input-forget-ignored",
        LSTM,
        "input_forget is not read: the forget gate is computed from its weights.",
        "input_forget = 0 is right.",
        lambda r: replace(r, input_forget=False),
        UNCOUPLED,
        CELL_STARTS_AT_ZERO,
    )
    yield row(
        "input-forget-always",
        LSTM,
        "The forget gate is 1 - it also where input_forget is 0.",
        "input_forget = 1 is right.",
        lambda r: replace(r, input_forget=True),
        COUPLED,
        CELL_STARTS_AT_ZERO,
    )
    yield row(
        "input-forget-other-way",
        LSTM,
        "With input_forget, the input gate is 1 - ft.",
        "input_forget = 0 is right.",
        _input_from_forget,
        UNCOUPLED,
    )


def _forget_bias(recurrence: Recurrence) -> Recurrence:
    forget = CELLS["LSTM"].gates.index("f")
    given = recurrence.Wb
    D, G, H, _ = recurrence.W.shape
    Wb = np.zeros((D, G, H), recurrence.dtype.numpy) if given is None else given.copy()
    Wb = Wb.astype(np.float64)
    Wb[:, forget] += 1
    return replace(recurrence, Wb=Wb)


FORGET_BIAS = row(
    "forget-bias-plus-one",
    LSTM,
    "1 is added to the bias of the forget gate.",
    "Cells forget too slowly; a single step from a zero cell is right.",
    _forget_bias,
    COUPLED,
    CELL_STARTS_AT_ZERO,
)


def _peepholes_ordered(order: str, values: Array) -> Array:
    return values[:, [order.index(gate) for gate in "iof"]]


def _h_for_c(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Give i and f the peepholes of Ht-1."""
    if p.P is None:
        return right(p, x, states)
    x = x.copy()
    x[0] += p.P[0] * states[0]
    x[2] += p.P[2] * states[0]
    return right(replace(p, P=np.stack([0 * p.P[0], p.P[1], 0 * p.P[2]])), x, states)


def _peepholes() -> Iterator[Mutant]:
    effect = "Without P everything is right."

    def peep(
        id_: str, sentence: str, change: Callable[[Recurrence], Recurrence], *reasons: Any
    ) -> Mutant:
        return row(f"peepholes-{id_}", LSTM, sentence, effect, change, NO_PEEPHOLES, *reasons)

    yield peep("dropped", "P is not read.", lambda r: replace(r, P=None))
    for k, gate in enumerate("iof"):
        change = arrays(("P",), partial(_zeroed, k))
        sentence = f"The peephole of gate {gate} is not added."
        reasons = (COUPLED,) if gate == "f" else ()
        yield peep(f"dropped-from-{gate}", sentence, change, *reasons)
    for order in ("ifo", "ofi", "oif", "fio", "foi"):
        change = arrays(("P",), partial(_peepholes_ordered, order))
        yield peep(f"in-order-{order}", f"P is read in the order {order} instead of iof.", change)
    yield peep(
        "of-old-cell-for-o",
        "Po is multiplied by Ct-1.",
        lambda r: replace(r, peephole_previous=True),
        where(lambda r: r.peephole_previous, "Ct-1 is right: peephole-o is previous"),
        NO_STEP,
    )
    yield peep("of-h", "Pi and Pf are multiplied by Ht-1.", stepped(_h_for_c), NO_STEP)


def _zeroed(gate: int, values: Array) -> Array:
    values = values.copy()
    values[:, gate] = 0
    return values


ROWS = (
    *family("linear_before_reset", _resets()),
    *family("update gate", _blends()),
    *family("peepholes", _peepholes()),
    *family("input_forget", _couplings()),
    *family("forget bias", (FORGET_BIAS,)),
)
