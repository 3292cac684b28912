"""Suites: many cases from a few lines of YAML, known by their labels and read on demand."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.config.config import read_case
from rnncli.cases.config.keys import DEFAULT_DTYPE
from rnncli.cases.library import find_suite
from rnncli.cases.selection import Selection, is_called, words_of
from rnncli.cases.suite.breakage import read_breakage
from rnncli.cases.suite.case_plan import (
    CASE_KEYS,
    DEFAULT_WEIGHTS,
    SUITE_KEYS,
    SuiteKeys,
    read_plan,
)
from rnncli.cases.suite.expansion import MOST_CASES, has_not
from rnncli.cases.suite.template import LABEL, LABEL_WANTED, Setting, assemble
from rnncli.cases.yaml_reader import (
    Findings,
    YamlNode,
    parse_yaml,
    read_mapping,
    read_source,
    read_yaml,
    shown,
    unknown,
)
from rnncli.errors import (
    ConfigError,
    InvalidOperator,
    InvalidRequest,
    RnncliError,
    RnncliWarning,
    UndefinedDefault,
    did_you_mean,
)
from rnncli.numerics import says_nothing
from rnncli.operators import evaluate, problems

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from rnncli.cases.case import Case
    from rnncli.cases.suite.breakage import Breakage
    from rnncli.cases.suite.case_plan import CasePlan
    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.template import Settings, Template
    from rnncli.errors import Place
    from rnncli.operators import Operator
    from rnncli.operators.operator import Spelling

LONGEST_ID = 120
# What makes a unit show something.
FINER = "a smaller scale has more levels"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One case of a suite, known by its labels and read on demand."""

    id: str  # ``lstm_14_peepholes_reverse_float16``; a part of every input's seed
    operator: Operator  # the row
    dtype: str  # the dtype of its floating-point tensors, by name
    flags: tuple[str, ...]  # the bugs it can find, keys of the suite's notes
    weights: str  # the location of W, R, B and P in a model, a key of `WEIGHTS`
    golden: str  # the origin of expected values, a key of `GOLDENS`
    profile: str  # the profile of its tolerances
    breakage: Breakage | None  # the change that makes a must-reject case invalid, or None
    later: tuple[Settings, ...]  # the own settings of each later call; none for a must-reject case
    # the number of steps for which an input must be visible, `ALL`, or None
    horizon: int | str | None
    spelling: Spelling  # how its model spells the node
    _template: Template = field(repr=False)
    _row: Row = field(repr=False)
    _origin: tuple[int, Path] = field(repr=False)  # seed and folder of the suite
    steps: bool = False  # whether the signals of every step are stored

    def is_called(self, word: str) -> bool:
        """Return whether a lower-case word is the case's id, a part of it, or a flag."""
        return is_called(word, self.id, self.flags)

    @property
    def calls(self) -> int:
        """The number of data sets."""
        return 1 + len(self.later)

    @property
    def place(self) -> Place:
        """The place of the case in the suite."""
        return self._template.place

    @property
    def labels(self) -> Mapping[str, str]:
        """The label of each axis; "" for a value without one."""
        return self._template.labels(self._row)

    @property
    def structure(self) -> Hashable:
        """A key that is equal for cases that differ only in names and labels.

        Their `case()` differs only in the name and so in random inputs.
        """
        return id(self._template), self._template.structure(self._row)

    def case(self, call: int = 0) -> Case:
        """Read the case as a call has it; for a must-reject case, the valid one.

        Raises:
            ConfigError: it is wrong; every finding has a place.
        """
        seed, folder = self._origin
        place = self._template.place
        root = assemble(self._settings(call), place)
        case = read_case(root, self.id, folder, seed=seed, key=self.id)
        Y = next((row.name for row in self.operator.outputs if row.role == "Y"), "Y")
        if case.unit and (self.horizon or self.breakage):
            what = "claims a horizon" if self.horizon else "must be refused"
            raise ConfigError([(place, f"a case that {what} cannot be quantised yet")])
        if self.horizon and Y not in case.outputs:
            sentence = f"a case that claims a horizon must ask for {Y}, which shows every step"
            raise ConfigError([(place, sentence)])
        if call and self.later[call - 1] and case.sources.keys() != self.case().sources.keys():
            sentence = f"call {call + 1} must have the inputs of the first, which its model has"
            raise ConfigError([(place, sentence)])
        return case

    def _settings(self, call: int = 0) -> Settings:
        """Return the settings of the config of a call."""
        settings = self._template.settings(self._row)
        if call:
            settings |= self.later[call - 1]
        for path in [path for path, setting in settings.items() if setting.node.value is None]:
            if has_not(self.operator, path):  # absent names need not exist
                del settings[path]
        op = settings["op",]
        for name in ("opset", "weights", "breaks"):
            settings.pop((name,), None)
        settings["op",] = Setting(op.key, YamlNode(self.operator.name, op.node.place))
        return settings

    @property
    def written(self) -> dict[str, Any]:
        """The case as a suite would have it by itself, without axes."""
        place = self._template.place
        later = [assemble(own, place).plain for own in self.later]
        breaks = self._template.plain(("breaks",), self._row)
        told = {
            **assemble(self._settings(), place).plain,  # type: ignore[dict-item]
            "flags": [*self.flags],
            "weights": self.weights,
            "golden": self.golden,
            "profile": self.profile,
            "horizon": self.horizon,
            "calls": later if any(later) else self.calls,
            "breaks": breaks,
            **self.spelling._asdict(),
        }
        return {name: value for name, value in told.items() if value not in (None, False)}

    def refusal(self) -> InvalidOperator | None:
        """Return the error of the broken case; None if it has no breakage.

        Raises:
            ConfigError: the case is wrong even before it is broken.
        """
        case = self.case()
        attributes, inputs = case.attributes, case.inputs
        if self.breakage is not None:
            attributes, inputs = self.breakage.apply(attributes, inputs)
        found = [*problems(self.operator, attributes, inputs, case.outputs, case.readings)]
        return InvalidOperator(f"{self.id} ({self.operator})", found) if found else None


def entry_of(plan: CasePlan, row: Row, origin: tuple[int, Path], findings: Findings) -> Entry:
    """Return the entry of a row; problems of its breakage become findings.

    The origin is the seed and the folder of the suite.
    """
    template = plan.template
    operator = template.operator(row)
    assert not isinstance(operator, str)  # ensured by the rules
    labels = template.labels(row).values() if plan.axis_flags else ()
    of_axes = {str(label): flags for label, flags in plan.axis_flags.items()}
    more = [flag for label in labels for flag in of_axes.get(label, ())]
    breakage, setting = None, template.setting(("breaks",), row)
    if setting is not None and setting.node.value is not None:
        present = [
            tensor.name
            for tensor in operator.inputs
            if not tensor.optional or template.plain(("inputs", tensor.name), row) is not None
        ]
        breakage = read_breakage(setting.node, operator, present, findings)
    claims = {"calls": plan.later, "horizon": plan.horizon is not None}
    for name in [name for name, is_made in claims.items() if breakage and is_made]:
        sentence = f"a case that must be refused has no results that '{name}' could be about"
        findings.add(template.place, sentence)
    if plan.spelling.open_sizes and not operator.dialect.startswith("ONNX"):
        sentence = f"models of {operator.dialect} have sizes: 'open_sizes' is for ONNX"
        findings.add(template.place, sentence)
    # What is the operator's in a name is not repeated in the id.
    slug = operator.slug
    own = "" if template.name in {operator.type.lower(), slug} else template.name
    return Entry(
        id="_".join(filter(None, [slug, own.removeprefix(f"{slug}_"), *template.words(row)])),
        operator=operator,
        dtype=str(template.plain(("dtype",), row) or DEFAULT_DTYPE),
        flags=tuple(dict.fromkeys(map(str, (*plan.flags, *more)))),
        weights=str(template.plain(("weights",), row) or DEFAULT_WEIGHTS),
        golden=plan.golden,
        profile=plan.profile,
        breakage=breakage,
        later=plan.later,
        horizon=plan.horizon,
        spelling=plan.spelling,
        _template=template,
        _row=row,
        _origin=origin,
    )


@dataclass(frozen=True, eq=False)
class Suite:
    """A suite of cases."""

    name: str  # the name of the suite
    summary: str  # its purpose in one sentence
    seed: int  # the seed of all random inputs
    golden: str  # the default origin of expected values
    profile: str  # the default profile
    score: bool  # whether a pack records the mutants that each case catches
    notes: Mapping[str, str]  # flag -> the bug it finds
    entries: tuple[Entry, ...]  # the cases in file order
    source: bytes | str  # the YAML
    file: str  # its name in messages
    folder: Path  # the folder of the files that it names
    files: tuple[str, ...]  # the names of those files, sorted
    # the place of the weights in every model, instead of the cases' own; "" for those
    weights: str = ""
    steps: bool = False  # whether the signals of every step are stored

    def with_weights(self, weights: str) -> Suite:
        """Return the suite with the weights of every model in one place, a key of `WEIGHTS`."""
        return self._with(weights=weights)

    def with_golden(self, golden: str) -> Suite:
        """Return the suite with one origin of the expected values of every case."""
        return self._with(golden=golden)

    def with_steps(self) -> Suite:
        """Return the suite with the signals of every step stored."""
        return self._with(steps=True)

    def _with(self, **changes: Any) -> Suite:
        entries = tuple(replace(entry, **changes) for entry in self.entries)
        return replace(self, entries=entries, **changes)

    @cached_property
    def by_id(self) -> Mapping[str, Entry]:
        """The entries by id."""
        return {entry.id: entry for entry in self.entries}

    def entry(self, case_id: str) -> Entry:
        """Return one case.

        Raises:
            InvalidRequest: unknown id.
        """
        if case_id in self.by_id:
            return self.by_id[case_id]
        hint = did_you_mean(case_id, self.by_id)
        raise InvalidRequest(f"{self.file}: no case '{case_id:.200}'{hint}")

    def select(self, expression: str) -> tuple[Entry, ...]:
        """Return the cases that an expression selects.

        Args:
            expression: words with and, or, not and parentheses; a word is part of an id, or a flag.
                "" selects all.

        Raises:
            InvalidRequest: it is not an expression.
            NothingSelected: no case is selected.
        """
        chosen = Selection(expression).chosen(self.entries, Entry.is_called, self.file, words_of)
        return tuple(chosen)


def load_suite(path: str | Path, *, seed: int | None = None) -> Suite:
    """Read a suite file, without reading its cases.

    Args:
        path: the file, or the name of a shipped suite; other files that it names are relative to
            it.
        seed: replaces the file's.

    Raises:
        ConfigError: the file is wrong; every finding has a place.
        UnreadableFile: it cannot be read.
    """
    path = find_suite(path)
    return parse_suite(read_source(path), str(path), path.parent, seed=seed)


def parse_suite(source: bytes | str, name: str, folder: Path, *, seed: int | None = None) -> Suite:
    """Read the text of a suite, or its UTF-8 bytes; the files that it names lie in the folder.

    Raises:
        ConfigError: the text is wrong; every finding has a place.
        UnreadableFile: it is larger than 1 MiB.
    """
    suite, findings, about_flags = _read(source, name, folder, seed)
    findings.extend(about_flags)
    findings.raise_any()
    return suite


def _read(
    source: bytes | str, name: str, folder: Path, seed: int | None = None
) -> tuple[Suite, Findings, Findings]:
    """Read the text of a suite; return it with its findings, those about notes and flags apart."""
    root = parse_yaml(source, name)
    findings, about_flags = Findings(), Findings()
    keys = SuiteKeys(root, read_mapping(root, "a suite", "key", SUITE_KEYS, findings), findings)
    golden, profile = keys.value("golden"), keys.value("profile")
    written = keys.value("seed")
    seed = written if seed is None else seed

    cases = keys.mapping("cases", "case")
    if keys.entry("cases").value in (None, {}):  # others are already a finding
        keys.find(keys.entry("cases"), "'cases' must name at least one case")
    for case in cases:
        if not LABEL.fullmatch(case):
            findings.add(case.place, f"a case's name holds {LABEL_WANTED}, got '{case:.40}'")
    defaults = keys.mapping("defaults", "key", CASE_KEYS)
    plans = [
        read_plan(case, node, defaults, (golden, profile), findings)
        for case, node in cases.items()
        if LABEL.fullmatch(case)
    ]
    entries = tuple(_entries(plans, (seed, folder), findings))

    own_name = keys.text("suite", required=True)
    if own_name and not LABEL.fullmatch(own_name):
        sentence = f"a suite's name holds {LABEL_WANTED}, got '{own_name:.40}'"
        keys.find(keys.entry("suite"), sentence)
    suite = Suite(
        name=own_name,
        summary=keys.text("summary", required=True),
        seed=seed,
        golden=golden,
        profile=profile,
        score=keys.value("score"),
        notes=_notes(replace(keys, findings=about_flags), plans, entries),
        entries=entries,
        source=source,
        file=name,
        folder=folder,
        files=tuple(sorted(set(_files(root)))),
    )
    return suite, findings, about_flags


def files_named(target: str) -> list[str]:
    """Return the files that a config or a suite, or `FILE::ID`, names; none of one with faults."""
    path = Path(target.partition("::")[0])
    with suppress(RnncliError):
        return [str(path.parent / name) for name in _files(read_yaml(path))]
    return []


def _files(node: YamlNode) -> Iterator[str]:
    """Yield every file that a suite names, at any depth."""
    children = node.value
    if isinstance(children, dict):
        for key, child in children.items():
            if key == "file" and isinstance(child.value, str):
                yield child.value
            yield from _files(child)
    elif isinstance(children, tuple):
        for child in children:
            yield from _files(child)


def is_suite(root: YamlNode) -> bool:
    """Return whether parsed YAML is a suite rather than a config."""
    return isinstance(root.value, dict) and ("suite" in root.value or "cases" in root.value)


def suite_findings(source: bytes | str, name: str, folder: Path) -> list[tuple[Place, str]]:
    """Return all findings about a suite and its cases.

    Raises:
        UnreadableFile: it is larger than 1 MiB.
    """
    try:
        suite, findings, about_flags = _read(source, name, folder)
    except ConfigError as error:
        return list(error.findings)
    told_of = {place for place, _ in findings}
    first: dict[tuple[Place, str], str] = {}
    for entry in suite.entries:
        found: Iterable[tuple[Place, str]] = ()
        try:
            if entry.breakage is None:
                for call in range(entry.calls):
                    case = entry.case(call)
                # Values that it leaves to a default of our own.
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("ignore", RnncliWarning)
                    warnings.simplefilter("always", UndefinedDefault)
                    _ = case.node.activations
                told = [str(each.message) for each in said]
                cases = map(entry.case, range(entry.calls))
                told += [f"shows nothing: {why}; {FINER}" for why in map(_idle, cases) if why]
                found = [(entry.place, sentence) for sentence in told]
            elif entry.refusal() is None:
                found = [(entry.place, f"{entry.breakage.written} breaks nothing")]
        except ConfigError as error:
            found = error.findings
        for finding in found:
            if finding[0] not in told_of:  # else it is another word for the same
                first.setdefault(finding, entry.id)
    of_cases = [(place, f"{sentence} [{case}]") for (place, sentence), case in first.items()]
    in_file_order = sorted([*findings, *of_cases], key=lambda finding: finding[0][1:])
    return [*dict.fromkeys([*in_file_order, *about_flags])]


def _idle(case: Case) -> str:
    """Return why the expected outputs of a quantised unit say nothing of a computation, or ""."""
    if case.unit is None or not case.node.recurrence(case.inputs).has_steps:
        return ""
    asked = {name: getattr(case, name) for name in ("attributes", "outputs", "readings", "unit")}
    return says_nothing(evaluate(case.operator, case.inputs, **asked).values())


def _entries(
    plans: list[CasePlan], origin: tuple[int, Path], findings: Findings
) -> Iterator[Entry]:
    """Yield the entries of all plans; ids that are too long or not unique are findings."""
    known: dict[str, Place] = {}
    for plan in plans:
        place = plan.template.place
        for row in plan.rows:
            entry = entry_of(plan, row, origin, findings)
            if len(entry.id) > LONGEST_ID:
                findings.add(
                    place,
                    f"an id of {len(entry.id)} characters, at most {LONGEST_ID} fit: {entry.id}",
                )
            if entry.id in known:
                findings.add(
                    place, f"a second case is called {entry.id}, as on line {known[entry.id].line}"
                )
            known[entry.id] = place
            if len(known) > MOST_CASES:
                findings.add(place, f"the suite has more than {MOST_CASES:,} cases from here on")
                return
            yield entry


def _notes(keys: SuiteKeys, plans: list[CasePlan], entries: tuple[Entry, ...]) -> dict[str, str]:
    """Return the notes; flags without a note or an axis and notes without a flag are findings."""
    notes = keys.mapping("notes", "flag")
    used = {flag for entry in entries for flag in entry.flags}
    written = [
        flag
        for plan in plans
        for flags in (plan.flags, *plan.axis_flags.values())
        for flag in flags
    ]
    for plan in plans:
        axes = [axis for factor in plan.template.factors for axis in factor.axes]
        labels = [level.label for axis in axes for level in axis.levels if level.label]
        for label in plan.axis_flags:
            if label not in labels:
                known = labels or ["none, since the case has no axis"]
                keys.findings.add(label.place, unknown("label", label, dict.fromkeys(known)))
    for flag in written:
        if flag not in notes:
            keys.findings.add(
                flag.place, f"flag '{flag:.40}' has no note{did_you_mean(flag, notes)}"
            )
    for flag, node in notes.items():
        if not isinstance(node.value, str) or not node.value:
            keys.find(node, f"the note of '{flag}' must be text, got {shown(node)}")
        if entries and flag not in used:
            keys.findings.add(flag.place, f"no case has the flag '{flag:.40}'")
    return {str(flag): str(node.value) for flag, node in notes.items()}
