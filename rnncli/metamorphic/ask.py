"""The interface by which relations call an implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.node_call import NodeCall


class InapplicableError(Exception):
    """A relation does not apply to an implementation; `str()` is the reason."""


class Ask(Protocol):
    """Runs calls on one implementation."""

    def __call__(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call, each checked for shape and dtype."""

    def after(self, calls: list[NodeCall]) -> Tensors:
        """Return the outputs of the last of several calls in one session."""

    def in_threads(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call that may use several threads.

        Raises:
            InapplicableError: the implementation has no setting for threads.
        """
