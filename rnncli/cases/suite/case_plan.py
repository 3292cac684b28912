"""The keys of a suite and its cases, and reading a case: settings, axes, flags and its rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.cases.config.keys import KEYS as CONFIG_KEYS
from rnncli.cases.config.keys import LARGEST_INTEGER, KeyRow, Keys, section_of
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.expansion import STRATEGIES, Expansion
from rnncli.cases.suite.template import (
    LABEL,
    SECTIONS,
    Axis,
    Factor,
    Template,
    flatten,
    is_known,
    known_paths,
    read_axes,
    versions_of,
)
from rnncli.cases.yaml_reader import Key, YamlNode, read_mapping, shown, unknown
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.operator import OPEN, PLAIN, Spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.template import Path, Setting, Settings
    from rnncli.cases.yaml_reader import Findings

GOLDENS: Mapping[str, str] = {
    "certified": "proved by ball arithmetic to be the correctly rounded value",
    "float64": "computed in float64 and rounded once; for inputs that are not finite",
}
WEIGHTS: Mapping[str, str] = {
    "inputs": "inputs of the model's graph",
    "initializers": "constants in the model",
}
DEFAULT_GOLDEN, DEFAULT_WEIGHTS, DEFAULT_PROFILE = "certified", "inputs", "standard"
MOST_CALLS = 2  # as a number; a list may have more
ALL = "all"

_LABEL = {"type": "string", "pattern": f"^{LABEL.pattern}$"}
_TEXT = {"type": "string", "minLength": 1}
_CASE, _FLAGS, _AXES = ({"$ref": f"#/$defs/{name}"} for name in ("case", "flags", "axes"))
_NULL = {"type": "null"}


# Every key of a suite.
SUITE_KEYS: Mapping[str, KeyRow] = {
    "suite": KeyRow("its name: letters a-z, digits, '_', '.' and '-'", _LABEL),
    "summary": KeyRow("one sentence: what the suite is for", _TEXT),
    "seed": CONFIG_KEYS["seed"]._replace(
        summary="a number that all random inputs depend on, beside the id of their case; 0 when not"
        " given",
        schema={"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST_INTEGER},
    ),
    "golden": KeyRow.of_choice(
        "how expected values are made: certified (when not given) or float64",
        GOLDENS,
        DEFAULT_GOLDEN,
    ),
    "profile": KeyRow.of_choice(
        "what a correct implementation may round: the tolerances follow from it",
        PROFILES,
        DEFAULT_PROFILE,
    ),
    "score": KeyRow.of_truth(
        "whether a pack says of each case which mutants it catches; false when not given",
        default=False,
    ),
    "notes": KeyRow(
        "flag -> which bug it finds; exactly the flags that the cases carry",
        {"type": ["object", "null"], "additionalProperties": _TEXT},
    ),
    "defaults": KeyRow(
        "a partial case under every case: sections are merged, other keys replaced",
        {"anyOf": [_CASE, _NULL]},
    ),
    "cases": KeyRow(
        "name -> case; the name is a part of the ids",
        {
            "type": "object",
            "propertyNames": {"pattern": _LABEL["pattern"]},
            "minProperties": 1,
            "additionalProperties": _CASE,
        },
    ),
}
# Sections that a later call may have: sizes, of a model with 'open_sizes', and values for inputs
# that the first call has, too. Its other settings are those of the case.
OF_A_LATER_CALL = ("sizes", "inputs")
# Every key of a suite's case. What operators allow as settings and axes is added by `schemas`.
CASE_KEYS: Mapping[str, KeyRow] = {
    **{name: row for name, row in CONFIG_KEYS.items() if name != "seed"},
    "op": KeyRow("the operator, such as LSTM-14, or its type, with the version under 'opset'", {}),
    "opset": KeyRow("the version of the operator", {}),
    "flags": KeyRow(
        "what the case can find, each explained in the suite's 'notes'",
        {"anyOf": [_FLAGS, _NULL]},
    ),
    "axis_flags": KeyRow(
        "label -> more flags of the cases that carry it",
        {"type": ["object", "null"], "additionalProperties": _FLAGS},
    ),
    "weights": KeyRow.of_choice(
        "where W, R, B and P stand in the model: inputs (when not given) or initializers",
        WEIGHTS,
        DEFAULT_WEIGHTS,
    ),
    "calls": KeyRow(
        "how many data sets one session of the model is asked: 1 (when not given) or 2; the second"
        " has other inputs and other lengths; or a list of the later calls, each with the sizes and"
        " inputs of its own",
        {
            "anyOf": [
                {"enum": [*range(1, MOST_CALLS + 1), None], "default": 1},
                {
                    "type": ["array", "null"],
                    "items": {
                        "properties": {k: {"$ref": f"#/$defs/of_{k}"} for k in OF_A_LATER_CALL},
                        "additionalProperties": False,
                    },
                },
            ]
        },
        f"an integer from 1 to {MOST_CALLS}",
        lambda n: type(n) is int and 1 <= n <= MOST_CALLS,
        1,
    ),
    "empty_names": KeyRow.of_truth(
        'whether the node writes "" for inputs that are left out at the end, too; false when not'
        " given",
    ),
    "open_sizes": KeyRow.of_truth(
        "whether the model, of ONNX, names steps and batch instead of giving their sizes; false"
        " when not given",
    ),
    "golden": SUITE_KEYS["golden"]._replace(summary="as of the suite, for this case"),
    "profile": SUITE_KEYS["profile"]._replace(summary="as of the suite, for this case"),
    "horizon": KeyRow(
        "for how many steps an input must stay visible in the outputs, or all: a case that does"
        " not see its first input for so long is refused by `generate`",
        {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": [ALL, None]}]},
        f"a positive integer or {ALL}",
        lambda n: n == ALL or (type(n) is int and n >= 1),
    ),
    "matrix": KeyRow(
        "axes: names of keys, sections, sizes, attributes or inputs, each with its values", _AXES
    ),
    "zip": KeyRow("axes of one length that advance together", _AXES),
    "strategy": KeyRow.of_choice(
        f"which combinations are made: {', '.join(STRATEGIES)}", STRATEGIES, "product"
    ),
    "exclude": KeyRow.of_list("combinations left out: axis -> label or labels"),
    "include": KeyRow.of_list(
        "combinations added: axis -> label; axes not named have their first value"
    ),
    "breaks": KeyRow(f"the one thing that makes the case invalid: {', '.join(KINDS)}", {}),
}
# Keys of a case that control its expansion; the others are settings.
EXPANSION_KEYS = (
    *("flags", "axis_flags", "golden", "profile", "calls", "horizon", *Spelling._fields),
    *("matrix", "zip", "strategy", "exclude", "include"),
)


class SuiteKeys(Keys):
    """The keys of a suite."""

    ROWS = SUITE_KEYS


class CaseKeys(Keys):
    """The keys of a case of a suite."""

    ROWS = CASE_KEYS


def read_flags(node: YamlNode, findings: Findings) -> tuple[Key, ...]:
    """Return a list of flags with their places, none for a null."""
    if not isinstance(node.value, tuple | None):
        findings.add(node.place, f"flags must be a list of names, got {shown(node)}")
        return ()
    for flag in node.value or ():
        if not isinstance(flag.value, str) or not flag.value:
            findings.add(flag.place, f"a flag is a name, got {shown(flag)}")
    return tuple(Key(str(flag.value), flag.place) for flag in node.value or ())


@dataclass(frozen=True, slots=True)
class CasePlan:
    """A case of a suite with the rows of levels that become cases, all else as in their `Entry`.

    Rows with a label have the flags of its axis as well; `later` has the settings of each later
    call that are not the case's.
    """

    template: Template
    rows: list[Row]
    flags: tuple[Key, ...]
    axis_flags: Mapping[Key, tuple[Key, ...]]
    golden: str
    profile: str
    later: tuple[Settings, ...] = ()
    horizon: int | str | None = None
    spelling: Spelling = PLAIN


def merged(below: Mapping[Key, YamlNode], above: Mapping[Key, YamlNode]) -> dict[Key, YamlNode]:
    """Merge a case into defaults: sections by name, other keys whole; a null section is empty."""
    entries = dict(below)
    for key, node in above.items():
        under = entries.pop(key, None)  # the place of the overriding key counts
        if key in SECTIONS and under is not None and isinstance(under.value, dict):
            if isinstance(node.value, dict):
                node = YamlNode({**under.value, **node.value}, node.place)  # noqa: PLW2901
            elif node.value is None:
                node = under  # noqa: PLW2901
        entries[key] = node
    return entries


def read_plan(
    name: Key,
    node: YamlNode,
    defaults: Mapping[Key, YamlNode],
    suite: tuple[str, str],
    findings: Findings,
) -> CasePlan:
    """Read one case; the suite's golden and profile are those of a case without its own."""
    own = read_mapping(node, f"case '{name}'", "key", CASE_KEYS, findings, place_of=section_of)
    keys = CaseKeys(node, merged(defaults, own), findings)
    golden, profile = suite
    # All versions of the operators that the case names, or all operators if it names none.
    nodes = [keys.entry("op"), *(keys.entry(key).child("op") for key in ("matrix", "zip"))]
    words = [word for node in nodes if node is not None for word in _words(node)]
    named = [row for word in words for row in versions_of(word.partition("-")[0])]
    known = known_paths(named or list(OPERATORS.values()))
    fixed, factors = dict(_fixed(keys, known)), tuple(_factors(keys, known))
    template = Template(str(name), name.place, fixed, factors)
    for settings in (template.fixed, *itertools.chain(*template.levels)):
        setting = settings.get(("weights",))
        if setting is not None and setting.node.value not in (None, *WEIGHTS):
            word = shown(setting.node).strip("'")
            findings.add(setting.node.place, unknown("weights", word, WEIGHTS))
    strategy = STRATEGIES[keys.value("strategy")]
    rows = Expansion(template, strategy, keys.value("exclude"), keys.value("include"), findings)
    return CasePlan(
        template=template,
        rows=rows.rows(),
        flags=read_flags(keys.entry("flags"), findings),
        axis_flags={
            label: read_flags(flags, findings)
            for label, flags in keys.mapping("axis_flags", "label").items()
        },
        golden=keys.value("golden", golden),
        profile=keys.value("profile", profile),
        later=tuple(_later(keys, template, known)),
        horizon=keys.value("horizon"),
        spelling=Spelling(*map(keys.value, Spelling._fields)),
    )


def _later(keys: CaseKeys, template: Template, known: Collection[Path]) -> Iterator[Settings]:
    """Yield the own settings of each later call; a number of calls gives none.

    A later call is asked of the model, and by the inputs, of the first.
    """
    calls = keys.entry("calls")
    if not isinstance(calls.value, tuple):
        yield from [{}] * (keys.value("calls") - 1)
        return
    whole, findings = f"a later call of case '{template.name}'", keys.findings
    for node in calls.value:
        entries = read_mapping(node, whole, "key", OF_A_LATER_CALL, findings)
        own = {key: each for key, each in entries.items() if key in OF_A_LATER_CALL}
        found: Settings = {}
        for path, setting in flatten(own).items():
            if len(path) == 1:
                sentence = f"'{path[0]}' of {whole} must be a mapping, NAME: VALUE"
                findings.add(setting.node.place, sentence)
            elif is_known(path, setting.key, known, findings):
                if path[0] == "sizes" and path[1] not in OPEN:
                    listed = " and ".join(sorted(OPEN))
                    sentence = f"{whole} may change {listed}, and '{path[1]}' is the model's"
                    findings.add(setting.key.place, sentence)
                found[path] = setting
        if any(path[0] == "sizes" for path in found) and not keys.value("open_sizes"):
            sentence = f"{whole} has sizes of its own, which 'open_sizes: true' allows"
            findings.add(node.place, sentence)
        yield found


def _words(node: YamlNode) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(node.value, str):
        yield node.value
    elif isinstance(node.value, tuple | dict):
        children = node.value.values() if isinstance(node.value, dict) else node.value
        for child in children:
            yield from _words(child)


def _fixed(keys: CaseKeys, known: Collection[Path]) -> Iterator[tuple[Path, Setting]]:
    """Yield the settings outside the axes; names that no version has are findings."""
    entries = {k: n for k, n in keys.entries.items() if k not in EXPANSION_KEYS}
    for path, setting in flatten(entries).items():
        if len(path) == 1 and path[0] in SECTIONS:
            if setting.node.value is not None:
                keys.find(
                    setting.node,
                    f"'{path[0]}' must be a mapping, NAME: VALUE, got {shown(setting.node)}",
                )
            continue
        # A null also removes a default of other operators than the case's.
        is_null = setting.node.value is None and path not in known
        if is_null and path in known_paths(OPERATORS.values()):
            continue
        if is_known(path, setting.key, known, keys.findings):
            yield path, setting


def _factors(keys: CaseKeys, known: Collection[Path]) -> Iterator[Factor]:
    """Yield the factors: each axis of `matrix`, then those of `zip` as one factor."""
    matrix = read_axes(keys.mapping("matrix", "axis"), known, keys.findings)
    zipped = read_axes(keys.mapping("zip", "axis"), known, keys.findings)

    # Of two axes that set the same path, one would be ignored.
    setters: dict[Path, Axis] = {}
    for axis in (*matrix, *zipped):
        for path in {path: None for level in axis.levels for path in level.settings}:
            first = setters.setdefault(path, axis)
            if first is not axis:
                sentence = f"axes '{first.name}' and '{axis.name}' both set '{path[-1]}'"
                keys.findings.add(axis.place, sentence)

    lengths = {axis.name: len(axis.levels) for axis in zipped}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        keys.find(keys.entry("zip"), f"the axes of 'zip' must be equally long: {listed}")
    factors = [Factor((axis,)) for axis in matrix]
    for factor in (*factors, *[Factor(zipped)] * bool(zipped)):
        # Levels with the labels of an earlier one would give cases with the same ids.
        seen: set[tuple[str, ...]] = set()
        for k in range(factor.count):
            labels = tuple([axis.levels[k].label for axis in factor.axes])
            if labels in seen:
                names = " and ".join(f"'{axis.name}'" for axis in factor.axes)
                which = ", ".join(label or "no label" for label in labels)
                sentence = f"a second value of {names} is labelled {which}"
                keys.findings.add(factor.place(k), sentence)
            seen.add(labels)
        yield factor
