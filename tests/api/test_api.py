"""The public API of `import rnncli`."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.tables import every

import rnncli
from rnncli.errors import InvalidRequest


@every("name", rnncli.__all__)
def test_every_public_name_is_there_and_documented(name):
    """Each has a docstring, a function one with what it raises."""
    thing = getattr(rnncli, name)

    assert name == "__version__" or thing.__doc__
    assert not inspect.isfunction(thing) or "Raises:" in thing.__doc__


def test_examples_in_docstrings_hold():
    """The example of `evaluate` gives what it says."""
    assert doctest.testmod(rnncli).attempted > 0
    assert doctest.testmod(rnncli).failed == 0


def test_unknown_name_is_an_attribute_error():
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        rnncli.evalute  # noqa: B018


def test_the_plug_in_says_that_pytest_is_missing():
    """`rnncli.pytest` without pytest is an ImportError that names it."""
    code = "import sys; sys.modules['pytest'] = None; import rnncli; rnncli.pytest"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "import of pytest halted" in done.stderr.splitlines()[-1]


def test_every_public_name_is_completed():
    """`dir` lists what shells complete and `help` shows, and none of our imports."""
    listed = dir(rnncli)

    assert set(rnncli.__all__) <= set(listed)
    assert {"__doc__", "__file__"} <= set(listed)
    assert [name for name in listed if name[0] != "_"] == [
        name for name in rnncli.__all__ if name[0] != "_"
    ]


def test_type_checkers_know_every_name_and_no_other(tmp_path):
    """A slip is found before the program runs."""
    mypy = pytest.importorskip("mypy.api")
    names = "\n".join(f"rnncli.{name}" for name in (*rnncli.__all__, "nosuch"))
    (tmp_path / "user.py").write_text(f"import rnncli\n{names}\n")

    found, _, code = mypy.run(
        [
            *("--strict", "--follow-imports=skip", "--no-incremental"),
            *(rnncli.__file__, str(tmp_path / "user.py")),
        ]
    )

    assert code == 1
    assert [line.partition("error: ")[2] for line in found.splitlines() if "user.py" in line] == [
        'Module has no attribute "nosuch"  [attr-defined]'
    ]


def test_lists_are_taken_as_arrays():
    """What NumPy can make an array of is an input."""
    Y = rnncli.evaluate("RNN-7", {"X": [[[1.0]]], "W": [[[1.0]]], "R": [[[1.0]]]}, outputs=["Y"])

    assert Y["Y"].tolist() == [[[[float(np.tanh(1.0))]]]]


X, W = np.full((1, 1, 1), 0.1, np.float32), np.ones((1, 1, 1), np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_list_is_of_the_type_of_the_arrays_beside_it(dtype):
    """It has none of its own; a session has its own arrays beside it."""
    x, w = X.astype(dtype), W.astype(dtype)
    right = rnncli.evaluate("RNN-14", {"X": x, "W": w, "R": w})["Y"]
    session = rnncli.prepare("RNN-14", W=w, R=w)

    for given in (x.tolist(), [[[0.1]]]):
        for found in (
            rnncli.evaluate("RNN-14", {"X": given, "W": w, "R": w}),
            session(X=given),
        ):
            assert found["Y"].dtype == dtype
            assert dtype == "float64" or np.array_equal(found["Y"], right)


@pytest.mark.parametrize(
    "given", [((), {"X": X, "W": W, "R": W}), (({"X": X, "R": W},), {"W": W}), ((), {})]
)
def test_inputs_that_are_given_like_attributes_are_shown_their_place(given):
    """Sessions take them so."""
    inputs, attributes = given
    with pytest.raises(InvalidRequest, match=r"write evaluate\('RNN-14', {'X': X, 'W': W, 'R': R}"):
        rnncli.evaluate("RNN-14", *inputs, **attributes)


def test_package_is_typed():
    """`py.typed` lies in the package, so users' checkers read our annotations."""
    package = Path(importlib.util.find_spec("rnncli").origin).parent

    assert (package / "py.typed").is_file()


def test_import_is_light():
    """`import rnncli` loads neither NumPy nor onnx."""
    code = "import sys, rnncli; sys.exit(bool({'numpy', 'onnx', 'click'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
