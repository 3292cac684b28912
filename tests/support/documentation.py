"""The code blocks of the READMEs and of the pages under docs: how they are run, and compared.

What a block is follows from its language and its title, `sh title="..."`:

- a title that names a file: the block is written to that file, for the blocks after it;
- a title `needs NAME`: the page is tested where that program or Python module is installed;
- a title `not run: REASON`: neither run nor checked; the reason is the reader's, too;
- `sh`: run by bash, and must succeed;
- `console`: each `$ command` is run on a terminal of 80 columns, and prints what the block shows.
  Commands succeed; a title `exit code N` is about the last one. A line `...` is any lines;
- `python`: run as the page's one program; a `text` block right below it is what it prints;
- `text` elsewhere, and `yaml` and `toml` without a title, are no code.

The blocks of a page run from top to bottom in one folder, which has the repository's own files.

`PYTHONPATH=tests python -m support.documentation docs/tutorial.md` runs a page, and writes what
commands print into the page wherever that shows something else.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import itertools
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from support.terminals import COLUMNS, LONGEST, shown

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]*)\")?[^\n]*\n"
    r"(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
FILE_NAME = re.compile(r"[\w./-]+\.\w+")
NOT_RUN = "not run: "
NEEDS = "needs "
EXIT_CODE = re.compile(r"exit code (\d+)")
INSTALLED = ".installed"  # of the page's folder, for what a page would install by pip
ALIKE = 0.5  # ratio of difflib from which a line is taken for another's new form
WIDEST_ERROR = 1e-3  # of a number that is printed, relative to the one that is shown

# What differs between machines and days, and what stands for it, in a line without its end.
VARIABLE = (
    (re.compile(r"\b[\d.]+(?:e[-+]?\d+)? (?:s|ms|us)\b"), "SECONDS"),
    (re.compile(r"\b\d+\.\d+\.\d+(?:\.\w+)*\b"), "VERSION"),
    (re.compile(r"\b[0-9a-f]{32,}\b|(?<=digest )[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"(?<= )0(?:\.\d+)?$"), "MARGIN"),  # of rounding errors, in a table's last column
    (re.compile(r"[─━]+"), "─"),
    (re.compile(r"\s+"), " "),
)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?=[^\w.]|x |$)")


class Block(NamedTuple):
    """One fenced block.

    Attributes:
        language: as the fence names it.
        title: as the fence gives it, or "".
        code: what stands in it, without the indent of the fence.
        span: where the code is in the page.
    """

    language: str
    title: str
    code: str
    span: tuple[int, int]

    @property
    def role(self):
        """What is done with it: file, skipped, sh, console, python, or none."""
        if self.title.startswith(NOT_RUN):
            return "skipped"
        if FILE_NAME.fullmatch(self.title):
            return "file"
        return self.language if self.language in {"sh", "console", "python"} else "none"


END = Block("", "", "", (0, 0))
BELOW = "```\n\n```text\n"  # between a program and what it prints


class Command(NamedTuple):
    """A command of a `console` block, and what the block says that it prints."""

    line: str
    shown: str


def pages():
    """Return the README, the guide of the packs, and every page, in order."""
    guides = [ROOT / "README.md", ROOT / "vectors/README.md"]
    return [*guides, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text):
    """Return the blocks of a page."""
    return [
        Block(
            found["language"],
            found["title"] or "",
            "".join(
                line.removeprefix(found["indent"])
                for line in found["code"].splitlines(keepends=True)
            ),
            found.span("code"),
        )
        for found in FENCE.finditer(text)
    ]


def commands(code):
    """Return the commands of a `console` block; a line that ends in a backslash goes on."""
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
    found = [re.match(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL) for part in parts]
    return [Command(match[1].rstrip("\n"), match[2]) for match in found]


def missing(text):
    """Return the programs and modules that a page needs and that are not installed."""
    titles = [block.title for block in blocks(text)]
    needed = [title.removeprefix(NEEDS) for title in titles if title.startswith(NEEDS)]
    return [name for name in needed if not shutil.which(name) and not find_spec(name)]


def counts(text):
    """Return how many blocks of a page have each role."""
    return Counter(block.role for block in blocks(text))


def same(shown, printed):
    """Whether a text is the one that is shown, times, versions and last digits aside."""
    return _same_lines(_lines(shown), _lines(printed))


def _lines(text):
    return [_constant(line.strip()) for line in text.splitlines() if line.strip()]


def _constant(line):
    for pattern, word in VARIABLE:
        line = pattern.sub(word, line)
    return line


def _same_lines(shown, printed):
    if not shown or not printed:
        return all(line == "..." for line in shown) and not printed
    if shown[0] == "...":
        return any(_same_lines(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return _same_line(shown[0], printed[0]) and _same_lines(shown[1:], printed[1:])


def _same_line(shown, printed):
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    numbers = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_same_number(*pair) for pair in numbers)


def _same_number(shown, printed):
    if "." not in shown + printed and "e" not in shown + printed:
        return shown == printed
    return math.isclose(float(shown), float(printed), rel_tol=WIDEST_ERROR)


def environment():
    """Return what commands see: a plain terminal, and this Python's programs first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **kept,
        "PATH": programs,
        "PYTHONPATH": INSTALLED,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": str(COLUMNS),
    }


def checkout(folder):
    """Give a folder the repository's own files, as links."""
    for path in ROOT.iterdir():
        if path.name in {"rnncli", "specs", "vectors", "tests"}:
            (folder / path.name).symlink_to(path)
    return folder


class Runner:
    """Runs the blocks of one page in a folder.

    Attributes:
        folder: where.
        names: what the page's Python has defined so far.
    """

    def __init__(self, page, folder):
        self.folder, self.names = folder, {"__name__": "__main__", "__file__": str(page)}

    def run(self, page):
        """Run the blocks of a page; yield each command or program that prints something else.

        Yields:
            The span in the page of what is shown, and what was printed.

        Raises:
            AssertionError: a command ended with another exit code than the page says.
        """
        text = page.read_text("utf-8")
        for block, after in itertools.pairwise([*blocks(text), END]):
            match block.role:
                case "file":
                    self.file(block)
                case "sh":
                    self.sh(block.code)
                case "console":
                    yield from self.console(block, text)
                case "python":
                    below = text[block.span[1] : after.span[0]] == BELOW
                    shown = after if below else END._replace(span=(block.span[1],) * 2)
                    printed = self.python(block.code)
                    if not same(shown.code, printed):
                        yield shown.span, printed if below else f"{BELOW}{printed}"

    def file(self, block):
        """Write a block to the file that its title names."""
        path = self.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, "utf-8")

    def sh(self, code):
        """Run a block of shell, which must succeed."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == 0, f"{code}{done.stdout}{done.stderr}"

    def console(self, block, text):
        """Run the commands of a block; yield those that print something else than it shows."""
        wanted = EXIT_CODE.fullmatch(block.title)
        *_, last = entries = commands(block.code)
        for command in entries:
            code, printed = shown(["bash", "-c", command.line], cwd=self.folder, env=environment())
            expected = int(wanted[1]) if wanted and command is last else 0
            assert code == expected, f"{command.line}: exit code {code}\n{printed}"
            if not same(command.shown, printed):
                start = text.index(f"$ {command.line}\n", block.span[0]) + len(command.line) + 3
                yield (start, start + len(command.shown)), printed

    def python(self, code):
        """Run a block of Python as the next lines of the page's program; return what it prints."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(code, self.names["__file__"], "exec"), self.names)  # noqa: S102
        return printed.getvalue()


def rewrite(page):
    """Write into a page what its commands print."""
    with tempfile.TemporaryDirectory() as scratch:
        found = list(Runner(page, checkout(Path(scratch))).run(page))
    text = page.read_text("utf-8")
    for (start, end), printed in reversed(found):
        text = text[:start] + elided(text[start:end], printed) + text[end:]
    page.write_text(text, "utf-8")
    return len(found)


def elided(shown, printed):
    """Return what was printed, without what the block leaves out between lines much like these."""
    if printed.startswith(BELOW):  # a block that was not there
        return printed
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    kept, at, skipping = [], 0, False
    for line in shown.splitlines():
        if line == "...":
            skipping = True
            continue
        likeness = [_likeness(line, other) for other in lines[at:]]
        if max(likeness, default=0) < ALIKE:
            continue
        found = at + likeness.index(max(likeness))
        kept += [*(["..."] if skipping else lines[at:found]), lines[found]]
        at, skipping = found + 1, False
    return "".join(f"{line}\n" for line in [*kept, *(["..."] if skipping else lines[at:])])


def _likeness(line, other):
    return difflib.SequenceMatcher(None, line, other).ratio()


if __name__ == "__main__":
    for name in sys.argv[1:] or map(str, pages()):
        sys.stdout.write(f"{name}: {rewrite(Path(name).resolve())} changed\n")
