"""Tolerances derived from a recurrence and a profile: of its outputs, and of its step's signals.

Every rounding of a correct implementation is a random error with a known variance. Along the
trajectory in float64, the squared derivatives of each step carry the variances of the states
forward. Bounds on systematic errors of activations and on nonlinear effects count as three
deviations. The tolerance is lambda deviations: a statistical statement, not a proof.

A signal's tolerance admits an implementation's whole run, whose states have errors of their own,
and a single step from the stored states, which were rounded.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import InvalidRequest
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of, variances_of_one_step
from rnncli.judging.tolerances.expressions import (
    Activated,
    GateInput,
    NewState,
    State,
    equations_of,
)
from rnncli.judging.tolerances.trajectory import Trajectory, put_back
from rnncli.numerics import FLOAT64
from rnncli.packs.vector import Answers
from rnncli.recurrence.lanes import alike, of_directions, part_of, place_in_time
from rnncli.recurrence.recurrence import TENSORS, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.judging.tolerances.expressions import Expression
    from rnncli.judging.tolerances.linearised import StateVariances
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence

# Directions are like further sequences, and what is returned is decided afterwards.
_settings_of_steps = all_but(
    *(*TENSORS, "initial"), *("directions", "activations", "keep_initial", "wants_Y")
)
# Recurrences are processed together up to about this many derivatives.
TOGETHER = 1 << 16

_SIGNIFICANT_BITS = 8
_LEAST_EXPONENT = -149  # of float32: its smallest subnormal is 2**-149
_NOISE = 1 - 2.0**-40
STATES = "HC"


def derive(recurrence: Recurrence, profile: Profile, golden: Result | None = None) -> Result:
    """Return the tolerance of each element of a recurrence's result.

    Args:
        recurrence: the recurrence.
        profile: the arithmetic that an implementation may use.
        golden: its result with Y, if known; else it is evaluated in float64.

    Returns:
        Y [T, D, N, H] (None when not wanted) and the last states [D, N, H] in float32, rounded up
        so that they are the same bits on every machine. Padding, NaN and infinity have tolerance 0:
        they must match exactly. If the tolerance of a finite element is NaN or infinite, nothing is
        known about its error.
    """
    return derive_all([(recurrence, golden)], profile)[0]


def derive_all(
    evaluated: Sequence[tuple[Recurrence, Result | None]], profile: Profile
) -> list[Result]:
    """Derive the tolerances of many recurrences or stacks, bit for bit as `derive` does.

    Small recurrences of the same kind and sizes are processed together, like directions of one:
    that is several times faster for them.
    """
    goldens = [_with_all_steps(*pair) for pair in evaluated]
    found = [_zeros(golden) for golden in goldens]
    groups: dict[Any, list[_AlikeDirections]] = {}
    for k, (recurrence, _) in enumerate(evaluated):
        if not profile.is_exact and goldens[k].Y.size:  # type: ignore[union-attr]
            for part in alike(recurrence):
                piece = _AlikeDirections(of_directions(recurrence, part), part, k)
                groups.setdefault(kind_of_steps(piece.recurrence), []).append(piece)
    for pieces in groups.values():
        for some in _chunks(pieces):
            _derive_together(some, goldens, found, profile)
    for golden, tolerance in zip(goldens, found, strict=True):
        _match_what_is_not_finite(golden, tolerance)
    return [
        tolerance if recurrence.wants_Y else Result(None, tolerance.last)
        for (recurrence, _), tolerance in zip(evaluated, found, strict=True)
    ]


def round_up(values: Array) -> Array:
    """Round values >= 0 up to float32 numbers of 8 significant bits.

    Values that differ in the last bits of float64, as results of another libm or BLAS do, become
    the same number; a value within such noise of the grid stays there. Positive values give at
    least the smallest subnormal; NaN and infinity stay.
    """
    significand, exponent = np.frexp(values * _NOISE)
    quantum = np.maximum(exponent - _SIGNIFICANT_BITS, _LEAST_EXPONENT)
    up = np.ldexp(np.ceil(np.ldexp(significand, exponent - quantum)), quantum)
    with np.errstate(over="ignore"):
        return np.asarray(up, dtype=np.float32)


class _AlikeDirections(NamedTuple):
    """The directions of a recurrence that have the same activations.

    Attributes:
        recurrence: the recurrence with these directions only.
        part: their indices.
        position: index of the whole recurrence among those to derive.
    """

    recurrence: Recurrence
    part: slice
    position: int


def _with_all_steps(recurrence: Recurrence, golden: Result | None) -> Result:
    if golden is not None and golden.Y is not None:
        return golden
    return evaluate(replace(recurrence, wants_Y=True), NumPyEngine(FLOAT64))


def _zeros(golden: Result) -> Result:
    """Return zeros in the shapes of a result."""
    assert golden.Y is not None
    Y, *last = (np.zeros(part.shape, np.float32) for part in (golden.Y, *golden.last))
    return Result(Y, tuple(last))


def kind_of_steps(recurrence: Recurrence) -> tuple[Any, ...]:
    """Return the key that recurrences processed together share."""
    return (
        *_settings_of_steps(recurrence),
        recurrence.X.shape[-3:],
        recurrence.R.shape[-1],
        recurrence.activations[0],
        *(tensor is None for tensor in (recurrence.Wb, recurrence.Rb, recurrence.P)),
    )


def _chunks(pieces: list[_AlikeDirections]) -> Iterator[list[_AlikeDirections]]:
    """Split into groups whose squared derivatives fit the cache."""
    chunk: list[_AlikeDirections] = []
    taken = 0
    for piece in pieces:
        D, H = len(piece.recurrence.directions), piece.recurrence.R.shape[-1]
        size = D * math.prod(piece.recurrence.X.shape[:-1]) * H * H
        if chunk and taken + size > TOGETHER:
            yield chunk
            chunk, taken = [], 0
        chunk.append(piece)
        taken += size
    yield chunk


def _derive_together(
    pieces: list[_AlikeDirections], goldens: list[Result], found: list[Result], profile: Profile
) -> None:
    """Write the tolerances of pieces to their results.

    NaN and infinity are handled only if a tolerance is not finite without that.
    """
    first = pieces[0].recurrence
    rounding = profile.rounding(first.dtype)
    tolerances = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            paths = [
                Trajectory.of(recurrence, part_of(goldens[k].Y, part), hostile=hostile)  # type: ignore[arg-type]
                for recurrence, part, k in pieces
            ]
            errors = CellErrors(Trajectory.joined(paths), rounding)
            tolerances = round_up(errors.tolerances(variances_of(errors)))
            if np.isfinite(tolerances).all():
                break
    start = 0
    for (recurrence, part, k), path in zip(pieces, paths, strict=True):
        stop = start + path.sizes[0]
        Y, *last = (part_of(values, part) for values in (found[k].Y, *found[k].last))
        put_back(recurrence, tolerances[start:stop], Y, last)  # type: ignore[arg-type]
        start = stop


def _match_what_is_not_finite(golden: Result, tolerance: Result) -> None:
    for wanted, values in zip(
        (golden.Y, *golden.last), (tolerance.Y, *tolerance.last), strict=True
    ):
        assert wanted is not None
        assert values is not None
        finite = np.isfinite(wanted)
        if not finite.all():
            values[~finite] = 0


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
            run = errors.along(variances_of(errors))
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
