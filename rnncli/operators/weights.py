"""The weights of a node as a recurrence has them; those that never change are bound once."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.recurrence.constants import Constants, is_constant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator

    Given: TypeAlias = tuple[Array | None, ...]

# Bytes of a node's weights that are remembered at most, and of those of all nodes, and how many
# nodes they are. What backends make of them takes about as much again, twice in float64.
MOST_OF_ONE, MOST_OF_ALL, MOST_NODES = 1 << 24, 1 << 26, 256


class Weights(NamedTuple):
    """Weights in the cell's order of gates.

    Attributes:
        W: input weights [D, G, H, I].
        R: recurrent weights [D, G, H, H], used as Ht-1*(R^T).
        Wb: input bias [D, G, H]; also the sum of both, where that is what a node holds.
        Rb: recurrent bias [D, G, H].
        P: peephole weights [D, 3, H].
        constants: what was made of them, where they are constants.
    """

    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    constants: Constants | None = None


class Remembered(NamedTuple):
    """Weights, and the arrays that they were bound from: while these live, no other has their id.

    Attributes:
        given: W, R, B and P of the node.
        weights: bound.
        nbytes: of all.
    """

    given: Given
    weights: Weights
    nbytes: int


_REMEMBERED: dict[tuple[object, ...], Remembered] = {}
_LOCK = Lock()


def weights_of(operator: Operator, tensors: Mapping[str, Array], *, literal: bool) -> Weights:
    """Return the weights of a node.

    Args:
        operator: the row.
        tensors: of the node, by role.
        literal: whether states are multiplied by R itself.
    """
    given = W, R, B, P = (tensors["W"], tensors["R"], tensors.get("B"), tensors.get("P"))
    key = (operator, literal, id(W), id(R), id(B), id(P))
    found = _REMEMBERED.get(key)
    if found is not None and not any_unlocked(given):
        return found.weights
    if not all(values is None or is_constant(values) for values in given):
        return _bound(operator, given, literal=literal)
    weights = _bound(operator, given, literal=literal)
    nbytes = sum(values.nbytes for values in given if values is not None)
    if nbytes > MOST_OF_ONE:
        return weights
    weights = weights._replace(constants=Constants())
    _remember(key, Remembered(given, weights, nbytes))
    return weights


def any_unlocked(given: Given) -> bool:
    """Return whether what was a constant can be written to by now: it is not taken for one."""
    for values in given:  # noqa: SIM110 -- a generator takes twice as long, at every call
        if values is not None and values.flags.writeable:
            return True
    return False


def _remember(key: tuple[object, ...], new: Remembered) -> None:
    """Remember weights; all others are forgotten where there is no room for more."""
    with _LOCK:
        total = sum(other.nbytes for other in _REMEMBERED.values()) + new.nbytes
        if total > MOST_OF_ALL or len(_REMEMBERED) >= MOST_NODES:
            _REMEMBERED.clear()
        _REMEMBERED[key] = new


def _bound(operator: Operator, given: Given, *, literal: bool) -> Weights:
    W, R, B, P = given
    assert W is not None
    assert R is not None
    recurrent = _gates(operator, R)
    return Weights(
        _gates(operator, W),
        recurrent.swapaxes(-1, -2) if literal else recurrent,
        *_biases(operator, B),
        _peepholes(P),
    )


def _gates(operator: Operator, weights: Array) -> Array:
    """Split [D, G*H, K] into gates [D, G, H, K], in the cell's order."""
    *front, rows, K = weights.shape
    G = len(operator.gates)
    return _ordered(operator, weights.reshape(*front, G, rows // G, K), axis=-3)


def _ordered(operator: Operator, values: Array, axis: int) -> Array:
    """Bring an axis from the dialect's order of gates into the cell's."""
    if operator.gates == operator.cell.gates:
        return values
    return values.take([operator.gates.index(gate) for gate in operator.cell.gates], axis)


def _biases(operator: Operator, B: Array | None) -> tuple[Array | None, Array | None]:
    """Split B into input and recurrent bias [D, G, H]; a sum counts as the input bias."""
    if B is None:
        return None, None
    parts = 2 if operator.bias == "split" else 1
    *front, rows = B.shape
    G = len(operator.gates)
    split = B.reshape(*front, parts, G, rows // (parts * G))
    pieces = [_ordered(operator, split[..., k, :, :], axis=-2) for k in range(parts)]
    return (pieces[0], pieces[1]) if parts == 2 else (pieces[0], None)


def _peepholes(P: Array | None) -> Array | None:
    return None if P is None else P.reshape(*P.shape[:-1], 3, P.shape[-1] // 3)
