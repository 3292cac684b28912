"""Findings and the texts that report them stand alone; the tests of the pages run them."""

import re
import sys
from pathlib import Path

from support.tables import every

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "findings"
PAGES = sorted(FOLDER.glob("*-*.md"))
TEXTS = sorted((DOCS / "upstream").glob("*-*.md"))
# What a script may import of those that a reader has anyway.
HAD = {"numpy", "onnx", "onnx.parser", *sys.stdlib_module_names}
# What it imports besides: a reader has the runtime that it is about.
MODULES = {
    "emx": {"emx_onnx_cgen.compiler"},
    "iree": {"iree.compiler.version", "iree.compiler.extras", "iree.runtime"},
    "litert": {"importlib.metadata", "flatbuffers", "ai_edge_litert"},
    "mnn": {"MNN", "_tools"},
    "onnx": {"onnx.reference"},
    "onnx2pytorch": {"importlib.metadata", "onnx2pytorch", "torch"},
    "onnx2tf": {"onnx2tf", "ai_edge_litert.interpreter"},
    "onnxruntime": {"onnxruntime"},
    "opencv": {"cv2"},
    "openvino": {"openvino"},
    "qnn": {"onnxruntime", "onnxruntime_qnn"},
    "tflite": {
        "importlib.metadata",
        "flatbuffers",
        "tflite_micro.tensorflow.lite.micro.python",
    },
    "tract": {"tract"},
}


def imported(page):
    """The modules that the script of a page imports."""
    return {*re.findall(r"^(?:import|from) (\S+)", page.read_text("utf-8"), re.MULTILINE)}


def result(page):
    """What the script of a page prints: the runtime's version, got, wanted."""
    pattern = r"^(\S+ [\w./-]+): got \[(.*?)\], wanted \[(.*?)\]$"
    return re.findall(pattern, page.read_text("utf-8"), re.MULTILINE)[-1]


@every("page", PAGES, ids=lambda page: page.stem)
def test_a_finding_is_short_and_stands_alone(page):
    """At most 50 lines: a sentence of the specification or source, a script, what it prints."""
    text = page.read_text("utf-8")

    assert len(text.splitlines()) <= 50
    assert imported(page) - HAD == MODULES[page.stem.partition("-")[0]]
    assert re.search(
        r"^\[[\w.]+\]\(https://(onnx\.ai|github\.com)/\S+\),\s[\w ]+: \"", text, re.MULTILINE
    )


@every("page", PAGES, ids=lambda page: page.stem)
def test_got_is_not_what_is_wanted(page):
    """A page of a right answer would be no finding."""
    _, got, wanted = result(page)

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


@every("text", TEXTS, ids=lambda text: text.stem)
def test_a_report_shows_its_finding_with_a_smaller_script(text):
    """The same wrong answer, of the same version, in fewer lines, and without rnncli."""
    page = FOLDER / text.name
    scripts = [
        re.search(r"^```python.*?^```$", each.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
        for each in (text, page)
    ]

    assert result(text) == result(page)
    assert imported(text) - HAD == MODULES[text.stem.partition("-")[0]]
    assert len(scripts[0].splitlines()) < len(scripts[1].splitlines())


def test_every_finding_has_a_report_or_a_reason():
    """A row with its title; only what has a text can be "not sent"."""
    table = (DOCS / "upstream/index.md").read_text("utf-8")
    rows = re.findall(
        r"^\| \[(.*)\]\(\.\./findings/(\S+)\) \| \S+ \| (.*) \| (.*) \|$", table, re.MULTILINE
    )
    texts = {name: words for _, name, words, _ in rows}

    assert sorted(texts) == [page.name for page in PAGES]
    assert [page.read_text("utf-8").splitlines()[0][2:] for page in PAGES] == [
        title for title, *_ in sorted(rows, key=lambda row: row[1])
    ]
    assert {name for name, words in texts.items() if words == f"[text]({name})"} == {
        text.name for text in TEXTS
    }
    assert all((words == "none") != (state == "not sent") for *_, words, state in rows)


@every("page", PAGES, ids=lambda page: page.stem)
def test_what_others_reported_gets_no_text_of_ours(page):
    """A page with a thread, or whose bug is mended, has none."""
    text = page.read_text("utf-8")
    known = "Reported:" in text or "has a mend" in text or "A matter of quality" in text

    assert known != (DOCS / "upstream" / page.name).exists()
