"""Bounds on the errors of a step's expressions: systematic and of second order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.judging.tolerances.derivatives import biased, crosses, linear, terms
from rnncli.judging.tolerances.expressions import (
    Activated,
    Expression,
    NewState,
    Recurrent,
    State,
    is_of_H,
)
from rnncli.judging.tolerances.linearised import times, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.judging.tolerances.expressions import Group
    from rnncli.judging.tolerances.linearised import Linearised
    from rnncli.numerics import Array


class StateVariances(NamedTuple):
    """Variances of the states of every step, each [D, T, N, S, H].

    Attributes:
        old: of the states before the steps.
        new: of those after them.
    """

    old: Array
    new: Array

    @classmethod
    def along(cls, variances: Array) -> StateVariances:
        """Return those of one run, from variances [D, T + 1, N, S, H]."""
        return cls(variances[:, :-1], variances[:, 1:])


class GroupErrors(NamedTuple):
    """Error bounds of a group of activations, given the errors of the states, [group, D, T, N, H].

    Attributes:
        carried: first-order error of their arguments due to the states.
        systematic: error of the activations beyond first order.
        error: total error of the activations.
    """

    carried: Array
    systematic: Array
    error: Array


class OwnBounds:
    """Bounds on the systematic errors of activations, carried through other expressions."""

    def __init__(self, linear: Linearised) -> None:
        self.linear = linear
        self._bounds: dict[Expression, Any] = {}

    def bound(self, node: Expression) -> Any:
        """Return a bound on an expression's error beyond first order, None for zero."""
        if node not in self._bounds:
            self._bounds[node] = self._bound(node)
        return self._bounds[node]

    def _bound(self, node: Expression) -> Any:
        if isinstance(node, Activated):
            own, inner = self._systematic(node), self.bound(node.of)
            return own if inner is None else own + self._steepness(node) * inner
        if isinstance(node, Recurrent):
            inner = self.bound(node.of)
            return None if inner is None else np.sqrt(self.linear.through(inner * inner, node))
        inner = ((self.linear.modulus(by), self.bound(leaf)) for by, leaf in biased(node))
        own = (times(by, bound) for by, bound in inner if bound is not None)
        return total((*own, *self._crosses(node)))

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
    """The same bounds, given the errors of the states.

    Args:
        linear: the first-order errors.
        variances: variances of the states.
    """

    def __init__(self, linear: Linearised, variances: StateVariances) -> None:
        super().__init__(linear)
        self._variances = variances
        self._by_H = linear.of_products(variances.old[..., 0, :])
        self._group_errors: dict[Group, GroupErrors] = {}
        self._errors: dict[Expression, Any] = {}

    def error(self, node: Expression) -> Any:
        """Return the total error bound of an expression."""
        if node not in self._errors:
            self._errors[node] = self._error(node)
        return self._errors[node]

    def _error(self, node: Expression) -> Any:
        if isinstance(node, Activated):
            errors, k = self._errors_of_group(node)
            return errors.error[k]
        if isinstance(node, State | NewState) or is_of_H(node):
            return self.carried(node)
        if isinstance(node, Recurrent):
            return total((self.carried(node), self.bound(node)))
        return total((self._added(node, self.error), *self._crosses(node)))

    def _systematic(self, node: Expression) -> Any:
        errors, k = self._errors_of_group(node)
        return errors.systematic[k]

    def _errors_of_group(self, node: Expression) -> tuple[GroupErrors, int]:
        """Return the errors of an activation's group, and its index in the group."""
        group, k = self.linear.equations.groups[node]
        if group not in self._group_errors:
            self._group_errors[group] = self._compute_group_errors(group)
        return self._group_errors[group], k

    def _compute_group_errors(self, group: Group) -> GroupErrors:
        response, _ = self.linear.response(group[0])
        carried = np.zeros(response.y.shape)
        for k, node in enumerate(group):
            for term in terms(node.of):
                carried[k] += self._variance(term)
        np.sqrt(carried, out=carried)
        reach = carried + response.spread
        for k, node in enumerate(group):
            if (inner := self.bound(node.of)) is not None:
                reach[k] += inner
        systematic = response.systematic(reach)
        return GroupErrors(carried, systematic, response.steepness * reach + systematic)

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
            errors, k = self._errors_of_group(node)
            return self._steepness(node) * errors.carried[k]
        if isinstance(node, State | NewState | Recurrent):
            return np.sqrt(self._variance(node))
        return self._added(node, self.carried)

    def _added(self, node: Expression, rule: Callable[[Expression], Any]) -> Any:
        modulus = self.linear.modulus
        return total(times(modulus(by), rule(leaf)) for leaf, by in linear(node).items())

    def _crosses(self, node: Expression) -> Iterable[Array]:
        for by, product in crosses(node):
            left, right = product.operands
            yield times(self.linear.modulus(by), self.error(left) * self.error(right))
