"""Tolerances derived from a recurrence and a profile: of its outputs, and of its step's signals.

Every rounding of a correct implementation is a random error with a known variance. Along the
trajectory in float64, the squared derivatives of each step carry the variances of the states
forward, as if errors of different units were independent; where they reinforce one another, their
covariances are carried as well. Bounds on systematic errors of activations and on nonlinear effects
count as three deviations. The tolerance is lambda deviations: a statistical statement, not a proof.

Errors of functions at different steps are taken as independent, as those of faithful functions are:
their sum grows with the root of the number of steps. A function that is always too large by all
that the profile grants has errors that add up; where states last, they exceed the tolerance from
some 40 steps on (docs/results/tolerances.md).

A signal's tolerance admits an implementation's whole run, whose states have errors of their own,
and a single step from the stored states, which were rounded.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
from rnncli.judging.tolerances.linear_errors import linear_tolerances
from rnncli.judging.tolerances.operation_errors import Trajectory
from rnncli.judging.tolerances.projected_errors import projected_tolerances
from rnncli.numerics import FLOAT64, dtype_named, round_to
from rnncli.packs.vector import Answers
from rnncli.recurrence.lanes import (
    after_last_step,
    alike,
    assemble,
    of_directions,
    part_of,
    place_in_time,
)
from rnncli.recurrence.recurrence import TENSORS, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.judging.tolerances.expressions import Expression
    from rnncli.judging.tolerances.linearised import StateVariances
    from rnncli.numerics import Array, DType
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

# The directions of a recurrence that have the same activations, as a recurrence with only these,
# their indices, and the position of the whole recurrence among those to derive.
_Piece: TypeAlias = "tuple[Recurrence, slice, int]"


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
    if any(_are_rounded_once(each, profile) for each, _ in evaluated):
        return [
            _of_rounded_results(r, golden, profile)
            if _are_rounded_once(r, profile)
            else derive(r, profile, golden)
            for r, golden in evaluated
        ]
    goldens: list[Any] = []  # with the states of all steps
    found: list[Any] = []
    for recurrence, given in evaluated:
        golden: Any = given
        if given is None or given.Y is None:
            golden = evaluate(replace(recurrence, wants_Y=True), NumPyEngine(FLOAT64))
        goldens.append(golden)
        Y, *last = (np.zeros(part.shape, np.float32) for part in (golden.Y, *golden.last))
        found.append(Result(Y, tuple(last)))

    # Groups of alike directions whose squared derivatives fit the cache.
    groups: dict[Any, list[list[_Piece]]] = {}
    taken: Counter[Any] = Counter()
    for k, (recurrence, _) in enumerate(evaluated):
        is_exact = profile.is_exact or recurrence.options.integers is not None
        if is_exact or not goldens[k].Y.size:
            continue
        if not recurrence.cell.projects:
            derived = projected_tolerances if recurrence.options.projected else linear_tolerances
            steps, state = map(round_up, derived(recurrence, profile))
            assemble(recurrence, steps, (steps[:, -1], state), found[k])
            continue
        for part in alike(recurrence):
            some = of_directions(recurrence, part)
            kind, D, H = kind_of_steps(some), len(some.directions), some.R.shape[-1]
            size = D * math.prod(some.X.shape[:-1]) * H * H
            chunks = groups.setdefault(kind, [[]])
            if chunks[-1] and taken[kind] + size > TOGETHER:
                chunks.append([])
                taken[kind] = 0
            chunks[-1].append((some, part, k))
            taken[kind] += size
    for chunks in groups.values():
        for pieces in chunks:
            _derive_together(pieces, goldens, found, profile)

    for golden, tolerance in zip(goldens, found, strict=True):
        tensors = (golden.Y, *golden.last), (tolerance.Y, *tolerance.last)
        for wanted, values in zip(*tensors, strict=True):
            finite = np.isfinite(wanted)
            if not finite.all():  # what is not finite must match exactly
                values[~finite] = 0
    return [
        tolerance if recurrence.wants_Y else Result(None, tolerance.last)
        for (recurrence, _), tolerance in zip(evaluated, found, strict=True)
    ]


def _are_rounded_once(recurrence: Recurrence, profile: Profile) -> bool:
    """Whether results are wider inside: states and sums may be rounded in each step as well."""
    in_each = recurrence.options.rounded_states or recurrence.options.silu
    return not in_each and any(profile.inner(dtype) != dtype for dtype in recurrence.dtypes)


def _of_rounded_results(recurrence: Recurrence, golden: Result | None, profile: Profile) -> Result:
    """Return the tolerances of results that a wider implementation has rounded once."""
    wide, real = _before_rounding(recurrence, profile)
    tolerance = derive(wide, profile, real)
    golden = golden or evaluate(recurrence, NumPyEngine(FLOAT64))
    states = zip(golden.last, real.last, tolerance.last, recurrence.dtypes, strict=True)
    last = tuple(_farthest_rounding(*state) for state in states)
    if golden.Y is None or real.Y is None or tolerance.Y is None or not recurrence.wants_Y:
        return Result(None, last)
    return Result(_farthest_rounding(golden.Y, real.Y, tolerance.Y, recurrence.dtype), last)


def _before_rounding(
    recurrence: Recurrence, profile: Profile, *, wants_signals: bool = False
) -> tuple[Recurrence, Result]:
    """Return a recurrence in the dtype inside, and its result in float64."""
    of_outputs, of_states = map(profile.inner, (recurrence.dtype, recurrence.dtypes[-1]))
    wide = replace(recurrence, dtype=of_outputs, states_dtype=of_states, wants_Y=True)
    real = replace(wide, dtype=dtype_named("float64"), states_dtype=None)
    return wide, evaluate(real, NumPyEngine(FLOAT64), wants_signals=wants_signals)


def _farthest_rounding(golden: Array, real: Array, tolerance: Array, dtype: DType) -> Array:
    """Return how far from the golden the roundings of numbers within a tolerance may lie.

    That is 0 unless the number is next to a tie.
    """
    with np.errstate(all="ignore"):
        ends = (round_to(real + k * tolerance, dtype).astype(np.float64) for k in (-1.0, 1.0))
        off = np.maximum(*(np.abs(end - golden.astype(np.float64)) for end in ends))
    return round_up(np.where(np.isfinite(golden.astype(np.float64)), off, 0.0))


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


def kind_of_steps(recurrence: Recurrence) -> tuple[Any, ...]:
    """Return the key that recurrences processed together share."""
    return (
        *_settings_of_steps(recurrence),
        recurrence.X.shape[-3:],
        recurrence.R.shape[-1],
        recurrence.activations[0],
        *(tensor is None for tensor in (recurrence.Wb, recurrence.Rb, recurrence.P)),
    )


def _derive_together(
    pieces: list[_Piece], goldens: list[Result], found: list[Result], profile: Profile
) -> None:
    """Write the tolerances of pieces to their results.

    NaN and infinity are handled only if a tolerance is not finite without that.
    """
    rounding = profile.rounding(pieces[0][0].dtype)
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
        # The last state of a sequence of length 0 is its initial state.
        front = recurrence.X.shape[:-3]
        of_states = tolerances[start:stop]  # [D, T + 1, N, S, H]
        whole = of_states.reshape(*front, len(recurrence.directions), *of_states.shape[1:])
        ends = [after_last_step(whole[..., k, :], recurrence.lengths) for k in range(len(last))]
        assemble(recurrence, of_states[:, 1:, :, 0], ends, Result(Y, tuple(last)))  # type: ignore[arg-type]
        start = stop


class Signal(NamedTuple):
    """A signal of a cell's step."""

    # `pre_i`, the argument of gate i's activation before it is clipped; `gate_i`, its value;
    # `h_of_C`, the activated cell state; `state_H` and `state_C`, the new states
    name: str
    row: int  # its index in `Result.signals`
    node: Expression  # its expression; a new state has its symbol


def signals_of(recurrence: Recurrence) -> tuple[Signal, ...]:
    """Return the signals of a recurrence's step, in order of evaluation, and the new states last.

    A gate whose value is a new state has that name only; an argument that is a state has no other.

    Raises:
        Unsupported: the equations are not of the form that tolerances are derived for.
    """
    equations, gates = equations_of(recurrence), recurrence.cell.gates
    found: list[Signal] = []
    seen: Counter[str] = Counter()
    for k, node in enumerate(equations.activated):
        gate = next(_gates(node.of), None)
        if gate is None:
            of = STATES[node.of.label] if isinstance(node.of, State | NewState) else "sum"
            names = f"pre_{node.label}_of_{of}", f"{node.label}_of_{of}"
        else:
            names = f"pre_{gates[gate]}", f"gate_{gates[gate]}"
        for row, (name, each) in enumerate(zip(names, (node.of, node), strict=True), 2 * k):
            if each not in (*equations.new, *equations.symbols):
                seen[name] += 1  # a name used before gets a number
                number = f"_{seen[name]}" if seen[name] > 1 else ""
                found.append(Signal(name + number, row, each))
    for k, symbol in enumerate(equations.symbols):
        found.append(Signal(f"state_{STATES[k]}", 2 * len(equations.activated) + k, symbol))
    return tuple(found)


def _gates(node: Expression) -> Iterator[int]:
    """Yield the gates whose inputs are terms of an activation's argument."""
    if isinstance(node, GateInput):
        yield node.label
    elif not isinstance(node, Activated):
        for operand in node.operands:
            yield from _gates(operand)


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
    if golden.size and profile.inner(recurrence.dtype) != recurrence.dtype:
        wide, result = _before_rounding(recurrence, profile, wants_signals=True)
        assert result.signals is not None
        real = result.signals[[row.row for row in signals_of(recurrence)]]
        allowed = derive_signals(wide, real, profile)
        found = _farthest_rounding(golden, real, allowed, recurrence.dtype)
    elif not profile.is_exact and golden.size:
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
