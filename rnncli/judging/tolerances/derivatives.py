"""Derivatives of a step's expressions, themselves expressions.

Derivatives are by leaves, whose errors other rules give: states, activations and products with R.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.judging.tolerances.expressions import (
    Activated,
    Expression,
    GateInput,
    Negative,
    NewState,
    Product,
    Recurrent,
    Slope,
    State,
    Sum,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

Factor: TypeAlias = "Expression | float"
Derivatives: TypeAlias = "dict[Expression, Factor]"
LEAVES = (State, NewState, Activated, Recurrent)


class Subexpression(NamedTuple):
    """A subexpression, and the derivative of the whole by it."""

    factor: Factor
    node: Expression


@cache
def subexpressions(node: Expression) -> tuple[Subexpression, ...]:
    """Return the sums, products and leaves of an expression, itself first."""
    own = Subexpression(1.0, node)
    inner: list[tuple[Factor, Expression]] = []
    if isinstance(node, Sum | Negative):
        sign = 1.0 if isinstance(node, Sum) else -1.0
        inner = [(sign, operand) for operand in node.operands]
    elif isinstance(node, Product):
        left, right = node.operands
        inner = [(right, left), (left, right)]
    return own, *(
        Subexpression(_times(outer, factor), part)
        for outer, operand in inner
        for factor, part in subexpressions(operand)
    )


@cache
def linear(node: Expression) -> Derivatives:
    """Return an expression's derivatives by its leaves; a leaf's derivative by itself is 1."""
    return _added(
        (p.factor, {p.node: 1.0}) for p in subexpressions(node) if isinstance(p.node, LEAVES)
    )


@cache
def by_states(node: Expression) -> Derivatives:
    """Return the derivatives by states and by products with R, through activations."""
    if isinstance(node, Activated):
        return _added([(Slope((node,)), by_states(node.of))])
    if isinstance(node, LEAVES):
        return {node: 1.0}
    return _added((factor, by_states(leaf)) for leaf, factor in linear(node).items())


@cache
def by_old_states(node: Expression, new: tuple[Expression, ...]) -> Derivatives:
    """Return the derivatives by states before the step, through the given states after it."""
    return _added(
        (factor, by_old_states(new[leaf.label], new) if isinstance(leaf, NewState) else {leaf: 1.0})
        for leaf, factor in by_states(node).items()
    )


@cache
def biased(node: Expression) -> tuple[Subexpression, ...]:
    """Return the leaves with errors beyond first order."""
    return tuple(Subexpression(by, leaf) for leaf, by in linear(node).items() if _is_biased(leaf))


@cache
def crosses(node: Expression) -> tuple[Subexpression, ...]:
    """Return the products whose operands both have derivatives."""
    products = (part for part in subexpressions(node) if isinstance(part.node, Product))
    return tuple(part for part in products if all(map(linear, part.node.operands)))


@cache
def rounded(node: Expression) -> tuple[Subexpression, ...]:
    """Return the sums and products, each of which rounds."""
    return tuple(part for part in subexpressions(node) if isinstance(part.node, Sum | Product))


@cache
def gate_inputs(node: Expression) -> tuple[Subexpression, ...]:
    """Return the products Xt*(W^T) in an expression."""
    return tuple(part for part in subexpressions(node) if isinstance(part.node, GateInput))


@cache
def terms(node: Expression) -> tuple[Expression, ...]:
    """Return the terms of an expression that have derivatives."""
    if isinstance(node, Sum | Negative):
        return tuple(term for operand in node.operands for term in terms(operand))
    return (node,) * bool(linear(node))


def _is_biased(leaf: Expression) -> bool:
    inner = isinstance(leaf, Recurrent) and bool(biased(leaf.of) or crosses(leaf.of))
    return inner or isinstance(leaf, Activated)


def _added(products: Iterable[tuple[Factor, Derivatives]]) -> Derivatives:
    """Return the sum of derivatives, each multiplied by a factor."""
    found: Derivatives = {}
    for factor, derivatives in products:
        for leaf, inner in derivatives.items():
            own = _times(factor, inner)
            found[leaf] = found[leaf] + own if leaf in found else own
    return found


def _times(a: Factor, b: Factor) -> Factor:
    if isinstance(b, float):
        a, b = b, a
    return -b if a == -1 else a * b
