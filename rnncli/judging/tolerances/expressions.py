"""The expressions of a cell's new states, found by running its step once over symbols.

All that the error model knows of a cell stands here: what its equations compute from what.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from rnncli.errors import Unsupported
from rnncli.recurrence.cells import Parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Cell


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """What a step computes from what; an array of rows is one of expressions.

    Attributes:
        operands: what it is computed from.
        label: which one it is among those of its kind.
    """

    operands: tuple[Expression, ...] = ()
    label: Any = 0
    operation: ClassVar[Callable[..., Any] | None] = None

    @property
    def of(self) -> Expression:
        """The only operand."""
        return self.operands[0]

    def evaluate(self, value: Callable[[Expression], Any]) -> Any:
        """Return what it makes of its operands' values; None where that takes more."""
        operation = type(self).operation
        return None if operation is None else operation(*map(value, self.operands))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self if other == 0 else Sum((self, _number(other)))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self if other == 1 else Product((self, _number(other)))

    def __neg__(self) -> Expression:
        return Negative((self,))

    def __sub__(self, other: Any) -> Any:
        return self + -_number(other)

    def __rsub__(self, other: float) -> Expression:
        return Sum((_number(other), -self))

    __radd__ = __add__
    __rmul__ = __mul__


class Constant(Expression):
    """A number of the equations, its label."""

    def evaluate(self, value: Callable[[Expression], Any]) -> Any:
        """Return the number."""
        del value
        return self.label


class State(Expression):
    """A state before the step; that of label 0 is H."""


class NewState(Expression):
    """A state after the step, where another is computed from it."""


class GateInput(Expression):
    """Xt*(W^T) with its biases, of the gate that is its label."""


class Bias(Expression):
    """The recurrent bias that is not in the inputs'."""


class Peephole(Expression):
    """The row of P that is its label."""


class Recurrent(Expression):
    """An operand times (R^T) of the gate that is its label."""


class Activated(Expression):
    """The activation whose letter is its label, of an operand that is clipped before."""


class Slope(Expression):
    """The derivative of an activation, its operand, by the argument."""


class Negative(Expression):
    """Its operand with the other sign."""

    operation = operator.neg


class Sum(Expression):
    """The sum of two operands."""

    operation = operator.add


class Product(Expression):
    """The product of two operands."""

    operation = operator.mul


Group: TypeAlias = "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """What a step computes.

    Attributes:
        old: the states before it.
        new: the states after it; where one is computed from another, that is its symbol.
        symbols: of the states after it.
        groups: each activation -> its group, those that can be evaluated at the same time, as they
            have the same letter and none needs another; and its place there.
        of_C: what is computed from the old C.
        in_order: positions of the new states, each after those that it is computed from.
        gates_of_H: how many gates, from the first on, have a term Ht-1*(R^T).
    """

    old: tuple[Expression, ...]
    new: tuple[Expression, ...]
    symbols: tuple[Expression, ...]
    groups: Mapping[Expression, tuple[Group, int]]
    of_C: frozenset[Expression]
    in_order: tuple[int, ...]
    gates_of_H: int


@cache
def equations(
    cell: Cell, *, peepholes: bool, input_forget: bool, after: bool, bias: bool
) -> Equations:
    """Return the expressions of a cell.

    Args:
        cell: whose step is run.
        peepholes: whether there are peephole weights.
        input_forget: the LSTM's forget gate is 1 - it.
        after: the GRU resets after the linear transformation.
        bias: whether there is a recurrent bias.

    Raises:
        Unsupported: the cell has more than two states, or applies R to another state than H.
    """
    gates = range(len(cell.gates))
    f, g, h = (partial(_activated, letter) for letter in "fgh")

    def times_R(of: Expression, part: slice = slice(None)) -> Array:
        return _rows(Recurrent((of,), gate) for gate in gates[part])

    p = Parameters(
        R=times_R,
        f=f,
        g=g if "g" in cell.activations else f,
        h=h if "h" in cell.activations else f,
        blend=lambda z, h, H: (1 - z) * h + z * H,
        P=_rows(Peephole((), row) for row in range(3)) if peepholes else None,
        Rbh=Bias() if after and bias else 0,
        input_forget=input_forget,
        linear_before_reset=after,
    )
    old, symbols = (tuple(kind((), k) for k in range(cell.states)) for kind in (State, NewState))
    new = _apart(cell.step(p, _rows(GateInput((), gate) for gate in gates), old), symbols)
    nodes = list(dict.fromkeys(node for state in new for node in _within(state)))
    _check(cell, nodes)
    return Equations(
        old=old,
        new=new,
        symbols=symbols,
        groups={node: (group, k) for group in _groups(nodes) for k, node in enumerate(group)},
        of_C=frozenset(node for node in nodes if any(part in old[1:] for part in _within(node))),
        in_order=tuple(sorted(range(cell.states), key=lambda k: _depth(new[k], new))),
        gates_of_H=max((node.label + 1 for node in nodes if is_of_H(node)), default=0),
    )


def is_of_H(node: Expression) -> bool:
    """Tell whether an expression is Ht-1*(R^T)."""
    return isinstance(node, Recurrent) and isinstance(node.of, State)


def is_sum(node: Expression) -> bool:
    """Tell whether a product with a matrix is a term of an expression, as of a gate's argument."""
    inner = isinstance(node, Sum | Product | Negative) and any(map(is_sum, node.operands))
    return inner or isinstance(node, GateInput | Recurrent | Bias)


def _rows(rows: Iterable[Expression]) -> Array:
    return np.array(list(rows), dtype=object)


def _number(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Constant((), float(value))


def _activated(letter: str, of: Expression | Array) -> Any:
    if isinstance(of, np.ndarray):
        return _rows(Activated((row,), letter) for row in of)
    return Activated((of,), letter)


def _apart(new: Sequence[Expression], symbols: Sequence[Expression]) -> tuple[Expression, ...]:
    """Return new states with the others, where those are in them, as symbols."""
    known = dict(zip(new, symbols, strict=True))

    def in_symbols(node: Expression) -> Expression:
        if node not in known:
            known[node] = rebuilt(node)
        return known[node]

    def rebuilt(node: Expression) -> Expression:
        operands = tuple(map(in_symbols, node.operands))
        return replace(node, operands=operands) if operands else node

    return tuple(map(rebuilt, new))


def _within(node: Expression) -> Iterator[Expression]:
    """Yield all that an expression is computed from, and it itself last."""
    for operand in node.operands:
        yield from _within(operand)
    yield node


def _check(cell: Cell, nodes: Sequence[Expression]) -> None:
    applied = [part for node in nodes if isinstance(node, Recurrent) for part in _within(node)]
    others = (
        isinstance(node, NewState) or (isinstance(node, State) and node.label) for node in applied
    )
    if any(others) or cell.states > len("HC"):
        raise Unsupported(
            f"cell {cell.name}: tolerances are derived for H and at most one more state, with R "
            "applied to H alone"
        )


def _groups(nodes: Sequence[Expression]) -> Iterator[Group]:
    def alike(node: Expression) -> tuple[int, str, bool]:
        return _level(node), node.label, is_sum(node.of)

    activated = sorted((node for node in nodes if isinstance(node, Activated)), key=alike)
    for _, group in groupby(activated, alike):
        yield tuple(group)


def _level(node: Expression) -> int:
    """Return how many activations stand above each other in an expression."""
    return max(map(_level, node.operands), default=0) + isinstance(node, Activated)


def _depth(node: Expression, new: Sequence[Expression]) -> int:
    """Return how many new states stand one behind the other in an expression."""
    inner = [new[part.label] for part in _within(node) if isinstance(part, NewState)]
    return max((1 + _depth(state, new) for state in inner), default=0)
