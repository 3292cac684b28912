"""The cases that web-platform-tests publishes, within the distances that it allows.

https://github.com/web-platform-tests/wpt, webnn/conformance_tests: every case of gru, gruCell, lstm
and lstmCell in a copy of 2026, but for two that repeat another. Most have the same tensors, and one
option more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from support.tables import every

from rnncli.numerics import ulp_distance
from rnncli.operators import OPERATORS, evaluate

# The largest distance that WPT allows, in units in the last place.
ULPS = {"webnn.gru": 6, "webnn.gruCell": 3, "webnn.lstm": 3, "webnn.lstmCell": 1}
STATES = ("initialHiddenState", "initialCellState", "hiddenState", "cellState")


class Published(NamedTuple):
    """A case.

    Attributes:
        operator: the operator.
        dtype: the element type.
        steps: 1 or 2.
        options: attributes; an optional input that is given is True.
        expected: the elements of each output, in order.
    """

    operator: str
    dtype: str
    steps: int
    options: dict[str, Any]
    expected: tuple[list[float], ...]

    def __str__(self):
        written = "-".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.operator}-{self.dtype}-{self.steps}-{written}".replace(" ", "")


# --- gru and gruCell: 3 sequences of 2 inputs, 4 units --------------------------------------------

GRU = {
    "input": [[[1, 2], [2, 1], [1, 1]], [[3, 4], [1, 2], [1, 1]]],
    "weight": [[1, -1], [2, -2], [0.5, -0.5], [0, 0.1]] * 3,
    "recurrentWeight": [[0.1] * 4] * 12,
    "bias": [1, 2, 1, 2, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5],
}
RZN = [1, 1, 1, 1, 1, 2, 1, 2, 0.5, 0.5, 0.5, 0.5]
GRU_RESULTS = {
    "float32": {
        "one": [0, 0, -0.25, -3.84, -4, -15, -2.25, -3.41, -1, -3, -1, -3.41],
        "one, reset after": [
            *(0, 0, -0.375, -5.7599992752075195, -6, -22.5, -3.375, -5.114999771118164),
            *(-1.5, -4.5, -1.5, -5.114999771118164),
        ],
        "last of two, backward": [
            *(0, 0, -0.24974998831748963, -18.59588623046875),
            *(-2.0657243728637697, -10.551867485046387, -1.3937838077545167, -15.2454833984375),
            *(-1.1589999198913575, -9.476999282836914, -1.1589999198913575, -11.319169044494629),
        ],
        "first of two, backward": [
            *(0, 0, -0.25, -4.760000228881836, 0, 0, -0.25, -3.8399999141693117),
            *(-1, -3, -1, -3.4100000858306886),
        ],
        "last of two, reset after": [
            *(0, 0, -0.33243751525878906, -23.753076553344727, 0, 0, 0, -2.213315725326538),
            *(-1.1077498197555542, -12.323249816894531, -1.1077498197555542, -14.518925666809082),
        ],
        "last of two, backward, reset after": [
            *(0, 0, -0.28068751096725464, -25.444257736206055),
            *(-1.7041922807693481, -9.28022289276123, -1.4041223526000977, -21.154621124267578),
            *(-1.1077498197555542, -12.323249816894531, -1.1077498197555542, -14.518925666809082),
        ],
        "first of two, backward, reset after": [
            *(0, 0, -0.375, -7.139999866485596, 0, 0, -0.375, -5.7599992752075195),
            *(-1.5, -4.5, -1.5, -5.114999771118164),
        ],
    },
    "float16": {
        "one": [0, 0, -0.25, -3.83984375, -4, -15, -2.25, -3.41015625, -1, -3, -1, -3.41015625],
        "one, reset after": [
            *(0, 0, -0.375, -5.7578125, -6, -22.5, -3.375, -5.11328125),
            *(-1.5, -4.5, -1.5, -5.11328125),
        ],
        "last of two, backward": [
            *(0, 0, -0.249755859375, -18.59375, -2.06640625, -10.5546875, -1.39453125),
            *(-15.2421875, -1.1591796875, -9.4765625, -1.1591796875, -11.3203125),
        ],
        "first of two, backward": [
            *(0, 0, -0.25, -4.7578125, 0, 0, -0.25, -3.83984375, -1, -3, -1, -3.41015625),
        ],
        "last of two, reset after": [
            *(0, 0, -0.33251953125, -23.75, 0, 0, 0, -2.21875),
            *(-1.1083984375, -12.328125, -1.1083984375, -14.5234375),
        ],
        "last of two, backward, reset after": [
            *(0, 0, -0.28076171875, -25.4375, -1.705078125, -9.28125, -1.404296875, -21.15625),
            *(-1.1083984375, -12.328125, -1.1083984375, -14.5234375),
        ],
        "first of two, backward, reset after": [
            *(0, 0, -0.375, -7.140625, 0, 0, -0.375, -5.7578125),
            *(-1.5, -4.5, -1.5, -5.11328125),
        ],
    },
}
# Steps, options beside the activations, and the results in the order of the outputs' elements.
RESET_FIRST = {"resetAfter": False}
BACKWARD = {**RESET_FIRST, "direction": "backward"}
IN_TURN = ("last of two, backward", "first of two, backward")
GRU_CASES: list[tuple[int, dict[str, Any], tuple[tuple[str, ...], ...]]] = [
    (1, RESET_FIRST, (("one",),)),
    (1, {"resetAfter": True}, (("one, reset after",),)),
    (1, {**RESET_FIRST, "direction": "forward"}, (("one",),)),
    (1, {**RESET_FIRST, "layout": "zrn"}, (("one",),)),
    (1, {**RESET_FIRST, "layout": "rzn"}, (("one",),)),
    (1, {**RESET_FIRST, "initialHiddenState": True}, (("one",),)),
    (
        1,
        {
            **RESET_FIRST,
            "initialHiddenState": True,
            "returnSequence": True,
            "direction": "forward",
            "layout": "zrn",
        },
        (("one",), ("one",)),
    ),
    (2, BACKWARD, (IN_TURN[:1],)),
    (2, {**BACKWARD, "returnSequence": False}, (IN_TURN[:1],)),
    (2, {**BACKWARD, "returnSequence": True}, (IN_TURN[:1], IN_TURN)),
    (
        2,
        {"resetAfter": True, "returnSequence": True, "direction": "both"},
        (
            ("last of two, reset after", "last of two, backward, reset after"),
            (
                *("one, reset after", "last of two, backward, reset after"),
                *("last of two, reset after", "first of two, backward, reset after"),
            ),
        ),
    ),
    (
        2,
        {**BACKWARD, "initialHiddenState": True, "returnSequence": True, "layout": "zrn"},
        (IN_TURN[:1], IN_TURN),
    ),
]
CELL_CASES = [{}, {"layout": "zrn"}, {"layout": "rzn"}]


def gru_cases():
    """Yield the cases of gru and gruCell, which are the same for both element types."""
    for dtype, results in GRU_RESULTS.items():
        for steps, options, parts in GRU_CASES:
            expected = tuple([x for part in each for x in results[part]] for each in parts)
            activations = {"activations": ["relu", "relu"]}
            yield Published("webnn.gru", dtype, steps, {**options, **activations}, expected)
        for options in CELL_CASES:
            own = {**RESET_FIRST, **options, "hiddenState": True, "activations": ["relu", "relu"]}
            yield Published("webnn.gruCell", dtype, 1, own, (results["one"],))


# --- lstm and lstmCell: 2 sequences of 2 inputs, 2 units ------------------------------------------

LSTM = {
    "input": [[[1, 2], [2, 1]], [[3, 4], [1, 2]]],
    "weight": [[1, -1], [2, -2]] * 4,
    "recurrentWeight": [[0.1] * 2] * 8,
    "bias": [1, 2] * 4,
}
HIDDEN, CELL = [1, 8, 27, 216], [1, 4, 9, 36]
LAST = [10.469000816345215, 58.02900695800781, 74.52900695800781, 518.948974609375]
LAST_CELL = [5.510000228881836, 20.01000213623047, 19.110000610351564, 75.20999908447266]
BOTH = (
    [
        *(0.5764073133468628, 0.8236227035522461, 0.6612355709075928, 0.8442635536193848),
        *(0.5764073133468628, 0.8236227035522461, 0.8635294437408447, 0.9491351246833801),
    ],
    [
        *(1.0171456336975098, 1.6205494403839111, 1.3388464450836182, 1.7642604112625122),
        *(1.0171456336975098, 1.6205494403839111, 1.4856269359588623, 1.8449554443359375),
    ],
    [
        *(0.3696063756942749, 0.6082833409309387, 0.7037754058837891, 0.7586681246757507),
        *(0.5764073133468628, 0.8236227035522461, 0.8635294437408447, 0.9491351246833801),
        *(0.5764073133468628, 0.8236227035522461, 0.6612355709075928, 0.8442635536193848),
        *(0.3696063756942749, 0.6082833409309387, 0.3696063756942749, 0.6082833409309387),
    ],
)
EVERY = {
    "peepholeWeight": True,
    "initialHiddenState": True,
    "initialCellState": True,
    "returnSequence": True,
    "layout": "iofg",
}
LSTM_CASES: list[tuple[int, dict[str, Any], tuple[list[float], ...]]] = [
    (1, {}, (HIDDEN, CELL)),
    (1, {"peepholeWeight": True}, (HIDDEN, CELL)),
    (1, {"initialHiddenState": True}, (HIDDEN, CELL)),
    (1, {"initialCellState": True}, (HIDDEN, CELL)),
    (1, {"returnSequence": False}, (HIDDEN, CELL)),
    (1, {"returnSequence": True}, (HIDDEN, CELL, HIDDEN)),
    (1, {"direction": "forward"}, (HIDDEN, CELL)),
    (1, {"layout": "iofg"}, (HIDDEN, CELL)),
    (1, {"layout": "ifgo"}, (HIDDEN, CELL)),
    (1, {**EVERY, "direction": "forward"}, (HIDDEN, CELL, HIDDEN)),
    (2, {"direction": "backward"}, (LAST, LAST_CELL)),
    (2, {**EVERY, "direction": "backward"}, (LAST, LAST_CELL, [*LAST, 1, 8, 1, 8])),
]
LSTM_CELL_CASES = [
    {},
    {"peepholeWeight": True},
    {"layout": "iofg"},
    {"layout": "ifgo"},
    {"peepholeWeight": True, "layout": "iofg"},
]


def lstm_cases():
    """Yield the cases of lstm and lstmCell; one case of lstm is of float16, and all of the cell."""
    relu = {"activations": ["relu"] * 3}
    for steps, options, expected in LSTM_CASES:
        yield Published("webnn.lstm", "float32", steps, {**options, **relu}, expected)
    both = {"returnSequence": True, "direction": "both", "layout": "iofg"}
    yield Published("webnn.lstm", "float32", 2, both, BOTH)
    half = {"returnSequence": False, **relu}
    yield Published("webnn.lstm", "float16", 1, half, (HIDDEN, CELL))
    for dtype in ("float32", "float16"):
        for options in LSTM_CELL_CASES:
            own = {**options, "hiddenState": True, "cellState": True, **relu}
            yield Published("webnn.lstmCell", dtype, 1, own, (HIDDEN, CELL))


CASES = [*gru_cases(), *lstm_cases()]


def node_of(case):
    """Return the attributes and inputs of a case; both directions have the same weights."""
    operator = OPERATORS[case.operator]
    tensors = LSTM if "lstm" in case.operator else GRU
    bias = RZN if case.options.get("layout") == "rzn" else tensors["bias"]
    x = np.array(tensors["input"][: case.steps])
    sizes = {
        "seq_length": case.steps,
        "batch_size": x.shape[1],
        "input_size": x.shape[2],
        "hidden_size": len(tensors["recurrentWeight"][0]),
        "num_directions": 2 if case.options.get("direction") == "both" else 1,
    }
    values = {**tensors, "input": x, "bias": bias, "recurrentBias": bias, "peepholeWeight": 0}
    values |= dict.fromkeys(STATES, 0)
    given = {*tensors, "bias", "recurrentBias", *case.options}
    inputs = {}
    for row in operator.inputs:
        if row.name in given:
            shape = tuple(dim.multiple * sizes[dim.symbol] for dim in row.shape())
            inputs[row.name] = np.resize(values[row.name], shape).astype(case.dtype)
    written = {**case.options, "hiddenSize": sizes["hidden_size"], "steps": case.steps}
    return {name: written[name] for name in operator.attributes if name in written}, inputs


@every("case", CASES, ids=str)
def test_the_published_outputs_are_ours(case):
    """Each element of each output, counted in units in the last place."""
    attributes, inputs = node_of(case)
    found = evaluate(case.operator, inputs, attributes=attributes)

    assert len(found) == len(case.expected)
    for values, elements in zip(found.values(), case.expected, strict=True):
        wanted = np.array(elements, case.dtype).reshape(values.shape)
        assert ulp_distance(values, wanted).max() <= ULPS[case.operator]
