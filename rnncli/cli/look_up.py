"""What there is: `rnncli inspect`, and `ops`, `backends` and others from our tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from rnncli.cli.command import IN_FULL, command, hold
from rnncli.cli.options import MEMORY, MODEL, OPERATOR, Name, printed, row
from rnncli.errors import NothingSelected, did_you_mean
from rnncli.limits import UNLIMITED, Limits
from rnncli.reports.tables import print_json_line, print_records, print_table

if TYPE_CHECKING:
    from rnncli.mutants.mutant import Mutant
    from rnncli.mutants.structural import StructuralMutant

# Name -> the function that makes the schema, imported on use.
SCHEMAS = {
    "config": "rnncli.cases.schemas:config_schema",
    "suite": "rnncli.cases.schemas:suite_schema",
    "manifest": "rnncli.packs.manifest:manifest_schema",
    "case": "rnncli.packs.raw_form:case_schema",
    "verification": "rnncli.reports.verification_schema:verification_schema",
    "claim": "rnncli.judging.claim:claim_schema",
    "device": "rnncli.judging.device:device_schema",
    "harness": "rnncli.subjects.harness_messages:harness_schema",
}


@command(operator=row(type=OPERATOR))
def ops(
    operator: str | None = None,
    *,
    gates: bool = False,
    kernel: bool = False,
    as_json: bool = False,
) -> None:
    """List the operators, or show one in full.

    With OPERATOR, such as LSTM-14: its inputs with shapes, attributes with types and defaults,
    gate order, equations, activations and readings.

    \b
    rnncli ops LSTM-14
    rnncli ops LSTM-14 --kernel
    rnncli ops --json
    rnncli ops --gates

    Options:
        gates: How ONNX, PyTorch, Keras and OpenVINO store the weights of a cell.
        kernel: A plain NumPy kernel of OPERATOR, which the bugs of `rnncli mutants` edit.
    """
    from rnncli.operators import OPERATORS, operator_named
    from rnncli.reports.operators import as_record, as_text, summary

    if kernel:
        from rnncli.mutants.spelling import spelled_out

        if operator is None or gates or as_json:
            raise click.UsageError("--kernel needs an operator, and no other option")
        click.echo(spelled_out(operator_named(operator).cell.name), nl=False)
        return
    if gates:
        from rnncli.models.weights.layer import FORMS, HEADER

        cell = operator_named(operator).cell.name if operator else ""
        rows = [form for form in FORMS if cell in {"", form.cell}]
        if as_json:
            for form in rows:
                print_json_line(form._asdict())
        else:
            print_table(HEADER, [form.row for form in rows])
        return
    if operator is not None:
        row = operator_named(operator)
        print_json_line(as_record(row)) if as_json else click.echo(as_text(row))
    elif as_json:
        for row in OPERATORS.values():
            print_json_line(as_record(row))
    else:
        print_table(
            ("operator", "dialect", "dtypes", "inputs", "attributes"),
            [summary(row) for row in OPERATORS.values()],
        )


@command()
def backends(*, as_json: bool = False) -> None:
    """List the compute backends.

    Installed packages add backends through the entry point group `rnncli.backends`.
    """
    from rnncli.backends.backend_table import describe_backends

    print_records(("backend", "what it is", "from"), describe_backends(), as_json=as_json)


@command(name=row(type=Name("command", "rnncli.cli.group:HELPED"), metavar="[COMMAND|TOPIC]"))
def help(name: str = "") -> None:  # noqa: A001 -- the name of the command
    """Describe a command in full, or list profiles, readings and the like.

    `--help` of a command that has many names those that other commands have, too. The topics are
    executors, exit-codes, fills, layouts, profiles, readings, relations and stream-relations.

    \b
    rnncli help verify
    rnncli help profiles
    """
    import pkgutil

    from rnncli.cli.group import COMMANDS, HELPED, TOPICS

    context = click.get_current_context()
    root = context.find_root()
    if not name:
        click.echo(root.get_help())
        return
    if name in TOPICS:
        rows = []
        for each, told in pkgutil.resolve_name(TOPICS[name]).items():
            choices = [f"{c}: {said}" for c, said in getattr(told, "meanings", {}).items()]
            rows.append((each, "; ".join([getattr(told, "summary", str(told)), *choices])))
        print_table((name, "what it is"), rows)
        return
    if name not in COMMANDS:
        near = did_you_mean(name, HELPED) or f"; the topics are {', '.join(TOPICS)}"
        context.fail(f"no such command or topic '{name}'{near}")
    _, found, _ = cast("click.Group", root.command).resolve_command(root, [name])
    assert found
    with found.make_context(name, [], parent=root, resilient_parsing=True) as context:
        context.meta[IN_FULL] = True
        click.echo(found.get_help(context))


@command()
def runtimes(*, as_json: bool = False) -> None:
    """List the runtimes that can be judged.

    Installed packages add runtimes through the entry point group `rnncli.subjects`.
    """
    from rnncli.subjects.runtimes import describe_subjects

    print_records(("runtime", "what it is", "from"), describe_subjects(), as_json=as_json)


@command()
def formats(*, as_json: bool = False) -> None:
    """List the file formats of tensors.

    Installed packages add formats through the entry point group `rnncli.formats`.
    """
    from rnncli.files.formats import describe_formats

    print_records(("extension", "what it is", "from"), describe_formats(), as_json=as_json)


@command(
    id=row(type=Name("id", "rnncli.mutants.catalogue:EVERY")),
    cell=row(type=Name("cell", "rnncli.recurrence.cells:CELLS", is_ours=True)),
)
def mutants(
    id: str | None = None,  # noqa: A002 -- the argument
    *,
    cell: str | None = None,
    kernel: bool = False,
    as_json: bool = False,
) -> None:
    """List the known bugs of kernels, or explain one.

    `rnncli verify` and `rnncli diagnose` name bugs by their ids, and each is a kernel that can be
    judged, --backend mutant:ID. Semantic bugs are wrong in the equations, at any size; structural
    ones in the data movement of a blocked kernel: at any size, at some sizes alone, or in a second
    call of a session. `rnncli score` counts both kinds, separately, without finer variants.

    \b
    rnncli mutants --cell GRU
    rnncli mutants padding-flipped
    rnncli verify core --backend mutant:padding-flipped

    Options:
        cell: Only bugs of one cell, such as LSTM.
        kernel: The blocked NumPy kernels, which structural bugs edit.
    """
    from rnncli.judging.explaining.hypotheses import UNTABLED
    from rnncli.mutants.catalogue import EVERY, mutant_named
    from rnncli.mutants.structural import KERNEL, LINEAR_KERNEL

    if kernel:
        if id or cell or as_json:
            raise click.UsageError("--kernel takes no other option")
        click.echo(f"{KERNEL}\n\n{LINEAR_KERNEL}", nl=False)
        return
    if id in UNTABLED and not as_json:
        click.echo(f"{id}: {UNTABLED[id]}")
        return
    rows = [mutant_named(id)] if id else list(EVERY.values())
    rows = [row for row in rows if cell is None or cell in row.cells]
    if as_json:
        for row in rows:
            size = getattr(row, "size", None)
            described = {name: getattr(row, name) for name in ("family", "sentence", "effect")}
            record = {"id": row.id, "cells": [*row.cells], **described, "kind": _kind(row)}
            sizes = size.words if size else "any"
            print_json_line({**record, "sizes": sizes, "scored": _kind(row) != "finer"})
    elif id:
        for row in rows:
            click.echo(_page(row))
    else:
        columns = ("bug", "cells", "family", "kind", "what goes wrong")
        kinds = (str(getattr(row, "reach", "")) or _kind(row) for row in rows)
        print_table(
            columns,
            [
                (row.id, " ".join(row.cells), row.family, kind, row.sentence)
                for row, kind in zip(rows, kinds, strict=True)
            ],
        )


def _kind(row: Mutant | StructuralMutant) -> str:
    from rnncli.mutants.catalogue import EVERY, MUTANTS, is_scored

    if row.id in MUTANTS:
        return "semantic" if is_scored(row.id) else "finer"
    return "structural" if row.id in EVERY else "finer"


def _page(row: Mutant | StructuralMutant) -> str:
    """Return what a mutant is, and what stands in the kernel and instead, if it is an edit."""
    from rnncli.mutants import edits, structural

    lines = [
        f"{row.id}, of {' '.join(row.cells)}; family: {row.family}",
        f"  what goes wrong: {row.sentence}",
        f"  what is seen:    {row.effect}",
        f"  to run it:       --backend mutant:{row.id}",
    ]
    if _kind(row) == "finer":
        lines.append("  suites are not scored by it")
    if isinstance(row, structural.StructuralMutant):
        sizes = ", ".join(f"{name} = {size}" for name, size in row.blocks.items())
        where = f"`rnncli mutants --kernel` prints{sizes and f', with {sizes}'}"
        edited = row.difference.splitlines()
    else:
        where = "`rnncli ops OPERATOR --kernel` prints"
        edited = edits.difference(row.cells, row.edits).splitlines()
    if edited:
        lines += [f"  in the kernel that {where}:", *(f"    {line}" for line in edited)]
    return "\n".join(lines)


@command(target=MODEL, limits=MEMORY)
def inspect(target: str, *, limits: Limits = UNLIMITED, as_json: bool = False) -> int:
    """Show a config with every default filled in, a case of a suite, a model or a pack.

    A config is printed as YAML that gives the same case; a case of a suite, SUITE::ID, with its
    features and the bugs each finds; a model with its inputs and outputs, and each recurrent node
    with its place, attributes (including defaults) and input shapes. `states` are the inputs that
    continue an output of the call before, `time` and `batch` the axes of inputs whose sizes are
    free, each with the reason; `warnings` say what an exporter froze, lost or declares wrongly, and
    which states nothing reads or renews. `not_evaluated` lists the nodes whose operators rnncli
    lacks, such as com.microsoft::AttnLSTM, and those that break their specification; openvino reads
    a model.xml of OpenVINO (extra `runtimes`), tflite a model.tflite (extra `tflite`). A pack
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
    from rnncli.cases.yaml_reader import as_yaml

    hold(limits)
    record = _record(target)
    print_json_line(record) if as_json else click.echo(as_yaml(record), nl=False)
    if record.get("damaged"):
        return 1
    if record.get("cases") == 0:
        raise NothingSelected(f"{target}: a pack without cases")
    return 0


def _record(target: str) -> dict[str, Any]:
    from rnncli.cases.case import Case, describe
    from rnncli.packs.pack import is_pack, open_pack
    from rnncli.reports.inspection import case_record, model_record, native_record, pack_record
    from rnncli.running.native_models import read_native
    from rnncli.running.target import OF_SUITE, entry_of, load_target

    if is_pack(target):
        return pack_record(open_pack(target))
    folder, _, case_id = target.rpartition(OF_SUITE)
    if folder and is_pack(folder):
        from rnncli.reports.traceability import packed_case_record

        return packed_case_record(open_pack(folder), case_id)
    if named := entry_of(target):
        return case_record(*named)
    if native := read_native(target):
        return native_record(native)
    loaded = load_target(target)
    return describe(loaded) if isinstance(loaded, Case) else model_record(loaded)


@command(of=row(type=click.Choice([*SCHEMAS])), output=printed("the schema"))
def schema(of: str = "config", *, output: str = "") -> None:
    """Write the JSON Schema of what is read or printed.

    It describes configs, suites, manifests, case.json of packs in the layout raw, the lines of
    `rnncli verify --json` and `rnncli relate --json`, claims for `rnncli verify --claims`, devices
    for `--device`, or the messages of `rnncli verify --harness`.

    Editors use those of configs, suites, claims and devices to complete and check YAML; programs
    that read packs and verifications, or answer as a harness, use the others. They ship in
    specs/schema as {config,suite,manifest,case,verification,claim,device,harness}.schema.json.

    \b
    rnncli schema suite -o suite.schema.json
    """
    import pkgutil

    from rnncli.cases.schemas import schema_text
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import JSON

    text = schema_text(pkgutil.resolve_name(SCHEMAS[of])())
    if not output:
        click.echo(text, nl=False)
        return
    write_text(Path(output), text, JSON)
