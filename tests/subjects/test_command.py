"""Claims about vendors' commands: what they are given, and what is made of what they do."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.second_calls import SHAPES, twice

from rnncli.errors import InvalidRequest
from rnncli.files.formats import pb, read_tensors, write_tensors
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge_session
from rnncli.limits import Limits
from rnncli.packs.vector import Status
from rnncli.subjects.command import PLACEHOLDERS, CommandSubject
from rnncli.verifying.case_judging import session_calls_of

PYTHON = shlex.join([sys.executable, "-I", "-S"])
CORE = Path(__file__).parents[2] / "vectors" / "core"
MIB = 1 << 20


@pytest.fixture
def vector(core):
    """A small vector, and its answers."""
    return core("rnn_7_plain")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program into the folder that the command is given in, and return the command."""
    monkeypatch.chdir(tmp_path)

    def written(text, arguments="{model} {inputs} {outputs}"):
        (tmp_path / "prog.py").write_text(text)
        return f"{PYTHON} {{here}}/prog.py {arguments}"

    return written


@pytest.fixture
def right(tmp_path, core):
    """Files with the right answers of the vector, in every form that a command may write."""
    answers = core("rnn_7_plain").answers.outputs
    folder = tmp_path / "right"
    for extension in ("npz", "h5"):
        write_tensors(tmp_path / f"right.{extension}", answers)
    write_tensors(f"{folder}/", answers)
    return tmp_path


def is_right(attempt, vector):
    """Whether the answers are exactly those."""
    assert attempt.status is Status.RAN, attempt.message
    return {n: v.tobytes() for n, v in attempt.outputs.items()} == {
        n: v.tobytes() for n, v in vector.answers.outputs.items()
    }


COPY = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])"
COPY_FOLDER = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True)"


@pytest.mark.parametrize(
    ("does", "arguments"),
    [
        (COPY, "{here}/right.npz {outputs.npz}"),
        (COPY, "{here}/right.h5 {outputs.h5}"),
        (COPY_FOLDER, "{here}/right/test_data_set_0 {outputs}"),
    ],
)
def test_outputs_are_read_in_each_form(program, right, vector, does, arguments):
    """A folder of tensors, or one file."""
    subject = CommandSubject(program(does, arguments))

    assert is_right(subject.attempt(vector), vector)


LOOK = """
import json, os, sys
found = {"argv": sys.argv[1:], "cwd": os.getcwd(), "case": os.environ["RNNCLI_CASE"]}
found["files"] = sorted(os.path.join(d, f) for d, _, fs in os.walk(".") for f in fs)
found["stdin"] = sys.stdin.read()
found["kept"] = os.environ["KEPT"]
copied = {name: open(name, "rb").read().hex() for name in found["files"]}
json.dump({**found, "copied": copied}, open(os.environ["SEEN"], "w"))
"""


def test_a_program_gets_what_it_is_promised(program, tmp_path, vector, monkeypatch):
    """Absolute paths, a folder of its own, the environment, and an empty standard input."""
    seen = tmp_path / "seen.json"
    monkeypatch.setenv("SEEN", str(seen))
    monkeypatch.setenv("KEPT", "yes")
    words = " ".join(f"{{{name}}}" for name in PLACEHOLDERS if not name.startswith("outputs."))
    CommandSubject(program(LOOK, f"{words} --x={{id}}.{{{{y}}}} 'a b'")).attempt(vector)
    found = json.loads(seen.read_text())
    folder = Path(found["cwd"])

    assert not folder.exists()
    assert folder != tmp_path
    assert found["argv"] == [
        *(str(folder / f) for f in ("model.onnx", "inputs", "inputs.npz", "inputs.h5", "outputs")),
        *(str(folder / "case.json"), vector.id, str(tmp_path)),
        *(f"--x={vector.id}.{{y}}", "a b"),
    ]
    assert (found["case"], found["stdin"], found["kept"]) == (vector.id, "", "yes")
    copied = {name[2:]: bytes.fromhex(text) for name, text in found["copied"].items()}
    assert copied["model.onnx"] == vector.model
    case = json.loads(copied["case.json"])
    assert case["attributes"] == vector.record.attributes
    assert "expect" not in case
    wanted = {name: values.tolist() for name, values in vector.fed.items()}
    for name in ("inputs.npz", "inputs.h5"):
        (tmp_path / name).write_bytes(copied[name])
        assert {n: v.tolist() for n, v in read_tensors(tmp_path / name).items()} == wanted
    for k, (name, values) in enumerate(vector.fed.items()):
        (tmp_path / "x.pb").write_bytes(copied[f"inputs/input_{k}.pb"])
        assert {n: v.tolist() for n, v in read_tensors(tmp_path / "x.pb").items()} == {
            name: values.tolist()
        }


def test_only_what_is_asked_for_is_written(program, tmp_path, vector, monkeypatch):
    """A program that names no model gets none."""
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.setenv("KEPT", "")
    CommandSubject(program(LOOK, "{outputs.npz}")).attempt(vector)

    assert json.loads((tmp_path / "seen.json").read_text())["files"] == []


def test_no_shell_runs_the_command(program, tmp_path, vector):
    """Its metacharacters are letters."""
    text = "import sys; sys.exit(' '.join(sys.argv[2:]))"
    attempt = CommandSubject(program(text, "{outputs} $HOME ';' touch x '&&' '*'")).attempt(vector)

    assert attempt.message == "ended with exit code 1: $HOME ; touch x && *"
    assert not (tmp_path / "x").exists()


ENDS = {
    "import sys; print('no', file=sys.stderr); print('really', file=sys.stderr); sys.exit(3)": (
        Status.REFUSED,
        "no",
    ),
    "import sys; sys.exit(3)": (Status.REFUSED, "exit code 3, no message"),
    "raise ValueError('no')": (Status.CRASHED, "ended with exit code 1: ValueError: no"),
    "import sys; sys.exit(2)": (Status.CRASHED, "ended with exit code 2"),
    "import sys; print('foo.c:12', file=sys.stderr); sys.exit(255)": (
        Status.CRASHED,
        "ended with exit code 255: foo.c:12",
    ),
    "import sys; sys.exit(139)": (
        Status.CRASHED,
        "ended with exit code 139, which is SIGSEGV",
    ),
    "import os; os.abort()": (Status.CRASHED, "died of SIGABRT"),
    "import ctypes; ctypes.memset(0, 0, 1)": (Status.CRASHED, "died of SIGSEGV"),
    "import os, signal; os.kill(os.getpid(), 9)": (Status.CRASHED, "died of SIGKILL"),
    "import sys; sys.stderr.write('\\x1b[2J' * 9999); sys.exit(3)": (
        Status.REFUSED,
        "[2J " * 75 + "...",
    ),
    "import os; [os.write(k % 2 + 1, b'la\\n' * 20000) for k in range(200)]; os._exit(3)": (
        Status.REFUSED,
        "la",
    ),
}


@pytest.mark.parametrize("text", ENDS, ids=range(len(ENDS)))
def test_an_end_means_what_is_documented(program, vector, text):
    """Exit codes, signals, and what is said on the standard error."""
    attempt = CommandSubject(program(text)).attempt(vector)

    assert (attempt.status, attempt.message) == ENDS[text]


OUTPUTS = {
    "pass": (Status.RAN, ""),
    "open(out + '/output_0.pb', 'wb').write(b'half')": (Status.CRASHED, "gave garbage: "),
    "open(out + '/output_0.pb', 'wb')": (Status.CRASHED, "gave garbage: "),
    "os.mkfifo(out + '/output_0.pb')": (Status.CRASHED, "gave garbage: "),
    "os.truncate(os.open(out + '/output_0.pb', os.O_CREAT | os.O_RDWR), 1 << 30)": (
        Status.CRASHED,
        "gave garbage: ",
    ),
    "os.rmdir(out)": (Status.RAN, ""),
    "os.rmdir(out); open(out, 'w')": (Status.RAN, ""),
    "os.symlink('/dev/zero', out + '/output_0.pb')": (Status.CRASHED, "gave garbage: "),
}


@pytest.mark.parametrize("text", OUTPUTS)
def test_outputs_that_cannot_be_read_are_garbage(program, vector, text):
    """A file that is missing is an output that is missing; a damaged one is a crash."""
    subject = CommandSubject(program(f"import os, sys; out = sys.argv[3]; {text}"))
    attempt = subject.attempt(vector)
    status, message = OUTPUTS[text]

    assert attempt.status is status
    assert attempt.message.startswith(message)
    assert attempt.outputs == {}


@pytest.mark.parametrize(
    "text",
    [
        "open(out, 'w').write('PK')",
        "open(out, 'w')",
        "open(out, 'w').truncate(1 << 30)",
        "os.mkdir(out)",
    ],
)
def test_a_file_of_outputs_that_cannot_be_read_is_garbage(program, vector, text):
    """As for a folder."""
    command = program(f"import os, sys; out = sys.argv[1]; {text}", "{outputs.npz}")

    assert CommandSubject(command).attempt(vector).status is Status.CRASHED


def test_a_hang_is_a_timeout(program, vector, family):
    """The program is ended with all it has started."""
    text = "import subprocess; subprocess.run(['sleep', '3600'])"
    subject = CommandSubject(program(text), limits=Limits(timeout=0.3))

    assert subject.attempt(vector).status is Status.TIMEOUT
    assert family.is_gone()


def test_a_memory_hog_is_a_crash(program, vector, family):
    """Where no runtime reserves address space, resident memory is what counts as well."""
    text = "a = []\nwhile True: a.append(b'x' * (1 << 24))"
    attempt = CommandSubject(program(text), limits=Limits(max_memory=200 * MIB)).attempt(vector)

    assert attempt.status is Status.CRASHED
    assert "MiB of memory, more than it may" in attempt.message
    assert family.is_gone()


LEAVES = """
import os, subprocess, sys, time
subprocess.Popen(["sleep", "3600"], start_new_session=True)
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(3600)
"""


def test_what_a_program_leaves_behind_is_ended(program, vector, family):
    """Also what has a session of its own or no parent; and the vector ran."""
    assert CommandSubject(program(LEAVES)).attempt(vector).status is Status.RAN
    assert family.is_gone()


INTERRUPTED = """
import sys, rnncli
from rnncli.subjects.command import CommandSubject
pack = rnncli.open_pack(sys.argv[1])
try:
    CommandSubject(sys.argv[2]).attempt(pack.read(pack.case("rnn_7_plain")))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_the_program(program, family):
    """Ctrl-C while it runs leaves nothing; in a process of its own, since it ends workers."""
    command = program("import time; time.sleep(3600)")
    argv = [sys.executable, "-c", INTERRUPTED, str(CORE), command]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert family.has(3)  # itself, the supervisor and the program
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()

    assert said == "interrupted\n"
    assert family.is_gone()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("", "--command is empty"),
        ("'sh {outputs}", "No closing quotation"),
        ("sh {model} {inputs}", "name one place for the outputs"),
        ("sh {outputs} {outputs.npz}", "name one place for the outputs"),
        ("sh {output}", "unknown placeholder {output}; did you mean 'outputs'?"),
        ("sh {outputs.zip}", "unknown placeholder {outputs.zip}"),
        ("no_such_program {outputs}", "there is no program 'no_such_program'"),
        ("text {outputs}", "there is no program 'text' in PATH; write ./text for the file in"),
        ("./prog {outputs}", "there is no program './prog'"),
        ("./text {outputs}", "the program could not be started: ./text is not executable"),
        ("{here}/prog {outputs}", "there is no program"),
    ],
)
def test_a_command_that_cannot_be_run_is_an_error(tmp_path, monkeypatch, command, sentence):
    """Before any vector is put to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("#!/bin/sh\n")

    with pytest.raises(InvalidRequest) as error:
        CommandSubject(command)
    assert sentence in str(error.value)


UNSTARTABLE = {
    b"\x7fELFnot": "./prog: Exec format error",
    b"#!/no/such/interpreter\n": "./prog: No such file or directory; the interpreter named in",
    b"#!/usr/bin/env no-such-interpreter\n": "./prog ended with exit code 127: ",
    b"#!/bin/sh\necho 'libk.so: not found' >&2; exit 127\n": (
        "./prog ended with exit code 127: libk.so: not found"
    ),
    b"#!/bin/sh\nexit 126\n": "./prog ended with exit code 126",
}


@pytest.mark.parametrize("contents", UNSTARTABLE)
def test_a_program_that_does_not_start_ends_the_run(tmp_path, vector, monkeypatch, contents):
    """The system, a shell or a loader says so only when it is started; nothing refused a vector."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog").write_bytes(contents)
    (tmp_path / "prog").chmod(0o755)

    with pytest.raises(InvalidRequest) as error:
        CommandSubject("./prog {outputs}").attempt(vector)
    sentence = str(error.value).replace(f"{tmp_path}/", "./").replace("././", "./")
    assert f": the program could not be started: {UNSTARTABLE[contents]}" in sentence


def test_a_program_is_found_from_where_the_command_is_given(tmp_path, vector, monkeypatch):
    """Although it runs elsewhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "prog").chmod(0o755)
    subject = CommandSubject("./prog {outputs}")
    monkeypatch.chdir(os.sep)

    assert subject.attempt(vector).status is Status.REFUSED


def test_it_says_what_it_runs():
    """With the limits it runs under."""
    assert CommandSubject(
        "sh {outputs}", limits=Limits(timeout=2.5, max_memory=MIB)
    ).describe() == {
        "command": "sh {outputs}",
        "timeout": "2.5",
        "max_memory": str(MIB),
    }


def test_outputs_have_the_names_that_are_asked_for(program, vector):
    """A tensor that has none has that of its position."""
    text = (
        "import sys\n"
        "open(sys.argv[3] + '/output_1.pb', 'wb').write(bytes([8, 2, 16, 1, 74, 8]) + bytes(8))"
    )
    outputs = CommandSubject(program(text)).attempt(vector).outputs

    assert list(outputs) == [vector.record.outputs[1]]
    np.testing.assert_array_equal(outputs[vector.record.outputs[1]], np.zeros(2, np.float32))


ANSWERS = """
import sys
from pathlib import Path
calls = Path(__file__).parent.glob("right_*")
asked = [(Path(sys.argv[1]) / "input_0.pb").read_bytes()]
(folder,) = [path for path in calls if (path / "x.pb").read_bytes() in asked]
for path in folder.rglob("output_*"):
    (Path(sys.argv[2]) / path.name).write_bytes(path.read_bytes())
"""


def test_a_program_is_started_for_every_call_of_other_sizes(program, tmp_path):
    """It gets the inputs of that call alone, so it cannot keep anything of another."""
    vector = twice(SHAPES)["gru_14_fed"]
    for call in vector.calls:
        folder = f"{tmp_path}/right_{call.call}"
        write_tensors(f"{folder}/", call.answers.outputs)
        Path(folder, "x.pb").write_bytes(pb.serialize("X", call.inputs["X"]))
    session = session_calls_of(CommandSubject(program(ANSWERS, "{inputs} {outputs}")), vector)

    assert [*session.order] == [0, 1, 2]
    assert judge_session(session, PACK_RULE).verdict.verdict is Verdict.PASS
