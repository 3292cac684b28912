"""Claims about generated C: what is built and called is the model's code, or there is a reason."""

from __future__ import annotations

import dataclasses
import shutil
from importlib.util import find_spec

import numpy as np
import onnx
import pytest

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.limits import Limits
from rnncli.packs.vector import Status
from rnncli.subjects.runtimes import subject_named

# Importing it takes a second of each worker.
pytestmark = pytest.mark.skipif(not find_spec("emx_onnx_cgen"), reason="needs emx-onnx-cgen")

# A C compiler that builds another program than the one it is given.
INSTEAD = """\
#!/bin/sh
[ "$1" = --version ] && exec echo 'cc 1.0'
for last; do :; done
cd "$(dirname "$0")" || exit
{script}
"""
OTHER_CODE = """\
echo '{code}' > other.c
while [ "$1" != -o ]; do shift; done
{cc} -shared -fPIC other.c -o "$2"
"""
CC = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """A function that runs a vector with another compiler."""

    def run(vector, script, timeout=60.0):
        program = tmp_path / "cc"
        program.write_text(INSTEAD.format(script=script), "utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("CC", str(program))
        return tried(vector, timeout=timeout)

    return run


def tried(*vectors, timeout=60.0):
    """The last attempt at a session of vectors."""
    subject = subject_named("emx-onnx-cgen", limits=Limits(timeout=timeout))
    try:
        return subject.session(vectors)[-1]
    finally:
        subject.close()


def with_model(vector, change):
    """A vector whose model is changed."""
    model = onnx.load_model_from_string(vector.model)
    change(model)
    return dataclasses.replace(vector, model=model.SerializeToString())


@pytest.mark.parametrize(
    ("variable", "error", "sentence"),
    [
        ("no-such-compiler", Unsupported, r"needs a C compiler: CC is no-such-compiler"),
        ("", Unsupported, r"needs a C compiler: no cc, gcc, clang in PATH"),
        ("gcc '", InvalidRequest, r"CC gcc '"),
    ],
)
def test_without_a_compiler_nothing_is_judged(monkeypatch, tmp_path, variable, error, sentence):
    """It ends the run: a refusal of every case would blame the generator."""
    monkeypatch.setenv("CC", variable)
    monkeypatch.setenv("PATH", str(tmp_path))
    subject = subject_named("emx-onnx-cgen")

    with pytest.raises(error, match=sentence):
        subject.describe()


def test_the_compiler_is_named():
    """A report must say what built the code."""
    subject = subject_named("emx-onnx-cgen")
    try:
        about = subject.describe()
    finally:
        subject.close()

    assert about["compiler"]
    assert "-O2" in about["flags"]


def test_an_error_of_the_compiler_is_a_refusal_with_its_words(core, compiled):
    """Such as a type that the compiler does not have, without the path of a file that is gone."""
    attempt = compiled(core("rnn_7_plain"), "echo \"$last.c:7: error: unknown type '__bf16'\" >&2")

    assert attempt.status is Status.REFUSED
    assert attempt.message == "the C compiler says: unknown type '__bf16'"


def test_a_compiler_that_says_nothing_is_quoted_with_its_exit_code(core, compiled):
    """A reason has to be there."""
    attempt = compiled(core("rnn_7_plain"), "exit 4")

    assert attempt.message == "the C compiler says: nothing; it ended with exit code 4"


def test_a_compiler_that_hangs_is_ended_in_time(core, compiled):
    """Compiling is part of the time that a case has."""
    assert compiled(core("rnn_7_plain"), "sleep 600", timeout=8).status is Status.TIMEOUT


def test_a_crash_of_the_code_is_a_crash(core, compiled):
    """And not a refusal."""
    script = OTHER_CODE.format(code="void entry(void) { *(volatile int *)0 = 1; }", cc=CC)
    attempt = compiled(core("rnn_7_plain"), script)

    assert attempt.status is Status.CRASHED
    assert "SIGSEGV" in attempt.message


def test_an_output_that_is_not_written_is_not_zero(core, compiled):
    """Zeros are right in padding, so they must have been written."""
    attempt = compiled(core("rnn_7_plain"), OTHER_CODE.format(code="void entry(void) {}", cc=CC))

    assert attempt.status is Status.RAN
    assert all(np.all(np.isnan(values)) for values in attempt.outputs.values())


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.graph, "name", "*/ int x; /*"),
        lambda model: setattr(model.graph.node[0], "name", "*/ int x; /*"),
        lambda model: model.graph.node[0].attribute.append(
            onnx.helper.make_attribute("direction", "*/ int x; /*")
        ),
    ],
    ids=["graph", "node", "attribute"],
)
def test_a_model_cannot_add_code(core, change):
    """The generator copies texts into comments, as they are."""
    attempt = tried(with_model(core("rnn_7_plain"), change))

    assert attempt.status is Status.REFUSED
    assert "asterisk" in attempt.message


def test_a_dimension_without_a_size_is_refused(core):
    """The code would take it as an argument of its own."""

    def change(model):
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "T"

    attempt = tried(with_model(core("rnn_7_plain"), change))

    assert attempt.status is Status.REFUSED
    assert attempt.message == "the model gives no size for X"


def test_inputs_of_another_size_are_not_read_beyond_their_end(core):
    """Neither in the first call nor in a later one."""
    vector = core("rnn_7_plain")
    short = dataclasses.replace(vector, inputs={**vector.inputs, "X": vector.inputs["X"][:1]})
    attempt = tried(vector, short)

    assert attempt.status is Status.REFUSED
    assert attempt.message == "the code takes float32[4, 3, 3] for X, not float32[1, 3, 3]"
