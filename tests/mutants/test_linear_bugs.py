"""Claims about the bugs of linear recurrences: their kernels are right, and each bug is seen."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from mutants.test_catalogue import assert_shaped_like, same
from support.linear_recurrences import (
    attention_of,
    convolution_of,
    packed_attention_of,
    packed_convolution_of,
)
from support.shown_bugs import assert_seen

from rnncli.backends.backend import Compute
from rnncli.mutants.calls import call_of
from rnncli.mutants.catalogue import mutants_of
from rnncli.mutants.edits import edited, kernel_of
from rnncli.mutants.mutant import MATH, RIGHT
from rnncli.mutants.runs import Runs, part_of
from rnncli.mutants.words_of_edits import ABSENT
from rnncli.numerics import round_to
from rnncli.recurrence.cells import TokenForm


def _with(name, place, value):
    def change(inputs):
        inputs[name][place] = value

    return change


def _tails(inputs):
    inputs["decay"] *= 30


def _large(inputs):
    inputs["past_state"] *= 1e5


CASES = {
    "LinearAttention": {
        "heads": attention_of,
        "keys": partial(attention_of, per_key=True, K=3, dk=3, dv=5),
        "square": partial(attention_of, per_key=True, dk=4, dv=4, scale=0.7),
        "shared": partial(attention_of, shared_beta=True, scale=1.0),
        "gated": partial(attention_of, "gated", states_dtype="float32", dtype="float16"),
        "delta": partial(attention_of, "delta", dtype="bfloat16", states_dtype="float32"),
        "linear": partial(attention_of, "linear", K=1, group=3),
        "shared_queries": partial(attention_of, K=4, group=1, share=2),
        "shared_keys": partial(attention_of, K=6, group=1, share=3, shares_key=True),
        "one_query": partial(attention_of, K=3, group=1, share=3, shared_beta=True),
        "long": partial(attention_of, T=130, N=1, decay=(-0.2, 0.0), beta=(0.0, 1.0)),
        "strong_decay": partial(attention_of, change=_tails),
        "no_decay_left": partial(attention_of, change=_with("decay", np.s_[0, 1], -np.inf)),
        "nan": partial(attention_of, change=_with("value", np.s_[0, 1, :3], np.nan)),
        "large": partial(attention_of, change=_large, beta=(0.0, 0.1), decay=(-0.1, 0.0)),
        "one_step": partial(attention_of, T=1),
        "one_step_without_past": partial(attention_of, T=1, past=False),
        "without_past": partial(attention_of, past=False),
        "no_steps": partial(attention_of, T=0),
        "no_steps_without_past": partial(attention_of, T=0, past=False),
        "no_sequences": partial(attention_of, N=0),
        "one_of_each": partial(attention_of, N=1, T=2, K=1, group=1, dk=1, dv=1),
        "rounded_states": partial(attention_of, dtype="float16", readings={"state-round": "step"}),
        "float16": partial(attention_of, dtype="float16"),
        "packed": packed_attention_of,
        "packed_fresh": partial(packed_attention_of, "gated", past=False, per_key=True),
        "packed_alone": partial(packed_attention_of, "delta", ends=(5,), K=2, share=1),
        "qwen": partial(
            packed_attention_of,
            qk_l2_norm=1,
            gate_activation="softplus",
            beta_activation="sigmoid",
        ),
        "kimi": partial(
            packed_attention_of,
            per_key=True,
            qk_l2_norm=1,
            gate_activation="sigmoid",
            gate_lower_bound=-0.7,
        ),
    },
    "CausalConv": {
        "silu": convolution_of,
        "plain": partial(convolution_of, activation="none", w=6, T=9, C=5),
        "wide": partial(convolution_of, w=12, T=14),
        "two_taps": partial(convolution_of, w=2, T=3),
        "short": partial(convolution_of, w=6, T=2),
        "apart": partial(convolution_of, dilation=3, w=3, T=9),
        "apart_short": partial(convolution_of, dilation=2, w=4, T=3, activation="none"),
        "one_tap_apart": partial(convolution_of, w=1, dilation=2),
        "one_tap": partial(convolution_of, w=1),
        "one_tap_without_past": partial(convolution_of, w=1, past=False, bias=False),
        "bare": partial(convolution_of, past=False, bias=False, activation="none"),
        "without_past": partial(convolution_of, past=False),
        "no_steps": partial(convolution_of, T=0),
        "no_steps_without_past": partial(convolution_of, T=0, past=False),
        "no_sequences": partial(convolution_of, N=0),
        "one_channel": partial(convolution_of, N=1, C=1),
        "packed": packed_convolution_of,
        "packed_apart": partial(packed_convolution_of, (1, 7, 9), dilation=2, activation="none"),
        "packed_alike": partial(packed_convolution_of, (3, 6), w=3),
        "packed_alone": partial(packed_convolution_of, (5,)),
        "float16": partial(convolution_of, dtype="float16"),
        "bfloat16": partial(convolution_of, dtype="bfloat16", readings={"conv-round": "none"}),
        "saturated": partial(convolution_of, change=_with("input", np.s_[..., 3], -100)),
        "nan": partial(convolution_of, change=_with("input", np.s_[0, 0, 2], np.nan)),
    },
}
ROWS = [(cell, row) for cell in CASES for row in mutants_of(cell)]
EVERY = pytest.mark.parametrize(
    ("cell", "row"), ROWS, ids=lambda value: getattr(value, "id", value)
)


@cache
def recurrence_named(cell, name):
    """One of the recurrences above."""
    return CASES[cell][name]()


@cache
def right(cell, name):
    """Its right result."""
    return RIGHT.run(recurrence_named(cell, name), Compute.FLOAT64)


def alone(r):
    """What the text of a plain kernel gives, run as it is printed, in float64."""
    call, wide = call_of(r.cell.name)(r), {}
    names = {
        "LinearAttention": (
            *("query", "key", "value", "decay", "beta", "past_state", "scale"),
            *(*TokenForm._fields, "epsilon", "a_log", "dt_bias"),
        ),
        "CausalConv": ("input", "weight", "bias", "past_state", "activation", "dilation"),
    }[r.cell.name]
    for name in names:
        value = getattr(call, name)
        wide[name] = value.astype(np.float64) if isinstance(value, np.ndarray) else value
    if wide["past_state"] is ABSENT:
        N, C = call.sizes[0], r.W.shape[2]
        if r.cell.name == "LinearAttention":
            wide["past_state"] = np.zeros((N, call.sizes[2], *call.sizes[4:6]))
        else:
            wide["past_state"] = np.zeros((N, C, call.sizes[4]))
    if wide.get("bias") is ABSENT:
        wide["bias"] = 0

    def silu(a):
        a = a if r.options.unrounded_sum else round_to(a, r.dtype).astype(np.float64)
        return a * MATH.sigmoid(a)

    written = SimpleNamespace()
    space = {"sqrt": np.sqrt, "sigmoid": MATH.sigmoid, "softplus": MATH.softplus}
    space |= {"np": np, "exp": np.exp, "ABSENT": ABSENT, "silu": silu, "written": written}
    exec(kernel_of(r.cell.name), space)  # noqa: S102 -- a file of the package
    with np.errstate(all="ignore"):
        space[call.kernel[1]](SimpleNamespace(sizes=call.sizes, steps=call.steps, **wide))
    return call.results(written.output, written.present_state)


@pytest.mark.parametrize(("cell", "name"), [(cell, name) for cell in CASES for name in CASES[cell]])
def test_the_kernel_is_right(cell, name):
    """Its text, run as it is printed, gives what the reference gives."""
    r = recurrence_named(cell, name)
    if r.options.rounded_states:
        return
    wanted, (Y, last) = right(cell, name), alone(r)

    for one, other, dtype in ((Y, wanted.Y, r.dtype), (last[1], wanted.last[1], r.dtypes[1])):
        tolerance = 4 * 2.0**-dtype.precision
        pair = (each.astype(np.float64) for each in (round_to(one, dtype), other))
        np.testing.assert_allclose(*pair, rtol=tolerance, atol=1e-12 + tolerance**2)


@EVERY
def test_it_is_seen_where_it_gives_no_reason_and_nowhere_else(cell, row):
    """In one of the recurrences above at least."""
    assert_seen(
        row, {name: (recurrence_named(cell, name), right(cell, name)) for name in CASES[cell]}
    )


@EVERY
def test_each_edit_changes_the_kernel(cell, row):
    """In the order in which they are written."""
    for k in range(len(row.edits)):
        assert edited(cell, row.edits[: k + 1]) != edited(cell, row.edits[:k])


@pytest.mark.parametrize(("cell", "least"), [("LinearAttention", 90), ("CausalConv", 45)])
def test_there_are_enough(cell, least):
    """Plausible bugs of each operator; those of gated cells are none of them."""
    assert len(mutants_of(cell)) >= least
    assert all(row.cells == (cell,) for row in mutants_of(cell))


@pytest.mark.parametrize(("cell", "name"), [(cell, name) for cell in CASES for name in CASES[cell]])
def test_in_stacks_they_are_what_they_are_alone(cell, name):
    """Those that change recurrences alike are evaluated together, to the same bits."""
    r = recurrence_named(cell, name)
    rows = [(row,) for row in mutants_of(cell)]
    found = 0
    for some, stack in Runs(r).results(rows):
        for k, (row,) in enumerate(some):
            assert same(part_of(stack, k), row.run(r)), row.id
            found += 1

    assert found == len(rows)


@EVERY
def test_it_computes_in_the_dtype_of_the_tensors(cell, row):
    """As kernels do: in float32 where they are narrower."""
    names = {"LinearAttention": ("keys", "gated"), "CausalConv": ("silu", "float16")}[cell]
    for name in names:
        r = recurrence_named(cell, name)
        assert_shaped_like(row.run(r, Compute.NATIVE), right(cell, name))
