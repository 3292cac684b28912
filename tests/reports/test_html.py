"""Claims about HTML reports that need no browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from support.tables import every
from support.verifications import CASES, HOSTILE, REPORTS, every_verdict, judged, many, report
from support.web_pages import FETCHING, Elements

from rnncli.errors import Unsupported
from rnncli.reports import html, pages
from rnncli.reports.html import LETTERS, letter, page_data
from rnncli.reports.verification import check_reports, write_reports
from rnncli.talk.installing import install_line
from rnncli.talk.words import visible


@cache
def page_of(name):
    """The page of a report."""
    return html.page(REPORTS[name])


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_holds_all_it_needs(name):
    """No element that fetches, no address but its own fragments, no style that imports."""
    elements = Elements(page_of(name))
    addresses = [
        value
        for _, attributes in elements.tags
        for key, value in attributes.items()
        if key in {"src", "href", "xlink:href", "srcset", "action", "data", "poster"}
    ]

    assert not {tag for tag, _ in elements.tags} & FETCHING
    assert {address[0] for address in addresses} == {"#"}
    assert not re.search(r"@import|url\((?!#)", page_of(name).partition("</style>")[0])


@pytest.mark.parametrize("name", REPORTS)
def test_only_its_own_script_may_run(name):
    """The policy names the one script by its hash; the data is no script."""
    elements = Elements(page_of(name))
    policy = next(a["content"] for tag, a in elements.tags if "http-equiv" in a)
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", page_of(name), re.DOTALL)
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{checksum}';" in policy
    assert [a.get("type") for tag, a in elements.tags if tag == "script"] == [
        "application/json",
        None,
    ]
    assert len(json.loads(data)["cases"]) == len(REPORTS[name].cases)


def test_malice_stays_text():
    """Not one tag more, not one control character."""
    ours = {tag for tag, _ in Elements(page_of("every verdict")).tags}

    assert {tag for tag, _ in Elements(page_of("hostile")).tags} <= ours
    assert not set("\x00\x1b\u202e\ud800") & set(page_of("hostile"))
    assert page_of("hostile").count("<script") == 2


@pytest.mark.parametrize("name", REPORTS)
def test_the_same_report_gives_the_same_bytes(name):
    """No date, no random identifier."""
    assert html.page(REPORTS[name]) == page_of(name)


def test_the_grids_stand_without_a_script():
    """Counts by operator and by feature are in the page itself."""
    text = re.sub(r"<[^>]*>", " ", page_of("every verdict").partition("<script")[0])

    assert re.search(r"LSTM-14\s+6\s+2\s+1\s+·\s+3\s+·\s", text)
    assert re.search(r"Ragged\s+tests for: ignores sequence_lens", text)
    assert "10 of 15 cases fail" in text


@pytest.mark.parametrize(
    ("verification", "words"),
    [
        (report(), "No case was judged"),
        (
            report([judged("gru_14_double", *CASES["gru_14_double"])]),
            "No case was answered",
        ),
        (REPORTS["one"], "None of 1 cases fails"),
        (REPORTS["every verdict"], "10 of 15 cases fail"),
    ],
)
def test_the_heading_tells_the_outcome(verification, words):
    """An empty run is not a good one."""
    assert words in html.page(verification)


def test_one_bug_of_several_kernels_is_one_entry():
    """With a link for each cell, and what it explains there."""
    told = REPORTS["diagnosed"]
    first, *others = told.diagnosis.causes
    alike = [msgspec.structs.replace(first, cell=cell) for cell in ("GRU", "RNN")]
    diagnosis = replace(told.diagnosis, causes=(first, *others, *alike))
    page = html.page(replace(told, diagnosis=diagnosis))
    _, _, entries = page.partition('<ul class="causes">')
    entry, *rest = entries.partition("</ul>")[0].split("<li>")[1:]

    assert len(rest) == len(others)
    assert re.findall(r"<a [^>]*>(.+?)</a>: explains", entry) == [first.cell, "GRU", "RNN"]
    assert entry.count(f"<strong>{first.hypothesis}</strong>") == 1


def test_five_thousand_cases_make_a_page_that_loads():
    """A few megabytes at most: what all cases share is written once."""
    assert len(html.page(many(5000))) < 3_000_000


def test_a_large_error_map_takes_a_letter_a_cell():
    """64 x 64 margins are 4 KB."""
    verdict, more = CASES["lstm_14_reverse_float16_ragged"]
    row = tuple(k / 7 for k in range(64))
    case = judged("big_1", verdict, {**more, "error_map": (row,) * 64})
    (found,) = page_data(report([case]))["cases"]

    assert len(json.dumps(found["map"])) < 64 * 64 + 64 * 4 + 200


@every("margin", [10 ** (k / 7) for k in range(-20, 42)])
def test_a_letter_stands_for_margins_up_to_a_bound(margin):
    """The bound is at most 2 dB higher, and 1 is a bound: no error looks tolerated."""
    k = LETTERS.index(letter(margin))
    bound = 10 ** ((k - 15) / 5)

    assert margin <= bound * (1 + 1e-9)
    assert margin > bound / 10**0.2 * (1 - 1e-9) or k == 0
    assert (k <= 15) == (margin <= 1)


@pytest.mark.parametrize(
    ("margin", "wanted"),
    [
        (0.0, "."),
        (-1.0, "."),
        (1e-30, "A"),
        (1.0, LETTERS[15]),
        (math.nextafter(1, 2), LETTERS[16]),
        (1e6, LETTERS[-1]),
        (1.1e6, "!"),
        (math.inf, "!"),
        (math.nan, "!"),
    ],
)
def test_letters_at_the_ends(margin, wanted):
    """Exactly equal, at the tolerance, beyond all."""
    assert letter(margin) == wanted


@pytest.mark.parametrize(
    ("record", "panels", "steps"),
    [
        ({"requirements": {"direction": "bidirectional"}}, ["forward", "reverse"], 3),
        ({"requirements": {"direction": "reverse"}}, ["reverse"], 3),
        ({"requirements": {}}, ["forward"], 3),
    ],
)
def test_an_error_map_has_a_panel_for_each_direction(record, panels, steps):
    """As the rows of Y's map are: first one direction, then the other."""
    case = judged("x_1", *CASES["lstm_14_reverse_float16_ragged"], **record)
    (found,) = page_data(report([case]))["cases"]

    assert (found["map"]["panels"], found["map"]["steps"]) == (panels, steps)


def test_data_has_no_number_that_json_lacks():
    """Infinite margins are words; they order as the largest."""
    cases = page_data(every_verdict())["cases"]
    exact = next(case for case in cases if case["id"] == "rnn_14_exact")

    json.dumps(cases, allow_nan=False)
    assert exact["margin"] == "over 1000x"
    assert exact["order"] == max(case["order"] for case in cases)


def test_a_missing_extra_is_named_before_anything_is_judged(tmp_path, monkeypatch):
    """With the line that installs it, and without a file."""
    monkeypatch.setattr(pages, "NEEDED", ("jinja2", "nowhere_to_be_found"))
    path = tmp_path / "report.html"

    for use in (check_reports, lambda files: write_reports(every_verdict(), files)):
        with pytest.raises(Unsupported, match="needs nowhere_to_be_found; ") as raised:
            use({"html": str(path)})
        assert str(raised.value).endswith(install_line("report"))
    assert not path.exists()


def test_it_is_written(tmp_path):
    """The file is the page."""
    html.write_html(tmp_path / "report.html", REPORTS["hostile"])

    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written.startswith(page_of("hostile"))
    assert visible(HOSTILE).split("<", maxsplit=1)[0] in written


@pytest.mark.parametrize("number", [1, 10**18, 10**400])
def test_a_number_of_elements_beyond_64_bits_is_drawn(number):
    """Lines of strangers may say any."""
    assert html.draw_margins([number] * (len(html.MARGIN_EDGES) + 1)).count("beyond-") > 1


SCRIPT = """
import os
from rnncli.reports.pages import check_extra
check_extra()
import matplotlib
print(os.environ["MPLBACKEND"])
"""


def test_an_unknown_backend_of_matplotlib_ends_no_page(tmp_path):
    """The variable may name one that is not installed; nothing here uses it."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "MPLBACKEND": "nosuch"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "nosuch\n"), done.stderr
