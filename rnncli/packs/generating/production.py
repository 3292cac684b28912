"""Making the vectors of a suite's entries: golden, tolerances, other readings' answers, model.

Entries that are alike but for their random inputs are made side by side: what they have in common
is read, checked and built once, the rest is computed for all of them at once.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from rnncli.errors import ConfigError, InvalidRequest, Unsupported
from rnncli.judging.tolerances.derivation import derive_all
from rnncli.packs.generating.completion import completed
from rnncli.packs.generating.draft import Draft, draft_of
from rnncli.packs.generating.stack import groups, stacks
from rnncli.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.packs.generating.goldens import Solution
    from rnncli.packs.generating.source import Origin
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Result

Found = TypeVar("Found")


def make_vectors(entries: Sequence[Origin]) -> Iterator[Vector | Exception]:
    """Make the vectors of some entries, each a pure function of the suite's text and its id.

    Yields:
        For each entry its vector, or why there is none: ConfigError when the suite's text is wrong,
        Unsupported when an element cannot be proved or the extra that proves is not installed,
        InvalidRequest when the case is ill-conditioned, not exact as its profile says, or not
        invalid as it should be.
    """
    found = dict(outcomes(entries))
    yield from (found[entry.id] for entry in entries)


def outcomes(entries: Sequence[Origin]) -> Iterator[tuple[str, Vector | Exception]]:
    """Yield the id of each entry and what `make_vectors` makes of it, those alike together."""
    yield from _outcomes(groups(entries))


def _outcomes(found: Iterable[Sequence[Origin]]) -> Iterator[tuple[str, Vector | Exception]]:
    """Yield what comes of every entry of some groups; where one fails, each of it is made alone."""
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
    group: Sequence[Origin], function: Callable[..., Found], *arguments: Any
) -> Found | Exception:
    """Return what a function makes of a group, or its exception, which names the case."""
    name = group[0].id
    try:
        return function(*arguments)
    except InvalidRequest as error:
        named = isinstance(error, ConfigError) or name in str(error)
        return error if named else InvalidRequest(f"{name}: {error}")
    except Unsupported as error:
        return Unsupported(f"{name}: {error}")
    except Exception as error:  # noqa: BLE001 -- our own bug in one case is not the next one's
        return error


def _drafts(group: Sequence[Origin]) -> list[Draft]:
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
