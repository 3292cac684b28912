"""Checks that every sound implementation gives a case's expected values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.operation_errors import Trajectory, through
from rnncli.numerics import FLOAT64, dtype_named, round_to
from rnncli.numerics.profiles import ACCUMULATORS
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence, Result


# Within such a fraction of the largest number, rounding errors may decide what overflows.
NEAR = 2.0**-6
# Activations whose values stay within -1 and 1.
WITHIN_ONE = frozenset({"Sigmoid", "Tanh", "HardSigmoid", "Softsign"})
Blend: TypeAlias = "Callable[[Value, Value, Value], Value]"
# Forms in which kernels compute a GRU's (1 - z) (.) h + z (.) H; the second is NaN for infinities.
BLENDS: tuple[Blend | None, ...] = (None, lambda z, h, H: h + z * (H - h))


def exactness_problem(recurrence: Recurrence, golden: Result) -> str:
    """Return why a case is not exact, or "".

    The weights and inputs of exact cases are small integers over powers of two, so that every
    partial sum of a gate is representable in any order; their activations are piecewise linear.
    Two conditions show it. First, evaluation in the dtype itself, with every product and partial
    sum rounded to it, gives the golden values, in both orders of summation. Second, the sum of the
    moduli of a gate's terms stays below 2^p times the smallest unit that any of them is a multiple
    of, so that no order of summation ever rounds.
    """
    if recurrence.options.integers is not None:
        return ""
    if not recurrence.cell.projects:
        return f"which sums of a {recurrence.cell.name} are exact is not known; use another profile"
    if recurrence.quantiser is not None:
        return "levels that are ties may be rounded either way, so quantised states are not exact"
    whole = replace(recurrence, wants_Y=True)
    with np.errstate(all="ignore"):
        for backwards in (False, True):
            found = evaluate(whole, _RoundedEngine(recurrence.dtype.numpy, backwards=backwards))
            if wrong := _first_wrong(found, golden, _unequal):
                name, place, got, wanted = wrong
                order = "last term first" if backwards else "first term first"
                return (
                    f"{name} is not exact: summed in {recurrence.dtype}, {order}, its"
                    f" canonical element {place} is {got!r}, not {wanted!r}"
                )
        if golden.Y is None:
            golden = backend_named("numpy").run(whole, Compute.FLOAT64)
        return _headroom_problem(whole, golden)


def _first_wrong(
    found: Result, golden: Result, differ: Callable[[Array, Array], Array]
) -> tuple[str, list[int], float, float] | None:
    """Return the first element that is not as expected: of what, where, what it is, and is due."""
    for name, values, wanted in zip(
        ("Y", "Y_h", "Y_c"), (found.Y, *found.last), (golden.Y, *golden.last), strict=False
    ):
        if values is None or wanted is None:
            continue
        where = np.argwhere(differ(values, wanted))
        if len(where):
            place = [int(k) for k in where[0]]
            got, due = (float(each[tuple(place)]) for each in (values, wanted))
            return name, place, got, due
    return None


def _unequal(values: Array, wanted: Array) -> Array:
    """Return the mask of unequal elements; NaN equals NaN."""
    return np.asarray(~((values == wanted) | (np.isnan(values) & np.isnan(wanted))))


def _headroom_problem(recurrence: Recurrence, golden: Result) -> str:
    """Return which gate's terms could round in some order, or ""."""
    assert golden.Y is not None
    path = Trajectory.of(recurrence, golden.Y, hostile=False)
    D, T, N, H = path.sizes
    if not D * T * N * H:
        return ""
    h = path.H[:, :-1]
    size = through(np.abs(path.X), np.abs(path.W)) + through(np.abs(h), np.abs(path.R))
    unit = np.minimum(_outer_unit(path.X, path.W), _outer_unit(h, path.R))
    for bias in (path.Wb, path.Rb):
        if bias is not None:
            size = size + np.abs(bias)
            unit = np.minimum(unit, _unit(bias))
    ratio = np.where(np.isfinite(unit), size / unit, 0.0)
    worst = float(np.max(ratio))
    precision = recurrence.dtype.precision
    if worst < 2.0**precision:
        return ""
    gate = recurrence.cell.gates[int(np.argmax(ratio.reshape(len(ratio), -1).max(axis=1)))]
    return (
        f"the terms of gate {gate} need {np.log2(worst):.1f} bits and {recurrence.dtype} has"
        f" {precision}: another order of summation could round"
    )


def _outer_unit(x: Array, weights: Array) -> Array:
    """Return a power of two that divides all products in a sum, [G, D, T, N, H]."""
    of_x = _unit(x).min(axis=-1, initial=np.inf)[None, ..., None]
    of_weights = _unit(weights).min(axis=-1, initial=np.inf)[:, :, None, None]
    return np.asarray(of_x * of_weights)


def _unit(values: Array) -> Array:
    """Return the largest power of two that divides each value; infinity for zero."""
    significand, exponent = np.frexp(values)
    whole = np.ldexp(significand, 53).astype(np.int64)
    unit = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(values == 0, np.inf, unit)


class _RoundedEngine(NumPyEngine):
    """An engine that sums term by term and rounds every product and sum to its dtype."""

    def __init__(self, dtype: np.dtype[Any], *, backwards: bool) -> None:
        super().__init__(dtype)
        self._step = -1 if backwards else 1

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Add term by term."""
        total = np.zeros((*matrix.shape[:2], values.shape[1], matrix.shape[3]), self.dtype)
        for k in range(matrix.shape[2])[:: self._step]:
            total += values[:, :, k, None] * matrix[:, :, None, k]
        return total


def overflow_problem(recurrence: Recurrence, golden: Result, profile: Profile) -> str:
    """Return why a sound implementation might not overflow where the expected values do, or "".

    Expected values are computed in real numbers and rounded once. A kernel has accumulators, and
    keeps states in them or in the tensors' dtype; larger values become infinite, and infinity minus
    infinity is NaN. A case may judge kernels only if none of that can matter:

    - the moduli of all terms of a sum, infinite ones aside, stay below the accumulator's largest
      number, so that no order of summation overflows on its way;
    - no state is so near the dtype's largest number that rounding errors decide whether it
      overflows;
    - if states do overflow, a kernel that keeps them in the dtype has infinity and NaN exactly
      where the expected values do.
    """
    if recurrence.options.integers is not None:
        return ""
    if recurrence.options.projected:
        return _projected_overflow_problem(recurrence)
    if not recurrence.cell.projects:
        return _linear_overflow_problem(recurrence, profile)
    dtype, R = recurrence.dtype, recurrence.R  # sums have at least the dtype's own precision
    is_wide = ACCUMULATORS[profile.accumulator].precision > dtype.precision
    accumulator = dtype_named("float32") if is_wide else dtype
    largest_state, largest_sum = (
        float(ml_dtypes.finfo(each.numpy).max)  # type: ignore[no-untyped-call]
        for each in (dtype, accumulator)
    )
    if _is_small(recurrence, largest_state, largest_sum):
        return ""
    seen = _Observer(recurrence, largest_state)
    seen.run()

    lanes = lanes_of(recurrence)
    X = np.abs(np.where(np.isfinite(lanes.X), lanes.X, 0).astype(np.float64))
    W = np.abs(recurrence.W.astype(np.float64)).max(axis=1, initial=0.0)  # of any gate, [D, H, I]
    flat = X.reshape(len(X), math.prod(X.shape[1:-1]), X.shape[-1])
    with np.errstate(all="ignore"):
        total = (
            float(np.max(flat @ W.swapaxes(1, 2), initial=0.0))
            + R.shape[-1] * seen.multiplied * _size(R)
            + (_size(recurrence.Wb) + _size(recurrence.Rb))
            + _size(recurrence.P) * seen.kept[-1]
        )
    if not total < (1 - NEAR) * largest_sum:
        return (
            f"the terms of a gate add up to {total:.3g} in modulus, and {accumulator}, in which"
            f" they may be summed, ends at {largest_sum:.3g}: some order could overflow on its way"
        )

    if seen.is_near:
        return (
            f"a state is within {NEAR:.0%} of {largest_state:.3g}, the largest {dtype}:"
            " rounding errors decide whether it overflows"
        )
    if max(seen.kept) >= largest_sum:
        return f"a state reaches {max(seen.kept):.3g}, beyond the largest {accumulator}"

    for form in BLENDS if seen.overflows else ():
        stored = _stored_in_dtype(recurrence, form)
        # Of two elements one is finite, an infinity or NaN, and the other is not.
        if wrong := _first_wrong(stored, golden, lambda a, b: np.asarray(_kind(a) != _kind(b))):
            name, place, got, wanted = wrong
            return (
                f"a kernel that keeps its states in {dtype} has {got:g} at"
                f" canonical {name}{place}, where {wanted:g} is expected"
            )
    return ""


def _projected_overflow_problem(recurrence: Recurrence) -> str:
    """Return the same of an LSTM with a projection, unless magnitudes alone rule it out."""
    largest = float(ml_dtypes.finfo(recurrence.dtype.numpy).max)  # type: ignore[no-untyped-call]
    r, size = recurrence, 0.0
    if r.projection is not None:
        size = r.projection.shape[-1] * _size(r.projection)
    h = np.full(1, max(size, _size(r.initial[0])))
    if _is_small(replace(r, initial=(h, r.initial[1])), largest, largest):
        return ""
    return f"weights or inputs are so large that a sum might exceed {largest:.3g}: use smaller ones"


def _linear_overflow_problem(recurrence: Recurrence, profile: Profile) -> str:
    """Return the same of a linear recurrence, whose results alone are kept in their dtypes."""
    cell, form = recurrence.cell, recurrence.options.attention
    sums, is_near = profile.step(recurrence.dtype), False
    largest = 0.0

    def step(p: Parameters, x: Value, states: States) -> States:
        nonlocal largest, is_near
        new = cell.step(p, x, states)
        if form is None:
            assert p.W is not None
            window = np.concatenate([states[1], x[..., None]], axis=-1)
            seen = window[..., :: 1 + p.options.gap]
            moduli = [np.abs(p.W * seen).sum(axis=-1) + np.abs(p.Rbh)]
        else:
            made = form.parts(x)
            if p.options.token and p.numbers:
                made = p.options.token.activated(form, p.numbers, x)
            q, k, v = map(np.abs, made[:3])
            e = np.exp(made[3])
            read = k[..., None, :] @ np.abs(e[..., None] * states[1] if form.decays else states[1])
            moduli = [e, v + read[..., 0, :], new[1], q @ np.abs(new[1])]
        largest = max(largest, *map(_size, moduli))
        for state, dtype in zip(new, recurrence.dtypes, strict=True):
            end = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
            is_near |= bool((np.abs(np.abs(state) / end - 1) < NEAR).any())
        return new

    wide = replace(recurrence, dtype=dtype_named("float64"), states_dtype=None)
    with np.errstate(all="ignore"):
        evaluate(replace(wide, cell=replace(cell, step=step)), NumPyEngine(FLOAT64))
    end = float(ml_dtypes.finfo(sums.numpy).max)  # type: ignore[no-untyped-call]
    if not largest < (1 - NEAR) * end:
        return (
            f"a decay, or the terms of a sum in modulus, reach {largest:.3g}, and {sums}, in which"
            f" steps are computed, ends at {end:.3g}"
        )
    if is_near:
        return (
            f"a result is within {NEAR:.0%} of the largest number of its type:"
            " rounding errors decide whether it overflows"
        )
    return ""


def _is_small(recurrence: Recurrence, largest_state: float, largest_sum: float) -> bool:
    """Whether the magnitudes of the tensors alone rule out an overflow."""
    names = {activation.name for row in recurrence.activations for activation in row}
    if not names <= WITHIN_ONE:
        return False
    h, *c = (max(1.0, _size(state)) for state in recurrence.initial)
    cell = sum(c) + recurrence.X.shape[-3]
    total = (
        recurrence.X.shape[-1] * _size(recurrence.X) * _size(recurrence.W)
        + recurrence.R.shape[-1] * h * _size(recurrence.R)
        + (_size(recurrence.Wb) + _size(recurrence.Rb) + cell * _size(recurrence.P))
    )
    return bool(2 * total < largest_sum and 2 * max(h, cell) < largest_state)


def _size(values: Array | None) -> float:
    """Return the largest finite modulus, 0 if there is none."""
    if values is None:
        return 0.0
    moduli = np.abs(values.astype(np.float64))
    return float(np.max(moduli, initial=0.0, where=np.isfinite(moduli)))


class _Observer:
    """The largest states of an evaluation in float64.

    Attributes:
        kept: the largest finite modulus of each state that is carried from step to step.
        multiplied: the largest finite modulus of the operands of products with R.
        overflows: whether a state exceeds the dtype's largest number.
        is_near: whether a state is so near that number that rounding errors decide.
    """

    def __init__(self, recurrence: Recurrence, largest: float) -> None:
        self._recurrence, self._largest = recurrence, largest
        self.kept = [0.0] * recurrence.cell.states
        self.multiplied = 0.0
        self.overflows = self.is_near = False

    def run(self) -> None:
        """Evaluate the recurrence and record its states."""
        cell = replace(self._recurrence.cell, step=self._step)
        wide = replace(self._recurrence, dtype=dtype_named("float64"), cell=cell)
        self._observe(evaluate(wide, NumPyEngine(FLOAT64)).last)

    def _step(self, p: Parameters, x: Value, states: States) -> States:
        self._observe(states)

        def multiply(state: Value, *gates: Any) -> Value:
            self.multiplied = max(self.multiplied, _size(np.asarray(state)))
            return p.R(state, *gates)

        return self._recurrence.cell.step(replace(p, R=multiply), x, states)

    def _observe(self, states: Iterable[Any]) -> None:
        for k, state in enumerate(map(np.asarray, states)):
            moduli = np.abs(state) / self._largest
            self.kept[k] = max(self.kept[k], _size(state))
            self.overflows |= bool((moduli > 1).any())
            self.is_near |= bool((np.abs(moduli - 1) < NEAR).any())


def _stored_in_dtype(recurrence: Recurrence, blend: Blend | None) -> Result:
    """Evaluate a recurrence whose states are rounded to the dtype after every step."""
    cell, dtype = recurrence.cell, recurrence.dtype

    def step(p: Parameters, x: Value, states: States) -> States:
        rounded = (round_to(np.asarray(state), dtype).astype(np.float64) for state in states)
        return cell.step(replace(p, blend=blend or p.blend), x, tuple(rounded))

    return evaluate(replace(recurrence, cell=replace(cell, step=step)), NumPyEngine(FLOAT64))


def _kind(values: Array) -> Array:
    """Return 0 for each finite value, 1 and -1 for infinities, 2 for NaN."""
    signs = np.where(np.isinf(values), np.sign(values.astype(np.float64)), 0)
    return np.where(np.isnan(values), 2, signs)
