"""Claims about the site of results as Chromium shows it, from a folder, without network."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from support.browser import PROGRAM
from support.verifications import REPORTS, SUBJECT
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
