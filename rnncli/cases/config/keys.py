"""The keys of a config: their meaning, and reading them from YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rnncli.cases.case import Filling, GivenValues
from rnncli.cases.config.case_shapes import SIZES, Frame, least_size, memory, size_names
from rnncli.cases.config.inputs import read_input
from rnncli.cases.fills import FILLS, Blank, default_fill, fill_problems
from rnncli.cases.yaml_reader import Findings, Key, YamlNode, read_mapping, shown, unknown
from rnncli.errors import InvalidRequest, Place, did_you_mean
from rnncli.limits import budget
from rnncli.numerics import DType, dtype_named, dtype_of
from rnncli.operators import OPERATORS, operator_named, problems
from rnncli.operators.attributes import complete
from rnncli.operators.unit import INPUT_TYPES, possible_readings, unit_problems
from rnncli.recurrence.unit import QuantisedUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from rnncli.numerics import Array
    from rnncli.operators import Operator

DEFAULT_DTYPE = "float32"
LARGEST_SIZE = (1 << 31) - 1
LARGEST_INTEGER = (1 << 63) - 1


class KeyRow(NamedTuple):
    """A key of a mapping in YAML, for its reader, messages, the schema and help."""

    summary: str  # its meaning
    schema: dict[str, Any]  # its JSON Schema, for any operator
    wanted: str = ""  # what a single value must be, for messages
    test: Callable[[Any], bool] = bool  # whether a single value is right
    default: Any = None  # the value when not given
    choices: Collection[str] = ()  # the names that a value is one of; or none

    @classmethod
    def of_choice(cls, summary: str, choices: Collection[str], default: str) -> KeyRow:
        """Return the row of a key whose values are names."""
        schema = {"enum": [*choices, None], "default": default}
        return cls(summary, schema, "", [*choices].__contains__, default, choices)

    @classmethod
    def of_truth(cls, summary: str, **schema: object) -> KeyRow:
        """Return the row of a key that is true or false."""
        schema = {"type": ["boolean", "null"], **schema}
        return cls(summary, schema, "true or false", lambda v: isinstance(v, bool), default=False)

    @classmethod
    def of_list(cls, summary: str) -> KeyRow:
        """Return the row of a key that is a list."""
        schema = {"type": ["array", "null"]}
        return cls(summary, schema, "a list", lambda v: isinstance(v, tuple), default=())


class OperatorChoice(NamedTuple):
    """A key whose values depend on the operator, which may have none."""

    summary: str  # its meaning
    default: str  # the value when not given, also of operators without such a choice
    subject: str  # what an operator without such a choice lacks
    allowed: Callable[[Operator], Sequence[str]]  # operator -> the values
    kind: str = ""  # the kind of inputs whose element type it is, see `Input.kind`; or ""

    def obstacle(self, key: str, operator: Operator, value: object) -> str:
        """Return why an operator cannot have a value, or ""; None is always possible."""
        allowed = self.allowed(operator)
        if value is None or value in allowed:
            return ""
        if not allowed:
            return f"{operator.name} has no {self.subject}, and so no {key}"
        hint = did_you_mean(str(value), allowed)
        return (
            f"{key} of {operator.name} must be one of {', '.join(allowed)}, got"
            f" '{value!s:.40}'{hint}"
        )


CHOICES: Mapping[str, OperatorChoice] = {
    "lengths_dtype": OperatorChoice(
        "the element type of the sequence lengths, where the operator has a choice; int32 when not"
        " given",
        "int32",
        "sequence lengths",
        lambda operator: operator.lengths_dtypes,
        "lengths",
    ),
    "weights_dtype": OperatorChoice(
        "the element type of quantised weights and their zero points, int8 (when not given) or"
        " uint8",
        "int8",
        "quantised weights",
        lambda operator: operator.weights_dtypes,
        "levels",
    ),
    "scales": OperatorChoice(
        "what has a scale of its own in quantised weights: per_tensor (when not given), each"
        " direction; or per_channel, each column",
        "per_tensor",
        "quantised weights",
        lambda operator: operator.scales,
    ),
}


def _is_integer(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 31


_NULL = {"type": "null"}
_MAPPING = {"type": ["object", "null"]}
_TEXT = {"type": ["string", "null"]}
# Every key of a config.
KEYS: Mapping[str, KeyRow] = {
    "op": KeyRow("the operator and its version, such as LSTM-14", {"enum": list(OPERATORS)}),
    "summary": KeyRow("one sentence: what the case shows", _TEXT),
    "sizes": KeyRow(
        "seq_length, batch_size, input_size and hidden_size; every shape follows from them",
        {"type": "object", "propertyNames": {"enum": list(SIZES)}},
    ),
    "dtype": KeyRow(
        "the element type of every floating-point tensor; float32 when not given",
        {**_TEXT, "default": DEFAULT_DTYPE},
    ),
    "quantise": KeyRow(
        "tensors that are integers: NAME: {type, scale, zero_point, axis}; the case is the operator"
        " between DequantizeLinear and QuantizeLinear, at opset 21 or 23",
        {**_MAPPING, "additionalProperties": {"anyOf": [{"$ref": "#/$defs/dress"}, _NULL]}},
    ),
    **{key: KeyRow(row.summary, {**_TEXT, "default": row.default}) for key, row in CHOICES.items()},
    "attributes": KeyRow(
        "the operator's attributes by the specification's names; hidden_size follows from sizes",
        _MAPPING,
    ),
    "inputs": KeyRow(
        "a fill, a list or a file for each input; a required one not named gets its default fill,"
        " an optional one not named (or null) is absent",
        _MAPPING,
    ),
    "outputs": KeyRow(
        "the outputs wanted; all of them when not given",
        {"type": ["array", "null"], "uniqueItems": True},
    ),
    "readings": KeyRow("choices on contested points of the specification", _MAPPING),
    "seed": KeyRow(
        "a number that all random inputs depend on, whatever the file is called; 0 when not given",
        {"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST_INTEGER, "default": 0},
        f"an integer, 0 to {LARGEST_INTEGER}",
        lambda n: type(n) is int and 0 <= n <= LARGEST_INTEGER,
        0,
    ),
}


def _one_or_several(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}


# Every key of a tensor of `quantise`.
DRESS_KEYS: Mapping[str, KeyRow] = {
    "type": KeyRow(
        f"the element type: {', '.join(INPUT_TYPES)}; int32 of inputs, with zero point 0",
        {"enum": [*INPUT_TYPES]},
    ),
    "scale": KeyRow(
        "a number, rounded to float32; or a list of them, repeated along the axis",
        _one_or_several({"type": "number", "exclusiveMinimum": 0}),
        "a positive number",
        lambda n: type(n) in (int, float) and 0 < n < np.finfo(np.float32).max,
        1.0,
    ),
    "zero_point": KeyRow(
        "the integer that stands for 0; or a list likewise; 0 when not given",
        {"anyOf": [_one_or_several({"type": "integer"}), _NULL]},
        "an integer",
        _is_integer,
        0,
    ),
    "axis": KeyRow(
        "the axis of the tensor that scales belong to; one scale for all when not given",
        {"type": ["integer", "null"]},
        "an integer",
        _is_integer,
    ),
}


@dataclass(slots=True)
class Keys:
    """Entries of a mapping in YAML. Wrong values become findings and are replaced by defaults."""

    ROWS: ClassVar[Mapping[str, KeyRow]]
    node: YamlNode  # the YAML of the entries, for the place of missing ones
    entries: Mapping[Key, YamlNode]  # the entries by key
    findings: Findings  # receives the findings

    def entry(self, name: str) -> YamlNode:
        """Return the value of a key, a null if absent."""
        return next(
            (n for k, n in self.entries.items() if k == name), YamlNode(None, self.node.place)
        )

    def text(self, name: str, *, required: bool = False) -> str:
        """Return a text, or ""."""
        node = self.entry(name)
        if required and name not in self.entries:
            self.find(node, f"'{name}' is missing")
        elif (required and not node.value) or not isinstance(node.value, None | str):
            self.find(node, f"'{name}' must be text, got {shown(node)}")
        return str(node.value or "")

    def value(self, name: str, default: Any = None) -> Any:
        """Return a single value; the default if it is absent or, which is a finding, wrong."""
        node, row = self.entry(name), self.ROWS[name]
        if node.value is not None and row.test(node.value):
            return node.value
        if node.value is not None and row.choices:
            self.find(node, unknown(name, shown(node).strip("'"), row.choices))
        elif node.value is not None:
            self.find(node, f"'{name}' must be {row.wanted}, got {shown(node)}")
        return row.default if default is None else default

    def mapping(
        self, name: str, what: str, known: Iterable[str] | None = None
    ) -> dict[Key, YamlNode]:
        """Return the entries of a mapping, none for a null; unknown keys are findings."""
        node = self.entry(name)
        if node.value is None:
            return {}
        return read_mapping(node, f"'{name}'", what, known, self.findings)

    def find(self, node: YamlNode, sentence: str) -> None:
        """Add a finding."""
        self.findings.add(node.place, sentence)


def members_of(operator: Operator) -> dict[str, Sequence[str]]:
    """Return the names that each section of an operator's config may hold."""
    return {
        "sizes": size_names(operator),  # before the attributes: hidden_size of both is the size
        "attributes": tuple(operator.attributes),
        "inputs": tuple(tensor.name for tensor in operator.inputs),
        "readings": tuple(possible_readings(operator)),
    }


def section_of(word: str) -> str:
    """Say in which section of a config a name belongs that stands beside them; "" for others."""
    for operator in OPERATORS.values():
        for section, names in members_of(operator).items():
            if word in names:
                return f"write {section}: {{{word}: ...}}"
    return ""


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
        entries = self._section("sizes", "size", dict.fromkeys([*names, *nulls]))
        if missing := [name for name in names if name not in entries]:
            self.find(self.entry("sizes"), f"'sizes' must give {', '.join(missing)}")
        found = {}
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
        node = self.entry("dtype")
        if node.value is None:
            return dtype_named(DEFAULT_DTYPE)
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
        return dtype_named(DEFAULT_DTYPE)

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
        entries = self._section("attributes", "attribute")
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

    def readings(self) -> dict[str, Any]:
        """Return the choices, which the operator checks."""
        entries = self._section("readings", "reading")
        return {name: node.plain for name, node in entries.items()}

    def unit(self, operator: Operator) -> QuantisedUnit | None:
        """Return which tensors are integers; what is written wrongly is a finding, and left out."""
        rows = {row.name: row for row in (*operator.inputs, *operator.outputs)}
        written = {}
        for name, node in self._section("quantise", "tensor").items():
            if node.value is None:
                continue
            before = len(self.findings)
            label = f"'{name:.40}' of 'quantise'"
            entries = read_mapping(node, label, "key", DRESS_KEYS, self.findings)
            dress = _DressKeys(node, entries, self.findings).dress()
            if len(self.findings) == before:
                if name in rows and dress["axis"] is not None and dress["axis"] >= 0:
                    dress["axis"] -= len(rows[name].shape(0))
                written[name] = dress
        known = {name: written[name] for name in rows if name in written}
        return QuantisedUnit.of(known | written) if written else None

    def check_unit(
        self,
        operator: Operator,
        unit: QuantisedUnit,
        arrays: Mapping[str, Array],
        outputs: list[str],
    ) -> None:
        """Add the findings of a unit, given stand-ins of the inputs as real numbers."""
        zeros = {name: np.zeros((), dtype_named(dress.type).numpy) for name, dress in unit.dresses}
        levels = {
            name: np.broadcast_to(zeros.get(name, values), values.shape)
            for name, values in arrays.items()
        }
        for problem in unit_problems(operator, unit, levels):
            self.findings.add(self.node.place_of(problem.subject), problem.sentence)
        for name in unit:
            if name in {row.name for row in operator.outputs} and name not in outputs:
                sentence = f"{name} is not requested, and so cannot be quantised"
                self.findings.add(self.node.place_of(("quantise", name)), sentence)

    def fits(self, operator: Operator, frame: Frame, outputs: Iterable[str]) -> bool:
        """Find sizes that exceed the run's memory, before anything is allocated."""
        named = {*self._section("inputs", "input"), *outputs}
        rows = (*operator.inputs, *operator.outputs)
        needed = frame.needed(row for row in rows if row.name in named or not row.optional)
        try:
            budget.ask(needed, "what they make", otherwise=memory())
        except budget.OutOfMemory as error:
            self.find(self.entry("sizes"), f"these sizes are too large: {error}")
            return False
        return True

    def sources(
        self, operator: Operator, blanks: Mapping[str, Blank], folder: Path
    ) -> dict[str, Filling | GivenValues]:
        """Return the sources of the present inputs' values."""
        entries = self._section("inputs", "input")
        found: dict[str, Filling | GivenValues] = {}
        for row in operator.inputs:
            node, blank = entries.get(row.name), blanks.get(row.name)
            if node is None and not row.optional:
                # By its default fill; lengths must fit their dtype.
                name = default_fill(row)
                values = {p.name: p.default for p in FILLS[name].parameters}
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
            elif node is not None and not row.optional:
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
        entries = self._section("inputs", "input")
        unknown = [n for n, node in entries.items() if n not in known and node.value is not None]
        inputs = {**arrays, **{name: np.zeros(0) for name in unknown}}
        for problem in problems(operator, attributes, inputs, outputs, readings, unit=unit):
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

    def _section(
        self, name: str, what: str, known: Iterable[str] | None = None
    ) -> Mapping[str, YamlNode]:
        return {str(key): node for key, node in self.mapping(name, what, known).items()}


class _DressKeys(Keys):
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
