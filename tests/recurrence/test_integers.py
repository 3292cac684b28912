"""Claims about TFLite's integer LSTM: equal to scalar integers and to the hashes of runtimes."""

import hashlib
import re
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from support import integer_specification as specification

from rnncli.errors import InvalidOperator, Unsupported
from rnncli.operators import evaluate
from rnncli.operators.operator_table import operator_named
from rnncli.recurrence.integers import (
    Multiplier,
    gemmlowp_sigmoid,
    gemmlowp_tanh,
    rounded_shift,
    sigmoid_table,
    table_sigmoid,
    table_tanh,
)
from rnncli.recurrence.readings import PRESETS, READINGS

BACKENDS = ["numpy", *["numba"] * (find_spec("numba") is not None)]
NAME = "tflite.UNIDIRECTIONAL_SEQUENCE_LSTM"
ROW = operator_named(NAME)
DEFAULTS = {name: choice for name, choice in ROW.readings.items() if name != "preset"}
EVERY = np.arange(-(1 << 15), 1 << 15)
# Of the values for all 16-bit arguments, little-endian: what tflite-micro and LiteRT compute.
HASHES = {
    "table sigmoid": (table_sigmoid, "5e888504031254f7"),
    **{
        f"table tanh 2^-{p}": (partial(table_tanh, exponent=-p), digest)
        for p, digest in {
            9: "a2da25e8defeb843",
            10: "a01f73f720b295cb",
            11: "a1cf63d5e0312ce7",
            12: "e45a877eb31d4a70",
            13: "1216c895ba37fc17",
            14: "8c448736f8302b5b",
            15: "841a0157e4d2b9f4",
        }.items()
    },
    "gemmlowp sigmoid": (gemmlowp_sigmoid, "44168980e98373fc"),
    **{
        f"gemmlowp tanh {bits}": (partial(gemmlowp_tanh, integer_bits=bits), digest)
        for bits, digest in enumerate(
            [
                *("7dfff607d0ea23f2", "fb776c014fac7629", "ad9e4552d55f09f5", "6d2c95677d4eb6e2"),
                *("22e8b026529f3977", "4aad698c1ba273d4", "fd771a11c73c2d13"),
            ]
        )
    },
}


@pytest.mark.parametrize("name", HASHES)
def test_a_function_is_that_of_the_runtimes(name):
    """For every argument."""
    function, digest = HASHES[name]
    values = function(EVERY).astype("<i2")

    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == digest


def test_the_table_is_that_of_the_runtimes():
    """Its 256 numbers."""
    digest = hashlib.sha256(sigmoid_table().astype("<u2").tobytes()).hexdigest()

    assert digest == "c79a34d2c8c6e794fbb0207601538fe0169e968cd6d9d5ca65fff859dcd55183"


def drawn(seed, bits):
    """Attributes and inputs of a random node: scales of any size that keeps gates busy."""
    rng = np.random.default_rng([seed, bits])
    N, T, K, H = (int(rng.integers(1, most)) for most in (4, 7, 12, 12))
    top, dtype = 1 << (bits - 1), np.dtype(f"int{bits}")
    points = rng.integers(-128, 128, 2).tolist() if bits == 8 else [0, 0]
    spread = np.exp(rng.uniform(np.log(0.3), np.log(6)))
    sx, sh = 2.0 ** rng.uniform(-9, -5) * 128 / top, 2.0 ** rng.uniform(-8, -6) * 128 / top
    scales = [
        (spread * np.exp(rng.normal(0, 0.4, 4)) / (70 * s * top / 2 * np.sqrt(k))).tolist()
        for s, k in ((sx, K), (sh, H))
    ]
    attributes = {
        "time_major": bool(seed % 2),
        "cell_clip": [0.0, 0.5, 1e-5, float(rng.uniform(0.05, 3))][seed % 4],
        "input_scale": sx,
        "input_zero_point": points[0],
        "output_state_scale": sh,
        "output_state_zero_point": points[1],
        "cell_state_scale": 2.0 ** int(rng.integers(-15, -8)),
        "input_weight_scales": scales[0],
        "recurrent_weight_scales": scales[1],
    }
    if seed % 3 == 0:
        attributes |= {"hidden_scale": sh * 1.2, "hidden_zero_point": int(points[1] // 2)}
    shape = (T, N, K) if attributes["time_major"] else (N, T, K)
    inputs = {"input": rng.integers(-top, top, shape).astype(dtype)}
    for k, gate in enumerate(specification.GATES):
        size = spread / (sx * scales[0][k])
        inputs[f"input_to_{gate}_weights"] = rng.integers(-128, 128, (H, K)).astype(np.int8)
        inputs[f"recurrent_to_{gate}_weights"] = rng.integers(-128, 128, (H, H)).astype(np.int8)
        bias = np.clip(rng.normal(0, size, H), -(2**31) + 1, 2**31 - 1)
        inputs[f"{gate}_gate_bias"] = bias.astype(np.int32 if bits == 8 else np.int64)
    if seed % 5:
        inputs["output_state"] = rng.integers(-top, top, (N, H)).astype(dtype)
        inputs["cell_state"] = rng.integers(-(1 << 15), 1 << 15, (N, H)).astype(np.int16)
    return attributes, inputs


def expected(attributes, inputs, readings):
    """The scalar integers, or None where they are undefined."""
    read = {**DEFAULTS, **readings, **PRESETS[readings.get("preset", "tflm")]}
    held = {**dict.fromkeys(ROW.attributes), **attributes}
    for name in ("input_scale", "output_state_scale", "cell_state_scale", "cell_clip"):
        held[name] = float(np.float32(held[name]))
    if held["hidden_scale"] is not None:
        held["hidden_scale"] = float(np.float32(held["hidden_scale"]))
    functions = (specification.sigmoid, specification.tanh, specification.tanh)
    if read["activations"] == "gemmlowp":

        def one(function, *more):
            return lambda x, *given: int(function(np.array(x), *(more or [15 + given[0]])))

        functions = (
            lambda x: int(gemmlowp_sigmoid(np.array(x))),
            one(gemmlowp_tanh, 3),
            one(gemmlowp_tanh),
        )
    try:
        return specification.evaluate(held, inputs, read, functions)
    except specification.UndefinedResult:
        return None


ASKED = [
    {},
    *({name: c} for name in DEFAULTS for c in READINGS[name].choices[1:]),
    *({"preset": choice} for choice in READINGS["preset"].choices[1:]),
    {"preset": "cmsis", "rounding": "single"},
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("readings", ASKED, ids=lambda r: " ".join(map("=".join, r.items())))
def test_random_nodes_equal_scalar_integers(readings, bits, backend):
    """Every output, bit for bit, under each reading; where those are undefined, it is refused."""
    asked, compared = {"readings": readings, "backend": backend}, 0
    for seed in range(24):
        attributes, inputs = drawn(seed, bits)
        wanted = expected(attributes, inputs, readings)
        if readings.get("preset") == "litert" and bits == 16:
            wanted = None
        if wanted is None:
            with pytest.raises(Unsupported):
                evaluate(NAME, inputs, attributes=attributes, **asked)
            continue
        found = evaluate(NAME, inputs, attributes=attributes, **asked)
        assert [values.tolist() for values in found.values()] == [*wanted], seed
        compared += 1

    assert compared > 15 or (readings.get("preset"), bits) == ("litert", 16)


@pytest.mark.parametrize(
    ("factor", "wanted"),
    [
        (0.5, (1 << 30, 0)),
        (2.0**-32, (1 << 30, -31)),
        (2.0**-33, (0, 0)),
        (1 - 2.0**-33, (1 << 30, 1)),
        (3.0, (3 << 29, 2)),
    ],
)
def test_a_multiplier_is_nearest(factor, wanted):
    """One that rounds up to 2^31 has a larger shift; one below 2^-32 is 0."""
    assert Multiplier.of(factor) == wanted


def test_a_shift_rounds_half_away_from_zero():
    """Of either sign."""
    assert rounded_shift(np.array([-6, -5, -2, 2, 5, 6]), 2).tolist() == [-2, -1, -1, 1, 1, 2]


UNDEFINED = {
    "sum": ({"input_weight_scales": [1e3] * 4}, {}, "a sum of products needs more than 32 bits"),
    "product": ({"input_weight_scales": [1e30] * 4}, {}, "a product of scales is 2^30 or more"),
    "tanh": ({"cell_state_scale": 2.0**18}, {}, "in units of 2^18 is undefined in TFLite"),
    "no power": ({"cell_state_scale": 3e-4}, {"preset": "litert"}, "0.0003 is no power of two"),
    "integer bits": ({"cell_state_scale": 2.0**-16}, {"preset": "litert"}, "2^-15 to 2^-9"),
    "shift": ({"cell_state_scale": 2.0**-31}, {"cell-products": "shift"}, "no shift of 0 to 31"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", UNDEFINED)
def test_what_nobody_defines_is_refused(name, backend):
    """With the number that leaves the range, and what is wanted."""
    changes, readings, said = UNDEFINED[name]
    attributes, inputs = drawn(1, 8)

    with pytest.raises(Unsupported, match=re.escape(said)):
        evaluate(
            NAME, inputs, attributes={**attributes, **changes}, readings=readings, backend=backend
        )


WRONG = {
    "scale": ({"input_scale": 0.0}, "input_scale must be positive and finite, got 0.0"),
    "scales": ({"recurrent_weight_scales": [0.1]}, "must have one of each gate"),
    "point": ({"input_zero_point": 128}, "input_zero_point must be -128 to 127 of int8, got 128"),
    "alone": ({"hidden_zero_point": 1}, "hidden_zero_point needs hidden_scale"),
}


@pytest.mark.parametrize("name", WRONG)
def test_scales_and_zero_points_are_checked(name):
    """Each by the attribute's name."""
    changes, said = WRONG[name]
    attributes, inputs = drawn(1, 8)

    with pytest.raises(InvalidOperator, match=re.escape(said)):
        evaluate(NAME, inputs, attributes={**attributes, **changes})


def test_int16_has_no_zero_points():
    """Runtimes start from a raw 0, whatever the file says."""
    attributes, inputs = drawn(1, 16)

    with pytest.raises(InvalidOperator, match="output_state_zero_point must be 0 of int16, got 3"):
        evaluate(NAME, inputs, attributes={**attributes, "output_state_zero_point": 3})
