"""`rnncli verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.api import commands
from rnncli.cli.command import command
from rnncli.cli.options import PACK
from rnncli.cli.reporting import REPORTS, reported

if TYPE_CHECKING:
    from pathlib import Path

# Options of the release before.
OF_RELATE = dict.fromkeys(["--metamorphic", "--relation", "--sizes"], "`rnncli relate PACK ...`")


@command(asks=commands.verify, elsewhere=OF_RELATE, pack=PACK, **REPORTS)
def verify(pack: Path, **asked: Any) -> int:
    """Judge an implementation against a pack of conformance vectors.

    One of --runtime, --backend, --results, --command and --harness names it. All but results run in
    their own process: a crash, a hang or garbage is a verdict on that case, and the run continues.
    The exit code is 1 if a case is silently wrong, refused, crashed, timed out or missing and is
    neither a known failure nor allowed; it is 5 if no case fails but fewer than --min-cases were
    answered. With --claims it is 0 only if all that is claimed is right. If a pack has invalid
    cases that must be refused, valid cases of the same operators run as well: if those fail, a
    refusal shows nothing, and the exit code is 5.

    \b
    rnncli verify vectors/core --runtime onnxruntime --require 'layout=0,dtype=float32'
    rnncli verify vectors/core --results from_device/ --junit verify.xml --html verify.html
    rnncli verify vectors/core --command './run_kernel {model} {inputs} {outputs}' --timeout 10
    rnncli verify vectors/core --harness 'python3 harness.py' -j 2
    rnncli verify vectors/core --runtime onnxruntime --claims claim.yaml
    rnncli verify vectors/core --backend numpy --compute native --profile strict
    """
    return reported(commands.verify, pack, **asked).exit_code
