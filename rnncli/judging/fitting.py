"""The simplest requirement of a field that fits what was taken and what was refused.

Simple is what has few numbers and names: `hidden_size<=256` is simpler than a list of sizes, and
`batch_size=1|4` simpler than what is left by 3 and a bound.
"""

from __future__ import annotations

import re
from math import gcd
from typing import TYPE_CHECKING, Any

from rnncli.judging.comparing.requirements import FIELDS, NEVER, NONE, NUMERIC, Requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def shown_value(value: Any) -> str:
    """Return a value as a requirement has it: `16`, `never`, `Y+Y_h`; `none` for no words."""
    return ("+".join(value) or NONE) if isinstance(value, list) else str(value)


def term_of(field: str, value: Any) -> str:
    """Return the requirement that a field has a value: `hidden_size=16`, `outputs==Y+Y_h`."""
    return f"{field}{'==' if isinstance(value, list) else '='}{shown_value(value)}"


def simplest(
    field: str, taken: Sequence[Any], refused: Sequence[Any], unknown: Sequence[Any] = ()
) -> str:
    """Return the simplest requirement that takes what was taken and refuses what was refused.

    Args:
        field: a name of `FIELDS`, or several of numbers joined by +.
        taken: numbers, words, or lists of words, at least one.
        refused: likewise.
        unknown: what was asked without an answer, which a list of values has as well.

    Returns:
        Terms joined by commas; "" if nothing was refused.
    """
    if not refused:
        return ""
    candidates = _candidates(field, taken, refused, unknown)
    fitting = (each for each in candidates if fits(each, field, taken, refused))
    return min(fitting, key=lambda text: len(re.findall(r"[\w.]+", text)))


def fits(expression: str, field: str, taken: Sequence[Any], refused: Sequence[Any]) -> bool:
    """Whether a requirement takes all values of a field that were taken, and none refused."""
    needs = Requirements.parse([expression])
    name, *others = field.split("+")
    rest = dict.fromkeys(others, 0)  # of a sum, whose values are all in the first
    is_met = [needs.admits(**{name: each}, **rest) for each in (*taken, *refused)]
    return all(is_met[: len(taken)]) and not any(is_met[len(taken) :])


def _candidates(
    field: str, taken: Sequence[Any], refused: Sequence[Any], unknown: Sequence[Any]
) -> Iterator[str]:
    kind = FIELDS[field.partition("+")[0]].kind

    def listed(sign: str, values: Iterable[Any]) -> str:
        return f"{field}{sign}{'|'.join(dict.fromkeys(map(shown_value, values)))}"

    if kind == "words":
        if len(taken) == 1:
            yield listed("==", (*taken, *unknown))
        used = _words(field, (*taken, *unknown))
        never = [word for word in _words(field, refused) if word not in used]
        always = [word for word in used if all(word in some for some in (*taken, *unknown))]
        parts = [listed("!=", never)] * bool(never) + [listed(">=", always)] * bool(always)
        yield from parts
        yield ",".join(parts) or listed("==", taken)
        yield listed("=", used) if used else listed("==", taken)
        yield listed("==", sorted((*taken, *unknown), key=len))
        return
    if len(taken) == 1 or kind not in NUMERIC or NEVER in taken:
        yield listed("=", (*taken, *unknown))
        yield listed("!=", refused)
        return
    numbers = sorted(taken)
    step = 0
    for number in numbers if kind == "number" else ():
        step = gcd(step, number - numbers[0])
    most, least = listed("<=", numbers[-1:]), listed(">=", numbers[:1])
    yield from (most, least, f"{least},{most}")
    if step > 1:
        multiple = f"{field}%{step}={numbers[0] % step}"
        yield from (multiple, f"{multiple},{most}", f"{multiple},{least}")
        yield f"{multiple},{least},{most}"
    yield listed("=", sorted((*taken, *unknown)))


def _words(field: str, values: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of several values, in the order of the specification."""
    some = {word for value in values for word in value}
    return [word for word in FIELDS[field].values if word in some]
