"""Claims about finding specs by name."""

import shutil

import pytest

from rnncli.cases import library
from rnncli.cases.library import find_spec, find_suite, spec_names, specs_folder, statement_files
from rnncli.errors import InvalidRequest


@pytest.mark.parametrize(
    "name",
    ["lstm_14", "lstm_14.yaml", "ops/lstm_14", "ops/lstm_14.yaml", "specs/ops/lstm_14.yaml"],
)
def test_a_spec_is_found_by_any_of_its_names(name):
    """With or without folder and suffix."""
    assert find_spec(name) == specs_folder() / "ops" / "lstm_14.yaml"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../specs/ops/lstm_14", "/etc/passwd", "ops", "nope", "a\0b", "*"]
)
def test_nothing_but_specs_is_found(name):
    """A name is looked up in a list; it is never a path."""
    assert find_spec(name) is None


def test_a_file_that_is_nearly_called_so_is_named(tmp_path, monkeypatch):
    """Before suites, which have no suffix."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_suite.yaml").write_text("suite: mine")
    with pytest.raises(InvalidRequest, match=r"did you mean 'my_suite.yaml'\?"):
        find_suite("my_suite.yml")
    with pytest.raises(InvalidRequest, match=r"did you mean 'smoke'\?"):
        find_suite("smok")


@pytest.mark.parametrize("specs", ["rnncli/specs", "specs"], ids=["wheel", "checkout"])
def test_specs_are_found_in_a_wheel_and_in_a_checkout(tmp_path, monkeypatch, specs):
    """Inside the package, where the wheel puts them, or beside it."""
    shutil.copytree(specs_folder(), tmp_path / specs)
    (tmp_path / "rnncli" / "cases").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "rnncli" / "cases" / "library.py"))

    assert specs_folder() == tmp_path / specs
    assert "ops/lstm_14" in spec_names()
    assert find_spec("lstm_14").is_file()


def test_a_broken_installation_says_so(tmp_path, monkeypatch):
    """Not with a traceback."""
    monkeypatch.setattr(library, "__file__", str(tmp_path / "rnncli" / "cases" / "library.py"))

    with pytest.raises(InvalidRequest, match="reinstall"):
        spec_names()


def test_statements_are_no_configs():
    """They have files, and no names on the command line."""
    files = {path.name for path in statement_files()}

    assert {"onnx.yaml", "openvino.yaml", "webnn.yaml"} <= files
    assert find_spec("onnx") is None
    assert [name for name in spec_names() if not name.startswith(("ops/", "suites/"))] == []
