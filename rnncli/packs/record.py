"""A case's entry in a manifest: how it describes the node, its check, and its JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.config.case_shapes import SIZES, frame_of, size_names
from rnncli.errors import InvalidRequest
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.attributes import held_values
from rnncli.operators.checking import reading_problems
from rnncli.operators.node import checked
from rnncli.packs.vector import attributes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rnncli.errors import Problem
    from rnncli.numerics import Array
    from rnncli.operators import Operator

as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Record(Mapping[str, Any]):
    """One case of a manifest, see `record_classes.CaseRecord`; its text is parsed on first use.

    A pack may have thousands of records: texts are sent between processes quickly, and spare the
    garbage collector sixty objects each.

    Attributes:
        text: the entry as JSON, in one line.
        sums: the checksums of its files, sorted, as `sha256sum --check` reads them.
    """

    def __init__(self, text: bytes, sums: bytes) -> None:
        self.text = text
        self.sums = sums

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Record:
        """Return the record of some entries, or the record itself."""
        if isinstance(entries, Record):
            return entries
        return cls(as_json(entries).encode(), sums_of(entries["files"]))

    @cached_property
    def _entries(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Record], tuple[bytes, bytes]]:
        """Pickle without the parsed entries."""
        return Record, (self.text, self.sums)


def sums_of(files: Mapping[str, str]) -> bytes:
    """Return checksums by path as `sha256sum --check` reads them, sorted by path."""
    return "".join([f"{checksum}  {path}\n" for path, checksum in sorted(files.items())]).encode()


# The entries that describe the node, which is all that a subject may see.
NODE_FIELDS = (
    *("id", "operator", "domain", "opset", "attributes", "sizes", "dtype"),
    *("inputs", "outputs", "weights", "readings"),
)


def node_entries(
    case_id: str,
    operator: Operator,
    *,
    attributes: Mapping[str, Any],
    sizes: Mapping[str, int],
    dtype: str,
    inputs: Collection[str],
    outputs: Collection[str],
    weights: str,
    readings: Mapping[str, str],
    **more: Any,
) -> dict[str, Any]:
    """Return the entries of a case that describe its node, see `record_classes.CaseRecord`.

    An attribute that is None is not written; inputs and outputs may be in any order.
    """
    held = held_values(operator, attributes)
    return {
        "id": case_id,
        "operator": operator.name,
        "domain": operator.domain,
        "opset": operator.version,
        "attributes": {name: _sayable(value) for name, value in held.items() if value is not None},
        "sizes": dict(sizes),
        "dtype": dtype,
        "inputs": [row.name for row in operator.inputs if row.name in inputs],
        "outputs": [row.name for row in operator.outputs if row.name in outputs],
        "weights": weights,
        "readings": dict(readings),
        **more,
    }


def _sayable(value: Any) -> Any:
    """Return a value as JSON data, in which infinity and NaN become text."""
    if isinstance(value, list | tuple):
        return [_sayable(each) for each in value]
    unsayable = isinstance(value, float) and not math.isfinite(value)
    return str(value) if unsayable else value


def check_record(record: Mapping[str, Any]) -> None:
    """Refuse a record that cannot be a case of its operator, whatever its tensors are.

    It follows `CaseRecord`, and its operator and dtype exist. A case that must be refused may break
    any rule but that of readings, which are ours.

    Raises:
        InvalidRequest: a rule is broken, or a size is missing; all are named.
    """
    operator = operator_named(record["operator"])
    if record["expect"] == "rejection":
        _refuse(reading_problems(operator, record["readings"]))
        return
    attributes = attributes_of(record)
    inputs = _stand_ins(operator, record, attributes)
    checked(operator, attributes, inputs, record["outputs"], record["readings"])


def _refuse(problems: Iterable[Problem]) -> None:
    if sentences := [problem.sentence for problem in problems]:
        raise InvalidRequest("; ".join(sentences))


@cache
def _zero(dtype: str) -> Array:
    return np.zeros((), dtype_named(dtype).numpy)


def _stand_ins(
    operator: Operator, record: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return arrays of zeros without memory, of the shapes and element types of the inputs."""
    sizes, needed = record["sizes"], size_names(operator)
    if not {*needed} <= sizes.keys() <= {*SIZES}:  # a suite may give more to all its cases
        given = ", ".join(sizes) or "none"
        raise InvalidRequest(f"{operator.name} needs the sizes {', '.join(needed)}, got {given}")
    frame = frame_of(operator, {name: sizes[name] for name in needed}, attributes)
    if frame is None:  # an attribute that decides on shapes is wrong, which is found without them
        return {}
    own = (record["dtype"],)  # of the inputs that have none by themselves
    try:
        return {
            row.name: np.broadcast_to(_zero((row.dtypes or own)[0]), frame.shape(row))
            for row in operator.inputs
            if row.name in record["inputs"]
        }
    except ValueError as error:
        raise InvalidRequest(f"no tensor has its sizes: {error}") from error
