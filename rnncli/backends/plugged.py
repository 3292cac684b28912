"""Backends of other packages: failures and malformed results name the backend."""

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
    """A `Backend` implemented by another package.

    Raises:
        Unsupported: the package lacks a dependency.
        PluginFailure: the backend's code fails, in any method.
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        maker = load(plugin)
        with calling(plugin):
            self._backend = maker()
            self.name = str(getattr(self._backend, "name", plugin.name))
            self.summary = str(getattr(self._backend, "summary", ""))

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why the backend cannot evaluate a recurrence, or None if it can."""
        with calling(self._plugin):
            reason = self._backend.supports(recurrence, compute)
            return None if reason is None else str(reason)

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate, and check the form of the result."""
        with calling(self._plugin):
            result = self._backend.run(recurrence, compute)
            _check(result, recurrence)
        return result  # type: ignore[no-any-return]


def _check(result: Any, recurrence: Recurrence) -> None:
    """Raise if an object is not a result of the recurrence.

    Raises:
        TypeError: it is not a `Result`, or its arrays are wrong.
    """
    if not isinstance(result, Result):
        raise TypeError(f"run returned {type(result).__name__}, not a Result")
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    states = recurrence.cell.states
    if len(result.last) != states:
        raise TypeError(f"run returned {len(result.last)} last states, not {states}")
    for state in result.last:
        _check_array(state, (D, N, H), recurrence)
    if recurrence.wants_Y:
        _check_array(result.Y, (T, D, N, H), recurrence)


def _check_array(array: Array | None, shape: tuple[int, ...], recurrence: Recurrence) -> None:
    actual = getattr(array, "dtype", None), getattr(array, "shape", None)
    if actual != (recurrence.dtype.numpy, shape):
        expected = f"{recurrence.dtype} {list(shape)}"
        raise TypeError(f"run returned {actual[0]} {actual[1]}, expected {expected}")
