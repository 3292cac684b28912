"""Random nodes of many sizes and features for the kernels; a seed gives the same node always.

Sizes lie around the edges that kernels are built on. At most one of them is large, so that a node
takes milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
COUNTS = {"RNN": 1, "GRU": 2, "LSTM": 3}
BOUNDED = ["Tanh", "Sigmoid", "HardSigmoid", "Softsign", "ScaledTanh", "sigmoid", "TANH"]
OTHERS = ["Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Affine", "Softplus"]
SMALL = [1, 2, 3, 4, 5, 7]
LARGE = {
    "steps": [15, 16, 17, 18, 33],
    "batch": [8, 9, 13, 17, 22, 66],
    "inputs": [8, 9, 15, 16, 17, 33, 50],
    "units": [8, 9, 11, 14, 15, 16, 17, 20, 33, 50],
}
OUTPUTS = {"RNN": ["Y", "Y_h"], "GRU": ["Y", "Y_h"], "LSTM": ["Y", "Y_h", "Y_c"]}


@dataclass(frozen=True)
class Special:
    """Calls that show what random ones do not.

    Attributes:
        sizes: steps, batch, inputs, units.
        function: what all activations are, or "" for random ones.
        first: what the first input is instead, or None.
        dtype: of the tensors, or None for a random one.
        scale: what W is multiplied by.
    """

    sizes: tuple
    function: str = ""
    first: float | None = None
    dtype: type | None = None
    scale: float = 1.0


SPECIAL = {
    "beyond-127": Special((140, 2, 2, 3)),
    "beyond-255": Special((300, 2, 2, 3)),
    "beyond-32767": Special((40, 20, 50, 3)),
    "beyond-65535": Special((3, 110, 2, 211)),
    "beyond-65536-rows": Special((300, 221, 1, 1)),
    "beyond-128-units": Special((2, 2, 2, 131)),
    "same-sizes": Special((4, 9, 3, 5)),
    "nan-through-relu": Special((2, 2, 3, 9), "Relu", np.nan),
    "nan-through-hard-sigmoid": Special((2, 2, 3, 9), "HardSigmoid", np.nan),
    "large-softplus": Special((1, 2, 1, 9), "Softplus", 400.0, np.float32),
    "large-tanh": Special((1, 2, 1, 9), "Tanh", 400.0, np.float32),
    "long-sums": Special((2, 2, 70, 3)),
    "small-float16-weights": Special((1, 2, 7, 5), "", 40.0, np.float16, 8e-5),
}
CALLS = 4


@dataclass(frozen=True)
class KernelCase:
    """One call of a kernel."""

    operator: str
    attributes: dict
    inputs: dict
    outputs: list


def random_case(cell, seed, sizes=None):
    """Return a node of a cell; `sizes` are steps, batch, inputs and units if they are given."""
    rng = np.random.default_rng([*cell.encode(), seed])
    steps, batch, inputs, units = sizes or _sizes(rng)
    directions = _pick(rng, {"forward": 3, "reverse": 3, "bidirectional": 4})
    count = 1 + (directions == "bidirectional")
    attributes = _attributes(rng, cell, count, directions)
    scale = _pick(rng, {1.0: 6, 3.0: 2, 40.0: 1})
    gates = GATES[cell]
    tensors = {
        "X": scale * rng.standard_normal((steps, batch, inputs)),
        "W": _weights(rng, (count, gates * units, inputs), inputs),
        "R": _weights(rng, (count, gates * units, units), units),
    }
    _options(rng, cell, tensors, (count, steps, batch, units))
    lengths = tensors.pop("sequence_lens", None)
    _spoil(rng, tensors["X"], lengths)
    if attributes.get("layout"):
        for name in {"X", "initial_h", "initial_c"} & set(tensors):
            tensors[name] = np.ascontiguousarray(tensors[name].swapaxes(0, 1))
    dtype = _dtype(rng)
    tensors = {name: values.astype(dtype) for name, values in tensors.items()}
    if lengths is not None:
        tensors["sequence_lens"] = lengths
    return KernelCase(f"{cell}-22", attributes, tensors, _outputs(rng, cell))


def special_calls(cell, name):
    """Return calls of a cell that a bug's row names, for one session."""
    return [_special_case(cell, SPECIAL[name], seed) for seed in range(CALLS)]


def _special_case(cell, special, seed):
    case = random_case(cell, seed, special.sizes)
    inputs = {**case.inputs, "W": case.inputs["W"] * case.inputs["W"].dtype.type(special.scale)}
    if special.first is not None:
        inputs["X"] = inputs["X"].copy()
        inputs["X"][0, 0] = special.first
    if special.dtype is not None:
        inputs = {
            n: v if v.dtype == np.int32 else v.astype(special.dtype) for n, v in inputs.items()
        }
    attributes = case.attributes
    if special.function:
        names = [special.function] * (COUNTS[cell] * len(inputs["W"]))
        attributes = {**attributes, "activations": names}
        attributes.pop("clip", None)
    return KernelCase(case.operator, attributes, inputs, case.outputs)


def _pick(rng, weights):
    values = list(weights)
    shares = np.array(list(weights.values()), float)
    return values[rng.choice(len(values), p=shares / shares.sum())]


def _dtype(rng):
    names = {np.float32: 15, np.float64: 2, np.float16: 2, ml_dtypes.bfloat16: 1}
    return _pick(rng, names)


def _sizes(rng):
    sizes = {name: int(rng.choice(SMALL)) for name in LARGE}
    if rng.random() < 0.2:
        sizes.update(batch=int(rng.choice([1, 2, 4])), units=1, inputs=int(rng.choice([1, 2, 3])))
        return sizes.values()
    for name in rng.choice(list(LARGE), size=rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3])):
        sizes[str(name)] = int(rng.choice(LARGE[str(name)]))
    if rng.random() < 0.2:
        one, other = rng.choice(["steps", "batch", "inputs", "units"], size=2, replace=False)
        sizes[str(one)] = sizes[str(other)]
    if sizes["batch"] > 20 and sizes["units"] > 20:
        sizes["units"] = 9
    return sizes.values()


def _weights(rng, shape, fan_in):
    return rng.uniform(-1.5, 1.5, shape) / np.sqrt(max(fan_in, 1))


def _attributes(rng, cell, directions, direction):
    attributes = {}
    if direction != "forward" or rng.random() < 0.5:
        attributes["direction"] = direction
    if rng.random() < 0.4:
        attributes["clip"] = float(rng.choice([0.3, 0.45, 0.9, 1.7, 3.3]))
    if rng.random() < 0.3:
        attributes["layout"] = 1
    if rng.random() < 0.5:
        attributes.update(_activations(rng, cell, directions))
    if cell == "GRU" and rng.random() < 0.6:
        attributes["linear_before_reset"] = int(rng.choice([1, 1, 2]))
    if cell == "LSTM" and rng.random() < 0.3:
        attributes["input_forget"] = 1
    return attributes


def _activations(rng, cell, directions):
    """Return functions; gates have bounded ones, because states would explode."""
    count = COUNTS[cell] * directions
    gate = [cell != "RNN" and k % COUNTS[cell] == 0 for k in range(count)]
    names = [
        str(rng.choice(BOUNDED if bounded or rng.random() < 0.4 else OTHERS)) for bounded in gate
    ]
    found = {"activations": names}
    for key in ("alpha", "beta"):
        if rng.random() < 0.7:
            values = rng.choice([0.0, 0.25, -0.4, 0.7, 0.9, 1.3], size=rng.integers(1, count + 1))
            found[f"activation_{key}"] = [float(value) for value in values]
    return found


def _options(rng, cell, tensors, sizes):
    """Add the optional inputs."""
    directions, steps, batch, units = sizes
    gates = GATES[cell]
    states = (directions, batch, units)
    if rng.random() < 0.7:
        tensors["B"] = rng.uniform(-0.6, 0.6, (directions, 2 * gates * units))
    if rng.random() < 0.6:
        tensors["sequence_lens"] = _lengths(rng, steps, batch)
    if rng.random() < 0.5:
        tensors["initial_h"] = rng.uniform(-1, 1, states)
    if cell == "LSTM" and rng.random() < 0.5:
        tensors["initial_c"] = rng.uniform(-2, 2, states)
    if cell == "LSTM" and rng.random() < 0.5:
        tensors["P"] = rng.uniform(-1, 1, (directions, 3 * units))


def _lengths(rng, steps, batch):
    kind = rng.random()
    if kind < 0.1:
        return np.zeros(batch, np.int32)
    if kind < 0.25:
        return np.full(batch, max(steps - 1, 1), np.int32)
    found = rng.integers(0 if kind < 0.6 else min(1, steps), steps + 1, batch)
    if kind > 0.8 and batch:
        found[-1] = steps
    return found.astype(np.int32)


def _spoil(rng, X, lengths):
    """Put NaN in the padding always, and in a valid step now and then."""
    for n, length in enumerate(() if lengths is None else lengths):
        X[length:, n] = np.nan
    if rng.random() < 0.06:
        X[0, 0, 0] = np.nan


def _outputs(rng, cell):
    if rng.random() < 0.7:
        return OUTPUTS[cell]
    names = [name for name in OUTPUTS[cell] if rng.random() < 0.5]
    return names or [str(rng.choice(OUTPUTS[cell]))]
