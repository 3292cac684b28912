"""The compiled backend agrees with the others wherever they can be asked, whatever the width."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from support import scalar_specification
from support.agreement import ABSOLUTE, RELATIVE, ours, within
from support.exact_rounding import FORMATS
from support.examples import examples, part_of
from support.nodes import Limits, nodes
from support.recurrences import PREVIOUS, recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.compiled import driver
from rnncli.backends.compiled.routines import ROUTINES
from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.backends.threads import POOL
from rnncli.operators import OPERATORS
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS

NUMBA, NUMPY = backend_named("numba"), NumPyBackend()
KINDS = ("RNN", "GRU", "LSTM")
# Sizes about the widths of vectors and panels, the runs of sums and the blocks of time.
SIZES = [
    {"T": 3, "N": 1, "I": 1, "H": 1},
    {"T": 5, "N": 7, "I": 3, "H": 17},
    {"T": 2, "N": 20, "I": 16, "H": 64},
    {"T": 70, "N": 2, "I": 5, "H": 33, "scale": 0.1},
    {"T": 2, "N": 3, "I": 130, "H": 257, "scale": 0.05},
    {"T": 2, "N": 110, "I": 2, "H": 3},
]
VARIANTS = [
    ("RNN", {}),
    ("RNN", {"activations": ("Relu",), "clip": 0.75}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("GRU", {"linear_before_reset": 1, "activations": ("HardSigmoid", "Softsign")}),
    ("LSTM", {}),
    ("LSTM", {"peepholes": True, "clip": 0.75}),
    ("LSTM", {"peepholes": True, "input_forget": 1}),
    ("LSTM", PREVIOUS),
    ("LSTM", {**PREVIOUS, "input_forget": 1, "clip": 0.75}),
]


def test_a_cell_without_kernels_is_refused():
    """By its name; NumPy evaluates it."""
    node = recurrence_of("GRU")
    other = replace(node, cell=replace(node.cell, name="MGU"))

    assert NUMBA.supports(other, Compute.FLOAT64) == "has no kernel for the MGU"


def differences(recurrence, compute=Compute.FLOAT64):
    """Largest distance of each output from NumPy's in float64, relative to the largest value."""
    found, wanted = NUMBA.run(recurrence, compute), NUMPY.run(recurrence, Compute.FLOAT64)
    pairs = zip((found.Y, *found.last), (wanted.Y, *wanted.last), strict=True)
    for ours_, theirs in pairs:
        assert ours_.dtype == theirs.dtype
        assert ours_.shape == theirs.shape
        theirs = theirs.astype(np.float64)  # noqa: PLW2901
        distance = np.abs(ours_.astype(np.float64) - theirs)
        yield distance.max(initial=0) / max(1, np.abs(theirs).max(initial=0))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "RNNSequence"])
def test_any_node_agrees_with_the_scalar_specification(kind):
    """In float64, over every attribute, input, reading and empty size."""
    rows = tuple(name for name, row in OPERATORS.items() if row.type == kind)

    @examples(150)
    @given(nodes(operators=rows, dtypes=("float64",)))
    def agrees(node):
        found = ours(node, backend="numba")
        wanted = scalar_specification.evaluate(
            node.operator, node.inputs, node.attributes, node.readings
        )
        for name, values in found.items():
            assert values.shape == wanted[name].shape
            assert within(values, wanted[name], RELATIVE, ABSOLUTE).all()

    agrees()


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_float64_arithmetic_rounds_to_the_certified_outputs(kind, dtype):
    """Of 16 and 32 bits all elements, bar one in a thousand next to a tie or what cancels out."""
    rows = tuple(n for n, row in OPERATORS.items() if row.type == kind and dtype in row.dtypes)
    counted = Counter()

    @examples(80)
    @given(nodes(operators=rows, dtypes=(dtype,), limits=Limits(all_outputs=True)))
    def agrees(node):
        found, proved = ours(node, backend="numba"), ours(node, backend="certified")
        for name, values in found.items():
            wide, exact = values.astype(np.float64), proved[name].astype(np.float64)
            counted["all"] += values.size
            with np.errstate(invalid="ignore"):  # infinities that agree
                counted["different"] += int((np.abs(wide - exact) > ABSOLUTE).sum())
            assert within(wide, exact, 2.0 ** (1 - FORMATS[dtype][0]) + RELATIVE, ABSOLUTE).all()

    agrees()
    assert counted["all"] > part_of(250)
    assert dtype == "float64" or counted["different"] <= counted["all"] / 1000


@pytest.mark.parametrize(("kind", "variant"), VARIANTS)
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "T{T}N{N}I{I}H{H}".format(**sizes))
@pytest.mark.parametrize("D", [1, 2])
def test_every_size_of_tile_panel_and_block(kind, variant, sizes, D):
    """Both precisions agree with NumPy, ragged or not."""
    T, N = sizes["T"], sizes["N"]
    lengths = [(7 * n + 3) % (T + 1) for n in range(N)]
    for given_lengths in (None, lengths):
        recurrence = recurrence_of(kind, D=D, lengths=given_lengths, **sizes, **variant)
        assert max(differences(recurrence)) < 1e-6
        assert max(differences(recurrence, Compute.NATIVE)) < 2e-5
        double = recurrence_of(
            kind, D=D, lengths=given_lengths, dtype="float64", **sizes, **variant
        )
        assert max(differences(double)) < 1e-12


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_activation_in_every_place(kind, name):
    """With parameters other than the defaults."""
    count = len(CELLS[kind].activations)
    recurrence = recurrence_of(kind, activations=[name] * count, T=3)
    rows = [[row.with_values(0.75, -0.25) for row in recurrence.activations[0]]]

    for given_rows in (recurrence.activations, rows):
        assert max(differences(replace(recurrence, activations=given_rows))) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_native_rounds_each_output_once(kind, dtype, monkeypatch):
    """Arithmetic in float32, in blocks or at once; nothing between is rounded to 16 bits."""
    recurrence = recurrence_of(kind, dtype=dtype, T=9, D=2, lengths=[9, 0, 4])
    whole = NUMBA.run(recurrence, Compute.NATIVE)
    monkeypatch.setattr(driver, "block_steps", lambda *_: 2)
    blocks = NUMBA.run(recurrence, Compute.NATIVE)

    unit = 2.0 ** -FORMATS[dtype][0]
    assert max(differences(recurrence, Compute.NATIVE)) <= 2 * unit + 1e-6
    assert whole.Y.tobytes() == blocks.Y.tobytes()
    assert [s.tobytes() for s in whole.last] == [s.tobytes() for s in blocks.last]


@pytest.mark.parametrize(("kind", "variant"), VARIANTS)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("compute", Compute)
def test_nan_and_infinity_are_where_numpy_has_them(kind, variant, poison, compute):
    """In an input, a weight or a state: the same elements are NaN, the same infinite."""
    recurrence = recurrence_of(kind, T=3, N=4, H=18, **variant)
    for name in ("X", "W", "R", "initial"):
        tensor = getattr(recurrence, name)
        spoilt = (tensor[-1] if name == "initial" else tensor).copy()
        spoilt.reshape(-1)[1] = poison
        changed = (*recurrence.initial[:-1], spoilt) if name == "initial" else spoilt
        given_ = replace(recurrence, **{name: changed})
        found, wanted = NUMBA.run(given_, compute), NUMPY.run(given_, compute)
        for values, expected in zip((found.Y, *found.last), (wanted.Y, *wanted.last), strict=True):
            np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_left_alone(kind):
    """Read-only, strided and broadcast inputs work; no output shares memory with one."""
    recurrence = recurrence_of(kind, N=3, D=2)
    wide = np.zeros((*recurrence.X.shape, 2), np.float32)
    wide[..., 0] = recurrence.X
    wide.flags.writeable = False
    odd = replace(
        recurrence,
        X=wide[..., 0],
        R=np.asfortranarray(recurrence.R),
        initial=tuple(np.broadcast_to(s[:, :1], s.shape) for s in recurrence.initial),
    )
    straight = replace(
        odd, X=recurrence.X, R=recurrence.R, initial=tuple(s.copy() for s in odd.initial)
    )

    found, wanted = NUMBA.run(odd, Compute.NATIVE), NUMBA.run(straight, Compute.NATIVE)

    assert found.Y.tobytes() == wanted.Y.tobytes()
    assert not any(np.shares_memory(found.Y, s) for s in (*odd.initial, *found.last))


def misaligned(values):
    """The same values at an odd address, as a protobuf may have them."""
    if values is None:
        return None
    found = np.empty(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    assert not found.flags.aligned
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_may_lie_at_odd_addresses(kind):
    """They are copied."""
    recurrence = recurrence_of(kind, N=3, D=2)
    names = ("X", "W", "R", "Wb", "Rb", "P")
    odd = replace(
        recurrence,
        **{name: misaligned(getattr(recurrence, name)) for name in names},
        initial=tuple(map(misaligned, recurrence.initial)),
    )

    found, wanted = NUMBA.run(odd, Compute.NATIVE), NUMBA.run(recurrence, Compute.NATIVE)

    assert found.Y.tobytes() == wanted.Y.tobytes()


@pytest.mark.parametrize("compute", Compute)
@pytest.mark.parametrize("kind", KINDS)
def test_later_calls_leave_results_alone(kind, compute):
    """No output lies in memory that calls use by turns."""
    recurrence = recurrence_of(kind, D=2)
    first = NUMBA.run(recurrence, compute)
    kept = [values.copy() for values in (first.Y, *first.last)]
    for factor in (2, 3):
        NUMBA.run(replace(recurrence, X=recurrence.X * np.float32(factor)), compute)

    for values, before in zip((first.Y, *first.last), kept, strict=True):
        assert values.tobytes() == before.tobytes()


@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize(("kind", "variant"), VARIANTS)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_threads_change_no_bit(kind, variant, D, count, monkeypatch):
    """Each unit's arithmetic is its own, whoever does it."""
    recurrence = recurrence_of(kind, T=40, N=3, I=9, H=140, D=D, lengths=[12, 40, 33], **variant)
    alone = NUMBA.run(recurrence, Compute.NATIVE)
    monkeypatch.setenv("RNNCLI_THREADS", str(count))
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    monkeypatch.setattr(driver, "WORTHWHILE", 0)
    monkeypatch.setattr(driver, "PART_WORTHWHILE", 1)

    together = NUMBA.run(recurrence, Compute.NATIVE)

    assert together.Y.tobytes() == alone.Y.tobytes()
    assert [s.tobytes() for s in together.last] == [s.tobytes() for s in alone.last]
    assert POOL.reserve()
    POOL.release()


def test_an_interrupted_gang_ends(monkeypatch):
    """Members whose caller never comes wait no more, and the next call is like any other."""
    recurrence = recurrence_of("LSTM", T=40, N=3, H=140)
    wanted = NUMBA.run(recurrence, Compute.NATIVE).Y.tobytes()
    routine = ROUTINES.of(recurrence, Compute.NATIVE, is_kept=False)
    (scan,) = routine.scans
    monkeypatch.setenv("RNNCLI_THREADS", "3")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    monkeypatch.setattr(driver, "WORTHWHILE", 0)

    def interrupted(*numbers_and_tensors):
        if numbers_and_tensors[5] == 0:  # which member it is
            raise KeyboardInterrupt
        scan(*numbers_and_tensors)

    with monkeypatch.context() as patch:
        patch.setattr(routine, "scans", [interrupted])
        with pytest.raises(KeyboardInterrupt):
            NUMBA.run(recurrence, Compute.NATIVE)

    assert NUMBA.run(recurrence, Compute.NATIVE).Y.tobytes() == wanted


@pytest.mark.parametrize(
    ("T", "D", "H", "wanted"),
    [(9, 1, 256, 1), (2000, 1, 256, 4), (9999, 1, 128, 1), (9999, 2, 128, 2)],
)
def test_no_more_threads_than_have_enough_to_do(T, D, H, wanted, monkeypatch):
    """In the whole call, and between two meetings; each direction walks for itself."""
    monkeypatch.setenv("RNNCLI_THREADS", "5")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    recurrence = recurrence_of("RNN", T=1, N=1, I=80, H=H, D=D)
    routine = ROUTINES.of(recurrence, Compute.NATIVE, is_kept=False)

    found = driver.team_size(T, routine)

    assert found == wanted
    if found > 1:
        POOL.release()


def test_callers_in_threads_get_results_of_their_own(monkeypatch):
    """Buffers and pool are shared by turns; nobody sees another's numbers."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")
    monkeypatch.setattr(driver, "WORTHWHILE", 0)
    tasks = [recurrence_of("LSTM", T=30, N=2, H=70, seed=seed) for seed in range(4)]
    wanted = [NUMBA.run(task, Compute.NATIVE).Y.tobytes() for task in tasks]
    failures = Counter()

    def caller(k):
        for _ in range(30):
            failures[k] += NUMBA.run(tasks[k], Compute.NATIVE).Y.tobytes() != wanted[k]

    threads = [Thread(target=caller, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures.total() == 0


def test_what_exists_as_python_alone_is_refused():
    """Another's activation function, another's equations."""
    recurrence = recurrence_of("RNN")
    foreign = replace(
        ACTIVATIONS["Tanh"], name="Mine", function=lambda math, x, _, __: math.tanh(x)
    )
    step = replace(recurrence.cell, step=lambda p, x, states: (p.f(x[0]), *states[1:]))

    assert NUMBA.supports(recurrence, Compute.NATIVE) is None
    assert "activation Mine" in NUMBA.supports(
        replace(recurrence, activations=((foreign,),)), Compute.NATIVE
    )
    assert "a kernel for the specification's RNN" in NUMBA.supports(
        replace(recurrence, cell=step), Compute.NATIVE
    )


ONE, MANY = (1, 5), (7, 37)
SCRIPT = """
import ast
import sys

from test_numba_backend import VARIANTS, differences, recurrence_of
from rnncli.backends.backend import Compute
from rnncli.backends.compiled.kernel_shapes import registers

assert registers().bits == int(sys.argv[1])
for k, (N, H) in zip((0, 2, 3, 6), ast.literal_eval(sys.argv[2]), strict=True):
    kind, variant = VARIANTS[k]
    recurrence = recurrence_of(kind, T=5, N=N, I=9, H=H, D=2, scale=0.3, **variant)
    assert max(differences(recurrence, Compute.NATIVE)) < 1e-5, (kind, variant, N, H)
"""


@pytest.mark.parametrize(
    ("bits", "sizes"), [(128, [ONE, MANY, ONE, MANY]), (256, [MANY, ONE, MANY, ONE])]
)
def test_narrower_vectors(bits, sizes, tmp_path):
    """In a process of its own, as wide as the variable says; each pair of width, kind and size."""
    tests = Path(__file__).parent
    path = os.pathsep.join(map(str, (tests, tests.parent, tests.parent / "operators")))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(bits), str(sizes)],
        env={**os.environ, "RNNCLI_VECTOR_BITS": str(bits), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stderr


def test_numba_is_imported_only_when_asked_for(tmp_path):
    """Neither `rnncli run` nor the list of operators pays for it."""
    code = (
        "import contextlib, sys\n"
        "from rnncli.cli import main\n"
        "sys.argv = ['rnncli', 'run', 'lstm_14']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("NUMBA_DISABLE_JIT=1", "which the environment variable NUMBA_DISABLE_JIT forbids"),
        ("NUMBA_NUM_THREADS=0", "must be > 0. (environment: NUMBA_NUM_THREADS)"),
    ],
)
def test_settings_of_numba_that_keep_it_from_compiling_are_told(setting, sentence):
    """In a sentence; the backend is not supported under them."""
    name, _, value = setting.partition("=")
    command = [sys.executable, "-m", "rnncli", "run", "lstm_14_peepholes", "--backend", "numba"]
    done = subprocess.run(
        command, env={**os.environ, name: value}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 3
    assert sentence in done.stderr
