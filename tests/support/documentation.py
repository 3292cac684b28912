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

`PYTHONPATH=tests python -m support.documentation docs/tutorial.md` runs a page, or a transcript,
and writes what commands print into it wherever that shows something else.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from support.terminals import LONGEST, folded, shown, unfolded
from support.transcripts import (
    ROOT,
    checkout,
    elided,
    environment,
    is_absent,
    rewritten,
    same,
)

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]*)\")?[^\n]*\n"
    r"(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
FILE_NAME = re.compile(r"[\w./-]+\.\w+")
NOT_RUN = "not run: "
NEEDS = "needs "
EXIT_CODE = re.compile(r"exit code (\d+)")


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
    return [name for name in needed if is_absent(name)]


def counts(text):
    """Return how many blocks of a page have each role."""
    return Counter(block.role for block in blocks(text))


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
                    if not same(shown.code, printed, drawn=True):
                        kept = elided(shown.code, printed) if shown.code else printed
                        yield shown.span, kept if below else f"{BELOW}{kept}"

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
            was, now = unfolded(command.shown), unfolded(printed)
            if not same(was, now, drawn=True):
                start = text.index(f"$ {command.line}\n", block.span[0]) + len(command.line) + 3
                lines = [line.rstrip() for line in now.splitlines() if line.strip()]
                new = "".join(f"{line}\n" for line in lines)
                kept = folded(elided(was, new) if was else new)
                yield (start, start + len(command.shown)), kept

    def python(self, code):
        """Run a block of Python as the next lines of the page's program; return what it prints."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(code, self.names["__file__"], "exec"), self.names)  # noqa: S102
        return printed.getvalue()


def changes(page):
    """Run a page; yield where it shows something else than is printed, and that."""
    with tempfile.TemporaryDirectory() as scratch:
        yield from Runner(page, checkout(Path(scratch))).run(page)


def rewrite(path):
    """Write into a page, or a transcript, what its commands print, each where it stands."""
    found = sorted((rewritten if path.suffix == ".txt" else changes)(path))
    text = path.read_text("utf-8")
    for (start, end), printed in reversed(found):
        is_transcript = path.suffix == ".txt" and start < end
        new = elided(text[start:end], printed) if is_transcript else printed
        text = text[:start] + new + text[end:]
    path.write_text(text, "utf-8")
    return len(found)


if __name__ == "__main__":
    if "CI" in os.environ:
        sys.exit("CI compares what is printed, and writes nothing")
    for name in sys.argv[1:] or map(str, pages()):
        sys.stdout.write(f"{name}: {rewrite(Path(name).resolve())} changed\n")
