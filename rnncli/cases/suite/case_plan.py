"""The keys of a suite and its cases, and reading a case: settings, axes, flags and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.cases.config.keys import KEYS as CONFIG_KEYS
from rnncli.cases.config.keys import Keys, section_of
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.expansion import STRATEGIES, Expansion
from rnncli.cases.suite.template import (
    SECTIONS,
    Axis,
    Factor,
    Template,
    flatten,
    is_known,
    known_paths,
    read_axes,
    refuse_repeated,
    versions_of,
)
from rnncli.cases.yaml_reader import Key, YamlNode, read_mapping, shown, unknown
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.spelling import OPEN, PLAIN, Spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.template import Path, Setting, Settings
    from rnncli.cases.yaml_reader import Findings
    from rnncli.operators import Operator

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
MOST_CALLS = 2  # as a number; a list may have more
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
    " second has other inputs and other lengths; or a list of the later calls, each with the sizes"
    " and inputs of its own",
    "empty_names": 'whether the node writes "" for inputs that are left out at the end, too;'
    " false when not given",
    "open_sizes": "whether the model, of ONNX, names steps and batch instead of giving their sizes;"
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
# Sections that a later call may have; its other settings are those of the case.
OF_A_LATER_CALL: Mapping[str, str] = {
    "sizes": "seq_length or batch_size, of a model with 'open_sizes'",
    "inputs": "values for inputs that the first call has, too",
}
# Keys of a case that control its expansion; the others are settings.
EXPANSION_KEYS = (
    *("flags", "axis_flags", "golden", "profile", "calls", "horizon", *Spelling._fields),
    *("matrix", "zip", "strategy", "exclude", "include"),
)


class SuiteKeys(Keys):
    """Entries of a suite or of a case."""

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
        return bool(self.value(name, lambda v: isinstance(v, bool), "true or false", False))

    def count(self, name: str, most: int) -> int:
        """Return an integer from 1 to `most`; 1 if absent."""
        wanted = f"an integer from 1 to {most}"
        return int(self.value(name, lambda n: type(n) is int and 1 <= n <= most, wanted, 1))

    def steps(self, name: str) -> int | str | None:
        """Return a number of steps, `ALL`, or None if absent."""
        found: int | str | None = self.value(
            name,
            lambda n: n == ALL or (type(n) is int and n >= 1),
            f"a positive integer or {ALL}",
            None,
        )
        return found

    def items(self, name: str) -> tuple[YamlNode, ...]:
        """Return the items of a list, none for a null."""
        return tuple(self.value(name, lambda v: isinstance(v, tuple), "a list", ()))


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
    axis_flags: Mapping[str, tuple[Key, ...]]
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
    keys = SuiteKeys(node, merged(defaults, own), findings)
    golden, profile = suite
    template = _template(name, keys)
    strategy = STRATEGIES[keys.choice("strategy", STRATEGIES, "product")]
    exclude, include = keys.items("exclude"), keys.items("include")
    return CasePlan(
        template=template,
        rows=Expansion(template, strategy, exclude, include, findings).rows(),
        flags=read_flags(keys.entry("flags"), findings),
        axis_flags=_axis_flags(keys, template),
        golden=keys.choice("golden", GOLDENS, golden),
        profile=keys.choice("profile", PROFILES, profile),
        later=_later(keys, template),
        horizon=keys.steps("horizon"),
        spelling=Spelling(*map(keys.truth, Spelling._fields)),
    )


def _template(name: Key, keys: SuiteKeys) -> Template:
    known = known_paths(_candidates(keys))
    fixed, factors = dict(_fixed(keys, known)), tuple(_factors(keys, known))
    template = Template(str(name), name.place, fixed, factors)
    _check_weights(template, keys.findings)
    return template


def _later(keys: SuiteKeys, template: Template) -> tuple[Settings, ...]:
    """Return the own settings of each later call; a number of calls gives none."""
    node = keys.entry("calls")
    if not isinstance(node.value, tuple):
        return ({},) * (keys.count("calls", MOST_CALLS) - 1)
    known = known_paths(_candidates(keys))
    return tuple(_later_call(item, template, known, keys) for item in node.value)


def _later_call(
    node: YamlNode, template: Template, known: Collection[Path], keys: SuiteKeys
) -> Settings:
    """Read a later call, which is asked of the model, and by the inputs, of the first."""
    whole, findings = f"a later call of case '{template.name}'", keys.findings
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
    if any(path[0] == "sizes" for path in found) and not keys.truth("open_sizes"):
        findings.add(node.place, f"{whole} has sizes of its own, which 'open_sizes: true' allows")
    return found


def _candidates(keys: SuiteKeys) -> list[Operator]:
    """Return all versions of the operators that a case names, or all operators if it names none."""
    nodes = [keys.entry("op"), *(keys.entry(key).child("op") for key in ("matrix", "zip"))]
    words = [word for node in nodes if node is not None for word in _words(node)]
    rows = [row for word in words for row in versions_of(word.partition("-")[0])]
    return rows or list(OPERATORS.values())


def _words(node: YamlNode) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(node.value, str):
        yield node.value
    elif isinstance(node.value, tuple | dict):
        children = node.value.values() if isinstance(node.value, dict) else node.value
        for child in children:
            yield from _words(child)


def _fixed(keys: SuiteKeys, known: Collection[Path]) -> Iterator[tuple[Path, Setting]]:
    """Yield the settings outside the axes; names that no version has are findings."""
    entries = {k: n for k, n in keys.entries.items() if k not in EXPANSION_KEYS}
    for path, setting in flatten(entries).items():
        if len(path) == 1 and path[0] in SECTIONS:
            if setting.node.value is not None:
                keys.find(
                    setting.node,
                    f"'{path[0]}' must be a mapping, NAME: VALUE, got {shown(setting.node)}",
                )
        elif _takes_away(path, setting, known):
            continue
        elif is_known(path, setting.key, known, keys.findings):
            yield path, setting


def _takes_away(path: Path, setting: Setting, known: Collection[Path]) -> bool:
    """Return whether a null removes a default of other operators than the case's."""
    is_null = setting.node.value is None and path not in known
    return is_null and path in known_paths(OPERATORS.values())


def _factors(keys: SuiteKeys, known: Collection[Path]) -> Iterator[Factor]:
    """Yield the factors: each axis of `matrix`, then those of `zip` as one factor."""
    matrix = read_axes(keys.mapping("matrix", "axis"), known, keys.findings)
    zipped = read_axes(keys.mapping("zip", "axis"), known, keys.findings)
    _refuse_overlaps([*matrix, *zipped], keys.findings)
    lengths = {axis.name: len(axis.levels) for axis in zipped}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        keys.find(keys.entry("zip"), f"the axes of 'zip' must be equally long: {listed}")
    factors = [Factor((axis,)) for axis in matrix]
    for factor in (*factors, *[Factor(zipped)] * bool(zipped)):
        refuse_repeated(factor, keys.findings)
        yield factor


def _refuse_overlaps(axes: list[Axis], findings: Findings) -> None:
    """Find pairs of axes that set the same path, of which one would be ignored."""
    setters: dict[Path, Axis] = {}
    for axis in axes:
        for path in {path: None for level in axis.levels for path in level.settings}:
            first = setters.setdefault(path, axis)
            if first is not axis:
                sentence = f"axes '{first.name}' and '{axis.name}' both set '{path[-1]}'"
                findings.add(axis.place, sentence)


def _check_weights(template: Template, findings: Findings) -> None:
    """Find invalid values of `weights`."""
    path = ("weights",)
    levels = [settings for factor in template.levels for settings in factor]
    for settings in (template.fixed, *levels):
        node = settings[path].node if path in settings else None
        if node is not None and node.value not in (None, *WEIGHTS):
            findings.add(node.place, unknown("weights", shown(node).strip("'"), WEIGHTS))


def _axis_flags(keys: SuiteKeys, template: Template) -> dict[str, tuple[Key, ...]]:
    """Return the flags of labels."""
    axes = [axis for factor in template.factors for axis in factor.axes]
    labels = {level.label: None for axis in axes for level in axis.levels if level.label}
    entries = keys.mapping("axis_flags", "label", labels)
    return {str(label): read_flags(node, keys.findings) for label, node in entries.items()}
