"""Weights that nobody changes are prepared once, and what comes out is the same to the last bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.nodes import Limits, nodes
from support.recurrences import PREVIOUS, of_constants, recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.operators import OPERATORS, evaluate
from rnncli.operators.evaluation import compute_named
from rnncli.operators.node import Node
from rnncli.recurrence.recurrence import Constants, lock

BACKENDS = ("numpy", "numba")


def locked(inputs):
    """Copies that nobody can write to."""
    copies = {name: values.copy() for name, values in inputs.items()}
    for values in copies.values():
        lock(values)
    return copies


def outputs(node, inputs, backend, compute):
    """What a backend makes of a node, as bytes."""
    found = evaluate(
        node.operator,
        inputs,
        attributes=node.attributes,
        readings=node.readings,
        backend=backend,
        compute=compute,
    )
    return {name: (values.shape, values.tobytes()) for name, values in found.items()}


@pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")  # surplus alpha and beta
@pytest.mark.parametrize("backend", BACKENDS)
def test_any_node_of_constants_gives_the_same_bits(backend):
    """At the first call, which prepares, and at those after it."""

    @examples(100)
    @given(nodes(limits=Limits(all_outputs=True)), st.sampled_from(["float64", "native"]))
    def same(node, compute):
        wanted = outputs(node, node.inputs, backend, compute)
        constants = locked(node.inputs)
        for _ in range(3):
            assert outputs(node, constants, backend, compute) == wanted

    same()


def found(backend, recurrence, compute=Compute.NATIVE):
    """All that comes out."""
    result = backend_named(backend).run(recurrence, compute)
    return [result.Y, *result.last]


def bits(backend, recurrence, compute=Compute.NATIVE):
    """All bits of it."""
    return [values.tobytes() for values in found(backend, recurrence, compute)]


def floats(values):
    """Wide enough for any arithmetic of tests."""
    return values.astype(np.float64)


# Some units in the last place of numbers up to 1.
ATOL = {"float64": 1e-15, "float32": 5e-7, "float16": 1e-3, "bfloat16": 8e-3}


KINDS = (
    ("RNN", {}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("LSTM", {}),
    ("LSTM", {"peepholes": True, "input_forget": 1}),
    ("LSTM", PREVIOUS),
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("kind", "flags"), KINDS)
def test_what_is_kept_serves_every_batch_and_length(backend, dtype, kind, flags):
    """The layout is chosen by the batch, ragged or not, forwards and backwards.

    NumPy's may be another for constants: sums in another order, and the same at every call.
    """
    given_ = {"I": 3, "H": 64, "D": 2, "dtype": dtype, "scale": 0.2, **flags}
    plain = recurrence_of(kind, T=9, N=30, **given_)
    kept = Constants()
    for N in (30, 26, 1, 4, 30):
        for lengths in (None, np.arange(N) % 10):
            states = tuple(state[:, :N] for state in plain.initial)
            each = replace(plain, X=plain.X[:, :N], lengths=lengths, initial=states)
            for compute in Compute:
                wanted = found(backend, each, compute)
                constant = of_constants(each, kept)
                first = found(backend, constant, compute)
                atol = ATOL[dtype] if backend == "numpy" else 0
                for a, b in zip(first, wanted, strict=True):
                    np.testing.assert_allclose(floats(a), floats(b), rtol=0, atol=atol)
                assert bits(backend, constant, compute) == [values.tobytes() for values in first]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["W", "R", "Wb", "Rb", "P"])
def test_other_weights_are_not_taken_for_those_that_were_kept(backend, name):
    """A recurrence may be given others, as a mutant of it is."""
    prepared = of_constants(recurrence_of("LSTM", peepholes=True))
    bits(backend, prepared)
    other = replace(prepared, **{name: getattr(prepared, name) * np.float32(0.5)})

    assert other.constants is None
    assert bits(backend, other) != bits(backend, prepared)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_can_be_written_to_is_never_kept(backend):
    """Through the array, or through what it views."""
    generator = np.random.default_rng(3)
    shapes = {"X": (4, 2, 3), "W": (1, 12, 3), "R": (1, 12, 3)}
    arrays = {name: generator.normal(size=s).astype("f4") for name, s in shapes.items()}
    views = {name: values[...] for name, values in arrays.items()}
    for values in views.values():
        values.flags.writeable = False
    for inputs in (arrays, views):
        seen = set()
        for _ in range(3):
            found = evaluate("LSTM-14", inputs, attributes={"hidden_size": 3}, backend=backend)
            wanted = {name: values.copy() for name, values in inputs.items()}
            right = evaluate("LSTM-14", wanted, attributes={"hidden_size": 3}, backend=backend)
            assert found["Y"].tobytes() == right["Y"].tobytes()
            seen.add(found["Y"].tobytes())
            arrays["W"] *= 0.5
            arrays["R"] += 0.25
        assert len(seen) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_come_and_go_are_told_apart(backend):
    """Where one was freed, another of the same shape may have its address."""
    for seed in range(40):
        generator = np.random.default_rng(seed)
        inputs = {
            name: generator.normal(size=shape).astype("f4")
            for name, shape in {"X": (2, 2, 3), "W": (1, 9, 3), "R": (1, 9, 3)}.items()
        }
        settings = {"attributes": {"hidden_size": 3}, "backend": backend}
        wanted = evaluate("GRU-14", inputs, **settings)["Y"].tobytes()
        for values in inputs.values():
            lock(values)
        for _ in range(2):
            assert evaluate("GRU-14", inputs, **settings)["Y"].tobytes() == wanted
        del inputs, values


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_share_what_is_kept(backend):
    """Each has states of its own, also while none has prepared the weights yet."""
    plain = [recurrence_of("LSTM", T=6, N=3, H=40, I=8, seed=seed) for seed in range(4)]
    weights = plain[0]
    batches = [replace(weights, X=each.X, initial=each.initial) for each in plain]
    wanted = [bits(backend, each) for each in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            kept = Constants()
            tasks = [of_constants(each, kept) for each in batches * 2]
            assert list(pool.map(lambda each: bits(backend, each), tasks)) == wanted * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compute", ["native", "float64"])
def test_constants_are_prepared_once(backend, compute, monkeypatch):
    """The second call keeps nothing more."""
    generator = np.random.default_rng(5)
    shapes = {"X": (2, 2, 3), "W": (1, 9, 3), "R": (1, 9, 3), "B": (1, 18)}
    inputs = locked({name: generator.normal(size=s).astype("f4") for name, s in shapes.items()})
    kept = []
    keep = Constants.keep
    monkeypatch.setattr(Constants, "keep", lambda *a: (kept.append(a[1]), keep(*a)))
    row = OPERATORS["GRU-14"]
    for _ in range(3):
        recurrence = Node(row, {"hidden_size": 3}, ["Y"], row.readings).recurrence(inputs)
        backend_named(backend).run(recurrence, compute_named(compute))

    assert len(kept) == 1
