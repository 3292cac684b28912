"""How far off the expressions of a step may be, systematically and where it is not linear."""

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
from rnncli.judging.tolerances.roundings import through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.judging.tolerances.expressions import Group
    from rnncli.judging.tolerances.linearised import Linearised
    from rnncli.numerics import Array


class Reply(NamedTuple):
    """What errors of the states make of a group of activations, [group, D, T, N, H].

    Attributes:
        carried: how far their arguments may be off by them, in first order.
        systematic: how far the activations may then be off besides their linear part.
        error: how far they may be off in all.
    """

    carried: Array
    systematic: Array
    error: Array


class OwnBounds:
    """What activations may be off on their own, and what that makes of other expressions."""

    def __init__(self, linear: Linearised) -> None:
        self.linear = linear
        self._bounds: dict[Expression, Any] = {}

    def bound(self, node: Expression) -> Any:
        """Return how far an expression may be off besides its linear part, None for not at all."""
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
        """Yield what products of two errors add: these are of second order."""
        del node
        return ()


class Bounds(OwnBounds):
    """The same, given how far off the states are.

    Args:
        linear: the first order.
        variances: of the states before and after every step, [D, T + 1, N, S, H].
    """

    def __init__(self, linear: Linearised, variances: Array) -> None:
        super().__init__(linear)
        self._variances = variances
        H = variances[:, :-1, :, 0]
        self._by_H = through(H, linear.R2[: linear.equations.gates_of_H])
        self._replies: dict[Group, Reply] = {}
        self._errors: dict[Expression, Any] = {}

    def error(self, node: Expression) -> Any:
        """Return how far an expression may be off in all."""
        if node not in self._errors:
            self._errors[node] = self._error(node)
        return self._errors[node]

    def _error(self, node: Expression) -> Any:
        if isinstance(node, Activated):
            reply, k = self._reply(node)
            return reply.error[k]
        if isinstance(node, State | NewState) or is_of_H(node):
            return self._carried(node)
        if isinstance(node, Recurrent):
            return total((self._carried(node), self.bound(node)))
        return total((self._added(node, self.error), *self._crosses(node)))

    def _systematic(self, node: Expression) -> Any:
        reply, k = self._reply(node)
        return reply.systematic[k]

    def _reply(self, node: Expression) -> tuple[Reply, int]:
        """Return the reply of the group of an activation, and its place there."""
        group, k = self.linear.equations.groups[node]
        if group not in self._replies:
            self._replies[group] = self._replied(group)
        return self._replies[group], k

    def _replied(self, group: Group) -> Reply:
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
        return Reply(carried, systematic, response.steepness * reach + systematic)

    def _variance(self, term: Expression) -> Any:
        """Return the variance that a term of a sum has from those of the states.

        Terms are as if independent; what has several ways into one of them is added up, however
        those may be correlated.
        """
        if isinstance(term, State):
            return self._variances[:, :-1, :, term.label]
        if isinstance(term, NewState):
            return self._variances[:, 1:, :, term.label]
        if is_of_H(term):
            return self._by_H[term.label]
        if isinstance(term, Recurrent):
            return self.linear.through(self._carried(term.of) ** 2, term)
        (leaf, factor), *others = linear(term).items()
        if others or leaf is term:
            return self._carried(term) ** 2
        by = self.linear.value(factor)
        return by * by * self._variance(leaf)

    def _carried(self, node: Expression) -> Any:
        """Return how far an expression may be off because the states are, in first order."""
        if isinstance(node, Activated):
            reply, k = self._reply(node)
            return self._steepness(node) * reply.carried[k]
        if isinstance(node, State | NewState | Recurrent):
            return np.sqrt(self._variance(node))
        return self._added(node, self._carried)

    def _added(self, node: Expression, rule: Callable[[Expression], Any]) -> Any:
        modulus = self.linear.modulus
        return total(times(modulus(by), rule(leaf)) for leaf, by in linear(node).items())

    def _crosses(self, node: Expression) -> Iterable[Array]:
        for by, product in crosses(node):
            left, right = product.operands
            yield times(self.linear.modulus(by), self.error(left) * self.error(right))
