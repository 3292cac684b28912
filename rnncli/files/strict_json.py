"""Strict parsing of untrusted JSON: unique keys, no NaN, valid text, bounded nesting."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from rnncli.errors import InvalidRequest

DEEPEST = 32
LONGEST_NUMBER = 40  # characters: a float64 has 24, an integer of 64 bits 20


def parse_json(text: str | bytes, *, surrogates: bool = False) -> Any:
    """Return the value of a JSON text.

    Escapes of half a surrogate pair may be allowed, as in messages whose bytes are no UTF-8.

    Raises:
        InvalidRequest: it is not JSON, has a key twice, NaN, an infinity, a number of more than 40
            characters, half a surrogate pair, or more than 32 levels.
    """
    try:
        written = text if isinstance(text, str) else text.decode()
        value = _decoder.decode(written.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(f"is not JSON: {reason}") from error
    _check_depth(value)
    if not surrogates and ("\\u" in written or "\\U" in written):
        try:  # escapes of half a surrogate pair
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest("is not JSON: contains half a surrogate pair") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} stands in an object twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:LONGEST_NUMBER]} is not finite")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_constant
)


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise InvalidRequest(f"is nested more than {DEEPEST} deep")
