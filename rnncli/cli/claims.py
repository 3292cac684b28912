"""`rnncli claims`."""

from __future__ import annotations

from pathlib import Path

import click

from rnncli.cli.command import command
from rnncli.cli.options import PACK, printed, row
from rnncli.errors import InvalidRequest
from rnncli.talk.terminal import say


@command(
    pack=PACK,
    runs=row("--from", multiple=True, type=click.Path(path_type=Path), metavar="RUN.jsonl"),
    output=printed("the claim"),
)
def claims(pack: Path, *, runs: tuple[Path, ...], output: str = "") -> None:
    """Write what an implementation claims, from a run, for `rnncli verify --claims`.

    Inside the claim are the cases that the run judged right; what was refused, wrong or skipped is
    left out by what those cases require. Right cases that no requirement tells from wrong ones are
    left out, too, and named. The run must be one of the whole pack, by its own tolerances, and
    conform to the claim; otherwise nothing is written. A claim is short YAML, to be read: one that
    requires more of a case claims less, and `cases` says how many are then inside.

    \b
    rnncli verify vectors/core --runtime onnxruntime --json > run.jsonl
    rnncli claims vectors/core --from run.jsonl -o claim.yaml
    rnncli verify vectors/core --runtime onnxruntime --claims claim.yaml

    Options:
        runs: Lines that `rnncli verify PACK --json` printed for the whole pack; several times for
            the shards of a run.
    """
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import YAML
    from rnncli.reports.result_files import read_results, whole_runs
    from rnncli.reports.verification import skips
    from rnncli.verifying.claims import claim_of
    from rnncli.verifying.verification import whole_pack

    reports = [*whole_runs(each for path in runs for each in read_results(path))]
    if len(reports) > 1:
        raise InvalidRequest(f"a claim is written from one run, and there are {len(reports)}")
    found = claim_of(reports[0], whole_pack(pack))
    if output:
        write_text(Path(output), found.claim.text, YAML)
    else:
        click.echo(found.claim.text, nl=False)
    for sentence in (*skips(found.claimed), *found.sentences, found.claimed.conformance):
        say(sentence)
