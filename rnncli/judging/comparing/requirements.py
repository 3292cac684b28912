"""`--require opset<=14,dtype=float32`: what an implementation supports; other cases are skipped.

Terms are separated by commas; a case must meet all of them. A term is a field of `FIELDS`, an
operator, and values separated by `|`:

    opset<=14  largest_size<64      of numbers: = != < <= > >=
    dtype=float32|float16           of one word: = one of these; != none of these
    activations=Tanh|Sigmoid        of several words: = every one is among these
    inputs!=P  attributes!=clip     of several words: != none is among these
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import OPERATORS
from rnncli.operators.node import DIRECTIONS
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.packs.record import CaseRecord

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
# Kind of a field -> its type in a record.
KINDS: Mapping[str, type[Any]] = {"number": int, "word": str, "words": list}
# Possessive, so that a long text of blanks takes no longer than others.
_TERM = re.compile(r"(?P<field>[^\s<>=!]*+)\s*+(?P<sign>[<>]=?|!=|==?)\s*+(?P<values>.*+)")


class RequirementField(NamedTuple):
    """A field of a case that a term can test."""

    summary: str  # the field in words
    kind: str  # number, word, or words
    values: tuple[str, ...] = ()  # all possible values; empty if any may be written
    # the entry of a case's record that has the field; "" for the record itself
    section: str = "requirements"


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


_ROWS = OPERATORS.values()
_SIZES = {
    name: RequirementField(f"{name} of the case", "number", section="sizes")
    for name in ("seq_length", "batch_size", "input_size", "hidden_size")
}
FIELDS: Mapping[str, RequirementField] = {
    "operator": RequirementField("operator and version", "word", tuple(OPERATORS), section=""),
    "opset": RequirementField("version of the operator set", "number"),
    "domain": RequirementField("domain of the node; empty for ONNX's own", "word", section=""),
    "dtype": RequirementField(
        "element type", "word", _unique(d for row in _ROWS for d in row.dtypes)
    ),
    "direction": RequirementField("direction of the node", "word", tuple(DIRECTIONS)),
    "layout": RequirementField("0, or 1 for batch first", "number"),
    "weights": RequirementField("where weights are", "word", ("inputs", "initializers")),
    "attributes": RequirementField(
        "attributes that are not at their default",
        "words",
        _unique(name for row in _ROWS for name in row.attributes),
    ),
    "activations": RequirementField("activations that are used", "words", tuple(ACTIVATIONS)),
    "inputs": RequirementField(
        "optional inputs that are present",
        "words",
        _unique(t.name for row in _ROWS for t in row.inputs if t.optional),
    ),
    "outputs": RequirementField(
        "requested outputs",
        "words",
        _unique(t.name for row in _ROWS for t in row.outputs),
        section="",
    ),
    "largest_size": RequirementField("the largest of the four sizes", "number"),
    **_SIZES,
    "expect": RequirementField("what must happen", "word", ("result", "rejection"), section=""),
    "flags": RequirementField("why the case exists", "words", section=""),
    "tags": RequirementField("reading:NAME, non-portable", "words", section=""),
}

# What an implementation may lack as a whole, what says most of it first.
CAPABILITIES = (
    *("layout", "dtype", "opset", "operator", "direction", "weights"),
    *("attributes", "activations", "inputs", "outputs"),
)


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement."""

    field: str  # the name of the field
    sign: str  # the comparison: = != < <= > >=
    values: tuple[str, ...]  # the values to compare with; a single number for the last four

    def reason(self, record: CaseRecord) -> str:
        """Return why a case does not meet the term, or ""."""
        row, has, wanted = FIELDS[self.field], _entry(record, self.field), self.sign == "="
        if not isinstance(has, KINDS[row.kind]):
            return f"requires {self}, but the case has no {self.field}"
        if row.kind == "words":
            failing = [each for each in has if (each in self.values) != wanted]
            return f"requires {self}, has {', '.join(failing)}" if failing else ""
        if self.sign in COMPARISONS:
            is_met = COMPARISONS[self.sign](has, int(self.values[0]))
        else:
            is_met = (str(has) in self.values) == wanted
        return "" if is_met else f"requires {self}, has {_shown(has)}"

    @property
    def expression(self) -> str:
        """The term as the command line takes it."""
        return f"{self.field}{self.sign}{'|'.join(self.values)}"

    def __str__(self) -> str:
        """Return the term in words."""
        row, listed = FIELDS[self.field], " or ".join(map(_shown, self.values))
        if self.sign in COMPARISONS:
            return f"{self.field} {self.sign} {listed}"
        if row.kind == "words":
            return f"{self.field} {'only' if self.sign == '=' else 'without'} {listed}"
        return f"{self.field} {'' if self.sign == '=' else 'other than '}{listed}"


def _entry(record: CaseRecord, field: str) -> Any:
    """Return the value of a field in a case's record, or None."""
    section = FIELDS[field].section
    if section == "sizes":
        return record.sizes.get(field)
    return getattr(record.requirements if section else record, field)


def _shown(value: Any) -> str:
    return "''" if value == "" else str(value)


@dataclass(frozen=True, slots=True)
class Requirements:
    """The terms that a case must meet to be run."""

    terms: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, expressions: Iterable[str]) -> Requirements:
        """Read expressions as the command line gives them.

        Raises:
            InvalidRequest: an expression is not a requirement.
        """
        return cls(
            tuple(
                _term(text, expression)
                for expression in expressions
                for text in expression.split(",")
            )
        )

    @property
    def expression(self) -> str:
        """The terms as the command line takes them; "" for none."""
        return ",".join(term.expression for term in self.terms)

    def reason(self, record: CaseRecord) -> str:
        """Return which terms a case does not meet, or ""."""
        return "; ".join(filter(None, (term.reason(record) for term in self.terms)))


def leaving_out(
    refused: Sequence[CaseRecord],
    kept: Sequence[CaseRecord],
    *,
    entirely: bool = False,
) -> Requirements:
    """Return requirements that leave out many refused cases, and none that is to be kept.

    Args:
        refused: the cases to leave out.
        kept: the cases to keep.
        entirely: whether all are left out: single ones and by flags, too, and if nothing else
            tells them apart, with as few of those to be kept as possible.

    Returns:
        One term a field; each value leaves out the most of what those before it have left, and
        not just one case.
    """
    fields = (*CAPABILITIES, "flags") if entirely else CAPABILITIES
    left, held = ([{*_needs(each, fields)} for each in cases] for cases in (refused, kept))
    found: dict[str, list[str]] = {}
    order = {field: k for k, field in enumerate(fields)}

    def preference(need: tuple[str, str]) -> Any:
        field, value = need
        price = Fraction(costs[need], counts[need])
        return price, field == "flags", -counts[need], order[field], value

    while left:
        counts, costs = (Counter(need for needs in some for need in needs) for some in (left, held))
        usable = [need for need in counts if entirely or (counts[need] > 1 and not costs[need])]
        if not usable:
            break
        best = min(usable, key=preference)
        found.setdefault(best[0], []).append(best[1])
        left, held = ([needs for needs in some if best not in needs] for some in (left, held))
    return Requirements(tuple(Term(field, "!=", tuple(values)) for field, values in found.items()))


def _needs(record: CaseRecord, fields: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield field and value of all that a case has in some fields."""
    for field in fields:
        has = _entry(record, field)
        if has is not None:
            yield from ((field, str(value)) for value in (has if isinstance(has, list) else [has]))


def _term(text: str, expression: str) -> Term:
    def invalid(problem: str) -> InvalidRequest:
        return InvalidRequest(f"cannot require '{expression}': {problem}")

    match = _TERM.fullmatch(text.strip())
    if match is None:
        raise invalid(f"'{text.strip()}' is not FIELD=VALUE, such as opset<=14")
    field, sign = match["field"], match["sign"].replace("==", "=")
    if field not in FIELDS:
        hint = did_you_mean(field, FIELDS) or f"; there are {', '.join(FIELDS)}"
        raise invalid(f"unknown field '{field}'{hint}")
    row, is_number = FIELDS[field], FIELDS[field].kind == "number"
    values = tuple(value.strip() for value in match["values"].split("|"))
    if sign in COMPARISONS and not (is_number and len(values) == 1):
        what = "is compared with one number" if is_number else "is not a number"
        raise invalid(f"'{field}' {what}; write {field}={'|'.join(values)}")
    for value in values:
        if is_number and not re.fullmatch(r"[0-9]{1,18}", value):
            raise invalid(f"'{field}' is compared with a whole number, got '{value}'")
        if row.values and value not in row.values:
            hint = did_you_mean(value, row.values) or f"; there are {', '.join(row.values)}"
            raise invalid(f"'{field}' is never '{value}'{hint}")
    if is_number:
        values = tuple(str(int(value)) for value in values)
    return Term(field, sign, values)
