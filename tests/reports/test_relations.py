"""Claims about the reports of relations, and about the table of them in the documentation."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import jsonschema
import junitparser
import pytest
from browser import PROGRAM
from relation_reports import REPORTS, holding, many, report
from web_pages import CONTRAST, FETCHING, WIDTHS, Elements

from rnncli.cases.config.schema import schema_text
from rnncli.cases.library import specs_folder
from rnncli.cli.verify import verify
from rnncli.metamorphic.relations import RELATIONS
from rnncli.reports.relations import WRITERS, relation_table, sentence, show_relations
from rnncli.reports.relations_html import relations_data, relations_page
from rnncli.reports.relations_schema import LINES, relations_schema
from rnncli.reports.verification import write_reports

DOCUMENT = Path(__file__).parents[2] / "docs" / "metamorphic.md"
VALIDATOR = jsonschema.Draft202012Validator(relations_schema())
EVERY = REPORTS["every verdict"]


@pytest.fixture
def written(tmp_path):
    """Write a report and return what stands in the file."""

    def write(kind, found):
        write_reports(found, {kind: str(tmp_path / kind)}, WRITERS)
        return (tmp_path / kind).read_text(encoding="utf-8")

    return write


def test_documentation_has_the_table():
    """It is what the rows say."""
    assert relation_table() in DOCUMENT.read_text(encoding="utf-8")


def test_help_names_every_relation():
    """`--relation` lists them in the order of the table."""
    (option,) = (each for each in verify.params if each.name == "relation")

    assert ", ".join(RELATIONS) in option.help


@pytest.mark.parametrize("name", REPORTS)
def test_json_is_as_its_schema_has_it(capsys, name):
    """A run, each verdict, a summary, whatever is in them."""
    show_relations(REPORTS[name], as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    for line in lines[:40] + lines[-1:]:
        VALIDATOR.validate(line)
    assert Counter(line["kind"] for line in lines) == Counter(
        {"run": 1, "summary": 1, "relation": len(REPORTS[name].verdicts)}
    )


def test_schema_is_the_file_that_ships():
    """`rnncli schema relations` wrote it."""
    path = specs_folder() / "relations.schema.json"

    assert path.read_text(encoding="utf-8") == schema_text(relations_schema())


@pytest.mark.parametrize("kind", LINES)
def test_schema_explains_every_field(kind):
    """Nothing is there without a word on it, and nothing else is allowed."""
    definition = relations_schema()["$defs"][kind]

    assert definition["additionalProperties"] is False
    assert [n for n, field in definition["properties"].items() if "description" not in field] == []


def test_a_data_set_is_named():
    """The first is the case; of another one its folder is said."""
    first, second = (sentence(each) for each in EVERY.verdicts if each.difference is not None)

    assert first.startswith("lstm_14_forward: tiles: broken: Y at t 2")
    assert "1 element differs" in first
    assert second.startswith("lstm_14_forward test_data_set_1: padding: broken: Y at t 2")
    assert "3 elements differ" in second


def test_a_narrow_terminal_is_not_exceeded(capsys, monkeypatch):
    """80 columns hold the table of a run that finds no bug, without a word that is broken."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("rnncli.reports.tables.ANY_WIDTH", 80)
    usual = {"holds", "refused", "not judged", "not applicable"}
    found = [v for v in EVERY.verdicts if v.status in usual]
    show_relations(report([*found, holding("lstm_14_forward", "sequences-permuted")]))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if "again" in line] == ["again"]
    assert ["relation", "cases", "holds", "refused", "unjudged", "n/a", "margin"] in [
        line.split() for line in lines
    ]


@pytest.mark.parametrize("name", REPORTS)
def test_junit_adds_up(tmp_path, name):
    """The counts that are written are those of a reader that counts for itself."""
    write_reports(REPORTS[name], {"junit": str(tmp_path / "junit.xml")}, WRITERS)
    suites = junitparser.JUnitXml.fromfile(tmp_path / "junit.xml")
    said = [(s.tests, s.failures, s.errors, s.skipped) for s in (suites, *suites)]
    for each in (*suites, suites):
        each.update_statistics()

    assert said == [(s.tests, s.failures, s.errors, s.skipped) for s in (suites, *suites)]
    assert suites.tests == len(REPORTS[name].verdicts) + bool(REPORTS[name].shortfall)


def test_junit_names_every_data_set_apart(tmp_path):
    """A CI server shows two test cases, not one that ran twice; a failure says how to repeat it."""
    write_reports(EVERY, {"junit": str(tmp_path / "junit.xml")}, WRITERS)
    suites = {suite.name: suite for suite in junitparser.JUnitXml.fromfile(tmp_path / "junit.xml")}
    (failure,) = next(iter(suites["tiles"])).result

    assert [case.name for case in suites["again"]] == [
        "lstm_14_forward",
        "lstm_14_forward test_data_set_1",
    ]
    assert failure.text.splitlines()[-1].endswith("-k id:lstm_14_forward --relation tiles")


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_tables_are_rectangular(written, name):
    """Every row has as many cells as its heading, whatever names hold."""
    text = re.sub(r"<pre>.*?</pre>", "", written("markdown", REPORTS[name]), flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    widths = [{len(re.findall(r"(?<!\\)\|", row)) for row in t.splitlines()} for t in tables]

    assert tables
    assert {len(each) for each in widths} == {1}


HEADINGS = {
    "one": "✅ onnxruntime: 0 of 1 relation fail",
    "every verdict": "❌ onnxruntime: 6 of 12 relations fail",
    "empty": "⚠️ onnxruntime: relations of no case were judged",
    "not judged": "⚠️ onnxruntime: relations of no case were judged",
}


@pytest.mark.parametrize("name", HEADINGS)
def test_headings_tell_the_outcome(written, name):
    """In Markdown and on the page: an empty run is not a good one."""
    words = HEADINGS[name]

    assert written("markdown", REPORTS[name]).startswith(f"## {words}")
    assert words.partition(": ")[2] in relations_page(REPORTS[name])


def test_markdown_opens_each_failure(written):
    """With what was asked, what it finds, and how to repeat it; then why others were not judged."""
    text = written("markdown", EVERY)

    assert text.count("<details>") == text.count("</details>") == EVERY.fails
    assert "repeat: rnncli verify vectors/core --metamorphic --runtime onnxruntime -k id:" in text
    assert "- directions not applicable to 1" in text


def test_markdown_malice_stays_text(written):
    """No tag but our own, no cell or line that was not meant."""
    tags = set(re.findall(r"<[^>]*>", written("markdown", REPORTS["hostile"])))

    assert tags == {
        *("<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"),
        *("<pre>", "</pre>"),
    }


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_holds_all_it_needs(name):
    """No element that fetches, no address but its own fragments; malice adds no tag."""
    page = relations_page(REPORTS[name])
    elements = Elements(page)
    addresses = [
        value
        for _, attributes in elements.tags
        for key, value in attributes.items()
        if key in {"src", "href", "xlink:href", "srcset", "action", "data", "poster"}
    ]

    assert not {tag for tag, _ in elements.tags} & FETCHING
    assert {address[0] for address in addresses} == {"#"}
    assert page.count("<script") == 2
    assert not set("\x00\x1b\u202e\ud800") & set(page)
    assert page == relations_page(REPORTS[name])


def test_the_grid_stands_without_a_script():
    """Counts by relation are in the page itself."""
    text = re.sub(r"<[^>]*>", " ", relations_page(EVERY).partition("<script")[0])

    assert re.search(r"tiles\s+the batch in two parts\s+1\s+·\s+1\s", text)
    assert "one direction" in text


def test_thousands_of_verdicts_make_a_page_that_loads():
    """What many share is written once."""
    page = relations_page(many(10_000))

    assert len(page) < 3_500_000
    assert len(relations_data(many(10_000))["reasons"]) < 20


in_browser = pytest.mark.skipif(not PROGRAM, reason="no chromium or google-chrome on the PATH")
SHOWN = "[...document.querySelectorAll('.case')].map(c => c.querySelector('.id').textContent)"
COUNT = "document.getElementById('found').textContent"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each report as a page."""
    folder = tmp_path_factory.mktemp("relations")
    paths = {name: folder / f"{name.replace(' ', '_')}.html" for name in REPORTS}
    for name, path in paths.items():
        write_reports(REPORTS[name], {"html": str(path)}, WRITERS)
    return paths


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_fetched_and_nothing_overflows(browser, pages, name, width, scheme):
    """One request, for the page itself; no error, no complaint; no scrolling to the side."""
    browser.open(pages[name], width=width, scheme=scheme)

    assert browser.requests == [pages[name].as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@in_browser
@pytest.mark.parametrize(
    ("fragment", "wanted"),
    [
        ("#relation=tiles", ["lstm_14_forward"]),
        ("#verdict=failing", [v.case for v in EVERY.failures]),
        ("#verdict=not+judged", ["gru_14_ragged"]),
        ("#relation=the+case+itself&verdict=timeout", ["gru_14_long"]),
        ("#q=sigabrt", ["gru_14_ragged"]),
        ("#q=test_data_set_1", ["lstm_14_forward test_data_set_1"] * 2),
        ("#relation=nonsense", []),
    ],
)
def test_the_address_filters(browser, pages, fragment, wanted):
    """So that a selection can be sent to somebody; the controls show what it is."""
    browser.open(pages["every verdict"], fragment)
    shown = [name.removesuffix(" test_data_set_1") for name in browser.evaluate(SHOWN)]

    assert shown == [name.removesuffix(" test_data_set_1") for name in wanted]
    assert browser.evaluate(COUNT) == f"{len(wanted)} of 12 verdicts"


@in_browser
def test_a_verdict_says_all_that_the_terminal_says(browser, pages):
    """What was asked, what is wrong, what was compared, how to repeat it."""
    browser.open(pages["every verdict"], "#relation=tiles")
    body = browser.evaluate("document.querySelector('.case[open] .body').innerText")

    for words in (
        "Asked: the batch in two parts.",
        "Y at t 2, direction 0, sequence 1, unit 3: 0.5, and transformed 0.25",
        "40 of 40 elements compared; equality: derived",
        "-k id:lstm_14_forward --relation tiles",
    ):
        assert words in body


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, pages, scheme):
    """Every text has the contrast that WCAG 2.2 asks for, 4.5 to 1, in both schemes."""
    browser.open(pages["every verdict"], scheme=scheme)
    browser.evaluate("document.querySelectorAll('.case').forEach(c => { c.open = true; })")
    browser.settle()
    ratio, where = browser.evaluate(CONTRAST)

    assert ratio >= 4.5, where


@in_browser
def test_malice_stays_text(browser, pages):
    """Every hostile verdict can be opened; no script of theirs ran."""
    browser.open(pages["hostile"])
    browser.evaluate("document.querySelectorAll('.case').forEach(c => { c.open = true; })")
    browser.settle()

    assert browser.evaluate("document.scripts.length") == 2
    assert browser.complaints == []


def test_a_run_in_which_nothing_was_judged_is_not_green():
    """However many verdicts there are."""
    assert not REPORTS["not judged"].passed
    assert report().shortfall == "relations of no case were judged; --min-cases requires 1"
