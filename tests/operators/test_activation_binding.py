"""Which function gets which alpha and beta: by queue or by position, and what is left over."""

import math
import re
import warnings

import numpy as np
import pytest

from rnncli.errors import RnncliWarning
from rnncli.operators import OPERATORS
from rnncli.operators.activation_binding import resolve_activations
from rnncli.operators.attributes import complete
from rnncli.recurrence.activations import ACTIVATIONS


def bound(name, directions=1, order=None, **attributes):
    """List (name, alpha, beta) of each direction's functions, values to 6 digits."""
    row = OPERATORS[name]
    readings = {**row.readings, **({"alpha-order": order} if order else {})}
    resolved = resolve_activations(row, complete(row, attributes), directions, readings)
    return [[(f.name, short(f.alpha), short(f.beta)) for f in functions] for functions in resolved]


def short(value):
    """Round what was a decimal before it became a float32."""
    return value if value is None or math.isinf(value) else round(value, 6)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("RNN-14", ["Tanh"]),
        ("GRU-14", ["Sigmoid", "Tanh"]),
        ("LSTM-14", ["Sigmoid", "Tanh", "Tanh"]),
        ("RNNSequence-5", ["Tanh"]),
    ],
)
@pytest.mark.parametrize("directions", [1, 2])
def test_defaults(name, wanted, directions):
    """Nothing written: the specification's functions, in each direction."""
    assert bound(name, directions) == [[(f, None, None) for f in wanted]] * directions


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_function_has_the_defaults_of_its_onnx_operator(name):
    """Alpha and beta as in ONNX's own schemas, to the bit; Affine and ScaledTanh have no schema."""
    import onnx

    row = ACTIVATIONS[name]
    if name in {"Affine", "ScaledTanh"}:
        assert (row.alpha, row.beta) == (1.0, {"Affine": 0.0, "ScaledTanh": 1.0}[name])
        return
    attributes = onnx.defs.get_schema(name, 22).attributes
    for parameter in ("alpha", "beta"):
        given = getattr(row, parameter)
        assert (given is None) == (parameter not in attributes)
        if given is not None:
            assert given == attributes[parameter].default_value.f


def test_the_queue_skips_functions_that_take_none():
    """Forward then backward, one queue."""
    assert bound(
        "GRU-14",
        2,
        activations=["leakyrelu", "TANH", "HardSigmoid", "Elu"],
        activation_alpha=[0.5, 0.25],
        activation_beta=[0.75],
    ) == [
        [("LeakyRelu", 0.5, None), ("Tanh", None, None)],
        [("HardSigmoid", 0.25, 0.75), ("Elu", 1.0, None)],
    ]


def test_positions_count_every_function():
    """Element k belongs to function k; what lands on one that takes none is unused, and said."""
    with pytest.warns(RnncliWarning, match=r"alpha value 0\.25 used by no activation"):
        found = bound(
            "GRU-14",
            2,
            "positional",
            activations=["LeakyRelu", "Tanh", "HardSigmoid", "Elu"],
            activation_alpha=[0.5, 0.25, 0.125],
        )

    assert found == [
        [("LeakyRelu", 0.5, None), ("Tanh", None, None)],
        [("HardSigmoid", 0.125, 0.5), ("Elu", 1.0, None)],
    ]


@pytest.mark.parametrize("order", ["queue", "positional"])
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activation_alpha": [0.5]}, "alpha value 0.5 used by no activation"),
        ({"activation_beta": [1, 2.5]}, "beta values 1, 2.5 used by no activation"),
        (
            {"activations": ["Elu"], "activation_alpha": [1, 2, 3]},
            "alpha values 2, 3 used by no activation",
        ),
        (
            {"activation_alpha": [1] * 900},
            "alpha values 1, 1, 1, 1, 1, 1, 1, 1, ... (900 in all) used by no activation",
        ),
    ],
)
def test_surplus_values_warn(order, attributes, message):
    """They change nothing, and the warning says so, each time."""
    for _ in range(2):
        with pytest.warns(RnncliWarning, match=re.escape(message)):
            bound("RNN-14", 1, order, **attributes)


@pytest.mark.parametrize("order", ["queue", "positional"])
def test_exact_and_missing_values_do_not_warn(order):
    """Missing ones take the function's default."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bound("RNN-14", 1, order, activations=["Affine"], activation_alpha=[2.0]) == [
            [("Affine", 2.0, 0.0)]
        ]


def test_one_direction_uses_the_first_of_two_names():
    """RNN's schema default has two names whatever the direction."""
    assert bound("RNN-14", 1, activations=["Relu", "Elu"]) == [[("Relu", None, None)]]


def test_openvino_uses_one_function_for_both_directions():
    """One name, or two equal ones; alpha and beta have no effect."""
    with pytest.warns(RnncliWarning):
        assert (
            bound("RNNSequence-5", 2, activations=["relu"], activations_alpha=[9.0])
            == [[("Relu", None, None)]] * 2
        )


def test_a_zero_alpha_is_a_value():
    """0 and -0 are given values, not missing ones."""
    assert bound("RNN-14", activations=["Elu"], activation_alpha=[0.0]) == [[("Elu", 0.0, None)]]
    ((elu,),) = resolve_activations(
        OPERATORS["RNN-14"],
        complete(OPERATORS["RNN-14"], {"activations": ["Elu"], "activation_alpha": [np.nan]}),
        1,
        OPERATORS["RNN-14"].readings,
    )
    assert elu.alpha is not None
    assert math.isnan(elu.alpha)
