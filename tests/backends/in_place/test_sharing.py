"""Threads share directions and sequences, and change no number that matters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from recurrences import recurrence_of

from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.sharing import _openblas, at_once, one_blas_thread, share_of, shares
from rnncli.backends.in_place.stage import NotFiniteError
from rnncli.backends.in_place.walk import evaluate_in_place

F64 = np.dtype(np.float64)


@pytest.fixture
def eager(monkeypatch):
    """Let any work be shared, whatever the machine."""
    monkeypatch.setattr(tuning, "SHARED_WORK", 0)
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 9)
    return monkeypatch


@pytest.mark.parametrize("count", ["2", "3", "9"])
@pytest.mark.parametrize("given", [{}, {"D": 2}, {"lengths": [2, 5, 0, 1, 5]}], ids=str)
@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
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


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
def test_every_task_is_run_once(threads, monkeypatch):
    """By as many threads as there are, whatever the number of tasks."""
    monkeypatch.setenv("RNNCLI_THREADS", threads)
    for count in range(6):
        done = []
        at_once([partial(done.append, k) for k in range(count)])
        assert sorted(done) == list(range(count))


def test_an_empty_batch_is_one_share(eager):
    """Of nothing."""
    eager.setenv("RNNCLI_THREADS", "2")
    recurrence = recurrence_of("RNN", N=3)
    nobody = replace(recurrence, X=recurrence.X[:, :0], initial=(None,))

    assert len(shares(nobody, F64)) == 1
    assert evaluate_in_place(nobody, F64).Y.shape == (4, 1, 0, 5)


def test_failures_in_threads_are_not_lost(monkeypatch):
    """What a task raises comes out, and the crew is free again."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")

    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            at_once([lambda: None, fail])


def test_blas_has_its_threads_back():
    """One inside, as many as before outside, after a failure as well."""
    if _openblas() is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    get, _ = _openblas()
    before = get()

    def fail():
        with one_blas_thread():
            assert get() == 1
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert get() == before
