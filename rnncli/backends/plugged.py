"""A backend of another package: its failures, and results that are none, name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.plugins import calling, load
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.numerics import Array
    from rnncli.plugins import Plugin
    from rnncli.recurrence.recurrence import Recurrence


class PluggedBackend:
    """A `Backend` whose code is another package's.

    Raises:
        Unsupported: the package lacks something that it needs.
        PluginFailure: from any part, when the code fails.
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        maker = load(plugin)
        with calling(plugin):
            self._backend = maker()
            self.name = str(getattr(self._backend, "name", plugin.name))
            self.summary = str(getattr(self._backend, "summary", ""))

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why it cannot evaluate this, or None when it can."""
        with calling(self._plugin):
            reason = self._backend.supports(recurrence, compute)
            return None if reason is None else str(reason)

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate, and check that the result has the form it should."""
        with calling(self._plugin):
            result = self._backend.run(recurrence, compute)
            _check(result, recurrence)
        return result  # type: ignore[no-any-return]


def _check(result: Any, recurrence: Recurrence) -> None:
    """Refuse what is no result of a recurrence.

    Raises:
        TypeError: it is no `Result`, or does not hold what it should.
    """
    if not isinstance(result, Result):
        raise TypeError(f"run gave {type(result).__name__}, not a Result")
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    states = recurrence.cell.states
    if len(result.last) != states:
        raise TypeError(f"run gave {len(result.last)} last states, not {states}")
    for state in result.last:
        _check_array(state, (D, N, H), recurrence)
    if recurrence.wants_Y:
        _check_array(result.Y, (T, D, N, H), recurrence)


def _check_array(array: Array | None, shape: tuple[int, ...], recurrence: Recurrence) -> None:
    found = getattr(array, "dtype", None), getattr(array, "shape", None)
    if found != (recurrence.dtype.numpy, shape):
        wanted = f"{recurrence.dtype} {list(shape)}"
        raise TypeError(f"run gave {found[0]} {found[1]} where {wanted} is due")
