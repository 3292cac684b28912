"""Steps in place give what the equations over fresh arrays give, in every layout."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from support.recurrences import PREVIOUS, recurrence_of
from support.tables import every

from rnncli.backends import in_place as tuning
from rnncli.backends.backend import Compute
from rnncli.backends.in_place import stages as all_stages
from rnncli.backends.in_place import walk
from rnncli.backends.in_place.prepared_calls import NotFiniteError
from rnncli.backends.in_place.time_steps import has_kernel
from rnncli.backends.in_place.walk import NumPyBackend, evaluate_in_place, pieces, share_of, shares
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.recurrence.activations import ACTIVATIONS

CELLS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}

DTYPES = {np.float32: 2e-5, np.float64: 1e-13}

# One sequence, few numbers, few and many sequences, odd units.
SIZES = (
    {"N": 1, "H": 7},
    {"N": 2, "H": 4},
    {"N": 4, "H": 64, "I": 3},
    {"N": 3, "H": 128},
    {"N": 3, "H": 97},
    {"N": 30, "H": 12, "I": 5},
    {"N": 26, "H": 5, "I": 1},
)

FLAGS = {
    "RNN": ({},),
    "GRU": ({"linear_before_reset": 0}, {"linear_before_reset": 1}),
    "LSTM": (
        {},
        {"peepholes": True},
        {"input_forget": 1},
        {"input_forget": 1, "peepholes": True},
        PREVIOUS,
        {"input_forget": 1, **PREVIOUS},
    ),
}

EVERY_CELL = [(cell, flags) for cell, rows in FLAGS.items() for flags in rows]


@pytest.fixture(params=["stacked", "projected"])
def stages(request, monkeypatch):
    """Small recurrences on a stage of their own, or on that of all others."""
    vars(all_stages._CACHE).clear()
    if request.param == "projected":
        monkeypatch.setattr(tuning, "STACKED_PRODUCT", -1)
        monkeypatch.setattr(tuning, "STACKED_CALL", -1)
    yield request.param
    vars(all_stages._CACHE).clear()


BOTH_STAGES = pytest.mark.usefixtures("stages")


def by_the_book(recurrence, dtype):
    """The cells' own equations, step by step."""
    return evaluate(recurrence, NumPyEngine(np.dtype(dtype)))


def assert_agrees(recurrence, dtype=np.float64, tolerance=None):
    """Y and every last state."""
    found, wanted = evaluate_in_place(recurrence, np.dtype(dtype)), by_the_book(recurrence, dtype)
    tolerance = DTYPES[dtype] if tolerance is None else tolerance
    for values, right in zip((found.Y, *found.last), (wanted.Y, *wanted.last), strict=True):
        np.testing.assert_allclose(values, right, rtol=0, atol=tolerance)
    return found


@BOTH_STAGES
@every("dtype", DTYPES)
@every("sizes", SIZES, ids=str)
@every(("cell", "flags"), EVERY_CELL)
def test_every_layout_agrees(cell, flags, sizes, dtype):
    """Both directions, with all inputs."""
    given = {"T": 6, "I": 4, "D": 2, "scale": 0.3, **sizes, **flags}

    assert_agrees(recurrence_of(cell, dtype=np.dtype(dtype).name, **given), dtype)


@BOTH_STAGES
@every("sizes", SIZES, ids=str)
@every(("cell", "flags"), EVERY_CELL)
def test_ragged_batches_agree(cell, flags, sizes):
    """Padding is zero, every sequence starts and ends at its own time; the longest is not first."""
    lengths = np.random.default_rng(1).integers(0, 7, sizes["N"])
    lengths[-1] = 6
    given = {"T": 6, "D": 2, "scale": 0.3, "lengths": lengths, **sizes, **flags}

    found = assert_agrees(recurrence_of(cell, dtype="float64", **given))

    for n, length in enumerate(lengths):
        assert not found.Y[length:, :, n].any()


@BOTH_STAGES
@every("clip", [np.inf, 0.4])
@every("name", ACTIVATIONS)
@every("cell", CELLS)
def test_every_activation_agrees(cell, name, clip):
    """In every place that a cell has for one, clipped and not."""
    recurrence = recurrence_of(
        cell, dtype="float64", T=3, N=3, H=8, scale=0.3, activations=[name] * len(CELLS[cell])
    )

    for clip_hidden in (True, False):
        assert_agrees(replace(recurrence, clip=clip, clip_hidden=clip_hidden))


@BOTH_STAGES
@every("missing", [("Wb",), ("Rb",), ("Wb", "Rb")])
@every(("cell", "flags"), EVERY_CELL)
def test_biases_may_be_missing(cell, flags, missing):
    """Each by itself, and the initial states as well."""
    recurrence = recurrence_of(cell, dtype="float64", N=3, H=8, **flags)
    recurrence = replace(recurrence, initial=tuple(None for _ in recurrence.initial))

    assert_agrees(replace(recurrence, **dict.fromkeys(missing)))


@BOTH_STAGES
@every("sizes", SIZES, ids=str)
@every("cell", CELLS)
def test_blocks_meet_without_a_seam(cell, sizes, monkeypatch):
    """Two steps at a time: the states go from block to block, the last one shorter."""
    recurrence = recurrence_of(cell, dtype="float64", T=7, D=2, scale=0.3, **sizes)
    monkeypatch.setattr(tuning, "BLOCK_NUMBERS", 2 * sizes["N"] * recurrence.W[0, ..., 0].size)
    monkeypatch.setattr(tuning, "BLOCK_COLUMNS", 2 * sizes["N"])
    monkeypatch.setattr(tuning, "STACKED_NUMBERS", 1)
    monkeypatch.setattr(tuning, "MOST_OF_ONE", 0)  # nothing from before

    assert_agrees(recurrence)


@BOTH_STAGES
@pytest.mark.parametrize("N", [1, 3, 30])
@pytest.mark.parametrize("cell", CELLS)
def test_results_are_nobody_elses_memory(cell, N):
    """A second evaluation, in the memory of the first, leaves the results of the first alone."""
    one, other = (
        recurrence_of(cell, dtype="float64", N=N, H=8, scale=0.3, seed=seed) for seed in (1, 2)
    )
    found = evaluate_in_place(one, np.dtype(np.float64))
    before = [values.copy() for values in (found.Y, *found.last)]

    evaluate_in_place(other, np.dtype(np.float64))

    for values, copy in zip((found.Y, *found.last), before, strict=True):
        np.testing.assert_array_equal(values, copy)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_an_exponential_overflows_the_book_is_opened(cell, dtype, sign, stages):
    """That of x where there are factors, of -x where there are divisors."""
    recurrence = recurrence_of(cell, dtype=dtype, N=3, H=8)
    recurrence = replace(recurrence, Wb=np.full_like(recurrence.Wb, sign * 1000))
    overflows = sign == (-1 if stages == "stacked" else 1)

    with pytest.raises(NotFiniteError) if overflows else nullcontext():
        evaluate_in_place(recurrence, np.dtype(dtype))
    found = NumPyBackend().run(recurrence, Compute.NATIVE)

    np.testing.assert_allclose(found.Y, by_the_book(recurrence, dtype).Y, rtol=1e-5)


@BOTH_STAGES
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_is_not_finite_is_the_books(cell, poison):
    """NaN and infinity come out as the equations have them."""
    recurrence = recurrence_of(cell, dtype="float64", N=3, H=8)
    recurrence.initial[0][0, 1] = poison

    found = NumPyBackend().run(recurrence, Compute.FLOAT64)

    np.testing.assert_array_equal(found.Y, by_the_book(recurrence, np.float64).Y)


@pytest.mark.parametrize("cell", CELLS)
def test_a_walk_ends_soon_after_the_first_nan(cell, monkeypatch):
    """At the end of its block, not of the recurrence; an infinite state may pass."""
    monkeypatch.setattr(tuning, "STACKED_PRODUCT", -1)
    monkeypatch.setattr(tuning, "BLOCK_COLUMNS", 60)
    monkeypatch.setattr(tuning, "BLOCK_NUMBERS", 1)
    checks = []
    monkeypatch.setattr(walk, "check_clock", lambda: checks.append(None))
    recurrence = recurrence_of(cell, dtype="float64", T=30, N=30, H=8)
    recurrence.X[3, 1, 0] = np.nan

    with pytest.raises(NotFiniteError):
        evaluate_in_place(recurrence, np.dtype(np.float64))

    assert len(checks) == 3  # of 15 blocks of two steps, the third is not begun


def test_other_equations_are_not_stepped_here():
    """A cell with another step is evaluated by that step, and that is known up front."""
    recurrence = recurrence_of("RNN", dtype="float64")
    other = replace(recurrence.cell, step=lambda _p, x, _states: (x[0] * 0 + 5,))

    recurrence = replace(recurrence, cell=other)
    assert not has_kernel(recurrence)
    found = NumPyBackend().run(recurrence, Compute.FLOAT64)
    assert (found.Y == 5).all()


def test_nothing_but_the_last_states():
    """Y is not made where nobody wants it."""
    recurrence = recurrence_of("LSTM", dtype="float64")
    with_Y = evaluate_in_place(recurrence, np.dtype(np.float64))
    without = evaluate_in_place(replace(recurrence, wants_Y=False), np.dtype(np.float64))

    assert without.Y is None
    for values, wanted in zip(without.last, with_Y.last, strict=True):
        np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize(
    ("active", "wanted"),
    [
        ([], []),
        ([0, 0], []),
        ([3, 3], [(0, 2, 3)]),
        ([3, 3, 2, 1, 1, 0], [(0, 2, 3), (2, 3, 2), (3, 5, 1)]),
    ],
)
def test_pieces_end_where_sequences_do(active, wanted):
    """What is padding alone belongs to none."""
    assert list(pieces(active)) == wanted


@BOTH_STAGES
@every("sizes", SIZES, ids=str)
@every(("cell", "flags"), EVERY_CELL)
def test_an_early_overflow_is_never_forgotten(cell, flags, sizes):
    """It is in the first step only, and R is zero: yet no NaN comes out, from any gate."""
    activations = ["Sigmoid"] * len(CELLS[cell])
    recurrence = recurrence_of(
        cell, dtype="float32", T=4, scale=0.3, activations=activations, **sizes, **flags
    )
    for gate in range(recurrence.W.shape[1]):
        W, X = recurrence.W.copy(), recurrence.X.copy()
        W[:, gate], X[0] = 1000, 1
        large = replace(recurrence, W=W, X=X, R=np.zeros_like(recurrence.R))

        found = NumPyBackend().run(large, Compute.NATIVE)

        np.testing.assert_allclose(found.Y, by_the_book(large, np.float32).Y, rtol=1e-5)


F64 = np.dtype(np.float64)


@pytest.fixture
def eager(monkeypatch):
    """Let any work be shared, whatever the machine."""
    monkeypatch.setattr(tuning, "SHARED_WORK", 0)
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    return monkeypatch


@every("count", ["2", "3", "9"])
@every("given", [{}, {"D": 2}, {"lengths": [2, 5, 0, 1, 5]}], ids=str)
@every("cell", ["RNN", "GRU", "LSTM"])
def test_threads_agree_with_one(cell, given, count, eager):
    """Every sequence and direction is somebody's."""
    recurrence = recurrence_of(cell, dtype="float64", T=5, N=5, H=8, scale=0.3, **given)
    alone = evaluate_in_place(recurrence, F64)
    eager.setenv("RNNCLI_THREADS", count)

    together = evaluate_in_place(recurrence, F64)

    for one, other in zip((alone.Y, *alone.last), (together.Y, *together.last), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


def test_a_share_that_is_not_finite_is_seen(eager):
    """The textbook's way is then taken for all."""
    eager.setenv("RNNCLI_THREADS", "2")
    recurrence = recurrence_of("LSTM", dtype="float64", N=4)
    recurrence.initial[0][0, 3] = np.nan

    with pytest.raises(NotFiniteError):
        evaluate_in_place(recurrence, F64)


def test_small_work_is_not_shared(monkeypatch):
    """Threads cost more than they give."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")
    recurrence = recurrence_of("GRU")

    assert shares(recurrence, F64) == [slice(0, None, 1)]
    assert share_of(recurrence, slice(0, None, 1)) is recurrence


@pytest.mark.parametrize(
    ("given", "wanted"), [({"N": 5}, 3), ({"N": 2}, 2), ({"N": 5, "D": 2}, 1), ({"N": 1}, 1)]
)
def test_shares_are_no_more_than_threads_or_sequences(given, wanted, eager):
    """A direction each comes first."""
    eager.setenv("RNNCLI_THREADS", "3")

    found = shares(recurrence_of("GRU", **given), F64)

    assert len(found) == wanted
    taken = sorted(n for rows in found for n in range(given["N"])[rows])
    assert taken == list(range(given["N"]))


@pytest.mark.parametrize(("threads", "N", "wanted"), [("1", 64, 2), ("2", 64, 2), ("2", 128, 4)])
def test_wide_batches_are_shared_by_one_thread(threads, N, wanted, eager):
    """Each share is as wide as is multiplied at full speed; what comes out is the same."""
    eager.setenv("RNNCLI_THREADS", threads)
    recurrence = recurrence_of("GRU", dtype="float64", N=N, H=8, scale=0.3)

    assert len(shares(recurrence, F64)) == wanted
    found = evaluate_in_place(recurrence, F64)
    eager.setattr(tuning, "SHARED_WORK", 1 << 60)
    np.testing.assert_allclose(found.Y, evaluate_in_place(recurrence, F64).Y, rtol=0, atol=1e-14)


def test_an_empty_batch_is_one_share(eager):
    """Of nothing."""
    eager.setenv("RNNCLI_THREADS", "2")
    recurrence = recurrence_of("RNN", N=3)
    nobody = replace(recurrence, X=recurrence.X[:, :0], initial=(None,))

    assert len(shares(nobody, F64)) == 1
    assert evaluate_in_place(nobody, F64).Y.shape == (4, 1, 0, 5)
