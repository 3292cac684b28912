"""What the documentation promises of a new row: nothing else has to be written.

The package is copied, an activation, a cell and an operator are added where the pages say, and
the commands are run on them.
"""

from __future__ import annotations

import os
import re
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
# The minimal gated unit of Zhou et al., 2016: https://arxiv.org/abs/1603.09420.
STEP = '''
def mgu_step(p: Parameters, x: Value, states: States) -> States:
    """Advance a minimal gated unit by one time step.

    ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Wbf + Rbf)
    ht = g(Xt*(Wh^T) + (ft (.) Ht-1)*(Rh^T) + Wbh + Rbh)
    Ht = (1 - ft) (.) Ht-1 + ft (.) ht
    """
    (H,) = states
    (f,) = p.f(x[:1] + p.R(H, slice(0, 1)))
    h = p.g(x[1] + p.R(f * H, slice(1, 2))[0])
    return (p.blend(f, H, h),)
'''
CELL = """
        Cell(
            "MGU",
            gates="fh",
            states=1,
            activations="fg",
            defaults=("Sigmoid", "Tanh"),
            step=mgu_step,
        ),
    )
}
"""
ROW = """
MGU = replace(
    _RNN_14,
    type="MGU",
    domain="org.example",
    cell=CELLS["MGU"],
    gates="fh",
    inputs=_inputs(2),
    attributes={
        **_RNN_14.attributes,
        "activations": _activations("two activations, f (gate) and g (hidden),"),
    },
    default_activations=CELLS["MGU"].defaults,
    spare_activation=False,
)
ROWS = (
    MGU,
"""
# Where each goes: module -> [(what stands there, what is put before or in its place)].
ADDED = {
    "recurrence/activations.py": [("\n)\nACTIVATIONS: ", f"{SWISH}ACTIVATIONS: ")],
    "recurrence/cells.py": [
        ("\n\n@dataclass(frozen=True, slots=True)\nclass Cell:", None),
        ("\n    )\n}\n", CELL),
    ],
    "operators/onnx_rows.py": [("\nROWS = (\n", ROW)],
}
SWISH_SUITE = """\
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
SWISH_CONFIG = """\
op: RNN-22
sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
attributes: {activations: [swish], activation_alpha: [1.5]}
"""
MGU_SUITE = """\
suite: mgu
summary: Minimal gated units.
seed: 3
golden: certified
score: true
defaults:
  op: MGU-14
  sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
  inputs: {B: uniform, sequence_lens: lengths, initial_h: uniform}
cases:
  plain: {}
  both: {attributes: {direction: bidirectional, clip: 0.8}}
  rectified: {attributes: {activations: [HardSigmoid, Relu]}}
"""
MGU_CONFIG = """\
op: MGU-14
sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
inputs: {B: uniform, initial_h: uniform}
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A function that runs a command of the package with one more activation and one more cell."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("rnncli", "specs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for module, places in ADDED.items():
        file = folder / "rnncli" / module
        text = file.read_text(encoding="utf-8")
        for place, added in places:
            assert text.count(place) == 1
            text = text.replace(place, added or f"\n{STEP}{place}")
        file.write_text(text, encoding="utf-8")
    files = {
        "swish": SWISH_SUITE,
        "swish_rnn": SWISH_CONFIG,
        "mgu": MGU_SUITE,
        "mgu_14": MGU_CONFIG,
    }
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "kept"),
        "PYTHONDONTWRITEBYTECODE": "",  # each module is compiled by the first command alone
    }

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

    return run


@pytest.fixture(scope="module")
def packs(extended):
    """The same, after both packs were made, with goldens and signals that are proved."""
    for suite in ("swish", "mgu"):
        code, _, err = extended("generate", f"{suite}.yaml", "-o", suite, "--steps")
        assert code == 0, err
    return extended


def test_a_new_activation_is_documented(extended):
    """With its formula and default."""
    code, out, _ = extended("ops", "LSTM-14")

    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["Swish", "x*Sigmoid(alpha*x)", "alpha", "1"] in rows


def test_a_new_cell_is_documented(extended):
    """With its equations and inputs."""
    code, out, _ = extended("ops", "MGU-14")

    assert code == 0
    assert "Ht = (1 - ft) (.) Ht-1 + ft (.) ht" in out
    assert ["W", "[D,", "2*H,", "I]"] in [line.split()[:4] for line in out.splitlines()]


EVALUATED = [
    ("swish_rnn", "reference"),
    ("swish_rnn", "numpy"),
    ("swish_rnn", "numba"),
    ("mgu_14", "reference"),
    ("mgu_14", "numpy"),  # without a kernel of its own
]


@pytest.fixture(scope="module")
def proved(extended):
    """The same, after the certified backend has run both configs."""
    for config in ("swish_rnn", "mgu_14"):
        options = ("--backend", "certified", "-o", f"{config}.certified.npz")
        assert extended("run", f"{config}.yaml", *options)[0] == 0
    return extended


@pytest.mark.parametrize(("config", "backend"), EVALUATED)
def test_what_is_new_is_evaluated(proved, config, backend):
    """As the certified backend proves it, which runs the same row over balls."""
    options = ("--backend", backend, "-o", f"{config}.{backend}.npz")
    assert proved("run", f"{config}.yaml", *options)[0] == 0

    wanted = f"{config}.certified.npz"
    assert proved("compare", f"{config}.{backend}.npz", wanted, "--max-ulp", "0")[0] == 0


def test_numba_says_that_it_has_no_kernel_for_a_new_cell(extended):
    """Its kernels are laid out by hand."""
    code, _, err = extended("run", "mgu_14.yaml", "--backend", "numba")

    assert code == 3
    assert "backend 'numba' has no kernel for the MGU" in err


def test_signals_of_a_new_cell_are_stored(packs):
    """They have the names of its gates."""
    code, out, err = packs("inspect", "mgu::mgu_14_plain")

    assert code == 0, err
    assert "steps: [pre_f, gate_f, pre_h, gate_h, state_H]" in out.splitlines()


@pytest.mark.parametrize("compute", ["float64", "native"])
@pytest.mark.parametrize("backend", ["reference", "numpy"])
@pytest.mark.parametrize("pack", ["swish", "mgu"])
def test_what_is_new_is_judged(packs, pack, backend, compute):
    """By goldens that are proved and tolerances that are derived."""
    code, _, err = packs("verify", pack, "--backend", backend, "--compute", compute)

    assert (code, "3 pass. None fails" in err) == (0, True), err


@pytest.mark.parametrize(
    ("pack", "mutant"),
    [
        ("swish", "activations-ignored"),
        ("mgu", "recurrent-weights-transposed"),
        ("mgu", "activations-f-g-swapped"),
    ],
)
def test_bugs_are_named_in_what_is_new(packs, pack, mutant):
    """By both commands, and by the same name."""
    code, out, err = packs("diagnose", pack, "--backend", f"mutant:{mutant}")
    assert code == 1, err
    assert {line.split("\t")[1] for line in out.splitlines()[1:]} == {mutant}

    code, out, err = packs("verify", pack, "--backend", f"mutant:{mutant}")
    assert code == 1, err
    assert mutant in out + err


@pytest.mark.parametrize("pack", ["swish", "mgu"])
def test_a_pack_of_what_is_new_is_scored(packs, pack):
    """Mutants of every cell are mutants of a new one."""
    code, _, err = packs("score", pack)

    assert code == 0
    killed, all_of_them = re.search(r"(\d+) of (\d+) mutants are killed by 3 vectors", err).groups()
    assert int(killed) > 100
    assert int(all_of_them) > 140


def test_a_model_with_a_new_operator_is_run(packs):
    """As the pack holds it, in the operator's domain."""
    code, out, err = packs("run", "mgu/test_mgu_14_plain/model.onnx")

    assert code == 0, err
    assert "Y_h" in out


@pytest.mark.parametrize("config", ["swish_rnn", "mgu_14"])
def test_what_is_new_is_measured(extended, config):
    """Against the reference."""
    options = ("--backend", "numpy,reference", "--rounds", "1", "--vs", "")

    assert extended("bench", f"{config}.yaml", *options)[0] == 0
