"""A step's expressions along a trajectory: values, variances of roundings, systematic errors.

Each kind of expression has one rule, and no rule is specific to a cell.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.judging.tolerances.expressions import (
    Activated,
    Bias,
    Expression,
    GateInput,
    Negative,
    NewState,
    Peephole,
    Product,
    Recurrent,
    Slope,
    State,
    Sum,
    biased,
    crosses,
    equations_of,
    gate_inputs,
    is_of_H,
    is_sum,
    linear,
    rounded,
    terms,
)
from rnncli.judging.tolerances.operation_errors import (
    MATH,
    LevelledResponse,
    QuantisedStates,
    Response,
    of_level_errors,
    product,
    scaled,
    single,
    spread,
    stored,
    through,
)
from rnncli.recurrence.cells import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.judging.tolerances.expressions import Factor, Group
    from rnncli.judging.tolerances.operation_errors import Trajectory
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding


def times(a: Any, b: Any) -> Any:
    """Return a product; a factor of 1 costs nothing."""
    return b if isinstance(a, float) and a == 1 else a * b


def total(values: Iterable[Any]) -> Any:
    """Return the sum of the values that are not None, or None."""
    found = None
    for value in values:
        if value is not None:
            found = value if found is None else found + value
    return found


class Linearised:
    """The step of a recurrence at every point of a trajectory.

    Values are [D, T, N, H], or numbers, or broadcast to that.

    Attributes:
        equations: the expressions.
        R: recurrent weights [G, D, H, H], zero where they are not finite.
        R2: their squares.
        levels: the states as products take them, if they are quantised.
        inner: which states and gates a unit rounds to levels, or None.
    """

    def __init__(self, path: Trajectory, rounding: Rounding) -> None:
        self._path, self._rounding = path, rounding
        self.equations = equations_of(path.recurrence)
        self.inner = path.recurrence.options.levels
        self.R = path.settled(path.R)
        self.R2 = self.R * self.R
        in_x, self._Rbh = placed(None, path.Rb, path.recurrence.options)
        self._x = product(path.X, path.W)
        for bias in (path.Wb, in_x):
            if bias is not None:
                self._x += single(bias)
        quantiser, H = path.recurrence.quantiser, path.H[:, :-1]
        self.levels = None if quantiser is None else QuantisedStates(quantiser, H, rounding)
        taken = H if self.levels is None else self.levels.values
        self._by_H = product(taken, path.R[: self.equations.gates_of_H])
        # The variance that Xt*(W^T) has from inputs rounded to other levels.
        noise = None if path.X_errors is None else of_level_errors(path.X_errors, rounding)
        self._of_X = None if noise is None else through(noise, path.W**2)
        self._responses: dict[Group, Response] = {}
        self._raw: dict[Expression, Any] = {}
        self._values: dict[Expression, Any] = {} if path.hostile else self._raw
        self._moduli: dict[Expression, Any] = {}

    def of_products(self, of_H: Array) -> Array:
        """Return the variances of Ht-1*(R^T) of each gate [G, D, T, N, H]."""
        R2 = self.R2[: self.equations.gates_of_H]
        if self.levels is None:
            return through(np.ascontiguousarray(of_H), R2)
        by_scale = self._by_H[0] ** 2 * self.levels.of_scale(of_H)
        return np.asarray(through(self.levels.of_levels(of_H), R2) + by_scale)

    def value(self, node: Factor) -> Any:
        """Return an expression's values, computed from leaves with zeros for NaN and infinity."""
        if isinstance(node, float):
            return node
        found = self._values.get(node)
        if found is None:
            found = node.evaluate(self.value)
            if found is None:
                found = self._path.settled(self.raw(node))
            self._values[node] = found
        return found

    def modulus(self, node: Factor) -> Any:
        """Return the modulus of an expression's `value`."""
        if isinstance(node, float):
            return abs(node)
        found = self._moduli.get(node)
        if found is None:
            found = self._moduli[node] = np.abs(self.value(node))
        return found

    def raw(self, node: Expression) -> Any:
        """Return an expression's values; those of activations are always finite."""
        found = self._raw.get(node)
        if found is None:
            found = node.evaluate(self.raw)
            if found is None:
                found = self._of_leaf(node)
            self._raw[node] = found
        return found

    def _of_leaf(self, node: Expression) -> Any:
        match node:
            case State() | NewState():
                states = self._unseen if node.label else self._path.H
                if isinstance(node, NewState):
                    return states[:, 1:]
                held = [states[:, :1], self.held(node.label, states[:, 1:-1])]
                return states[:, :-1] if self.inner is None else np.concatenate(held, axis=1)
            case Activated():
                response, k = self.response(node)
                return response.y[k]
            case Slope():
                response, k = self.response(node.of)
                return response.slope[k]
            case Peephole():
                assert self._path.P is not None
                return self._path.P[node.label]
        return self._sums(node)[0]

    @cached_property
    def _unseen(self) -> Array:
        """C before and after every step, [D, T + 1, N, H]."""
        D, T, N, H = self._path.sizes
        C = np.empty((D, T + 1, N, H))
        C[:, 0] = self._path.C0
        for t in range(T):
            old = self.held(1, C[:, t]) if t else C[:, t]
            C[:, t + 1] = self._at(t, self.equations.new[1], {self.equations.old[1]: old})
        return C

    def held(self, state: int, values: Array) -> Array:
        """Return new values of a state as the next step takes them."""
        dress = self.inner.states[state] if self.inner else None
        return values if dress is None else dress.reals(dress.levels(values)).astype(np.float64)

    def _at(self, t: int, node: Expression, known: dict[Expression, Any]) -> Any:
        """Return the values at one step [D, N, H], given C up to there."""

        def value(operand: Expression) -> Any:
            return self._at(t, operand, known)

        if node not in known and node in self.equations.of_C:
            found = node.evaluate(value)
            if found is None:
                letter = node.label
                clip = self._path.recurrence.bound(letter)
                x = np.clip(value(node.of), -clip, clip)
                found = self._path.activation(letter)(MATH, x)
            known[node] = found
        elif node not in known:
            values = self.raw(node)
            known[node] = values if isinstance(values, float) else values[:, t % values.shape[1]]
        return known[node]

    def response(self, node: Expression) -> tuple[Response, int]:
        """Return the response of an activation's group, and its index in the group.

        The arguments of a group are [group, D, T, N, H].
        """
        group, k = self.equations.groups[node]
        if group not in self._responses:
            letter, path = group[0].label, self._path
            x, error = self._arguments([each.of for each in group])
            rest = path.activation(letter), x, error, path.recurrence.bound(letter), self._rounding
            argument, gate = self.inner.of_activation(letter) if self.inner else (None, None)
            response = (
                LevelledResponse(*rest, argument=argument, gate=gate)
                if argument or gate
                else Response(*rest)
            )
            if path.hostile:
                response.forgive(np.isfinite(x))
            self._responses[group] = response
        return self._responses[group], k

    def _arguments(self, nodes: list[Expression]) -> tuple[Array, Array]:
        """Return the values and deviations of the arguments of some activations."""
        if not is_sum(nodes[0]):
            noise: Any = [self.noise_of_all(node) for node in nodes]
            error = np.zeros(()) if noise[0] is None else np.sqrt(noise)
            return np.stack([self.raw(node) for node in nodes]), error
        sums = np.empty((3, len(nodes), *self._path.sizes))
        for k, node in enumerate(nodes):
            sums[:, k] = self._sums(node)
        error = spread(sums, self._path.terms, self._rounding)
        for k, node in enumerate(nodes):
            if (more := self.noise(node)) is not None:
                error[k] = np.sqrt(error[k] * error[k] + more)
        return sums[0], error

    def _sums(self, node: Expression) -> Array:
        """Return an expression as a sum of terms, [3, D, T, N, H]."""
        found: Array
        match node:
            case GateInput():
                found = self._x[:, node.label]
            case Recurrent() if is_of_H(node):
                found = self._by_H[:, node.label]
            case Recurrent():
                gate = slice(node.label, node.label + 1)
                found = product(self.raw(node.of), self._path.R[gate])[:, 0]
            case Bias():
                assert self._Rbh is not None
                found = single(self._Rbh)
            case Sum((left, right)):
                found = self._sums(left) + self._sums(right)
            case Negative((of,)):
                found = self._sums(of) * np.array((-1, 1, 1)).reshape(3, 1, 1, 1, 1)
            case Product((left, right)) if is_sum(node):
                by, of = (right, left) if is_sum(left) else (left, right)
                found = scaled(self._sums(of), self.raw(by))
            case _:
                found = single(np.asarray(self.raw(node)))
        return found

    def noise(self, node: Expression) -> Any:
        """Return the variance that an expression has from its leaves, None for zero."""
        if isinstance(node, State | NewState) or is_of_H(node):
            return None
        if isinstance(node, GateInput):
            return None if self._of_X is None else self._of_X[node.label]
        if isinstance(node, Recurrent):
            inner = self.noise_of_all(node.of)
            return None if inner is None else self.through(inner, node)
        if isinstance(node, Activated):
            response, k = self.response(node)
            spread = response.spread
            return (response.slope[k] * spread[k]) ** 2 if spread.ndim else None
        leaves = (*((by, leaf) for leaf, by in linear(node).items()), *gate_inputs(node))
        parts = ((self.value(by), self.noise(leaf)) for by, leaf in leaves)
        return total(times(by * by, noise) for by, noise in parts if noise is not None)

    def noise_of_all(self, node: Expression, kept: Array | None = None) -> Any:
        """Return the variance of an expression from its leaves and its own operations.

        If the expression is a new state, whose values are `kept`, a sum is rounded twice, and a
        value that was neither added nor multiplied once.
        """
        own, *inner = rounded(node) or (None,)
        sizes = [times(self.modulus(by), self.modulus(part)) for by, part in inner]
        if kept is not None:
            sizes.append(np.abs(kept) * (1 + isinstance(node, Sum)))
        elif own is not None:
            sizes.append(self.modulus(node))
        noises = [self.noise(node)]
        if sizes:
            noises.append(stored(total(sizes), self._rounding))
        if is_sum(node):
            sums = self._sums(node)
            noises.append(spread(sums, self._path.terms, self._rounding) ** 2)
        return total(noises)

    def through(self, variances: Array, node: Expression) -> Array:
        """Return variances after a product with R, whose sums have mixed signs."""
        return np.asarray(through(variances, self.R2[node.label : node.label + 1])[0])


class StateVariances(NamedTuple):
    """Variances of the states of every step, each [D, T, N, S, H]."""

    old: Array  # of the states before the steps
    new: Array  # of those after them


class OwnBounds:
    """Bounds on the systematic errors of activations, carried through other expressions."""

    def __init__(self, linear: Linearised) -> None:
        self.linear = linear
        self._bounds: dict[Expression, Any] = {}

    def bound(self, node: Expression) -> Any:
        """Return a bound on an expression's error beyond first order, None for zero."""
        if node in self._bounds:
            return self._bounds[node]
        if isinstance(node, Activated):
            found, inner = self._systematic(node), self.bound(node.of)
            if inner is not None:
                found = found + self._steepness(node) * inner
        elif isinstance(node, Recurrent):
            inner = self.bound(node.of)
            found = None if inner is None else np.sqrt(self.linear.through(inner * inner, node))
        else:
            bounds = ((self.linear.modulus(by), self.bound(leaf)) for by, leaf in biased(node))
            own = (times(by, bound) for by, bound in bounds if bound is not None)
            found = total((*own, *self._crosses(node)))
        self._bounds[node] = found
        return found

    def _steepness(self, node: Expression) -> Any:
        response, k = self.linear.response(node)
        return response.steepness[k]

    def _systematic(self, node: Expression) -> Any:
        response, k = self.linear.response(node)
        return response.own[k]

    def _crosses(self, node: Expression) -> Iterable[Array]:
        """Yield the products of two errors, which are of second order."""
        del node
        return ()


class Bounds(OwnBounds):
    """The same bounds, given the errors of the states."""

    def __init__(self, linear: Linearised, variances: StateVariances) -> None:
        super().__init__(linear)
        self._variances = variances
        self._by_H = linear.of_products(variances.old[..., 0, :])
        self._of_groups: dict[Group, tuple[Array, Array, Array]] = {}
        self._errors: dict[Expression, Any] = {}

    def error(self, node: Expression) -> Any:
        """Return the total error bound of an expression."""
        if node in self._errors:
            return self._errors[node]
        if isinstance(node, Activated):
            _, _, found = self._activation_errors(node)
        elif isinstance(node, State | NewState) or is_of_H(node):
            found = self.carried(node)
        elif isinstance(node, Recurrent):
            found = total((self.carried(node), self.bound(node)))
        else:
            found = total((self._added(node, self.error), *self._crosses(node)))
        self._errors[node] = found
        return found

    def _systematic(self, node: Expression) -> Any:
        _, systematic, _ = self._activation_errors(node)
        return systematic

    def _activation_errors(self, node: Expression) -> tuple[Array, Array, Array]:
        """Return the errors of an activation, given those of the states, each [D, T, N, H].

        Returns:
            First-order error of its argument due to the states; its own error beyond first order;
            its total error.
        """
        group, index = self.linear.equations.groups[node]
        if group not in self._of_groups:
            response, _ = self.linear.response(group[0])
            carried = np.zeros(response.y.shape)
            for k, each in enumerate(group):
                for term in terms(each.of):
                    carried[k] += self._variance(term)
            np.sqrt(carried, out=carried)
            reach = carried + response.spread
            for k, each in enumerate(group):
                if (inner := self.bound(each.of)) is not None:
                    reach[k] += inner
            systematic = response.systematic(reach)
            error = response.steepness * reach + systematic
            self._of_groups[group] = carried, systematic, error
        carried, systematic, error = self._of_groups[group]
        return carried[index], systematic[index], error[index]

    def _variance(self, term: Expression) -> Any:
        """Return the variance that a term of a sum has from those of the states.

        Terms are taken as independent; within a term, contributions by several ways add up in
        modulus, whatever their correlation.
        """
        if isinstance(term, State):
            return self._variances.old[..., term.label, :]
        if isinstance(term, NewState):
            return self._variances.new[..., term.label, :]
        if is_of_H(term):
            return self._by_H[term.label]
        if isinstance(term, Recurrent):
            return self.linear.through(self.carried(term.of) ** 2, term)
        (leaf, factor), *others = linear(term).items()
        if others or leaf is term:
            return self.carried(term) ** 2
        by = self.linear.value(factor)
        return by * by * self._variance(leaf)

    def carried(self, node: Expression) -> Any:
        """Return the first-order error of an expression due to the states."""
        if isinstance(node, Activated):
            carried, _, _ = self._activation_errors(node)
            return self._steepness(node) * carried
        if isinstance(node, State | NewState | Recurrent):
            return np.sqrt(self._variance(node))
        return self._added(node, self.carried)

    def _added(self, node: Expression, rule: Callable[[Expression], Any]) -> Any:
        modulus = self.linear.modulus
        return total(times(modulus(by), rule(leaf)) for leaf, by in linear(node).items())

    def _crosses(self, node: Expression) -> Iterable[Array]:
        for by, crossed in crosses(node):
            left, right = crossed.operands
            yield times(self.linear.modulus(by), self.error(left) * self.error(right))
