"""What the README promises of a new row: nothing else has to be written.

The package is copied, a row is added where the README says, and the commands are run on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Its own derivative, and a bound of its second one: |alpha|*e^-|alpha x| (2 + |alpha x|).
SWISH = """
    Activation(
        "Swish",
        "x*Sigmoid(alpha*x)",
        lambda math, x, alpha, _: x * math.sigmoid(alpha * x),
        Sensitivity(
            derivative=lambda x, _, a, __: (
                (s := NumPyArithmetic.sigmoid(a * x)) * (1 + a * x * (1 - s))
            ),
            curvature=lambda r, a, _: abs(a)
            * np.minimum(0.5, np.exp(-abs(a) * r) * (2 + abs(a) * r)),
        ),
        alpha=1.0,
    ),
)
"""
SUITE = """\
suite: swish
summary: Swish in every cell.
seed: 3
golden: certified
score: true
defaults:
  sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
  inputs: {B: uniform, sequence_lens: lengths}
cases:
  rnn: {op: RNN-14, attributes: {activations: [Swish]}}
  gru: {op: GRU-14, attributes: {activations: [Sigmoid, Swish], activation_alpha: [0.5]}}
  lstm: {op: LSTM-14, attributes: {activations: [Swish, Swish, Tanh]}}
"""
CONFIG = """\
op: RNN-22
sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
attributes: {activations: [swish], activation_alpha: [1.5]}
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A function that runs a command of the package with one more activation."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("rnncli", "specs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    table = folder / "rnncli" / "recurrence" / "activations.py"
    before, end, after = table.read_text(encoding="utf-8").partition("\n)\nACTIVATIONS: ")
    assert end
    table.write_text(f"{before}{SWISH}ACTIVATIONS: {after}", encoding="utf-8")
    (folder / "swish.yaml").write_text(SUITE)
    (folder / "config.yaml").write_text(CONFIG)
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kept")}

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "rnncli", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    assert run("generate", "swish.yaml", "-o", "pack")[0] == 0
    return run


def test_a_new_activation_is_documented(extended):
    """With its formula and default."""
    code, out, _ = extended("ops", "LSTM-14")

    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["Swish", "x*Sigmoid(alpha*x)", "alpha", "1"] in rows


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_new_activation_is_evaluated(extended, backend):
    """As the certified backend proves it, which runs the same row over balls."""
    for name in (backend, "certified"):
        assert extended("run", "config.yaml", "--backend", name, "-o", f"{name}.npz")[0] == 0

    assert extended("compare", f"{backend}.npz", "certified.npz", "--max-ulp", "0")[0] == 0


@pytest.mark.parametrize("compute", ["float64", "native"])
@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_a_new_activation_is_judged(extended, backend, compute):
    """By goldens that are proved and tolerances that are derived."""
    code, _, err = extended("verify", "pack", "--backend", backend, "--compute", compute)

    assert (code, "3 pass. None fails" in err) == (0, True), err


def test_bugs_are_seen_and_named_with_a_new_activation(extended):
    """Scored when the pack was made; one that differs is named."""
    code, out, _ = extended("diagnose", "pack", "--backend", "mutant:activations-ignored")

    assert code == 1
    assert {line.split("\t")[1] for line in out.splitlines()[1:]} == {"activations-ignored"}
    assert " mutants are killed by 3 vectors" in extended("score", "pack")[2]


def test_a_new_activation_is_measured(extended):
    """Against the reference."""
    options = ("--backend", "numpy,reference", "--rounds", "1")

    assert extended("bench", "config.yaml", *options)[0] == 0
