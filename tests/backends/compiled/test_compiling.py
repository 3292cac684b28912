"""Code is compiled once, whoever asks, and found again by later processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rnncli import notes
from rnncli.backends.compiled import compiling

SENTENCE = "compiling kernels for this processor: some seconds each, once"


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


class Recorded:
    """A function of Numba's that is compiled when it is asked to."""

    py_func = compiling.kernel

    def compile(self, signature):
        """Return what was asked for."""
        return signature


def test_a_library_says_nothing(monkeypatch, capsys):
    """Whoever listens is told of the first function only."""
    monkeypatch.setattr(compiling, "MADE", [])
    assert compiling.made(Recorded(), 1) == 1
    assert capsys.readouterr() == ("", "")

    heard = []
    monkeypatch.setattr(compiling, "MADE", [])
    monkeypatch.setattr(notes, "LISTENERS", [heard.append])
    for signature in (2, 3):
        assert compiling.made(Recorded(), signature) == signature
    assert heard == [SENTENCE]


@pytest.mark.parametrize("module", ["scipy.linalg", "numba.np.arraymath"])
def test_what_only_compiling_needs_is_not_imported(module, tmp_path):
    """Once the kernels are there."""
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from rnncli.operators import evaluate\n"
        "shapes = {'X': (1, 1, 1), 'W': (1, 1, 1), 'R': (1, 1, 1)}\n"
        "inputs = {name: np.ones(shape, 'f4') for name, shape in shapes.items()}\n"
        "evaluate('RNN-14', inputs, attributes={'hidden_size': 1}, backend='numba')\n"
        f"sys.exit({module!r} in sys.modules)"
    )
    for expected in (None, 0):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert expected in (None, done.returncode), done.stderr
