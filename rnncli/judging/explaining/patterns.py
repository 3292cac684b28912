"""Patterns of failures: conditions that failing cases share, and places where they are wrong.

A pattern is not a proof: it says where to look.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.explaining.precision import Precision, precision_in_words
from rnncli.recurrence.recurrence import Direction
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.judging.explaining.single_steps import HeldRegion, Steps
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

# A size of a case -> the topic of patterns about it.
SIZES: Mapping[str, str] = {
    "hidden_size": "units",
    "batch_size": "rows",
    "seq_length": "steps",
    "input_size": "inputs",
    "key_size": "keys",
    "value_size": "values",
    "q_num_heads": "heads",
    "kv_num_heads": "heads",
    "channels": "channels",
    "kernel_size": "taps",
}
# Block widths of kernels; code of its own handles the remainder.
# Measured as the constants of `diagnosis`: same without 32 and 64.
WIDTHS = (4, 8, 16, 32, 64)
# Those by which the sizes of cases, most of which are small, are told apart.
# Measured: same with none, two and five of them.
SMALL_WIDTHS = WIDTHS[:3]
TOPICS: Mapping[str, str] = {
    "activations": "activations",
    "activation_alpha": "activations",
    "activation_beta": "activations",
    "sequence_lens": "lengths",
}
# Attributes, by role, that WORDS covers, or that say nothing.
ELSEWHERE = {"hidden_size", "seq_length", "direction", "layout"}
PRECISION = ("precision",)
# The axes of values [D, T, N, H] and of last states [D, N, H].
AXES = ("directions", "steps", "rows", "units")
LAST = ("directions", "rows", "units")
# The largest probability by chance of a pattern.
# Measured: same at 0.04 and 1; one right name less at 0.01, 21 true ones less at 0.
CHANCE = 0.02
# Of places in a single failing case: they are so few that nothing else is known of it.
# Measured: same at 0.125, 0.5 and 1; 59 true at 0.
CHANCE_OF_ONE = 0.25
# The most patterns that a report shows.
MOST_SHOWN = 3
# Two conditions must leave at most such a part of the passing cases that one condition leaves.
# Measured: same at 1; 60 true at 0 and 0.25.
BETTER = 0.5
# The most indices that a pattern lists if they do not follow each other.
# Measured: same at 1 and 6; it is for reading.
MOST_LISTED = 3
NOUNS = {"directions": "direction", "steps": "step", "rows": "sequence", "units": "unit"}


def _lengths(vector: Vector) -> Array:
    recurrence = vector.recurrence
    return np.zeros(0, np.int64) if recurrence.lengths is None else recurrence.lengths


def _padded(vector: Vector) -> Array:
    return _lengths(vector) < len(vector.recurrence.X)


def _has_lost_numbers(vector: Vector) -> bool:
    given = (values.astype(np.float64) for values in vector.inputs.values())
    return not all(np.isfinite(values).all() for values in given)


# Phrase, topic, and the cases in which it holds.
WORDS: tuple[tuple[str, str, Callable[[Vector], bool]], ...] = (
    ("layout 1", "layout", lambda v: v.record.requirements.layout == 1),
    ("a reverse direction", "directions", lambda v: Direction.REVERSE in v.recurrence.directions),
    ("two directions", "directions", lambda v: len(v.recurrence.directions) > 1),
    ("padding", "lengths", lambda v: bool(_padded(v).any())),
    ("padding in all sequences", "lengths", lambda v: bool(_padded(v).any() and _padded(v).all())),
    ("a sequence of length 0", "lengths", lambda v: bool((_lengths(v) == 0).any())),
    (
        "sequences that are not sorted by length",
        "lengths",
        lambda v: bool((np.diff(_lengths(v)) > 0).any()),
    ),
    ("NaN or infinity among the inputs", "nan", _has_lost_numbers),
)


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a case."""

    # noun phrase, such as "clip" or "padding" -> the topic of a pattern about it
    words: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # its sizes, by name


def features_of(vector: Vector) -> Features:
    """Return the features of a case."""
    needs = vector.record.requirements
    roles = {name: row.role or name for name, row in vector.node.operator.attributes.items()}
    given = (*needs.attributes, *needs.inputs)
    words = {name: TOPICS.get(name, name) for name in given if roles.get(name) not in ELSEWHERE}
    words |= dict.fromkeys(needs.activations, "activations")
    words |= {phrase: topic for phrase, topic, holds in WORDS if holds(vector)}
    words[f"dtype {needs.dtype}"] = "dtype"
    words |= {f"{name} requested": "outputs" for name in vector.record.outputs}
    return Features(words, dict(vector.record.sizes))


@dataclass(frozen=True, slots=True, eq=False)
class SharedFeature:
    """A condition that some cases meet."""

    phrase: str  # the condition in words: "with clip", "where hidden_size > 8"
    topic: str  # its topic
    holds: Array  # mask of the cases that meet it


def conditions(cases: Sequence[Features]) -> Iterator[SharedFeature]:
    """Yield the conditions that some but not all of the cases meet, the simplest first."""
    found = []
    for phrase, topic in {p: topic for case in cases for p, topic in case.words.items()}.items():
        has = np.array([phrase in case.words for case in cases])
        found.append(SharedFeature(f"with {phrase}", topic, has))
        found.append(SharedFeature(f"without {phrase}", topic, ~has))
    for condition in (*found, *_of_sizes(cases)):
        if 0 < np.count_nonzero(condition.holds) < len(cases):
            yield condition


def _of_sizes(cases: Sequence[Features]) -> Iterator[SharedFeature]:
    names = [name for name in SIZES if all(name in case.sizes for case in cases)]
    table = {name: np.array([case.sizes[name] for case in cases]) for name in names}
    for name, values in table.items():
        yield SharedFeature(f"where {name} = 1", SIZES[name], values == 1)
        for value in np.unique(values)[:-1].tolist():
            yield SharedFeature(f"where {name} > {value}", SIZES[name], values > value)
            yield SharedFeature(f"where {name} <= {value}", SIZES[name], values <= value)
        for width in SMALL_WIDTHS:
            phrase = f"where {name} is not a multiple of {width}"
            yield SharedFeature(phrase, SIZES[name], values % width != 0)
    for (one, a), (other, b) in zip(table.items(), [*table.items()][1:], strict=False):
        yield SharedFeature(f"where {one} = {other}", SIZES[one], a == b)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a case is wrong."""

    # axis -> the indices at which something is wrong, and the size of the axis; steps count in
    # processing order
    wrong: Mapping[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    # the names of the outputs that differ, and the number of outputs
    outputs: tuple[tuple[str, ...], int] = ((), 0)
    only_padding: bool = False  # whether nothing but padding of Y differs
    # whether all wrong elements have the same value, as any lost term may give
    one_value: bool = False
    precision: Precision | None = None  # if its dtype has many bits
    # the same as `wrong`, at the first wrong step alone, before errors spread
    first: Mapping[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)


def places_of(found: MeasuredAttempt, steps: Steps | None) -> Places:
    """Find where a case is wrong: if Y is known, each of its steps by itself."""
    canonical = found.vector.node.canonical
    differing = [each for each in found.outputs.values() if each.differs and not each.problem]
    wrong = {each.name: canonical(each.name, each.errors.margin > 1) for each in differing}
    outputs = tuple(wrong), len(found.outputs)
    got = [
        canonical(each.name, each.got)[wrong[each.name]].astype(np.float64)
        for each in differing
        if each.got is not None
    ]
    numbers = np.concatenate(got) if got else np.zeros(0)
    one_value = numbers.size > 1 and len(np.unique(numbers)) == 1

    if steps is not None and steps.wrong.any():
        step = int(steps.wrong.any(axis=(0, 2, 3)).argmax())
        first = _along(steps.wrong[:, step], LAST)
        Y = next(row.name for row in found.vector.node.operator.outputs if row.role == "Y")
        output = found.outputs[Y]
        assert output.got is not None
        precision = Precision.of(steps, canonical(Y, output.got), canonical(Y, output.wanted))
        along = _along(steps.wrong, AXES)
        return Places(along, outputs, one_value=one_value, precision=precision, first=first)
    if steps is not None and len(wrong) == 1 and steps.differs.any():
        only_padding = not (steps.differs & steps.live[None, :, :, None]).any()
        return Places({}, outputs, only_padding, one_value)
    operator = found.vector.node.operator
    if not operator.cell.projects:  # which have other axes besides steps
        every = (
            wrong[row.name] for row in operator.outputs if row.role == "Y" and row.name in wrong
        )
        found_along = {
            axis: each for Y in every for axis, each in _along(Y, ("steps", *LAST)).items()
        }
        of_steps = {axis: each for axis, each in found_along.items() if axis == "steps"}
        return Places(of_steps, outputs, one_value=one_value)
    last = [values for values in wrong.values() if values.ndim == len(LAST)]
    along = _along(np.logical_or.reduce(last), LAST) if last else {}
    return Places(along, outputs, one_value=one_value)


def _along(wrong: Array, axes: tuple[str, ...]) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return the wrong indices along each axis of more than one, and its size."""
    found = {}
    for k, (axis, size) in enumerate(zip(axes, wrong.shape, strict=True)):
        others = tuple(other for other in range(wrong.ndim) if other != k)
        if size > 1:
            found[axis] = (tuple(np.flatnonzero(wrong.any(axis=others)).tolist()), size)
    return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """Something that unexplained failures have in common."""

    sentence: str  # the pattern in words, with counts
    topics: tuple[str, ...]  # its topics
    chance: float  # its probability by chance
    where: str = ""  # the conditions of a pattern of whole cases, in words
    among: int = 0  # number of passing cases that meet them
    conditions: int = 0  # number of conditions

    @property
    def is_whole(self) -> bool:
        """Whether one condition separates all failing cases from all passing ones."""
        return self.conditions == 1 and not self.among

    def record(self) -> dict[str, Any]:
        """Return the pattern as JSON data; the sentence implies the number of conditions."""
        return {name: value for name, value in asdict(self).items() if name != "conditions"}


def patterns_of(
    failing: Sequence[Features], passing: Sequence[Features], places: Sequence[Places]
) -> tuple[Pattern, ...]:
    """Return the patterns of some failures, the least likely by chance first."""
    largest = CHANCE_OF_ONE if len(places) == 1 else CHANCE
    of_places = (each for each in _of_places(places) if each.chance <= largest)
    likely = [*(e for e in _of_cases(failing, passing) if e.chance <= CHANCE), *of_places]
    if any(each.topics == PRECISION for each in likely):  # finer dtypes show it, and no others
        likely = [each for each in likely if each.topics != ("dtype",)]
    return tuple(sorted(likely, key=lambda pattern: pattern.chance)[:MOST_SHOWN])


def separating(has: Sequence[Features], lacks: Sequence[Features]) -> Pattern | None:
    """Return one condition that some cases meet and others do not, however likely by chance."""
    whole = (pattern for pattern in _of_cases(has, lacks) if pattern.is_whole)
    return next(whole, None)


def _of_cases(failing: Sequence[Features], passing: Sequence[Features]) -> Iterator[Pattern]:
    """Yield the one or two conditions that all failing cases and the fewest passing ones meet.

    Ties give one pattern for each topic. A single failure gives none, because a hundred conditions
    hold in it alone.
    """
    fails, passes = len(failing), len(passing)
    if fails < 2 or not passes:
        return
    met = [each for each in conditions([*failing, *passing]) if each.holds[:fails].all()]
    if not met:
        return
    table = np.array([each.holds[fails:] for each in met], np.int64)
    together = table @ table.T
    one = int(together.diagonal().argmin())
    a, b = map(int, np.unravel_index(together.argmin(), together.shape))
    if together[a, b] <= BETTER * together[one, one] and together[one, one] > 1:
        yield _pattern([met[a], met[b]], fails, int(together[a, b]), passes)
        return
    as_few = together.diagonal() == together[one, one]
    by_topic: dict[str, Pattern] = {}
    for each in itertools.compress(met, as_few):
        by_topic.setdefault(each.topic, _pattern([each], fails, int(together[one, one]), passes))
    yield from by_topic.values()


def _pattern(met: Sequence[SharedFeature], fails: int, among: int, passes: int) -> Pattern:
    """Return a pattern of cases, with the chance to draw all failures from those that meet it."""
    where = " and ".join(each.phrase for each in met)
    beside = f"so do {among} of {passes} passes" if among else f"none of {passes} passes does"
    return Pattern(
        f"all {fails} failures occur {where}; {beside}",
        tuple(dict.fromkeys(each.topic for each in met)),
        math.comb(fails + among, fails) / math.comb(fails + passes, fails),
        where,
        among,
        len(met),
    )


def _of_places(places: Sequence[Places]) -> Iterator[Pattern]:
    """Yield patterns of the wrong elements of all failures."""
    if not places:
        return
    if all(each.only_padding for each in places):
        sentence = f"only padding of Y is wrong, in {counted(len(places), 'case')}"
        yield Pattern(sentence, ("padding", "lengths"), CHANCE**2)
        return
    measured = [each.precision for each in places if each.precision]
    if 2 * len(measured) >= len(places) and (loss := precision_in_words(measured)):
        yield Pattern(f"{loss}, in {counted(len(measured), 'case')}", PRECISION, 0.0)
    names = {each.outputs[0] for each in places}
    if len(names) == 1 and all(0 < len(each.outputs[0]) < each.outputs[1] for each in places):
        (only,) = names
        sentence = f"only {' and '.join(only)} differs, in {counted(len(places), 'case')}"
        yield Pattern(sentence, ("outputs",), 0.25 ** len(places))
    for axis in NOUNS:
        known = [each.wrong[axis] for each in places if axis in each.wrong]
        if known and all(indices for indices, _ in known):
            first = [each.first[axis] for each in places if axis in each.first]
            if pattern := _of_axis(axis, known):
                yield pattern
            elif len(first) == len(known) and (pattern := _of_axis(axis, first)):
                yield replace(pattern, sentence=f"{pattern.sentence}, at the first wrong step")


def _of_axis(axis: str, known: Sequence[tuple[tuple[int, ...], int]]) -> Pattern | None:
    """Return the pattern of the wrong indices along an axis."""
    every = sorted({k for indices, _ in known for k in indices})
    first, last = every[0], every[-1]
    noun, sizes = NOUNS[axis], [size for _, size in known]
    # The same indices, few or evenly spaced, in all cases that have them, and not all to the end.
    is_same = (
        (len(every) <= MOST_LISTED or len({*np.diff(every).tolist()}) == 1)
        and all(indices == tuple(k for k in every if k < size) for indices, size in known)
        and any(indices != tuple(range(first, size)) for indices, size in known)
    )
    if is_same:
        words, among = f"only {_listed(noun, every)} wrong", [len(some) for some, _ in known]
    elif pattern := _left_over(axis, known):
        return pattern
    elif all(indices == (size - 1,) for indices, size in known):
        words, among = f"only the last {noun} is wrong", [1 for _ in sizes]
    elif last < min(sizes) - 1:
        span = range(first, last + 1)
        words, among = f"only {_listed(noun, span)} wrong", [len(span) for _ in sizes]
    elif first:
        words, among = f"{noun}s are wrong from {noun} {first} on", [size - first for size in sizes]
    else:
        return None
    chance = math.prod(
        _part(n, size, len(some)) for n, (some, size) in zip(among, known, strict=True)
    )
    return Pattern(f"{words}, in {counted(len(known), 'case')}", (axis,), chance)


def _listed(noun: str, indices: Sequence[int]) -> str:
    """Return indices in words, with the verb."""
    *others, last = indices
    if not others:
        return f"{noun} {last} is"
    if last - others[0] == len(others):
        return f"{noun}s {others[0]} to {last} are"
    if len(others) < MOST_LISTED:
        return f"{noun}s {', '.join(map(str, others))} and {last} are"
    return f"{noun}s {others[0]}, {others[1]}, ... {last} are"


def region_in_words(regions: Sequence[HeldRegion]) -> str:
    """Return where some hypothesis holds, along the axis of most of its regions."""
    ((axis, _),) = Counter(each.axis for each in regions).most_common(1)
    found = _of_axis(axis, [(each.indices, each.size) for each in regions if each.axis == axis])
    if found is None:
        return f"only in some {NOUNS[axis]}s"
    return found.sentence.replace(" is wrong", "").replace(" are wrong", "")


def beyond_sizes(has: Sequence[Features], lacks: Sequence[Features]) -> str:
    """Return the condition on one size that cases meet and others lack, in words, or "".

    A single case must have a size of 1 or be larger than all others: many conditions hold in it.
    """
    if not (has and lacks):
        return ""
    for each in _of_sizes([*has, *lacks]):
        inside, outside = each.holds[: len(has)], each.holds[len(has) :]
        is_edge = "= 1" in each.phrase or " > " in each.phrase
        if inside.all() and not outside.any() and (is_edge or len(has) > 1):
            return each.phrase
    return ""


def _left_over(axis: str, known: Sequence[tuple[tuple[int, ...], int]]) -> Pattern | None:
    """Return the pattern that only whole blocks of some width, or only the remainder, are wrong.

    Cases of several sizes must show it: with one size, it would be just a range of indices.
    """
    noun, count = NOUNS[axis], counted(len(known), "case")
    for width in WIDTHS:
        edges = [(size - size % width, indices, size) for indices, size in known]
        if len({edge for edge, *_ in edges}) < 2 or not all(0 < e < s for e, _, s in edges):
            continue
        if all(indices[0] >= edge for edge, indices, _ in edges):
            chance = math.prod(_part(size - edge, size, len(some)) for edge, some, size in edges)
            where = f"after whole blocks of {width}"
        elif all(indices[-1] < edge for edge, indices, _ in edges):
            chance = math.prod(_part(edge, size, len(some)) for edge, some, size in edges)
            where = f"in whole blocks of {width}"
        else:
            continue
        return Pattern(f"only {noun}s {where} are wrong, in {count}", (axis,), chance)
    return None


def _part(among: int, size: int, drawn: int) -> float:
    """Return the chance that `drawn` of `size` indices all fall among `among` of them."""
    return math.comb(among, drawn) / math.comb(size, drawn)
