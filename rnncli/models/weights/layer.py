"""The weights of a recurrent layer, as ONNX has them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.models.weights.forms import CELLS_BY_GATES, cell_of, expect_rank, expect_shape, form_of
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rnncli.models.weights.forms import WeightForm
    from rnncli.numerics import Array

# The activations of an RNN that all the libraries have; LSTM and GRU have one set each.
ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu"}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True, kw_only=True, eq=False)
class RecurrentLayer:
    """A layer: D directions, I inputs, H units, and G = 4 (LSTM), 3 (GRU) or 1 (RNN) gates.

    Attributes:
        W: input weights [D, G*H, I], gates in ONNX's order.
        R: recurrent weights [D, G*H, H].
        B: biases [D, 2*G*H], Wb then Rb; or None.
        direction: forward, reverse or bidirectional.
        linear_before_reset: of a GRU: 1 if the reset gate multiplies what R and Rb make of the
            state, 0 if it multiplies the state.
        activation: of an RNN: tanh or relu.

    Raises:
        rnncli.errors.InvalidRequest: shapes, dtypes or attributes do not fit.
    """

    W: Array
    R: Array
    B: Array | None = None
    direction: str = "forward"
    linear_before_reset: int = 0
    activation: str = "tanh"

    def __post_init__(self) -> None:
        expect_rank("W", self.W, "[D, G*H, I]")
        expect_rank("R", self.R, "[D, G*H, H]")
        D, rows, H = self.R.shape
        cell = cell_of(self.R, rows, H, "", "R")
        if DIRECTIONS.get(self.direction) != D:
            raise InvalidRequest(f"direction {self.direction} does not fit R, which has D = {D}")
        expect_shape("W", self.W, (D, rows, self.input_size), "[D, G*H, I]")
        if self.B is not None:
            expect_shape("B", self.B, (D, 2 * rows), "[D, 2*G*H]")
        if self.linear_before_reset not in {0, cell == "GRU"}:
            raise InvalidRequest(
                f"linear_before_reset {self.linear_before_reset}: it is 0, or 1 of a GRU"
            )
        if self.activation not in ACTIVATIONS or (self.activation != "tanh" and cell != "RNN"):
            raise InvalidRequest(f"activation {self.activation}: it is tanh, or relu of an RNN")
        dtypes = {dtype_of(values) for values in (self.W, self.R, self.B) if values is not None}
        if len(dtypes) > 1 or not all(dtype.is_float for dtype in dtypes):
            listed = ", ".join(sorted(map(str, dtypes)))
            raise InvalidRequest(f"W, R and B must be of one floating-point dtype, got {listed}")

    @property
    def cell(self) -> str:
        """LSTM, GRU or RNN, by the shape of R."""
        return CELLS_BY_GATES[self.R.shape[1] // self.R.shape[2]]

    @property
    def input_size(self) -> int:
        """The number of inputs, I."""
        return int(self.W.shape[2])

    @property
    def hidden_size(self) -> int:
        """The number of units, H."""
        return int(self.R.shape[2])

    def form_in(self, library: str) -> WeightForm:
        """Return how a library stores the weights of such a layer.

        Raises:
            rnncli.errors.InvalidRequest: it has no such cell.
        """
        return form_of(library, self.cell, self.linear_before_reset)

    @property
    def tensors(self) -> dict[str, Array]:
        """W, R and, if there is one, B: inputs of `rnncli.evaluate`."""
        named = {"W": self.W, "R": self.R, "B": self.B}
        return {name: values for name, values in named.items() if values is not None}

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of an ONNX node with these weights."""
        found: dict[str, Any] = {"direction": self.direction, "hidden_size": self.hidden_size}
        if self.cell == "GRU":
            found["linear_before_reset"] = self.linear_before_reset
        if self.activation != "tanh":
            found["activations"] = [ACTIVATIONS[self.activation]] * len(self.R)
        return found


def array_with(tensors: Mapping[str, Array], key: str, wanted: Sequence[str]) -> Array:
    """Return the array with a key.

    Raises:
        InvalidRequest: there is none.
    """
    if key not in tensors:
        raise InvalidRequest(f"no '{key}': wanted {', '.join(wanted)}, given {_listed(tensors)}")
    return np.asarray(tensors[key])


def only_module(names: Iterable[str], wanted: str | None) -> str:
    """Return the module to take: the wanted one, or the only one.

    Args:
        names: of the modules with recurrent weights; "" is the whole.
        wanted: one of them, or None.

    Raises:
        InvalidRequest: there is no such module, or there are several and none is wanted.
    """
    found = sorted({*names})
    listed = _listed([f"'{name}'" for name in found])
    if wanted is None and len(found) > 1:
        raise InvalidRequest(f"{len(found)} recurrent modules, choose one (--module): {listed}")
    if wanted is not None and wanted not in found:
        hint = did_you_mean(wanted, found) or f"; there are {listed}"
        raise InvalidRequest(f"no recurrent module '{wanted}'{hint}")
    return found[0] if wanted is None else wanted


def module_of(
    tensors: Mapping[str, Array], pattern: re.Pattern[str], wanted: str | None
) -> tuple[str, Mapping[str, Array]]:
    """Return what is before the keys of a module, its path with a dot or nothing, and its tensors.

    Args:
        tensors: of the module and others.
        pattern: of the names of recurrent weights, without what is before them.
        wanted: the module's path, or None for the only one.

    Raises:
        InvalidRequest: there is no such module, or there are several and none is wanted.
    """
    split = {key: key.rpartition(".") for key in tensors}
    modules = [path for path, _, name in split.values() if pattern.fullmatch(name)]
    if not modules and not wanted:
        return "", tensors  # whose keys are unknown
    chosen = only_module(modules, wanted)
    own = {key: tensors[key] for key, (path, _, _) in split.items() if path == chosen}
    return chosen and f"{chosen}.", own


def expect_stacked(layers: Sequence[RecurrentLayer]) -> None:
    """Require that each layer takes what the one below makes, D*H.

    Raises:
        InvalidRequest: one takes another number of inputs.
    """
    for number, (below, above) in enumerate(pairwise(layers), 1):
        if above.input_size != len(below.R) * below.hidden_size:
            raise InvalidRequest(
                f"layer {number} takes {above.input_size} inputs, the one below makes"
                f" {len(below.R)}*{below.hidden_size}"
            )


def _listed(keys: Collection[str]) -> str:
    """Return the first keys, for a message."""
    most = 12
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(f"{key:.80}" for key in [*keys][:most]) + more or "none"


def for_each_direction(
    layer: RecurrentLayer,
    form: WeightForm,
    convert: Callable[..., tuple[Array, Array, Array | None]],
) -> list[tuple[Array, Array, Array | None]]:
    """Return a conversion of W, R and B for each direction."""
    biases = [None] * len(layer.W) if layer.B is None else layer.B
    return [convert(form, *each) for each in zip(layer.W, layer.R, biases, strict=True)]


def joined(
    directions: Sequence[tuple[Array, Array, Array | None]],
    form: WeightForm,
    *,
    direction: str = "",
    activation: str = "tanh",
) -> RecurrentLayer:
    """Return the layer of one or two directions, each with ONNX's W, R and B.

    Raises:
        InvalidRequest: the directions differ in shape or dtype.
    """
    stacked: list[Array | None] = []
    for name, values in zip("WRB", zip(*directions, strict=True), strict=True):
        kinds = {None if each is None else (each.shape, each.dtype) for each in values}
        if len(kinds) > 1:
            raise InvalidRequest(f"{form.name}: the directions' {name} differ in shape or dtype")
        stacked.append(None if None in kinds else np.stack(values))
    W, R, B = stacked
    assert W is not None
    assert R is not None
    return RecurrentLayer(
        W=W,
        R=R,
        B=B,
        direction=direction or ("bidirectional" if len(directions) > 1 else "forward"),
        linear_before_reset=form.linear_before_reset,
        activation=activation,
    )
