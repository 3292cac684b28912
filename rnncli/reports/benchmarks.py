"""What `rnncli bench` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.benchmarks.startup import records
from rnncli.reports.tables import print_json_line, print_records, print_table
from rnncli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.benchmarks.generation import GenerationTimes
    from rnncli.benchmarks.startup import Started


def show_generation(
    measured: Sequence[GenerationTimes],
    file_seconds: float,
    surroundings: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Print a row for each way, then what they depend on besides our code."""
    records = [each.record(measured[0]) for each in measured]
    if as_json:
        for record in records:
            print_json_line({**record, "file_seconds": file_seconds, "environment": surroundings})
        return
    print_table(tuple(records[0]), [tuple(record.values()) for record in records])
    say(f"a file of 200 bytes takes {1e6 * file_seconds:.0f} us here")
    for name, value in surroundings.items():
        say(f"note: {name}={value} is set")


def show_startup(measured: Sequence[Started], notes: Sequence[str], *, as_json: bool) -> None:
    """Print a row for each kind of process, then what it depends on besides our code."""
    found = records(measured)
    print_records(tuple(found[0]), found, as_json=as_json)
    for note in notes:
        say(f"note: {note}")
