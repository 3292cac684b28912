"""Claims about plug-ins that fail: they are named, and never called a bug of ours."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support import quantised_lstm
from support.judged import vectors_of
from support.recurrences import PREVIOUS, recurrence_of

from rnncli import prepare
from rnncli.backends.backend import Compute
from rnncli.backends.backend_table import backend_named, describe_backends, known_backends
from rnncli.errors import InvalidRequest, RnncliError, Unsupported, explain
from rnncli.files.formats import describe_formats, read_tensors, write_tensors
from rnncli.jobs.plugins import Plugin, PluginFailure, calling, plugins
from rnncli.operators import evaluate
from rnncli.subjects.own_backend import BackendRuntime
from rnncli.subjects.runtime import put

MODULE = """
import sys
import numpy as np
from rnncli.errors import Unsupported
from rnncli.files.formats.format import Format
from rnncli.recurrence.recurrence import Result

class Backend:
    def supports(self, recurrence, compute):
        return None

class Raises(Backend):
    def run(self, recurrence, compute):
        raise RuntimeError("boom\\non a second line")

class Exits(Backend):
    def run(self, recurrence, compute):
        sys.exit(0)

class Refuses(Backend):
    def run(self, recurrence, compute):
        raise Unsupported("has no RNN")

class Silent(Backend):
    def run(self, recurrence, compute):
        return None

class Doubts(Silent):
    def supports(self, recurrence, compute):
        return recurrence.no_such_field

class Knows(Silent):
    honours = ("peephole_previous",)

class Stateless(Backend):
    def run(self, recurrence, compute):
        return Result(np.zeros((5, 1, 1, 3)), ())

class Flat(Backend):
    def run(self, recurrence, compute):
        return Result(np.zeros(15), (np.zeros((1, 1, 3)),))

class Whole(Backend):
    def run(self, recurrence, compute):
        return Result(np.zeros((5, 1, 1, 3)), (np.zeros((1, 1, 3), np.int8),))

class Bound(Backend):
    # Its fast path returns what X says.
    def run(self, recurrence, compute):
        return Result(np.zeros((5, 1, 1, 3)), (np.zeros((1, 1, 3)),))

    def bind(self, recurrence, compute):
        def call(X, initial, lengths):
            number = X[0, 0, 0]
            if number == 1:
                return None
            if number == 2:
                raise RuntimeError("boom")
            if number == 3:
                return (np.zeros(15), np.zeros((1, 1, 3)))
            return (np.full((5, 1, 1, 3), number), np.full((1, 1, 3), number))
        return call

class Linear(Backend):
    honours = ("LinearAttention",)

    def run(self, recurrence, compute):
        from rnncli.backends.reference import ReferenceBackend
        return ReferenceBackend().run(recurrence, compute)

class Mute:
    summary = "evaluates whatever comes"

    def run(self, recurrence, compute):
        return None

class Unmade:
    def __init__(self):
        raise KeyError("RNN_HOME")

def read(path):
    if path.stem == "list":
        return [1]
    if path.stem == "number":
        return {"x": 1}
    raise RuntimeError("boom")

def write(path, tensors):
    raise ZeroDivisionError("boom")

TXT = Format("txt", ("txt",), "text", read, write)
"""
BACKENDS = (
    "Raises",
    "Exits",
    "Refuses",
    "Doubts",
    "Silent",
    "Knows",
    "Stateless",
    "Flat",
    "Whole",
    "Bound",
    "Linear",
    "Mute",
    "Unmade",
    "Missing",
)


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """What pip leaves of a package with entry points."""
    (tmp_path / "boom_kernels.py").write_text(MODULE)
    (tmp_path / "boom_syntax.py").write_text("def (")
    info = tmp_path / "boom-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boom\nVersion: 1.0\n")
    rows = [f"{name.lower()} = boom_kernels:{name}" for name in BACKENDS]
    rows += ["syntax = boom_syntax:Backend", "absent = not_there:Backend"]
    (info / "entry_points.txt").write_text(
        "\n".join(["[rnncli.backends]", *rows, "[rnncli.formats]"])
        + "\ntxt = boom_kernels:TXT\ntsv = boom_kernels:Missing\ncsv = boom_kernels:Raises\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for table in (known_backends, backend_named):
        table.cache_clear()
    yield
    for table in (known_backends, backend_named):
        table.cache_clear()


def run(backend):
    """Evaluate an RNN of 5 steps and 3 units with a backend."""
    inputs = {"X": np.ones((5, 1, 2)), "W": np.ones((1, 3, 2)), "R": np.ones((1, 3, 3))}
    return evaluate("RNN-14", inputs, backend=backend)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "RuntimeError: boom on a second line"),
        ("exits", "SystemExit: 0"),
        ("doubts", "AttributeError: 'Recurrence' object has no attribute 'no_such_field'"),
        ("silent", "TypeError: run returned NoneType, not a Result"),
        ("stateless", "TypeError: run returned 0 last states, not 1"),
        ("flat", "TypeError: run returned float64 (15,), expected float64 [5, 1, 1, 3]"),
        ("whole", "TypeError: run returned int8 (1, 1, 3), expected float64 [1, 1, 3]"),
        ("unmade", "KeyError: 'RNN_HOME'"),
        ("missing", "AttributeError: module 'boom_kernels' has no attribute 'Missing'"),
    ],
)
def test_a_backend_that_fails_is_named(name, said):
    """In one line, with the package it comes from, and with exit code 2."""
    with pytest.raises(PluginFailure) as failure:
        run(name)

    where = f"it is boom_kernels:{name.capitalize()} of the package boom"
    assert explain(failure.value) == (f"backend '{name}' failed: {said}; {where}", 2)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *(("raises", "crashed"), ("doubts", "crashed"), ("flat", "crashed")),
        *(("refuses", "refused"), ("bound", "ran")),
    ],
)
def test_a_backend_that_fails_at_what_it_supports_has_not_refused_it(name, status):
    """It crashes, so that no allowance of refusals hides it."""
    (vector,) = vectors_of(
        "{op: RNN-14, sizes: {seq_length: 5, batch_size: 1, input_size: 2, hidden_size: 3},"
        " dtype: float64}"
    )

    assert put(BackendRuntime({"backend": name}, 1).run, vector).status == status


def test_a_backend_that_lacks_a_method_is_unusable():
    """Which is found before a case is asked."""
    said = "backend 'mute' has no method supports; it is boom_kernels:Mute of the package boom"
    (row,) = (row for row in describe_backends() if row["backend"] == "mute")

    assert row["summary"] == f"unusable: {said}"
    with pytest.raises(PluginFailure, match=re.escape(said)):
        run("mute")


def test_a_backend_gets_cells_without_gates_if_it_says_so():
    """Their states have shapes and types of their own, which its results must have."""
    attributes = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    inputs = {name: np.ones((1, 3, 4), np.float16) for name in ("query", "key", "value")}
    inputs["past_state"] = np.ones((1, 2, 2, 2), np.float32)
    own = evaluate("LinearAttention-27", inputs, attributes=attributes, backend="linear")
    wanted = evaluate("LinearAttention-27", inputs, attributes=attributes)

    assert {n: v.dtype for n, v in own.items()} == {n: v.dtype for n, v in wanted.items()}
    assert all(np.array_equal(own[name], wanted[name]) for name in wanted)
    with pytest.raises(Unsupported, match="does not say that it honours LinearAttention"):
        evaluate("LinearAttention-27", inputs, attributes=attributes, backend="bound")
    inputs = {"input": np.ones((1, 2, 3)).astype("f"), "weight": np.ones((2, 1, 2)).astype("f")}
    with pytest.raises(Unsupported, match="does not say that it honours CausalConv"):
        evaluate("CausalConvWithState-27", inputs, backend="linear")


def bound_session():
    """Return a session of the backend with a fast path, after its first call."""
    weights = {"W": np.ones((1, 3, 2)), "R": np.ones((1, 3, 3))}
    session = prepare("RNN-14", backend="bound", **weights)
    session(X=np.ones((5, 1, 2)))
    return session


@pytest.mark.parametrize(("number", "first"), [(1, 0), (4, 4)])
def test_a_session_calls_the_fast_path_of_a_backend(number, first):
    """Unless it declines."""
    session = bound_session()

    assert session(X=np.full((5, 1, 2), number, float))["Y_h"][0, 0, 0] == first


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (2, "RuntimeError: boom"),
        (3, "the function from bind returned float64 (15,), expected float64 [5, 1, 1, 3]"),
    ],
)
def test_a_fast_path_that_fails_is_named(number, said):
    """As `run` is."""
    session = bound_session()

    with pytest.raises(PluginFailure, match=re.escape(said)):
        session(X=np.full((5, 1, 2), number, float))


def test_a_module_that_is_no_python_is_a_failure_of_its_package():
    """What the import raises is named, too."""
    with pytest.raises(PluginFailure, match=r"^backend 'syntax' failed: SyntaxError: .* boom$"):
        run("syntax")


def test_a_module_that_is_not_installed_is_exit_3():
    """As a missing extra of ours is."""
    with pytest.raises(Unsupported, match="backend 'absent' does not import: No module named 'not"):
        run("absent")


def test_our_own_errors_pass_as_they_are():
    """A plug-in refuses by them."""
    with pytest.raises(Unsupported, match=r"^has no RNN$"):
        run("refuses")


def test_a_plug_in_is_not_asked_for_quantised_states():
    """It would compute with unquantised ones, if it was written before there were any."""
    attributes, inputs = quantised_lstm.node(quantised_lstm.FORMS[0])

    with pytest.raises(Unsupported, match="'silent' does not evaluate quantised states"):
        evaluate(quantised_lstm.LSTM, inputs, attributes=attributes, backend="silent")


def test_a_plug_in_says_that_it_knows_of_the_previous_cell_state():
    """One that was written before there was the field would ignore it; without P it may."""
    one = recurrence_of("LSTM", **PREVIOUS)
    silent, knows = backend_named("silent"), backend_named("knows")

    reason = "does not say that it honours the reading peephole-o=previous"
    assert silent.supports(one, Compute.FLOAT64) == reason
    assert silent.supports(replace(one, P=None), Compute.FLOAT64) is None
    assert silent.supports(one.opting(peephole_previous=False), Compute.FLOAT64) is None
    assert knows.supports(one, Compute.FLOAT64) is None


def test_listings_say_which_cannot_be_used():
    """One that fails does not hide the others."""
    backends = {row["backend"]: row["summary"] for row in describe_backends()}
    formats = {row["extension"]: row["summary"] for row in describe_formats()}

    assert backends["unmade"].startswith("unusable: backend 'unmade' failed: KeyError")
    assert backends["raises"] == ""
    assert formats["txt"] == "text"
    assert formats["tsv"].startswith("unusable: format 'tsv' failed: AttributeError")
    assert formats["csv"].startswith("unusable: format 'csv' failed: TypeError: expected a Format")
    assert "unusable" not in backends["numpy"] + formats["npz"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x", "RuntimeError: boom"),
        ("list", "TypeError: read returned list, not a dict of arrays"),
        ("number", "TypeError: read returned int named 'x', not an array"),
    ],
)
def test_a_format_that_fails_is_named_with_the_file(tmp_path, name, said):
    """When it reads."""
    path = tmp_path / f"{name}.txt"
    with pytest.raises(PluginFailure) as failure:
        read_tensors(path)

    wanted = f"{path}: format 'txt' failed: {said}; it is boom_kernels:TXT of the package boom"
    assert wanted == str(failure.value)


def test_a_format_that_cannot_write_is_named_with_the_file(tmp_path):
    """When it writes, the exit code is 2, too."""
    with pytest.raises(
        InvalidRequest, match=r"x\.txt: format 'txt' failed: ZeroDivisionError: boom"
    ):
        write_tensors(tmp_path / "x.txt", {})


def test_an_entry_point_without_a_distribution_is_of_its_module(monkeypatch):
    """Made by hand it still has a package to name."""
    from importlib.metadata import EntryPoint

    points = [EntryPoint("x", "some.module:X", "rnncli.backends")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)

    assert plugins("backend") == {"x": Plugin("backend", "x", "some.module:X", "some")}


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), RnncliError("x")])
def test_what_is_not_the_plugins_fault_passes(error):
    """Too little memory, the user's interrupt, our own errors."""
    with pytest.raises(type(error)), calling(Plugin("backend", "x", "x:X", "x")):
        raise error
