"""`rnncli inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rnncli.cli.command import command, hold
from rnncli.cli.options import MEMORY, MODEL
from rnncli.errors import NothingSelected
from rnncli.limits import UNLIMITED, Limits
from rnncli.reports.tables import print_json_line


@command(target=MODEL, limits=MEMORY)
def inspect(target: str, *, limits: Limits = UNLIMITED, as_json: bool = False) -> int:
    """Show a config with every default filled in, a case of a suite, a model or a pack.

    A config is printed as YAML that gives the same case; a case of a suite, SUITE::ID, with its
    flags and the bugs each flag finds; a model with its inputs and outputs, and each recurrent node
    with its place, attributes (including defaults) and input shapes. `states` are the inputs that
    continue an output of the call before, `time` and `batch` the axes of inputs whose sizes are
    free, each with the reason; `warnings` name a time axis frozen to the traced length, initial
    states that fix the batch, and states that nothing reads or renews. `not_evaluated` lists the
    nodes whose operators rnncli lacks, such as com.microsoft::AttnLSTM, and in a model.xml of
    OpenVINO, which openvino reads (extra `runtimes`), those that break their specification. A pack
    of conformance vectors is printed with its purpose, the needs of its cases, its digest, which
    covers every file, and every file that does not match its checksum (exit code 1, or 5 for a pack
    without cases). A case of a pack, PACK::ID, is printed with its record in the manifest and the
    statements it checks.

    \b
    rnncli inspect lstm_14_peepholes
    rnncli inspect model.onnx
    rnncli inspect vectors/core
    rnncli inspect vectors/core::gru_14_clip --json
    """
    from rnncli.reports.inspection import as_text

    hold(limits)
    record = _record(target)
    print_json_line(record) if as_json else click.echo(as_text(record), nl=False)
    if record.get("damaged"):
        return 1
    if record.get("cases") == 0:
        raise NothingSelected(f"{target}: a pack without cases")
    return 0


def _record(target: str) -> dict[str, Any]:
    from rnncli.cases.case import Case, describe
    from rnncli.models.ir_model import read_ir
    from rnncli.packs.pack import is_pack, open_pack
    from rnncli.reports.inspection import case_record, ir_record, model_record, pack_record
    from rnncli.running.target import OF_SUITE, entry_of, is_ir, load_target

    if is_pack(target):
        return pack_record(open_pack(target))
    folder, _, case_id = target.rpartition(OF_SUITE)
    if folder and is_pack(folder):
        from rnncli.reports.traceability import packed_case_record

        return packed_case_record(open_pack(folder), case_id)
    if named := entry_of(target):
        return case_record(*named)
    if is_ir(target):
        return ir_record(read_ir(Path(target)))
    loaded = load_target(target)
    return describe(loaded) if isinstance(loaded, Case) else model_record(loaded)
