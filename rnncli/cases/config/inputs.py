"""Reading of an input's values: a fill, a literal or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.cases.case import Filling, GivenValues
from rnncli.cases.fills import FILLS, KINDS, Blank, Fill, fill_problems
from rnncli.cases.yaml_reader import Key, YamlNode, shown
from rnncli.errors import RnncliError, did_you_mean
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import open_regular
from rnncli.numerics import Array, dtype_of, round_to

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.cases.yaml_reader import Findings
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
    known, before = fills_for(tensor.kind), len(findings)
    keys = list(node.value) if isinstance(node.value, dict) else [node.value]
    name = next((str(key) for key in keys if key in known), None)
    if name is None:
        word = str(keys[0]) if keys else ""
        there = f"{', '.join(known)}, file"
        hint = did_you_mean(word, [*known, "file"]) or f" (there are {there})"
        sentence = f"unknown fill '{word:.40}' for {tensor.name}{hint}"
        if word in FILLS:
            sentence = f"{tensor.name} cannot be filled by '{word}'; it takes {there}"
        first = keys[0] if keys and isinstance(keys[0], Key) else node
        findings.add(first.place, sentence)
        return None

    # Parameters: ``[low, high]`` in order under the fill's name, others as separate keys.
    row = known[name]
    by_name = {parameter.name: parameter for parameter in row.parameters}
    given: dict[str, YamlNode] = {}
    in_order: set[str] = set()
    for key, value in node.value.items() if isinstance(node.value, dict) else ():
        if key == name:
            several = value.value if isinstance(value.value, tuple) else (value,)
            if value.value is None:  # {uniform: } means uniform
                several = ()
            if len(several) > len(by_name):
                names = ", ".join(by_name) or "none"
                sentence = f"'{name}' takes {len(by_name)} values ({names}), got {len(several)}"
                findings.add(value.place, sentence)
            pairs = dict(zip(by_name, several, strict=False))
            in_order = set(pairs)
            given |= pairs
        elif key not in by_name:
            wanted = f"; it has {', '.join(by_name)}" if by_name else "; it has none"
            hint = did_you_mean(key, by_name) or wanted
            findings.add(key.place, f"fill '{name}' has no parameter '{key:.40}'{hint}")
        else:
            given[str(key)] = value
    for twice in [key for key in keys if key in in_order and key != name]:
        assert isinstance(twice, Key)
        findings.add(twice.place, f"'{twice}' of '{name}' is given twice")
    for word, value in given.items():
        kind = KINDS[by_name[word].kind]
        if not kind.test(value.value):
            sentence = f"'{word}' of '{name}' must be {kind.wanted}, got {shown(value)}"
            findings.add(value.place, sentence)
    if len(findings) > before:
        return None

    values = {
        p.name: KINDS[p.kind].hold(given[p.name].value) if p.name in given else p.default
        for p in row.parameters
    }
    for sentence in fill_problems(row, values, blank) if blank else ():
        findings.add(node.place, f"{tensor.name}: {sentence}")
    return Filling(name, values)


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
        exact = np.array(node.plain, np.float64)
        values = round_to(exact, blank.dtype)
        lost = np.isinf(values.astype(np.float64)) & ~np.isinf(exact)
        if lost.any():
            sentence = f"{tensor.name} holds {exact[lost][0]:g}, which {blank.dtype} cannot hold"
            findings.add(node.place, sentence)
    return GivenValues(values.reshape(blank.shape), node.plain)


def _check_literal(
    node: YamlNode, tensor: Input, blank: Blank, depth: int, findings: Findings
) -> None:
    """Check nested lists against the shape and each number against the dtype."""
    if depth == len(blank.shape):
        if blank.dtype.is_float:
            right = KINDS["any number"].test(node.value)
        else:
            limits = np.iinfo(blank.dtype.numpy)
            value = node.value
            right = isinstance(value, int) and not isinstance(value, bool)
            right = right and limits.min <= int(value) <= limits.max  # type: ignore[arg-type]
        if not right:
            wanted = "a number" if blank.dtype.is_float else "an integer"
            sentence = f"{tensor.name} wants {wanted} of {blank.dtype}, got {shown(node)}"
            findings.add(node.place, sentence)
    elif not isinstance(node.value, tuple) or len(node.value) != blank.shape[depth]:
        got = f"{len(node.value)}" if isinstance(node.value, tuple) else shown(node)
        here = f"expected a list of {blank.shape[depth]} here, got {got}"
        findings.add(node.place, f"{tensor.name} must be {blank.shape_wanted}: {here}")
    else:
        for child in node.value:
            _check_literal(child, tensor, blank, depth + 1, findings)


def _file(
    node: YamlNode, tensor: Input, blank: Blank | None, folder: Path, findings: Findings
) -> GivenValues | None:
    from rnncli.files.formats import read_tensor

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
        open_regular(path).close()  # folders are not accepted here
        values = read_tensor(f"{path}::{entries['key']}" if "key" in entries else str(path))
    except RnncliError as error:
        findings.add(node.place_of(("file",)), f"{tensor.name}: {error}")
        return None
    if blank:
        given, allowed = dtype_of(values).name, tensor.dtypes or (blank.dtype.name,)
        if given not in allowed:
            sentence = f"{tensor.name} must be {' or '.join(allowed)}, got {given} from the file"
            findings.add(node.place, sentence)
        if values.shape != blank.shape:
            got = f"got {list(values.shape)} from the file"
            sentence = f"{tensor.name} must be {blank.shape_wanted} by sizes and direction, {got}"
            findings.add(node.place, sentence)
    return GivenValues(values, entries)
