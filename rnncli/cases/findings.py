"""Findings about a file, collected so that all are reported at once."""

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
        """Add a finding.

        Raises:
            ConfigError: there are a hundred; a hostile file may have any number.
        """
        if len(sentence) > LONGEST_SENTENCE:  # it may quote a long name
            sentence = f"{sentence[:LONGEST_SENTENCE]}..."
        self.append((place, sentence))
        if len(self) == MOST_FINDINGS:
            self.append((place, f"{MOST_FINDINGS} findings; the rest of the file was not checked"))
            self.raise_any()

    def raise_any(self) -> None:
        """Raise if there are findings.

        Raises:
            ConfigError: all findings, in file order.
        """
        if self:
            raise ConfigError(sorted(dict.fromkeys(self), key=lambda finding: finding[0][1:]))
