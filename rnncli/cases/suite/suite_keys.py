"""The keys of a suite and of its cases: their meaning, and reading them from YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.cases.config.keys import KEYS as CONFIG_KEYS
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.expansion import STRATEGIES
from rnncli.cases.yaml_reader import Key, YamlNode, read_mapping, shown, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rnncli.cases.findings import Findings

GOLDENS: Mapping[str, str] = {
    "certified": "proved by ball arithmetic to be the correctly rounded value",
    "float64": "computed in float64 and rounded once; for inputs that are not finite",
}
# What the option --weights calls the places of weights, and what suites and records call them.
PLACES_OF_WEIGHTS: Mapping[str, str] = {"constants": "initializers", "inputs": "inputs"}
WEIGHTS: Mapping[str, str] = {
    "inputs": "inputs of the model's graph",
    "initializers": "constants in the model",
}
DEFAULT_GOLDEN, DEFAULT_WEIGHTS, DEFAULT_PROFILE = "certified", "inputs", "standard"
MOST_CALLS = 2
ALL = "all"

# Every key of a suite and its meaning, for messages, the schema and help.
SUITE_KEYS: Mapping[str, str] = {
    "suite": "its name: letters a-z, digits, '_', '.' and '-'",
    "summary": "one sentence: what the suite is for",
    "seed": "a number that all random inputs depend on, beside the id of their case; 0 when not"
    " given",
    "golden": "how expected values are made: certified (when not given) or float64",
    "profile": "what a correct implementation may round: the tolerances follow from it",
    "score": "whether a pack says of each case which mutants it catches; false when not given",
    "notes": "flag -> which bug it finds; exactly the flags that the cases carry",
    "defaults": "a partial case under every case: sections are merged, other keys replaced",
    "cases": "name -> case; the name is a part of the ids",
}
# Every key of a suite's case.
CASE_KEYS: Mapping[str, str] = {
    **{name: said for name, said in CONFIG_KEYS.items() if name != "seed"},
    "op": "the operator, such as LSTM-14, or its type, with the version under 'opset'",
    "opset": "the version of the operator",
    "flags": "what the case can find, each explained in the suite's 'notes'",
    "axis_flags": "label -> more flags of the cases that carry it",
    "weights": "where W, R, B and P stand in the model: inputs (when not given) or initializers",
    "calls": "how many data sets one session of the model is asked: 1 (when not given) or 2; the"
    " second has other inputs and other lengths",
    "empty_names": 'whether the node writes "" for inputs that are left out at the end, too;'
    " false when not given",
    "golden": "as of the suite, for this case",
    "profile": "as of the suite, for this case",
    "horizon": "for how many steps an input must stay visible in the outputs, or all: a case that"
    " does not see its first input for so long is refused by `generate`",
    "matrix": "axes: names of keys, sections, sizes, attributes or inputs, each with its values",
    "zip": "axes of one length that advance together",
    "strategy": f"which combinations are made: {', '.join(STRATEGIES)}",
    "exclude": "combinations left out: axis -> label or labels",
    "include": "combinations added: axis -> label; axes not named have their first value",
    "breaks": f"the one thing that makes the case invalid: {', '.join(KINDS)}",
}
# Keys of a case that control its expansion; the others are settings.
EXPANSION_KEYS = (
    *("flags", "axis_flags", "golden", "profile", "calls", "horizon", "empty_names"),
    *("matrix", "zip", "strategy", "exclude", "include"),
)


@dataclass(slots=True)
class Keys:
    """Entries of a suite or a case. Wrong values become findings and are replaced by defaults.

    Attributes:
        node: the YAML of the entries, for the place of missing ones.
        entries: the entries by key.
        findings: receives the findings.
    """

    node: YamlNode
    entries: Mapping[Key, YamlNode]
    findings: Findings

    def entry(self, name: str) -> YamlNode:
        """Return the value of a key, a null if absent."""
        return next(
            (n for k, n in self.entries.items() if k == name), YamlNode(None, self.node.place)
        )

    def text(self, name: str, *, required: bool = False) -> str:
        """Return a text, or ""."""
        node = self.entry(name)
        missing = required and not node.value
        if missing or not isinstance(node.value, None | str):
            self.find(node, f"'{name}' must be text, got {shown(node)}")
        return str(node.value or "")

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of some names."""
        node = self.entry(name)
        if node.value is None:
            return default
        if node.value not in [*choices]:
            self.find(node, unknown(f"{name}", shown(node).strip("'"), choices))
            return default
        return str(node.value)

    def truth(self, name: str) -> bool:
        """Return a truth value, false for a null."""
        node = self.entry(name)
        if not isinstance(node.value, bool | None):
            self.find(node, f"'{name}' must be true or false, got {shown(node)}")
        return bool(node.value)

    def count(self, name: str, most: int) -> int:
        """Return an integer from 1 to `most`; 1 if absent."""
        node = self.entry(name)
        if node.value is None:
            return 1
        if type(node.value) is not int or not 1 <= node.value <= most:
            self.find(node, f"'{name}' must be an integer from 1 to {most}, got {shown(node)}")
            return 1
        return node.value

    def steps(self, name: str) -> int | str | None:
        """Return a number of steps, `ALL`, or None if absent."""
        value = self.entry(name).value
        if value is None or value == ALL or (type(value) is int and value >= 1):
            return value
        said = shown(self.entry(name))
        self.find(self.entry(name), f"'{name}' must be a positive integer or {ALL}, got {said}")
        return None

    def mapping(
        self, name: str, what: str, known: Iterable[str] | None = None
    ) -> dict[Key, YamlNode]:
        """Return the entries of a mapping, none for a null."""
        node = self.entry(name)
        if node.value is None:
            return {}
        return read_mapping(node, f"'{name}'", what, known, self.findings)

    def items(self, name: str) -> tuple[YamlNode, ...]:
        """Return the items of a list, none for a null."""
        node = self.entry(name)
        if isinstance(node.value, tuple):
            return node.value
        if node.value is not None:
            self.find(node, f"'{name}' must be a list, got {shown(node)}")
        return ()

    def find(self, node: YamlNode, sentence: str) -> None:
        """Add a finding."""
        self.findings.add(node.place, sentence)


def read_flags(node: YamlNode, findings: Findings) -> tuple[Key, ...]:
    """Return a list of flags with their places, none for a null."""
    if not isinstance(node.value, tuple | None):
        findings.add(node.place, f"flags must be a list of names, got {shown(node)}")
        return ()
    for flag in node.value or ():
        if not isinstance(flag.value, str) or not flag.value:
            findings.add(flag.place, f"a flag is a name, got {shown(flag)}")
    return tuple(Key(str(flag.value), flag.place) for flag in node.value or ())
