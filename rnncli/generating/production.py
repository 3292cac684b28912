"""Production of vectors: the goldens, tolerances, alternative answers and models of entries.

Entries that differ only in their random inputs are made together: their common parts are read,
checked and built once, and the rest is computed for all at once.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from rnncli.errors import ConfigError, InvalidRequest, Unsupported
from rnncli.generating.completion import completed
from rnncli.generating.draft import Draft, draft_of
from rnncli.generating.stack import groups, stacks
from rnncli.judging.tolerances.derivation import derive_all
from rnncli.numerics.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.generating.goldens import Solution
    from rnncli.generating.source import CaseSource
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Result

Produced = TypeVar("Produced")


def make_vectors(entries: Sequence[CaseSource]) -> Iterator[Vector | Exception]:
    """Make the vectors of some entries, each a pure function of the suite's text and its id.

    Yields:
        For each entry its vector, or an exception: ConfigError if the suite's text is wrong,
        Unsupported if an element cannot be proved or the extra that proves is not installed,
        InvalidRequest if the case is ill-conditioned, not exact although its profile is, or not
        invalid although it should be.
    """
    found = dict(outcomes(entries))
    yield from (found[entry.id] for entry in entries)


def outcomes(entries: Sequence[CaseSource]) -> Iterator[tuple[str, Vector | Exception]]:
    """Yield the id of each entry with its vector or exception, grouped by structure."""
    yield from _outcomes(groups(entries))


def _outcomes(found: Iterable[Sequence[CaseSource]]) -> Iterator[tuple[str, Vector | Exception]]:
    """Yield the outcomes of groups; if a group fails, its entries are made one by one."""
    drafts = [(group, _attempt(group, _drafts, group)) for group in found]
    begun = [draft for _, each in drafts if not isinstance(each, Exception) for draft in each]
    whole = [each for draft in begun for each in draft.calls]
    tolerances = _tolerances(whole)
    for group, some in drafts:
        made = some if isinstance(some, Exception) else _attempt(group, _finished, some, tolerances)
        if not isinstance(made, Exception):
            yield from ((vector.id, vector) for vector in made)
        elif len(group) > 1:
            yield from _outcomes([entry] for entry in group)
        else:
            yield group[0].id, made


def _attempt(
    group: Sequence[CaseSource], function: Callable[..., Produced], *arguments: Any
) -> Produced | Exception:
    """Return the result of a function, or its exception, which names the group's first case."""
    name = group[0].id
    try:
        return function(*arguments)
    except InvalidRequest as error:
        named = isinstance(error, ConfigError) or name in str(error)
        return error if named else InvalidRequest(f"{name}: {error}")
    except Unsupported as error:
        return Unsupported(f"{name}: {error}")
    except Exception as error:  # noqa: BLE001 -- a bug of ours in one case must not stop others
        return error


def _drafts(group: Sequence[CaseSource]) -> list[Draft]:
    return [draft_of(stack) for stack in stacks(group)]


def _tolerances(drafts: Sequence[Draft]) -> dict[int, Result]:
    """Derive the tolerances of all solutions, by the identity of the solution."""
    by_profile: dict[str, list[Solution]] = {}
    for draft in drafts:
        some = by_profile.setdefault(draft.stack.entries[0].profile, [])
        some += draft.solutions.values()
    found: dict[int, Result] = {}
    for name, solutions in by_profile.items():
        derived = derive_all([(s.recurrence, s.golden) for s in solutions], PROFILES[name])
        found |= {id(s): tolerance for s, tolerance in zip(solutions, derived, strict=True)}
    return found


def _finished(drafts: Sequence[Draft], tolerances: Mapping[int, Result]) -> Iterator[Vector]:
    return chain.from_iterable([completed(draft, tolerances) for draft in drafts])
