"""Cases without expected outputs from a pack, a suite or a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.config.config import read_case
from rnncli.cases.library import find_spec
from rnncli.cases.selection import is_called
from rnncli.cases.suite.suite import is_suite, load_suite
from rnncli.cases.yaml_reader import Key, YamlNode, read_yaml
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.packs.conversion import held_inputs
from rnncli.packs.manifest import MANIFEST
from rnncli.packs.pack import is_pack, record_is_called
from rnncli.verifying.relations.node_call import NodeCall
from rnncli.verifying.verification import whole_pack

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.cases.suite.entry import Entry
    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Vector

Sizes = Mapping[str, int]
# How lengths are generated if the written ones do not fit other sizes.
LENGTHS = "lengths"


class CallSource(NamedTuple):
    """The valid cases of a target.

    Attributes:
        name: its name in reports.
        cases: id of each case -> whether a word of `-k` is true of it.
        make: maps an id, and sizes that replace the case's, to a call for each data set.
        pack: the pack, if it is one: its inputs are stored, and have their sizes.
    """

    name: str
    cases: Mapping[str, Callable[[str], bool]]
    make: Callable[[str, Sizes], tuple[NodeCall, ...]]
    pack: Pack | None = None


def source_of(target: str, digest: str = "", *, trust: bool = False) -> CallSource:
    """Open a target; the last one stays cached until its file changes.

    Args:
        target: the path of a pack, suite or config, or the name of a shipped one.
        digest: the required beginning of a pack's digest; "" for any.
        trust: whether a pack's checksums are not verified.

    Raises:
        InvalidRequest: it is none of these, or its content is wrong.
        NothingSelected: it has no valid case.
    """
    path = Path(target)
    file = path / MANIFEST if is_pack(path) else path
    written = file.stat().st_mtime_ns if file.is_file() else 0
    return _opened(target, digest, trust, (str(file.absolute()), written))


@lru_cache(maxsize=1)
def _opened(target: str, digest: str, trust: bool, _: tuple[str, int]) -> CallSource:
    if is_pack(target):
        found = _of_pack(whole_pack(Path(target), digest, trust=trust))
    elif digest or trust:
        raise InvalidRequest(f"{target}: not a pack: --pack-digest and --trust are for packs")
    else:
        found = _of_yaml(target)
    if not found.cases:
        raise NothingSelected(f"{target}: has no valid case")
    return found


def _of_pack(pack: Pack) -> CallSource:
    records = [record for record in pack.manifest.cases if record["expect"] == "result"]

    def make(case_id: str, sizes: Sizes) -> tuple[NodeCall, ...]:
        assert not sizes
        return tuple(map(_call_of_vector, pack.read(pack.case(case_id)).calls))

    return CallSource(
        pack.manifest.header["suite"],
        {record["id"]: partial(record_is_called, record) for record in records},
        make,
        pack,
    )


def _call_of_vector(vector: Vector) -> NodeCall:
    record = vector.record
    return NodeCall(
        id=vector.id,
        operator=record["operator"],
        attributes=vector.attributes,
        inputs=dict(vector.inputs),
        outputs=tuple(record["outputs"]),
        readings=record["readings"],
        weights=record["weights"],
        data_set=vector.call,
    )


def _of_yaml(target: str) -> CallSource:
    path = Path(target)
    found = path if path.is_file() else find_spec(target)
    if found is None:
        raise InvalidRequest(
            f"{target}: not a pack, no such file, and no suite or config of that name"
        )
    root = read_yaml(found)
    if is_suite(root):
        return _of_suite(found)
    case = read_case(root, found.stem, found.parent)
    called = {case.name: partial(is_called, case_id=case.name, flags=())}
    make = partial(_calls_of_case, case, 1, "inputs", found.parent)
    return CallSource(found.stem, called, lambda _, sizes: make(sizes))


def _of_suite(path: Path) -> CallSource:
    suite = load_suite(path)
    entries: dict[str, Entry] = {e.id: e for e in suite.entries if e.breakage is None}

    def make(case_id: str, sizes: Sizes) -> tuple[NodeCall, ...]:
        entry = entries[case_id]
        return _calls_of_case(entry.case(), entry.calls, entry.weights, suite.folder, sizes)

    return CallSource(suite.name, {name: e.is_called for name, e in entries.items()}, make)


def _calls_of_case(
    case: Case, calls: int, weights: str, folder: Path, sizes: Sizes
) -> tuple[NodeCall, ...]:
    if sizes:
        root = resized(case.root, sizes)
        case = read_case(root, case.name, folder, seed=case.seed, key=case.key)
    first = NodeCall(
        id=case.name,
        operator=case.operator.name,
        attributes=case.attributes,
        inputs=case.inputs,
        outputs=case.outputs,
        readings=case.readings,
        weights=weights,
    )
    return (first, *(_later_call(first, case, call) for call in range(1, calls)))


def _later_call(first: NodeCall, case: Case, call: int) -> NodeCall:
    """Return a case's call with another data set; values stored in the model stay."""
    held = held_inputs(case.operator, first.weights, first.inputs)
    made = {name: stack[0] for name, stack in case.stacked([case.key], call).items()}
    fed = {name: values for name, values in made.items() if name not in held}
    return first.with_changes(fed, data_set=call)


def resized(root: YamlNode, sizes: Sizes) -> YamlNode:
    """Return a config with other sizes; explicit lengths become random ones."""
    inputs = root.child("inputs")
    given = inputs.value if inputs is not None and isinstance(inputs.value, dict) else {}
    written = {
        str(name): LENGTHS
        for name, node in given.items()
        if name.startswith("sequence_len") and isinstance(node.value, tuple)
    }
    return _with(_with(root, "sizes", sizes), "inputs", written)


def _with(root: YamlNode, section: str, values: Mapping[str, str | int]) -> YamlNode:
    """Return a config with some entries of a section replaced; created if necessary."""
    assert isinstance(root.value, dict)
    if not values:
        return root
    there = root.child(section)
    kept = there.value if there is not None and isinstance(there.value, dict) else {}
    new = {Key(name, root.place): YamlNode(value, root.place) for name, value in values.items()}
    put = {Key(section, root.place): YamlNode({**kept, **new}, root.place)}
    return YamlNode({**root.value, **put}, root.place, root.size)
