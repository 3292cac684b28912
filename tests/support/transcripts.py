"""Transcripts: claims, and what commands and Python print that shows them, as text.

A file `transcripts/*.txt` beside the tests begins with a sentence on what it is about. Then:

- `## A claim`: what follows shows it, in a folder of its own that has the repository's files;
- `needs NAME`, below a claim: it is tested where that program or Python module is installed;
- `=== NAME`, and the text of a file, which is written;
- `$ rnncli ...`: run in this process; `NAME=VALUE` before it, `< FILE`, `> FILE` and `| PROGRAM`
  behind it are as in a shell. Any other command is run by bash;
- `>>> Python`, with `... ` before further lines: one statement, of whose value the `repr` is
  printed.

What stands above the first claim is done once; each claim begins with a copy of what it leaves.
The repository's files are links: what would write below one, as into `vectors`, removes it first.

What is printed stands below: standard output, `! ` and each line of standard error, `[2]` for an
exit code that is not 0, and of an exception its type and words. A line `...` is any lines, and
within a line `...` is any text. What differs between machines is `FOLDER`, `REPOSITORY`, `PYTHON`;
times, versions, digests and the last digits of numbers may differ. A line that would begin a part
begins with `| `.

`PYTHONPATH=tests python -m support.documentation FILE...` writes what is printed where it belongs.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from support.terminals import COLUMNS, LONGEST

from rnncli.cli import main

ROOT = Path(__file__).parents[2]
INSTALLED = ".installed"  # of the folder of a page, for what it would install by pip
ALIKE = 0.5  # ratio of difflib from which a line is taken for another's new form
WIDEST_ERROR = 1e-3  # of a number that is printed, relative to the one that is shown
MEASURED = 6  # digits of a number without a point that is no count: of ulp, or a margin

# What differs between machines and days, and what stands for it, in a line.
VARIABLE = (
    (re.compile(r"\b[\d.]+(?:e[-+]?\d+)? (?:s|ms|us)\b"), "SECONDS"),
    (re.compile(r'(?<=seconds": )[\d.e-]+|(?<=\t\d\t)\d[\d.]*(?:\.|e-)\d+$'), "SECONDS"),
    (re.compile(r"(?<=\t)(?:0|0\.\d+|\d(?:\.\d+)?e-\d+)$"), "MARGIN"),  # of rounding errors
    (re.compile(r"\b\d+\.\d+\.\d+(?:\.\w+)*\b"), "VERSION"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b[0-9a-f]{32,}\b|(?<=digest )[0-9a-f]{12}\b"), "DIGEST"),
)
# What besides differs in a table that is drawn for a terminal.
DRAWN = (
    (re.compile(r"(?<= )0(?:\.\d+)?$"), "MARGIN"),  # of rounding errors, in the last column
    (re.compile(r"[─━]+"), "─"),
    (re.compile(r"\s+"), " "),
)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?=[^\w.]|x |$)")
MARK = re.compile(
    r"^(?:## (?P<claim>.+)|needs (?P<needs>\S+)|=== (?P<file>\S+)|\$ (?P<command>(?:.*\\\n)*.*)"
    r"|>>> (?P<python>.*(?:\n\.\.\. .*)*))\n",
    re.MULTILINE,
)
ASSIGNMENT = re.compile(r"[A-Z_]+=")


def same(shown, printed, *, drawn=False):
    """Whether a text is the one that is shown, times, versions and last digits aside.

    Args:
        shown: with `...` for any lines, or for any text in a line.
        printed: what it is compared with.
        drawn: widths of columns and blank lines may differ as well.
    """
    runs = [[]]  # of lines of which none is left out
    for line in _constant(shown, drawn=drawn):
        runs.append([]) if line == "..." else runs[-1].append(line)
    first, *others = runs
    lines = [*_constant(printed, drawn=drawn)]
    if not others or not _begins(first, lines):
        return len(first) == len(lines) and _begins(first, lines)

    lines = lines[len(first) :]
    for run in others[:-1]:
        while not _begins(run, lines):
            if not lines:
                return False
            del lines[0]
        lines = lines[len(run) :]
    return len(others[-1]) <= len(lines) and _begins(
        others[-1], lines[len(lines) - len(others[-1]) :]
    )


def _constant(text, *, drawn):
    for line in text.splitlines():
        found = line.strip() if drawn else line.rstrip()
        for pattern, word in VARIABLE + DRAWN * drawn:
            found = pattern.sub(word, found)
        if found or not drawn:
            yield found


def _begins(shown, printed):
    return len(shown) <= len(printed) and all(map(_same_line, shown, printed))


def _same_line(shown, printed):
    if shown == printed:
        return True
    if "..." in shown:
        return re.fullmatch(".*?".join(map(re.escape, shown.split("..."))), printed) is not None
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    numbers = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_same_number(*pair) for pair in numbers)


def _same_number(shown, printed):
    is_count = "." not in shown + printed and "e" not in shown + printed
    if is_count and len(shown) < MEASURED:
        return shown == printed
    return math.isclose(float(shown), float(printed), rel_tol=WIDEST_ERROR)


def elided(shown, printed):
    """Return what was printed, without what is left out between lines much like these."""
    lines = printed.splitlines()
    kept, at, skipping = [], 0, False
    for line in shown.splitlines():
        if line == "...":
            skipping = True
            continue
        likeness = [_likeness(line, other) for other in lines[at:]]
        if max(likeness, default=0) < ALIKE:
            continue
        found = at + likeness.index(max(likeness))
        new = line if same(line, lines[found]) else lines[found]
        kept += [*(["..."] if skipping else lines[at:found]), new]
        at, skipping = found + 1, False
    return "".join(f"{line}\n" for line in [*kept, *(["..."] if skipping else lines[at:])])


def _likeness(line, other):
    return 1 if _same_line(line, other) else difflib.SequenceMatcher(None, line, other).ratio()


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
        if path.name in {"rnncli", "specs", "vectors", "tests", "docs"}:
            (folder / path.name).symlink_to(path)
    return folder


def is_absent(name):
    """Whether neither a program nor a Python module of a name is installed."""
    return not shutil.which(name) and not find_spec(name)


class Part(NamedTuple):
    """A part of a transcript.

    Attributes:
        kind: `claim`, `needs`, `file`, `command` or `python`.
        text: what stands behind its mark.
        shown: the lines below it.
        span: where those are in the file.
    """

    kind: str
    text: str
    shown: str
    span: tuple[int, int]


def parts(text):
    """Return the parts of a transcript, in order."""
    found = [*MARK.finditer(text)]
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [_part(text, match, end) for match, end in zip(found, ends, strict=True)]


def _part(text, match, end):
    below = text[match.end() : end]
    shown = below if match.lastgroup == "file" else below.rstrip("\n") + "\n" * bool(below.strip())
    span = match.end(), match.end() + len(shown)
    return Part(match.lastgroup, match[match.lastgroup], shown, span)


class Transcript:
    """A file of claims.

    Attributes:
        path: where it is.
        head: what is done once, before any claim.
        claims: of each claim what is done for it, in order.
    """

    def __init__(self, path):
        self.path, self.head, self.claims = path, [], {}
        done = self.head
        for part in parts(path.read_text("utf-8")):
            if part.kind == "claim":
                assert part.text not in self.claims, f"{path}: {part.text!r} is there twice"
                done = self.claims[part.text] = []
            else:
                done.append(part)

    @cached_property
    def begun(self):
        """What the head leaves behind: a folder, names of Python, and what is not as it shows."""
        folder, names = tempfile.TemporaryDirectory(), {"__name__": "transcript", "Path": Path}
        return folder, names, [*_done(self.head, checkout(Path(folder.name)), names)]

    def run(self, claim, folder):
        """Run a claim in an empty folder; yield each part that prints something else than it shows.

        Yields:
            The part, and what it printed.
        """
        begun, names, found = self.begun
        shutil.copytree(begun.name, folder, symlinks=True, dirs_exist_ok=True)
        yield from found
        yield from _done(self.claims[claim], folder, dict(names))

    def missing(self, claim):
        """Return the programs and modules that a claim needs and that are not installed."""
        needed = [part.text for part in self.claims[claim] if part.kind == "needs"]
        return [name for name in needed if is_absent(name)]


def _done(parts, folder, names):
    """Do parts in a folder; yield each that prints something else than it shows, and that."""
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        for name, value in environment().items():
            patch.setenv(name, value)
        names["patch"] = patch
        for part in parts:
            match part.kind:
                case "file":
                    Path(part.text).parent.mkdir(parents=True, exist_ok=True)
                    Path(part.text).write_text(part.shown, "utf-8")
                    continue
                case "command":
                    out, err, code = _command(part.text)
                case "python":
                    out, err, code = _statement(part.text, names)
                case _:
                    continue
            printed = _printed(out, err, code, folder)
            if not same(part.shown, printed):
                yield part, printed


def _command(line):
    """Run a command; return what it prints, and its exit code."""
    own, _, behind = line.partition(" | ")
    words = shlex.split(own.replace("\\\n", ""))
    variables = {}
    while words and ASSIGNMENT.match(words[0]):
        name, _, variables[name] = words.pop(0).partition("=")
    if words[0] != "rnncli" or {"&&", ";", "2>"} & {*words}:
        return _bash(line)
    given = to = None
    if "<" in words:
        at = words.index("<")
        given = Path(words[at + 1]).read_bytes()
        del words[at : at + 2]
    if ">" in words:
        to = words[words.index(">") + 1]
        del words[words.index(">") :]
    out, err, code = rnncli(*words[1:], stdin=given, variables=variables)
    if to:
        Path(to).write_text(out, "utf-8")
        out = ""
    if behind:
        out, more, ended = _bash(behind, out)
        err, code = err + more, code or ended
    return out, err, code


def rnncli(*words, stdin=None, variables=None):
    """Run the command line in this process; return what it prints, and its exit code."""
    given, sys.argv = sys.argv, ["rnncli", *words]
    try:
        with CliRunner().isolation(input=stdin, env=variables) as (out, err, _):
            try:
                main()
            except SystemExit as stop:
                code = int(stop.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        sys.argv = given
    return out.getvalue().decode(), err.getvalue().decode(), code


def _bash(line, stdin=""):
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "LC_ALL": "C.UTF-8"},  # the order of `ls`, and messages of the system
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    return done.stdout, done.stderr, done.returncode


def _statement(code, names):
    """Run a statement of Python; return what it prints, and of an exception type and words."""
    text = re.sub(r"^\.\.\. ", "", code, flags=re.MULTILINE)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(compile(f"{text}\n", "transcript", "single"), names)  # noqa: S102
        except Exception as error:  # noqa: BLE001 -- printed, as any
            err.write("".join(traceback.format_exception_only(error)))
    return out.getvalue(), re.sub(r"^(?:\w+\.)+(?=\w+: )", "", err.getvalue()), 0


def _printed(out, err, code, folder):
    """Return what a transcript shows of these."""
    said = [f"! {line}".rstrip() for line in err.splitlines()]
    lines = [*out.splitlines(), *said, *([f"[{code}]"] if code else [])]
    text = "".join(f"{line}\n" for line in lines)
    for path, word in ((folder, "FOLDER"), (ROOT, "REPOSITORY"), (sys.executable, "PYTHON")):
        text = text.replace(str(path), word)
    return MARK.sub(lambda match: f"| {match[0]}", text)


def pytest_collect_file(file_path, parent):
    """Take a transcript for a file of tests."""
    if file_path.suffix == ".txt" and file_path.parent.name == "transcripts":
        return Tests.from_parent(parent, path=file_path)
    return None


class Tests(pytest.Module):
    """The claims of a transcript, each a test."""

    def _getobj(self):
        return ModuleType(self.path.stem)

    def collect(self):
        """Yield a test for each claim."""
        transcript = Transcript(self.path)
        for claim in transcript.claims:
            yield pytest.Function.from_parent(self, name=claim, callobj=_test(transcript, claim))


def _test(transcript, claim):
    def test(tmp_path):
        if absent := transcript.missing(claim):
            pytest.skip(f"needs {absent[0]}")
        wrong = [_difference(*found) for found in transcript.run(claim, tmp_path)]
        assert not wrong, f"{transcript.path.name}: {claim}\n" + "\n".join(wrong)

    return test


def _difference(part, printed):
    lines = (part.shown.splitlines(), printed.splitlines())
    sign = {"command": "$", "python": ">>>"}[part.kind]
    changes = difflib.unified_diff(*lines, "shown", "printed", lineterm="")
    return "\n".join([f"{sign} {part.text}", *changes])


def rewritten(path):
    """Run a transcript; return where it shows something else than is printed, and that."""
    transcript, found = Transcript(path), {}
    for claim in transcript.claims:
        if not transcript.missing(claim):
            with tempfile.TemporaryDirectory() as folder:
                found |= {part.span: new for part, new in transcript.run(claim, Path(folder))}
    return found.items()
