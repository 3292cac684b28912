"""Features that tell cases apart: attributes, inputs, sizes and contents of tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

# A size of a case -> the topic of patterns about it.
SIZES: Mapping[str, str] = {
    "hidden_size": "units",
    "batch_size": "rows",
    "seq_length": "steps",
    "input_size": "inputs",
}
# Block widths of kernels; the remainder often has code of its own.
WIDTHS = (4, 8, 16)
TOPICS: Mapping[str, str] = {
    "activations": "activations",
    "activation_alpha": "activations",
    "activation_beta": "activations",
    "sequence_lens": "lengths",
}
# Attributes, by role, that WORDS covers, or that say nothing.
ELSEWHERE = {"hidden_size", "seq_length", "direction", "layout"}


def _lengths(vector: Vector) -> Array:
    recurrence = vector.recurrence
    return np.zeros(0, np.int64) if recurrence.lengths is None else recurrence.lengths


def _has_lost_numbers(vector: Vector) -> bool:
    given = (values.astype(np.float64) for values in vector.inputs.values())
    return not all(np.isfinite(values).all() for values in given)


# Phrase, topic, and the cases in which it holds.
WORDS: tuple[tuple[str, str, Callable[[Vector], bool]], ...] = (
    ("layout 1", "layout", lambda v: v.record["requirements"]["layout"] == 1),
    ("a reverse direction", "directions", lambda v: Direction.REVERSE in v.recurrence.directions),
    ("two directions", "directions", lambda v: len(v.recurrence.directions) > 1),
    ("padding", "lengths", lambda v: bool((_lengths(v) < len(v.recurrence.X)).any())),
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
    """The features of a case.

    Attributes:
        words: noun phrase, such as "clip" or "padding" -> the topic of a pattern about it.
        sizes: the four sizes, by name.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def features_of(vector: Vector) -> Features:
    """Return the features of a case."""
    return Features(dict(_words(vector)), dict(vector.record["sizes"]))


def _words(vector: Vector) -> Iterator[tuple[str, str]]:
    needs = vector.record["requirements"]
    rows = vector.node.operator.attributes
    roles = {name: row.role or name for name, row in rows.items()}
    for name in (*needs["attributes"], *needs["inputs"]):
        if roles.get(name) not in ELSEWHERE:
            yield name, TOPICS.get(name, name)
    yield from ((name, "activations") for name in needs["activations"])
    yield from ((phrase, topic) for phrase, topic, holds in WORDS if holds(vector))
    yield f"dtype {needs['dtype']}", "dtype"
    yield from ((f"{name} requested", "outputs") for name in vector.record["outputs"])


@dataclass(frozen=True, slots=True, eq=False)
class SharedFeature:
    """A condition that some cases meet.

    Attributes:
        phrase: the condition in words: "with clip", "where hidden_size > 8".
        topic: its topic.
        holds: mask of the cases that meet it.
    """

    phrase: str
    topic: str
    holds: Array


def conditions(cases: Sequence[Features]) -> Iterator[SharedFeature]:
    """Yield the conditions that some but not all of the cases meet, the simplest first."""
    for condition in (*_of_words(cases), *_of_sizes(cases)):
        if 0 < np.count_nonzero(condition.holds) < len(cases):
            yield condition


def _of_words(cases: Sequence[Features]) -> Iterator[SharedFeature]:
    words = {phrase: topic for case in cases for phrase, topic in case.words.items()}
    for phrase, topic in words.items():
        has = np.array([phrase in case.words for case in cases])
        yield SharedFeature(f"with {phrase}", topic, has)
        yield SharedFeature(f"without {phrase}", topic, ~has)


def _of_sizes(cases: Sequence[Features]) -> Iterator[SharedFeature]:
    if not all(case.sizes.keys() >= SIZES.keys() for case in cases):
        return
    table = {name: np.array([case.sizes[name] for case in cases]) for name in SIZES}
    for name, values in table.items():
        yield SharedFeature(f"where {name} = 1", SIZES[name], values == 1)
        for value in np.unique(values)[:-1].tolist():
            yield SharedFeature(f"where {name} > {value}", SIZES[name], values > value)
            yield SharedFeature(f"where {name} <= {value}", SIZES[name], values <= value)
        for width in WIDTHS:
            phrase = f"where {name} is not a multiple of {width}"
            yield SharedFeature(phrase, SIZES[name], values % width != 0)
    for (one, a), (other, b) in zip(table.items(), [*table.items()][1:], strict=False):
        yield SharedFeature(f"where {one} = {other}", SIZES[one], a == b)
