"""Cases without expected outputs from a pack, a suite or a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.config.config import read_case
from rnncli.cases.library import find_spec
from rnncli.cases.suite.suite import is_suite, load_suite
from rnncli.cases.yaml_reader import Key, YamlNode, read_yaml
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.metamorphic.node_call import SIZES, NodeCall
from rnncli.packs.conversion import held_inputs
from rnncli.packs.manifest import MANIFEST, calls_of
from rnncli.packs.pack import is_pack
from rnncli.verifying.verification import whole_pack

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.cases.suite.entry import Entry
    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Vector

Sizes = Mapping[str, int]
# How lengths are generated if the written ones do not fit other sizes.
LENGTHS = "lengths"


class CallTarget(NamedTuple):
    """A pack, suite or config, and sizes that replace those of its cases.

    Attributes:
        name: the path of a pack, suite or config, or the name of a shipped one.
        sizes: pairs of name and size; () keeps the sizes of the cases.
        digest: the required beginning of a pack's digest; "" for any.
        trust: whether a pack's checksums are not verified.
    """

    name: str
    sizes: tuple[tuple[str, int], ...] = ()
    digest: str = ""
    trust: bool = False


class CallSource(NamedTuple):
    """The valid cases of a target.

    Attributes:
        name: its name in messages.
        data_sets: id of each selected case -> number of its data sets, in order.
        make: maps an id to its calls, one for each data set.
        selects: whether -k applies; a config is a single case.
    """

    name: str
    data_sets: Mapping[str, int]
    make: Callable[[str], tuple[NodeCall, ...]]
    selects: bool = True


def source_of(target: CallTarget, selection: str = "") -> CallSource:
    """Open a target; the last one stays cached until its file changes.

    Args:
        target: the target as the user named it.
        selection: a -k expression; "" selects all. A config is a single case, so -k does not apply.

    Raises:
        InvalidRequest: it is none of these, its content is wrong, or other sizes are given for a
            pack.
        NothingSelected: no valid case is selected.
    """
    path = Path(target.name)
    file = path / MANIFEST if is_pack(path) else path
    written = file.stat().st_mtime_ns if file.is_file() else 0
    return _opened(target, selection, (str(file.absolute()), written))


@lru_cache(maxsize=1)
def _opened(target: CallTarget, selection: str, _: tuple[str, int]) -> CallSource:
    if is_pack(target.name):
        found = _of_pack(target, selection)
    elif target.digest or target.trust:
        raise InvalidRequest(f"{target.name}: not a pack: --pack-digest and --trust are for packs")
    else:
        found = _of_yaml(target, selection)
    if not found.data_sets:
        raise NothingSelected(f"{target.name}: no valid case is selected")
    return found


def _of_pack(target: CallTarget, selection: str) -> CallSource:
    if target.sizes:
        raise InvalidRequest(
            f"{target.name}: the sizes of a pack's inputs are fixed; --sizes is for suites"
            " and configs"
        )
    pack = whole_pack(Path(target.name), target.digest, trust=target.trust)
    records = [r for r in pack.select(selection) if r["expect"] == "result"]
    return CallSource(
        pack.manifest.header["suite"],
        {record["id"]: len(calls_of(record)) for record in records},
        partial(_calls_of_record, pack),
    )


def _calls_of_record(pack: Pack, case_id: str) -> tuple[NodeCall, ...]:
    return tuple(map(_call_of_vector, pack.read(pack.case(case_id)).calls))


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


def _of_yaml(target: CallTarget, selection: str) -> CallSource:
    path = Path(target.name)
    found = path if path.is_file() else find_spec(target.name)
    if found is None:
        raise InvalidRequest(
            f"{target.name}: not a pack, no such file, and no suite or config of that name"
        )
    root = read_yaml(found)
    if is_suite(root):
        return _of_suite(found, dict(target.sizes), selection)
    if selection:
        raise InvalidRequest(f"{found}: is a single case; -k selects among the cases of a suite")
    case = read_case(root, found.stem, found.parent)
    make = partial(_calls_of_case, case, 1, "inputs", dict(target.sizes), found.parent)
    return CallSource(found.stem, {case.name: 1}, lambda _: make(), selects=False)


def _of_suite(path: Path, sizes: Sizes, selection: str) -> CallSource:
    suite = load_suite(path)
    entries = {e.id: e for e in suite.select(selection) if e.breakage is None}
    return CallSource(
        suite.name,
        {case_id: entry.calls for case_id, entry in entries.items()},
        partial(_calls_of_entry, entries, sizes, suite.folder),
    )


def _calls_of_entry(
    entries: Mapping[str, Entry], sizes: Sizes, folder: Path, case_id: str
) -> tuple[NodeCall, ...]:
    entry = entries[case_id]
    return _calls_of_case(entry.case(), entry.calls, entry.weights, sizes, folder)


def _calls_of_case(
    case: Case, calls: int, weights: str, sizes: Sizes, folder: Path
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
    assert isinstance(root.value, dict)
    entries = dict(root.value)
    _put(entries, "sizes", {name: YamlNode(size, root.place) for name, size in sizes.items()}, root)
    inputs = root.child("inputs")
    if inputs is not None and isinstance(inputs.value, dict):
        written = {
            str(name): YamlNode(LENGTHS, node.place)
            for name, node in inputs.value.items()
            if name.startswith("sequence_len") and isinstance(node.value, tuple)
        }
        _put(entries, "inputs", written, root)
    return YamlNode(entries, root.place, root.size)


def _put(
    entries: dict[Key, YamlNode], section: str, values: Mapping[str, YamlNode], root: YamlNode
) -> None:
    """Replace some entries of a section, creating it if necessary."""
    key = next((key for key in entries if key == section), Key(section, root.place))
    there = entries.get(key)
    kept = dict(there.value) if there is not None and isinstance(there.value, dict) else {}
    for name, node in values.items():
        own = next((k for k in kept if k == name), Key(name, root.place))
        kept[own] = node
    entries[key] = YamlNode(kept, root.place)


def read_sizes(text: str) -> tuple[str, int]:
    """Read `hidden_size=512`.

    Raises:
        ValueError: it is not a size of a case, or not a whole number of at least 1.
    """
    name, _, number = text.partition("=")
    if name not in SIZES or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ValueError(text)
    return name, int(number)
