"""`rnncli ops`."""

from __future__ import annotations

import click

from rnncli.cli.command import Command
from rnncli.cli.options import OPERATOR, json_option
from rnncli.reports.tables import print_json_line, print_table


@click.command(cls=Command)
@click.argument("operator", type=OPERATOR, required=False)
@click.option(
    "--gates",
    is_flag=True,
    help="How ONNX, PyTorch, Keras and OpenVINO store the weights of a cell.",
)
@json_option
def ops(operator: str | None, gates: bool, as_json: bool) -> None:
    """List the operators, or show one in full.

    With OPERATOR, such as LSTM-14: its inputs with shapes, attributes with types and defaults,
    gate order, equations, activations and readings.

    \b
    rnncli ops LSTM-14
    rnncli ops --json
    rnncli ops --gates
    """
    from rnncli.operators import OPERATORS, operator_named
    from rnncli.reports.operators import as_record, as_text, summary

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
