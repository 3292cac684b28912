"""Patterns of failures: conditions that failing cases share, and places where they are wrong.

A pattern is not a proof: it says where to look.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.explaining.features import conditions
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.explaining.features import Features, SharedFeature
    from rnncli.judging.explaining.places import Places

# The largest probability by chance of a pattern.
CHANCE = 0.02
# The most patterns that a report shows.
MOST_SHOWN = 3
# Two conditions must leave at most such a part of the passing cases that one condition leaves.
BETTER = 0.5
# Block widths of kernels; code of its own handles the remainder.
WIDTHS = (4, 8, 16, 32, 64)
NOUNS = {"directions": "direction", "steps": "step", "rows": "sequence", "units": "unit"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Something that unexplained failures have in common.

    Attributes:
        sentence: the pattern in words, with counts.
        topics: its topics.
        chance: its probability by chance.
        where: the conditions of a pattern of whole cases, in words.
        among: number of passing cases that meet them.
        conditions: number of conditions.
    """

    sentence: str
    topics: tuple[str, ...]
    chance: float
    where: str = ""
    among: int = 0
    conditions: int = 0

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
    """Return the patterns of some failures, the least likely by chance first.

    Args:
        failing: the features of each failing case.
        passing: the features of each passing case.
        places: where each failing case is wrong.
    """
    found = [*_of_cases(failing, passing), *_of_places(places)]
    likely = [pattern for pattern in found if pattern.chance <= CHANCE]
    return tuple(sorted(likely, key=lambda pattern: pattern.chance)[:MOST_SHOWN])


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
        sentence = f"only padding of Y is wrong, in {_cases(len(places))}"
        yield Pattern(sentence, ("padding", "lengths"), CHANCE**2)
        return
    names = {each.outputs[0] for each in places}
    if len(names) == 1 and all(len(each.outputs[0]) < each.outputs[1] for each in places):
        (only,) = names
        sentence = f"only {' and '.join(only)} differs, in {_cases(len(places))}"
        yield Pattern(sentence, ("outputs",), 0.25 ** len(places))
    for axis in NOUNS:
        known = [each.wrong[axis] for each in places if axis in each.wrong]
        if known and all(indices for indices, _ in known):
            yield from _of_axis(axis, known)


def _of_axis(axis: str, known: Sequence[tuple[tuple[int, ...], int]]) -> Iterator[Pattern]:
    """Yield patterns of the wrong indices along an axis."""
    first = min(indices[0] for indices, _ in known)
    last = max(indices[-1] for indices, _ in known)
    noun, count = NOUNS[axis], _cases(len(known))
    if pattern := _left_over(axis, known):
        yield pattern
    elif all(indices == (size - 1,) for indices, size in known):
        chance = math.prod(1 / size for _, size in known)
        yield Pattern(f"only the last {noun} is wrong, in {count}", (axis,), chance)
    elif first and last < min(size for _, size in known) - 1:
        drawn = ((size, len(some)) for some, size in known)
        chance = math.prod(_part(last - first + 1, size, some) for size, some in drawn)
        words = (
            f"only {noun} {first} is" if first == last else f"only {noun}s {first} to {last} are"
        )
        yield Pattern(f"{words} wrong, in {count}", (axis,), chance)
    elif first:
        chance = math.prod(_part(size - first, size, len(some)) for some, size in known)
        yield Pattern(f"{noun}s are wrong from {noun} {first} on, in {count}", (axis,), chance)
    elif last < min(size for _, size in known) - 1:
        chance = math.prod(_part(last + 1, size, len(some)) for some, size in known)
        words = f"only {noun} 0 is" if last == 0 else f"only {noun}s 0 to {last} are"
        yield Pattern(f"{words} wrong, in {count}", (axis,), chance)


def _left_over(axis: str, known: Sequence[tuple[tuple[int, ...], int]]) -> Pattern | None:
    """Return the pattern that only whole blocks of some width, or only the remainder, are wrong.

    Cases of several sizes must show it: with one size, it would be just a range of indices.
    """
    noun, count = NOUNS[axis], _cases(len(known))
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


def _cases(count: int) -> str:
    return counted(count, "case")
