"""Pages of findings are ready to be sent; the tests of the documentation run their scripts."""

from __future__ import annotations

import re
from pathlib import Path

from support.tables import every

FOLDER = Path(__file__).parents[2] / "docs/findings"
PAGES = sorted(FOLDER.glob("*-*.md"))
# What a script imports besides NumPy and onnx: a reader has the runtime that it is about.
MODULES = {
    "iree": {"iree.compiler.version", "iree.compiler.extras", "iree.runtime"},
    "mnn": {"MNN", "_tools"},
    "onnx": {"onnx.reference"},
    "onnxruntime": {"onnxruntime"},
    "opencv": {"cv2"},
    "openvino": {"openvino"},
    "tract": {"tract"},
}


@every("page", PAGES, ids=lambda page: page.stem)
def test_a_finding_is_short_and_stands_alone(page):
    """At most 40 lines: the specification's sentence, a script, what it prints."""
    text = page.read_text("utf-8")
    imported = re.findall(r"^(?:import|from) (\S+)", text, re.MULTILINE)
    runtime = page.stem.partition("-")[0]

    assert len(text.splitlines()) <= 40
    assert {*imported} - {"numpy", "onnx"} == MODULES[runtime]
    assert re.search(r"^\[\w+\]\(https://onnx\.ai/\S+\), [\w ]+: \"", text, re.MULTILINE)


@every("page", PAGES, ids=lambda page: page.stem)
def test_got_is_not_what_is_wanted(page):
    """A page of a right answer would be no finding."""
    got, wanted = re.findall(
        r"^\S+ [\w./-]+: got \[(.*?)\], wanted \[(.*?)\]$", page.read_text("utf-8"), re.MULTILINE
    )[-1]

    assert got.split() != wanted.split()


def test_every_finding_is_listed():
    """With its title, under the runtime it is about."""
    listed = dict(
        re.findall(r"\| \[(.*?)\]\((\S+?)\) \|", (FOLDER / "index.md").read_text("utf-8"))
    )

    assert {page.name: page.read_text("utf-8").splitlines()[0][2:] for page in PAGES} == {
        path: title for title, path in listed.items()
    }


@every("page", PAGES, ids=lambda page: page.stem)
def test_a_report_is_a_thread_of_the_project(page):
    """The line says where the bug is known; a page without it has not been sent, or not found."""
    lines = [line for line in page.read_text("utf-8").splitlines() if "eported" in line]

    assert len(lines) <= 1
    for line in lines:
        name, address = re.fullmatch(r"Reported: \[(.*)\]\((.*)\)\.", line).groups()
        assert f"https://github.com/{name.replace('#', '/issues/')}" == address
