"""What a worker does: read or make the vectors of a batch, and put every mutant to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import RnncliWarning
from rnncli.generating.making import make_vectors
from rnncli.judging.kill_matrix import row_of
from rnncli.vectors.pack import Pack, open_pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.generating.batch import Source
    from rnncli.judging.kill_matrix import Row, Unscored
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


def work(batch: Batch) -> list[Row | Unscored]:
    """Score the vectors of a batch.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    return [row_of(vector, batch.rule) for vector in _vectors(batch)]


def _vectors(batch: Batch) -> Iterator[Vector]:
    if isinstance(batch.origin, Path):
        pack = _pack(batch.origin)
        yield from (pack.read(pack.case(case_id)) for case_id in batch.ids)
        return
    suite = batch.origin.suite()
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
