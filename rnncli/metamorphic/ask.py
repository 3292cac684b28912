"""What a relation asks, and what keeps it from an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.node_call import NodeCall


class InapplicableError(Exception):
    """A relation does not apply to an implementation; `str()` says why."""


class Ask(Protocol):
    """Puts calls to one implementation."""

    def __call__(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call, each of the right shape and dtype."""

    def after(self, calls: list[NodeCall]) -> Tensors:
        """Return the outputs of the last of some calls of one session."""

    def in_threads(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call for which several threads may be used.

        Raises:
            InapplicableError: the implementation has no setting for that.
        """
