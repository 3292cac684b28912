"""Gathers what is wrong with a file, so that all of it is said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.errors import ConfigError

if TYPE_CHECKING:
    from rnncli.errors import Place

MOST_FINDINGS = 100
LONGEST_SENTENCE = 500


class Findings(list[tuple["Place", str]]):
    """Places and sentences, in the order found."""

    def add(self, place: Place, sentence: str) -> None:
        """Note a finding.

        Raises:
            ConfigError: it is the hundredth; a hostile file could hold any number.
        """
        if len(sentence) > LONGEST_SENTENCE:  # it quotes a name of any length
            sentence = f"{sentence[:LONGEST_SENTENCE]}..."
        self.append((place, sentence))
        if len(self) == MOST_FINDINGS:
            self.append((place, f"{MOST_FINDINGS} findings; the rest of the file was not checked"))
            self.raise_any()

    def raise_any(self) -> None:
        """Raise them, if there are any.

        Raises:
            ConfigError: with all of them, in the order of the file.
        """
        if self:
            raise ConfigError(sorted(dict.fromkeys(self), key=lambda finding: finding[0][1:]))
