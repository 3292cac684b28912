"""Selection by `-k EXPR`: words with and, or, not and parentheses, as in pytest."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from rnncli.errors import InvalidRequest, NothingSelected, did_you_mean
from rnncli.numerics import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Case = TypeVar("Case")
Test: TypeAlias = "Callable[[str], bool]"

# The precedence and the number of operands of each operator.
_OPERATORS: Mapping[str, tuple[int, int]] = {"or": (1, 2), "and": (2, 2), "not": (3, 1)}
# The prefix of a word that is a whole id.
ID = "id:"
_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")


class Selection:
    """A parsed expression.

    Args:
        expression: `LSTM and not (float16 or bfloat16)`; "" selects everything.

    Raises:
        InvalidRequest: it is not an expression; the message has the position.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._steps = list(_postfix(expression))

    def chosen(
        self,
        cases: Sequence[Case],
        is_called: Callable[[Case, str], bool],
        subject: str,
        words_of: Callable[[Case], Iterable[str]],
    ) -> list[Case]:
        """Return the cases that are selected.

        Args:
            cases: all of them.
            is_called: whether a lower-case word is true of a case.
            subject: what has them.
            words_of: the id and the flags of a case.

        Raises:
            NothingSelected: none is; the sentence names words that are true of no case.
        """
        found = [case for case in cases if self(partial(is_called, case))]
        if found:
            return found
        words = dict.fromkeys(word for kind, word in self._steps if kind == "word")
        unknown = [word for word in words if not any(is_called(case, word) for case in cases)]
        why = f"'{self.expression}' selects" if words else "there is"
        hint = ""
        if unknown:
            listed = " or ".join(f"'{word}'" for word in unknown)
            known = dict.fromkeys(word for case in cases for word in words_of(case))
            parts = [word.split("_") for word in known]
            known |= dict.fromkeys(part for each in parts for part in each)
            known |= dict.fromkeys("_".join(two) for each in parts for two in pairwise(each))
            nearest = (did_you_mean(word.removeprefix(ID), known) for word in unknown)
            hint = f"; no case has {listed} in its id or flags{next(filter(None, nearest), '')}"
            if dtype := next((word for word in unknown if word in DTYPES), ""):
                hint += f"; for dtypes `rnncli verify` has --require dtype={dtype}"
        raise NothingSelected(f"{subject}: {why} no case of {len(cases)}{hint}")

    def __call__(self, test: Test) -> bool:
        """Whether a case is selected, given whether a lower-case word is true of it."""
        stack: list[bool] = []
        for kind, word in self._steps:
            if kind == "word":
                stack.append(test(word))
            elif kind == "not":
                stack.append(not stack.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(left and right if kind == "and" else left or right)
        return stack.pop() if stack else True


def is_called(word: str, case_id: str, flags: Iterable[str]) -> bool:
    """Return whether a lower-case word is part of an id, `id:` plus the whole id, or a flag."""
    if word.startswith(ID):
        return word.removeprefix(ID) == case_id.lower()
    return word in case_id or any(word == flag.lower() for flag in flags)


class NamedCase(Protocol):
    """A case with an id and flags."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def flags(self) -> Sequence[str]:
        """The bugs it can find."""


def words_of(case: NamedCase) -> tuple[str, ...]:
    """Return the words that `is_called` compares: the id and the flags of a case."""
    return (case.id, *case.flags)


def _postfix(expression: str) -> Iterator[tuple[str, str]]:
    """Yield words and operators in postfix order (Dijkstra's shunting yard)."""
    waiting: list[str] = []
    operand_due = bool(expression.strip())
    for match in _TOKEN.finditer(expression):
        token = match[1]
        kind = token.lower()
        if (kind in {"and", "or", ")"}) == operand_due:
            wanted = "a word" if operand_due else "and, or or the end"
            raise InvalidRequest(_wrong(expression, match.start(1), f"expected {wanted}"))
        if kind == ")":
            yield from _popped(waiting, 0)
            if not waiting:
                raise InvalidRequest(_wrong(expression, match.start(1), "nothing to close"))
            waiting.pop()
        elif kind == "(" or kind in _OPERATORS:
            if kind in {"and", "or"}:
                yield from _popped(waiting, _OPERATORS[kind][0])
            waiting.append(kind)
            operand_due = True
        else:
            yield "word", kind
            operand_due = False
    if operand_due or "(" in waiting:
        missing = "a word" if operand_due else "a closing parenthesis"
        raise InvalidRequest(_wrong(expression, len(expression), f"{missing} is missing"))
    yield from _popped(waiting, 0)


def _popped(waiting: list[str], least: int) -> Iterator[tuple[str, str]]:
    """Pop and yield operators of at least a precedence, down to a parenthesis."""
    while waiting and waiting[-1] != "(" and _OPERATORS[waiting[-1]][0] >= least:
        yield waiting.pop(), ""


def _wrong(expression: str, position: int, sentence: str) -> str:
    return f"cannot select by '{expression}': {sentence} at character {position + 1}"
