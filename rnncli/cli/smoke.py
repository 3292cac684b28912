"""`rnncli smoke`."""

from __future__ import annotations

from rnncli.cli.command import command
from rnncli.cli.options import row
from rnncli.limits import OF_SMOKE, Limits
from rnncli.talk.terminal import say


@command(harness=row(metavar="'PROG ARGS'"), limits=row(only=["timeout"]))
def smoke(*, harness: str, limits: Limits = OF_SMOKE, as_json: bool = False) -> int:
    """Check in a second whether a harness is wired right.

    The program is started and runs a tiny RNN, GRU and LSTM of ONNX, each called twice; it may
    refuse two of the three. If it refuses all, it is sent those of WebNN, then of OpenVINO. It must
    refuse a case whose activation does not exist, and end with exit code 0 after stop. The exit
    code is 0 if all is well, 1 if a check fails, 2 if the program does not start or does not speak
    the protocol, and 5 if it refuses all cases.

    \b
    rnncli smoke --harness ./harness
    rnncli smoke --harness 'docker run -i --rm image' --timeout 60

    Options:
        harness: The program, as for `rnncli verify --harness`.
    """
    from rnncli.reports.tables import print_records
    from rnncli.verifying.smoke import conclusion_of, exit_code_of, smoke_checks

    checks = smoke_checks(harness, limits)
    records = [{"sent": c.name, "result": str(c.result), "sentence": c.sentence} for c in checks]
    print_records(("sent", "result", "what it did"), records, as_json=as_json)
    say(f"{harness}: {conclusion_of(checks)}")
    return exit_code_of(checks)
