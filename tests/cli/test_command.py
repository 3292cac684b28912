"""Claims about files that commands write: none replaces an input, or a file of a pack."""

from __future__ import annotations

import shutil

import pytest
from support.small_suite import small_suite

from rnncli.files.atomic import write_text
from rnncli.files.seals import MARKUP
from rnncli.generating.generation import GenerationPlan, generate


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small pack."""
    folder = tmp_path_factory.mktemp("made") / "P"
    generate(GenerationPlan(suite=small_suite(), selection="clip"), folder, lambda _: None)
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder with the pack, a list of known failures, and what a page of an earlier run left."""
    shutil.copytree(made, tmp_path / "P")
    (tmp_path / "known").write_text("lstm_14_clip known\n")
    write_text(tmp_path / "page", "old", MARKUP)
    (tmp_path / "manifest.json").write_text('{"name": "a web app"}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


MODEL = "P/test_lstm_14_clip/model.onnx"
INPUT = "it is an input of this command"
JUDGE = ("verify", "P", "--backend", "numpy")
LOSSES = {
    "a manifest": ((*JUDGE, "--html", "P/manifest.json"), "it belongs to the pack"),
    "expected outputs": (
        (*JUDGE, "--junit", "P/test_lstm_14_clip/test_data_set_0/output_0.pb"),
        "it belongs to the pack",
    ),
    "known failures": ((*JUDGE, "--xfails", "known", "--markdown", "known"), INPUT),
    "known failures by another name": (
        (*JUDGE, "--xfails", "known", "--markdown", "./P/../known"),
        INPUT,
    ),
    "a model": (("run", MODEL, "-o", MODEL), INPUT),
    "a model of a pack": (("run", "lstm_14", "-o", MODEL), "it belongs to the pack"),
    "results": (("site", "page", "--markdown", "page"), INPUT),
    "a run": (("report", "page", "--markdown", "page"), INPUT),
    "a matrix": (("score", "P", "--html", "P/SHA256SUMS"), "it belongs to the pack"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_would_be_lost_is_not_replaced(rnncli, here, name):
    """Neither an input of the command nor a file of a pack; it is said before anything runs."""
    words, reason = LOSSES[name]
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    done = rnncli(*words)

    assert done.code == 2
    assert f"is not replaced: {reason}" in done.err
    assert before == {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}


def test_a_file_of_an_earlier_run_is_replaced(rnncli, here):
    """Beside a manifest that is not a pack's, too."""
    done = rnncli(*JUDGE, "--markdown", "page")

    assert done.code == 0
    assert (here / "page").read_text("utf-8").startswith("## ")
