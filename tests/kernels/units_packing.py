"""What the kernel blocked by units reads of a node, and its weights packed in panels.

A panel holds 8 units with their gates interleaved: [inputs, gates * 8]; the last panel is padded
with zeros. The gates keep the order of ONNX: zrh and iofc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

PANEL = 8
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DIRECTIONS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


@dataclass
class Layer:
    """A node with its inputs, in layout 0 and the dtype that is computed in.

    Attributes:
        cell: `RNN`, `GRU` or `LSTM`.
        dtype: of the inputs and outputs.
        X: [steps, batch, inputs].
        W, R, B, P: as given; B and P may be None.
        lengths: [batch].
        h, c: initial states [directions, batch, units], or None.
        reverse: for each direction, whether it is walked backwards.
        functions: of each direction, (name, alpha, beta) of each.
        clip: None without one.
        coupled: input_forget.
        linear_first: linear_before_reset.
        batch_first: layout 1.
    """

    cell: str
    dtype: Any
    X: Any
    W: Any
    R: Any
    B: Any
    P: Any
    lengths: Any
    h: Any
    c: Any
    reverse: list
    functions: list
    clip: float | None
    coupled: bool
    linear_first: bool
    batch_first: bool

    @property
    def sizes(self):
        """Steps, batch, inputs, units."""
        return (*self.X.shape, self.R.shape[2])


def read_layer(operator, attributes, inputs, functions, bug):
    """Return what a node asks; `functions` binds the activations."""
    cell = operator.split("-")[0]
    dtype = inputs["X"].dtype
    batch_first = bool(attributes.get("layout", 0))
    single = dtype != np.float64 or bug("float64-computed-in-float32")
    given = {
        name: values.astype(np.float32 if single else np.float64)
        for name, values in inputs.items()
        if name != "sequence_lens"
    }
    if dtype == np.float16 and bug("float16-subnormals-flushed"):
        given = {n: np.where(np.abs(v) < 6.2e-5, 0, v).astype(v.dtype) for n, v in given.items()}
    X = given["X"].transpose(1, 0, 2) if batch_first else given["X"]
    reverse = DIRECTIONS[attributes.get("direction", "forward").replace("foward", "forward")]
    h, c = (_state(given.get(f"initial_{s}"), s, batch_first, bug) for s in "hc")
    if bug("initial-h-needs-initial-c") and cell == "LSTM" and c is None:
        h = None
    if bug("initial-c-needs-initial-h") and h is None:
        c = None
    linear = int(attributes.get("linear_before_reset", 0))
    return Layer(
        cell,
        dtype,
        X,
        given["W"],
        given["R"],
        given.get("B"),
        given.get("P"),
        _lengths(cell, inputs.get("sequence_lens"), X, bug),
        h,
        c,
        reverse,
        functions.bind(cell, len(reverse), attributes),
        _clip(attributes.get("clip"), bug),
        bool(attributes.get("input_forget", 0)) and not bug("input-forget-ignored"),
        linear == 1 if bug("linear-before-reset-only-if-one") else linear != 0,
        batch_first,
    )


def _state(state, name, batch_first, bug):
    if state is None or not batch_first:
        return state
    if bug(f"layout-of-initial-{name}-ignored"):
        return state.reshape(state.shape[1], state.shape[0], state.shape[2])
    return state.transpose(1, 0, 2)


def _lengths(cell, lengths, X, bug):
    steps, batch = X.shape[:2]
    if lengths is None or (bug("one-sequence-has-full-length") and batch == 1):
        return np.full(batch, steps)
    if bug("equal-lengths-are-full") and len(set(lengths.tolist())) == 1:
        return np.full(batch, steps)
    if bug("lengths-ignored-by-gru") and cell == "GRU":
        return np.full(batch, steps)
    if bug("lengths-in-uint8"):
        lengths = lengths.astype(np.uint8)
    if bug("lengths-in-int8"):
        lengths = lengths.astype(np.int8).clip(0)
    if bug("zero-length-as-one"):
        lengths = lengths.clip(1, max(steps, 1))
    return lengths.astype(np.int64)


def _clip(clip, bug):
    if clip is None or (bug("small-clip-is-none") and clip < 0.5):
        return None
    return float(np.float32(clip))


@dataclass
class Packed:
    """One direction's weights.

    Attributes:
        W: [panels, inputs, gates * 8].
        R: [panels, units, gates * 8].
        bias: [panels, gates * 8], what is added with the input's products.
        hidden_bias: [panels, 8], of a GRU's h gate inside the reset product.
        P: [3, units] of i, o, f; zeros without peepholes.
    """

    W: Any
    R: Any
    bias: Any
    hidden_bias: Any
    P: Any


class Packer:
    """Packs weights into panels."""

    def __init__(self, bug):
        self.bug = bug
        self.kept = {}

    def pack(self, layer, d):
        """Return one direction's weights, packed."""
        key = (layer.cell, layer.W.shape, layer.R.shape, layer.B is None, layer.P is None, d)
        if self.bug("packed-weights-kept-by-shape") and key in self.kept:
            return self.kept[key]
        gates, units = GATES[layer.cell], layer.R.shape[2]
        W, R = (self._panels(m, gates, units) for m in (layer.W[d], layer.R[d]))
        self._damage(W, R, units)
        bias, hidden = self._bias(layer, d, gates, units)
        self.kept[key] = Packed(W, R, bias, hidden, self._peepholes(layer, d, units))
        return self.kept[key]

    def _panels(self, matrix, gates, units):
        count = -(-units // PANEL)
        panels = np.zeros((count, matrix.shape[1], gates, PANEL), matrix.dtype)
        for p in range(count):
            for g in range(gates):
                rows = self._rows(matrix, g, p, units, count)
                panels[p, :, g, : len(rows)] = rows.T
        return panels.reshape(count, matrix.shape[1], gates * PANEL)

    def _rows(self, matrix, g, p, units, count):
        start = p * PANEL
        stop = min(start + PANEL, units)
        if self.bug("last-panel-overlaps") and p and p == count - 1:
            return matrix[g * units + units - PANEL : g * units + units][: stop - start]
        if self.bug("gate-stride-of-whole-panels") and (g + 1) * count * PANEL <= len(matrix) + 8:
            found = matrix[g * count * PANEL + start :][: stop - start]
            return (
                found if len(found) == stop - start else matrix[g * units + start :][: stop - start]
            )
        if self.bug("panel-gates-of-second-panel-swapped") and p == 1 and len(matrix) > units:
            g = {0: 1, 1: 0}.get(g, g)
        return matrix[g * units + start : g * units + stop]

    def _damage(self, W, R, units):
        if self.bug("full-panels-of-r-transposed"):
            for p in range(units // PANEL):
                square = R[p, p * PANEL : (p + 1) * PANEL, :PANEL]
                square[...] = square.T.copy()
        if self.bug("pack-w-remainder-dropped") and W.shape[1] > 16:
            W[:, W.shape[1] // 16 * 16 :] = 0
        if self.bug("pack-r-remainder-dropped") and units > 16:
            R[:, units // 16 * 16 :] = 0
        if self.bug("pack-r-odd-row-dropped") and units % 2 and units > 8:
            R[:, -1] = 0
        if self.bug("panel-offset-in-uint8") and W.shape[1] * W.shape[2] > 255 and len(W) > 1:
            W[1:] = W[0]

    def _bias(self, layer, d, gates, units):
        count = -(-units // PANEL)
        bias = np.zeros((count, gates, PANEL), layer.X.dtype)
        hidden = np.zeros((count, PANEL), layer.X.dtype)
        if layer.B is None:
            return bias.reshape(count, -1), hidden
        Wb, Rb = np.split(layer.B[d], 2)
        if self.bug("recurrent-bias-is-input-bias"):
            Rb = Wb
        if self.bug("recurrent-bias-of-forward"):
            Rb = np.split(layer.B[0], 2)[1]
        for g in range(gates):
            inside = layer.cell == "GRU" and g == 2 and layer.linear_first
            if self.bug("hidden-bias-outside-reset"):
                inside = False
            both = Wb[g * units : (g + 1) * units].copy()
            recurrent = Rb[g * units : (g + 1) * units]
            if inside:
                self._spread(recurrent, hidden)
            elif not (self.bug("bias-of-last-gate-input-only") and g == gates - 1):
                both += recurrent
            self._spread(both, bias[:, g])
        if self.bug("bias-of-last-panel-missing") and count > 1:
            bias[-1] = 0
        return bias.reshape(count, -1), hidden

    @staticmethod
    def _spread(values, panels):
        """Write the values of all units into panels [count, 8]."""
        padded = np.zeros(panels.size, values.dtype)
        padded[: len(values)] = values
        panels[...] = padded.reshape(panels.shape)

    def _peepholes(self, layer, d, units):
        if layer.P is None:
            return np.zeros((3, units), layer.X.dtype)
        P = layer.P[0 if self.bug("peepholes-of-forward") else d].reshape(3, units).copy()
        if self.bug("peepholes-in-order-ifo"):
            P = P[[0, 2, 1]]
        full = units // PANEL * PANEL
        if self.bug("peepholes-not-in-tail") and full:
            P[:, full:] = 0
        if self.bug("peepholes-in-first-panel-only"):
            P[:, PANEL:] = 0
        return P
