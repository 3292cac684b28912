"""`rnncli ops`, `backends`, `runtimes`, `mutants` and `formats`: what there is, from our tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rnncli.cli.command import command
from rnncli.cli.options import OPERATOR, Name, row
from rnncli.reports.tables import print_json_line, print_records, print_table

if TYPE_CHECKING:
    from rnncli.mutants.mutant import Mutant
    from rnncli.mutants.structural import StructuralMutant


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
        from rnncli.mutants.edits import kernel_of

        if operator is None or gates or as_json:
            raise click.UsageError("--kernel needs an operator, and no other option")
        click.echo(kernel_of(operator_named(operator).cell.name), nl=False)
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
    """List the mutants, plausible kernel bugs, or explain one.

    Semantic mutants are wrong in the equations, at any size; `rnncli verify` and `rnncli diagnose`
    name bugs by their ids. Structural mutants are wrong in the data movement of a blocked kernel:
    size-free, sized if only some sizes show them, or visible only in a second call of a session.
    `rnncli score` scores suites by both kinds, separately, but not by finer variants of other
    mutants. Every mutant is also a backend, --backend mutant:ID.

    \b
    rnncli mutants --cell GRU
    rnncli mutants padding-flipped
    rnncli verify vectors/core --backend mutant:padding-flipped

    Options:
        cell: Only mutants of one cell, such as LSTM.
        kernel: The blocked NumPy kernel, which structural mutants edit.
    """
    from rnncli.mutants.catalogue import EVERY, mutant_named
    from rnncli.mutants.structural import KERNEL

    if kernel:
        if id or cell or as_json:
            raise click.UsageError("--kernel takes no other option")
        click.echo(KERNEL, nl=False)
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
        columns = ("mutant", "cells", "family", "kind", "what goes wrong")
        kinds = (str(getattr(row, "reach", "")) or _kind(row) for row in rows)
        print_table(
            columns,
            [
                (row.id, " ".join(row.cells), row.family, kind, row.sentence)
                for row, kind in zip(rows, kinds, strict=True)
            ],
        )


def _kind(row: Mutant | StructuralMutant) -> str:
    from rnncli.mutants.catalogue import MUTANTS, is_scored

    if row.id not in MUTANTS:
        return "structural"
    return "semantic" if is_scored(row.id) else "finer"


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
        lines.append("  a finer variant of others: suites are not scored by it")
    if isinstance(row, structural.StructuralMutant):
        sizes = ", ".join(f"{name} = {size}" for name, size in row.blocks.items())
        where = f"`rnncli mutants --kernel` prints{sizes and f', with {sizes}'}"
        edited = structural.difference(row.edits).splitlines()
    else:
        where = "`rnncli ops OPERATOR --kernel` prints"
        edited = edits.difference(row.cells, row.edits).splitlines()
    if edited:
        lines += [f"  in the kernel that {where}:", *(f"    {line}" for line in edited)]
    return "\n".join(lines)
