"""The signals of a step: their names, and tolerances of their own.

A signal's tolerance admits an implementation's whole run, whose states have errors of their own,
and a single step from the stored states, which were rounded.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of, variances_of_one_step
from rnncli.judging.tolerances.derivation import round_up
from rnncli.judging.tolerances.expressions import (
    Activated,
    GateInput,
    NewState,
    State,
    equations_of,
)
from rnncli.judging.tolerances.linearised import StateVariances
from rnncli.judging.tolerances.trajectory import Trajectory
from rnncli.packs.vector import Answers
from rnncli.recurrence.lanes import alike, of_directions, part_of, place_in_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rnncli.judging.tolerances.expressions import Expression
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence, Result

STATES = "HC"


class Signal(NamedTuple):
    """A signal of a cell's step.

    Attributes:
        name: `pre_i`, the argument of gate i's activation before it is clipped; `gate_i`, its
            value; `h_of_C`, the activated cell state; `state_H` and `state_C`, the new states.
        row: its index in `Result.signals`.
        node: its expression; a new state has its symbol.
    """

    name: str
    row: int
    node: Expression


def signals_of(recurrence: Recurrence) -> tuple[Signal, ...]:
    """Return the signals of a recurrence's step, in order of evaluation, and the new states last.

    A gate whose value is a new state has that name only; an argument that is a state has no other.

    Raises:
        Unsupported: the equations are not of the form that tolerances are derived for.
    """
    found = equations_of(recurrence)
    gates = recurrence.cell.gates
    signals = [s for k, node in enumerate(found.activated) for s in _of_activation(k, node, gates)]
    kept = [signal for signal in signals if signal.node not in (*found.new, *found.symbols)]
    states = [
        Signal(f"state_{STATES[k]}", 2 * len(found.activated) + k, symbol)
        for k, symbol in enumerate(found.symbols)
    ]
    return (*_distinct(kept), *states)


def _of_activation(k: int, node: Expression, gates: str) -> Iterator[Signal]:
    """Yield the argument and the value of the k-th activation."""
    gate = next(_gates(node.of), None)
    if gate is None:
        of = STATES[node.of.label] if isinstance(node.of, State | NewState) else "sum"
        names = f"pre_{node.label}_of_{of}", f"{node.label}_of_{of}"
    else:
        names = f"pre_{gates[gate]}", f"gate_{gates[gate]}"
    for row, (name, each) in enumerate(zip(names, (node.of, node), strict=True)):
        yield Signal(name, 2 * k + row, each)


def _gates(node: Expression) -> Iterator[int]:
    """Yield the gates whose inputs are terms of an activation's argument."""
    if isinstance(node, GateInput):
        yield node.label
    elif not isinstance(node, Activated):
        for operand in node.operands:
            yield from _gates(operand)


def _distinct(signals: Iterable[Signal]) -> Iterator[Signal]:
    """Yield signals; a name used before gets a number."""
    seen: Counter[str] = Counter()
    for signal in signals:
        seen[signal.name] += 1
        again = seen[signal.name]
        yield signal if again == 1 else signal._replace(name=f"{signal.name}_{again}")


def answers_of(recurrence: Recurrence, golden: Result, profile: Profile) -> Answers:
    """Return the signals of a golden by name, each [T, D, N, H], with their tolerances.

    Args:
        recurrence: the recurrence.
        golden: its result; without signals, there are no answers.
        profile: the arithmetic that an implementation may use.
    """
    if golden.signals is None:
        return Answers()
    rows = signals_of(recurrence)
    names, values = [row.name for row in rows], golden.signals[[row.row for row in rows]]
    tolerances = derive_signals(recurrence, values, profile)
    return Answers(dict(zip(names, values, strict=True)), dict(zip(names, tolerances, strict=True)))


def derive_signals(recurrence: Recurrence, golden: Array, profile: Profile) -> Array:
    """Return the tolerance of each element of a recurrence's signals.

    Args:
        recurrence: the recurrence.
        golden: its signals in the order of `signals_of`, [signals, T, D, N, H].
        profile: the arithmetic that an implementation may use.

    Returns:
        Tolerances in float32 [signals, T, D, N, H], rounded up as those of `derive`. Padding, NaN
        and infinity have tolerance 0.

    Raises:
        InvalidRequest: nothing is known about the error of an element.
    """
    found = np.zeros(golden.shape, np.float32)
    if not profile.is_exact and golden.size:
        for part in alike(recurrence):
            some = of_directions(recurrence, part)
            tolerances = _tolerances(some, part_of(golden, part), profile)
            for steps, place in zip(tolerances, part_of(found, part), strict=True):
                place_in_time(some, steps, place)
    found[~np.isfinite(golden)] = 0
    for signal, tolerances in zip(signals_of(recurrence), found, strict=True):
        if not np.isfinite(tolerances).all():
            raise InvalidRequest(f"signal {signal.name}: nothing can be said about its errors")
    return found


def _tolerances(recurrence: Recurrence, golden: Array, profile: Profile) -> Array:
    """Return tolerances of directions with the same activations, [signals, D, T, N, H].

    NaN and infinity are handled only if a tolerance is not finite without that.
    """
    rounding, signals = profile.rounding(recurrence.dtype), signals_of(recurrence)
    Y = golden[[signal.name for signal in signals].index("state_H")]
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            errors = CellErrors(Trajectory.of(recurrence, Y, hostile=hostile), rounding)
            run = StateVariances.along(variances_of(errors))
            step = variances_of_one_step(errors, errors.stored_states())
            either = np.maximum(
                _of_signals(signals, errors, run), _of_signals(signals, errors, step)
            )
            found = round_up(np.sqrt(either))
            if np.isfinite(found).all():
                break
    return found


def _of_signals(signals: Iterable[Signal], errors: CellErrors, variances: StateVariances) -> Array:
    """Return the variances of signals, [signals, D, T, N, H]."""
    found = [
        variances.new[..., signal.node.label, :]
        if isinstance(signal.node, NewState)
        else errors.of_signal(signal.node, variances)
        for signal in signals
    ]
    return np.stack(found)
