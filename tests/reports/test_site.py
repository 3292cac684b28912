"""Claims about the site of results: what it counts, links and escapes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from dataclasses import replace
from html import unescape
from importlib import import_module
from importlib.util import find_spec
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from msgspec import structs
from support.tables import every
from support.verifications import HOSTILE, REPORTS, claimed, judged, output, report
from support.web_pages import FETCHING, Elements

from rnncli.errors import InvalidRequest
from rnncli.files.described import jsonable, schema_of
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.report import JudgedSubject
from rnncli.reports.site import (
    RESULTS,
    as_markdown,
    badge,
    file_name,
    results_of,
    write_site,
)
from rnncli.reports.verification import case_record, run_record
from rnncli.reports.verification_schema import LINES

RENDERERS = [MarkdownIt("commonmark").enable("table").render]
if find_spec("markdown"):  # of the extra `docs`
    RENDERERS.append(import_module("markdown").markdown)
PASSES = (Verdict.PASS, {"outputs": (output(),)})
REFUSED = (Verdict.REFUSED, {"message": "no peepholes"})
RUN = report([judged("lstm_14_a", *PASSES), judged("lstm_14_ragged", *REFUSED)])
EARLIER = replace(
    report([judged("lstm_14_a", *REFUSED), judged("lstm_14_ragged", *PASSES)]),
    date="2026-01-02T00:00:00Z",
    subject=JudgedSubject("onnxruntime", {"version": "1.0"}),
)
LATER = replace(RUN, date="2026-05-02T00:00:00Z")
SITES = {
    "one run": [RUN],
    "a history": [LATER, EARLIER],
    "every verdict": [REPORTS["every verdict"], REPORTS["empty"]],
    "hostile": [REPORTS["hostile"], RUN],
    "two packs": [RUN, replace(RUN, pack=structs.replace(RUN.pack, name="../other pack"))],
}


def pages_of(folder):
    """Every page of a site: path -> its start tags."""
    pages = sorted(folder.rglob("*.html"))
    return {page: Elements(page.read_text("utf-8")).tags for page in pages}


@pytest.fixture(params=SITES)
def site(request, tmp_path):
    """A site, with what it is made from."""
    packs = results_of(SITES[request.param])
    folder = tmp_path / "site"
    assert write_site(folder, packs) == len([*folder.rglob("*.html")])
    return folder, packs


def test_every_link_of_a_site_leads_to_a_page_of_it(site):
    """Whatever packs, runtimes and cases are called."""
    folder, _ = site
    for page, tags in pages_of(folder).items():
        for _, attributes in tags:
            path = unquote(attributes.get("href", "")).partition("#")[0]
            assert not path or (page.parent / path).resolve().is_relative_to(folder.resolve())
            assert not path or (page.parent / path).is_file(), (page, path)


def test_a_site_fetches_nothing_but_its_style(site):
    """And runs no script but the one in each page that its policy names."""
    folder, _ = site
    for page, tags in pages_of(folder).items():
        fetched = [(tag, a) for tag, a in tags if tag in FETCHING or "src" in a]
        assert all(tag == "link" and a["href"].endswith("style.css") for tag, a in fetched)
        policy = next(a["content"] for _, a in tags if "http-equiv" in a)
        *_, script = re.findall(r"<script[^>]*>(.*?)</script>", page.read_text("utf-8"), re.DOTALL)
        checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{checksum}';" in policy
        assert sum(tag == "script" for tag, _ in tags) == 1 + (page.parent.name == "runs")


def test_tables_stand_without_a_script(tmp_path):
    """With the share of cases that are right, which is rounded down."""
    cases = [(f"lstm_14_{k}", *(REFUSED if k == 0 else PASSES)) for k in range(200)]
    write_site(tmp_path / "site", results_of([report([judged(*each) for each in cases])]))
    index = (tmp_path / "site/index.html").read_text("utf-8")
    text = re.sub(r"<[^>]*>", " ", index.partition("<script")[0])

    assert re.search(r"onnxruntime\s+99 %\s+199\s+1\s", text)


def test_a_site_is_the_same_bytes_each_time(site):
    """An older site is replaced as a whole."""
    folder, packs = site
    contents = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_site(folder, packs)

    assert contents == {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(("name", "text"), [("CNAME", "a.org"), (RESULTS, '{"mine": 1}')])
def test_a_folder_of_somebody_else_stays(name, text, tmp_path):
    """Whether a file lies in an older site, or beside results of the same name."""
    folder = tmp_path / "site"
    if name == "CNAME":
        write_site(folder, results_of([RUN]))
    (folder / "src").mkdir(parents=True)
    (folder / "src/precious.c").touch()
    (folder / name).write_text(text)
    before = sorted(folder.rglob("*"))
    with pytest.raises(InvalidRequest, match=f"{name} is not of an earlier output"):
        write_site(folder, results_of([RUN]))

    assert before == sorted(folder.rglob("*"))
    assert text == (folder / name).read_text()


def test_results_count_every_run(site):
    """For programs: as many verdicts as cases, of every run."""
    folder, packs = site
    runs = json.loads((folder / RESULTS).read_text("utf-8"))["runs"]
    reports = [run for pack in packs for runtime in pack.runtimes for run in runtime.runs]

    assert [sum(run["verdicts"].values()) for run in runs] == [len(run.cases) for run in reports]


def test_runs_of_a_runtime_are_its_history():
    """By date, with the cases that each fixed and broke; reports may come in any order."""
    ((pack,),) = [results_of([LATER, EARLIER])]
    (runtime,) = pack.runtimes

    assert [run.date for run, _ in runtime.history] == [LATER.date, EARLIER.date]
    assert [change for _, change in runtime.history] == [
        (("lstm_14_a",), ("lstm_14_ragged",)),
        ((), ()),
    ]
    assert [len(group.cases) for group in runtime.refusals] == [1]


def test_a_harness_has_the_name_that_it_gives_itself():
    """Whatever command line started it on which machine."""
    runs = [
        replace(RUN, subject=JudgedSubject(command, {"name": "mine", "version": "1"}))
        for command in ("node a.mjs", "node /elsewhere/a.mjs")
    ]
    ((pack,),) = [results_of(runs)]

    assert [(runtime.name, len(runtime.runs)) for runtime in pack.runtimes] == [("mine", 2)]


def test_a_case_page_says_what_each_runtime_did(tmp_path):
    """And how to do it again."""
    write_site(tmp_path / "site", results_of([LATER, EARLIER]))
    page = (tmp_path / "site/core/cases/lstm_14_ragged.html").read_text("utf-8")

    assert "refused: no peepholes" in page
    assert "rnncli verify vectors/core --runtime onnxruntime -k id:lstm_14_ragged" in page


@pytest.mark.parametrize(
    ("cases", "message", "colour"),
    [
        ([PASSES, PASSES], "2/2", "brightgreen"),
        ([PASSES, REFUSED], "1/2", "yellow"),
        ([PASSES, (Verdict.DIFFERS, {})], "1/2", "red"),
        ([(Verdict.SKIPPED, {})], "0/1", "yellow"),
        ([], "0/0", "yellow"),
    ],
)
def test_a_badge_is_green_only_if_something_passed(cases, message, colour):
    """A run without an answer is not."""
    run = report([judged(f"lstm_14_{k}", *said) for k, said in enumerate(cases)])
    ((pack,),) = [results_of([run])]

    drawn = badge(pack.runtimes[0])
    assert (drawn["message"], drawn["color"]) == (message, colour)


@pytest.mark.parametrize(
    ("cases", "more", "message", "colour"),
    [
        ([PASSES], {"concessions": ("--atol",)}, "1/1 with --atol", "blue"),
        ([PASSES], {"concessions": ("--select", "--trust")}, "1/1 with --select --trust", "blue"),
        (
            [(Verdict.DIFFERS, {"outputs": (output(),), "expected": "known"})],
            {"concessions": ("--xfails",)},
            "0/1 with --xfails",
            "yellow",
        ),
        ([PASSES, (Verdict.SKIPPED, {})], {}, "1/2", "yellow"),
    ],
)
def test_a_badge_is_bright_green_only_by_the_whole_pack_and_its_rule(cases, more, message, colour):
    """An option that concedes something is named, and a failure is counted though it is known."""
    run = report([judged(f"lstm_14_{k}", *said) for k, said in enumerate(cases)])
    ((pack,),) = [results_of([replace(run, **more)])]

    drawn = badge(pack.runtimes[0])
    assert (drawn["message"], drawn["color"]) == (message, colour)


P, S = Verdict.PASS, Verdict.SKIPPED
CLAIMED = {
    "2/3, conforms to its claim": (claimed(P, S, P), "blue"),
    "2/2, conforms to its claim": (claimed(P, P, concessions=()), "brightgreen"),
    "1/2, does not conform to its claim": (claimed(P, Verdict.REFUSED), "red"),
    "1/3, does not conform to its claim": (claimed(P, S, S), "red"),
    "0/1, does not conform to its claim": (claimed(S), "red"),
}


@every("message, run, colour", [(words, *row) for words, row in CLAIMED.items()], ids=str)
def test_a_badge_says_whether_a_runtime_conforms_to_its_claim(message, run, colour, tmp_path):
    """With how much of the pack is claimed; the pages say the same, with the digest."""
    ((pack,),) = [results_of([run])]
    drawn = badge(pack.runtimes[0])
    write_site(tmp_path / "site", [pack])
    (page,) = tmp_path.glob("site/core/runtimes/*.html")

    assert (drawn["message"], drawn["color"]) == (message, colour)
    assert f"; {run.conformance}</td>" in page.read_text("utf-8")
    assert message.partition(", ")[2] in as_markdown([pack])


def test_a_case_that_fails_says_what_to_do(tmp_path):
    """Its page does; that of a case that passes does not."""
    write_site(tmp_path / "site", results_of([RUN]))
    told = {
        path.stem: "rnncli diagnose" in path.read_text("utf-8")
        for path in (tmp_path / "site/core/cases").glob("*.html")
    }

    assert told == {case.id: case.details.fails for case in RUN.cases}
    assert {*told.values()} == {True, False}


FOLDERS = {
    "vectors/core": "vectors/core",
    "/home/me/my vectors": "PACK",
    "C:\\vectors\\core": "PACK",
    "/": "PACK",
}


@every("folder, shown", FOLDERS.items())
def test_a_path_of_the_machine_that_judged_is_not_shown(folder, shown, tmp_path):
    """A stranger has the pack elsewhere; its digest tells whether it is the same."""
    command = f"rnncli verify {shlex.quote(folder)} --command '/a/kernel /'"
    pack = structs.replace(RUN.pack, folder=folder)
    ((found,),) = [results_of([replace(RUN, pack=pack, command=command)])]
    run = found.runtimes[0].newest

    assert run.command == f"rnncli verify {shown} --command '/a/kernel /'"
    assert run.pack.folder == shown
    write_site(tmp_path / "site", [found])
    page = (tmp_path / f"site/core/features/{file_name('Ragged')}.html").read_text("utf-8")
    assert f"rnncli verify {shown}" in page
    assert RUN.pack.digest in page
    assert ("PACK stands for its folder" in page) is (shown == "PACK")


@pytest.mark.parametrize("text", ["", "..", "a/b", "A", "a b", "é", "\ud800", "x" * 300, "CON."])
def test_any_text_gives_the_name_of_one_file(text):
    """Different texts different ones, even if they differ in what a name cannot hold."""
    assert re.fullmatch("[A-Za-z0-9_-]+", file_name(text))
    assert len(file_name(text)) < 80
    assert file_name(text) != file_name(f"{text}/") != file_name(f"{text}?")


def test_names_that_differ_in_capitals_have_pages_of_their_own():
    """A file system may take Abc for abc."""
    names = ["abc", "Abc", "ABC", "abC"]

    assert len({file_name(name).lower() for name in names}) == len(names)
    assert file_name("lstm_14_clip") == "lstm_14_clip"


def test_markdown_has_a_row_for_each_feature():
    """And escapes what would end a cell."""
    run = replace(RUN, subject=JudgedSubject("a|b"))
    lines = as_markdown(results_of([run])).splitlines()

    assert "| feature | cases | a\\|b |" in lines
    assert [line for line in lines if line.startswith("| Ragged ")] == ["| Ragged | 1 | refused |"]


def test_markdown_begins_with_packs_by_runtimes():
    """If there are several: the verdicts of each newest run, and a dash where none was judged."""
    other = structs.replace(RUN.pack, name="other|pack")
    more = replace(RUN, pack=other, subject=JudgedSubject("another"))
    of, where = RUN.subject.name, RUN.pack.name
    lines = as_markdown(results_of([RUN, more])).splitlines()

    start = lines.index("## Packs") + 2
    assert lines[start : start + 4] == [
        f"| pack | cases | {of} | another |",
        "| --- | ---: | --- | --- |",
        f"| `{where}` | {RUN.total.cases} | {RUN.total.summary} | - |",
        f"| `other\\|pack` | {RUN.total.cases} | - | {RUN.total.summary} |",
    ]
    assert "## Packs" not in as_markdown(results_of([RUN]))


def test_names_of_strangers_stay_text():
    """No tag, link, heading, line or cell that was not meant, and no letter that cannot be seen."""
    packs = results_of([REPORTS["hostile"]])
    drawn = badge(packs[0].runtimes[0])
    text = as_markdown(packs)
    page = MarkdownIt("commonmark").enable("table").render(text)

    allowed = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert {tag for tag, _ in Elements(page).tags} <= allowed
    assert (page.count("<h2>"), page.count("<li>")) == (1, 1)
    assert page.count("<tr>") == 3
    assert not set("\x00\x1b\u202e") & {*text, *drawn["label"], *drawn["message"]}


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "<img src=x onerror=a>", "[a](b)"])
def test_no_length_of_a_name_makes_it_markup(text):
    """Wherever a line is broken, by either parser, a stranger's text begins none."""
    allowed = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    for padding in range(121):
        name = f"{'a' * padding} {text}"
        about = {"name": name, "version": name}
        run = replace(
            RUN,
            pack=structs.replace(RUN.pack, name=name, folder=name),
            subject=JudgedSubject(name, about),
            command=name,
        )
        page = as_markdown(results_of([run]))
        for found in (render(page) for render in RENDERERS):
            assert {tag for tag, _ in Elements(found).tags} <= allowed, (padding, found)


def test_every_text_of_the_hostile_report_is_hostile():
    """Each field of its lines that no list of words limits, so that each writer meets each."""
    found = REPORTS["hostile"]
    lines = [("run", run_record(found)), *(("case", case_record(found, c)) for c in found.cases)]
    seen = [
        ((kind, *path), text)
        for kind, line in lines
        for path, text in _texts(jsonable(line), schema_of(LINES[kind]))
    ]
    harmless = {path for path, _ in seen} - {path for path, text in seen if HOSTILE in text}

    # The cause is that of a diagnosis; an allowance must be that of the verdict; what is repeated
    # is quoted.
    assert harmless - {("case", "right_with")} == {
        ("case", "repeat"),
        ("case", "cause"),
        ("case", "allowed"),
        ("case", "requirements", "dtype"),
        ("run", "shard"),
    }


def _texts(value, schema, path=()):
    """Every text of JSON data that its schema does not limit to some, with its path."""
    if isinstance(value, str) and schema.get("type") == "string":
        yield path, value
    for name, each in value.items() if isinstance(value, dict) else ():
        rows = schema.get("properties", schema)
        row = rows.get(name, schema.get("additionalProperties", {}))
        yield from _texts(each, row, (*path, name))
    for each in value if isinstance(value, list) else ():
        yield from _texts(each, schema.get("items", {}), path)


def test_markdown_names_every_run_and_its_command():
    """Options such as --weights change what a runtime does; a run from Python has no command."""
    command = "rnncli verify core --runtime onnxruntime --weights initializers"
    lines = as_markdown(results_of([replace(LATER, command=command)])).splitlines()
    without = as_markdown(results_of([replace(EARLIER, command="")])).splitlines()

    assert [line for line in lines if line.startswith("- ")] == [
        f"- onnxruntime 1.31.1 on 2026-05-02: `{command}`"
    ]
    assert "- onnxruntime 1.0 on 2026-01-02" in without


@pytest.mark.parametrize(
    ("command", "quoted"),
    [
        ("rnncli verify x; touch PWN #", "rnncli verify 'x;' touch PWN '#'"),
        ("rnncli verify $(touch PWN)", "rnncli verify '$(touch' 'PWN)'"),
        ("rnncli verify 'x", "'rnncli verify '\"'\"'x'"),
        ("rnncli verify 'a b' -k x", "rnncli verify 'a b' -k x"),
    ],
)
def test_a_command_of_strangers_is_words(command, quoted, tmp_path):
    """On every page; to run it takes one program, and nothing of the shell."""
    run = replace(LATER, command=command)
    write_site(tmp_path / "site", results_of([run, EARLIER]))
    pages = "".join(page.read_text("utf-8") for page in tmp_path.rglob("*.html"))

    assert run.repeat(run.cases[0].details) == f"{quoted} -k id:{run.cases[0].id}"
    assert (command in unescape(pages)) is (command == quoted)
    assert f"`{quoted}`" in as_markdown(results_of([run]))
