"""Claims about `rnncli smoke`, and about the sample harnesses of the documentation."""

import json
import shlex
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from click.testing import CliRunner
from support import documentation, hostile_harness

import rnncli
from rnncli.cli.group import cli
from rnncli.judging.comparing.verdict import Verdict

SAMPLES = documentation.ROOT / "docs/harnesses"
PACK = documentation.ROOT / "vectors/core"
HOSTILE = shlex.join([sys.executable, "-I", "-S", hostile_harness.__file__])
NAMES = ["start", "rnn_14", "gru_14", "lstm_14", "unsupported", "stop"]
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILERS = {
    "harness.c": ("cc", "-std=c99", *STRICT),
    "harness.cpp": ("c++", "-std=c++17", *STRICT),
    "harness.rs": ("rustc", "--edition", "2021", "-D", "warnings"),
}
CODE = (SAMPLES / "harness.py").read_text("utf-8")


def program(folder, code):
    """The command of a harness in Python."""
    (folder / "harness.py").write_text(code)
    return shlex.join([sys.executable, f"{folder}/harness.py"])


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """The commands of the sample harnesses."""
    folder = tmp_path_factory.mktemp("samples")
    commands = {"harness.py": program(folder, CODE)}
    if node := shutil.which("node"):
        commands["harness.mjs"] = shlex.join([node, f"{SAMPLES}/harness.mjs"])
    for name, (compiler, *flags) in COMPILERS.items():
        if shutil.which(compiler):
            commands[name] = f"{folder}/{compiler}"
            build = [compiler, *flags, "-o", commands[name], SAMPLES / name]
            subprocess.run([*build, *["-lm"] * (compiler == "cc")], check=True)
    return commands


@pytest.fixture(params=["harness.py", "harness.mjs", *COMPILERS])
def sample(samples, request):
    """The command of one sample harness."""
    if request.param not in samples:
        pytest.skip("no node or compiler")
    return samples[request.param]


def smoked(command):
    """The result of a smoke test: exit code, checks by name, what was said."""
    result = CliRunner().invoke(cli, ["smoke", "--json", "--harness", command, "--timeout", "120"])
    checks = [json.loads(line) for line in result.stdout.splitlines()]
    return result, {check["sent"]: (check["result"], check["sentence"]) for check in checks}


def test_a_sample_is_wired_right(sample):
    """It computes its operator, refuses the others and what nobody has, and stops."""
    result, checks = smoked(sample)

    assert result.exit_code == 0, result.output
    assert [*checks] == NAMES
    assert [found for found, _ in checks.values()] == ["ok", "ok", *["refused"] * 2, "ok", "ok"]
    assert checks["rnn_14"][1] == "Y, Y_h are right, in both calls"
    assert "wired right; it computed 1 of the tiny cases" in result.stderr


def test_a_sample_is_right_wherever_it_answers(sample):
    """On every RNN of the core pack, those with lengths and initial states among them."""
    report = rnncli.verify(
        PACK,
        rnncli.Implementation(harness=sample),
        cases=rnncli.Selected(select="rnn"),
        allow_refused=True,
    )

    assert report.passed
    verdicts = Counter(case.verdict for case in report.cases)
    assert verdicts == {Verdict.PASS: 14, Verdict.ACCEPTABLE: 1, Verdict.REFUSED: 45}


def test_what_probe_writes_of_a_sample_makes_its_run_green(sample, tmp_path):
    """Attributes that are written at their defaults are taken, so nothing left is refused."""
    written = CliRunner().invoke(
        cli, ["probe", "RNN", "--harness", sample, "-o", f"{tmp_path}/device.yaml"]
    )
    report = rnncli.verify(
        PACK,
        rnncli.Implementation(harness=sample),
        cases=rnncli.Selected(device=f"{tmp_path}/device.yaml"),
    )

    assert written.exit_code == 0, written.output
    verdicts = Counter(case.verdict for case in report.cases)
    assert verdicts == {Verdict.PASS: 14, Verdict.ACCEPTABLE: 1, Verdict.SKIPPED: 173}


def test_a_sample_refuses_units(sample):
    """Integers are not read as floats."""
    report = rnncli.verify(
        documentation.ROOT / "vectors/units",
        rnncli.Implementation(harness=sample),
        cases=rnncli.Selected(select="rnn"),
        allow_refused=True,
    )

    assert {case.verdict for case in report.cases} == {Verdict.REFUSED}


def test_a_broken_sample_is_found(tmp_path):
    """A sign in the kernel, a state kept from call to call, a refusal left out."""
    changes = {
        "rnn_14": ("h @ R[0].T +", "-h @ R[0].T +", "expected "),
        "unsupported": ('{"hidden_size",', '{"hidden_size", "activations",', "computed Y, Y_h"),
        "stop": ('== "stop":\n        break', '== "stop":\n        sys.exit(4)', "exit code 4"),
    }
    for check, (old, new, sentence) in changes.items():
        assert old in CODE
        result, checks = smoked(program(tmp_path, CODE.replace(old, new)))
        assert result.exit_code == 1
        assert {name for name, found in checks.items() if found[0] == "FAILED"} == {check}
        assert sentence in checks[check][1]


def test_what_is_wrong_is_said(tmp_path):
    """What was computed, and what was expected."""
    result, checks = smoked(HOSTILE)

    assert result.exit_code == 1
    assert "4 checks of 6 failed" in result.stderr
    assert checks["start"] == ("ok", "hostile 6.66 (Python), protocol 1")
    assert "Y: shape is [2, 3], wanted [3, 1, 2, 3]" in checks["rnn_14"][1]
    assert 'expected {"seq": ..., "skipped": true' in checks["unsupported"][1]


def test_refusing_everything_shows_nothing(tmp_path):
    """Exit code 5, as for a pack of which nothing is answered."""
    result, checks = smoked(program(tmp_path, CODE.replace("RNN-", "XYZ-")))

    assert result.exit_code == 5
    assert {found for found, _ in checks.values()} == {"ok", "refused"}


LSTM_OF_WEBNN = """
    if case["operator"] != "webnn.lstm" or "activations" in case["attributes"]:
        raise NotImplementedError("only webnn.lstm")
    X, W, R = (tensors[name] for name in ("input", "weight", "recurrentWeight"))
    h = c = np.zeros((X.shape[1], R.shape[2]))
    for x in X:
        i, o, f, g = np.split(x @ W[0].T + h @ R[0].T, 4, axis=1)
        i, o, f = (1 / (1 + np.exp(-each)) for each in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    return {"outputHidden": h[None], "outputCell": c[None]}
"""
RNN_OF_OPENVINO = """
    if case["operator"] != "RNNSequence-5" or "activations" in case["attributes"]:
        raise NotImplementedError("only RNNSequence-5")
    X, h, W, R, B = (tensors[name] for name in ("X", "H", "W", "R", "B"))
    h, states = h[:, 0], []
    for t, x in enumerate(X.swapaxes(0, 1)):
        live = (t < tensors["sequence_lengths"])[:, None]
        h = np.where(live, np.tanh(x @ W[0].T + h @ R[0].T + B[0]), h)
        states.append(np.where(live, h, 0))
    return {"Y": np.stack(states, axis=1)[:, None], "Ho": h[:, None]}
"""
# A linear attention by its default update rule, gated_delta.
LINEAR_ATTENTION = """
    attributes = case["attributes"]
    if case["operator"] != "OPERATOR" or "update_rule" in attributes:
        raise NotImplementedError("only OPERATOR")
    heads, groups = attributes["q_num_heads"], attributes["kv_num_heads"]
    N, T, _ = tensors["query"].shape
    read = {name: values.reshape(N, T, groups, -1) for name, values in tensors.items()}
    q = tensors["query"].reshape(N, T, groups, heads // groups, -1)
    state = np.zeros((N, groups, q.shape[-1], read["value"].shape[-1]))
    output = []
    for t in range(T):
        k, v, decay, beta = (read[name][:, t] for name in ("key", "value", "decay", "beta"))
        state = np.exp(decay)[..., None] * state
        correction = beta * (v - np.einsum("nhkv,nhk->nhv", state, k))
        state = state + k[..., None] * correction[..., None, :]
        output.append(np.einsum("nhgk,nhkv->nhgv", q[:, t], state) / np.sqrt(q.shape[-1]))
    return {"output": np.stack(output, axis=1).reshape(N, T, -1), "present_state": state}
"""
WEBNN, OPENVINO = ["webnn_gru", "webnn_lstm"], ["rnnsequence_5", "grusequence_5", "lstmsequence_5"]
LINEAR = ["linearattention_27", "causalconvwithstate_27"]
CONTRIB = ["com_microsoft_linearattention", "com_microsoft_causalconvwithstate"]


def with_kernel(kernel):
    """The sample in Python, with another body of `run`."""
    before, _, rest = CODE.partition("def run(case, tensors):\n")
    return f"{before}def run(case, tensors):{kernel}\n\ndef answer{rest.partition('def answer')[2]}"


@pytest.mark.parametrize(
    ("kernel", "case", "names"),
    [
        (LSTM_OF_WEBNN, "webnn_lstm", [*NAMES[:4], *WEBNN, *NAMES[4:]]),
        (RNN_OF_OPENVINO, "rnnsequence_5", [*NAMES[:4], *WEBNN, *OPENVINO, *NAMES[4:]]),
        (
            LINEAR_ATTENTION.replace("OPERATOR", "LinearAttention-27"),
            "linearattention_27",
            [*NAMES[:4], *WEBNN, *OPENVINO, *LINEAR, *NAMES[4:]],
        ),
        (
            LINEAR_ATTENTION.replace("OPERATOR", "com.microsoft.LinearAttention"),
            "com_microsoft_linearattention",
            [*NAMES[:4], *WEBNN, *OPENVINO, *LINEAR, *CONTRIB, *NAMES[4:]],
        ),
    ],
)
def test_a_harness_without_onnx_is_sent_another_dialect(tmp_path, kernel, case, names):
    """Its own operator shows how it computes, and the case that nobody can do is of that one."""
    result, checks = smoked(program(tmp_path, with_kernel(kernel)))

    assert result.exit_code == 0, result.output
    assert [*checks] == names
    computed = [sent for sent, (_, sentence) in checks.items() if "are right" in sentence]
    assert computed == [case]
    assert checks["unsupported"][0] == "ok"


def test_an_update_rule_that_nobody_has_must_be_refused(tmp_path):
    """A linear attention has no activations; what it takes for another rule is wrong."""
    kernel = LINEAR_ATTENTION.replace("OPERATOR", "LinearAttention-27")
    result, checks = smoked(program(tmp_path, with_kernel(kernel.replace('or "up', 'or "no up'))))

    assert result.exit_code == 1
    assert checks["linearattention_27"][0] == "ok"
    assert "; the update rule is NoSuchRule, expected " in checks["unsupported"][1]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("cat", "the answer to start has no 'implementation'; it is '{"),
        (f"{HOSTILE} version_2", "speaks version 2 of the protocol, not 1"),
        (f"{HOSTILE} leave", "the program does not start: ended with exit code 7"),
        ("no-such-program", "there is no program 'no-such-program'"),
    ],
)
def test_a_program_that_does_not_start_is_an_error(command, sentence):
    """Exit code 2, with what it sent and what was expected."""
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "smoke", "--harness", command],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
