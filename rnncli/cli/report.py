"""`rnncli report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.cli.command import command
from rnncli.cli.options import RUNS, SHARED
from rnncli.cli.reporting import FILES
from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path

# Exit codes of a run, from the best to the worst.
WORST_LAST = (0, 5, 1)


@command(runs=RUNS, as_json=SHARED["as_json"], **FILES)
def report(runs: tuple[Path, ...], *, as_json: bool = False, **files: str | None) -> int:
    """Report runs again from the lines that `rnncli verify --json` printed.

    It prints what `rnncli verify` printed, and the exit code is that of the run, or of the worst of
    several: 1 if a case fails, 5 if too few were answered. A file holds one run or several, one
    after the other. The shards of a run are joined, and all must be there; a run that is
    incomplete, or contradicts itself in a verdict or a count, is an error. A plot has no errors
    over time, which no line has. Files are written of one run; `rnncli site` makes pages of
    several.

    \b
    rnncli verify vectors/core --runtime onnxruntime --json > run.jsonl
    rnncli report run.jsonl --html run.html --junit run.xml
    rnncli report shard_1.jsonl shard_2.jsonl --markdown summary.md
    """
    from rnncli.reports.result_files import read_results, whole_runs
    from rnncli.reports.verification import check_reports, show_report, write_reports

    check_reports(files)
    reports = [*whole_runs(each for path in runs for each in read_results(path))]
    written = [name for name, path in files.items() if path]
    if written and len(reports) > 1:
        raise InvalidRequest(
            f"--{written[0]} is written of one run, and there are {len(reports)}; `rnncli site`"
            " makes pages of several"
        )
    for each in reports:
        show_report(each, as_json=as_json)
        write_reports(each, files)
    return max((each.exit_code for each in reports), key=WORST_LAST.index)
