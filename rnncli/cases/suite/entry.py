"""Entries of a suite: cases known by their labels, read on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rnncli.cases.config.config import read_case
from rnncli.cases.config.keys import DEFAULT_DTYPE
from rnncli.cases.selection import is_called
from rnncli.cases.suite.breakage import read_breakage
from rnncli.cases.suite.case_plan import DEFAULT_WEIGHTS
from rnncli.cases.suite.expansion import has_not
from rnncli.cases.suite.template import Setting, assemble
from rnncli.cases.yaml_reader import YamlNode
from rnncli.errors import ConfigError, InvalidOperator
from rnncli.operators import problems

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    from rnncli.cases.case import Case
    from rnncli.cases.suite.breakage import Breakage
    from rnncli.cases.suite.case_plan import CasePlan
    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.template import Template
    from rnncli.cases.yaml_reader import Findings
    from rnncli.errors import Place
    from rnncli.operators import Operator

LONGEST_ID = 120


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One case of a suite, known by its labels and read on demand.

    Attributes:
        id: ``lstm_14_peepholes_reverse_float16``; a part of every input's seed.
        operator: the row.
        dtype: the dtype of its floating-point tensors, by name.
        flags: the bugs it can find, keys of the suite's notes.
        weights: the location of W, R, B and P in a model, a key of `WEIGHTS`.
        golden: the origin of expected values, a key of `GOLDENS`.
        profile: the profile of its tolerances.
        breakage: the change that makes a must-reject case invalid, or None.
        calls: the number of data sets; 1 for a must-reject case.
        horizon: the number of steps for which an input must be visible, `ALL`, or None.
        empty_names: whether the node writes "" for omitted inputs at the end.
        steps: whether the signals of every step are stored.
    """

    id: str
    operator: Operator
    dtype: str
    flags: tuple[str, ...]
    weights: str
    golden: str
    profile: str
    breakage: Breakage | None
    calls: int
    horizon: int | str | None
    empty_names: bool
    _template: Template = field(repr=False)
    _row: Row = field(repr=False)
    _origin: tuple[int, Path] = field(repr=False)  # seed and folder of the suite
    steps: bool = False

    def is_called(self, word: str) -> bool:
        """Return whether a lower-case word is the case's id, a part of it, or a flag."""
        return is_called(word, self.id, self.flags)

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

    def case(self) -> Case:
        """Read the case; for a must-reject case, the valid one.

        Raises:
            ConfigError: it is wrong; every finding has a place.
        """
        template = self._template
        settings = template.settings(self._row)
        for path in [path for path, setting in settings.items() if setting.node.value is None]:
            if has_not(self.operator, path):  # absent names need not exist
                del settings[path]
        op = settings["op",]
        named = YamlNode(self.operator.name, op.node.place)
        for name in ("opset", "weights", "breaks"):
            settings.pop((name,), None)
        settings["op",] = Setting(op.key, named)
        seed, folder = self._origin
        root = assemble(settings, template.place)
        case = read_case(root, self.id, folder, seed=seed, key=self.id)
        Y = next((row.name for row in self.operator.outputs if row.role == "Y"), "Y")
        if self.horizon and Y not in case.outputs:
            sentence = f"a case that claims a horizon must ask for {Y}, which shows every step"
            raise ConfigError([(template.place, sentence)])
        return case

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
    more = [flag for label in labels for flag in plan.axis_flags.get(label, ())]
    breakage = _breakage(template, row, operator, findings)
    if breakage:
        _refuse_claims(plan, findings)
    return Entry(
        id=_id(operator, template, row),
        operator=operator,
        dtype=str(template.plain(("dtype",), row) or DEFAULT_DTYPE),
        flags=tuple(dict.fromkeys(map(str, (*plan.flags, *more)))),
        weights=str(template.plain(("weights",), row) or DEFAULT_WEIGHTS),
        golden=plan.golden,
        profile=plan.profile,
        breakage=breakage,
        calls=plan.calls,
        horizon=plan.horizon,
        empty_names=plan.empty_names,
        _template=template,
        _row=row,
        _origin=origin,
    )


def _refuse_claims(plan: CasePlan, findings: Findings) -> None:
    """Find keys about results in a must-reject case, which has none."""
    claims = {"calls": plan.calls > 1, "horizon": plan.horizon is not None}
    for name, is_made in claims.items():
        if is_made:
            sentence = f"a case that must be refused has no results that '{name}' could be about"
            findings.add(plan.template.place, sentence)


def _id(operator: Operator, template: Template, row: Row) -> str:
    """Return the id: operator, name and labels; a name equal to the operator's is not repeated."""
    name = [template.name] if template.name != operator.type.lower() else []
    return "_".join([operator.slug, *name, *template.words(row)])


def _breakage(
    template: Template, row: Row, operator: Operator, findings: Findings
) -> Breakage | None:
    setting = template.setting(("breaks",), row)
    if setting is None or setting.node.value is None:
        return None
    present = [
        tensor.name
        for tensor in operator.inputs
        if not tensor.optional or template.plain(("inputs", tensor.name), row) is not None
    ]
    return read_breakage(setting.node, operator, present, findings)
