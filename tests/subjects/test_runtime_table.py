"""Claims about the table of runtimes, and those that other packages add."""

import pytest

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.jobs.plugins import Plugin
from rnncli.packs.vector import Status
from rnncli.subjects import runtimes
from rnncli.subjects.runtimes import SUBJECTS, describe_subjects, known_subjects, subject_named


@pytest.fixture
def installed(monkeypatch):
    """A package that adds a runtime, and tries to replace one of ours."""
    found = {
        name: Plugin("runtime", name, "support.hostile_runtimes:Hostile", "hostile")
        for name in ("friendly", "openvino")
    }
    monkeypatch.setattr(runtimes, "plugins", lambda kind: found)
    known_subjects.cache_clear()
    yield
    known_subjects.cache_clear()


def test_a_package_adds_a_runtime(installed, called):
    """It is run like ours."""
    subject = subject_named("friendly")
    try:
        assert subject.attempt(called("good")).status is Status.RAN
    finally:
        subject.close()


def test_a_package_cannot_replace_ours(installed):
    """`--runtime openvino` means OpenVINO."""
    assert known_subjects()["openvino"] == SUBJECTS["openvino"]


def test_an_unknown_runtime_is_an_error_with_a_suggestion():
    """The nearest name, and all there are."""
    with pytest.raises(InvalidRequest) as error:
        subject_named("onxruntime")

    assert "did you mean 'onnxruntime'" in str(error.value)
    assert all(name in str(error.value) for name in SUBJECTS)


def test_a_runtime_that_is_not_installed_says_how_to_install_it(monkeypatch):
    """Before any process is started, and without hiding the others."""
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None)

    with pytest.raises(Unsupported, match=r"pip install 'rnncli\[runtimes\]'"):
        subject_named("openvino")
    summaries = {row["runtime"]: row["summary"] for row in describe_subjects()}
    assert summaries["openvino"].startswith("unusable: no package openvino")
    assert summaries["onnx-reference"] == SUBJECTS["onnx-reference"].summary


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_row_says_what_it_is(name):
    """One line, with the place of its code."""
    row = next(row for row in describe_subjects() if row["runtime"] == name)

    assert row["from"] == SUBJECTS[name].where
    assert row["summary"]
