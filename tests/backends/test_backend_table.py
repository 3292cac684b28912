"""The table of backends, and a backend from another package."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rnncli.backends import backend_named, known_backends
from rnncli.errors import InvalidRequest

# A whole package: negates what NumPy computes, and refuses what it does not know.
MODULE = """
from dataclasses import replace

from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.recurrence.recurrence import Result


class Negative:
    name = "negative"
    summary = "the opposite of right"

    def supports(self, recurrence, compute):
        return "has no LSTM" if recurrence.cell.name == "LSTM" else None

    def run(self, recurrence, compute):
        right = NumPyBackend().run(recurrence, compute)
        return Result(-right.Y, tuple(-state for state in right.last))
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """What pip leaves of a package with entry points, on the path of new processes."""
    (tmp_path / "negative_backend.py").write_text(MODULE)
    info = tmp_path / "negative_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: negative-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[rnncli.backends]\n"
        "negative = negative_backend:Negative\n"
        "numpy = negative_backend:Negative\n"
        "broken = not_there:Backend\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    def call(*arguments):
        command = [sys.executable, "-m", "rnncli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return call


def rows(done):
    """The outputs of the one run of a `--json` call, by name."""
    (run,) = json.loads(done.stdout)["runs"]
    return {output["name"]: output for output in run["outputs"]}


def test_third_party_backend_evaluates(installed):
    """An installed package's backend is listed and used by name."""
    right = rows(installed("run", "gru_7", "--json"))
    opposite = rows(installed("run", "gru_7", "--json", "--backend", "negative"))

    assert "negative\tthe opposite of right" in installed("backends").stdout
    assert {name: row["mean"] for name, row in opposite.items()} == {
        name: -row["mean"] for name, row in right.items()
    }


def test_third_party_backend_refuses_in_its_own_words(installed):
    """What it does not support is exit 3, with its reason and where to look."""
    done = installed("run", "lstm_14", "--backend", "negative")

    assert done.returncode == 3
    assert "LSTM-14: backend 'negative' has no LSTM" in done.stderr


def test_built_in_rows_cannot_be_replaced(installed):
    """The same package also calls its backend `numpy`; ours stays."""
    listed = installed("backends").stdout

    assert "rnncli.backends.in_place.walk:NumPyBackend" in listed
    assert "numpy\tthe opposite of right" not in listed


def test_backend_that_does_not_import_is_said(installed):
    """Exit 3 when asked for; listed with the reason."""
    done = installed("run", "gru_7", "--backend", "broken")

    assert done.returncode == 3
    assert "backend 'broken' does not import: No module named 'not_there'" in done.stderr
    assert "broken\tunusable: " in installed("backends").stdout


@pytest.mark.parametrize("name", known_backends())
def test_rows_name_what_they_point_to(name):
    """A backend's own name is that of its row."""
    assert backend_named(name).name == name
    assert backend_named(name).summary


def test_unknown_backend_lists_the_known():
    """With a suggestion for a slip."""
    with pytest.raises(
        InvalidRequest, match=r"did you mean 'numpy'\? \(installed: reference, numpy"
    ):
        backend_named("nunpy")
