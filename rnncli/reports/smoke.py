"""The report of `rnncli smoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.reports.tables import print_records
from rnncli.talk.terminal import say
from rnncli.talk.words import counted
from rnncli.verifying.smoke import SmokeResult, exit_code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.verifying.smoke import SmokeCheck

COLUMNS = ("sent", "result", "what it did")


def show_smoke(command: str, checks: Sequence[SmokeCheck], *, as_json: bool) -> None:
    """Print the checks of a harness, and the conclusion on standard error."""
    records = [
        {"sent": check.name, "result": str(check.result), "sentence": check.sentence}
        for check in checks
    ]
    print_records(COLUMNS, records, as_json=as_json)
    say(f"{command}: {_conclusion(checks)}")


def _conclusion(checks: Sequence[SmokeCheck]) -> str:
    failed = sum(check.result is SmokeResult.FAILED for check in checks)
    if failed:
        return f"{counted(failed, 'check')} of {len(checks)} failed"
    computed = sum(check.has_computed for check in checks)
    wired = f"wired right; it computed {computed} of the tiny cases"
    return "refused every case, so nothing shows how it computes" if exit_code_of(checks) else wired
