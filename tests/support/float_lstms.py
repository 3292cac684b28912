"""TFLite's float LSTMs of a size to look at, and their definition in plain loops."""

import math
from dataclasses import dataclass, field

import numpy as np

from rnncli.operators import OPERATORS
from rnncli.operators.node import Node
from rnncli.operators.tflite_float_rows import OWN_INPUT_GATE, PEEPHOLES

GATES = ("input", "forget", "cell", "output")


@dataclass
class FloatLstm:
    """A node of the float LSTM, with inputs drawn for it."""

    variant: str = "plain"
    width: int | None = None  # of hidden states with a projection, or None without
    bias: bool = True  # of the projection
    states: bool = True  # whether they are given
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    sizes: tuple[int, int, int, int] = (6, 2, 3, 5)
    seed: int = 0
    inputs: dict = field(init=False)

    def __post_init__(self):
        draw, (T, N, I, H) = np.random.default_rng(self.seed), self.sizes  # noqa: E741
        O = self.width or H  # noqa: E741 -- as of the operator's sizes

        def drawn(*shape):
            return draw.normal(0, 0.7, shape).astype(np.float32)

        inputs = {"input": drawn(T, N, I)}
        for gate in GATES:
            inputs[f"input_to_{gate}_weights"] = drawn(H, I)
            inputs[f"recurrent_to_{gate}_weights"] = drawn(H, O)
            inputs[f"{gate}_gate_bias"] = drawn(H)
        inputs |= {name: drawn(H) for name in PEEPHOLES if "peephole" in self.variant}
        if "coupled" in self.variant:
            for name in (*OWN_INPUT_GATE, PEEPHOLES[0]):
                inputs.pop(name, None)
        if self.width:
            inputs["projection_weights"] = drawn(O, H)
            inputs |= {"projection_bias": drawn(O)} if self.bias else {}
        if self.states:
            inputs |= {"output_state": drawn(N, O), "cell_state": drawn(N, H)}
        self.inputs = inputs

    @property
    def operator(self):
        """Its row."""
        form = "PROJECTED" if self.width else "FLOAT"
        return OPERATORS[f"tflite.UNIDIRECTIONAL_SEQUENCE_LSTM_{form}"]

    @property
    def attributes(self):
        """Its attributes, time first."""
        bound = {"proj_clip": self.proj_clip} if self.width else {}
        return {
            "time_major": True,
            "variant": self.variant,
            "cell_clip": self.cell_clip,
            **bound,
        }

    @property
    def recurrence(self):
        """Its recurrence."""
        return Node(self.operator, self.attributes).recurrence(self.inputs)

    def defined(self):
        """Its outputs by name, number by number in float64."""
        given = {name: values.astype(float).tolist() for name, values in self.inputs.items()}
        _, N, _, H = self.sizes
        O = self.width or H  # noqa: E741 -- as of the operator's sizes
        blank = ([[0.0] * O] * N, [[0.0] * H] * N)
        hs, cs = (
            [*given.get(n, b)] for n, b in zip(("output_state", "cell_state"), blank, strict=True)
        )
        y = []
        for x in given["input"]:
            pairs = [self._step(given, *each) for each in zip(x, hs, cs, strict=True)]
            hs, cs = map(list, zip(*pairs, strict=True))
            y.append(hs)
        return {"output": y, "final_output_state": hs, "final_cell_state": cs}

    def _step(self, given, x, h, c):
        def argument(gate, j, c):
            rows = (given[f"{of}_to_{gate}_weights"][j] for of in ("input", "recurrent"))
            total = sum(sum(map(float.__mul__, *pair)) for pair in zip(rows, (x, h), strict=True))
            peephole = given.get(f"cell_to_{gate}_weights")
            return total + given[f"{gate}_gate_bias"][j] + (peephole[j] * c if peephole else 0)

        def sigmoid(a):
            return 1 / (1 + math.exp(-a))

        def clipped(value, bound):
            return max(-bound, min(bound, value)) if bound else value

        new, m = [], []
        for j, old in enumerate(c):
            f = sigmoid(argument("forget", j, old))
            i = 1 - f if "coupled" in self.variant else sigmoid(argument("input", j, old))
            g = math.tanh(argument("cell", j, old))
            new.append(clipped(f * old + i * g, self.cell_clip))
            m.append(sigmoid(argument("output", j, new[j])) * math.tanh(new[j]))
        if not self.width:
            return m, new
        bias = given.get("projection_bias", [0.0] * self.width)
        rows = zip(given["projection_weights"], bias, strict=True)
        return [clipped(sum(map(float.__mul__, w, m)) + b, self.proj_clip) for w, b in rows], new


FORMS = {
    "plain": {},
    "fresh": {"states": False},
    "coupled": {"variant": "coupled"},
    "peephole": {"variant": "peephole"},
    "coupled peephole": {"variant": "coupled_peephole"},
    "clip": {"cell_clip": 0.3},
    "clip of peepholes": {"cell_clip": 0.3, "variant": "peephole"},
    "narrow": {"width": 2},
    "wide": {"width": 7, "bias": False},
    "projection clip": {"width": 4, "proj_clip": 0.4, "cell_clip": 0.5},
    "everything": {"width": 3, "proj_clip": 0.4, "cell_clip": 0.5, "variant": "coupled_peephole"},
}
