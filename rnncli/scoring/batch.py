"""What a worker does: read or make the vectors of a batch, and put every mutant to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.suite import Suite, parse_suite
from rnncli.errors import RnncliWarning
from rnncli.generating.making import make_vectors
from rnncli.judging.adequacy import outcomes, unscored
from rnncli.judging.kill_matrix import Row
from rnncli.mutants.table import mutants_of
from rnncli.operators import operator_named
from rnncli.vectors.pack import Pack, open_pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.generating.batch import Source
    from rnncli.judging.rule import Rule
    from rnncli.vectors.vector import Vector


@dataclass(frozen=True, slots=True)
class Batch:
    """Some cases of a pack or suite.

    Attributes:
        origin: the folder of the pack, absolute; or the suite.
        ids: which of its cases.
        rule: by which tolerances mutants are judged.
    """

    origin: Path | Source
    ids: tuple[str, ...]
    rule: Rule


class Unscored(NamedTuple):
    """A vector that says nothing of mutants."""

    id: str
    reason: str


def work(batch: Batch) -> list[Row | Unscored]:
    """Score the vectors of a batch.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    return [_scored(vector, batch.rule) for vector in _vectors(batch)]


def _scored(vector: Vector, rule: Rule) -> Row | Unscored:
    if reason := unscored(vector):
        return Unscored(vector.id, reason)
    cell = operator_named(vector.record["operator"]).cell
    found = outcomes(vector, mutants_of(cell.name), rule)
    return Row(vector.id, cell.name, vector.record["dtype"], found)


def _vectors(batch: Batch) -> Iterator[Vector]:
    if isinstance(batch.origin, Path):
        pack = _pack(batch.origin)
        yield from (pack.read(pack.case(case_id)) for case_id in batch.ids)
        return
    suite = _suite(batch.origin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` says them
        made = list(make_vectors([suite.entry(case_id) for case_id in batch.ids]))
    for vector in made:
        if isinstance(vector, Exception):
            raise vector
        yield vector


@lru_cache(maxsize=1)
def _pack(folder: Path) -> Pack:
    return open_pack(folder)


@lru_cache(maxsize=1)
def _suite(source: Source) -> Suite:
    return parse_suite(source.text, source.file, source.folder, seed=source.seed)
