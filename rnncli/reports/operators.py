"""An operator's row, as a page and as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.numerics import INTEGERS
from rnncli.operators.operator import SYMBOLS
from rnncli.operators.unit import possible_readings
from rnncli.recurrence import quantisation
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rnncli.operators import Attribute, Operator
    from rnncli.operators.operator import Dim, Tensor

_LETTERS = {name: letter for letter, name in SYMBOLS.items()}


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
    title = f"{operator.name}, {operator.dialect}, domain '{operator.domain}'"
    default = ", ".join(map(_spelling(operator), operator.default_activations))
    outputs = ((row.name, _shapes(operator, row), row.summary) for row in operator.outputs)
    blocks = (
        _section("Sizes", (pair for pair in SYMBOLS.items() if operator.has(pair[1]))),
        _section("Inputs", (_tensor(operator, row) for row in operator.inputs)),
        _section("Outputs, any of which may be left out", outputs),
        _section("Attributes", (_attribute(row) for row in operator.attributes.values())),
        _section("Gates", _gate_orders(operator)),
        ["Equations", *(f"  {line}" for line in _equations(operator))],
        _section(f"Activations, default {default}", _functions(operator)),
        _section("Readings of contested points, the default marked *", _readings(operator)),
    )
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


def _spelled(dims: tuple[Dim, ...]) -> str:
    """Return a shape with one letter per size."""
    letters = (
        _LETTERS[dim.symbol] if dim.multiple == 1 else f"{dim.multiple}*{_LETTERS[dim.symbol]}"
        for dim in dims
    )
    return f"[{', '.join(letters)}]"


def _shapes(operator: Operator, row: Tensor) -> str:
    """Return a tensor's shape; both shapes if an attribute decides, or if it may have either."""
    spelled = [_spelled(dims) for dims in row.shapes]
    if row.has_ranks:
        return " or ".join(spelled)
    if len(spelled) == 1 or operator.shapes_by not in operator.attributes:
        return spelled[0]
    return f"{spelled[0]}, {operator.shapes_by} 1: {spelled[1]}"


def _tensor(operator: Operator, row: Tensor) -> tuple[str, str, str, str]:
    need = "" if row.optional else "required; "
    return row.name, _shapes(operator, row), _element_type(operator, row), need + row.summary


def _element_type(operator: Operator, row: Tensor) -> str:
    """Return T, with its types listed at the first input."""
    if row.dtypes:
        return "any integer" if row.dtypes == INTEGERS else " or ".join(row.dtypes)
    return f"T: {' '.join(operator.dtypes)}" if row is operator.inputs[0] else "T"


def _attribute(row: Attribute) -> tuple[str, str, str, str]:
    value = " ".join(row.default) if isinstance(row.default, list) else row.default
    optional = "no default" if value is None else f"default {value}"
    return row.name, row.type, "required" if row.required else optional, row.summary


def _gate_orders(operator: Operator) -> Iterator[tuple[str, str]]:
    """Yield the order of the gates, or that of each choice of the attribute that decides."""
    where = f"their order in {operator.gated}"
    row = operator.attribute_for("gates")
    choices = row.aliases if row else {"": operator.gates}
    for choice, gates in choices.items():
        yield ", ".join(gates), where + (f", {row.name} {choice}" if row else "")


def _spelling(operator: Operator) -> Callable[[str], str]:
    """Return how the operator's dialect spells an activation: as in the default of its list."""
    row = operator.attributes.get("activations")
    return str.lower if row and row.default and all(map(str.islower, row.default)) else str


def _functions(operator: Operator) -> Iterator[tuple[str, str, str]]:
    spelt = _spelling(operator)
    for name in operator.activations:
        row = ACTIVATIONS[name]
        takes = {"alpha": row.alpha, "beta": row.beta}
        defaults = (f"{key} {value:.6g}" for key, value in takes.items() if value is not None)
        yield spelt(name), row.formula, ", ".join(defaults) + (f" ({row.note})" if row.note else "")


def _readings(operator: Operator) -> Iterator[tuple[str, str, str]]:
    for name, default in possible_readings(operator).items():
        for choice, meaning in READINGS[name].meanings.items():
            yield f"{name}={choice}", "*" if choice == default else "", meaning


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
        "attributes": [_attribute_record(row) for row in operator.attributes.values()],
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


def _attribute_record(row: Attribute) -> dict[str, Any]:
    names = ("name", "type", "default", "required", "choices", "summary")
    return {name: getattr(row, name) for name in names} | {"choices": list(row.choices)}
