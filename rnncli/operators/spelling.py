"""How a model spells a node: what a reader of models meets and a kernel does not."""

from __future__ import annotations

from typing import NamedTuple

# The dimensions that a model may leave open; all others are those of its weights.
OPEN = frozenset({"seq_length", "batch_size"})


class Spelling(NamedTuple):
    """How a model spells a node, which does not change what it computes."""

    empty_names: bool = False  # whether absent inputs at the end also become ""
    # whether steps and batch are names instead of numbers, as in exported models
    open_sizes: bool = False


PLAIN = Spelling()
