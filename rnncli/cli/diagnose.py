"""`rnncli diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.api import commands
from rnncli.cli.command import command
from rnncli.cli.options import PACK, row

if TYPE_CHECKING:
    from pathlib import Path


@command(asks=commands.diagnose, pack=PACK, cases=row(only=("select", "require")))
def diagnose(pack: Path, *, as_json: bool = False, **asked: Any) -> int:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is compared with other readings of the specification, with every mutant
    (`rnncli mutants` lists them) and with pairs of those; passing cases rule hypotheses out. The
    smallest set that explains the failures of a cell by value is the set of causes. For the
    remaining failures, the report says that no known bug explains them, what they have in common (a
    pattern, not a proof), and which hypotheses fit some of them but are contradicted by other
    cases. If only a later call of a session is wrong, it names the state kept from the call before,
    if that explains the outputs. No bug is sought for cases with an output that is missing or has
    another shape or dtype, or with no fault but an output that was not requested; they are listed
    apart. The exit code is that of `rnncli verify`: 1 if a case fails, 5 if none does, but none was
    answered. `rnncli verify --diagnose` adds the same causes to its verdicts.

    \b
    rnncli diagnose vectors/core --results from_device/
    rnncli diagnose vectors/core --runtime openvino --json
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import show_diagnosis

    with progress_bar(unit="cases") as progress:
        report = commands.diagnose(pack, **asked, progress=progress.reach)
    show_diagnosis(report, as_json=as_json)
    return report.exit_code
