"""Certified results are the correctly rounded ones, and what cannot be certified is said."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import flint
import numpy as np
import pytest
from hypothesis import assume, given
from support import scalar_specification
from support.agreement import ours
from support.exact_rounding import FORMATS, correctly_rounded
from support.examples import examples, part_of
from support.nodes import RAGGED, Limits, nodes
from support.valid_nodes import valid_node

from rnncli.backends.certified_backend import MOST_BITS, FloatTarget, ends, nearest
from rnncli.errors import Unsupported
from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS, evaluate


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "RNNSequence"])
def test_outputs_are_those_of_sixty_digits_rounded_once(kind, dtype):
    """Bit for bit, for any node: every direction, length, activation, clip, peephole, reading."""
    rows = tuple(n for n, row in OPERATORS.items() if row.type == kind and dtype in row.dtypes)
    compared = Counter()

    @examples(40)
    @given(nodes(operators=rows, dtypes=(dtype,), limits=Limits(all_outputs=True)))
    def agrees(node):
        found = ours(node, backend="certified")
        with scalar_specification.digits(60):
            wanted = scalar_specification.evaluate(
                node.operator, node.inputs, node.attributes, node.readings
            )
        for name, values in found.items():
            exact = [correctly_rounded(number, dtype) for number in wanted[name].ravel()]
            assert values.dtype == DTYPES[dtype].numpy
            assert values.astype(np.float64).ravel().tolist() == exact
            compared["elements"] += len(exact)

    agrees()
    assert compared["elements"] > part_of(250)


def test_the_previous_cell_state_is_certified_as_well():
    """Where the output gate's peephole sees it; an operator that has the reading."""
    row, reading = OPERATORS["LSTM-22"], {"peephole-o": "previous"}
    row = replace(row, readings={**row.readings, **reading})

    @examples(40)
    @given(nodes(operators=(row.name,), dtypes=("float32",), limits=Limits(all_outputs=True)))
    def agrees(node):
        assume("P" in node.inputs)
        node.readings = {**node.readings, **reading}
        with scalar_specification.digits(60):
            wanted = scalar_specification.evaluate(
                node.operator, node.inputs, node.attributes, node.readings
            )
        node.operator = row
        for name, values in ours(node, backend="certified").items():
            exact = [correctly_rounded(number, "float32") for number in wanted[name].ravel()]
            assert values.astype(np.float64).ravel().tolist() == exact

    agrees()


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_long_recurrences_get_the_bits_they_need(kind):
    """At T=200 balls of 93 bits have grown past rounding; the answer is near float64's."""
    generator = np.random.default_rng(0)
    gates, H = len(OPERATORS[f"{kind}-14"].gates), 6
    inputs = {
        "X": generator.normal(size=(200, 1, 3)),
        "W": generator.normal(size=(1, gates * H, 3)),
        "R": generator.normal(size=(1, gates * H, H)),
    }
    bits = flint.ctx.prec

    certified = evaluate(f"{kind}-14", inputs, backend="certified")

    assert flint.ctx.prec == bits
    for name, values in evaluate(f"{kind}-14", inputs).items():
        np.testing.assert_allclose(values, certified[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("operator", RAGGED)
def test_padding_may_hold_anything(operator):
    """NaN past a sequence's end keeps nothing from being certified."""
    attributes, inputs = valid_node(operator)
    clean = evaluate(operator, inputs, attributes=attributes, backend="certified")
    batch_first = OPERATORS[operator].dialect == "OpenVINO"
    (inputs["X"].swapaxes(0, 1) if batch_first else inputs["X"])[2:, 2] = np.nan

    spoilt = evaluate(operator, inputs, attributes=attributes, backend="certified")

    assert all(np.array_equal(clean[name], spoilt[name]) for name in clean)


@pytest.mark.parametrize("name", ["X", "W", "R", "B", "initial_h", "initial_c", "P"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_infinite_inputs_are_refused(name, poison):
    """The formula of real numbers has no value there."""
    attributes, inputs = valid_node("LSTM-14")
    inputs[name].reshape(-1)[0] = poison

    with pytest.raises(Unsupported, match="an input is NaN or infinite"):
        evaluate("LSTM-14", inputs, attributes=attributes, backend="certified")


def test_native_is_refused():
    """There is nothing native about a proof."""
    attributes, inputs = valid_node("GRU-7")

    with pytest.raises(Unsupported, match="leave out --compute"):
        evaluate("GRU-7", inputs, attributes=attributes, backend="certified", compute="native")


def test_what_is_never_resolved_is_an_error(monkeypatch):
    """Beyond the most bits nothing is guessed."""
    monkeypatch.setattr("rnncli.backends.certified_backend.MOST_BITS", 40)
    attributes, inputs = valid_node("RNN-7")

    with pytest.raises(Unsupported, match="still unresolved with 40 bits"):
        evaluate("RNN-7", inputs, attributes=attributes, backend="certified")
    assert MOST_BITS > 20_000


@pytest.mark.parametrize("dtype", FORMATS)
def test_target_is_the_formats_own(dtype):
    """Precision, subnormals and overflow as the standard has them."""
    precision, least, largest = FORMATS[dtype]

    assert FloatTarget.of(DTYPES[dtype]) == (precision, least, largest + 1)


@pytest.mark.parametrize(
    ("significand", "exponent", "rounded"),
    [
        (0b10000000_1, 0, 256.0),  # a tie goes to even, down
        (0b10000001_1, 0, 260.0),  # and up
        (0b10000001_01, 0, 516.0),
        (0b11111111_1, 0, 512.0),  # the carry to the next power of two
        (1, -134, 0.0),  # half the least subnormal: to even, zero
        (3, -135, 2.0**-133),
        (0b11111111_0, 119, float.fromhex("0x1.fep+127")),
        (0b11111111_1, 119, math.inf),
        (0, 5, 0.0),
        (-1, -200, 0.0),
        (-0b10000001_1, 0, -260.0),
    ],
)
def test_integers_round_to_nearest_even(significand, exponent, rounded):
    """In bfloat16: eight bits, least subnormal 2**-133, overflow at 2**128."""
    found = nearest(significand, exponent, FloatTarget.of(DTYPES["bfloat16"]))

    assert found == rounded
    assert math.copysign(1, found) == (1 if rounded >= 0 else -1)


def test_ends_of_a_ball_are_exact():
    """A ball that touches a rounding boundary from below proves nothing."""
    target = FloatTarget.of(DTYPES["bfloat16"])
    tie = flint.arb(1 + 2.0**-8)

    assert ends(tie, target) == (1.0, 1.0)  # exactly there: to even
    low, high = ends(flint.arb(1 + 2.0**-8, 2.0**-60), target)
    assert (low, high) == (1.0, 1 + 2.0**-7)
    assert all(map(math.isnan, ends(flint.arb("nan"), target)))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("far", [1200, 10**9, 10**38])
def test_ends_of_balls_of_astronomical_size(dtype, far):
    """A middle or a radius of 2^-10^38 is nothing beside the other, and never written out."""
    target = FloatTarget.of(DTYPES[dtype])
    tiny = flint.arb(2) ** flint.arb(-far)

    assert ends(tiny, target) == ends(-tiny, target) == (0.0, 0.0)
    assert ends(flint.arb(1.5) + flint.arb(0, 1) * tiny, target) == (1.5, 1.5)
    low, high = ends(tiny + flint.arb(0, 0.25), target)
    assert low <= -0.25 < 0.25 <= high


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_largest_inputs_are_certified(kind, dtype):
    """Gates as closed as e^-10^38 leave what an exact evaluation leaves: the state, or nothing."""
    gates = len(OPERATORS[f"{kind}-14"].gates)
    largest = np.finfo(dtype).max
    inputs = {
        "X": np.full((2, 1, 1), -largest, dtype),
        "W": np.ones((1, gates, 1), dtype),
        "R": np.zeros((1, gates, 1), dtype),
        "initial_h": np.full((1, 1, 1), 0.5, dtype),
    }
    wanted = {"RNN": -1.0, "GRU": -1.0, "LSTM": 0.0}[kind]

    assert evaluate(f"{kind}-14", inputs, backend="certified")["Y_h"].item() == wanted
