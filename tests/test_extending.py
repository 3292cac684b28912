"""What the documentation promises of a new row: nothing else has to be written.

The package is copied, everything in `additions` is added where the pages say, and the commands are
run on it.
"""

import json
import os
import re
import subprocess
import sys

import click
import pytest
from support.additions import ADDITIONS, added_to
from support.sampling import ELSEWHERE

from rnncli.cli.group import cli

# The most files that an addition may touch, its test among them.
MOST_FILES = 6
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
GRU_SUITE = """\
suite: gru
summary: What the update gate of a GRU multiplies.
seed: 3
golden: certified
score: true
defaults:
  op: GRU-14
  sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
cases:
  keeps: {inputs: {B: uniform}}
  renews: {readings: {update-gate: renews}, inputs: {initial_h: uniform}}
"""
GRU_CONFIG = """\
op: GRU-14
sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
readings: {update-gate: renews}
"""
PLAIN_SUITE = """\
suite: plain
summary: The operator of another dialect.
seed: 3
golden: certified
score: true
defaults:
  op: plain.gru
  sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
cases:
  on: {inputs: {bias: uniform}}
  back: {attributes: {way: back}, inputs: {bias: uniform, initial: uniform}}
"""
PLAIN_CONFIG = """\
op: plain.gru
sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
inputs: {bias: uniform}
"""
FILES = {
    "swish": SWISH_SUITE,
    "swish_rnn": SWISH_CONFIG,
    "mgu": MGU_SUITE,
    "mgu_14": MGU_CONFIG,
    "gru": GRU_SUITE,
    "gru_renews": GRU_CONFIG,
    "plain": PLAIN_SUITE,
    "plain_gru": PLAIN_CONFIG,
}
# The command that asks for relations.
RELATE = "relate"
GRU_MODEL, PLAIN_MODEL = "gru/test_gru_14_renews/model.onnx", "plain/test_plain_gru_on/model.onnx"
# Addition -> what is asked of it in order: a command line, its exit code, and a word of its answer.
USES = {
    "reading": [
        ("ops GRU-14", 0, "update-gate=renews"),
        ("schema config", 0, "update-gate"),
        ("lint gru.yaml gru_renews.yaml", 0, ""),
        ("inspect gru_renews.yaml", 0, "update-gate: renews"),
        ("run gru_renews.yaml --backend certified -o proved.npz", 0, "gru_renews.yaml"),
        ("run gru_renews.yaml --backend numpy -o got.npz", 0, "gru_renews.yaml"),
        ("compare got.npz proved.npz --max-ulp 0", 0, "agrees"),
        ("run gru_renews.yaml --backend numba", 3, "has no kernel for the GRU with update_renews"),
        ("generate gru.yaml -o gru --steps", 0, "gru"),
        ("inspect gru::gru_14_keeps", 0, "update-gate=renews"),
        (f"run {GRU_MODEL} --reading update-gate=renews", 0, "Y_h"),
        (f"extract {GRU_MODEL} -o gru_extracted", 0, "gru_extracted"),
        ("convert gru gru_raw --format raw", 0, ""),
        ("verify gru_raw --backend numpy --compute native", 0, "2 pass. None fails"),
        ("verify gru --backend numba", 1, "has no kernel for the GRU with update_renews"),
        ("verify gru --runtime looped", 0, "as update-gate=keeps has it"),
        (f"{RELATE} gru --backend numpy", 0, "None fails"),
        ("score gru", 0, "is another reading"),
        ("trace gru gru.update.renews", 0, "gru_14_keeps"),
        ("diagnose gru --backend mutant:biases-dropped", 1, "biases-dropped"),
        ("bench gru_renews.yaml --backend numpy,reference --rounds 1 --vs=", 0, "gru_renews"),
    ],
    "option": [
        ("verify --help", 0, "--most-cases INTEGER Exit with 2 if more cases are selected."),
        ("verify gru --backend numpy --most-cases 1", 2, "--most-cases 1: more cases are selected"),
        (
            "verify gru --backend mutant:reset-halved --json --most-cases 2",
            1,
            "rnncli verify gru --backend mutant:reset-halved --most-cases 2",
        ),
    ],
    "option of a command alone": [("list gru.yaml --count", 0, "2")],
    "relation": [
        (f"{RELATE} gru --relation zeros-given --runtime looped", 0, "1 pass, 1 skipped"),
        (f"{RELATE} plain.yaml --relation zeros-given --backend numba", 0, "1 pass"),
    ],
    "runtime": [
        ("runtimes", 0, "from the package looped"),
        ("verify plain --runtime looped --json", 0, '"version": "7"'),
        ("diagnose plain --runtime looped", 0, "no case to compare"),
        ("bench plain_gru.yaml --vs looped --backend numpy --rounds 1", 0, "looped"),
    ],
    "dialect": [
        ("ops plain.gru", 0, "Plain"),
        ("lint plain.yaml plain_gru.yaml", 0, ""),
        ("inspect plain_gru.yaml", 0, "outputs: [steps, state]"),
        ("list plain.yaml", 0, "plain_gru_back"),
        ("run plain_gru.yaml --backend certified -o proved.npz", 0, "steps"),
        ("run plain_gru.yaml --backend numpy -o got.npz", 0, "steps"),
        ("compare got.npz proved.npz --max-ulp 0", 0, "agrees"),
        ("schema config", 0, "plain.gru"),
        ("generate plain.yaml -o plain --steps", 0, "plain"),
        (f"run {PLAIN_MODEL}", 0, "state"),
        (f"extract {PLAIN_MODEL} -o plain_extracted", 0, "plain_extracted"),
        ("convert plain plain_raw --format raw", 0, ""),
        ("verify plain_raw --backend numba", 0, "2 pass. None fails"),
        (f"{RELATE} plain --backend numpy", 0, "None fails"),
        ("diagnose plain --backend mutant:gates-z-r-swapped", 1, "gates-z-r-swapped"),
        ("score plain", 0, "mutants are killed by 2 vectors"),
        ("trace plain plain.gru.gates.order", 0, "plain_gru_on"),
        ("bench plain_gru.yaml --backend numpy,reference --rounds 1 --vs=", 0, "gru"),
    ],
    "statement": [
        ("trace --page", 0, "the product of what ft keeps of Ht-1"),
        ("trace mgu mgu.equations.h", 0, "mgu_14_plain"),
        ("inspect mgu::mgu_14_plain", 0, "mgu.equations.h"),
    ],
    "cell": [("mutants --cell MGU", 0, "recurrent-weights-transposed")],
    "bug": [
        ("mutants reset-halved", 0, "hidden = g(x[2] + reset / 2 * (product[2] + Rbh))"),
        ("score gru --json", 0, '"linear_before_reset", "vectors": 2, "mutants": 7'),
        ("diagnose gru --backend mutant:reset-halved", 1, "reset-halved"),
    ],
}
# What is added has no part in these commands.
APART = {
    "backends",
    "claims",
    "formats",
    "help",
    "probe",
    "release",
    "report",
    "site",
    "smoke",
    "stream",
}
# Runs the command of each line in one process: prints its exit code, output and messages, and the
# seconds of a processor so far.
DRIVER = """
import contextlib, io, json, os, sys
from rnncli.bench import workloads
from rnncli.cli import main

workloads.MOST_DATA = 2  # not the 32 by which errors are measured
for line in sys.stdin:
    sys.argv = ["rnncli", *json.loads(line)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    print(json.dumps((code, out.getvalue(), err.getvalue(), sum(os.times()[:4]))), flush=True)
"""
SECONDS = [0.0]  # of a processor, in the process of the commands
ELSEWHERE.append(lambda: SECONDS[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the package with all additions, and files that use them."""
    folder = tmp_path_factory.mktemp("extended")
    added_to(folder)
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def extended(folder):
    """A function that runs a command of the package with the additions."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "kept"),
        "PYTHONDONTWRITEBYTECODE": "",  # each module is compiled by the first process alone
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", DRIVER]
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as driver:

        def run(*arguments):
            driver.stdin.write(json.dumps(arguments) + "\n")
            driver.stdin.flush()
            *answer, SECONDS[0] = json.loads(driver.stdout.readline())
            return answer

        yield run
    SECONDS[0] = 0.0  # they are now among those of this process


@pytest.mark.parametrize("addition", ADDITIONS)
def test_an_addition_is_a_few_files(addition):
    """Its test is one more: nobody has to know more places than these."""
    assert len(ADDITIONS[addition]) + 1 <= MOST_FILES


@pytest.mark.parametrize("addition", [name for name in ADDITIONS if name.startswith("option")])
def test_an_option_is_described_in_one_file(addition):
    """Its flag, help, check, completion, variable, argument of Python and line to repeat."""
    assert len(ADDITIONS[addition]) == 1


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

    code, out, err = packs("verify", pack, "--backend", f"mutant:{mutant}", "-x")
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


def test_statements_of_a_new_operator_are_traced(packs):
    """Those of a file of their own, under a condition of their own."""
    code, out, err = packs("trace", "mgu")

    assert code == 0, err
    states = {row[0]: (row[1], row[2]) for row in map(str.split, out.splitlines()[1:])}
    assert states == {"mgu.equations.h": ("checked", "2"), "mgu.direction.refused": ("beyond", "0")}


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


@pytest.fixture(scope="module")
def answers(packs):
    """A function from a command line to its exit code, output and messages."""
    order = ("dialect", "reading", *(name for name in USES if name not in {"dialect", "reading"}))
    return {line: packs(*line.split()) for name in order for line, _, _ in USES[name]}.get


@pytest.mark.parametrize(
    ("line", "code", "said"), [use for uses in USES.values() for use in uses], ids=str
)
def test_a_command_takes_what_is_added(answers, line, code, said):
    """With the exit code and the words that anything built in would have."""
    got, out, err = answers(line)

    words = " ".join((out + err).split())
    assert (got, " ".join(said.split()) in words) == (code, True), out + err


def test_every_command_takes_something_that_is_added():
    """But those that it has no part in."""
    used = {line.split()[0] for uses in USES.values() for line, _, _ in uses}

    assert used == set(cli.list_commands(click.Context(cli))) - APART
