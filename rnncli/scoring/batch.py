"""What a worker does: read or make the vectors of a batch, and put every mutant to them."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import RnncliWarning
from rnncli.generating.making import make_vectors
from rnncli.judging.kill_matrix import whole_row
from rnncli.vectors.pack import Pack, open_pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.cases.suite import Suite
    from rnncli.judging.kill_matrix import Row, Unscored
    from rnncli.judging.rule import Rule
    from rnncli.vectors.vector import Vector


def work(origin: Path | Suite, rule: Rule, ids: Sequence[str]) -> list[Row | Unscored]:
    """Score some vectors of a pack or suite.

    Args:
        origin: the folder of the pack, absolute; or the suite.
        rule: by which tolerances mutants are judged.
        ids: which of its cases.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    return [whole_row(vector, rule) for vector in vectors_of(origin, ids)]


def vectors_of(origin: Path | Suite, ids: Sequence[str]) -> Iterator[Vector]:
    """Yield some vectors of a pack or suite, those of a suite made in memory.

    Args:
        origin: the folder of the pack, absolute; or the suite.
        ids: which of its cases.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    if isinstance(origin, Path):
        pack = _pack(origin)
        yield from (pack.read(pack.case(case_id)) for case_id in ids)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` says them
        made = list(make_vectors([origin.entry(case_id) for case_id in ids]))
    for vector in made:
        if isinstance(vector, Exception):
            raise vector
        yield vector


@lru_cache(maxsize=1)
def _pack(folder: Path) -> Pack:
    return open_pack(folder)
