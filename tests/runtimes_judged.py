"""What runtimes do with the core pack, as docs/results/runtimes.md has it.

`PYTHONPATH=tests python -m runtimes_judged` asks each of them, and writes the page.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACK = "vectors/core"
PAGE = ROOT / "docs/results/runtimes.md"
RUNTIMES = ("onnxruntime", "openvino", "onnx-reference", "tract")
# Verdicts, in the order of a cell, and what the table calls them.
CALLED = {
    "differs": "wrong",
    "stale": "wrong later",
    "crashed": "crashed",
    "timeout": "timeout",
    "refused": "refused",
    "acceptable": "other reading",
}
HEAD = """\
# What runtimes do

Written by `PYTHONPATH=tests python -m runtimes_judged` on {date}, which runs `rnncli verify
vectors/core --runtime NAME` for each: {versions}, each on the
CPU, OpenVINO in float32. A row is a flag of the pack: a feature, or a bug that its cases look for.
What is not "wrong" here is within the pack's tolerances; our own backends pass all {cases} cases.

`SigmoidTail` is the one flag that asks for more than the standard profile grants: no sigmoid made
of a tanh can keep the relative accuracy of a gate that is almost closed.
"""


def judged(runtime):
    """Return what `verify --json` says first and last: of the run, and of all cases."""
    command = [sys.executable, "-m", "rnncli", "verify", PACK, "--runtime", runtime, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    first, *_, last = map(json.loads, done.stdout.splitlines())
    return first, last


def cell(counted):
    """Return a cell: what became of the cases of a flag, besides those that pass."""
    found = [(counted["verdicts"][name], word) for name, word in CALLED.items()]
    told = [(n, word) for n, word in found if n]
    if told and told[0][0] == counted["cases"]:
        return told[0][1]
    return ", ".join(f"{n} {word}" for n, word in told) or "ok"


def page(runs, date):
    """Return the text of the page.

    Args:
        runs: runtime -> what `judged` returns.
        date: of the runs.
    """
    firsts, lasts = zip(*runs.values(), strict=True)
    about = [first["subject"]["about"]["version"].partition("-")[0] for first in firsts]
    versions = [f"{name} {version}" for name, version in zip(runs, about, strict=True)]
    rows = [
        (flag, counted["cases"], *(cell(last["flags"][flag]) for last in lasts))
        for flag, counted in lasts[0]["flags"].items()
    ]
    totals = [
        ", ".join(f"{n} {name}" for name, n in last["verdicts"].items() if n) for last in lasts
    ]
    head = HEAD.format(date=date, versions=", ".join(versions), cases=lasts[0]["cases"])
    table = [("feature", "cases", *runs), ("---", "---:", *("---" for _ in runs)), *rows]
    lines = [*table, ("all cases", lasts[0]["cases"], *totals)]
    return f"{head}\n" + "".join(f"| {' | '.join(map(str, row))} |\n" for row in lines)


if __name__ == "__main__":
    found = {runtime: judged(runtime) for runtime in RUNTIMES}
    PAGE.write_text(page(found, dt.datetime.now(dt.UTC).date().isoformat()), "utf-8")
