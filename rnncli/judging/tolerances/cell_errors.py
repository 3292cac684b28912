"""The errors of a cell's step, and the recursion that carries their variances through time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.tolerances.expressions import (
    NewState,
    Recurrent,
    by_old_states,
    by_states,
    is_of_H,
)
from rnncli.judging.tolerances.linearised import (
    Bounds,
    Linearised,
    OwnBounds,
    StateVariances,
    total,
)
from rnncli.judging.tolerances.operation_errors import (
    Trajectory,
    level_errors,
    stored,
    systematic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.judging.tolerances.expressions import Derivatives, Expression, Factor
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding


# Squared derivatives are cached up to about this many numbers; beyond, they are computed again.
BLOCK_NUMBERS = 1 << 22
# Added variances have converged when a pass makes them grow by less than this factor.
SETTLED = 1.001
PASSES = 30
# Variances by which errors of several units add up count where they are beyond this factor: three
# times the deviation, below which every sound kernel stays within the tolerance anyway. They are
# known for recurrences of so many multiplications.
REINFORCED = 9.0
COVARIED = 1 << 32


class CellErrors:
    """The linearised errors of a cell along a trajectory.

    All variances are in units of lambda squared: their roots are tolerances. S is the number of
    states: h, or h and C.

    Attributes:
        sizes: D, T, N, H.
        valid: mask of the steps that are not padding [D, T, N]; None if all are.
        live: mask of the steps that change states [D, T, N]; None if all may.
        states: S.
        by_C: derivatives of each new state by the old C [D, T, N, S, H]; None without C.
    """

    def __init__(self, path: Trajectory, rounding: Rounding) -> None:
        self.sizes = path.sizes
        self.valid, self.live = path.live, path.live if path.keeps_ended else None
        self._rounding = rounding
        self._linear = Linearised(path, rounding)
        equations = self._linear.equations
        self._new = equations.new
        self.states = len(self._new)
        self._derivatives = [by_old_states(node, self._new) for node in self._new]
        self._random = [
            self._linear.noise_of_all(node, kept=self._linear.value(symbol))
            for node, symbol in zip(self._new, equations.symbols, strict=True)
        ]
        self._squares: Array | None = None
        self.by_C: Array | None = None
        if self.states > 1:
            by_C = [of.get(equations.old[1], 0.0) for of in self._derivatives]
            self.by_C = self._by_state([self._linear.value(factor) for factor in by_C])

    @cached_property
    def own(self) -> Array | None:
        """The squares of `by_C`."""
        return None if self.by_C is None else self.by_C**2

    def multiplied(self, of_H: Array, steps: slice | int) -> Array:
        """Return variances of the old h [D, ..., N, H] as products take it, but for its scale."""
        levels = self._linear.levels
        return of_H if levels is None else levels.of_levels(of_H, steps)

    @cached_property
    def _changes(self) -> Mapping[int, tuple[Array, Array]]:
        """For states that a unit rounds to levels: how far each is from changing, and a level."""
        inner, value = self._linear.inner, self._linear.value
        dresses = inner.states if inner else ()
        return {
            k: dress.to_change(np.broadcast_to(value(self._new[k]), self.sizes))
            for k, dress in enumerate(dresses)
            if dress is not None
        }

    def tolerances(self, variances: Array) -> Array:
        """Return the tolerances of states, given their variances [D, T + 1, N, S, H].

        Those of a state that a unit rounds to levels are whole levels.
        """
        found = np.sqrt(variances)
        for k, change in self._changes.items():
            found[:, 1:, :, k] = level_errors(found[:, 1:, :, k], *change)
        return found

    def entering(self, variances: Array, step: int) -> Array:
        """Return the variances of the states before a step, [D, N, S, H].

        Args:
            variances: those after the step before, as its equations give them.
            step: the step.
        """
        if not self._changes or not step:
            return variances
        found = variances.copy()
        for k, change in self._changes.items():
            away, level = (each[:, step - 1] for each in change)
            found[..., k, :] = level_errors(np.sqrt(variances[..., k, :]), away, level) ** 2
        return found

    def along(self, variances: Array) -> StateVariances:
        """Return the variances of one run, from those of all states [D, T + 1, N, S, H]."""
        old = variances[:, :-1]
        if self._changes:
            steps = [self.entering(old[:, t], t) for t in range(old.shape[1])]
            old = np.stack(steps, axis=1)
        return StateVariances(old, variances[:, 1:])

    def add_scales(self, found: Array, of_H: Array, steps: slice | int) -> None:
        """Add the variances that new states have from the scales of the old h, if it has some.

        The variances found are those of new states [D, ..., N, S, H]; `of_H` those of the old h.
        """
        if self._linear.levels is not None:
            moved = self._linear.levels.of_scale(of_H, steps)
            found += self._by_scale[:, steps] * moved[..., None]

    @cached_property
    def _by_scale(self) -> Array:
        """The squared derivatives of the new states by the logarithm of a scale [D, T, N, S, H]."""
        value = self._linear.value
        return (
            self._by_state(
                [
                    total(value(by) * value(leaf) for leaf, by in of.items() if is_of_H(leaf))
                    for of in self._derivatives
                ]
            )
            ** 2
        )

    def squares(self, steps: slice) -> Array:
        """Return the squared derivatives of the new states by the old h, [D, t, N, S, H, H]."""
        J = self._jacobian(self._derivatives, steps)
        J *= J
        return J

    @property
    def has_covariances(self) -> bool:
        """Whether errors stay linear in those of the states, and `jacobian` is small enough."""
        D, T, N, H = self.sizes
        rounds = self._linear.levels is not None or bool(self._changes)
        return not rounds and D * T * N * (self.states * H) ** 3 <= COVARIED

    def jacobian(self, step: int) -> Array:
        """Return the derivatives of the new states of a step by the old ones, [D, N, SH, SH]."""
        D, _, N, H = self.sizes
        S = self.states
        found = np.zeros((D, N, S, H, S, H))
        found[..., 0, :] = self._jacobian(self._derivatives, slice(step, step + 1))[:, 0]
        if self.by_C is not None:
            found[..., range(H), 1, range(H)] = self.by_C[:, step]
        return found.reshape(D, N, S * H, S * H)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield the squared derivatives of the new states by the old h, in blocks of steps.

        Each is [D, t, N, S, H, H], with the first of its t steps; a single block is cached.
        """
        D, T, N, H = self.sizes
        steps = max(1, BLOCK_NUMBERS // max(1, D * N * self.states * H * H))
        for start in range(0, T, steps):
            squares = self._squares
            if squares is None:
                squares = self.squares(slice(start, min(start + steps, T)))
            if steps >= T:
                self._squares = squares
            yield start, squares

    def fresh(self, variances: StateVariances | None) -> Array:
        """Return the variances that each step adds, [D, T, N, S, H].

        Errors of second order need the variances of the states; None leaves those errors out.
        """
        bounds = OwnBounds(self._linear) if variances is None else Bounds(self._linear, variances)
        found: list[Any] = [None] * self.states
        for k in self._linear.equations.in_order:
            found[k] = self._random[k]
            if (bound := bounds.bound(self._new[k])) is not None:
                found[k] = found[k] + systematic(bound, self._rounding)
            for node, factor in by_states(self._new[k]).items():
                if isinstance(node, NewState):
                    found[k] = found[k] + self._linear.value(factor) ** 2 * found[node.label]
        return self._by_state(found)

    def stored_states(self) -> Array:
        """Return the variances of the old states as they are stored, [D, T, N, S, H].

        Initial states are exact.
        """
        old = [self._linear.modulus(state) for state in self._linear.equations.old]
        found = self._by_state([stored(size, self._rounding) for size in old])
        found[:, 0] = 0.0
        return found

    def of_signal(self, node: Expression, variances: StateVariances) -> Array:
        """Return the variances of an activation or its argument that is stored, [D, T, N, H]."""
        bounds = Bounds(self._linear, variances)
        found = self._linear.noise_of_all(node, kept=self._linear.value(node))
        found = found + bounds.carried(node) ** 2
        if (bound := bounds.bound(node)) is not None:
            found = found + systematic(bound, self._rounding)
        return np.asarray(found)

    def _by_state(self, values: list[Any]) -> Array:
        """Join the values of h and of C along a new axis, [D, T, N, S, H]."""
        found = np.empty((*self.sizes[:3], self.states, self.sizes[3]))
        for k, of in enumerate(values):
            found[..., k, :] = of
        return found

    def _jacobian(self, derivatives: list[Derivatives], steps: slice) -> Array:
        """Return derivatives by the old h, [D, t, N, len(derivatives), H, H]."""
        D, T, N, H = self.sizes
        t, S = len(range(T)[steps]), len(derivatives)
        gates = sorted({leaf.label for of in derivatives for leaf in of if is_of_H(leaf)})
        coefficients = np.zeros((len(gates), D, t, N, S, H))
        for k, of in enumerate(derivatives):
            for leaf, factor in of.items():
                if is_of_H(leaf):
                    coefficients[gates.index(leaf.label), :, :, :, k] += self._at(steps, factor)
        found = combined(coefficients, self._linear.R[gates])
        diagonal = found.reshape(D, t, N, S, H * H)[..., :: H + 1]
        for k, of in enumerate(derivatives):
            for leaf, factor in of.items():
                if leaf is self._linear.equations.old[0]:
                    diagonal[..., k, :] += self._at(steps, factor)
                elif isinstance(leaf, Recurrent) and not is_of_H(leaf):
                    # diag(factor) R J, where J are the derivatives of R's operand.
                    J = self._jacobian([by_old_states(leaf.of, self._new)], steps)[:, :, :, 0]
                    RJ: Array = self._linear.R[leaf.label][:, None, None] @ J
                    RJ *= self._at(steps, factor)[..., None]
                    found[:, :, :, k] += RJ
        return found

    def _at(self, steps: slice, factor: Factor) -> Any:
        values = np.asarray(self._linear.value(factor))
        return values[:, steps] if values.ndim and values.shape[1] > 1 else values


def combined(coefficients: Array, matrices: Array) -> Array:
    """Return the sum over k of diag(coefficients[k]) matrices[k], [D, T, N, S, H, H].

    The coefficients are [K, D, T, N, S, H], the matrices [K, D, H, H].
    """
    K, D, T, N, S, H = coefficients.shape
    found = np.empty((D, T * N * S, H, H))  # the caller reshapes it, and writes to that
    if K == 1:
        rows = coefficients.reshape(D, T * N * S, H, 1)
        np.multiply(rows, matrices[0][:, None], out=found)
        return found.reshape(D, T, N, S, H, H)
    by_row = np.ascontiguousarray(coefficients.reshape(K, D, T * N * S, H).transpose(1, 3, 2, 0))
    np.matmul(by_row, matrices.transpose(1, 2, 0, 3), out=found.transpose(0, 2, 1, 3))
    return found.reshape(D, T, N, S, H, H)


def variances_of(errors: CellErrors) -> Array:
    """Return the variances of all states before and after every step, [D, T + 1, N, S, H].

    Errors of second order, kinks and jumps depend on the errors of the states, and these on them:
    the first pass leaves them out, and each further pass uses the states' errors of the one before.
    Directions that do not converge get infinite variances: nothing is known about them.
    Errors of different units count as independent, except in directions in which they add up.
    """
    found = _settled(errors, _carry)
    if errors.has_covariances:
        covaried = _carry_together(errors, errors.fresh(errors.along(found)))
        together = (covaried > REINFORCED * found).any(axis=(1, 2, 3, 4))
        if together.any():
            found[together] = _settled(errors, _carry_both)[together]
    return found


def _settled(errors: CellErrors, carry: Callable[[CellErrors, Array], Array]) -> Array:
    added = errors.fresh(None)
    found = carry(errors, added)
    growing = np.ones(len(found), np.bool_)  # directions converge independently
    for _ in range(PASSES):
        before, added = added, errors.fresh(errors.along(found))
        growing &= (added > SETTLED * before).any(axis=(1, 2, 3, 4))
        if not growing.any():  # the variances have converged as well
            return found
        found[growing] = carry(errors, added)[growing]
    found[growing] = np.inf
    return found


def variances_of_steps(errors: CellErrors, entering: Array) -> Array:
    """Return the variances of the new states of every step alone, [D, T, N, S, H].

    The old h of each step is known up to a given variance [D, T, N, H]; C, which is not an output,
    carries its variance from step to step.
    """
    D, T, N, H = errors.sizes
    before = np.zeros((D, T + 1, N, errors.states, H))
    before[:, :-1, :, 0] = entering
    from_h = _from_h(errors, entering)
    added = errors.fresh(None)
    for _ in range(PASSES):
        found = from_h + added
        if errors.own is not None:  # by which the old C contributes
            for t in range(1, T):
                found[:, t] += errors.own[:, t] * found[:, t - 1, :, 1:]
        before[:, 1:, :, 1:] = found[..., 1:, :]
        last, added = added, errors.fresh(errors.along(before))
        if not (added > SETTLED * last).any():
            return found
    return np.full_like(from_h, np.inf)


def variances_of_one_step(errors: CellErrors, old: Array) -> StateVariances:
    """Return the variances of the states of every step alone; those of old states are given."""
    from_old = _from_h(errors, old[..., 0, :])
    if errors.own is not None:
        from_old += errors.own * old[..., 1:, :]
    new = from_old + errors.fresh(None)
    for _ in range(PASSES):
        last, new = new, from_old + errors.fresh(StateVariances(old, new))
        if not (new > SETTLED * last).any():
            return StateVariances(old, new)
    return StateVariances(old, np.full_like(new, np.inf))


def _from_h(errors: CellErrors, entering: Array) -> Array:
    """Return (J o J) times the variances of the old h, [D, T, N, S, H]."""
    D, T, N, H = errors.sizes
    found = np.empty((D, T, N, errors.states * H))
    for start, squares in errors.blocks():
        steps = slice(start, start + squares.shape[1])
        matrices = squares.reshape(D, -1, N, errors.states * H, H)
        taken = errors.multiplied(entering[:, steps], steps)
        np.matmul(matrices, taken[..., None], out=found[:, steps, :, :, None])
    whole = found.reshape(D, T, N, errors.states, H)
    errors.add_scales(whole, entering, slice(None))
    return whole


def _carry(errors: CellErrors, fresh: Array) -> Array:
    """Iterate v <- (J o J) v + q from v = 0: initial states are exact."""
    D, T, N, S, H = fresh.shape
    found = np.empty((T + 1, D, N, S, H))
    found[0] = 0.0
    flat = found.reshape(T + 1, D, N, S * H, 1)
    added = fresh.swapaxes(0, 1)
    own = None if errors.own is None else errors.own.swapaxes(0, 1)
    for start, squares in errors.blocks():
        matrices = squares.reshape(D, -1, N, S * H, H).swapaxes(0, 1)
        for t, matrix in enumerate(matrices, start):
            old = errors.entering(found[t], t)
            h = old[..., 0, :]
            np.matmul(matrix, errors.multiplied(h, t)[..., None], out=flat[t + 1])
            new = found[t + 1]
            errors.add_scales(new, h, t)
            new += added[t]
            if own is not None:
                new += own[t] * old[..., 1:, :]
            if errors.live is not None:
                np.copyto(new, found[t], where=~errors.live[:, t, :, None, None])
    return found.swapaxes(0, 1)


def _carry_together(errors: CellErrors, fresh: Array) -> Array:
    """Return the diagonals of V <- J V J^T + diag(q) from V = 0: errors of units are correlated."""
    D, T, N, S, H = fresh.shape
    found = np.zeros((T + 1, D, N, S * H))
    V = np.zeros((D, N, S * H, S * H))
    for t in range(T):
        J = errors.jacobian(t)
        V = J @ V @ J.swapaxes(-1, -2)
        V[..., range(S * H), range(S * H)] += fresh[:, t].reshape(D, N, S * H)
        if errors.valid is not None:
            V *= errors.valid[:, t, :, None, None]
        found[t + 1] = np.diagonal(V, axis1=-2, axis2=-1)
    return found.reshape(T + 1, D, N, S, H).swapaxes(0, 1)


def _carry_both(errors: CellErrors, fresh: Array) -> Array:
    apart, together = _carry(errors, fresh), _carry_together(errors, fresh)
    return np.where(together > REINFORCED * apart, together, apart)
