"""Claims about MNN: nothing is installed or sent, and what its converter cannot do is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rnncli.packs.conversion import with_weights
from rnncli.packs.vector import Status
from rnncli.subjects.runtimes import subject_named

pytest.importorskip("MNN")

# A library that ends a process with exit code 99 when it wants to use the network or to run a
# program other than Python.
GUARD = """\
long write(int, const void *, unsigned long);
void _exit(int), *dlsym(void *, const char *);
char *getenv(const char *);
int strcmp(const char *, const char *);
#define STOP(name)                                    \\
  int name() {                                        \\
    static const char text[] = "guard: " #name "\\n"; \\
    write(2, text, sizeof text - 1);                  \\
    _exit(99);                                        \\
  }
STOP(socket) STOP(connect) STOP(getaddrinfo) STOP(gethostbyname) STOP(sendto) STOP(system)
STOP(popen) STOP(posix_spawn) STOP(posix_spawnp) STOP(execv) STOP(execvp) STOP(execvpe) STOP(execl)
int execve(const char *path, void *arguments, void *environment) {
  int (*real)(const char *, void *, void *) = dlsym((void *)-1L, "execve"); /* RTLD_NEXT */
  const char *python = getenv("GUARD_PYTHON");
  return !python || strcmp(path, python) ? system() : real(path, arguments, environment);
}
"""
RUN = """\
import sys
from pathlib import Path
from rnncli.packs.conversion import with_weights
from rnncli.packs.pack import open_pack
from rnncli.subjects.runtimes.mnn import Mnn

pack = open_pack(Path(sys.argv[1]))
vector = with_weights(pack.read(pack.case("lstm_7_plain")), "initializers")
print(*Mnn({}, 1).run(vector))
"""
CORE = Path(__file__).parents[2] / "vectors" / "core"


@pytest.fixture
def guarded(tmp_path):
    """A function that runs Python code under the guard."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs a C compiler and LD_PRELOAD")
    source, library = tmp_path / "guard.c", tmp_path / "guard.so"
    source.write_text(GUARD, "utf-8")
    command = [compiler, "-w", "-fno-builtin", "-shared", "-fPIC", source, "-o", library, "-ldl"]
    subprocess.run(command, check=True)

    def run(code, *arguments):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "LD_PRELOAD": str(library), "GUARD_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def mnn():
    """MNN in its own process."""
    subject = subject_named("mnn")
    yield subject
    subject.close()


def constant(vector):
    """A vector whose model has the weights."""
    return with_weights(vector, "initializers")


def test_nothing_is_installed_or_sent(guarded):
    """A model is converted and run without a connection or another program."""
    done = guarded(RUN, CORE)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Y Y_h Y_c"), done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import MNN.tools.utils.log",
        "import socket; socket.create_connection(('192.0.2.1', 9))",
        "import subprocess, sys; sys.exit(subprocess.run(['/bin/true']).returncode)",
    ],
)
def test_the_guard_stops_what_would_be_installed_or_sent(guarded, code):
    """MNN's own module, first of all, which its command imports."""
    done = guarded(code)

    assert done.returncode == 99
    assert "guard: " in done.stderr


def test_the_module_that_sends_is_what_the_command_imports():
    """If MNN moves it, the guard has to look elsewhere."""
    from importlib.util import find_spec

    folder = Path(find_spec("MNN").origin).parent / "tools"

    assert "utils.log import mnn_logger" in (folder / "mnnconvert.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("case_id", "reason"),
    [
        ("rnn_14_ragged", "not support sequence_lens"),
        ("rnn_14_relu", "Load activations error"),
        ("gru_14_both", "Reshape error"),
        ("lstm_14_peepholes", "not support 8th input (peepholes)"),
        ("gru_14_dtype_float16", "computes in float32 alone, not in float16"),
    ],
)
def test_what_the_converter_says_it_cannot_do_is_refused(mnn, core, case_id, reason):
    """Also where it goes on, converts something else and reports success."""
    attempt = mnn.attempt(constant(core(case_id)))

    assert attempt.status is Status.REFUSED
    assert reason in attempt.message


@pytest.mark.parametrize(
    ("line", "is_reason"),
    [
        ("[07:19:57] :220: These Op Not Support: ONNX::LSTM ", True),
        ("inputTensors : [ error, ]", False),
        ("outputTensors: [ not const, ]", False),
        ("Use While to compute LSTM, if don't want it, add --useOriginRNNImpl ", False),
        ("Converted Success!", False),
    ],
)
def test_the_names_of_a_model_are_no_reason(line, is_reason):
    """Neither is what the converter says of its own ways."""
    from rnncli.subjects.runtimes.mnn import _CANNOT

    assert bool(_CANNOT.search(line)) is is_reason


def test_weights_that_are_inputs_are_refused_by_a_gru(mnn, core):
    """With the reason that leads to --weights initializers."""
    attempt = mnn.attempt(core("gru_14_initial"))

    assert attempt.status is Status.REFUSED
    assert "not const" in attempt.message


def test_a_crash_of_the_converter_is_a_crash_and_leaves_no_folder(mnn, core, monkeypatch, tmp_path):
    """It damages its memory for an LSTM whose only output is Y; the next model is converted."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    attempt = mnn.attempt(constant(core("lstm_14_y_only")))

    assert attempt.status is Status.CRASHED
    assert attempt.message.startswith("died of SIG")
    assert list(tmp_path.glob("rnncli-*")) == []
    assert mnn.attempt(constant(core("lstm_7_plain"))).status is Status.RAN
