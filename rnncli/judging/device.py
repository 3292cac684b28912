"""Devices: what an implementation takes, as a file of a few lines that `--device` reads.

    device: "npu-x 2.1"
    require:
      - "op=LSTM|GRU, version=14, weights=initializers"
      - "hidden_size%16=0, hidden_size<=256, seq_length<=8, batch_size=1|4"
      - "dtype=float16, direction=forward|bidirectional, clip=never"
      - "inputs!=sequence_lens|P, outputs==Y|Y+Y_h"

A case of a pack is the device's if it meets every term. A claim says as much, and is read as well.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from rnncli.cases.case import SIZES
from rnncli.cases.yaml_reader import Findings, parse_yaml, read_source
from rnncli.files.described import Distinct, document
from rnncli.judging.claim import (
    LONGEST_NAME,
    Claim,
    RequirementTexts,
    entries_read,
    is_claim,
)
from rnncli.judging.comparing.requirements import FIELDS, Requirements
from rnncli.operators import OPERATORS
from rnncli.operators.checking import opset_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.yaml_reader import YamlNode
    from rnncli.operators import Operator

# Sizes of a device are looked for up to here, and about any number that it names.
LARGEST_SOUGHT = 512
FAMILIES = tuple(dict.fromkeys(row.family for row in OPERATORS.values()))
"""The operators, whatever their version."""


class Device(Distinct):
    """What an implementation takes: the cases that meet every term."""

    device: Annotated[str, Meta(max_length=LONGEST_NAME), "its name and version, in any words"]
    require: Annotated[
        RequirementTexts, "what a case that it takes meets, each as `--require` takes it"
    ]

    @property
    def requirements(self) -> Requirements:
        """What a case must meet."""
        return Requirements.parse(self.require)


def is_device(root: YamlNode) -> bool:
    """Whether YAML is a device, as opposed to a claim, a suite or a config."""
    return root.child("device") is not None


def read_device(path: str | Path) -> Device:
    """Read a device, or what a claim says of one.

    Raises:
        rnncli.errors.UnreadableFile: it cannot be read.
        rnncli.errors.ConfigError: it is neither; every finding has its place.
    """
    return parse_device(read_source(path), str(path))


@lru_cache(maxsize=4)
def parse_device(source: bytes | str, name: str) -> Device:
    """Read the text of a device or a claim; `name` is its file in messages.

    Raises:
        rnncli.errors.ConfigError: it is neither, or takes nothing; every finding has its place.
    """
    root = parse_yaml(source, name)
    if is_claim(root):
        claim = entries_read(root, Claim, "a claim")
        found = Device(claim.implementation, claim.require)
    else:
        found = entries_read(root, Device, "a device")
    findings = Findings()
    if problem := contradiction(found.requirements):
        findings.add(root.place_of(("require",)), problem)
    findings.raise_any()
    return found


def contradiction(needs: Requirements) -> str:
    """Return why no case at all can meet some requirements, or "".

    It looks at operators, and in each at every axis alone and at the sizes together.
    """
    rows = operators_of(needs)
    if not rows:
        return f"takes nothing: no operator meets {_named(needs, OPERATOR_FIELDS)}"
    reasons = dict.fromkeys(_lacking(needs, row) for row in rows)
    return "" if "" in reasons else f"takes nothing: {'; '.join(reasons)}"


OPERATOR_FIELDS = ("operator", "op", "version", "opset", "domain", "dtype")


def operators_of(needs: Requirements) -> list[Operator]:
    """Return the operators of which some case may meet the requirements."""
    return [
        row
        for row in OPERATORS.values()
        if any(
            needs.admits(row.family, **facts_of(row, is_unit=is_unit), dtype=dtype)
            for is_unit in (False, True)
            for dtype in row.dtypes
        )
    ]


def facts_of(row: Operator, *, is_unit: bool) -> dict[str, Any]:
    """Return the fields that are the same in all cases of an operator, or in all of its units."""
    return {
        "operator": row.name,
        "op": row.family,
        "version": int(row.name.partition("-")[2] or 1),
        "domain": row.domain,
        "opset": opset_of(row) if is_unit else row.version,
    }


def _lacking(needs: Requirements, row: Operator) -> str:
    """Return what no case of an operator has that the requirements need, or ""."""
    words = {
        name: each.values
        for name, each in FIELDS.items()
        if each.kind == "word" and each.values and name in ("direction", "weights")
    }
    optional = [tensor.name for tensor in row.inputs if tensor.optional]
    axes: Mapping[str, Iterable[Any]] = {
        **words,
        "outputs": subsets([tensor.name for tensor in row.outputs]),
        "inputs": subsets(optional),
    }
    for name, values in axes.items():
        if not any(needs.admits(row.family, **{name: value}) for value in values):
            what = f"set of {name}" if name in ("inputs", "outputs") else name
            return f"no {what} of {row.family} meets {_named(needs, [name])}"
    sizes = {name: admitted_sizes(needs, name, row.family) for name in SIZES if row.has(name)}
    for name, values in sizes.items():
        if not values:
            return f"no {name} meets {_named(needs, [name])}"
    least = dict.fromkeys(SIZES, 1) | {name: values[0] for name, values in sizes.items()}
    if not needs.admits(row.family, **least, largest_size=max(least.values())):
        return f"no sizes of {row.family} meet {_named(needs, [*SIZES, 'largest_size'])}"
    return ""


def subsets(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield every subset of some names that is not empty, the largest first, and the empty one."""
    for count in range(len(names), -1, -1):
        yield from map(list, combinations(names, count))


@lru_cache(maxsize=64)
def admitted_sizes(needs: Requirements, name: str, op: str) -> tuple[int, ...]:
    """Return values that the terms about one size alone allow, rising; not all that are large."""
    terms = [term for term in needs.terms if name in term.fields]
    named = [int(value) for term in terms for value in term.values if value.isdecimal()]
    moduli = [term.modulus for term in terms if term.modulus]
    # Small sizes, and those about each number that is named, however large it is.
    around = {near + step for near in (*named, *moduli) for step in (-1, 0, 1, 2)}
    multiples = {
        m * (near // m + k) + rest
        for m in moduli
        for near in (0, *named)
        for k in (-1, 0, 1, 2)
        for rest in (0, *named)
        if rest < m
    }
    known = sorted({*range(1, LARGEST_SOUGHT + 1), *around, *multiples})
    return tuple(size for size in known if size > 0 and needs.admits(op, **{name: size}))


def _named(needs: Requirements, fields: Iterable[str]) -> str:
    """Return the terms about nothing but some fields, as they are written."""
    return " and ".join(
        f"'{term.expression}'" for term in needs.terms if {*term.fields} <= {*fields}
    )


def device_schema() -> dict[str, Any]:
    """Return the JSON Schema of a device, draft 2020-12."""
    return document(Device, "rnncli device", "What an implementation takes, for `--device`.")
