"""What is behind a relation of streams that does not hold: the smallest case, and the fault.

A fault is a hypothesis that gives the wrong outputs, or without which they are right: states that
are exchanged, or that are those of a step earlier or later; inputs of steps that a chunk has not
seen; a state or an output of the call before. Each is tried by calls of the model, up to a limit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.talk.words import counted, listed
from rnncli.verifying.relations.judging import AnsweredCall, UnansweredError, attempted
from rnncli.verifying.relations.stream_call import apart, other_numbers, real, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.verifying.relations.judging import Relation
    from rnncli.verifying.relations.stream_call import ModelCall, StreamCall

# The number of smaller streams to try, and of steps by which a state may be off.
TRIES, FARTHEST = 8, 3
# The number of states up to which each is tried alone, and each two are exchanged.
MOST_STATES = 6
# The number of calls in float64 by which lost units are looked for, and of units that are told.
MOST_TRIES, MOST_TOLD = 1024, 6
# The length of a state's first axis up to which each part of it is tried.
MOST_PARTS = 8
# The number of units up to which every block of them is tried, and not the last ones alone.
FEW_UNITS = 8


def smallest(
    case: AnsweredCall, relation: Relation, ask: Any, verdict: CaseVerdict
) -> tuple[AnsweredCall, CaseVerdict]:
    """Return the stream of the fewest sequences, then steps, on which a relation fails.

    Args:
        case: the stream on which it fails.
        relation: the relation.
        ask: what runs calls; after this it has run the smallest stream last.
        verdict: the verdict on it.
    """
    best, tried = (case, verdict), 1

    def fails(steps: int, sequences: int) -> bool:
        nonlocal best, tried
        tried += 1
        found = _failure(case, case.call.narrowed(steps, sequences), relation, ask)
        best = found or best
        return found is not None

    steps, sequences = case.call.steps, case.call.sequences
    sequences = next((n for n in range(1, min(sequences, 3)) if fails(steps, n)), sequences)
    passing = 0
    while steps - passing > 1 and tried < TRIES:
        middle = (steps + passing) // 2
        steps, passing = (middle, passing) if fails(middle, sequences) else (steps, middle)
    if tried > 1:
        return _failure(*best[:1], best[0].call, relation, ask) or best
    return best


def _failure(
    case: AnsweredCall, call: StreamCall, relation: Relation, ask: Any
) -> tuple[AnsweredCall, CaseVerdict] | None:
    try:
        smaller = AnsweredCall.of(call, ask, case.profile, case.bounds)
    except UnansweredError:
        return None
    verdict = attempted(smaller, relation, ask)
    return (smaller, verdict) if verdict.verdict is Verdict.DIFFERS else None


def fault_of(case: AnsweredCall, least: AnsweredCall, relation: Relation, ask: Any) -> str:
    """Return the fault that a relation shows in a sentence, or "" if none is known.

    Args:
        case: the stream on which it fails.
        least: the smallest of them, whose calls were made last.
        relation: the relation.
        ask: what runs calls.
    """
    found = FAULTS.get(relation.name.partition("-")[0])
    if not found:
        return ""
    try:
        if found in {_of_session, _of_states, _of_float64}:
            return next(found(least, ask), "")
        ask.turn = ask.turn[-1:]
        repeated = ask(case.call)
        if any(_differs(values, repeated[name]) for name, values in case.outputs.items()):
            found = _of_session
        return next(found(case, ask), "")
    except UnansweredError:
        return ""


class Border:
    """A stream in two parts, the second of which begins with the states after the first."""

    def __init__(self, case: AnsweredCall, ask: Any) -> None:
        self.call: StreamCall = case.call
        self._ask = ask
        self._own, self._allowed = case.outputs, case.closeness.allowed
        self.at = self.call.steps // 2
        self._made: dict[int, Tensors] = {}

    def early(self, steps: int) -> Tensors:
        """Return the outputs of the first steps alone."""
        if steps not in self._made:
            self._made[steps] = self._asked(range(steps), self.call.states)
        return self._made[steps]

    def states(self, steps: int) -> Tensors:
        """Return the states after the first steps, by the inputs that continue them."""
        return self.call.source.states_after(self.early(steps))

    def late(self, states: Tensors, begin: int) -> Tensors:
        """Return the outputs of the steps from one on, after some states."""
        return self._asked(range(begin, self.call.steps), states)

    def call_of(self, steps: range, states: Tensors) -> ModelCall:
        """Return the call of some steps, with some states."""
        feed = taken(self.call.feeds[0], self.call.source.time_axes, steps)
        return self.call.call_of(feed, states)

    def _asked(self, steps: range, states: Tensors) -> Tensors:
        made: Tensors = self._ask.single(self.call_of(steps, states))
        return made

    def wrong(self, made: Tensors, begin: int = 0) -> list[tuple[int, str]]:
        """Return the steps at which outputs differ from the whole's, in order, and which."""
        found = []
        for name, axis in self.call.source.times.items():
            steps = range(begin, begin + made[name].shape[axis])
            own, allowed = (all_[name].take(steps, axis) for all_ in (self._own, self._allowed))
            elements = np.moveaxis(apart(own, made[name], allowed), axis, 0)
            by_step = elements.reshape(len(steps), -1).any(axis=1)
            found += [(begin + int(step), name) for step in np.flatnonzero(by_step)]
        return sorted(found)

    def explains(self, states: Tensors) -> bool:
        """Whether the second part is right with other states."""
        return not self.wrong(self.late(states, self.at), self.at)


def _of_chunks(case: AnsweredCall, ask: Any) -> Iterator[str]:
    """Yield what explains outputs that depend on where a stream is cut."""
    border = Border(case, ask)
    at, ends = border.at, {pair.input: pair.output for pair in case.call.source.streams.pairs}
    if ahead := border.wrong(border.early(at)):
        step, name = ahead[0]
        count = counted(at - step, "step")
        longer = border.early(min(at + at - step, case.call.steps))
        more = "more look-ahead than " * any(each < at for each, _ in border.wrong(longer))
        end = "would explain it" if more else "of look-ahead would explain it"
        yield (
            f"{name} depends on a chunk's border first at step {step}, {count} before it;"
            f" {more}{count} {end}"
        )
        return
    states = border.states(at)
    if not (after := border.wrong(border.late(states, at), at)):
        return
    for one, other in combinations([*states][:MOST_STATES], 2):
        if states[one].shape == states[other].shape and border.explains(
            {**states, one: states[other], other: states[one]}
        ):
            yield (
                f"pair swapped: outputs are right if {one} continues {ends[other]}, and {other}"
                f" continues {ends[one]}"
            )
    for steps in (sign * n for n in range(1, FARTHEST + 1) for sign in (1, -1)):
        if not 0 < at + steps < case.call.steps:
            continue
        moved, count = border.states(at + steps), counted(abs(steps), "step")
        # Each state alone, and all together.
        for names in (*([name] for name in [*states][:MOST_STATES]), [*states]):
            if border.explains({**states, **{name: moved[name] for name in names}}):
                said = ", ".join(ends[name] for name in names)
                last = "step" if steps == 1 else count
                why = (
                    f"{said} lacks the last {last} of a chunk; {count} of look-ahead"
                    if steps > 0
                    else f"{said} is {count} ahead of its chunk; {count} of overlap"
                )
                yield f"chunk border off by {abs(steps)}: {why} would explain it"
    second = range(at, case.call.steps)
    late = border.call_of(second, states), border.late(states, at)
    yield from _unread(case.call, [late])
    yield _after(border, after)


def _after(border: Border, after: list[tuple[int, str]]) -> str:
    """Say which output depends on a border, in how many steps after it."""
    last = {name: step for step, name in after}
    step, name = min(after, key=lambda each: (last[each[1]], each))
    late = counted(step - border.at, "step")
    where = "at it" if step == border.at else f"{late} after it"
    said = f"{name} depends on a chunk's border first at step {step}, {where}"
    to_the_end = [each for each in last if last[each] == border.call.steps - 1]
    count = last[name] - border.at + 1
    begin = border.at - count
    if begin > 0 and name not in to_the_end:
        made = border.wrong(border.late(border.states(begin), begin), begin)
        if all(each != name or step < border.at for step, each in made):
            more = f"; {', '.join(to_the_end)} to the end" if to_the_end else ""
            return f"{said}; {counted(count, 'step')} of overlap would explain it{more}"
    if name not in to_the_end:
        return f"{said}, and to step {last[name]}; no overlap explains it"
    anew = border.call.source.streams.anew
    why = f"; {', '.join(anew)} begin{'s' * (len(anew) == 1)} anew at each call" if anew else ""
    return f"state lost between calls: {said}, and to the end{why}"


def _of_singles(case: AnsweredCall, ask: Any) -> Iterator[str]:
    """Yield which sequence of a batch depends on which other."""
    call, count = case.call, case.call.sequences
    axes = {name: axis.axis for name, axis in call.source.streams.batch.items()}
    for changed in reversed(range(count)):
        feeds = [dict(feed) for feed in call.feeds]
        for feed in feeds:  # with other numbers in one sequence
            for name in set(real(feed)) & axes.keys():
                place = (slice(None),) * axes[name] + (changed,)
                other = other_numbers(feed[name])[place]
                feed[name] = feed[name].copy()
                feed[name][place] = other
        made = ask(replace(call, feeds=tuple(feeds), wanted=()))
        for name, axis in call.batch_axes.items():
            for kept in (n for n in range(count) if n != changed):
                one, other = (each[name].take(kept, axis) for each in (case.outputs, made))
                if not np.array_equal(one, other, equal_nan=True):
                    yield (
                        f"batch mixed: other inputs of sequence {changed} alone change {name} of"
                        f" sequence {kept}"
                    )
    if count > 1:
        yield "no sequence depends on another: a batch of 1 is computed in another way"


def _of_session(case: AnsweredCall, ask: Any) -> Iterator[str]:
    """Yield what of an earlier call a session keeps: a state, or a buffer."""
    for (before, last), (call, made) in pairwise(ask.turn):
        if wrong := [name for name in call.wanted if _differs(call.wanted[name], made[name])]:
            yield from _not_reset(case, call, made, last)
            for old in (last, case.call.source.own(before.inputs)):
                yield from _stale(case, call, made, old, wrong)
            yield f"{', '.join(wrong)} of a call depends on an earlier one of the session"
    yield from _of_states(case, ask)


def _differs(one: Any, other: Any) -> bool:
    return not np.array_equal(one, other, equal_nan=True)


def _not_reset(case: AnsweredCall, call: ModelCall, made: Tensors, last: Tensors) -> Iterator[str]:
    """Yield the states that a call began with instead of those that it was given."""
    source = case.call.source
    left = source.states_after(last)
    # The widest distance between right values of an output, whatever its shape.
    widest = {n: np.nanmax(width, initial=0.0) for n, width in case.closeness.allowed.items()}
    alike = [
        name
        for name, values in left.items()
        if values.shape == call.inputs[name].shape and _differs(values, call.inputs[name])
    ]
    for names in (alike, *([name] for name in alike[:MOST_STATES])):
        given = source.own({**call.inputs, **{name: left[name] for name in names}})
        if names and not any(
            apart(values, made[name], widest[name]).any()
            for name, values in given.items()
            if name in case.outputs
        ):
            yield (
                f"reset missing: the call begins with {', '.join(names)} as the call before it"
                " left it, not as it is given"
            )
            return


def _stale(
    case: AnsweredCall, call: ModelCall, made: Tensors, last: Tensors, wrong: list[str]
) -> Iterator[str]:
    """Yield the output whose wrong elements are all those of another call at the same place."""
    for name in wrong:
        new, old = made[name], last[name]
        if new.ndim != old.ndim:
            continue
        both = tuple(slice(0, min(sizes)) for sizes in zip(new.shape, old.shape, strict=True))
        differs = new != call.wanted[name]
        widest = np.nanmax(case.closeness.allowed[name], initial=0.0)
        kept = differs[both] & ~apart(new[both], old[both], widest)
        count = int(np.count_nonzero(differs))
        if np.count_nonzero(kept) == count:
            yield (
                f"stale buffer: the {counted(count, 'wrong element')} of {name} are those of the"
                " call before it"
            )
            return


def _of_states(case: AnsweredCall, ask: Any) -> Iterator[str]:
    """Yield the units of a state that a call of a relation does not read."""
    yield from _unread(case.call, ask.turn)


def _of_float64(case: AnsweredCall, _: Any) -> Iterator[str]:
    yield from _unread(case.call, case.call.calls(lambda call: call.wanted))


def _unread(stream: StreamCall, calls: Iterable[tuple[ModelCall, Tensors]]) -> Iterator[str]:
    """Yield the units of a state without which, or with those before, the first wrong is right."""
    call, made = next((each for each in calls if each[0].wrong(each[1])), (stream.first, {}))
    left = MOST_TRIES
    for name in stream.states if made else ():
        values = call.inputs[name]
        others = [stream.states[name], np.zeros_like(values)]
        for other in others[: 2 if others[0].any() else 1]:
            if values.shape != other.shape or not values.ndim or np.array_equal(values, other):
                continue
            # Layers, directions and h beside c are most often the first axis.
            parts = range(values.shape[0]) if values.ndim > 2 else ()
            some = parts if 1 < len(parts) <= MOST_PARTS else ()
            for place in (..., *some):
                if (left := left - 2 * values.shape[-1]) < 0:
                    return
                distances = partial(_distances, call, made, (name, place), other)
                for unread in _guesses(range(values.shape[-1]), distances):
                    if all(np.abs(each).max(initial=0) <= 1 for each in distances(unread)):
                        where = name if place is ... else f"{name}[{place}]"
                        is_whole = len(unread) == values.shape[-1]
                        which = "" if is_whole else f"{_listed(unread)} of "
                        yield f"state not used: {which}{where}"


def _distances(
    call: ModelCall, made: Tensors, part: tuple[str, Any], other: Any, some: list[int]
) -> Iterator[Any]:
    """Yield how far outputs are, as shares of the allowed distance, with some units of another.

    A part is a state, and a place along its first axis or all of it.
    """
    name, place = part
    mixed = call.inputs[name].copy()
    mixed[place][..., some] = other[place][..., some]
    exact = call.source.exact({**call.inputs, name: mixed})
    for each in real(made):
        with np.errstate(all="ignore"):
            yield np.nan_to_num((exact[each] - made[each]) / call.allowed[each])


def _guesses(units: range, distances: Callable[[list[int]], Iterable[Any]]) -> Iterator[list[int]]:
    """Yield units without which outputs may be right: all, one, any few, or a block or tail."""

    def squares(some: list[int]) -> float:
        return sum(float(np.sum(np.square(each))) for each in distances(some))

    before = squares([])
    yield [*units]
    nearer = sorted((found, unit) for unit in units if (found := squares([unit])) < before)
    yield from ([unit] for _, unit in nearer[:MOST_TOLD])
    if nearer:
        yield sorted(unit for _, unit in nearer)
    if len(units) <= FEW_UNITS:
        yield from ([*range(a, b + 1)] for b in units for a in units if a < b)
    else:
        yield from ([*range(begin, len(units))] for begin in units[1:-1])


def units(elements: Any) -> str:
    """Return the units, along the last axis, of which elements of a state are meant, in words."""
    return _listed(sorted({int(at) for at in np.nonzero(elements)[-1]}))


def _listed(some: Sequence[int]) -> str:
    if len(some) == 1:
        return f"unit {some[0]}"
    if [*some] == [*range(some[0], some[-1] + 1)]:
        return f"units {some[0]} to {some[-1]}"
    return f"units {listed([*map(str, some)], MOST_TOLD)}"


def _of_padding(case: AnsweredCall, _: Any) -> Iterator[str]:
    lengths = ", ".join(sorted(case.call.source.lengths))
    yield f"padding used: steps beyond {lengths} take part in what is computed"


# The first word of a relation's name -> yields the faults that explain it, the best first.
FAULTS: Mapping[str, Callable[[AnsweredCall, Any], Iterator[str]]] = {
    "chunks": _of_chunks,
    "singles": _of_singles,
    "again": _of_session,
    "sizes": _of_session,
    "states": _of_states,
    "float64": _of_float64,
    "padding": _of_padding,
}
