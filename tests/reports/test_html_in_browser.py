"""Claims about HTML reports as Chromium shows them, without network."""

from __future__ import annotations

import pytest
from support.browser import PROGRAM
from support.pictures import FOLDER, HEIGHT, WIDTH
from support.verifications import CASES, REPORTS, every_verdict, judged, many, report
from support.web_pages import CONTRAST, WIDTHS

from rnncli.judging.comparing.verdict import Verdict
from rnncli.reports.html import write_html

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no chromium or google-chrome on the PATH")
SHOWN = "[...document.querySelectorAll('.case')].map(c => c.querySelector('.id').textContent)"
COUNT = "document.getElementById('found').textContent"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each report as a page."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name.replace(' ', '_')}.html" for name in (*REPORTS, "thousands")}
    for name, path in paths.items():
        write_html(path, many(5000) if name == "thousands" else REPORTS[name])
    return paths


@pytest.mark.parametrize(
    ("width", "scheme"),
    list(zip(WIDTHS.values(), ("light", "dark", "light"), strict=True)),
    ids=WIDTHS,
)
@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_fetched_and_nothing_overflows(browser, pages, name, width, scheme):
    """One request, for the page itself; no error, no complaint; no scrolling to the side.

    Colours do not depend on the width.
    """
    browser.open(pages[name], width=width, scheme=scheme)

    assert browser.requests == [pages[name].as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_the_policy_holds(browser, pages):
    """A script that got in would not run, an image would not load."""
    browser.open(pages["one"])
    browser.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'x.png'}),"
        " Object.assign(document.createElement('script'), {textContent: 'document.title = 1'}))"
    )
    browser.settle()

    assert browser.evaluate("document.title").startswith("onnxruntime")
    assert len([c for c in browser.complaints if "Content Security Policy" in str(c)]) == 2


@pytest.mark.parametrize(
    ("fragment", "wanted"),
    [
        ("", list(CASES)),
        ("#operator=RNN-14", ["rnn_14_exact", "rnn_14_bad_shape"]),
        ("#flag=Ragged", ["lstm_14_reverse_float16_ragged"]),
        *((f"#verdict={v}", [i for i, (said, _) in CASES.items() if said == v]) for v in Verdict),
        ("#verdict=expected", ["lstm_14_known"]),
        ("#verdict=failing", [c.id for c in every_verdict().cases if c.details.fails]),
        ("#operator=GRU-14&verdict=crashed", ["gru_14_empty"]),
        ("#q=sigabrt", ["gru_14_empty"]),
        ("#q=RAGGED+float16", ["lstm_14_reverse_float16_ragged"]),
        (
            "#q=bias+of+the+forget+gate",
            ["lstm_14_reverse_float16_ragged", "lstm_14_known"],
        ),
        ("#case=lstm_14_known", ["lstm_14_known"]),
        ("#verdict=pass&operator=GRU-14", []),
        ("#verdict=nonsense&unknown=1", []),
        ("#cases", list(CASES)),
    ],
)
def test_the_address_filters(browser, pages, fragment, wanted):
    """So that a selection can be sent to somebody; the controls show what it is."""
    browser.open(pages["every verdict"], fragment)

    assert browser.evaluate(SHOWN) == wanted
    of = "" if len(wanted) == len(CASES) else f"of {len(CASES)} "
    assert browser.evaluate(COUNT) == f"{len(wanted)} {of}cases"


def test_a_cause_leads_to_what_it_explains(browser, pages):
    """A link for each; a case says what is behind it."""
    browser.open(pages["diagnosed"])
    browser.evaluate("document.querySelectorAll('.causes a')[1].click()")
    browser.settle()

    assert browser.evaluate(SHOWN) == ["lstm_14_known"]
    body = browser.evaluate("document.querySelector('.case[open] .body').innerText")
    assert "diagnosis: clip-scope=gates: Reads" in body


def test_the_order_can_be_chosen(browser, pages):
    """The largest margin first, infinity before all; or the slowest."""
    browser.open(pages["every verdict"], "#sort=margin")
    assert browser.evaluate(SHOWN)[:2] == ["rnn_14_exact", "lstm_14_reverse_float16_ragged"]

    browser.open(pages["every verdict"], "#sort=seconds")
    assert browser.evaluate(SHOWN)[0] == "gru_14_long"


def test_controls_filter_and_are_kept_in_the_address(browser, pages):
    """By choosing, by typing; reset shows everything again."""
    browser.open(pages["every verdict"])
    browser.evaluate("document.getElementById('verdict').value = 'differs'")
    browser.evaluate("document.getElementById('verdict').dispatchEvent(new Event('input'))")
    browser.evaluate("document.getElementById('q').focus()")
    for key in "exact":
        browser.press(key, ord(key.upper()), key)

    assert browser.evaluate(SHOWN) == ["rnn_14_exact"]
    assert browser.evaluate("location.hash") == "#q=exact&verdict=differs"

    browser.evaluate("document.getElementById('reset').click()")
    browser.settle()
    assert browser.evaluate(SHOWN) == list(CASES)
    assert browser.evaluate("document.getElementById('verdict').value") == ""


@pytest.mark.parametrize(
    ("link", "wanted"),
    [
        ("a.tile.crashed", ["gru_14_empty"]),
        (".outcome a", [c.id for c in every_verdict().cases if c.details.fails]),
        ("#operators ~ div .heat.timeout a", ["gru_14_long"]),
        ("#features ~ div .heat.acceptable a", ["lstm_14_alpha_order"]),
    ],
)
def test_tiles_and_grids_lead_to_their_cases(browser, pages, link, wanted):
    """Each count is a link to what it counts, and the list comes into view."""
    browser.open(pages["every verdict"])
    browser.evaluate(f'document.querySelector("{link}").click()')
    browser.settle()

    assert browser.evaluate(SHOWN) == wanted
    assert browser.evaluate("document.getElementById('cases').getBoundingClientRect().top") < 900


def test_a_case_opens_by_keyboard(browser, pages):
    """Tab reaches it, Enter opens it; only then is it drawn."""
    browser.open(pages["every verdict"])
    browser.evaluate("document.getElementById('reset').focus()")
    for _ in range(4):
        browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.querySelector('.id').textContent") == (
        "lstm_14_reverse_float16_ragged"
    )
    assert browser.evaluate("document.querySelectorAll('.body').length") == 0
    browser.press("Enter", 13, "\r")

    body = browser.evaluate("document.querySelector('.case[open] .body').innerText")
    for words in (
        "worst at [2,0,1,3]: got 0.4312, expected 0.1187 +- 0.0004",
        "fits forget-bias-plus-one",
        "-k id:lstm_14_reverse_float16_ragged",
    ):
        assert words in body


def test_the_error_map_is_drawn(browser, pages):
    """A cell for each step and unit, coloured by its margin, with it in words."""
    browser.open(pages["every verdict"], "#case=lstm_14_reverse_float16_ragged")
    cells = "[...document.querySelectorAll('.maps .cell')]"
    levels = browser.evaluate(f"{cells}.map(c => c.getAttribute('class').slice(-1))")

    assert levels == list("120153634")
    assert browser.evaluate(f"{cells}[4].textContent") == "t 1, unit 1: margin up to 1000"
    assert browser.evaluate(f"{cells}[6].textContent").endswith("or infinite")


def test_a_condensed_error_map_says_what_its_cells_stand_for(browser, tmp_path):
    """Of 500 steps and 100 units in two directions, 32 by 64 cells each."""
    verdict, more = CASES["lstm_14_reverse_float16_ragged"]
    sizes = {"seq_length": 500, "hidden_size": 100}
    case = judged(
        "long_1",
        verdict,
        {**more, "error_map": ((0.5,) * 64,) * 64, "seconds": 0.1234},
        sizes=sizes,
        requirements={"direction": "bidirectional"},
    )
    write_html(tmp_path / "long.html", report([case]))
    browser.open(tmp_path / "long.html", width=375)
    captions = "[...document.querySelectorAll('.maps figcaption')].map(c => c.textContent)"
    cells = "[...document.querySelectorAll('.maps .cell title')].map(c => c.textContent)"

    assert browser.evaluate(captions) == ["forward, t = 0 to 499", "reverse, t = 0 to 499"]
    assert browser.evaluate(f"{cells}.length") == 64 * 64
    assert browser.evaluate(f"{cells}[0]") == "t 0 to 14, unit 0: margin up to 0.63"
    assert browser.evaluate(f"{cells}[32 * 64 - 1]").startswith("t 484 to 499, unit 98 to 99:")
    assert browser.evaluate("document.querySelector('.seconds').textContent") == "120 ms"
    assert browser.evaluate("document.documentElement.scrollWidth") <= 375


def test_malice_stays_text(browser, pages):
    """Every hostile case can be opened; no script of theirs ran, none was even blocked."""
    browser.open(pages["hostile"])
    browser.evaluate("document.querySelectorAll('.case').forEach(c => { c.open = true; })")
    browser.settle()

    bodies = browser.evaluate("document.querySelectorAll('.body').length")
    assert bodies == len(REPORTS["hostile"].cases)
    assert browser.evaluate("document.title").startswith("</script><script>document.title='owned'")
    assert browser.evaluate("document.scripts.length") == 2
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_hostile_feature_can_be_filtered_by(browser, pages):
    """What the links say is what the data says."""
    browser.open(pages["hostile"])
    browser.evaluate("document.querySelector('#features ~ div tbody th a').click()")
    browser.settle()

    assert browser.evaluate(COUNT) == f"{len(REPORTS['hostile'].cases)} cases"


def test_thousands_of_cases_are_drawn_as_needed(browser, pages):
    """A hundred at first, more by scrolling or by the button; a filter finds any of them."""
    browser.open(pages["thousands"])
    drawn = "document.querySelectorAll('.case').length"
    assert browser.evaluate(drawn) == 100
    assert browser.evaluate(COUNT) == "5000 cases"

    browser.evaluate("document.getElementById('more').scrollIntoView()")
    browser.settle()
    browser.settle()
    assert 100 < browser.evaluate(drawn) < 1000

    browser.open(pages["thousands"], "#q=_4991")
    (shown,) = browser.evaluate(SHOWN)
    assert shown.endswith("_4991")


PAPER = "getComputedStyle(document.body).backgroundColor"


def test_light_and_dark(browser, pages):
    """As the system has it, until the button is pressed."""
    seen = {}
    for scheme in ("light", "dark"):
        browser.open(pages["one"], scheme=scheme)
        seen[scheme] = browser.evaluate(PAPER)
    assert seen["light"] == "rgb(255, 255, 255)" != seen["dark"]

    assert browser.evaluate("document.getElementById('theme').textContent") == "Light"
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(PAPER) == seen["light"]
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(PAPER) == seen["dark"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, pages, scheme):
    """Every text has the contrast that WCAG 2.2 asks for, 4.5 to 1, in both schemes."""
    browser.open(pages["every verdict"], "#verdict=differs", scheme=scheme)
    browser.evaluate("document.querySelectorAll('.case').forEach(c => { c.open = true; })")
    browser.settle()
    ratio, where = browser.evaluate(CONTRAST)

    assert ratio >= 4.5, where


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_a_report_is_drawn_whole(browser, tmp_path, scheme):
    """As pages show it, as an image: nothing is fetched, and nothing is cut at its lower end."""
    picture = FOLDER / "report.svg"
    (tmp_path / "page.html").write_text(f'<img src="{picture.as_uri()}" width="{WIDTH}">')
    browser.open(tmp_path / "page.html", scheme=scheme)
    assert browser.complaints == []
    assert browser.evaluate("document.images[0].naturalWidth") > 0

    browser.open(picture, scheme=scheme)
    assert browser.requests == [picture.as_uri()]
    bottom = "document.querySelector('main').getBoundingClientRect().bottom"
    scale = f"document.documentElement.clientWidth / {WIDTH}"
    assert browser.evaluate(f"{bottom} / Math.min({scale}, innerHeight / {HEIGHT})") < HEIGHT


def test_every_control_has_a_name(browser, pages):
    """For those who hear the page."""
    browser.open(pages["every verdict"], "#case=lstm_14_reverse_float16_ragged")
    browser.ask("Accessibility.enable")
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "combobox", "searchbox", "image", "region", "search"}
    controls = [n for n in nodes if n.get("role", {}).get("value") in roles and not n["ignored"]]

    assert {n["role"]["value"] for n in controls} > {"button", "link", "combobox", "searchbox"}
    assert [n for n in controls if not n.get("name", {}).get("value")] == []
