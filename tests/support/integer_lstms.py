"""Integer LSTMs of a size to look at."""

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

GATES = ("input", "forget", "cell", "output")


def integer_lstm_of(
    *,
    T=5,
    N=2,
    I=4,  # noqa: E741 -- the specification's letter
    H=5,
    bits=8,
    x=(-128, 127),
    weights=(-127, 127),
    bias=3000,
    states=((-100, 100), (-9000, 9000)),
    factor=1.0,
    of_weights=(0.0146484375, 0.0126953125, 0.0107421875, 0.0166015625),
    readings=None,
    change=lambda inputs: None,
    seed=0,
    **attributes,
):
    """Bind an integer LSTM with random inputs, some of which `change` changes in place.

    Args:
        T: steps.
        N: sequences.
        I: inputs.
        H: units.
        bits: of inputs and hidden states.
        x: the range of inputs.
        weights: that of weights.
        bias: the largest bias.
        states: the ranges of the states before the first step; None for states that are not given.
        factor: what all scales of weights are multiplied by.
        of_weights: those scales, of the gates i, f, c, o.
        readings: the readings, if they are not the operator's own.
        change: changes inputs.
        seed: of the inputs.
        attributes: those that differ.
    """
    row, draw = OPERATORS["tflite.UNIDIRECTIONAL_SEQUENCE_LSTM"], np.random.default_rng(seed)
    wide, name = bits == 16, f"int{bits}"

    def drawn(shape, low, high, dtype):
        return draw.integers(low, high, shape, DTYPES[dtype].numpy, endpoint=True)

    inputs = {
        "input": drawn((T, N, I), x[0] * (256 if wide else 1), x[1] * (256 if wide else 1), name)
    }
    for of, columns in (("input", I), ("recurrent", H)):
        for gate in GATES:
            inputs[f"{of}_to_{gate}_weights"] = drawn((H, columns), *weights, "int8")
    for gate in GATES:
        inputs[f"{gate}_gate_bias"] = drawn(H, -bias, bias, "int64" if wide else "int32")
    if states:
        inputs["output_state"] = drawn((N, H), *states[0], name)
        inputs["cell_state"] = drawn((N, H), *states[1], "int16")
    change(inputs)
    given = {
        "time_major": True,
        "input_scale": 0.01171875 / (256 if wide else 1),
        "input_zero_point": 0 if wide else 7,
        "output_state_scale": 0.00830078125 / (256 if wide else 1),
        "output_state_zero_point": 0 if wide else -5,
        "cell_state_scale": 2.0**-12,
        "input_weight_scales": [s * factor for s in of_weights],
        "recurrent_weight_scales": [
            s * factor for s in (of_weights[2], *of_weights[:2], of_weights[0])
        ],
    }
    outputs = [output.name for output in row.outputs]
    node = Node(row, given | attributes, outputs, {**row.readings, **(readings or {})})
    return node.recurrence(inputs)
