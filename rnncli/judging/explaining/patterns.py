"""Patterns of failures: what the cases that fail have in common, and where they are wrong.

A pattern is no proof of anything: it says where to look.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.explaining.features import conditions
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.explaining.features import Features, SharedFeature
    from rnncli.judging.explaining.places import Places

# A pattern that chance gives more often than that is none.
CHANCE = 0.02
# So many are shown.
SHOWN = 3
# Two conditions at once must leave at most a part of the passing cases that one leaves.
BETTER = 0.5
# Kernels take so many of an axis at once, and treat what is left over apart.
WIDTHS = (4, 8, 16, 32, 64)
NOUNS = {"directions": "direction", "steps": "step", "rows": "sequence", "units": "unit"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What failures that nothing explains have in common.

    Attributes:
        sentence: in words, with counts.
        topics: what it is about.
        chance: how likely chance gives it.
        where: of one that is about whole cases: which they are.
        among: how many cases that pass are like that.
        conditions: how many at once it takes.
    """

    sentence: str
    topics: tuple[str, ...]
    chance: float
    where: str = ""
    among: int = 0
    conditions: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether one condition tells all that fails from all that passes."""
        return self.conditions == 1 and not self.among

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it; the sentence says how many conditions it takes."""
        return {name: value for name, value in asdict(self).items() if name != "conditions"}


def patterns_of(
    failing: Sequence[Features], passing: Sequence[Features], places: Sequence[Places]
) -> tuple[Pattern, ...]:
    """Return the patterns of some failures, the least likely by chance first.

    Args:
        failing: what each case has that fails.
        passing: what each case has that passes.
        places: where each case that fails is wrong.
    """
    found = [*_of_cases(failing, passing), *_of_places(places)]
    likely = [pattern for pattern in found if pattern.chance <= CHANCE]
    return tuple(sorted(likely, key=lambda pattern: pattern.chance)[:SHOWN])


def _of_cases(failing: Sequence[Features], passing: Sequence[Features]) -> Iterator[Pattern]:
    """Yield the condition, or two at once, that all failing cases meet and fewest passing ones.

    Of several that are as good there is one of each topic: nothing tells them apart.
    One case alone has a hundred things to itself.
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
        yield _said([met[a], met[b]], fails, int(together[a, b]), passes)
        return
    as_few = together.diagonal() == together[one, one]
    by_topic: dict[str, Pattern] = {}
    for each in itertools.compress(met, as_few):
        by_topic.setdefault(each.topic, _said([each], fails, int(together[one, one]), passes))
    yield from by_topic.values()


def _said(met: Sequence[SharedFeature], fails: int, among: int, passes: int) -> Pattern:
    """Say where cases fail: the chance is that of drawing all failures from those that meet it."""
    where = " and ".join(each.phrase for each in met)
    beside = f"{among} of {passes} that pass meet that" if among else "none that passes meets that"
    return Pattern(
        f"all {fails} failures are {where}; {beside}",
        tuple(dict.fromkeys(each.topic for each in met)),
        math.comb(fails + among, fails) / math.comb(fails + passes, fails),
        where,
        among,
        len(met),
    )


def _of_places(places: Sequence[Places]) -> Iterator[Pattern]:
    """Yield where elements are wrong, of all failures."""
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
    """Yield what the wrong indices along an axis have in common."""
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
            f"{noun} {first} alone is" if first == last else f"{noun}s {first} to {last} alone are"
        )
        yield Pattern(f"{words} wrong, in {count}", (axis,), chance)
    elif first:
        chance = math.prod(_part(size - first, size, len(some)) for some, size in known)
        yield Pattern(f"{noun}s are wrong from {noun} {first} on, in {count}", (axis,), chance)
    elif last < min(size for _, size in known) - 1:
        chance = math.prod(_part(last + 1, size, len(some)) for some, size in known)
        words = f"{noun} 0 alone is" if last == 0 else f"{noun}s 0 to {last} alone are"
        yield Pattern(f"{words} wrong, in {count}", (axis,), chance)


def _left_over(axis: str, known: Sequence[tuple[tuple[int, ...], int]]) -> Pattern | None:
    """Return whether only what whole blocks of some width leave over is wrong, or only those.

    Cases of several sizes must show it, or one edge would say as much.
    """
    noun, count = NOUNS[axis], _cases(len(known))
    for width in WIDTHS:
        edges = [(size - size % width, indices, size) for indices, size in known]
        if len({edge for edge, *_ in edges}) < 2 or not all(0 < e < s for e, _, s in edges):
            continue
        if all(indices[0] >= edge for edge, indices, _ in edges):
            chance = math.prod(_part(size - edge, size, len(some)) for edge, some, size in edges)
            where = f"after the last whole {width} alone"
        elif all(indices[-1] < edge for edge, indices, _ in edges):
            chance = math.prod(_part(edge, size, len(some)) for edge, some, size in edges)
            where = f"in whole blocks of {width} alone"
        else:
            continue
        return Pattern(f"{noun}s {where} are wrong, in {count}", (axis,), chance)
    return None


def _part(among: int, size: int, drawn: int) -> float:
    """Return the chance that so many drawn of a size are all among some."""
    return math.comb(among, drawn) / math.comb(size, drawn)


def _cases(count: int) -> str:
    return counted(count, "case")
