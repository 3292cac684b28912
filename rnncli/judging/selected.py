"""Which cases of a pack are judged, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest
from rnncli.options import OptionKind, OptionValues, option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.judging.comparing.requirements import Requirements


class Shard(NamedTuple):
    """A part of the cases that are selected: every n-th starting with the i-th, written `i/n`."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """The end of the name of a run: " 2/4"; "" if it is not one of several."""
        return f" {self}" if self.of > 1 else ""

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `i/n`, 1 <= i <= n.

        Raises:
            InvalidRequest: the text is not of this form.
        """
        number, _, of = text.partition("/")
        is_whole = number.isdecimal() and of.isdecimal()
        if not (is_whole and 1 <= int(number) <= int(of)):
            raise InvalidRequest(f"--shard {text}: expected i/n with 1 <= i <= n")
        return cls(int(number), int(of))


ALL = Shard()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(OptionValues):
    """Which cases are judged, and in which order; all of them, in the pack's, unless given.

    Attributes:
        select: Only cases that EXPR selects: words joined by and, or, not and parentheses. A word
            is a part of an id, or a feature; id:ID is exactly one case: -k 'id:gru_14_clip or
            id:lstm_1_plain'.
        require: Skip the cases that need more than the implementation can do. A comma is an `and`,
            a bar an `or`: --require 'opset<=14' --require 'dtype=float32|float16'.
        device: Skip the cases that are not within what a device takes, as FILE says
            (docs/howto/limits.md): YAML with `device`, its name, and `require`, a list of EXPR.
        shard: Judge part i of n: every n-th case.
        shuffle: Run the cases in a random order, to find state that is kept from case to case.
            Reports keep the order of the pack.
    """

    select: str = option("", "-k", metavar="EXPR", joins=True)
    require: str | Sequence[str] = option((), kind=OptionKind.WORDS, metavar="EXPR[,...]")
    device: str | Path = option("", kind=OptionKind.READ, metavar="FILE")
    shard: str = option("1/1", metavar="i/n")
    shuffle: int | None = option(None, kind=OptionKind.NUMBER, metavar="SEED")

    @property
    def part(self) -> Shard:
        """The part of the cases.

        Raises:
            InvalidRequest: it is not of the form i/n.
        """
        return Shard.parse(self.shard)

    @property
    def requirements(self) -> Requirements:
        """What the implementation supports, and its device takes.

        Raises:
            InvalidRequest: an expression is not a requirement, or the file is not a device's.
        """
        from rnncli.judging.comparing.requirements import Requirements

        texts = [self.require] if isinstance(self.require, str) else [*self.require]
        if self.device:
            from rnncli.judging.device import read_device

            texts += read_device(self.device).require
        return Requirements.parse(text for text in texts if text)

    @property
    def limits(self) -> list[str]:
        """What the implementation supports as options of a command line."""
        needs = replace(self, device="").requirements.expression
        own = ["--require", needs] if needs else []
        return [*own, "--device", f"{self.device}"] if self.device else own

    @property
    def order(self) -> list[str]:
        """The order of the cases as options of a command line."""
        return [] if self.shuffle is None else ["--shuffle", f"{self.shuffle}"]


EVERY_CASE = Selected()
