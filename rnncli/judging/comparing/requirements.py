"""`--require opset<=14,dtype=float32`: what an implementation supports; other cases are skipped.

Terms are separated by commas; every call of a case must meet all of them. A term is a field of
`FIELDS`, a sign, and values separated by `|`:

    opset<=14  clip=never|2.5       numbers: = != < <= > >=; `never` if there is none
    hidden_size%16=0                what is left of a number
    input_size+hidden_size<=512     a sum
    dtype=float32|float16           a word: = one of these; != none of these
    activations=Tanh|Sigmoid        words: = every one is among these
    inputs!=P  attributes!=clip     words: != none is among these
    inputs>=B|initial_h             words: >= all of these are there
    outputs==Y|Y+Y_h                words: == exactly one of these sets; `none` is the empty one
    activations[RNN]=Tanh|Relu      a term for the cases of one operator, all versions
    X.type=uint8  W.zero_point=0    of an integer tensor of a quantised unit
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from rnncli.cases.case import SIZES
from rnncli.cases.config.keys import CHOICES
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import OPERATORS
from rnncli.operators.attributes import float32
from rnncli.operators.checking import INPUT_TYPES
from rnncli.operators.node import DIRECTIONS
from rnncli.operators.operator import HEADS, SYMBOLS
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.packs.record import CaseRecord

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
NEVER, NONE = "never", "none"
ELSEWHERE = "elsewhere"
NUMERIC = {"number", "decimal"}
# What manifests say of linear recurrences that are written by choices of a config.
FORMS = ("states_dtype", "decay_form", "beta_form", "key_form")
SHARED = ("group_size", "share_size")
_NAME = r"[\w.]*+"
# Possessive, so that a long text of blanks takes no longer than others.
_TERM = re.compile(
    rf"(?P<fields>{_NAME}(?:\s*+\+\s*+{_NAME})*+)\s*+(?:%\s*+(?P<modulus>[0-9]{{1,18}})\s*+)?"
    rf"(?:\[\s*+(?P<only>{_NAME})\s*+\]\s*+)?(?P<sign>[<>]=?|!=|==?)\s*+(?P<values>.*+)"
)


class RequirementField(NamedTuple):
    """A field of a case that a term can test."""

    summary: str  # the field in words
    kind: str  # number, decimal, word, or words
    # a case and one of its calls -> a number, a word or words; NEVER for an attribute that is not
    # given and has no default, ELSEWHERE for one that others have, so that all values are met;
    # None if the case does not say
    of: Callable[[CaseRecord, CaseRecord], Any]
    values: tuple[str, ...] = ()  # all possible values; empty if any may be written


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _needs_of(name: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    return lambda case, _: getattr(case.requirements, name)


def _entry_of(name: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    return lambda case, _: getattr(case, name)


def _size_of(name: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    def of(case: CaseRecord, call: CaseRecord) -> Any:
        row, symbol = OPERATORS.get(case.operator), HEADS[0] if name in SHARED else name
        other = ELSEWHERE if row and not row.has(symbol) else None
        return {**call.sizes, **shared_heads(call.sizes)}.get(name, other)

    return of


def shared_heads(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of `SHARED`, which follow from numbers of heads; none without heads."""
    if not {*HEADS} <= sizes.keys():
        return {}
    queries, states = (max(sizes[name], 1) for name in HEADS)
    return dict(zip(SHARED, (max(queries // states, 1), max(states // queries, 1)), strict=True))


def _form_of(key: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    def of(case: CaseRecord, _: CaseRecord) -> Any:
        row, forms = OPERATORS.get(case.operator), case.requirements.forms
        if row and not CHOICES[key].allowed(row):
            return ELSEWHERE
        return forms.get(key, ELSEWHERE) if forms is not UNSET else None  # an earlier version's

    return of


def _mixes_dtypes(case: CaseRecord, _: CaseRecord) -> Any:
    states = FIELDS["states_dtype"].of(case, case)
    return states if states in (None, ELSEWHERE) else int(states != case.requirements.dtype)


def _attribute_of(name: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    def of(case: CaseRecord, _: CaseRecord) -> Any:
        if case.operator not in OPERATORS:
            return None
        row = OPERATORS[case.operator].attribute_for(name)  # WebNN's has another name
        value = case.attributes.get(row.name, row.default) if row else ELSEWHERE
        return NEVER if value is None else value

    return of


def _type_of(name: str) -> str:
    return name.partition("-")[0]


_ROWS = OPERATORS.values()
# The attributes that are one word or number; sizes, `layout` and `direction` are fields already.
WORDS = {
    row.name: row.accepted
    for each in _ROWS
    for row in each.attributes.values()
    if row.type == "string" and row.choices and row.name not in {"layout", "direction"}
}
_NUMBERS = {
    row.name: "decimal" if row.type == "float" else "number"
    for each in _ROWS
    for row in each.attributes.values()
    if row.type in {"int", "float", "bool"} and row.name not in {*SIZES, "layout"}
    if not (row.role or row.unsupported)
}


def _of_unit(tensor: str, entry: str) -> Callable[[CaseRecord, CaseRecord], Any]:
    def of(case: CaseRecord, _: CaseRecord) -> Any:
        if dress := (case.quantise or {}).get(tensor):
            return getattr(dress, entry)
        is_there = tensor in case.inputs or tensor in case.outputs
        return ELSEWHERE if case.quantise and not is_there else None

    return of


FIELDS: Mapping[str, RequirementField] = {
    "operator": RequirementField(
        "operator and version", "word", _entry_of("operator"), tuple(OPERATORS)
    ),
    "op": RequirementField(
        "operator, whatever its version",
        "word",
        lambda case, _: _type_of(case.operator),
        _unique(map(_type_of, OPERATORS)),
    ),
    "version": RequirementField(
        "version of the operator",
        "number",
        lambda case, _: int(case.operator.partition("-")[2] or 1),
    ),
    "opset": RequirementField(
        "version of the operator set that the model needs", "number", _needs_of("opset")
    ),
    "domain": RequirementField(
        "domain of the node; empty for ONNX's own", "word", _entry_of("domain")
    ),
    "dtype": RequirementField(
        "element type", "word", _needs_of("dtype"), _unique(d for row in _ROWS for d in row.dtypes)
    ),
    "direction": RequirementField(
        "direction of the node", "word", _needs_of("direction"), tuple(DIRECTIONS)
    ),
    "layout": RequirementField("0, or 1 for batch first", "number", _needs_of("layout")),
    "weights": RequirementField(
        "where weights are", "word", _needs_of("weights"), ("inputs", "initializers")
    ),
    "attributes": RequirementField(
        "attributes that are not at their default",
        "words",
        _needs_of("attributes"),
        _unique(name for row in _ROWS for name in row.attributes),
    ),
    "activations": RequirementField(
        "activations that are used", "words", _needs_of("activations"), tuple(ACTIVATIONS)
    ),
    "inputs": RequirementField(
        "optional inputs that are present",
        "words",
        _needs_of("inputs"),
        _unique(t.name for row in _ROWS for t in row.inputs if t.optional),
    ),
    "outputs": RequirementField(
        "requested outputs",
        "words",
        _entry_of("outputs"),
        _unique(t.name for row in _ROWS for t in row.outputs),
    ),
    "largest_size": RequirementField(
        "the largest of the sizes",
        "number",
        lambda case, call: max(call.sizes.values(), default=case.requirements.largest_size),
    ),
    **{name: RequirementField(f"{name} of each call", "number", _size_of(name)) for name in SIZES},
    "group_size": RequirementField(
        "heads of queries that share a head of keys and values", "number", _size_of("group_size")
    ),
    "share_size": RequirementField(
        "heads of keys and values that share a head of queries", "number", _size_of("share_size")
    ),
    **{
        key: RequirementField(
            CHOICES[key].summary,
            "word",
            _form_of(key),
            _unique(v for row in _ROWS for v in CHOICES[key].allowed(row)),
        )
        for key in FORMS
    },
    "mixed_dtypes": RequirementField(
        "1 if states have another element type than the other tensors, or 0",
        "number",
        _mixes_dtypes,
    ),
    "open_sizes": RequirementField(
        "1 if the model names steps and batch instead of giving their sizes, or 0",
        "number",
        lambda case, _: int(case.open_sizes is True),
    ),
    "calls": RequirementField(
        "number of calls with data of their own", "number", lambda case, _: len(case.calls)
    ),
    **{
        name: RequirementField(f"the attribute {name}", kind, _attribute_of(name))
        for name, kind in _NUMBERS.items()
    },
    **{
        name: RequirementField(f"the attribute {name}", "word", _attribute_of(name), values)
        for name, values in WORDS.items()
    },
    "gate_order": RequirementField(
        "WebNN's layout: the order of the gates",
        "word",
        lambda case, call: (
            _attribute_of("gates")(case, call) if "webnn" in case.operator else ELSEWHERE
        ),
        _unique(
            value
            for row in _ROWS
            for each in row.attributes.values()
            if each.name == "layout" and each.type == "string"
            for value in each.accepted
        ),
    ),
    "expect": RequirementField(
        "what must happen", "word", _entry_of("expect"), ("result", "rejection")
    ),
    "flags": RequirementField("why the case exists", "words", _entry_of("flags")),
    "tags": RequirementField("reading:NAME, non-portable", "words", _entry_of("tags")),
    **{
        f"{name}.{entry}": RequirementField(
            f"{summary} {name} in a quantised unit", kind, _of_unit(name, entry), values
        )
        for name in ("X", "W", "R", "B", "initial_h", "initial_c", "Y", "Y_h", "Y_c")
        for entry, summary, kind, values in (
            ("type", "element type of", "word", INPUT_TYPES),
            ("scale", "scale of", "decimal", ()),
            ("zero_point", "zero point of", "decimal", ()),
        )
    },
}

# What an implementation may lack as a whole, what says most of it first.
CAPABILITIES = (
    *("layout", "dtype", "opset", "operator", "direction", "weights"),
    *("attributes", "activations", "inputs", "outputs"),
    *("update_rule", "activation", *FORMS, "mixed_dtypes", *SHARED),  # of linear recurrences
)


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement."""

    field: str  # the name of the field, or of several numbers, joined by +
    sign: str  # the comparison: = != == < <= > >=
    values: tuple[str, ...]  # the values to compare with; a single number for the last four
    modulus: int = 0  # what the number is divided by, of which the rest is compared; 0 for itself
    only: str = ""  # the operator whose cases alone must meet it; "" for all

    def reason(self, record: CaseRecord) -> str:
        """Return why a case does not meet the term, or ""; the first of its calls that does not."""
        if self.only and FIELDS["op"].of(record, record) != self.only:
            return ""
        for k, call in enumerate(record.calls):
            if problem := self.problem([FIELDS[name].of(record, call) for name in self.fields]):
                return f"{problem} in call {k + 1}" if k else problem
        return ""

    @property
    def fields(self) -> list[str]:
        """The fields whose values it tests."""
        return self.field.split("+")

    def problem(self, found: Sequence[Any]) -> str:
        """Return why values of its fields do not meet the term, or ""."""
        names = self.fields
        if ELSEWHERE in found:
            return ""
        if None in found:
            return f"requires {self}, but the case has no {names[found.index(None)]}"
        has = found[0]
        if FIELDS[names[0]].kind == "words":
            failing = [each for each in has if (each in self.values) != (self.sign == "=")]
            if self.sign == ">=":
                failing = [each for each in self.values if each not in has]
                return f"requires {self}, lacks {', '.join(failing)}" if failing else ""
            if self.sign == "==":
                sets = [set() if each == NONE else {*each.split("+")} for each in self.values]
                is_one = {*has} in sets
                return "" if is_one else f"requires {self}, has {', '.join(has) or NONE}"
            return f"requires {self}, has {', '.join(failing)}" if failing else ""
        if len(names) > 1 and NEVER not in found:
            has = sum(found)
        rest = has % self.modulus if self.modulus and has != NEVER else has
        # Of one number for each channel, all must meet it.
        is_met = all(map(self._is_met, rest if isinstance(rest, list) else [rest]))
        return "" if is_met else f"requires {self}, has {_shown(has)}"

    def _is_met(self, has: Any) -> bool:
        if self.sign in COMPARISONS:
            return has == NEVER or COMPARISONS[self.sign](*_comparable(has, self.values[0]))
        is_number = FIELDS[self.fields[0]].kind in NUMERIC
        equal = (
            has == wanted if NEVER in (has, wanted) else operator.eq(*_comparable(has, wanted))
            for wanted in self.values
        )
        return (any(equal) if is_number else str(has) in self.values) == (self.sign != "!=")

    @property
    def expression(self) -> str:
        """The term as the command line takes it."""
        return f"{self._left}{self.sign}{'|'.join(self.values)}"

    @property
    def _left(self) -> str:
        rest = f"%{self.modulus}" if self.modulus else ""
        return f"{self.field}{rest}" + (f"[{self.only}]" if self.only else "")

    def __str__(self) -> str:
        """Return the term in words."""
        kind = FIELDS[self.fields[0]].kind
        name, values = self._left, [*map(_shown, self.values)]
        if self.modulus and self.sign not in COMPARISONS:
            name, of = name.replace(f"%{self.modulus}", ""), f"a multiple of {self.modulus}"
            values = [of if value == "0" else f"{value} more than {of}" for value in values]
        listed = " or ".join(values)
        if kind == "words":
            signs = {"=": "only", "!=": "without", "==": "exactly"}
            word = signs.get(self.sign)
            return f"{name} {word} {listed}" if word else f"{name} with {' and '.join(self.values)}"
        if self.sign in COMPARISONS:
            return f"{name} {self.sign} {listed}"
        return f"{name} {'other than ' if self.sign == '!=' else ''}{listed}"


def _comparable(has: Any, wanted: str) -> tuple[Any, Any]:
    """Return two numbers as they compare: decimals as the float32 values that nodes hold."""
    if isinstance(has, float):
        return float32(has), float32(float(wanted))
    return Fraction(has), Fraction(wanted)


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

    def admits(self, family: str = "", /, **values: Any) -> bool:
        """Whether the terms about nothing but these fields are met, for an operator's cases."""
        return not any(
            term.problem([values[name] for name in term.fields])
            for term in self.terms
            if term.only in ("", family) and values.keys() >= {*term.fields}
        )

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
        has = FIELDS[field].of(record, record)
        if has not in (None, ELSEWHERE):
            yield from ((field, str(value)) for value in (has if isinstance(has, list) else [has]))


def _term(text: str, expression: str) -> Term:
    def invalid(problem: str) -> InvalidRequest:
        return InvalidRequest(f"cannot require '{expression}': {problem}")

    match = _TERM.fullmatch(text.strip())
    if match is None:
        raise invalid(f"'{text.strip()}' is not FIELD=VALUE, such as opset<=14 or hidden_size%16=0")
    names = [name.strip() for name in match["fields"].split("+")]
    listed = [each for each in FIELDS if "." not in each or each.startswith("X.")]
    for name in names:
        if name not in FIELDS:
            letter = f"; {name} is written {SYMBOLS[name]}" if SYMBOLS.get(name) in FIELDS else ""
            hint = letter or did_you_mean(name, FIELDS) or f"; there are {', '.join(listed)}"
            raise invalid(f"unknown field '{name}'{hint}")
    field, row, sign = "+".join(names), FIELDS[names[0]], match["sign"]
    only, modulus = match["only"] or "", int(match["modulus"] or 0)
    is_number = row.kind in NUMERIC
    operators = FIELDS["op"].values
    if only and only not in operators:
        hint = did_you_mean(only, operators) or f"; there are {', '.join(operators)}"
        raise invalid(f"there is no operator '{only}'{hint}")
    if len(names) > 1 or match["modulus"]:
        for name in names:
            if FIELDS[name].kind not in NUMERIC:
                raise invalid(f"'{name}' is not a number, of which there is a sum or a rest")
    if match["modulus"] and not modulus:
        raise invalid("nothing is divided by 0")
    values = tuple(value.strip() for value in match["values"].split("|"))
    if sign == "==" and row.kind != "words":
        sign = "="
    has_all = row.kind == "words" and sign == ">="
    if sign in COMPARISONS and not has_all and not (is_number and len(values) == 1):
        what = "is compared with one number" if is_number else "is not a number"
        raise invalid(f"'{field}' {what}; write {field}={'|'.join(values)}")
    for value in values:
        if is_number:
            digits = (
                r"[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?"
                if row.kind == "decimal"
                else "[0-9]{1,18}"
            )
            wanted = "-?" * (row.kind == "decimal" or names[0] in _NUMBERS) + digits
            may_lack = sign not in COMPARISONS and names[0] in _NUMBERS
            if not (re.fullmatch(wanted, value) or (may_lack and value == NEVER)):
                what = "number" if row.kind == "decimal" else "whole number"
                turned = f"; write {field}{value[0]}={value[1:]}" if value[:1] in ("<", ">") else ""
                raise invalid(f"'{field}' is compared with a {what}, got '{value}'{turned}")
            continue
        for each in value.split("+") if sign == "==" else [value]:
            if row.values and each not in row.values and not (sign == "==" and each == NONE):
                hint = did_you_mean(each, row.values) or f"; there are {', '.join(row.values)}"
                if field == "attributes" and (size := did_you_mean(each, SIZES)):
                    hint = f"{size} It is a field of its own, such as hidden_size<=64"
                name = each.partition("-")[0]
                if versions := [known for known in row.values if known.startswith(f"{name}-")]:
                    hint = f"; there are {', '.join(versions)}, and op={name} is all of them"
                if re.search(r"\s\w+[=!<>%]", each):
                    hint = "; terms are joined by commas, or given one an option"
                raise invalid(f"'{field}' is never '{each}'{hint}")
    if is_number:
        values = tuple(v if v == NEVER or row.kind == "decimal" else str(int(v)) for v in values)
    return Term(field, sign, values, modulus, only)
