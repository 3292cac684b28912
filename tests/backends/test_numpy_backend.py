"""The backends beyond numbers: padding, memory, blocks, what they leave alone."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.judged import CORE, core
from support.recurrences import recurrence_of
from support.tables import every
from support.valid_nodes import valid_node

from rnncli import operators
from rnncli.backends import backend_named, reference
from rnncli.backends.backend import Compute
from rnncli.judging.judgement import judge
from rnncli.operators import OPERATORS
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status

DIRECTIONS = ("forward", "reverse", "bidirectional")
MODES = ("float64", "native")
# A quantised batch shares its scale, so padding and NaN reach every sequence.
# Packed sequences have no padding.
SEQUENCES = [
    name
    for name, row in OPERATORS.items()
    if row.lengths_dtypes and not row.quantised and not row.has("total_tokens")
]


def test_no_case_of_the_committed_packs_fails():
    """In native arithmetic; those of tiles have a size about each block of a kernel."""
    numpy = backend_named("numpy")
    both = (*core().values(), *open_pack(CORE.with_name("tiles")).vectors())
    cases = [each for each in both if each.record.expect == "result"]
    answers = [each.node.outputs_of(numpy.run(each.recurrence, Compute.NATIVE)) for each in cases]
    pairs = zip(cases, answers, strict=True)

    assert len(cases) > 600
    assert [v.id for v, own in pairs if judge(v, Attempt(Status.RAN, own)).fails] == []


def test_sizes_and_offsets_of_more_than_8_and_16_bits():
    """Units beyond 256, and elements of X and Y beyond 65,536."""
    recurrence = recurrence_of("LSTM", T=70, N=10, I=100, H=300, scale=0.05)
    found = backend_named("numpy").run(recurrence, Compute.NATIVE)
    wanted = backend_named("reference").run(recurrence, Compute.FLOAT64)

    np.testing.assert_allclose(found.Y, wanted.Y, atol=1e-5)


def test_lengths_of_more_than_16_bits():
    """All steps of a sequence are valid, and alike where it depends on its biases alone."""
    T = (1 << 15) + 1
    recurrence = recurrence_of("RNN", T=T, N=2, I=1, H=1, scale=0.0, lengths=[T, T - 1])
    recurrence.Wb[...] = 0.5
    Y = backend_named("numpy").run(recurrence, Compute.NATIVE).Y

    assert np.count_nonzero(Y) == 2 * T - 1
    assert np.unique(Y[Y != 0]).tolist() == pytest.approx([np.tanh(0.5)])


@pytest.fixture(params=["numpy", "reference"])
def evaluate(request):
    """Evaluate by either."""
    return partial(operators.evaluate, backend=request.param)


def lengths_of(operator):
    """The input that holds the lengths, and X."""
    rows = {row.role: row.name for row in OPERATORS[operator].inputs}
    return rows["lengths"], rows["X"]


def padding(operator, inputs):
    """Index of X's padded steps, whatever the operator's layout."""
    lengths, X = lengths_of(operator)
    order = [dim.symbol for dim in OPERATORS[operator].inputs[0].shape()]
    time, batch = order.index("seq_length"), order.index("batch_size")
    steps = np.arange(inputs[X].shape[time])
    padded = steps[:, None] >= inputs[lengths][None, :]
    return padded if time < batch else padded.T


@pytest.mark.parametrize("backend", ["numpy", "reference", "numba"])
@every("operator", SEQUENCES)
@every("direction", DIRECTIONS)
@every("poison", [np.nan, np.inf, -np.inf, 3e38])
def test_padding_is_never_read(backend, operator, direction, poison):
    """NaN, infinity or a huge number past a sequence's length changes no bit of any output."""
    attributes, inputs = valid_node(operator, direction=direction)
    poisoned = inputs["X"].copy()
    poisoned[padding(operator, inputs)] = poison

    how = {"attributes": attributes, "backend": backend}
    clean = operators.evaluate(operator, inputs, **how)
    spoilt = operators.evaluate(operator, {**inputs, "X": poisoned}, **how)

    for name, values in clean.items():
        assert values.tobytes() == spoilt[name].tobytes()


@every("operator", SEQUENCES)
@every("mode", MODES)
def test_nan_in_a_valid_step_comes_out(evaluate, operator, mode):
    """From its step on, in the direction of time, in its own sequence only."""
    attributes, inputs = valid_node(operator, direction="forward")
    lengths, X = lengths_of(operator)
    inputs[lengths][:] = inputs[X].shape[0 if OPERATORS[operator].dialect == "ONNX" else 1]
    values = inputs[X] if OPERATORS[operator].dialect == "ONNX" else inputs[X].swapaxes(0, 1)
    values[2, 1, 0] = np.nan

    outputs = evaluate(operator, inputs, attributes=attributes, compute=mode)
    Y = outputs["Y"]
    Y = Y[:, 0] if OPERATORS[operator].dialect == "ONNX" else Y[:, 0].swapaxes(0, 1)

    assert np.isnan(Y[2:, 1]).all()
    assert not np.isnan(Y[:2]).any()
    assert not np.isnan(Y[:, [0, 2]]).any()


@every("operator", OPERATORS)
@every("direction", DIRECTIONS)
def test_blocks_of_time_meet_without_a_seam(operator, direction, monkeypatch):
    """One step of the reference at a time, a few at a time, all at once: the same numbers."""
    dtype = np.float64 if "float64" in OPERATORS[operator].dtypes else np.float32
    attributes, inputs = valid_node(operator, dtype, direction)
    evaluate = partial(operators.evaluate, operator, inputs, attributes=attributes)
    whole = evaluate(backend="reference")

    for numbers in (1, 200):
        monkeypatch.setattr(reference, "BLOCK_NUMBERS", numbers)
        for name, values in evaluate(backend="reference").items():
            np.testing.assert_allclose(values, whole[name], rtol=1e-13, atol=1e-15)


@every("operator", OPERATORS)
@every("mode", MODES)
def test_inputs_are_left_alone(evaluate, operator, mode):
    """Read-only, big-endian and strided inputs work, none is written to, no output aliases one."""
    attributes, inputs = valid_node(operator)
    wanted = evaluate(operator, inputs, attributes=attributes, compute=mode)
    odd = {}
    for name, values in inputs.items():
        wide = np.zeros((*values.shape, 2), values.dtype.newbyteorder(">"))
        wide[..., 0] = values
        odd[name] = wide[..., 0]
        odd[name].flags.writeable = False

    found = evaluate(operator, odd, attributes=attributes, compute=mode)

    for name, values in found.items():
        assert values.dtype.isnative
        np.testing.assert_array_equal(values, wanted[name])
        assert not any(np.shares_memory(values, given) for given in odd.values())


@every("operator", OPERATORS)
def test_evaluation_repeats_to_the_bit(evaluate, operator):
    """No state is left behind: twice the same call gives twice the same bytes."""
    attributes, inputs = valid_node(operator, direction="bidirectional")
    first, second = (evaluate(operator, inputs, attributes=attributes) for _ in range(2))

    assert {name: values.tobytes() for name, values in first.items()} == {
        name: values.tobytes() for name, values in second.items()
    }


def measured(operator, inputs, **how):
    """The outputs, and the peak of the memory that a second call takes."""
    operators.evaluate(operator, inputs, **how)
    tracemalloc.start()
    try:
        outputs = operators.evaluate(operator, inputs, **how)
        return outputs, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_memory_is_bounded(backend, kind, ragged, mode):
    """At most inputs, outputs, projected gates and some weights, however long the sequence."""
    T, N, I, H = 3000, 4, 64, 32  # noqa: E741 -- the specification's letter
    gates = len(OPERATORS[f"{kind}-14"].gates)
    generator = np.random.default_rng(0)
    inputs = {
        "X": generator.normal(size=(T, N, I)).astype(np.float32),
        "W": generator.normal(size=(1, gates * H, I)).astype(np.float32) / 8,
        "R": generator.normal(size=(1, gates * H, H)).astype(np.float32) / 8,
    }
    if ragged:
        inputs["sequence_lens"] = np.array([7, T, 1, T // 2], np.int32)
    with ThreadPoolExecutor(1) as thread:  # which has kept nothing of other tests
        call = partial(measured, f"{kind}-14", inputs, compute=mode, backend=backend)
        outputs, peak = thread.submit(call).result()

    size = {"float64": 8, "native": 4}[mode]
    weights = (inputs["W"].size + inputs["R"].size) * size
    projected = T * N * gates * H * size
    allowed = sum(values.nbytes for values in (*inputs.values(), *outputs.values()))
    assert peak < allowed + projected + 3 * weights


def test_many_ragged_sequences_need_no_loop_over_the_batch(evaluate):
    """A step is one call of the cell for all sequences of all directions."""
    operator = OPERATORS["RNN-14"]
    N, T = 500, 6
    lengths = np.random.default_rng(1).integers(0, T + 1, N).astype(np.int32)
    inputs = {
        "X": np.ones((T, N, 1)),
        "W": np.ones((1, 1, 1)),
        "R": np.ones((1, 1, 1)),
        "sequence_lens": lengths,
    }
    steps = []
    step = operator.cell.step

    def counted(p, x, states):
        steps.append(x.shape)
        return step(p, x, states)

    evaluate(replace(operator, cell=replace(operator.cell, step=counted)), inputs)

    assert steps == [(1, 1, N, 1)] * T
