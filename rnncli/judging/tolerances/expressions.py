"""The expressions of a cell's new states, recorded by running its step once on symbols.

They are all that the error model knows about a cell. Their derivatives are expressions as well.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from rnncli.errors import Unsupported
from rnncli.recurrence.cells import NO_OPTIONS, Parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Cell, CellOptions
    from rnncli.recurrence.recurrence import Recurrence


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A symbolic value in a step; arrays of gates hold one expression per row."""

    operands: tuple[Expression, ...] = ()  # the expressions that it is computed from
    label: Any = 0  # which one it is among those of its kind
    operation: ClassVar[Callable[..., Any] | None] = None

    @property
    def of(self) -> Expression:
        """The only operand."""
        return self.operands[0]

    def evaluate(self, value: Callable[[Expression], Any]) -> Any:
        """Return the value for its operands' values; None if those do not suffice."""
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
    """A number in the equations; the label is the number."""

    def evaluate(self, value: Callable[[Expression], Any]) -> Any:
        """Return the number."""
        del value
        return self.label


class State(Expression):
    """A state before the step; label 0 is H."""


class NewState(Expression):
    """A state after the step, as an operand of another new state."""


class GateInput(Expression):
    """Xt*(W^T) with its biases; the label is the gate."""


class Bias(Expression):
    """The recurrent bias that is not added to the inputs' bias."""


class Peephole(Expression):
    """A row of P; the label is the row."""


class Recurrent(Expression):
    """An operand times (R^T); the label is the gate."""


class Activated(Expression):
    """An activation of its clipped operand; the label is the activation's letter."""


class Slope(Expression):
    """The derivative of an activation, its operand, by the activation's argument."""


class Negative(Expression):
    """Its operand, negated."""

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
    """The equations of a step."""

    old: tuple[Expression, ...]  # the states before the step
    # the states after it; a new state within another is replaced by its symbol
    new: tuple[Expression, ...]
    symbols: tuple[Expression, ...]  # the symbols of the states after the step
    # each activation -> its group and its index there. The activations of a group have the same
    # letter and do not depend on each other, so they are evaluated together.
    groups: Mapping[Expression, tuple[Group, int]]
    of_C: frozenset[Expression]  # the expressions computed from the old C
    # positions of the new states, each after those that it is computed from
    in_order: tuple[int, ...]
    gates_of_H: int  # number of leading gates that have a term Ht-1*(R^T)
    # the activations, in the order in which the step evaluates them
    activated: tuple[Expression, ...]


def equations_of(recurrence: Recurrence) -> Equations:
    """Return the expressions of a recurrence's cell.

    Raises:
        Unsupported: see `equations`; or states are quantised of which not only products are taken.
    """
    found = equations(
        recurrence.cell,
        peepholes=recurrence.P is not None,
        bias=recurrence.Rb is not None,
        options=recurrence.options,
    )
    nodes = (node for state in found.new for node in _within(state) if not is_of_H(node))
    if recurrence.quantiser is not None and any(found.old[0] in node.operands for node in nodes):
        raise Unsupported(
            f"cell {recurrence.cell.name}: tolerances of quantised states are derived for cells"
            " that take only products of Ht-1"
        )
    return found


@cache
def equations(
    cell: Cell, *, peepholes: bool, bias: bool, options: CellOptions = NO_OPTIONS
) -> Equations:
    """Return the expressions of a cell.

    Raises:
        Unsupported: the cell has more than two states, or applies R to another state than H.
    """
    gates = range(len(cell.gates))
    activated: list[Expression] = []
    f, g, h = (partial(_activated, activated, letter) for letter in "fgh")

    def times_R(of: Expression, part: slice = slice(None)) -> Array:
        return _rows(Recurrent((of,), gate) for gate in gates[part])

    p = Parameters(
        R=times_R,
        f=f,
        g=g if "g" in cell.activations else f,
        h=h if "h" in cell.activations else f,
        blend=lambda z, h, H: (1 - z) * h + z * H,
        P=_rows(Peephole((), row) for row in range(3)) if peepholes else None,
        Rbh=Bias() if bias else 0,
        options=options,
    )
    old, symbols = (tuple(kind((), k) for k in range(cell.states)) for kind in (State, NewState))
    states = cell.step(p, _rows(GateInput((), gate) for gate in gates), old)
    new, in_symbols = _apart(states, symbols)
    nodes = list(dict.fromkeys(node for state in new for node in _within(state)))

    applied = [part for node in nodes if isinstance(node, Recurrent) for part in _within(node)]
    others = (
        isinstance(node, NewState) or (isinstance(node, State) and node.label) for node in applied
    )
    if any(others) or cell.states > len("HC"):
        raise Unsupported(
            f"cell {cell.name}: tolerances are derived for H and at most one more state, with R "
            "applied to H alone"
        )

    def alike(node: Expression) -> tuple[int, str, bool]:
        return _level(node), node.label, is_sum(node.of)

    groups: dict[Expression, tuple[Group, int]] = {}
    evaluated = sorted((node for node in nodes if isinstance(node, Activated)), key=alike)
    for _, group in groupby(evaluated, alike):
        together = tuple(group)
        groups |= {node: (together, k) for k, node in enumerate(together)}
    return Equations(
        old=old,
        new=new,
        symbols=symbols,
        groups=groups,
        of_C=frozenset(node for node in nodes if any(part in old[1:] for part in _within(node))),
        in_order=tuple(sorted(range(cell.states), key=lambda k: _depth(new[k], new))),
        gates_of_H=max((node.label + 1 for node in nodes if is_of_H(node)), default=0),
        activated=tuple(new[states.index(n)] if n in states else in_symbols(n) for n in activated),
    )


def is_of_H(node: Expression) -> bool:
    """Whether an expression is Ht-1*(R^T)."""
    return isinstance(node, Recurrent) and isinstance(node.of, State)


def is_sum(node: Expression) -> bool:
    """Whether an expression contains a matrix product as a term, as a gate's argument does."""
    inner = isinstance(node, Sum | Product | Negative) and any(map(is_sum, node.operands))
    return inner or isinstance(node, GateInput | Recurrent | Bias)


def _rows(rows: Iterable[Expression]) -> Array:
    return np.array(list(rows), dtype=object)


def _number(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Constant((), float(value))


def _activated(found: list[Expression], letter: str, of: Expression | Array) -> Any:
    """Return activations, which are also added to those found."""
    if isinstance(of, np.ndarray):
        return _rows(_activated(found, letter, row) for row in of)
    found.append(Activated((of,), letter))
    return found[-1]


def _apart(
    new: Sequence[Expression], symbols: Sequence[Expression]
) -> tuple[tuple[Expression, ...], Callable[[Expression], Expression]]:
    """Return new states in which other new states are replaced by symbols, and the replacement."""
    known = dict(zip(new, symbols, strict=True))

    def in_symbols(node: Expression) -> Expression:
        if node not in known:
            known[node] = rebuilt(node)
        return known[node]

    def rebuilt(node: Expression) -> Expression:
        operands = tuple(map(in_symbols, node.operands))
        return replace(node, operands=operands) if operands else node

    return tuple(map(rebuilt, new)), in_symbols


def _within(node: Expression) -> Iterator[Expression]:
    """Yield all expressions within an expression, itself last."""
    for operand in node.operands:
        yield from _within(operand)
    yield node


def _level(node: Expression) -> int:
    """Return the depth of nested activations in an expression."""
    return max(map(_level, node.operands), default=0) + isinstance(node, Activated)


def _depth(node: Expression, new: Sequence[Expression]) -> int:
    """Return the depth of nested new states in an expression."""
    inner = [new[part.label] for part in _within(node) if isinstance(part, NewState)]
    return max((1 + _depth(state, new) for state in inner), default=0)


Factor: TypeAlias = "Expression | float"
Derivatives: TypeAlias = "dict[Expression, Factor]"
# Derivatives are by leaves, whose errors other rules give.
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
    return tuple(
        Subexpression(by, leaf)
        for leaf, by in linear(node).items()
        if isinstance(leaf, Activated)
        or (isinstance(leaf, Recurrent) and (biased(leaf.of) or crosses(leaf.of)))
    )


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
