"""The tables of docs/results/runtimes.md, into which the results of runtimes are written.

`PYTHONPATH=tests python -m support.runtime_results NAME [SUITE...]` judges a runtime by the command
that the page has of it, and replaces its cells and that line. Without suites these are all in which
it has results. A runtime that is new gets a column, by `rnncli verify vectors/core --runtime NAME`,
a harness if it has such a line on the page, whose version and date are any.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rnncli.reports.result_files import read_results
from rnncli.reports.site import results_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results/runtimes.md"
PACKS, CORE, TOTAL, NO_RUN = "Packs", "core", "all cases", "-"
LINE = re.compile(r"^- (\S+) (\S+) on (\S+): `(.*)`$", re.MULTILINE)


def section(text, heading):
    """Where the table of a section begins, and its rows, a list of cells each."""
    lines = text.splitlines()
    first = lines.index(f"## {heading}") + 1
    first += next(k for k, line in enumerate(lines[first:]) if line.startswith("| "))
    last = first + next(k for k, line in enumerate(lines[first:]) if not line.startswith("| "))
    return first, [line[2:-2].split(" | ") for line in lines[first:last]]


def cells(text, heading):
    """Name of a row -> its number of cases, and runtime -> what it does."""
    _, ((_, _, *names), _, *rows) = section(text, heading)
    return {
        name.strip("`"): (int(count), dict(zip(names, words, strict=True)))
        for name, count, *words in rows
    }


def with_cells(text, heading, runtime, found):
    """The page with the cells of a runtime in some rows of a section; a new column is the last."""
    first, rows = section(text, heading)
    if runtime not in rows[0]:
        for row, cell in zip(rows, [runtime, "---", *[NO_RUN] * (len(rows) - 2)], strict=True):
            row.append(cell)
    at = rows[0].index(runtime)
    for row in rows:
        row[at] = found.get(row[0].strip("`"), row[at])
    lines = text.splitlines()
    lines[first : first + len(rows)] = [f"| {' | '.join(row)} |" for row in rows]
    return "".join(f"{line}\n" for line in lines)


def judged(command, suite):
    """What a command finds against the pack of a suite, and is called itself."""
    with tempfile.TemporaryDirectory() as folder:
        pack = ROOT / "vectors" / suite
        if not pack.exists():
            pack = Path(folder, suite)
            words = [sys.executable, "-m", "rnncli", "generate", suite, "-o", pack]
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        words = [sys.executable, "-m", *shlex.split(command), "--json"]
        words[words.index("vectors/core")] = str(pack)
        written = Path(folder, "results.jsonl")
        with written.open("wb") as stream:
            done = subprocess.run(words, cwd=ROOT, stdout=stream, check=False)
        if done.returncode not in {0, 1}:
            sys.exit(f"{shlex.join(words)}: exit code {done.returncode}")
        ((found,),) = (pack.runtimes for pack in results_of(read_results(written)))
    return found


def main(name, *suites):
    """Judge a runtime, and write the page after each suite."""
    commands = {name: command for name, _, _, command in LINE.findall(PAGE.read_text("utf-8"))}
    command = commands.get(name, f"rnncli verify vectors/core --runtime {name}")
    rows = cells(PAGE.read_text("utf-8"), PACKS)
    for suite in suites or [each for each in rows if rows[each][1].get(name) != NO_RUN]:
        found = judged(command, suite)
        text = with_cells(PAGE.read_text("utf-8"), PACKS, name, {suite: found.newest.total.summary})
        if suite == CORE:
            flags = {flag: found.cell(flag).words for flag in found.newest.pack.notes}
            text = with_cells(text, CORE, name, flags | {TOTAL: found.newest.total.summary})
            line = f"- {name} {found.version} on {found.newest.date[:10]}: `{command}`"
            *_, last = LINE.finditer(text)
            of_it = next((each for each in LINE.finditer(text) if each[1] == name), None)
            start, end = of_it.span() if of_it else [last.end()] * 2
            text = text[:start] + ("" if of_it else "\n") + line + text[end:]
        PAGE.write_text(text, "utf-8")
        sys.stdout.write(f"{suite}: {found.newest.total.summary}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
