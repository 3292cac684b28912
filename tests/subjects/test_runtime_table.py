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


PLUGGED = [
    ("support.hostile_runtimes:needs_what_is_missing", "from the package theirs"),
    ("support.hostile_runtimes:Silent", "from the package theirs"),
    ("no_such_module:Runtime", "unusable: no package no_such_module; it is no_such_module:Runtime"),
]


@pytest.mark.parametrize(("where", "summary"), PLUGGED)
def test_a_runtime_of_a_package_that_does_not_start_is_named_with_it(where, summary, monkeypatch):
    """What is not there is unusable; the rest is only known once it is started."""
    plugin = Plugin("runtime", "theirs", where, "theirs")
    monkeypatch.setattr(runtimes, "plugins", lambda kind: {"theirs": plugin})
    monkeypatch.setattr(runtimes, "known_subjects", known_subjects.__wrapped__)

    (told,) = (row["summary"] for row in describe_subjects() if row["runtime"] == "theirs")
    assert told.startswith(summary)
    with pytest.raises(Unsupported, match=f"it is {where} of the package theirs"):
        subject_named("theirs").describe()


def test_an_unknown_runtime_is_an_error_with_a_suggestion():
    """The nearest name, and all there are."""
    with pytest.raises(InvalidRequest) as error:
        subject_named("onxruntime")

    assert "did you mean 'onnxruntime'" in str(error.value)
    assert all(name in str(error.value) for name in SUBJECTS)


def test_a_runtime_that_is_not_installed_says_how_to_install_it(monkeypatch):
    """Before any process is started, and without hiding the others."""
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None)

    with pytest.raises(Unsupported, match=r"pip'? install .*\[runtimes\]'"):
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
