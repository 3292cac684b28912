"""Reading of configs: from YAML to a checked case, with the place of every finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.case import (
    SIZES,
    Case,
    Filling,
    Frame,
    GivenValues,
    default_size,
    describe,
    frame_of,
    least_size,
    memory,
    size_names,
)
from rnncli.cases.config.inputs import read_input
from rnncli.cases.config.keys import (
    CHOICES,
    DEFAULT_DTYPE,
    DRESS_KEYS,
    KEYS,
    LARGEST_INTEGER,
    LARGEST_SIZE,
    Keys,
    members_of,
    section_of,
)
from rnncli.cases.fills import FILLS, Blank, default_fill, fill_problems
from rnncli.cases.yaml_reader import (
    Findings,
    YamlNode,
    parse_yaml,
    read_mapping,
    read_yaml,
    shown,
)
from rnncli.errors import ConfigError, InvalidRequest, Place, did_you_mean
from rnncli.limits import OutOfMemory, ask
from rnncli.numerics import Array, DType, dtype_named, dtype_of
from rnncli.operators import OPERATORS, Operator, operator_named, problems
from rnncli.operators.attributes import attribute_problems, complete
from rnncli.operators.checking import INPUT_TYPES, readings_of, unit_problems
from rnncli.operators.operator import FORMS
from rnncli.recurrence.unit import QuantisedUnit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Case", "describe", "findings", "load_config", "parse_config", "read_case"]


def load_config(path: str | Path, *, seed: int | None = None) -> Case:
    """Read a config file; the case is named after the file's stem.

    Args:
        path: the file; other files that it names are relative to it.
        seed: replaces the file's.

    Raises:
        ConfigError: the file is wrong; every finding has a place.
        UnreadableFile: it cannot be read.
    """
    path = Path(path)
    return read_case(read_yaml(path), path.stem, path.parent, seed=seed)


def parse_config(source: bytes | str, name: str, *, seed: int | None = None) -> Case:
    """Read the text of a config, for example of standard input.

    Args:
        source: the text, or its UTF-8 bytes; files that it names are in the working folder.
        name: the name in messages, for example ``<stdin>``; without brackets and suffix, the name
            of the case.
        seed: replaces the text's.

    Raises:
        ConfigError: the text is wrong; every finding has a place.
        UnreadableFile: it is larger than 1 MiB.
    """
    return read_case(parse_yaml(source, name), Path(name.strip("<>")).stem, Path(), seed=seed)


def findings(path: str | Path) -> list[tuple[Place, str]]:
    """Return all findings about a config file, in file order.

    Raises:
        UnreadableFile: it cannot be read.
    """
    try:
        load_config(path)
    except ConfigError as error:
        return list(error.findings)
    return []


def read_case(
    root: YamlNode, name: str, folder: Path, *, seed: int | None = None, key: str = ""
) -> Case:
    """Return the case of parsed YAML.

    The key distinguishes its random inputs from those of other cases with the same seed; it is ""
    for a config, whose inputs depend only on its content. A seed replaces the mapping's.

    Raises:
        ConfigError: it is wrong; every finding has a place.
    """
    config = ConfigKeys(root)
    operator = config.operator()
    if operator is None:  # nothing else can be checked
        config.findings.raise_any()
    assert operator is not None
    sizes = config.sizes(operator)
    dtypes = config.dtypes(operator)
    attributes = config.attributes(operator, sizes)
    outputs = config.outputs(operator, attributes)
    readings: dict[str, Any] = {
        name: node.plain for name, node in config.section("readings", "reading").items()
    }
    summary, written_seed = config.text("summary"), config.value("seed")
    seed = written_seed if seed is None else seed
    forms = {key: config.choice(key, operator) for key in FORMS}
    frame = frame_of(operator, sizes, attributes, forms)
    blanks, T = {}, dtypes["values"]
    if frame is not None and config.fits(operator, frame, outputs):
        blanks = {
            row.name: Blank(
                shape=frame.shape(row),
                dims=frame.names(row),
                dtype=dtype_named(row.types.get(T.name, dtypes[row.kind].name)),
                seed=seed,
                name=row.name,
                seq_length=frame.sizes["seq_length"],
                packs=row.role == "offsets",
            )
            for row in operator.inputs
        }
    sources = config.sources(operator, attributes, blanks, folder)

    # Inputs for the operator's checks: lengths as they are, others without memory. Required inputs
    # with findings are included, so that the rest can be checked.
    required = config.required(operator, attributes)
    arrays = {
        name: np.broadcast_to(np.zeros((), blank.dtype.numpy), blank.shape)
        for name, blank in blanks.items()
        if blank.dtype.is_float and (name in sources or name in required)
    }
    arrays |= {
        name: source.arrays(blanks[name], [key])[0]
        for name, source in sources.items()
        if name in blanks and not blanks[name].dtype.is_float
    }
    unit = config.unit(operator)
    config.check(operator, attributes, arrays, outputs, readings, unit=unit)
    if unit:
        # Stand-ins of the inputs as levels, and outputs that are not there.
        zeros = {name: np.zeros((), dtype_named(dress.type).numpy) for name, dress in unit.dresses}
        levels = {
            name: np.broadcast_to(zeros.get(name, values), values.shape)
            for name, values in arrays.items()
        }
        for problem in unit_problems(operator, unit, levels):
            config.findings.add(root.place_of(problem.subject), problem.sentence)
        for each in unit:
            if each in {row.name for row in operator.outputs} and each not in outputs:
                sentence = f"{each} is not requested, and so cannot be quantised"
                config.findings.add(root.place_of(("quantise", each)), sentence)
    config.findings.raise_any()
    return Case(
        name=name,
        key=key,
        operator=operator,
        summary=summary,
        sizes=frame.own_sizes if frame else sizes,
        dtype=dtypes["values"],
        attributes=attributes,
        sources=sources,
        blanks={name: blanks[name] for name in sources},
        outputs=tuple(outputs),
        readings={**readings_of(operator, is_unit=bool(unit)), **readings},
        seed=seed,
        root=root,
        unit=unit,
    )


class ConfigKeys(Keys):
    """The keys of one config."""

    ROWS = KEYS

    def __init__(self, root: YamlNode) -> None:
        findings = Findings()
        entries = read_mapping(root, "a config", "key", KEYS, findings, place_of=section_of)
        super().__init__(root, entries, findings)

    def operator(self) -> Operator | None:
        """Return the operator named by `op`, or None after a finding."""
        node = self.entry("op")
        if not isinstance(self.node.value, dict):
            return None  # already a finding
        if not isinstance(node.value, str):
            got = f", got {shown(node)}" if "op" in self.entries else ""
            self.find(node, f"'op' must name an operator, such as LSTM-14{got}")
            return None
        try:
            return operator_named(node.value)
        except InvalidRequest as error:
            self.find(node, str(error))
            return None

    def sizes(self, operator: Operator) -> dict[str, int]:
        """Return the valid sizes; a null takes away a suite's default that the operator lacks."""
        names = size_names(operator)
        written = self.entry("sizes").plain
        nulls = [n for n in SIZES if isinstance(written, dict) and written.get(n, 0) is None]
        entries = self.section("sizes", "size", dict.fromkeys([*names, *nulls]))
        defaults = {name: default_size(operator, name) for name in names if name not in entries}
        if missing := [name for name, size in defaults.items() if size is None]:
            self.find(self.entry("sizes"), f"'sizes' must give {', '.join(missing)}")
        found = {name: size for name, size in defaults.items() if size is not None}
        for name in [name for name in names if name in entries]:
            node, least = entries[name], least_size(operator, name)
            if isinstance(node.value, bool) or not isinstance(node.value, int):
                self.find(node, f"'{name}' must be an integer, got {shown(node)}")
            elif not least <= node.value <= LARGEST_SIZE:
                self.find(node, f"'{name}' must be {least} to {LARGEST_SIZE}, got {shown(node)}")
            else:
                found[name] = node.value
        return found

    def dtype(self, operator: Operator) -> DType:
        """Return the dtype of every floating-point tensor."""
        node, types = self.entry("dtype"), operator.dtypes
        default = dtype_named(DEFAULT_DTYPE if DEFAULT_DTYPE in types else types[0])
        if node.value is None:
            return default
        if node.value in operator.dtypes:
            return dtype_named(str(node.value))
        versions = [row for row in OPERATORS.values() if row.type == operator.type]
        later = [row.name for row in versions if node.value in row.dtypes]
        hint = did_you_mean(str(node.value), operator.dtypes)
        hint = f" (it exists from {later[0]} on)" if later else hint
        listed = ", ".join(operator.dtypes)
        self.find(
            node, f"dtype of {operator.name} must be one of {listed}, got {shown(node)}{hint}"
        )
        return default

    def choice(self, key: str, operator: Operator) -> str:
        """Return the value of a key of `CHOICES`; its default if the operator has none."""
        node, row = self.entry(key), CHOICES[key]
        if node.value in row.allowed(operator):
            return str(node.value)
        if node.value is not None:
            self.find(node, row.obstacle(key, operator, shown(node).strip("'")))
        return row.default

    def dtypes(self, operator: Operator) -> dict[str, DType]:
        """Return the dtype of each kind of input, see `Input.kind`."""
        return {
            "values": self.dtype(operator),
            **{
                row.kind: dtype_named(self.choice(key, operator))
                for key, row in CHOICES.items()
                if row.kind
            },
        }

    def attributes(self, operator: Operator, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the attributes as written, without nulls, and those that state a size.

        The specification lets a node omit hidden_size, which a null does.
        """
        entries = self.section("attributes", "attribute")
        written: dict[str, Any] = {}
        for name, node in entries.items():
            # Integers that do not fit any attribute are found before they are converted.
            leaves = node.value if isinstance(node.value, tuple) else (node,)
            large = [
                leaf
                for leaf in leaves
                if type(leaf.value) is int and abs(leaf.value) > LARGEST_INTEGER
            ]
            for leaf in large:
                self.find(leaf, f"{shown(leaf)} does not fit 64 bits")
            if node.value is not None and not large:
                written[name] = node.plain

        for name, size in sizes.items():
            row = operator.attribute_for(name)
            if row is None or (row.name in entries and entries[row.name].value is None):
                continue
            given = written.setdefault(row.name, size)
            if type(given) is int and given != size:
                sentence = f"attribute '{row.name}' is {given}, but sizes say {size}"
                self.find(entries[row.name], sentence)
                written[row.name] = size
        return written

    def outputs(self, operator: Operator, attributes: Mapping[str, Any]) -> list[str]:
        """Return the requested names; if none are given, all that a node has."""
        node = self.entry("outputs")
        if node.value is None:
            conditions = {row.condition for row in operator.outputs} & attributes.keys()
            truths = {name: attributes[name] in (True, 1) for name in conditions}
            return [*operator.present_outputs(complete(operator, truths))]
        if not isinstance(node.value, tuple):
            self.find(node, f"'outputs' must be a list of names, got {shown(node)}")
            return []
        for child in node.value:
            if not isinstance(child.value, str):
                self.find(child, f"an output is a name, got {shown(child)}")
        return [child.value for child in node.value if isinstance(child.value, str)]

    def unit(self, operator: Operator) -> QuantisedUnit | None:
        """Return which tensors are integers; what is written wrongly is a finding, and left out."""
        rows = {row.name: row for row in (*operator.inputs, *operator.outputs)}
        written = {}
        for name, node in self.section("quantise", "tensor").items():
            if node.value is None:
                continue
            before = len(self.findings)
            label = f"'{name:.40}' of 'quantise'"
            entries = read_mapping(node, label, "key", DRESS_KEYS, self.findings)
            dress = DressKeys(node, entries, self.findings).dress()
            if len(self.findings) == before:
                if name in rows and dress["axis"] is not None and dress["axis"] >= 0:
                    dress["axis"] -= len(rows[name].shape(0))
                written[name] = dress
        known = {name: written[name] for name in rows if name in written}
        return QuantisedUnit.of(known | written) if written else None

    def fits(self, operator: Operator, frame: Frame, outputs: Iterable[str]) -> bool:
        """Find sizes that exceed the run's memory, before anything is allocated."""
        named = {*self.section("inputs", "input"), *outputs}
        rows = (*operator.inputs, *operator.outputs)
        needed = frame.needed(row for row in rows if row.name in named or not row.optional)
        try:
            ask(needed, "what they make", otherwise=memory())
        except OutOfMemory as error:
            self.find(self.entry("sizes"), f"these sizes are too large: {error}")
            return False
        return True

    def required(self, operator: Operator, attributes: Mapping[str, Any]) -> list[str]:
        """Return the inputs that a node must have, with these attributes if they are right."""
        is_right = not any(attribute_problems(operator, attributes))
        needed = operator.demands(complete(operator, attributes)) if is_right else {}
        return [row.name for row in operator.inputs if not row.optional or needed.get(row.name)]

    def sources(
        self,
        operator: Operator,
        attributes: Mapping[str, Any],
        blanks: Mapping[str, Blank],
        folder: Path,
    ) -> dict[str, Filling | GivenValues]:
        """Return the sources of the present inputs' values."""
        entries = self.section("inputs", "input")
        required = self.required(operator, attributes)
        found: dict[str, Filling | GivenValues] = {}
        for row in operator.inputs:
            node, blank = entries.get(row.name), blanks.get(row.name)
            if node is None and row.name in required:
                # By its default fill; lengths must fit their dtype.
                name, values = default_fill(row)
                for sentence in fill_problems(FILLS[name], values, blank) if blank else ():
                    self.find(self.entry("sizes"), f"{row.name}: {sentence}")
                found[row.name] = Filling(name, values)
            elif node is not None and node.value is not None:
                source = read_input(node, row, blank, folder, self.findings)
                if source is None:
                    continue
                found[row.name] = source
                # A file's tensor has the dtype that the config gives.
                key = next((k for k, choice in CHOICES.items() if choice.kind == row.kind), "")
                wanted = self.entry(key).value
                given = dtype_of(source.values).name if isinstance(source, GivenValues) else wanted
                if wanted is not None and given != wanted:
                    self.find(node, f"{row.name} must be {wanted} by {key}, got {given}")
            elif node is not None and row.name in required:
                hint = "leave it out for its default fill"
                self.find(node, f"{operator.name} requires '{row.name}'; {hint}")
        return found

    def check(
        self,
        operator: Operator,
        attributes: Mapping[str, Any],
        arrays: Mapping[str, Array],
        outputs: list[str],
        readings: Mapping[str, Any],
        *,
        unit: QuantisedUnit | None,
    ) -> None:
        """Add the operator's own findings, at the place of each subject."""
        known = [row.name for row in operator.inputs]
        entries = self.section("inputs", "input")
        unknown = [n for n, node in entries.items() if n not in known and node.value is not None]
        inputs = {**arrays, **{name: np.zeros(0) for name in unknown}}
        # A missing size has a finding, too, which an attribute states.
        names = [row.name for row in operator.attributes.values() if row.name in SIZES]
        stated = {**dict.fromkeys(names, 1), **attributes} if not arrays else attributes
        for problem in problems(operator, stated, inputs, outputs, readings, unit=unit):
            # A missing input already has a finding.
            if problem.subject[0] != "inputs" or problem.subject[-1] in inputs:
                self.findings.add(self._place(operator, problem.subject), problem.sentence)

    def _place(self, operator: Operator, subject: tuple[str, ...]) -> Place:
        """Return the place of a problem's subject; for an unknown name, its key."""
        section, name = subject[0], subject[-1]
        if section == "outputs":
            written = self.entry(section).value
            nodes = written if isinstance(written, tuple) else ()
            places = [node.place for node in nodes if node.value == name]
            return places[-1] if places else self.entry(section).place
        known: Mapping[str, Iterable[str]] = {
            "attributes": operator.attributes,
            "inputs": [row.name for row in operator.inputs],
            "readings": members_of(operator)["readings"],
        }
        at_value = len(subject) == 1 or name in known[section]
        return self.node.place_of(subject) if at_value else self.node.key_place(section, name)

    def section(
        self, name: str, what: str, known: Iterable[str] | None = None
    ) -> Mapping[str, YamlNode]:
        """Return the entries of a section by name."""
        return {str(key): node for key, node in self.mapping(name, what, known).items()}


class DressKeys(Keys):
    """The keys of one tensor of `quantise`."""

    ROWS = DRESS_KEYS

    def dress(self) -> dict[str, Any]:
        """Return the values of all keys."""
        node = self.entry("type")
        if node.value not in INPUT_TYPES:
            got = shown(node) if "type" in self.entries else "nothing"
            self.find(node, f"'type' must be one of {', '.join(INPUT_TYPES)}, got {got}")
        return {
            "type": str(node.value),
            "scale": self._numbers("scale"),
            "zero_point": self._numbers("zero_point"),
            "axis": self.value("axis"),
        }

    def _numbers(self, name: str) -> list[Any]:
        """Return a number, or a list of numbers, as a list; a missing scale is a finding."""
        node, row = self.entry(name), self.ROWS[name]
        if node.value is None:
            if name == "scale":
                self.find(self.node, "'scale' is missing")
            return [row.default]
        plain: Any = node.plain
        values = [*plain] if isinstance(node.value, tuple) else [plain]
        if not values or not all(map(row.test, values)):
            self.find(node, f"'{name}' must be {row.wanted}, or a list of them, got {shown(node)}")
            return [row.default]
        return values
