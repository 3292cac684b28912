"""Questions to an implementation, from whose refusals a device is written.

For each operator, a case is sought that the implementation takes. Then each field of a requirement
has other values in that case, one field at a time, and what is refused becomes the simplest
requirement that fits all answers. Only a refusal is a limit: outputs are not compared with
anything, and a crash or a timeout is told, but limits nothing.
"""

from __future__ import annotations

import itertools
import math
import random
import textwrap
import warnings
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.case import SIZES, least_size, size_names
from rnncli.cases.fills import default_entry
from rnncli.cases.suite.suite import load_suite, parse_suite
from rnncli.cases.suite.template import versions_of
from rnncli.cases.yaml_reader import as_yaml
from rnncli.errors import NothingSelected, RnncliError, RnncliWarning
from rnncli.generating.moving import PARAMETERS, Unmoved, field_of, moved
from rnncli.generating.tailoring import record_of
from rnncli.judging.claim import entries_written
from rnncli.judging.comparing.requirements import (
    ELSEWHERE,
    FIELDS,
    FORMS,
    NEVER,
    SHARED,
    WORDS,
    Requirements,
)
from rnncli.judging.device import Device, admitted_sizes, parse_device, subsets
from rnncli.judging.fitting import fits, shown_value, simplest, term_of
from rnncli.judging.report import JudgedSubject
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete
from rnncli.operators.checking import INPUT_TYPES
from rnncli.operators.operator import HEADS, LENGTHS
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Answers, Attempt, Status, Vector, held_inputs
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.talk.words import counted, listed, printable
from rnncli.verifying.case_judging import session_calls_of
from rnncli.verifying.node_call import NodeCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.suite import Entry
    from rnncli.generating.moving import Plain
    from rnncli.operators import Operator
    from rnncli.packs.record import CaseRecord
    from rnncli.subjects.implementation import Implementation, Subject

# Sizes of the case that is varied, of which the first that is taken counts: multiples of much.
STARTS = (
    {"seq_length": 4, "batch_size": 1, "input_size": 16, "hidden_size": 16},
    {"seq_length": 1, "batch_size": 1, "input_size": 1, "hidden_size": 1},
    {"seq_length": 4, "batch_size": 4, "input_size": 64, "hidden_size": 64},
    {"seq_length": 8, "batch_size": 1, "input_size": 240, "hidden_size": 240},
    {"seq_length": 16, "batch_size": 16, "input_size": 128, "hidden_size": 128},
)
LINEAR_STARTS = [
    dict(zip((*SIZES[:2], *SIZES[SIZES.index(HEADS[0]) :]), sizes, strict=True))
    for sizes in (
        # steps, sequences, heads of queries and of keys, their sizes, channels, taps, dilation,
        # tokens
        (4, 1, 2, 2, 16, 16, 16, 4, 1, 4),
        (1, 1, 1, 1, 1, 1, 1, 3, 1, 1),
        (16, 1, 4, 4, 64, 64, 64, 4, 1, 16),
        (64, 1, 4, 4, 128, 128, 256, 4, 1, 64),
        (1, 4, 16, 16, 128, 128, 256, 3, 1, 4),
    )
]
MOST_STARTS = 150
# Sizes that find most limits, and what is asked as well if one of them is refused.
FEW_SIZES = (1, 2, 3, 5, 8, 17, 31, 48, 64, 1024)
MORE_SIZES = (
    *(4, 6, 7, 9, 10, 12, 15, 16, 20, 24, 32, 33, 40, 63, 65, 80, 96, 100, 127, 128, 129),
    *(160, 192, 240, 255, 256, 257, 384, 480, 512),
)
# How many questions there are about an operator, as a rule.
USUAL = 120
A_NUMBER = 2.5  # of an attribute that may be any
# Scales that may be taken where others are not, and one between them.
POWERS = [*(2.0**-k for k in range(6, 18)), 0.0003]
GROUPS = (1, 2, 3, 4, 8)  # of heads that share another
# How many cases have several values at once of all that are taken alone.
COMBINATIONS, MOST_TRIES = 24, 72
# How many of what is refused together is told.
MOST_TOGETHER = 4
# The largest size of one, unless the size has a limit.
LARGEST_USUAL = 65
# What a comment shows of refusals: values, and letters of a message.
MOST_VALUES, LONGEST_MESSAGE = 16, 120
WIDTH = 100


@dataclass(frozen=True, slots=True)
class FieldAnswers:
    """What an implementation answered to values of one field, in an operator's case."""

    taken: Sequence[Any]  # the values that it took: numbers, words, or lists of words
    refused: Sequence[tuple[Any, str]]  # those that it refused, each with its message
    broken: Sequence[tuple[Any, str]]  # those that made it crash, or take too long, each with how
    requirement: str  # the simplest requirement that fits; "" if nothing was refused


@dataclass(frozen=True, slots=True)
class OperatorAnswers:
    """What an implementation answered to the cases of one operator."""

    operator: str  # its name, whatever its version
    base: CaseRecord | None  # the case that was varied; None if none was taken
    message: str = ""  # of the first refusal, if none was taken
    fields: Mapping[str, FieldAnswers] = field(default_factory=dict)
    # settings that are taken alone and refused together, each with the message
    together: Sequence[tuple[str, str]] = ()
    combinations: int = 0  # the number of cases that had several settings at once

    @property
    def untold(self) -> Iterator[str]:
        """What no requirement says: what is refused only together, and what crashed."""
        for settings, message in self.together:
            yield f"taken alone, refused together: {settings}: {message}"
        for name, answers in self.fields.items():
            for value, message in answers.broken:
                yield f"{term_of(name, value)}: {message}, which limits nothing here"


@dataclass(frozen=True, slots=True)
class ProbedDevice:
    """A device, and the answers that it was written from."""

    device: Device
    answers: Sequence[OperatorAnswers]
    questions: int  # the number of cases that were asked
    refusals: int  # the number of them that were refused
    text: str  # the device as YAML, with what was refused in comments

    @property
    def sentences(self) -> Iterator[str]:
        """What was asked and refused, and what no requirement says, in a few lines."""
        yield (
            f"{counted(self.questions, 'question')}, {self.refusals} refused;"
            " outputs were not judged"
        )
        for each in self.answers:
            if not each.base:
                yield f"{each.operator}: refused: {each.message}"
            yield from (f"{each.operator}: {sentence}" for sentence in each.untold)


class InterruptedProbe(KeyboardInterrupt):
    """An interrupt of a probe, with the device that the answers before it tell."""

    def __init__(self, found: ProbedDevice, unasked: Sequence[str]) -> None:
        self.found = found
        super().__init__(f"not asked: {'; '.join(unasked)}")


def probed(
    operators: Iterable[str],
    subject: Implementation,
    known: Requirements,
    done: Callable[[str], None] = lambda _: None,
) -> ProbedDevice:
    """Ask an implementation what it takes.

    Args:
        operators: names without versions.
        subject: the implementation.
        known: what every case meets that is asked.
        done: called with each question in words.

    Raises:
        NothingSelected: it takes nothing that was asked.
        InterruptedProbe: an interrupt came after some answers.
    """
    unasked, answers = [*operators], list[OperatorAnswers]()
    with closing(subject.open()) as opened:
        name = JudgedSubject(subject.name, dict(opened.describe())).implementation
        inquiry = Inquiry(opened, known, done)
        try:
            while unasked and not inquiry.unasked:
                answers.append(inquiry.about(unasked[0]))
                unasked.pop(0)
        except KeyboardInterrupt:
            if not any(each.base for each in answers):
                raise
    unasked = [*inquiry.unasked, *unasked]
    if not any(each.base for each in answers):
        first = answers[0]
        raise NothingSelected(
            f"{name} takes none of {counted(len(inquiry.replies), 'case')}; {first.operator}:"
            f" {first.message}; a case that it takes is found near --require EXPR"
        )
    require, comments = _merged(answers, known)
    device = Device(name, require)
    questions = len(inquiry.replies)
    head = (
        f"Of {counted(questions, 'question')} {inquiry.refusals} were refused: one setting at a"
        f" time was changed in a case that is taken, sizes up to {max(FEW_SIZES)}. Outputs were not"
        " judged: a wrong one is not a limit."
    )
    if unasked:
        head += f" It was interrupted and did not ask about {'; '.join(unasked)}."
    lines = textwrap.wrap(head, WIDTH - 2)
    for each in answers:
        if each.base:  # the case that was varied, and what is refused together
            needs, sizes = each.base.requirements, each.base.sizes
            told = [each.base.operator, *(f"{name}={size}" for name, size in sizes.items())]
            told += [f"dtype={needs.dtype}", f"weights={needs.weights}", *needs.inputs]
            lines += [f"{each.operator}: {', '.join(told)}; then {each.combinations} combinations"]
            lines += [f"  {sentence}" for sentence in each.untold]
    text = "".join(f"# {line}\n" for line in lines) + entries_written(device, comments)
    assert parse_device(text, "device") == device
    found = ProbedDevice(device, answers, questions, inquiry.refusals, text)
    if unasked:
        raise InterruptedProbe(found, unasked)
    return found


@dataclass
class Inquiry:
    """Questions to one implementation, none of them twice."""

    subject: Subject
    known: Requirements
    done: Callable[[str], None]
    replies: dict[str, Attempt] = field(default_factory=dict)  # by the text of the case
    # which of each of the ways of `_starts` was taken of the last operator
    way: tuple[int, ...] = ()
    refusals: int = 0
    unasked: list[str] = field(default_factory=list)  # what an interrupt left of an operator

    def about(self, operator: str) -> OperatorAnswers:
        """Ask everything about one operator, all versions."""
        found, message = self._start(operator)
        if not found:
            return OperatorAnswers(operator, None, message)
        base, record = found
        asked, fields = _values(record, self.known), dict[str, FieldAnswers]()
        together, count = list[tuple[str, str]](), 0
        try:
            together, count = self._ask(base, record, asked, fields)
        except KeyboardInterrupt:
            if not fields:
                raise
            left = [name for name in asked if name not in fields] or ["several settings at once"]
            self.unasked = [f"{', '.join(left)} of {operator}"]
        return OperatorAnswers(operator, record, "", fields, together, count)

    def _ask(
        self,
        base: Plain,
        record: CaseRecord,
        asked: Mapping[str, Sequence[Any]],
        fields: dict[str, FieldAnswers],
    ) -> tuple[list[tuple[str, str]], int]:
        """Ask other values of each field and add the answers to `fields`; then several at once.

        Returns:
            What is refused together, each with the message, and the number of cases that had
            several settings at once.
        """
        for name, values in asked.items():
            beside = partial(_beside, base, record, fields, name)
            fields[name] = self._field(base, name, values, beside)
        # Queries that are refused only beside heads that are refused anyway have no limit.
        queries, heads = HEADS
        if queries in fields and (limit := fields[heads].requirement):
            needs, each = Requirements.parse([limit]), fields[queries]
            family = operator_named(base["op"]).family
            own = [
                (value, said)
                for value, said in each.refused
                if any(
                    needs.admits(family, **{heads: count})
                    for count in _other_heads(fields, queries, value)
                )
            ]
            refused, broken = ([value for value, _ in some] for some in (own, each.broken))
            requirement = simplest(queries, each.taken, refused, broken)
            fields[queries] = replace(each, refused=own, requirement=requirement)
        together: list[tuple[str, str]] = []
        for pair in itertools.combinations([name for name in SIZES if name in fields], 2):
            together += self._sum(base, pair, fields)
        others, count = self._combined(base, fields)
        return [*together, *others], count

    def reply_to(self, base: Plain, *terms: str) -> Attempt | None:
        """Return the reply to a case that meets other terms; None if there is no such case.

        Of several calls, it is the reply to the first that gives nothing.
        """
        needs = Requirements.parse([*terms, *(term.expression for term in self.known.terms)])
        # Sizes that are told need not be sought.
        told = {
            term.field: int(term.values[0])
            for term in needs.terms
            if term.field in base["sizes"]
            and (term.sign, len(term.values), term.modulus) == ("=", 1, 0)
        }
        self.done(f"{base['op']}: {terms[0] if terms else 'a case that is taken'}")
        try:
            near = {**base, "sizes": {**base["sizes"], **told}}
            case = _with_parameters(moved(near, needs))
        except Unmoved:
            return None
        text = repr(case)
        if text not in self.replies:
            entry = _entry(case)
            if not entry or needs.reason(record_of(entry)):
                return None
            attempts = session_calls_of(self.subject, _vector(entry)).attempts
            ended = (each for each in attempts if each.status is not Status.RAN)
            self.replies[text] = next(ended, attempts[0])
            self.refusals += self.replies[text].status is Status.REFUSED
        return self.replies[text]

    def _start(self, operator: str) -> tuple[tuple[Plain, CaseRecord] | None, str]:
        """Return a case that is taken, the plainest first, or the message of the first refusal."""
        messages = []
        # Only fields of units have a dot: X.type.
        is_unit = any("." in name for term in self.known.terms for name in term.fields)
        if any(row.cell.of_integers for row in versions_of(operator)):
            starts = _shipped(operator, "tflite")  # has scales
        else:
            starts = _shipped(operator, "units") if is_unit else _starts(operator, self.way)
        for way, case in itertools.islice(starts, MOST_STARTS):
            reply = self.reply_to(case)
            if reply and reply.status is Status.RAN:
                self.way = way
                near = moved(case, self.known)
                entry = _entry(near)
                assert entry
                return (near, record_of(entry)), ""
            messages += [_said(reply)] if reply else []
        return None, next(iter(messages), "no case meets what --require says")

    def _field(
        self,
        base: Plain,
        name: str,
        values: Sequence[Any],
        beside: Callable[[Any], list[list[str]]],
    ) -> FieldAnswers:
        """Ask other values of a field, beside each way of others until one is taken.

        The first is the case's own, which is taken.
        """
        replies = {shown_value(values[0]): (values[0], Attempt(Status.RAN))}

        def ask(value: Any) -> Status | None:
            text = shown_value(value)
            for others in beside(value) if text not in replies else ():
                reply = self.reply_to(base, term_of(name, value), *others)
                is_taken = reply is not None and reply.status is Status.RAN
                if reply and (is_taken or text not in replies):
                    replies[text] = value, reply
                if is_taken:
                    break
            return replies[text][1].status if text in replies else None

        def having(*statuses: Status) -> list[Any]:
            return [value for value, reply in replies.values() if reply.status in statuses]

        for value in values:
            ask(value)
        if name in SIZES and having(Status.REFUSED):
            family = operator_named(base["op"]).family
            for size in _admitted(self.known, name, family, MORE_SIZES):
                ask(size)
            _narrow(having(Status.RAN), having(Status.REFUSED), ask)
        elif name.endswith("_scale") and having(Status.REFUSED):
            for power in POWERS:
                ask(power)
        elif name == "inputs" and having(Status.REFUSED):
            # What is refused alone may be taken beside another, as one state beside the other.
            optional, own = max(values, key=len), {*values[0]}
            alone = [{*some} ^ own for some in having(Status.REFUSED) if len({*some} ^ own) == 1]
            for pair in itertools.combinations(alone, 2):
                there = own ^ pair[0] ^ pair[1]
                ask([each for each in optional if each in there])
            used = {each for some in having(Status.RAN) for each in some}
            for some in subsets([each for each in optional if each in used]):
                ask(some)
        taken, refused = having(Status.RAN), having(Status.REFUSED)
        broken = having(*{*Status} - {Status.RAN, Status.REFUSED})

        def said(some: Iterable[Any]) -> list[tuple[Any, str]]:
            return [(value, _said(replies[shown_value(value)][1])) for value in some]

        answers: Sequence[Sequence[Any]] = (taken, refused, broken)
        if name == "inputs" and (row := operator_named(base["op"])).demanding:
            answers = [[e for v in some for e in _under_others(row, v)] for some in answers]
        requirement = simplest(name, *answers)
        return FieldAnswers(taken, said(refused), said(broken), requirement)

    def _sum(
        self, base: Plain, pair: tuple[str, str], fields: dict[str, FieldAnswers]
    ) -> list[tuple[str, str]]:
        """Ask the largest of two sizes at once; if it is refused, find the limit of their sum.

        Returns:
            What is refused together, with the message, if it is not their sum.
        """
        one, other = (fields[name] for name in pair)
        if not all("<=" in each.requirement for each in (one, other)):
            return []
        largest = [max(each.taken) for each in (one, other)]
        own = [each.taken[0] for each in (one, other)]
        terms = [term_of(name, size) for name, size in zip(pair, largest, strict=True)]
        reply = self.reply_to(base, *terms)
        if not reply or reply.status is not Status.REFUSED:
            return []
        total = largest[0] + own[1]
        middle = min(one.taken, key=lambda size: abs(size - largest[0] / 2))
        rest = max((size for size in other.taken if size + middle <= total), default=own[1])
        between = self.reply_to(base, term_of(pair[0], middle), term_of(pair[1], rest))
        if total != own[0] + largest[1] or not between or between.status is not Status.RAN:
            return [(", ".join(terms), _said(reply))]
        for name, each, beside in zip(pair, (one, other), reversed(own), strict=True):
            apart = [(size, said) for size, said in each.refused if size + beside <= total]
            requirement = simplest(name, each.taken, [size for size, _ in apart])
            fields[name] = replace(each, refused=apart, requirement=requirement)
        name = "+".join(pair)
        refused = [(sum(largest), _said(reply))]
        fields[name] = FieldAnswers([total], refused, [], f"{name}<={total}")
        return []

    def _combined(
        self, base: Plain, fields: Mapping[str, FieldAnswers]
    ) -> tuple[list[tuple[str, str]], int]:
        """Ask several settings at once that are taken alone; return what is refused together."""
        chance, row = random.Random(base["op"]), operator_named(base["op"])  # noqa: S311 -- no secret
        limits = [each.requirement for each in fields.values() if each.requirement]
        found: dict[str, str] = {}
        count = 0
        for _ in range(MOST_TRIES):
            if count == COMBINATIONS:
                break
            chosen = {}
            for name, each in fields.items():
                usual = [v for v in each.taken if name not in SIZES or v <= LARGEST_USUAL]
                chosen[name] = chance.choice(usual or each.taken)
            terms = [*_terms_of(row, chosen)]
            reply = self.reply_to(base, *terms, *limits)
            count += reply is not None
            if not reply or reply.status is not Status.REFUSED:
                continue
            for term in [*terms]:  # what is refused without it as well does not need it
                fewer = [each for each in terms if each != term]
                less = self.reply_to(base, *fewer, *limits)
                if less and less.status is Status.REFUSED:
                    terms, reply = fewer, less
            found.setdefault(_said(reply), ", ".join(terms))
        return [(terms, said) for said, terms in found.items()][:MOST_TOGETHER], count


def _beside(
    base: Plain, record: CaseRecord, fields: Mapping[str, FieldAnswers], name: str, value: Any
) -> list[list[str]]:
    """Return what is required beside a value of a field, so that nothing else changes.

    Heads are as many of queries as of others, or share: a limit of one is not one of the other.
    """
    row, sizes = operator_named(base["op"]), record.sizes
    tensor, _, entry = name.partition(".")
    # A tensor of another type has another zero point, unless it is 0.
    if entry == "type" and base["quantise"][tensor].get("zero_point", 0) == 0:
        return [[f"{tensor}.zero_point=0"]]
    if name in HEADS:
        (other,) = (each for each in HEADS if each != name)
        return [[f"{other}={count}"] for count in _other_heads(fields, name, value)]
    if name in SHARED:
        one, many = HEADS if name == "share_size" else HEADS[::-1]
        return [[f"{one}={sizes[one]}", f"{many}={sizes[one] * value}"]]
    if name == "key_form":  # keys can only be shared where queries are
        return [["share_size=2"]]
    if name == "inputs" and row.demanding:
        return [[term_of(row.demanding, FIELDS[row.demanding].of(record, record))]]
    if name == "dtype" and row.cell.of_integers:  # int16 has no zero points
        return [[f"{point}=0" for point in ("input_zero_point", "output_state_zero_point")]]
    # States have the type of the other tensors as long as they do in the case.
    if name == "dtype" and row.states_dtypes and base["states_dtype"] == base["dtype"]:
        return [[f"states_dtype={value}"]]
    if name == "states_dtype":
        dtype = value if fields["mixed_dtypes"].refused else base["dtype"]
        return [[f"dtype={dtype}"]]
    return [[]]


def _other_heads(fields: Mapping[str, FieldAnswers], name: str, value: int) -> Sequence[int]:
    """Return how many heads of the other kind there may be beside some of one kind."""
    fewer, more = (
        fields[each].taken if each in fields else (1,)
        for each in (SHARED if name == HEADS[0] else SHARED[::-1])
    )
    counts = [value // many for many in fewer if value % many == 0]
    return [*dict.fromkeys([*counts, *(value * many for many in more)])]


def _under_others(row: Operator, there: Sequence[str]) -> Iterator[list[str]]:
    """Yield a set of inputs under each value of the attribute that demands some of them."""
    demanded, optional = row.demands(complete(row, {})), [t.name for t in row.inputs if t.optional]
    for value in row.attributes[row.demanding].choices:
        needed = row.demands(complete(row, {row.demanding: value}))
        yield [n for n in optional if needed.get(n, n in there and n not in demanded)]


def _terms_of(row: Operator, chosen: Mapping[str, Any]) -> Iterator[str]:
    """Yield requirements of fields that were chosen one by one, but for what follows from others.

    Numbers of heads, element types of states, and inputs that an attribute demands follow.
    """
    chosen = {name: value for name, value in chosen.items() if "+" not in name}
    if {*HEADS} <= chosen.keys():
        heads, group, share = (chosen.pop(name) for name in (HEADS[1], *SHARED))
        share = share if group == 1 else 1
        chosen |= dict(zip(HEADS, (heads * group, heads * share), strict=True))
        chosen.pop("states_dtype")
    if row.demanding:
        there = chosen.pop("inputs")
        demanded = row.demands(complete(row, {}))
        free = [each.name for each in row.inputs if each.optional and each.name not in demanded]
        yield from (f"inputs{'>=' if name in there else '!='}{name}" for name in free)
    yield from (term_of(name, value) for name, value in chosen.items())


def _narrow(taken: list[int], refused: list[int], ask: Callable[[int], Status | None]) -> None:
    """Ask sizes between the largest that is taken and the next, and below the least."""
    step = math.gcd(*(size - min(taken) for size in taken)) or 1
    ends = {
        max(taken): min((size for size in refused if size > max(taken)), default=None),
        min(taken): max((size for size in refused if size < min(taken)), default=None),
    }
    for end, other in ends.items():
        inside, outside = end, end if other is None else other
        while abs(outside - inside) > step:
            steps = max(1, abs(outside - inside) // (2 * step))
            middle = inside + (steps if outside > inside else -steps) * step
            status = ask(middle)
            inside = middle if status is Status.RAN else inside
            outside = middle if status is Status.REFUSED else outside
            if middle not in (inside, outside):
                break


def _starts(operator: str, usual: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Plain]]:
    """Yield plain cases of an operator in many ways, the nearest to usual ones first."""
    rows = sorted(versions_of(operator), key=lambda row: -row.version)
    row = rows[0]
    optional = [tensor for tensor in row.inputs if tensor.optional]
    states = [tensor for tensor in optional if tensor.role not in (*LENGTHS, "P")]
    bias = [tensor for tensor in optional if tensor.role in ("B", "Wb", "Rb")]
    outputs = [*row.present_outputs(complete(row, {}))]
    is_linear, of_states = not row.cell.projects, ("", "float32") if row.states_dtypes else ("",)
    settings: list[Plain] = [{}]  # attributes that kernels may know by one value alone
    if resets := row.attribute_for("linear_before_reset"):
        settings.append({resets.name: 1 - resets.default})
    for each in (row.attributes[name] for name in WORDS if name in row.attributes):
        settings += [{each.name: word} for word in each.choices if word != each.default]
    has_weights = any(tensor.role == "W" for tensor in row.inputs)
    ways: list[Sequence[Any]] = [
        rows,
        STARTS if row.has("input_size") else LINEAR_STARTS,
        ("initializers", "inputs")[: 2 if has_weights else 1],
        ("float32", "float16", *["bfloat16"] * is_linear),
        of_states,
        ([], optional) if is_linear else ([], bias, states, optional),
        (outputs, *([name] for name in outputs[:2] if not is_linear)),
        settings,
        ("forward", "bidirectional")[: 1 if is_linear else 2],
    ]
    near = usual or (0,) * len(ways)
    every = itertools.product(*(range(len(each)) for each in ways))
    for way in sorted(
        every, key=lambda some: sum(abs(a - b) for a, b in zip(some, near, strict=True))
    ):
        row, sizes, weights, dtype, states_dtype, inputs, asked, setting, direction = (
            each[k] for each, k in zip(ways, way, strict=True)
        )
        required = {
            attribute.name: attribute.choices[0]
            for attribute in row.attributes.values()
            if attribute.required and attribute.choices
        }
        towards = {} if direction == "forward" else row.written("direction", direction)
        attributes = {**required, **setting, **towards}
        demands = row.demands(complete(row, attributes))
        inputs = [each for each in optional if demands.get(each.name, each in inputs)]
        typed = {"states_dtype": states_dtype or dtype} if row.states_dtypes else {}
        yield (
            way,
            {
                "op": row.name,
                # A projection is as wide as what it projects.
                "sizes": {n: sizes.get(n, sizes.get("hidden_size")) for n in size_names(row)},
                "dtype": dtype,
                **typed,
                "attributes": attributes,
                "inputs": {tensor.name: default_entry(tensor) for tensor in inputs},
                "outputs": asked,
                "weights": weights,
                "calls": 1,
            },
        )


def _shipped(operator: str, suite: str) -> Iterator[tuple[tuple[int, ...], Plain]]:
    """Yield cases of an operator: those of a shipped suite, in other sizes."""
    entries = [each for each in load_suite(suite).entries if each.operator.family == operator]
    for sizes, entry in itertools.product(STARTS, entries):
        plain = {n: v for n, v in entry.written.items() if n not in ("calls", "flags", "summary")}
        yield (), {**plain, "sizes": sizes, "calls": 1}


def _values(record: CaseRecord, known: Requirements) -> dict[str, list[Any]]:
    """Return the fields that are asked about, and values of each, the case's own first."""
    row = operator_named(record.operator)
    found: dict[str, Iterable[Any]] = {}
    if row.versioned:
        found["version"] = [each.version for each in versions_of(row.family)]
    found |= {"dtype": row.dtypes} if not record.quantise else {}  # units have float32 within
    found["weights"] = FIELDS["weights"].values
    for attribute in row.attributes.values():
        name = field_of(attribute)
        if name == "direction":
            found[name] = FIELDS[name].values
        elif attribute.type == "float":
            found[name] = (NEVER, A_NUMBER)
        elif name and name not in SIZES:
            usual = (0, 1) if attribute.default in (None, 0, 1) else (1, 16, 2 * attribute.default)
            found[name] = attribute.choices or usual
    found |= {"activations": [[name] for name in row.activations]} if row.activations else {}
    optional = [tensor.name for tensor in row.inputs if tensor.optional]
    there = record.requirements.inputs
    toggled = ({*there} ^ {name} for name in optional)
    sets = (*toggled, set[str](), {*optional})
    found["inputs"] = [[name for name in optional if name in some] for some in sets]
    present = row.present_outputs(complete(row, record.attributes))
    found["outputs"] = [some for some in subsets(present) if some]
    found["calls"] = (1, 2)
    if row.dialect.startswith("ONNX"):
        found["open_sizes"] = (0, 1)
    found |= {key: FIELDS[key].values for key in FORMS[1:]}
    found |= {"mixed_dtypes": (0, 1), "states_dtype": row.states_dtypes}
    found |= dict.fromkeys(SHARED, GROUPS)
    for name in size_names(row):
        is_empty = not (row.cell.projects or least_size(row, name))
        zero = [0] * (is_empty and known.admits(row.family, **{name: 0}))
        found[name] = [*zero, *_admitted(known, name, row.family, FEW_SIZES)]
    for name, dress in (record.quantise or {}).items():
        found[f"{name}.type"] = INPUT_TYPES
        found |= {f"{name}.zero_point": (0, 1)} if isinstance(dress.zero_point, int) else {}
    own = {name: FIELDS[name].of(record, record) for name in found}
    own |= {"activations": record.requirements.activations, "outputs": record.outputs}
    return {
        name: [int(own[name]) if own[name] is True or own[name] is False else own[name], *values]
        for name, values in found.items()
        if own[name] != ELSEWHERE
    }


def _admitted(known: Requirements, name: str, family: str, sizes: Sequence[int]) -> Sequence[int]:
    """Return those of some sizes that are within what is known, or others that are."""
    within = [size for size in sizes if known.admits(family, **{name: size})]
    every = admitted_sizes(known, name, family)
    few = len(FEW_SIZES)
    return within if len(within) > few // 2 else [*within, *every[:: max(1, len(every) // few)]]


def _with_parameters(case: Plain) -> Plain:
    """Return a case that gives functions the alpha and beta for which there is no default."""
    row, given = operator_named(case["op"]), case["attributes"]
    used = [ACTIVATIONS[name] for name in given.get("activations", ()) if name in ACTIVATIONS]
    told: Plain = {}
    for parameter in PARAMETERS if any(each.note for each in used) else ():
        own = row.attribute_for(f"activation_{parameter}")
        values = [getattr(each, parameter) for each in used]
        told |= {own.name: [value for value in values if value is not None]} if own else {}
    return {**case, "attributes": {**given, **told}}


def _entry(case: Plain) -> Entry | None:
    """Return a case as one of a suite; None if there is no such case."""
    text = as_yaml({"suite": "probe", "summary": "Questions.", "cases": {"probe": case}})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
            (entry,) = parse_suite(text, "probe.yaml", Path()).entries
            entry.case()
    except RnncliError:
        return None
    return entry


def _vector(entry: Entry) -> Vector:
    """Return a case without its answers, which nobody reads; its model has their shapes."""
    first, record = entry.case(), record_of(entry)
    held = held_inputs(entry.operator, entry.weights, first.inputs)
    calls = []
    for call, its in enumerate(record.calls):
        case = entry.case(call)
        made = {n: some[0] for n, some in case.stacked([entry.id], call, first).items()}
        inputs = {**made, **{name: first.inputs[name] for name in held}}
        rest = case.attributes, inputs, case.outputs, case.readings
        shaped = NodeCall(case.name, case.operator.name, *rest)
        levels = {name: dtype_named(dress.type) for name, dress in (its.quantise or {}).items()}
        rows = (each for each in case.operator.outputs if each.kind == "states")
        states = {each.name: shaped.dtype_of(each) for each in rows}
        types = {name: levels.get(name, case.dtype).numpy for name in case.outputs} | states
        outputs = {name: shaped.empty_output(name).astype(types[name]) for name in case.outputs}
        calls.append(Vector(entry.id, b"", inputs, (), Answers(outputs), {}, its, call=call))
    later = tuple(calls[1:])
    return with_model(replace(calls[0], record=record, later=later))


def _said(reply: Attempt) -> str:
    """Return what an implementation said, or how it ended, on one line."""
    message = printable(reply.message)
    message = message if len(message) < LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}..."
    return message if reply.status is Status.REFUSED else f"{reply.status} {message}".strip()


def _merged(
    answers: Sequence[OperatorAnswers], known: Requirements
) -> tuple[list[str], dict[str, list[str]]]:
    """Return requirements of all operators, and of each what was refused, in words."""
    asked = [each for each in answers if each.base]
    require = [f"op={'|'.join(each.operator for each in asked)}"]
    require += [known.expression] * bool(known.terms)
    comments: dict[str, list[str]] = {}
    refused = [f"{each.operator} refused: {each.message}" for each in answers if not each.base]
    comments[require[0]] = refused
    for name in dict.fromkeys(name for each in asked for name in each.fields):
        able = {each.operator: each.fields[name] for each in asked if name in each.fields}
        # One requirement for all operators if it fits what each of them answered.
        of_all = [
            text
            for text in (each.requirement for each in able.values())
            if text
            and all(fits(text, name, o.taken, [v for v, _ in o.refused]) for o in able.values())
        ]
        for operator, each in able.items():
            own = of_all[0] if of_all else each.requirement
            terms = Requirements.parse(filter(None, [own])).terms
            only = "" if of_all else operator
            text = ",".join(replace(term, only=only).expression for term in terms)
            if text and text not in comments:
                require.append(text)
                comments[text] = []
                for whose, message in each.refused[:1]:  # which values, with the first message
                    values = sorted(
                        (shown_value(value) for value, _ in each.refused),
                        key=lambda value: (int(value), "") if value.isdecimal() else (-1, value),
                    )
                    alike = len({said for _, said in each.refused}) == 1
                    first = "" if alike else f"; of {shown_value(whose)}"
                    told = f"refused: {listed(values, MOST_VALUES)}{first}: {message}"
                    comments[text] = textwrap.wrap(told, WIDTH - 4)
    return require, comments
