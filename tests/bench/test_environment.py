"""Claims about the environment of what is measured."""

import os

from rnncli.bench import machine as module
from rnncli.bench.machine import DROPPED, THREADS, environment, facts, notes, surroundings


def test_what_makes_blas_slow_is_dropped(monkeypatch):
    """In what is measured; here it stays, and is told."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")

    assert not {*DROPPED} & {*environment(1)}
    assert os.environ["OPENBLAS_CORETYPE"] == "Haswell"
    assert surroundings()["OPENBLAS_CORETYPE"] == "Haswell"
    assert "OPENBLAS_CORETYPE=Haswell is set: dropped for the measured processes" in notes()


def test_every_library_is_told_the_number_of_threads(monkeypatch):
    """Whatever the variables said before."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    made = environment(3)

    assert {made[name] for name in THREADS} == {"3"}
    assert {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RNNCLI_THREADS"} <= {*THREADS}


def test_the_machine_is_told():
    """Enough to know whether two runs can be compared."""
    assert {"processor", "cores", "system", "python", "numpy"} <= {*facts()}
    assert all(facts().values())


def test_a_busy_machine_is_told(monkeypatch):
    """Its ratios are worth less."""
    monkeypatch.setattr(module, "load", lambda: 0.0)
    assert not any("busy" in note for note in notes())

    monkeypatch.setattr(module, "load", lambda: 1.5 * module.cores())
    assert any("other processes keep the machine busy" in note for note in notes())
