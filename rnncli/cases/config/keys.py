"""The keys of a config, each described once, and the reading of entries by such rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rnncli.cases.case import SIZES, size_names
from rnncli.cases.yaml_reader import Findings, Key, YamlNode, read_mapping, shown, unknown
from rnncli.errors import did_you_mean
from rnncli.operators import OPERATORS
from rnncli.operators.checking import INPUT_TYPES, possible_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
    "states_dtype": OperatorChoice(
        "the element type of states, where the operator has a choice; float32 when not given",
        "float32",
        "states of a type of their own",
        lambda operator: operator.states_dtypes,
        "states",
    ),
    "scales": OperatorChoice(
        "what has a scale of its own in quantised weights: per_tensor (when not given), each"
        " direction; or per_channel, each column",
        "per_tensor",
        "quantised weights",
        lambda operator: operator.choices_of("scales"),
    ),
    "decay_form": OperatorChoice(
        "what has a decay of its own: per_head (when not given), the state of a head; or per_key,"
        " each row of it",
        "per_head",
        "decay",
        lambda operator: operator.choices_of("decay_form"),
    ),
    "beta_form": OperatorChoice(
        "what has an update rate of its own: per_head (when not given); or shared, by all heads",
        "per_head",
        "beta",
        lambda operator: operator.choices_of("beta_form"),
    ),
    "key_form": OperatorChoice(
        "what has keys of its own: per_head (when not given), each head of values; or shared, by"
        " the heads that share a head of queries",
        "per_head",
        "keys that heads may share",
        lambda operator: operator.choices_of("key_form"),
    ),
    "bias_form": OperatorChoice(
        "what has a bias of its decay of its own: per_head (when not given), the state of a head;"
        " or per_key, each row of it",
        "per_head",
        "bias of decays",
        lambda operator: operator.choices_of("bias_form"),
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
        "seq_length, batch_size, input_size and hidden_size, or those that `rnncli ops` lists for"
        " the operator; every shape follows from them",
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
        "a number, rounded to float32; or a list of them, repeated along the axis: index i has"
        " number i modulo their count",
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
