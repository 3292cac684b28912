"""Reading of an input's values: a fill, a literal or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.case import Filling, GivenValues
from rnncli.cases.fills import FILLS, KINDS, Blank, Fill, Parameter, fill_problems
from rnncli.cases.yaml_reader import YamlNode, shown
from rnncli.errors import RnncliError, did_you_mean
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import open_regular
from rnncli.numerics import Array, dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rnncli.cases.yaml_reader import Findings
    from rnncli.errors import Place
    from rnncli.operators import Input

FILE_KEYS = {
    "file": "a tensor file in the folder of the YAML or below: .npy, .npz, .h5, .pb",
    "key": "which tensor of it; a file of one tensor needs none",
}


def read_input(
    node: YamlNode, tensor: Input, blank: Blank | None, folder: Path, findings: Findings
) -> Filling | GivenValues | None:
    """Return the source of an input's values, or None if something is wrong.

    The blank is None if other findings leave its shape or dtype unknown.
    """
    before = len(findings)
    source: Filling | GivenValues | None
    if isinstance(node.value, dict) and "file" in node.value:
        source = _file(node, tensor, blank, folder, findings)
    elif isinstance(node.value, dict | str):
        source = _filling(node, tensor, blank, findings)
    else:
        source = _literal(node, tensor, blank, findings)
    return source if len(findings) == before else None


def fills_for(kind: str) -> dict[str, Fill]:
    """Return the fills for a kind of input, see `Input.kind`."""
    return {name: row for name, row in FILLS.items() if kind in row.kinds}


def _filling(
    node: YamlNode, tensor: Input, blank: Blank | None, findings: Findings
) -> Filling | GivenValues | None:
    known = fills_for(tensor.kind)
    keys = list(node.value) if isinstance(node.value, dict) else [node.value]
    name = next((str(key) for key in keys if key in known), None)
    if name is None:
        findings.add(_first_key(node), _unknown(tensor, str(keys[0]) if keys else "", known))
        return None
    row = known[name]
    values = _parameters(node, name, row, findings)
    if values is None:
        return None
    for sentence in fill_problems(row, values, blank) if blank else ():
        findings.add(node.place, f"{tensor.name}: {sentence}")
    return Filling(name, values)


def _first_key(node: YamlNode) -> Place:
    keys = node.value if isinstance(node.value, dict) else ()
    return next((key.place for key in keys), node.place)


def _unknown(tensor: Input, word: str, known: Mapping[str, Fill]) -> str:
    if word in FILLS:
        return f"{tensor.name} cannot be filled by '{word}'; it takes {', '.join(known)}, file"
    hint = did_you_mean(word, [*known, "file"]) or f" (there are {', '.join(known)}, file)"
    return f"unknown fill '{word:.40}' for {tensor.name}{hint}"


def _parameters(node: YamlNode, name: str, row: Fill, findings: Findings) -> dict[str, Any] | None:
    """Return all parameters of a fill: ``[low, high]`` in order, others as separate keys."""
    before = len(findings)
    given = dict(_given_parameters(node, name, row, findings))
    for parameter, value in given.items():
        kind = KINDS[parameter.kind]
        if not kind.test(value.value):
            sentence = f"'{parameter.name}' of '{name}' must be {kind.wanted}, got {shown(value)}"
            findings.add(value.place, sentence)
    if len(findings) > before:
        return None
    return {
        parameter.name: KINDS[parameter.kind].hold(given[parameter].value)
        if parameter in given
        else parameter.default
        for parameter in row.parameters
    }


def _given_parameters(
    node: YamlNode, name: str, row: Fill, findings: Findings
) -> Iterator[tuple[Parameter, YamlNode]]:
    if not isinstance(node.value, dict):
        return
    by_name = {parameter.name: parameter for parameter in row.parameters}
    in_order = set()
    for key, value in node.value.items():
        if key == name:
            pairs = list(_in_order(value, name, row, findings))
            in_order = {parameter.name for parameter, _ in pairs}
            yield from pairs
        elif key not in by_name:
            wanted = f"; it has {', '.join(by_name)}" if by_name else "; it has none"
            hint = did_you_mean(key, by_name) or wanted
            findings.add(key.place, f"fill '{name}' has no parameter '{key:.40}'{hint}")
        else:
            yield by_name[key], value
    for key in node.value:
        if key in in_order and key != name:
            findings.add(key.place, f"'{key}' of '{name}' is given twice")


def _in_order(
    node: YamlNode, name: str, row: Fill, findings: Findings
) -> Iterator[tuple[Parameter, YamlNode]]:
    """Pair the values under a fill's name with its parameters."""
    if node.value is None:  # {uniform: } means uniform
        return
    values = node.value if isinstance(node.value, tuple) else (node,)
    if len(values) > len(row.parameters):
        names = ", ".join(parameter.name for parameter in row.parameters) or "none"
        findings.add(
            node.place,
            f"'{name}' takes {len(row.parameters)} values ({names}), got {len(values)}",
        )
    yield from zip(row.parameters, values, strict=False)


def _literal(
    node: YamlNode, tensor: Input, blank: Blank | None, findings: Findings
) -> GivenValues | None:
    if not isinstance(node.value, tuple):
        hint = f"; write {{constant: {shown(node)}}} for one value everywhere"
        hint = hint if KINDS["any number"].test(node.value) else ""
        sentence = f"{tensor.name} must be a fill, a list or a file, got {shown(node)}{hint}"
        findings.add(node.place, sentence)
        return None
    if blank is None:
        return None
    before = len(findings)
    _check_literal(node, tensor, blank, 0, findings)
    if len(findings) > before:
        return None
    if not blank.dtype.is_float:
        values: Array = np.array(node.plain, blank.dtype.numpy)
    else:
        values = _rounded(node, tensor, blank, findings)
    return GivenValues(values.reshape(blank.shape), node.plain)


def _rounded(node: YamlNode, tensor: Input, blank: Blank, findings: Findings) -> Array:
    exact = np.array(node.plain, np.float64)
    values = round_to(exact, blank.dtype)
    lost = np.isinf(values.astype(np.float64)) & ~np.isinf(exact)
    if lost.any():
        sentence = f"{tensor.name} holds {exact[lost][0]:g}, which {blank.dtype} cannot hold"
        findings.add(node.place, sentence)
    return values


def _check_literal(
    node: YamlNode, tensor: Input, blank: Blank, depth: int, findings: Findings
) -> None:
    """Check nested lists against the shape and each number against the dtype."""
    if depth == len(blank.shape):
        _check_number(node, tensor, blank, findings)
    elif not isinstance(node.value, tuple) or len(node.value) != blank.shape[depth]:
        got = f"{len(node.value)}" if isinstance(node.value, tuple) else shown(node)
        here = f"expected a list of {blank.shape[depth]} here, got {got}"
        findings.add(node.place, f"{tensor.name} must be {blank.shape_wanted}: {here}")
    else:
        for child in node.value:
            _check_literal(child, tensor, blank, depth + 1, findings)


def _check_number(node: YamlNode, tensor: Input, blank: Blank, findings: Findings) -> None:
    if blank.dtype.is_float:
        right = KINDS["any number"].test(node.value)
    else:
        limits = np.iinfo(blank.dtype.numpy)
        value = node.value
        right = isinstance(value, int) and not isinstance(value, bool)
        right = right and limits.min <= int(value) <= limits.max  # type: ignore[arg-type]
    if not right:
        wanted = "a number" if blank.dtype.is_float else "an integer"
        findings.add(
            node.place, f"{tensor.name} wants {wanted} of {blank.dtype}, got {shown(node)}"
        )


def _file(
    node: YamlNode, tensor: Input, blank: Blank | None, folder: Path, findings: Findings
) -> GivenValues | None:
    assert isinstance(node.value, dict)
    before = len(findings)
    for key, value in node.value.items():
        if key not in FILE_KEYS:
            hint = did_you_mean(key, FILE_KEYS)
            findings.add(key.place, f"unknown key '{key:.40}' beside 'file'{hint}")
        elif not isinstance(value.value, str) or not value.value:
            findings.add(value.place, f"'{key}' must be a name, got {shown(value)}")
    if len(findings) > before:
        return None
    entries = {str(key): str(value.value) for key, value in node.value.items()}
    try:
        path = below(folder, RelativePath(entries["file"]))
        values = _read_tensor(path, entries.get("key"))
    except RnncliError as error:
        findings.add(node.place_of(("file",)), f"{tensor.name}: {error}")
        return None
    for sentence in _array_problems(values, tensor, blank) if blank else ():
        findings.add(node.place, sentence)
    return GivenValues(values, entries)


def _read_tensor(path: Path, key: str | None) -> Array:
    from rnncli.files.formats import read_tensor

    open_regular(path).close()  # folders are not accepted here
    return read_tensor(f"{path}::{key}" if key else str(path))


def _array_problems(values: Array, tensor: Input, blank: Blank) -> Iterator[str]:
    """Yield the problems of a file's array."""
    given = dtype_of(values).name
    allowed = tensor.dtypes or (blank.dtype.name,)
    if given not in allowed:
        yield f"{tensor.name} must be {' or '.join(allowed)}, got {given} from the file"
    if values.shape != blank.shape:
        got = f"got {list(values.shape)} from the file"
        yield f"{tensor.name} must be {blank.shape_wanted} by sizes and direction, {got}"
