"""Claims about the site of results as Chromium shows it, from a folder, without network."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from support.browser import PROGRAM
from support.verifications import CASES, REPORTS, SUBJECT, judged, report
from support.web_pages import CONTRAST, WIDTHS

from rnncli.reports.site import file_name, results_of, write_site

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no chromium or google-chrome on the PATH")
PAGES = {
    "index": "index.html",
    "runtime": "core/runtimes/onnxruntime.html",
    "feature": f"core/features/{file_name('Ragged')}.html",
    "case": "core/cases/lstm_14_reverse_float16_ragged.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Of eight runtimes, one with a name that breaks nowhere."""
    folder = tmp_path_factory.mktemp("pages") / "site"
    names = ["onnxruntime", "x" * 200, *(f"runtime {k}" for k in range(6))]
    runs = [
        replace(REPORTS["every verdict"], subject=structs.replace(SUBJECT, name=name))
        for name in names
    ]
    write_site(folder, results_of(runs))
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_can_be_read(browser, site, name, width, scheme):
    """The page and its style are all that it asks for; text has the contrast of WCAG AA."""
    browser.open(site / PAGES[name], width=width, scheme=scheme)

    assert browser.requests == [(site / path).as_uri() for path in (PAGES[name], "style.css")]
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "650"
    ratio, where = browser.evaluate(CONTRAST)
    assert ratio >= 4.5, where


FEATURES = "[...document.querySelectorAll('#core-features ~ .scroll tbody tr')]"
NAMES = f"{FEATURES}.filter(r => r.checkVisibility()).map(r => r.cells[0].innerText)"


def test_a_table_is_sorted_by_its_headings(browser, site):
    """The worst first, then the best first, then as it was; texts by the alphabet."""
    browser.open(site / "index.html")
    before = browser.evaluate(NAMES)
    press = "document.querySelectorAll('#core-features ~ .scroll .sort')[{}].click()"
    orders = []
    for _ in range(3):
        browser.evaluate(press.format(2))
        orders.append(browser.evaluate(NAMES))
    browser.evaluate(press.format(0))
    said = "[...document.querySelectorAll('[aria-sort]')].map(h => [h.innerText, h.ariaSort])"

    assert before == ["Reverse", "Ragged", "AlphaOrder"]
    assert orders == [before, ["AlphaOrder", "Reverse", "Ragged"], before]
    assert browser.evaluate(NAMES) == sorted(before)
    assert browser.evaluate(said) == [["feature", "ascending"]]


def test_rows_are_found_by_their_words(browser, site, tmp_path):
    """By what they are called and what they say; how many is said. Short tables have no field."""
    browser.open(site / "index.html")
    assert browser.evaluate("document.querySelectorAll('.find').length") == 0

    cases = [judged(f"lstm_14_{k}", *CASES["gru_14_layout"], flags=["Layout"]) for k in range(5)]
    more = [judged(f"gru_14_{k}", *CASES["lstm_14_forward"], flags=["Layout"]) for k in range(5)]
    write_site(tmp_path / "site", results_of([report([*cases, *more])]))
    browser.open(tmp_path / f"site/core/features/{file_name('Layout')}.html")
    found = "document.querySelector('.find [role=status]').textContent"
    shown = "[...document.querySelectorAll('tbody tr:not([hidden]) th')].map(c => c.innerText)"
    browser.evaluate("document.querySelector('.find input').focus()")
    for key in "gru 3":
        browser.press(key, ord(key.upper()), key)
    assert (browser.evaluate(shown), browser.evaluate(found)) == (["gru_14_3"], "1 of 10")

    browser.evaluate("document.querySelector('.find input').value = ''")
    for key in "refused":
        browser.press(key, ord(key.upper()), key)
    assert browser.evaluate(shown) == [f"lstm_14_{k}" for k in range(5)]


def test_the_chosen_colours_go_along(browser, site):
    """From page to page, until the system's are chosen again."""
    paper = "getComputedStyle(document.body).backgroundColor"
    press = "document.getElementById('theme').click()"
    browser.open(site / "index.html")
    light = browser.evaluate(paper)
    browser.evaluate(press)
    dark = browser.evaluate(paper)
    browser.open(site / PAGES["case"])
    assert light != dark == browser.evaluate(paper)

    browser.evaluate(press)
    browser.open(site / "index.html")
    assert browser.evaluate(paper) == light
