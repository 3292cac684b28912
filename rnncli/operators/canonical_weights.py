"""Weights in canonical form, translated once if they are constants."""

from __future__ import annotations

import sys
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rnncli.recurrence.quantisation import QuantisedWeights
from rnncli.recurrence.recurrence import Constants, is_constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator

    WeightTensors: TypeAlias = tuple[Array | None, ...]


FACTORS = ("W_scale", "W_zero_point", "R_scale", "R_zero_point")
PARAMETERS = ("W", "R", "B", "Wb", "Rb", "P")
"""The roles of a layer's parameters. A row has B, which both biases share, or Wb and Rb."""
WEIGHTS = (*PARAMETERS, *FACTORS)
"""The roles of parameters, and of the scales and zero points of quantised ones."""


class Weights(NamedTuple):
    """Weights in the cell's order of gates.

    Attributes:
        W: input weights [D, G, H, I].
        R: recurrent weights [D, G, H, H], used as Ht-1*(R^T).
        Wb: input bias [D, G, H]; or the sum of both biases, if the node has only that.
        Rb: recurrent bias [D, G, H].
        P: peephole weights [D, 3, H].
        quantised: the integers that W and R are made of, if they are quantised.
        constants: objects derived from the weights, if they are constants.
    """

    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    quantised: tuple[QuantisedWeights, QuantisedWeights] | None = None
    constants: Constants | None = None


class CachedWeights(NamedTuple):
    """Translated weights and their source arrays, kept alive so that their ids stay unique.

    Attributes:
        given: the node's tensors of the roles `WEIGHTS`.
        weights: the translated weights.
        nbytes: total size.
    """

    given: WeightTensors
    weights: Weights
    nbytes: int


class WeightCache:
    """Weights of nodes, with what backends derive from them; threads may share it.

    What backends derive takes about as much memory as the weights, twice that in float64.

    Args:
        nodes: the most nodes.
        of_one: the most bytes of a node's weights.
        of_all: the most bytes of all weights; if they do not fit, the cache is cleared.
    """

    def __init__(self, nodes: int, of_one: int = sys.maxsize, of_all: int = sys.maxsize) -> None:
        self._nodes, self._of_one, self._of_all = nodes, of_one, of_all
        self._cached: dict[tuple[object, ...], CachedWeights] = {}
        self._lock = Lock()

    @property
    def sizes(self) -> list[int]:
        """The bytes of each node's weights."""
        return [each.nbytes for each in self._cached.values()]

    def of(
        self, operator: Operator, tensors: Mapping[str, Array], gates: str, *, literal: bool
    ) -> Weights:
        """Return a node's weights in canonical form, given its tensors by role.

        `gates` is the order of the gates in W, R and the biases; of a `literal` node, states
        are multiplied by R instead of its transpose.
        """
        sources = tuple([tensors.get(role) for role in WEIGHTS])
        key = (operator, gates, literal, *map(id, sources))
        cached = self._cached.get(key)
        if cached is not None and not any_unlocked(sources):
            return cached.weights
        weights = _bound(operator, sources, gates, literal=literal)
        nbytes = sum(values.nbytes for values in sources if values is not None)
        if weights.quantised:
            nbytes += weights.W.nbytes + weights.R.nbytes
        if nbytes > self._of_one or not all(v is None or is_constant(v) for v in sources):
            return weights
        weights = weights._replace(constants=Constants())
        self._keep(key, CachedWeights(sources, weights, nbytes))
        return weights

    def _keep(self, key: tuple[object, ...], new: CachedWeights) -> None:
        with self._lock:
            if sum(self.sizes) + new.nbytes > self._of_all or len(self._cached) >= self._nodes:
                self._cached.clear()
            self._cached[key] = new


EVALUATED = WeightCache(nodes=256, of_one=1 << 24, of_all=1 << 26)
"""The weights of nodes that are not prepared, such as those of `evaluate`."""


def any_unlocked(tensors: WeightTensors) -> bool:
    """Return whether a former constant has become writeable, which disqualifies it."""
    for values in tensors:  # noqa: SIM110 -- a generator takes twice as long, at every call
        if values is not None and values.flags.writeable:
            return True
    return False


def _bound(operator: Operator, tensors: WeightTensors, gates: str, *, literal: bool) -> Weights:
    if not _has_directions(operator):  # of a cell: it has one
        tensors = _with_directions(tensors)
    W, R, B, Wb, Rb, P, *factors = tensors
    assert W is not None
    assert R is not None
    order = [gates.index(gate) for gate in operator.cell.gates]
    quantised = None
    if factors[0] is None:
        W_values, recurrent = _blocks(W, order), _blocks(R, order)
    else:
        quantised = _integers(order, W, *factors[:2]), _integers(order, R, *factors[2:])
        W_values, recurrent = (each.values for each in quantised)
    if B is not None:
        Wb, Rb = _split(B, operator.bias, gates, hidden_size=recurrent.shape[-1])
    return Weights(
        W_values,
        recurrent.swapaxes(-1, -2) if literal else recurrent,
        _rows(Wb, order),
        _rows(Rb, order),
        _rows(P, range(3)),
        quantised,
    )


@cache
def _has_directions(operator: Operator) -> bool:
    return operator.has("num_directions")


def _with_directions(tensors: WeightTensors) -> WeightTensors:
    """Return W and R [..., rows, columns] and the others [..., rows] with an axis of directions."""
    W, R, *rows = tensors
    assert W is not None
    assert R is not None
    return (
        W[..., None, :, :],
        R[..., None, :, :],
        *(None if values is None else values[..., None, :] for values in rows),
    )


def _integers(
    order: Sequence[int], weights: Array, scale: Array | None, zero_point: Array | None
) -> QuantisedWeights:
    """Return weights [D, K, G*H] with scales and zero points [D] or [D, G*H] in canonical form."""

    def per_gate(factor: Array | None) -> Array:
        assert factor is not None
        by_column = weights.ndim - factor.ndim == 1
        return _blocks(factor[..., None], order) if by_column else factor[..., None, None, None]

    levels = _blocks(weights.swapaxes(-1, -2), order)
    return QuantisedWeights(levels, per_gate(scale), per_gate(zero_point))


def _blocks(weights: Array, order: Sequence[int]) -> Array:
    """Split [D, G*H, K] into gates [D, G, H, K], in the cell's order."""
    *front, rows, K = weights.shape
    return _ordered(weights.reshape(*front, len(order), rows // len(order), K), order, axis=-3)


def _rows(values: Array | None, order: Sequence[int]) -> Array | None:
    """Split biases or peephole weights [D, G*H] into gates [D, G, H], in the cell's order."""
    if values is None:
        return None
    *front, rows = values.shape
    return _ordered(values.reshape(*front, len(order), rows // len(order)), order, axis=-2)


def _ordered(values: Array, order: Sequence[int], axis: int) -> Array:
    """Bring an axis into the cell's order of gates."""
    return values if [*order] == sorted(order) else values.take(order, axis)


def _split(B: Array, kind: str, gates: str, hidden_size: int) -> tuple[Array, Array | None]:
    """Split B into input and recurrent bias [D, G*H]; a sum counts as the input bias."""
    rows = len(gates) * hidden_size
    Wb, Rb = B[..., :rows], B[..., rows:]
    if not Rb.shape[-1]:
        return Wb, None
    if kind == "sum":  # only Rbh is apart
        first = gates.index("h") * hidden_size
        Rbh, Rb = Rb, np.zeros_like(Wb)
        Rb[..., first : first + hidden_size] = Rbh
    return Wb, Rb
