"""The README and the pages name what is there."""

import re
import shlex

import click
from support.documentation import ROOT, blocks, commands, pages
from support.tables import every

from rnncli.cli.group import COMMANDS, cli
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.readings import READINGS

README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT = "".join(page.read_text(encoding="utf-8") for page in pages())
LONGEST = 800  # words of the README or a page, code and what it prints included
ALL = 25_000  # words of all pages
# Measured, listed or written by a script: tables that grow with what they are about.
TABLES = {"findings", "results", "upstream", "reports.md"}
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.relative_to(ROOT / "docs").parts[0] not in TABLES
]


def command_lines():
    """Every line of shell in the README and the pages, those that are not run included."""
    for block in blocks(TEXT):
        if block.language == "console":
            yield from (command.line for command in commands(block.code))
        elif block.language == "sh":
            yield from block.code.replace("\\\n", "").splitlines()


CALLS = sorted(
    {
        line.partition("rnncli ")[2].partition(" #")[0].partition(" >")[0].partition(" ||")[0]
        for line in command_lines()
        if re.search(r"(^|\| |/|=\d )rnncli ", line)
    }
)


@every("call", CALLS)
def test_every_command_line_parses(call):
    """Commands and options that pages show exist; their files are the reader's."""
    name, *arguments = shlex.split(call)
    command = cli.get_command(click.Context(cli), name)
    options = {
        spelling
        for parameter in command.params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }

    assert [word for word in arguments if re.match(r"-\D", word) and word not in options] == []


def test_every_command_and_reading_is_there():
    """No command is undocumented, nor any reading."""
    names = {f"rnncli {name}" for name in COMMANDS if name not in {"backends", "formats"}}

    assert {name for name in names if name not in TEXT} == set()
    assert {name for name in READINGS if f"`{name}`" not in TEXT} == set()


def test_every_profile_and_suite_is_there():
    """Whoever looks for a tolerance or for vectors finds its name."""
    suites = {path.stem for path in (ROOT / "specs" / "suites").glob("*.yaml")}

    assert {name for name in (*PROFILES, *suites) if f"`{name}`" not in TEXT} == set()


def test_files_it_names_exist():
    """Every path of the repository in the text is there."""
    paths = set(re.findall(r"`((?:rnncli|specs|tests|vectors|docs)/[\w/.]+)`", TEXT))
    paths |= set(re.findall(r"run (tests/data/\S+)", TEXT))

    assert {path for path in paths if not (ROOT / path).exists()} == set()


def prose_of(page):
    """Return the text of a page without its code, in which brackets are no links."""
    return re.sub(
        r"^```.*?^```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def anchors_of(page):
    """Return what links to sections of a page name, as GitHub and the site spell it."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere_in_a_checkout():
    """To a file, and a section of it; a page that only the site has is nowhere on GitHub."""
    folders = (ROOT / name for name in ("docs", "specs", "vectors", ".github"))
    pages = [ROOT / "README.md", *(page for folder in folders for page in folder.rglob("*.md"))]
    lost = []
    for page in pages:
        for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)", prose_of(page)):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                lost.append(f"{page.relative_to(ROOT)}: {link}")

    assert lost == []


def test_pages_are_short():
    """The README says what this is and where to start, and a page serves one journey."""
    words = {page: len(page.read_text("utf-8").split()) for page in (ROOT / "README.md", *PAGES)}

    assert {page.name: count for page, count in words.items() if count > LONGEST} == {}
    assert sum(words[page] for page in PAGES) <= ALL


def test_top_level_is_the_designs():
    """Nothing lies about; GitHub looks for a citation there alone."""
    folders = {"rnncli", "specs", "vectors", "tests", "docs"}
    allowed = {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", *folders}
    made_here = {"out.npz", "build", "dist"}
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}

    assert found - allowed - made_here == set()
