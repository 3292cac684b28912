"""Figures of the pages are made by a test, or carry the day and the version that gave them."""

import json
import re

import pytest
from support.documentation import FENCE, ROOT, pages
from support.shipped import suite
from support.tables import every

HISTORY = {"docs/changelog.md", "docs/reports.md"}  # of what was, and what others report
PAGES = [
    page
    for page in [*pages(), *sorted((ROOT / "specs").rglob("*.md"))]
    if page.relative_to(ROOT).as_posix() not in HISTORY
    and page.parent.name not in {"findings", "upstream"}  # each states its version and runs
]
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
SHARE = re.compile(r"\b\d[\d.,]* %|\b\d[\d.,]* of (?:the )?\d[\d.,]*\b")
RUNTIMES = (ROOT / "docs/results/runtimes.md").read_text("utf-8")
# Name in prose -> the version that docs/results/runtimes.md has judged.
JUDGED = {
    written: re.search(rf"^- {name} (\d+\.\d+\.\d+)", RUNTIMES, re.MULTILINE)[1]
    for written, name in {
        "ONNX Runtime": "onnxruntime",
        "onnxruntime": "onnxruntime",
        "OpenVINO": "openvino",
        "openvino": "openvino",
        "tract": "tract",
        "MNN": "mnn",
    }.items()
}
VERSION = re.compile(rf"\b({'|'.join(JUDGED)}) (\d+\.\d+\.\d+)")
# Shares that are no measurement, or are made: in the blocks that run, or by a test.
MADE = {
    "docs/explanation/numerics.md": {"5 %": "a rule of generate"},
    "docs/failures.md": {"37 of 60": "an example of a failure"},
    "docs/howto/extract.md": {"32 of 100": "an example of a warning"},
    "docs/relations.md": {"5 %": "a rule of relations"},
    "docs/security.md": {"5 %": "a rule of generate"},
    "docs/tutorial.md": {"8 of 11": "printed by the block above"},
}


def undated(page, pattern):
    """Matches of a pattern in a page's prose and tables, of which no day is said.

    It stands in the same paragraph or table, in the first paragraph of the section, or before the
    first section.
    """
    text = FENCE.sub("", page.read_text("utf-8"))
    head, *sections = re.split(r"^## .*$", text, flags=re.MULTILINE)
    for section in [head, *sections]:
        blocks = re.split(r"\n\s*\n", section.strip())
        for block in blocks:
            if not any(map(DATE.search, (block, blocks[0], head))):
                yield from pattern.finditer(block)


@every("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_share_is_made_or_has_its_day(page):
    """So that a reader knows what it was true of."""
    known = MADE.get(page.relative_to(ROOT).as_posix(), {})

    assert {found[0] for found in undated(page, SHARE)} == {*known}


@every("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_version_is_the_one_judged_or_has_its_day(page):
    """docs/results/runtimes.md says which versions are the present ones."""
    found = {(name, version) for name, version in map(re.Match.groups, undated(page, VERSION))}

    assert {pair for pair in found if JUDGED[pair[0]] != pair[1]} == set()


def packs():
    """Names and numbers of cases that the page of packs has."""
    text = (ROOT / "docs/howto/packs.md").read_text("utf-8")
    return re.findall(r"^\| `([\w-]+)` \| (\d+) \|", text, re.MULTILINE)


@pytest.mark.parametrize(("name", "count"), packs())
def test_a_suite_has_as_many_cases_as_the_page_says(name, count):
    """Its pack, too, if it is committed."""
    manifest = ROOT / "vectors" / name / "manifest.json"

    assert len(suite(name).entries) == int(count)
    if manifest.exists():
        assert len(json.loads(manifest.read_text("utf-8"))["cases"]) == int(count)


def test_results_are_of_packs_as_they_are():
    """`N of M cases` of a pack that ships has its M."""
    found = re.findall(r"the pack `(\w+)`: \d+\s+of (\d+)\s+cases", RUNTIMES)

    assert found
    assert set(found) <= set(packs())
