"""Code is compiled once, whoever asks, and found again by later processes."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import getclosurevars

import pytest

from rnncli.backends.compiled import compiling
from rnncli.backends.compiled.kernel_plan import weights_locator
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.kernels import scan_kernel
from rnncli.talk import terminal

SENTENCE = "compiling kernels for this processor (once, a few seconds each)"


def test_a_command_says_when_it_compiles(tmp_path):
    """Once; not when another process has compiled before."""
    command = [sys.executable, "-m", "rnncli", "run", "rnn_14", "--backend", "numba"]
    said = []
    for _ in range(2):
        done = subprocess.run(
            command,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        said.append(done.stderr.count(SENTENCE))

    assert said == [1, 0]


def nothing():
    """Be compiled in no time."""


AT_ONCE = """
from rnncli.backends.compiled import compiling
def nothing():
    pass
for number in range(20):
    compiling.kernel(f"at_once_{number}")(nothing)
print(*compiling.MADE)
"""


def test_processes_that_start_together_compile_once(tmp_path):
    """Each function is compiled by one of them, and loaded by the others."""
    (tmp_path / "program.py").write_text(AT_ONCE)
    started = [
        subprocess.Popen(
            [sys.executable, tmp_path / "program.py"],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    made = [name for process in started for name in process.communicate()[0].split()]

    assert sorted(made) == sorted(f"at_once_{number}" for number in range(20))
    assert not [*tmp_path.rglob("*.lock")]


def test_a_library_says_nothing(monkeypatch, capsys, tmp_path):
    """Whoever listens is told of the first function only."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "MADE", [])
    monkeypatch.setattr(terminal, "LISTENERS", [])  # a command of this process left its own
    compiling.kernel(f"first {tmp_path}")(nothing)
    assert len(compiling.MADE) == 1
    assert capsys.readouterr() == ("", "")

    heard = []
    monkeypatch.setattr(compiling, "MADE", [])
    monkeypatch.setattr(terminal, "LISTENERS", [heard.append])
    for name in ("second", "third"):
        compiling.kernel(f"{name} {tmp_path}")(nothing)
    assert len(compiling.MADE) == 2
    assert heard == [SENTENCE]


@pytest.mark.parametrize(
    "make",
    [
        lambda: weights_locator.__wrapped__("float32"),
        lambda: scan_kernel.__wrapped__(Shape("RNN", True, "float32", 256, 16).code),
    ],
    ids=["locate", "scan"],
)
def test_kept_code_is_of_these_very_sources(make, monkeypatch):
    """Code of others wrote to where the fields of a KernelPlan had been."""
    kept = []
    monkeypatch.setattr(compiling, "compile_cached", lambda function, *_: kept.append(function))
    make()

    assert compiling.sources() in getclosurevars(kept[0]).nonlocals.values()
