"""Random quantised units, and their levels by an evaluation that shares nothing of ours."""

import json
import random

import mpmath
import numpy as np
from support.scalar_specification import Direction, digits, evaluate

ENDS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
POINTS = {
    "uint8": (0, 1, 100, 128, 255),
    "int8": (-128, -20, 0, 3, 127),
    "uint16": (0, 32768, 65535),
    "int16": (-32768, 0, 77),
}
REACH = {"X": 2.5, "W": 0.8, "R": 0.6, "B": 0.5, "P": 0.5, "initial_h": 1.0, "initial_c": 1.5}
OUTPUTS = {"Y": 1.0, "Y_h": 1.0, "Y_c": 1.5}
KINDS = ("LSTM-14", "GRU-14", "RNN-14", "LSTM-22", "GRU-22", "RNN-22")


def dress_of(draw, name, reach, axis=None):
    """Return types, scale and zero point, with which some values may saturate."""
    kind = draw.choice(["uint8", "int8", "uint16", "int16"])
    low, high = ENDS[kind]
    span = high - low
    scale = 2 * reach / span * draw.choice([0.7, 1.0, 1.3])
    if draw.random() < 0.3:
        scale = 2.0 ** round(np.log2(scale))
    point = draw.choice(POINTS[kind]) if name not in OUTPUTS else (low + high + 1) // 2
    if axis is not None:
        return {
            "type": kind,
            "scale": [scale, scale / 2, scale * 0.8],
            "zero_point": point,
            "axis": axis,
        }
    if name == "B" and draw.random() < 0.3:
        return {"type": "int32", "scale": 1e-5}
    return {"type": kind, "scale": scale, "zero_point": point}


def case_of(seed):
    """Return a random unit as a case of a suite."""
    draw = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    op = draw.choice(KINDS)
    kind = op.partition("-")[0]
    direction = draw.choice(["forward", "reverse", "bidirectional"])
    inputs = {
        name: "lengths" if name == "sequence_lens" else "uniform"
        for name in ("B", "sequence_lens", "initial_h", *["initial_c", "P"] * (kind == "LSTM"))
        if draw.random() < 0.6
    }
    attributes = {"direction": direction}
    if kind == "GRU":
        attributes["linear_before_reset"] = draw.randint(0, 1)
    if draw.random() < 0.3:
        attributes["clip"] = 0.75
    outputs = ["Y", "Y_h", *["Y_c"] * (kind == "LSTM")]
    real = [n for n in inputs if n != "sequence_lens"]
    dressed = ["X", "W", "R", *(n for n in real if draw.random() < 0.8)]
    quantise = {
        name: dress_of(draw, name, REACH[name], draw.choice([None, 1]) if name in "WR" else None)
        for name in dressed
    }
    quantise |= {n: dress_of(draw, n, OUTPUTS[n]) for n in outputs if draw.random() < 0.8}
    if draw.random() < 0.3:
        quantise["pre"] = {"type": "int16", "scale": 2.0**-12, "zero_point": 5}
        quantise["gate"] = {"type": draw.choice(["int8", "int16"]), "scale": 2.0**-7}
    T, N, I, H = draw.randint(1, 5), draw.randint(1, 3), draw.randint(1, 4), draw.randint(1, 6)  # noqa: E741
    return {
        "op": op,
        "sizes": {"seq_length": T, "batch_size": N, "input_size": I, "hidden_size": H},
        "attributes": attributes,
        "weights": draw.choice(["inputs", "initializers"]),
        "inputs": inputs,
        "outputs": outputs,
        "quantise": quantise,
    }


def suite_of(seeds):
    """Return the text of a suite of random units; YAML holds JSON."""
    cases = {f"unit-{seed}": case_of(seed) for seed in seeds}
    return json.dumps({"suite": "random-units", "summary": "Units.", "cases": cases})


def reals_of(levels, dress):
    """Return the float32 numbers of levels by ONNX's text: (x - x_zero_point) * x_scale."""
    scale = np.float32(np.resize(dress["scale"], levels.shape[1])) if "axis" in dress else None
    step = np.float32(dress["scale"]) if scale is None else scale[None, :, None]
    exact = (levels.astype(np.int64) - dress.get("zero_point", 0)).astype(np.float32)
    return exact * step


def away(quotient):
    """Round to nearest, half away from zero."""
    return mpmath.sign(quotient) * mpmath.floor(abs(quotient) + mpmath.mpf(0.5))


# mpmath's nint rounds half to even.
ROUND = {
    "half-even": mpmath.nint,
    "half-away": away,
    "truncate": mpmath.floor,
    "toward-zero": lambda quotient: mpmath.sign(quotient) * mpmath.floor(abs(quotient)),
    "half-up": lambda quotient: mpmath.floor(quotient + mpmath.mpf(0.5)),
}


def level_of(number, dress, rounding="half-even"):
    """Return the level of a number with 40 digits: saturate(round half to even + zero point)."""
    low, high = ENDS[dress["type"]]
    scale = np.float32(dress["scale"])
    quotient = mpmath.mpf(number) / mpmath.mpf(float(scale))
    nearest = mpmath.nint(quotient)
    stands_for = float(np.float32(int(nearest)) * scale)  # which then has its level
    steps = nearest if number == stands_for else ROUND[rounding](quotient)
    return min(max(int(steps) + dress.get("zero_point", 0), low), high)


def held_in(dress, kind):
    """Return levels of another type over the range of some, unless those are as many."""
    low, high = ENDS[dress["type"]]
    own, other = 8 if high - low == 255 else 16, int(kind[3:])
    if own == other:
        return dress
    ratio = 2.0 ** (other - own)
    point = (dress.get("zero_point", 0) - (low + high + 1) // 2) * ratio
    return {
        "type": kind,
        "scale": float(np.float32(dress["scale"])) / ratio,
        "zero_point": int(np.floor(point)),
    }


def holding(quantise, readings):
    """Return the class of directions that round states and gates as readings say."""
    asked, rounding, kind = (readings[n] for n in ("requantise", "round", "state-type"))

    def of_state(own):
        choices = [own] if asked != "outputs" else []
        choices += [] if kind == "float" else [held_in(own, kind)]
        return max(choices, key=lambda dress: np.float32(dress["scale"]), default=None)

    own = [quantise.get("Y") or quantise.get("Y_h"), quantise.get("Y_c")]
    dresses = [of_state(dress) if dress else None for dress in own]
    inner = {name: quantise.get(name) if asked == "gates" else None for name in ("pre", "gate")}

    def rounded(number, dress):
        if dress is None:
            return number
        steps = level_of(number, dress, rounding) - dress.get("zero_point", 0)
        return mpmath.mpf(float(np.float32(steps) * np.float32(dress["scale"])))

    class Holding(Direction):
        """The specification's steps, rounded in places."""

        def step(self, x, h, c):
            """Round both states."""
            new = super().step(x, h, c)
            return [
                [rounded(number, dress) for number in state]
                for state, dress in zip(new, dresses, strict=True)
            ]

        def gate(self, function, x):
            """Round arguments and values, but of the activation of C."""
            if function == "h":
                return super().gate(function, x)
            return rounded(super().gate(function, rounded(x, inner["pre"])), inner["gate"])

    return Holding


NODES_TEXT = {"requantise": "outputs", "round": "half-even", "state-type": "float"}


def expected(vector, quantise, readings=NODES_TEXT):
    """Return the outputs of a vector by the specification's text, in numbers of 40 digits."""
    inputs = {
        name: reals_of(values, quantise[name]) if name in quantise else values
        for name, values in vector.inputs.items()
    }
    with digits(40):
        held = holding(quantise, readings)
        made = evaluate(vector.record.operator, inputs, vector.attributes, None, held)
        return {
            name: np.vectorize(
                lambda y, d=quantise[name]: level_of(y, d, readings["round"]), otypes=[np.int64]
            )(made[name])
            if name in quantise
            else made[name]
            for name in vector.record.outputs
        }
