"""Linear recurrences on compiled kernels: in chunks, at any width, as exact as is claimed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.examples import part_of
from support.linear_draws import attention, convolution
from support.linear_judging import judged
from support.linear_nodes import random_nodes
from support.linear_recurrences import RULES, attention_of, convolution_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.compiled import linear
from rnncli.backends.compiled.attention import CHUNK
from rnncli.operators import evaluate

NUMBA, REFERENCE = backend_named("numba"), backend_named("reference")
# About the widths of vectors and panels, the lengths of chunks and of the runs of sums.
SIZES = [
    {"T": 0},
    {"T": 1, "dk": 1, "dv": 1},
    {"T": 17, "dk": 7, "dv": 65, "group": 3},
    {"T": 33, "dk": 16, "dv": 64, "N": 1, "K": 3, "group": 1},
    {"T": 2, "dk": 130, "dv": 129, "group": 1},
    {"T": 5, "N": 0},
]
MILD = {"decay": (-1.5, 0.0), "beta": (0.0, 1.0)}
CONVOLUTIONS = [
    {},
    {"T": 1, "C": 40},
    {"T": 0},
    {"T": 2, "w": 5, "past": False},
    {"w": 1, "bias": False},
    {"T": 2500, "C": 2, "activation": "none"},
    {"T": 2500, "N": 1},
    {"N": 0},
    {"dilation": 3},
    {"dilation": 5, "T": 2, "past": False, "bias": False},
    {"dilation": 2, "T": 1, "C": 40},
    {"dilation": 2, "T": 0},
    {"dilation": 2, "N": 0, "w": 1},
    {"dilation": 2, "T": 4999, "C": 2, "activation": "none"},
]


def outputs(result):
    """Every output of a result that there is, with the last values of the first state."""
    return [result.Y, *result.last]


def assert_alike(found, wanted, tolerance):
    """Types and shapes are the same, values within a part of the largest."""
    for ours_, theirs in zip(outputs(found), outputs(wanted), strict=True):
        assert (ours_.dtype, ours_.shape) == (theirs.dtype, theirs.shape)
        wide, exact = ours_.astype(np.float64), theirs.astype(np.float64)
        bound = tolerance * max(1, np.abs(exact).max(initial=0))
        np.testing.assert_allclose(wide, exact, rtol=0, atol=bound)


class Numba:
    """A kernel to judge: the backend in an arithmetic."""

    def __init__(self, compute):
        self.compute = compute

    def run(self, recurrence):
        """Return its result."""
        return NUMBA.run(recurrence, self.compute)


KERNELS = [Numba(Compute.NATIVE), Numba(Compute.FLOAT64)]


@pytest.mark.parametrize(
    ("dtype", "states"), [("float32", None), ("bfloat16", "float32"), ("float32", "float16")]
)
def test_attentions_stay_within_the_tolerances_of_chunks(dtype, states):
    """Of any keys, decays and rates: `native` by the profile, float64 by rounding alone."""
    made = [attention(seed, dtype, states) for seed in range(part_of(120))]
    ((native, wide),) = judged(KERNELS, made, "chunked")

    assert native.max() < 0.7
    assert wide.max() == 0 if dtype == "float32" else wide.max() < 0.7


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolutions_stay_within_the_tolerances(dtype):
    """Those of any kernel; a sum is rounded before silu, as the reading says."""
    made = [convolution(seed, dtype) for seed in range(part_of(80))]
    ((native, wide),) = judged(KERNELS, made, "standard")

    assert native.max() < 0.7
    assert wide.max() == 0


def test_any_node_has_the_outputs_of_the_reference():
    """In float64, all forms and types: bit for bit, bar one element in a thousand."""
    differing = count = 0
    for node in random_nodes(part_of(150), seed=3):
        found, wanted = (
            evaluate(node.operator, node.inputs, attributes=node.attributes, backend=backend)
            for backend in ("numba", "reference")
        )
        for name, values in wanted.items():
            assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
            same = (found[name] == values) | (np.isnan(found[name]) & np.isnan(values))
            differing, count = differing + int((~same).sum()), count + values.size
    assert differing <= count / 1000


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("form", [{}, {"per_key": True, "past": False}, {"shared_beta": True}])
def test_every_size_of_chunk_panel_and_group(sizes, rule, form):
    """Both arithmetics agree with the reference."""
    recurrence = attention_of(rule, **MILD, **sizes, **form)
    wanted = REFERENCE.run(recurrence, Compute.FLOAT64)

    assert_alike(NUMBA.run(recurrence, Compute.NATIVE), wanted, 1e-5)
    assert_alike(NUMBA.run(recurrence, Compute.FLOAT64), wanted, 1e-7)


@pytest.mark.parametrize("form", CONVOLUTIONS, ids=str)
def test_every_size_of_window_and_block(form):
    """Both arithmetics agree with the reference."""
    recurrence = convolution_of(**form)
    wanted = REFERENCE.run(recurrence, Compute.FLOAT64)

    assert_alike(NUMBA.run(recurrence, Compute.NATIVE), wanted, 1e-6)
    assert_alike(NUMBA.run(recurrence, Compute.FLOAT64), wanted, 0)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        *(("gated", name) for name in ("query", "key", "value", "decay", "past_state")),
        *(("gated_delta", name) for name in ("key", "value", "beta", "past_state")),
    ],
)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_reaches_no_earlier_step_and_no_other_head(rule, poison, name):
    """In the midst of a chunk: what precedes is as without it, and what follows as by steps."""

    def poisoned(inputs):
        values = inputs[name]
        at = 0 if name == "past_state" else 5
        values[(1, at, *[0] * (values.ndim - 2))] = poison

    recurrence = attention_of(rule, T=CHUNK + 4, **MILD, change=poisoned)
    found, wanted = (b.run(recurrence, Compute.NATIVE) for b in (NUMBA, REFERENCE))

    for ours_, theirs in zip(outputs(found), outputs(wanted), strict=True):
        np.testing.assert_array_equal(np.isfinite(ours_), np.isfinite(theirs))
        fine = np.isfinite(theirs)
        np.testing.assert_allclose(ours_[fine], theirs[fine], rtol=1e-4, atol=1e-4)


def test_decays_that_grow_overflow_only_where_steps_do():
    """e^60 twice on a state of 1e-38, and then e^-110: products of decays alone would overflow."""

    def growing(inputs):
        inputs["decay"][:] = np.array([60, 60, -110, 0.0])[:, None]
        inputs["value"] *= 1e-38
        inputs["past_state"] *= 1e-38

    recurrence = attention_of("gated", T=4, scale=1.0, change=growing)
    found, wanted = (b.run(recurrence, Compute.NATIVE) for b in (NUMBA, REFERENCE))

    assert np.isfinite(wanted.last[1]).all()
    np.testing.assert_allclose(found.last[1], wanted.last[1], rtol=1e-5)


@pytest.mark.parametrize(
    "made",
    [
        lambda: attention_of(T=50, dtype="float16", dk=20, **MILD),
        lambda: attention_of(T=50, dtype="bfloat16", states_dtype="float32", **MILD),
        lambda: attention_of(T=50, dk=20, dv=70, **MILD),
        lambda: convolution_of(T=50, C=5, N=4),
        lambda: convolution_of(T=1, C=50, N=4),
    ],
)
def test_blocks_of_time_and_threads_change_no_bit(made, monkeypatch):
    """Nothing between is rounded, and each state's arithmetic is its own."""
    recurrence = made()
    whole = NUMBA.run(recurrence, Compute.NATIVE)
    monkeypatch.setattr(linear, "BLOCK_NUMBERS", 1)
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    monkeypatch.setattr(linear, "STREAMED", 0)
    monkeypatch.setenv("RNNCLI_THREADS", "3")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    parts = NUMBA.run(recurrence, Compute.NATIVE)

    assert [x.tobytes() for x in outputs(whole)] == [x.tobytes() for x in outputs(parts)]


def test_states_written_past_the_caches_are_the_same(monkeypatch):
    """Rows of whole cache lines, in each thread."""
    recurrence = attention_of(T=20, dk=9, dv=192, **MILD)
    whole = NUMBA.run(recurrence, Compute.NATIVE)
    monkeypatch.setattr(linear, "STREAMED", 0)
    streamed = NUMBA.run(recurrence, Compute.NATIVE)

    assert streamed.last[1].ctypes.data % linear.LINE == 0
    assert [x.tobytes() for x in outputs(whole)] == [x.tobytes() for x in outputs(streamed)]


@pytest.mark.parametrize(
    ("made", "reading"),
    [(attention_of, {"state-round": "step"}), (convolution_of, {"conv-round": "none"})],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_readings_are_those_of_the_reference(made, reading, dtype):
    """States rounded at each step, sums not rounded before silu: another result, and the same."""
    by_default, read = (made(T=40, dtype=dtype, readings=r) for r in ({}, reading))
    found, wanted = (b.run(read, Compute.FLOAT64) for b in (NUMBA, REFERENCE))

    assert_alike(found, wanted, 0)
    assert found.Y.tobytes() != NUMBA.run(by_default, Compute.FLOAT64).Y.tobytes()


@pytest.mark.parametrize("made", [attention_of, convolution_of])
def test_inputs_are_left_alone(made):
    """Read-only, strided and at odd addresses; no output shares memory with one."""
    recurrence = made(T=20)
    odd = np.zeros(recurrence.X.nbytes + 1, np.uint8)[1:].view(np.float32)
    odd = odd.reshape(recurrence.X.shape[::-1]).T
    odd[...] = recurrence.X
    odd.flags.writeable = False
    past = recurrence.initial[1].copy()
    past.flags.writeable = False
    strange = replace(recurrence, X=odd, initial=(None, past))

    found, wanted = NUMBA.run(strange, Compute.NATIVE), NUMBA.run(recurrence, Compute.NATIVE)

    assert [x.tobytes() for x in outputs(found)] == [x.tobytes() for x in outputs(wanted)]
    assert not any(np.shares_memory(a, b) for a in outputs(found) for b in (odd, past))


def test_a_call_that_wants_only_the_state_gets_no_steps():
    """And the same state."""
    recurrence = attention_of(T=20)
    found = NUMBA.run(replace(recurrence, wants_Y=False), Compute.NATIVE)

    assert found.Y is None
    assert found.last[1].tobytes() == NUMBA.run(recurrence, Compute.NATIVE).last[1].tobytes()


SCRIPT = """
import sys

from test_linear import CONVOLUTIONS, MILD, NUMBA, REFERENCE, SIZES, assert_alike
from support.linear_recurrences import attention_of, convolution_of

from rnncli.backends.backend import Compute
from rnncli.backends.compiled.kernel_shapes import registers

assert registers().bits == int(sys.argv[1])
made = [attention_of(**MILD, **sizes) for sizes in SIZES]
for recurrence in [*made, *(convolution_of(**form) for form in CONVOLUTIONS)]:
    wanted = REFERENCE.run(recurrence, Compute.FLOAT64)
    assert_alike(NUMBA.run(recurrence, Compute.NATIVE), wanted, 1e-5)
    assert_alike(NUMBA.run(recurrence, Compute.FLOAT64), wanted, 1e-7)
"""


@pytest.mark.parametrize("bits", [128, 256])
def test_narrower_vectors(bits, tmp_path):
    """In a process of its own, as wide as the variable says."""
    tests = Path(__file__).parents[2]
    path = os.pathsep.join(map(str, (tests, Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(bits)],
        env={**os.environ, "RNNCLI_VECTOR_BITS": str(bits), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stderr


def test_memory_of_large_states_is_taken_again_only_where_nobody_has_it():
    """What was returned stays as it is while any view of it is left."""
    shape = (linear.STREAMED // 4, 1)
    first = linear.aligned(shape, np.dtype(np.float32))
    first[...] = 1
    part, second = first[:3], linear.aligned(shape, np.dtype(np.float32))
    del first
    third = linear.aligned(shape, np.dtype(np.float32))
    second[...], third[...] = 2, 3

    assert part.ravel().tolist() == [1, 1, 1]
    assert (second == 2).all()
    assert (third == 3).all()
    place = third.__array_interface__["data"][0]
    assert place % linear.LINE == 0
    del third
    assert linear.aligned(shape, np.dtype(np.float32)).__array_interface__["data"][0] == place
