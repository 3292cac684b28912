"""An operator's row, as a page and as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.numerics import INTEGERS
from rnncli.operators.checking import possible_readings
from rnncli.operators.operator import PRODUCTS, SYMBOLS
from rnncli.recurrence import quantisation
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.operators import Operator
    from rnncli.operators.operator import Tensor

_LETTERS = {name: letter for letter, name in SYMBOLS.items()} | {
    str(product): letters for letters, product in PRODUCTS.items()
}


def summary(operator: Operator) -> tuple[str, str, str, str, str]:
    """Return the operator's line in `rnncli ops`: name, dialect, dtypes, inputs and attributes."""
    return (
        operator.name,
        operator.dialect,
        " ".join(operator.dtypes),
        " ".join(row.name if not row.optional else f"[{row.name}]" for row in operator.inputs),
        " ".join(operator.attributes),
    )


def as_text(operator: Operator) -> str:
    """Return the page `rnncli ops NAME` shows."""
    inputs, attributes = [], []
    for tensor in operator.inputs:
        # T, with its types listed at the first input.
        kind = f"T: {' '.join(operator.dtypes)}" if tensor is operator.inputs[0] else "T"
        own = tensor.dtypes or operator.input_dtypes(tensor)
        if own != operator.dtypes:
            kind = "any integer" if own == INTEGERS else " or ".join(own)
        need = "" if tensor.optional else "required; "
        inputs.append((tensor.name, _shapes(operator, tensor), kind, need + tensor.summary))
    outputs = [(row.name, _shapes(operator, row), row.summary) for row in operator.outputs]
    for row in operator.attributes.values():
        value = " ".join(row.default) if isinstance(row.default, list) else row.default
        optional = "no default" if value is None else f"default {value}"
        need = "required" if row.required else optional
        attributes.append((row.name, row.type, need, row.summary))

    # The order of the gates, or that of each choice of the attribute that decides.
    where = f"their order in {operator.gated}" if operator.gated else ""
    decides = operator.attribute_for("gates")
    orders = decides.aliases if decides else {"": operator.gates}
    gates = [
        (", ".join(order), where + (f", {decides.name} {choice}" if decides else ""))
        for choice, order in orders.items()
        if order
    ]

    # Activations as the operator's dialect spells them: as in the default of its list.
    listed = operator.attributes.get("activations")
    is_lower = listed and listed.default and all(map(str.islower, listed.default))
    spelt = str.lower if is_lower else str
    functions = []
    for name in operator.activations:
        function = ACTIVATIONS[name]
        takes = {"alpha": function.alpha, "beta": function.beta}
        values = ", ".join(f"{k} {value:.6g}" for k, value in takes.items() if value is not None)
        note = f" ({function.note})" if function.note else ""
        functions.append((spelt(name), function.formula, values + note))

    readings = [
        (f"{name}={choice}", "*" if choice == default else "", meaning)
        for name, default in possible_readings(operator).items()
        for choice, meaning in READINGS[name].meanings.items()
    ]
    default = ", ".join(map(spelt, operator.default_activations))
    blocks = (
        _section("Sizes", (pair for pair in SYMBOLS.items() if operator.has(pair[1]))),
        _section("Inputs", inputs),
        _section("Outputs, any of which may be left out", outputs),
        _section("Attributes", attributes),
        _section("Gates", gates),
        ["Equations", *(f"  {line}" for line in _equations(operator))],
        _section(f"Activations, default {default}", functions),
        _section("Readings of contested points, the default marked *", readings),
    )
    title = f"{operator.name}, {operator.dialect}, domain '{operator.domain}'"
    return "\n\n".join([title, *("\n".join(block) for block in blocks if len(block) > 1)])


def _equations(operator: Operator) -> list[str]:
    """Return the specification's lines, those of quantisation last, without options it lacks."""
    roles = {row.role or row.name for row in operator.attributes.values()}
    lacking = [f" with {name}" for name in CellOptions._fields if name not in roles]
    of_cell = [
        line.partition("   or ")[0] if line.endswith(tuple(lacking)) else line
        for line in operator.cell.equations.splitlines()
    ]
    of_levels = quantisation.EQUATIONS.splitlines() if operator.quantised else []
    return [*of_cell, *of_levels]


def _section(title: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Align columns below a title; it stands alone if there are no rows."""
    rows = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)
    return [title, *(f"  {line.rstrip()}" for line in lines)]


def _shapes(operator: Operator, row: Tensor) -> str:
    """Return a tensor's shape; both shapes if an attribute decides, or if it may have either."""
    spelled = []
    for dims in row.shapes:  # with one letter per size
        sizes = [f"{dim.multiple}*{_LETTERS[dim.symbol]}".removeprefix("1*") for dim in dims]
        spelled.append(f"[{', '.join(sizes)}]")
    if row.form:
        return " or ".join(spelled)
    if len(spelled) == 1 or operator.shapes_by not in operator.attributes:
        return spelled[0]
    return f"{spelled[0]}, {operator.shapes_by} 1: {spelled[1]}"


def as_record(operator: Operator) -> dict[str, Any]:
    """Return the row as JSON values."""
    return {
        "name": operator.name,
        "dialect": operator.dialect,
        "domain": operator.domain,
        "inputs": [
            _tensor_record(operator, row, required=not row.optional) for row in operator.inputs
        ],
        "outputs": [_tensor_record(operator, row, required=False) for row in operator.outputs],
        "attributes": [
            {
                **{name: getattr(row, name) for name in ("name", "type", "default", "required")},
                "choices": list(row.choices),
                "summary": row.summary,
            }
            for row in operator.attributes.values()
        ],
        "gates": list(operator.gates),
        "equations": _equations(operator),
        "activations": list(operator.activations),
        "default_activations": list(operator.default_activations),
        "readings": dict(possible_readings(operator)),
    }


def _tensor_record(operator: Operator, row: Tensor, *, required: bool) -> dict[str, Any]:
    return {
        "name": row.name,
        "shapes": [[str(dim) for dim in dims] for dims in row.shapes],
        "dtypes": list(row.dtypes or operator.dtypes),
        "required": required,
        "summary": row.summary,
    }
