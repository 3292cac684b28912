"""The operators once more, one number at a time, written from the specifications' texts only.

Deliberately naive: Python floats, nested lists, loops over directions, sequences, steps and units.
It shares no line with the package. Where a text is contested it follows specs/semantics.md; its
functions take the same readings. Inside `digits(60)` the numbers are mpmath's instead.
"""

import math
import re
import struct
from contextlib import contextmanager
from types import SimpleNamespace

import mpmath
import numpy as np

GATES = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}
OPENVINO_GATES = {"RNN": "i", "GRU": "zrh", "LSTM": "fico"}
# WebNN's layouts, in ONNX's letters.
WEBNN_GATES = {"zrn": "zrh", "rzn": "rzh", "iofg": "iofc", "ifgo": "ifco"}
WEBNN_DIRECTIONS = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}
FUNCTIONS = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
# What OpenVINO calls a tensor -> what ONNX does.
NAMES = {
    "H": "initial_h",
    "initial_hidden_state": "initial_h",
    "initial_cell_state": "initial_c",
    "sequence_lengths": "sequence_lens",
}
# Likewise for WebNN, whose biases are two tensors.
WEBNN_NAMES = {
    "input": "X",
    "weight": "W",
    "recurrentWeight": "R",
    "bias": "Wb",
    "recurrentBias": "Rb",
    "peepholeWeight": "P",
    "initialHiddenState": "initial_h",
    "initialCellState": "initial_c",
    "hiddenState": "initial_h",
    "cellState": "initial_c",
}


FLOATS = SimpleNamespace(expm1=math.expm1, exp=math.exp, log1p=math.log1p, number=float)
DIGITS = SimpleNamespace(expm1=mpmath.expm1, exp=mpmath.exp, log1p=mpmath.log1p, number=mpmath.mpf)
real = FLOATS


@contextmanager
def digits(count):
    """Compute with so many decimal digits; results are object arrays of mpmath numbers."""
    global real  # noqa: PLW0603 -- one number system at a time, as in a text
    real = DIGITS
    try:
        with mpmath.workdps(count):
            yield
    finally:
        real = FLOATS


def lists(values):
    """Return nested lists of the current numbers."""
    if isinstance(values, list):
        return [lists(value) for value in values]
    return real.number(values)


def zeros(*shape):
    """Return an array of zeros that holds the current numbers."""
    return np.zeros(shape) if real is FLOATS else np.full(shape, mpmath.mpf(0), object)


def single(value):
    """Hold a float attribute as a model file does, in single precision."""
    return struct.unpack("f", struct.pack("f", value))[0]


def tanh(x):
    """(1 - e^{-2x})/(1 + e^{-2x}), on |x| so that nothing cancels or overflows."""
    e = real.expm1(-2 * abs(x))
    return -e / (2 + e) if x >= 0 else e / (2 + e)


def sigmoid(x):
    """1/(1 + e^{-x}), multiplied through by e^x where x < 0."""
    e = real.exp(-abs(x))
    return e / (1 + e) if x < 0 else 1 / (1 + e)


# The list of activation functions; x, alpha, beta -> value.
ACTIVATIONS = {
    "relu": lambda x, _, __: max(0.0, x),
    "tanh": lambda x, _, __: tanh(x),
    "sigmoid": lambda x, _, __: sigmoid(x),
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "leakyrelu": lambda x, alpha, _: x if x >= 0 else alpha * x,
    "thresholdedrelu": lambda x, alpha, _: x if x >= alpha else 0.0,
    "scaledtanh": lambda x, alpha, beta: alpha * tanh(beta * x),
    "hardsigmoid": lambda x, alpha, beta: min(max(alpha * x + beta, 0.0), 1.0),
    "elu": lambda x, alpha, _: x if x >= 0 else alpha * real.expm1(x),
    "softsign": lambda x, _, __: x / (1 + abs(x)),
    "softplus": lambda x, _, __: max(x, 0.0) + real.log1p(real.exp(-abs(x))),
}
# Alpha, or alpha and beta; a function not listed takes neither.
DEFAULTS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


def activation(name, x, parameters, readings):
    """Evaluate one activation function; NaN comes out where NaN goes in."""
    if x != x:  # noqa: PLR0124 -- NaN of either kind of number
        return x
    if name == "thresholdedrelu" and readings.get("threshold-tie") == "gt":
        return x if x > parameters[0] else 0.0
    return ACTIVATIONS[name](x, *parameters)


def clipped(x, clip):
    """Bound to [-clip, +clip]; NaN stays NaN."""
    if x > clip:
        return clip
    if x < -clip:
        return -clip
    return x


def bound_activations(kind, openvino, attributes, directions, readings):
    """List (name, (alpha, beta)) for each direction's functions."""
    per_direction = len(FUNCTIONS[kind])
    names = attributes.get("activations")
    names = list(FUNCTIONS[kind]) * directions if names is None else list(names)
    if openvino:
        names = names[:per_direction] * directions
    names = [name.lower() for name in names][: per_direction * directions]
    alphas = list(attributes.get("activation_alpha") or [])
    betas = list(attributes.get("activation_beta") or [])
    order = readings.get("alpha-order", "queue")
    bound = []
    for k, name in enumerate(names):
        defaults = [*DEFAULTS.get(name, ()), None, None]
        alpha = next_value(alphas, k, order, defaults[0])
        beta = next_value(betas, k, order, defaults[1])
        bound.append((name, (alpha, beta)))
    return [bound[d * per_direction : (d + 1) * per_direction] for d in range(directions)]


def next_value(values, k, order, default):
    """Take alpha or beta of function k, None when it has no default; the queue loses what is taken.

    The default is that of the ONNX operator of the same name, an attribute in single precision.
    """
    if default is None:
        return None
    if order == "queue":
        return single(values.pop(0) if values else default)
    return single(values[k] if k < len(values) else default)


class Direction:
    """The parameters of one direction, as nested lists."""

    def __init__(self, kind, openvino, d, inputs, attributes):
        """Cut W, R, B and P of direction d into gates."""
        self.kind = kind
        gates = (OPENVINO_GATES if openvino else GATES)[kind]
        H = self.H = len(inputs["R"][d][0])

        def cut(values, letters, first=0):
            return {g: values[(first + k) * H :][:H] for k, g in enumerate(letters)}

        self.W, self.R = cut(inputs["W"][d], gates), cut(inputs["R"][d], gates)
        self.Wb = self.Rb = {g: [0.0] * H for g in gates}
        if "B" in inputs:
            self.Wb = cut(inputs["B"][d], gates)
            if not openvino:
                self.Rb = cut(inputs["B"][d], gates, first=len(gates))
            elif kind == "GRU" and attributes.get("linear_before_reset"):
                self.Rb = {**self.Rb, **cut(inputs["B"][d], "h", first=3)}
        self.P = cut(inputs["P"][d], "iof") if "P" in inputs else None
        clip = attributes.get("clip")
        self.clip = math.inf if clip is None else real.number(single(clip))
        self.input_forget = attributes.get("input_forget", 0) != 0
        self.linear_before_reset = attributes.get("linear_before_reset", 0) != 0
        self.functions, self.readings, self.backward = [], {}, False

    def order(self, length):
        """List the steps of a sequence in the order in which they are taken."""
        steps = range(length)
        return reversed(steps) if self.backward else steps

    def Xt_W(self, x, g, j):
        """Unit j of Xt*(Wg^T)."""
        return sum(x[k] * self.W[g][j][k] for k in range(len(x)))

    def H_R(self, h, g, j):
        """Unit j of Ht-1*(Rg^T), or of Ht-1*Rg as the oldest texts write."""
        if self.readings.get("recurrence") == "literal":
            return sum(h[k] * self.R[g][k][j] for k in range(self.H))
        return sum(h[k] * self.R[g][j][k] for k in range(self.H))

    def apply(self, function, x):
        """f, g or h of a value."""
        name, parameters = self.functions["fgh".index(function)]
        return activation(name, x, parameters, self.readings)

    def gate(self, function, x):
        """An activation of the clipped pre-activation."""
        return self.apply(function, clipped(x, self.clip))

    def step(self, x, h, c):
        """One time step of the cell."""
        return {"RNN": self.rnn, "GRU": self.gru, "LSTM": self.lstm}[self.kind](x, h, c)

    def rnn(self, x, h, c):
        """Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)."""
        new = [
            self.gate(
                "f", self.Xt_W(x, "i", j) + self.H_R(h, "i", j) + self.Wb["i"][j] + self.Rb["i"][j]
            )
            for j in range(self.H)
        ]
        return new, c

    def gru(self, x, h, c):
        """zt, rt, ht and Ht = (1 - zt) (.) ht + zt (.) Ht-1."""
        z, r, candidate = [], [], []
        for g, gate in (("z", z), ("r", r)):
            for j in range(self.H):
                total = self.Xt_W(x, g, j) + self.H_R(h, g, j) + self.Wb[g][j] + self.Rb[g][j]
                gate.append(self.gate("f", total))
        reset = [r[k] * h[k] for k in range(self.H)]
        for j in range(self.H):
            Rbh, Wbh = self.Rb["h"][j], self.Wb["h"][j]
            if self.linear_before_reset:
                total = self.Xt_W(x, "h", j) + (r[j] * (self.H_R(h, "h", j) + Rbh)) + Wbh
            else:
                total = self.Xt_W(x, "h", j) + self.H_R(reset, "h", j) + Rbh + Wbh
            candidate.append(self.gate("g", total))
        return [(1 - z[j]) * candidate[j] + z[j] * h[j] for j in range(self.H)], c

    def lstm(self, x, h, c):
        """it, ft, ct, Ct, ot, Ht."""
        new_h, new_c = [], []
        for j in range(self.H):
            linear = {
                g: self.Xt_W(x, g, j) + self.H_R(h, g, j) + self.Wb[g][j] + self.Rb[g][j]
                for g in "iofc"
            }
            i = self.gate("f", linear["i"] + self.peephole("i", j, c[j]))
            f = 1 - i
            if not self.input_forget:
                f = self.gate("f", linear["f"] + self.peephole("f", j, c[j]))
            C = f * c[j] + i * self.gate("g", linear["c"])
            seen = c[j] if self.readings.get("peephole-o") == "previous" else C
            o = self.gate("f", linear["o"] + self.peephole("o", j, seen))
            clips_h = self.readings.get("clip-scope", "activations") == "activations"
            new_h.append(o * (self.gate("h", C) if clips_h else self.apply("h", C)))
            new_c.append(C)
        return new_h, new_c

    def peephole(self, g, j, C):
        """Pg (.) C, nothing where there are no peepholes."""
        return 0.0 if self.P is None else self.P[g][j] * C


def prepared(operator, inputs, attributes=None, readings=None, direction=Direction):
    """Return a node ready to be walked, time first: its directions, inputs, states and lengths.

    Args:
        operator: `LSTM-14`.
        inputs: arrays by input name.
        attributes: by the specification's names.
        readings: choices on contested points.
        direction: the class of its directions.
    """
    if operator.startswith("webnn."):
        operator, inputs, attributes = from_webnn(operator, inputs, attributes or {})
        readings = {"peephole-o": "previous", **(readings or {})}
    kind, form = re.fullmatch("(RNN|GRU|LSTM)(Sequence|Cell)?-[0-9]+", operator).groups()
    attributes, readings = dict(attributes or {}), dict(readings or {})
    openvino = form is not None
    if openvino:
        readings = {"alpha-order": "positional", "clip-scope": "gates", **readings}
    batch_first = openvino or attributes.get("layout") == 1
    inputs = {NAMES.get(name, name): value for name, value in inputs.items()}
    arrays = {name: np.asarray(value).astype(np.float64) for name, value in inputs.items()}
    if form == "Cell":  # one step in one direction, whose axes it does not have
        arrays = {name: np.expand_dims(v, int(name not in "WRB")) for name, v in arrays.items()}
    X = arrays["X"].swapaxes(0, 1) if batch_first else arrays["X"]
    T, N, _ = X.shape
    D, _, H = arrays["R"].shape
    initial = {}
    for name in ("initial_h", "initial_c"):
        values = arrays.get(name, np.zeros((N, D, H) if batch_first else (D, N, H)))
        ordered = values.swapaxes(0, 1) if batch_first else values
        initial[name] = lists(ordered.tolist())
    lengths = inputs.get("sequence_lens")
    lengths = [T] * N if lengths is None else [int(length) for length in lengths]
    nested = {name: lists(arrays[name].tolist()) for name in "WRBP" if name in arrays}
    functions = bound_activations(kind, openvino, attributes, D, readings)
    cells = [direction(kind, openvino, d, nested, attributes) for d in range(D)]
    for d, cell in enumerate(cells):
        cell.functions, cell.readings = functions[d], readings
        cell.backward = attributes.get("direction") == "reverse" or d == 1
    return SimpleNamespace(
        kind=kind,
        form=form,
        batch_first=batch_first,
        cells=cells,
        X=lists(X.tolist()),
        initial=initial,
        lengths=lengths,
        sizes=(T, D, N, H),
        keeps=readings.get("zero-length") == "initial",
    )


def evaluate(operator, inputs, attributes=None, readings=None, direction=Direction):
    """Evaluate every output; arrays in any dtype go in, float64 (or see `digits`) comes out.

    See `prepared` for the arguments.
    """
    node = prepared(operator, inputs, attributes, readings, direction)
    attributes = attributes or {}
    T, D, N, H = node.sizes
    Y, Y_h, Y_c = zeros(T, D, N, H), zeros(D, N, H), zeros(D, N, H)
    for d, cell in enumerate(node.cells):
        for n in range(N):
            h, c = (node.initial[name][d][n] for name in ("initial_h", "initial_c"))
            for t in cell.order(node.lengths[n]):
                h, c = cell.step(node.X[t][n], h, c)
                Y[t, d, n] = h
            if node.lengths[n] > 0 or node.keeps:
                Y_h[d, n], Y_c[d, n] = h, c
    if operator.startswith("webnn."):
        return webnn_outputs(operator, attributes, Y, Y_h, Y_c)
    if node.form is not None:
        return openvino_outputs(node.kind, node.form, Y, Y_h, Y_c)
    if node.batch_first:
        Y, Y_h, Y_c = Y.transpose(2, 0, 1, 3), Y_h.swapaxes(0, 1), Y_c.swapaxes(0, 1)
    found = {"Y": Y, "Y_h": Y_h, "Y_c": Y_c}
    return found if node.kind == "LSTM" else {"Y": Y, "Y_h": Y_h}


def from_webnn(operator, inputs, attributes):
    """Return WebNN's node as ONNX's, its gates in ONNX's order and both biases in one tensor."""
    kind = operator.removeprefix("webnn.").removesuffix("Cell").upper()
    given = {WEBNN_NAMES[name]: np.asarray(value) for name, value in inputs.items()}
    if operator.endswith("Cell"):  # one step in one direction, whose axes it does not have
        given = {name: value[None] for name, value in given.items()}
    layout = attributes.get("layout", {"GRU": "zrn", "LSTM": "iofg"}[kind])
    H = given["R"].shape[2]
    for name in ("W", "R", "Wb", "Rb"):
        if name in given:
            gates = dict(zip(WEBNN_GATES[layout], slices(given[name], H), strict=True))
            given[name] = np.concatenate([gates[gate] for gate in GATES[kind]], axis=1)
    biases = given.pop("Wb", None), given.pop("Rb", None)
    if any(bias is not None for bias in biases):
        absent = np.zeros(given["R"].shape[:2])
        present = [absent if bias is None else bias for bias in biases]
        given["B"] = np.concatenate(present, axis=1)
    written = {
        "direction": WEBNN_DIRECTIONS[attributes.get("direction", "forward")],
        "linear_before_reset": int(attributes.get("resetAfter", True)),
    }
    if "activations" in attributes:  # those of both directions
        written["activations"] = [*attributes["activations"]] * given["R"].shape[0]
    return f"{kind}-22", given, written


def slices(values, H):
    """Cut the second axis into pieces of H."""
    return [values[:, k : k + H] for k in range(0, values.shape[1], H)]


def webnn_outputs(operator, attributes, Y, Y_h, Y_c):
    """Name the outputs, of which attributes and operator decide some; a cell has no directions."""
    found = {"outputHidden": Y_h, "outputCell": Y_c, "outputSequence": Y}
    if "lstm" not in operator:
        del found["outputCell"]
    if not attributes.get("returnSequence", False):
        del found["outputSequence"]
    if operator.endswith("Cell"):
        found = {name: values[0] for name, values in found.items()}
    return found


def openvino_outputs(kind, form, Y, Y_h, Y_c):
    """Name and lay out the outputs as OpenVINO does; a cell has one step and one direction."""
    found = {"Y": Y.transpose(2, 1, 0, 3), "Ho": Y_h.swapaxes(0, 1), "Co": Y_c.swapaxes(0, 1)}
    if kind != "LSTM":
        del found["Co"]
    if form == "Sequence":
        return found
    return {name: values[:, 0] for name, values in found.items() if name != "Y"}
