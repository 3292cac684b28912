"""Claims about the picture of a kill matrix: in the page itself, and as Chromium shows it."""

from __future__ import annotations

import itertools
import json
import math
import re

import pytest
from support.browser import PROGRAM
from support.verifications import HOSTILE

from rnncli.judging.scoring.adequacy import Fate, Outcome
from rnncli.judging.scoring.kill_matrix import KillMatrix, VectorRow
from rnncli.mutants.catalogue import scored_of, structural_of
from rnncli.reports import pages
from rnncli.reports.html import letter
from rnncli.reports.scores import score_data, score_page, write_score_page
from rnncli.talk.installing import install_line

KILLED, INFINITE = Outcome(Fate.KILLED, 25.0), Outcome(Fate.KILLED, math.inf)
READ = Outcome(Fate.ACCEPTABLE, 9.0, "answers as clip-scope=gates has it")
MISSED, UNSEEN = Outcome(Fate.SURVIVED, 0.5), Outcome(Fate.EQUIVALENT, reason="T is 1")
KINDS = (KILLED, MISSED, UNSEEN, READ, INFINITE)


def row(cell, name, k=0):
    """A vector that sees one mutant after the other differently."""
    names = [mutant.id for mutant in scored_of(cell)]
    outcomes = {mutant: KINDS[(i * (k + 1) + 2 * k) % len(KINDS)] for i, mutant in enumerate(names)}
    found = {mutant.id: KINDS[(i + k) % 3] for i, mutant in enumerate(structural_of(cell))}
    sizes = {"T": 5, "N": 3, "I": 2, "H": 5 + k}
    return VectorRow(name, cell, "float32", outcomes, f"{cell}-14", sizes, 1 + k % 2, found)


SOME = KillMatrix(
    "some",
    "the pack's tolerances",
    (row("LSTM", "lstm_a"), row("LSTM", "lstm_b", 1), row("RNN", "rnn_a", 2)),
    {"rnn_bad": "must be refused"},
)
MANY = KillMatrix("many", "rtol 1", tuple(row("GRU", f"gru_{k}", k % 5) for k in range(450)))
HOSTILE_ONE = KillMatrix(HOSTILE, HOSTILE, (row("RNN", HOSTILE),), {HOSTILE: HOSTILE})
MATRICES = {"some": SOME, "many": MANY, "hostile": HOSTILE_ONE}
LSTM = scored_of("LSTM")


def cells(matrix):
    """What the script knows of each cell."""
    return {cell["name"]: cell for cell in score_data(matrix)["cells"]}


def test_every_outcome_is_in_the_picture():
    """The fate and the margin of each mutant in each vector, in the order of the mutants."""
    for cell in cells(SOME).values():
        for vector in cell["vectors"]:
            outcomes = next(row for row in SOME.rows if row.id == vector["id"]).outcomes
            found = [outcomes[mutant] for mutant, _, _ in cell["mutants"]]
            assert vector["fates"] == "".join(each.fate[0] for each in found)
            assert vector["margins"] == "".join(letter(each.margin) for each in found)
            reasons = [score_data(SOME)["reasons"][k] for k in vector["why"]]
            assert reasons == [each.reason for each in found if each.reason]


def test_families_stay_together():
    """Every mutant once, none of a family behind one of another."""
    mutants = cells(SOME)["LSTM"]["mutants"]
    families = [family for _, family, _ in mutants]

    assert sorted(name for name, _, _ in mutants) == sorted(each.id for each in LSTM)
    assert len(list(dict.fromkeys(families))) == 1 + sum(
        a != b for a, b in itertools.pairwise(families)
    )


def test_the_top_row_is_the_best_of_all():
    """What no vector kills is seen at once."""
    cell = cells(SOME)["LSTM"]
    best = "".join(
        min(fates, key="kase".index)
        for fates in zip(*(v["fates"] for v in cell["vectors"]), strict=True)
    )

    assert cell["fates"] == best
    assert {"k", "a", "s"} <= set(best)


def test_who_is_enough_and_who_alone_kills_is_known():
    """For the choice of vectors."""
    for cell in cells(SOME).values():
        for vector in cell["vectors"]:
            assert vector["enough"] == (vector["id"] in SOME.minimal_subset())
            names = [cell["mutants"][k][0] for k in vector["only"]]
            assert names == SOME.only[vector["id"]]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Each matrix as a page."""
    folder = tmp_path_factory.mktemp("pages")
    for name, matrix in MATRICES.items():
        write_score_page(folder / f"{name}.html", matrix)
    return folder


@pytest.mark.parametrize("name", MATRICES)
def test_a_page_is_whole_and_always_the_same(written, name):
    """Nothing is fetched, nothing stands in it but text, and its tables need no script."""
    page = (written / f"{name}.html").read_text(encoding="utf-8")
    data, _ = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)

    assert page.startswith(score_page(MATRICES[name]))
    assert len(json.loads(data)["cells"]) == len(MATRICES[name].by_cell)
    assert "default-src 'none'" in page
    assert page.count("<script") == 2
    assert not set("\x00\x1b\u202e\ud800") & set(page)
    assert f"{MATRICES[name].total.percent:.1f} %" in page.partition("<script")[0]


def test_tables_say_what_survives_and_why():
    """With the sentence of the mutant; who alone kills; what was not scored."""
    text = re.sub(r"<[^>]*>", " ", score_page(SOME).partition("<script")[0])
    text = " ".join(text.split())

    survivor = SOME.survivors[0]
    assert f"{survivor.bug.mutant} " in text
    assert "answers as clip-scope=gates has it" in text
    assert "rnn_bad: must be refused" in text
    assert SOME.only["rnn_a"][0] in text.partition("Killed by one vector only")[2]


def test_ten_thousand_outcomes_are_small():
    """A letter for a fate, one for a margin, a number for a reason."""
    outcomes = sum(len(row.outcomes) for row in MANY.rows)

    assert len(json.dumps(score_data(MANY))) < 5 * outcomes


def test_a_missing_extra_is_said(tmp_path, monkeypatch):
    """With the line that installs it, and without a file."""
    monkeypatch.setattr(pages, "NEEDED", ("nowhere_to_be_found",))

    with pytest.raises(Exception, match="needs nowhere_to_be_found; ") as raised:
        write_score_page(tmp_path / "x.html", SOME)
    assert str(raised.value).endswith(install_line("report"))
    assert list(tmp_path.iterdir()) == []


needs_browser = pytest.mark.skipif(not PROGRAM, reason="no chromium or google-chrome on the PATH")
TOLD = "document.getElementById('told').innerText"
ROWS = "[...document.querySelectorAll('.matrix li .id')].map(e => e.textContent)"


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (768, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", MATRICES)
def test_nothing_is_fetched_and_nothing_overflows(browser, written, name, width, scheme):
    """One request, no complaint, no scrolling to the side; colours do not depend on the width."""
    browser.open(written / f"{name}.html", width=width, scheme=scheme)

    assert browser.requests == [(written / f"{name}.html").as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def place(browser, row, column):
    """The middle of a mutant's column in a row of the first panel, in pixels of the window."""
    box = browser.evaluate(
        "(() => {const b = document.querySelectorAll('.matrix')[0]"
        f".querySelectorAll('li .strip')[{row}].getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]})()"
    )
    families = [mutant[1] for mutant in cells(SOME)["LSTM"]["mutants"]]
    gaps = len(set(families[: column + 1])) - 1
    step = (box[2] - 2 * (len(set(families)) - 1)) / len(families)
    return box[0] + (column + 0.5) * step + 2 * gaps, box[1] + box[3] / 2


@needs_browser
@pytest.mark.parametrize("width", [375, 1280])
def test_pointing_tells_the_mutant_and_the_margin(browser, written, width):
    """Under the pointer, on a phone as on a desk; a line marks it in all vectors."""
    browser.open(written / "some.html", width=width)
    browser.evaluate("document.querySelectorAll('.matrix li')[1].scrollIntoView()")
    for column in (0, 7, 90, len(LSTM) - 1):
        assert_told(browser, column)


def assert_told(browser, column):
    """What is said of a mutant of the second vector, where the pointer is on it."""
    x, y = place(browser, 1, column)
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.settle()
    told = browser.evaluate(TOLD)
    name = cells(SOME)["LSTM"]["mutants"][column][0]
    found = SOME.rows[1].outcomes[name]

    assert told.startswith(name)
    assert f"lstm_b: {found.fate.value}" in told
    assert found.reason in told
    assert ("margin" in told) == (found.fate is not Fate.EQUIVALENT)
    left = browser.evaluate("document.querySelector('.marker').getBoundingClientRect().left")
    assert abs(left - x) < 1.5


@needs_browser
def test_arrow_keys_walk(browser, written):
    """Tab reaches one strip of a panel; the keys move through mutants and vectors."""
    browser.open(written / "some.html")
    browser.evaluate("document.querySelector('.matrix li .id').focus()")
    browser.press("Tab", 9)
    names = [mutant[0] for mutant in cells(SOME)["LSTM"]["mutants"]]
    assert browser.evaluate(TOLD).startswith(names[0])
    for key, code in (("ArrowRight", 39), ("ArrowRight", 39), ("ArrowDown", 40), ("ArrowLeft", 37)):
        browser.press(key, code)
    browser.settle()
    told = browser.evaluate(TOLD)

    assert told.startswith(names[1])
    assert "lstm_b: " in told
    for _ in range(3):
        browser.press("ArrowLeft", 37)
    assert browser.evaluate(TOLD).startswith(names[0])


@needs_browser
def test_a_mutant_can_be_chosen(browser, written):
    """By its name; who kills it is told."""
    browser.open(written / "some.html")
    browser.evaluate(
        "(() => {const s = document.querySelector('.matrix select'); s.value = 0;"
        " s.dispatchEvent(new Event('input'))})()"
    )
    killers = [row.id for row in SOME.rows[:2] if cells(SOME)["LSTM"]["mutants"][0][0] in row.kills]

    assert f"Killed by {len(killers)} of 2 vectors" in browser.evaluate(TOLD)
    assert all(name in browser.evaluate(TOLD) for name in killers)


@needs_browser
def test_a_vector_opens(browser, written):
    """What it kills, by family, and what it alone kills; again, and it is closed."""
    browser.open(written / "some.html")
    click = "document.querySelector('.matrix li .id').click()"
    browser.evaluate(click)
    text = browser.evaluate("document.querySelector('.listed').innerText")

    assert all(mutant in text for mutant in SOME.rows[0].kills)
    assert text.startswith("it alone: ")
    browser.evaluate(click)
    assert browser.evaluate("document.querySelectorAll('.listed').length") == 0


@needs_browser
def test_vectors_are_chosen_and_ordered(browser, written):
    """The few that are enough; those that kill most first."""
    browser.open(written / "some.html")
    choose = (
        "(() => {const s = document.getElementById('%s'); s.value = '%s';"
        " s.dispatchEvent(new Event('input'))})()"
    )
    browser.evaluate(choose % ("which", "enough"))
    assert sorted(browser.evaluate(ROWS)) == sorted(SOME.minimal_subset())
    browser.evaluate(choose % ("which", "all"))
    browser.evaluate(choose % ("order", "kills"))
    lstm = sorted(SOME.rows[:2], key=lambda row: -len(row.kills))
    assert browser.evaluate(ROWS) == [*(row.id for row in lstm), "rnn_a"]


@needs_browser
def test_many_vectors_come_in_chunks(browser, written):
    """Two hundred, then the next on demand."""
    browser.open(written / "many.html")
    assert len(browser.evaluate(ROWS)) == 200
    for _ in range(2):
        browser.evaluate("document.querySelector('.matrix .more').click()")

    assert len(browser.evaluate(ROWS)) == 450
    assert browser.evaluate("document.querySelector('.matrix .more').hidden")


@needs_browser
def test_colours_follow_the_theme(browser, written):
    """The strips are drawn again when the button is pressed."""
    browser.open(written / "some.html", scheme="light")
    pixel = (
        "[...document.querySelector('.matrix li .strip').getContext('2d')"
        ".getImageData(1, 5, 1, 1).data].slice(0, 3)"
    )
    light = browser.evaluate(pixel)
    browser.evaluate("document.getElementById('theme').click()")
    browser.settle()
    dark = browser.evaluate(pixel)
    browser.evaluate("document.getElementById('theme').click()")

    assert dark != light
