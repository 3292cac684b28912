"""The canonical recurrence, which every operator is translated to and every backend evaluates.

Read-only weights are constants: backends prepare them once, as a runtime does when it builds a
session. NumPy lets the owner of an array make it writeable again, and older views may still be
writeable; callers must not write through either, because backends trust a constant not to change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.numerics import FLOAT32, FLOAT64, NumPyArithmetic
from rnncli.recurrence.cells import NO_OPTIONS
from rnncli.recurrence.unit import QuantisedUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Cell, CellOptions
    from rnncli.recurrence.quantisation import Quantiser
    from rnncli.recurrence.unit import Dress


# The maximum number of objects derived from the same weights.
MOST_DERIVED = 64


class Compute(StrEnum):
    """The arithmetic of an evaluation."""

    FLOAT64 = "float64"
    """Inputs are widened exactly, everything is computed in float64, each output is rounded
    once.
    """
    NATIVE = "native"
    """The tensors' dtype; float16 and bfloat16 are computed in float32, each output is rounded
    once.
    """


class Direction(StrEnum):
    """The direction in which time is traversed."""

    FORWARD = "forward"
    REVERSE = "reverse"


# Neither record is ever modified. They are not frozen because construction would take five times as
# long, 2 us, which is too long for a tiny evaluation.


@dataclass(slots=True, kw_only=True, eq=False)
class Recurrence:
    """One evaluation, in canonical form: time-major, gates in the cell's order.

    T steps, N sequences, I inputs, H units, D directions, G gates. Arrays have the tensors' own
    dtype and may be views; backends widen them as needed. In a stack of alike recurrences, which
    backends never receive, every array has one more leading axis.

    Attributes:
        cell: the cell, which has the equations.
        dtype: the dtype of the tensors and outputs.
        X: inputs [T, N, I]. Steps past a sequence's length are padding and may hold anything.
        W: input weights [D, G, H, I].
        R: recurrent weights [D, G, H, H], used as Ht-1*(R^T).
        Wb: input bias [D, G, H], or None.
        Rb: recurrent bias [D, G, H], or None.
        P: peephole weights [D, 3, H], gates i, o, f, or None.
        projection: weights [D, O, H] that make the hidden state of o (.) h(C), and their bias in a
            last column, [D, O, H + 1]; or None. R is [D, G, H, O] then.
        initial: one initial state [D, N, H] per state of the cell; None means zero.
        lengths: valid steps of each sequence [N], int64, in 0..T; None means T.
        directions: the D directions.
        activations: for each direction, one per letter of `cell.activations`.
        clip: bound of pre-activations; infinity means none.
        clip_hidden: whether the input of h is clipped too (reading clip-scope).
        keep_initial: Y_h and Y_c of length 0 are the initial state, else zero (zero-length).
        gates: the order of the gates that an attribute of the node chooses, if not the default;
            the arrays here are in the cell's order whatever it says.
        options: the lines of the cell's equations that hold.
        quantiser: how products take inputs and states, if those are quantised; W and R are float64
            then.
        wants_Y: whether all steps are requested, or only the last states.
        unit: the node and the levels that this is made of, in a quantised unit.
        states_dtype: the dtype of the states but the first, if not that of the others.
        constants: objects derived from the weights, if those are constants. `replace` does not copy
            it, since it may replace the weights.
    """

    cell: Cell
    dtype: DType
    X: Array
    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    initial: tuple[Array | None, ...]
    lengths: Array | None
    directions: tuple[Direction, ...]
    activations: tuple[tuple[Activation, ...], ...]
    clip: float = math.inf
    clip_hidden: bool = True
    keep_initial: bool = False
    gates: str = ""
    options: CellOptions = NO_OPTIONS
    quantiser: Quantiser | None = None
    wants_Y: bool = True
    unit: UnitTensors | None = None
    states_dtype: DType | None = None
    projection: Array | None = None
    constants: Constants | None = field(default=None, init=False)

    @property
    def has_steps(self) -> bool:
        """Whether any sequence has a step; without one, outputs are zeros by definition."""
        return len(self.X) > 0 and (self.lengths is None or bool(np.any(self.lengths)))

    @property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each state of a sequence in a direction: [H]; or another, of other cells."""
        *_, G, H, _ = self.W.shape
        if self.options.projected:
            return (self.R.shape[-1],), (H,)
        if self.cell.projects or self.options.integers:
            return ((H,),) * self.cell.states
        if (form := self.options.attention) is not None:
            return (form.group * form.value_size,), (form.key_size, form.value_size)
        return (H,), (H, (G - 1) * (1 + self.options.gap))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtype of each state."""
        return self.dtype, *[self.states_dtype or self.dtype] * (self.cell.states - 1)

    def bound(self, letter: str) -> float:
        """Return the bound of an activation's argument; infinity means none.

        Args:
            letter: f, g or h; the reading clip-scope may leave h unbounded.
        """
        return self.clip if self.clip_hidden or letter != "h" else math.inf

    @property
    def plain(self) -> Recurrence:
        """The linear attention whose tokens are what its step makes of them, in float64."""
        form, token = self.options.attention, self.options.token
        if form is None or token is None:
            return self
        with np.errstate(all="ignore"):
            numbers, X = NumPyArithmetic(), self.X.astype(np.float64)
            parts = token.activated(form, numbers, X)
        own = np.concatenate([each.reshape(*X.shape[:-1], -1) for each in parts], axis=-1)
        if self.lengths is not None:  # gates of padding decay nothing
            own[np.arange(len(X))[:, None] >= self.lengths] = 0
        return replace(self, X=own, options=self.options._replace(token=None))

    def opting(self, **options: Any) -> Recurrence:
        """Return a copy with some other options of its cell."""
        return replace(self, options=self.options._replace(**options))


class DressedNode(Protocol):
    """What a mutant sees of a unit's node."""

    unit: QuantisedUnit | None
    outputs: tuple[str, ...]

    def dressed(self, unit: QuantisedUnit) -> DressedNode:
        """Return the node with its tensors dressed otherwise."""

    def recurrence(self, inputs: Mapping[str, Array], /) -> Recurrence:
        """Return the canonical recurrence."""

    def relevelled(self, name: str, reals: Array, levels: Callable[[Array], Array]) -> Array:
        """Return an output, with the recurrence's axes, as the reals of levels."""


@dataclass(frozen=True, slots=True)
class UnitTensors:
    """A unit's node and its inputs as levels, of which a recurrence is made."""

    node: DressedNode  # the node
    # the inputs; the recurrence's own arrays count, so they are not compared
    inputs: Mapping[str, Array] = field(compare=False)

    @property
    def dresses(self) -> Mapping[str, Dress]:
        """The dresses by the names of their tensors."""
        assert self.node.unit is not None
        return self.node.unit.by_name

    def under(self, dresses: Mapping[str, Dress]) -> Recurrence:
        """Return the recurrence of the same levels, some dressed otherwise."""
        unit = QuantisedUnit(tuple({**self.dresses, **dresses}.items()))
        return self.node.dressed(unit).recurrence(self.inputs)


# The fields that are arrays, or None; `initial` is a tuple of them. All others are settings.
TENSORS = ("X", "W", "R", "Wb", "Rb", "P", "projection", "lengths")


def all_but(*names: str) -> Callable[[Recurrence], tuple[Any, ...]]:
    """Return a function of a recurrence: all its fields but some, for keys and comparisons.

    Whoever tells recurrences apart states which fields do not matter, so that a new field counts
    everywhere at once.
    """
    return attrgetter(
        *(each.name for each in fields(Recurrence) if each.init and each.name not in names)
    )


@dataclass(slots=True, eq=False)
class Result:
    """The outputs of a backend, in the recurrence's dtype.

    Attributes:
        Y: H after every step [T, D, N, H], zero in padding; None if not requested.
        last: one last state [D, N, H] per state of the cell: Y_h, and Y_c for an LSTM.
        bits: precision of the arithmetic that proved every element; 0 if nothing is proved.
        passes: how many times the recurrence was run.
        signals: the signals of every step [signals, T, D, N, H], zero in padding, see
            `backends.reference`; None if not requested.
    """

    Y: Array | None
    last: tuple[Array, ...]
    bits: int = 0
    passes: int = 1
    signals: Array | None = None


def working_dtype(recurrence: Recurrence, compute: Compute) -> np.dtype[Any]:
    """Return the dtype that NumPy computes in; float32 for 16-bit floats, float64 for integers."""
    if compute is Compute.FLOAT64 or not recurrence.dtype.is_float:
        return FLOAT64
    own = recurrence.dtype.numpy
    return own if own.itemsize >= FLOAT32.itemsize else FLOAT32


def is_constant(values: Array) -> bool:
    """Return whether an array and all arrays that it views are read-only.

    The underlying memory must belong to an array or to bytes; other owners may still write.
    """
    owner: Any = values
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes)


def lock(values: Array) -> None:
    """Make an array and all arrays that it views read-only."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner.flags.writeable = False
        owner = owner.base


class Constants:
    """Objects that backends derived from the weights of a recurrence.

    Threads may share it: an entry is complete when stored and never modified afterwards.
    """

    def __init__(self) -> None:
        self._objects: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Return the object stored under a key, or None."""
        return self._objects.get(key)

    def keep(self, key: Hashable, derived: Any) -> None:
        """Store an object that will not change."""
        if len(self._objects) >= MOST_DERIVED:
            self._objects = {}
        self._objects[key] = derived
