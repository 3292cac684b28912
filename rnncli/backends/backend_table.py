"""The table of backends: built-in ones, families, and those of installed packages.

Failures and malformed results of another package's backend name that backend.
"""

from __future__ import annotations

import os
from functools import cache, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rnncli.backends.backend import QUANTISED
from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.jobs.plugins import PluginFailure, calling, described, load, plugins
from rnncli.recurrence.cells import COMMON_OPTIONS, beyond
from rnncli.recurrence.readings import source_of
from rnncli.recurrence.recurrence import Result
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.backends.backend import Backend, BoundCall, Compute
    from rnncli.jobs.plugins import Plugin
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Recurrence


BUILT_IN: Mapping[str, str] = {
    "reference": "rnncli.backends.reference:ReferenceBackend",
    "numpy": "rnncli.backends.in_place.walk:NumPyBackend",
    "certified": "rnncli.backends.certified_backend:CertifiedBackend",
    "numba": "rnncli.backends.compiled.driver:NumbaBackend",
}
# Prefix of names such as `mutant:ID` -> factory of a backend from the ID, and summary.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "mutant": (
        "rnncli.mutants.catalogue:MutantBackend",
        "a deliberate, plausible kernel bug; `rnncli mutants` lists the IDs",
    )
}
# The extra that a built-in backend needs.
EXTRAS: Mapping[str, str] = {"certified": "certified", "numba": "numba"}


@cache
def known_backends() -> Mapping[str, str]:
    """Return name -> "module:attribute"; a package cannot replace a built-in backend."""
    return {**{name: plugin.where for name, plugin in plugins("backend").items()}, **BUILT_IN}


@cache
def backend_named(name: str) -> Backend:
    """Import and return a backend.

    Raises:
        InvalidRequest: unknown name, or a plug-in fails.
        Unsupported: its package cannot be imported.
    """
    family, _, member = name.partition(":")
    if family in FAMILIES:
        return cast("Backend", resolve_name(FAMILIES[family][0])(member))
    if name in BUILT_IN:
        unusable = f"backend '{name}' does not import"
        try:
            return cast("Backend", resolve_name(BUILT_IN[name])())
        except ImportError as error:
            extra = EXTRAS.get(name)
            hint = f"; install it with: {install_line(extra)}" if extra else ""
            raise Unsupported(f"{unusable}: {error}{hint}") from error
        except ValueError as error:  # a package that refuses its own settings
            settings = [each for each in os.environ if each.startswith(f"{name.upper()}_")]
            where = f" (environment: {', '.join(settings)})" if settings else ""
            raise Unsupported(f"{unusable}: {error}{where}") from error
    if plugin := plugins("backend").get(name):
        return PluggedBackend(plugin)
    known = known_backends()
    hint = did_you_mean(name, known)
    raise InvalidRequest(f"unknown backend '{name}'{hint} (installed: {', '.join(known)})")


def describe_backends() -> list[dict[str, str]]:
    """Return name, summary and origin of every backend, even of unusable ones."""
    rows = described("backend", known_backends(), lambda name: backend_named(name).summary)
    return rows + [
        {"backend": f"{name}:ID", "summary": summary, "from": where}
        for name, (where, summary) in FAMILIES.items()
    ]


class PluggedBackend:
    """A `Backend` implemented by another package.

    Raises:
        Unsupported: the package lacks a dependency.
        PluginFailure: the backend lacks a method, or its code fails, in any.
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        maker = load(plugin)
        with calling(plugin):
            self._backend = maker()
            self._bind = getattr(self._backend, "bind", None)
            self._honours = COMMON_OPTIONS | {*getattr(self._backend, "honours", ())}
            self.name = str(getattr(self._backend, "name", plugin.name))
            self.summary = str(getattr(self._backend, "summary", ""))
        for method in ("supports", "run"):
            if not callable(getattr(self._backend, method, None)):
                raise PluginFailure(plugin.told(f"has no method {method}"))

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why the backend cannot evaluate a recurrence, or None if it can."""
        # Backends that were written before there were these fields do not know of them.
        if recurrence.quantiser is not None:
            return QUANTISED
        options = recurrence.options
        if recurrence.P is None:
            options = options._replace(peephole_previous=False)
        cell, honours = recurrence.cell, self._honours
        if not cell.projects:
            if cell.name not in honours:
                return f"does not say that it honours {cell.name}, a cell without gates"
            honours |= {"attention", "silu"}
        if others := beyond(options, honours):
            return f"does not say that it honours {source_of(others[0])}"
        with calling(self._plugin):
            reason = self._backend.supports(recurrence, compute)
            return None if reason is None else str(reason)

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate, and check the form of the result."""
        with calling(self._plugin):
            result = self._backend.run(recurrence, compute)
            if not isinstance(result, Result):
                raise TypeError(f"run returned {type(result).__name__}, not a Result")
            ResultForm.of(recurrence).check("run", result.Y, *result.last)
        return result

    def bind(self, recurrence: Recurrence, compute: Compute) -> BoundCall | None:
        """Return the plug-in's fast path, whose results are checked, or None."""
        if self._bind is None:
            return None
        with calling(self._plugin):
            call = self._bind(recurrence, compute)
        return None if call is None else partial(self._call, call, ResultForm.of(recurrence))

    def _call(
        self, call: BoundCall, form: ResultForm, *inputs: Any
    ) -> tuple[Array | None, ...] | None:
        """Return what a fast path returns, or None if it declines."""
        with calling(self._plugin):
            tensors = call(*inputs)
            if tensors is not None:
                form.check("the function from bind", *tensors)
        return tensors


class ResultForm(NamedTuple):
    """The form of the results of recurrences."""

    dtype: DType  # of Y
    Y: tuple[int, ...] | None  # the shape of Y; None if it is not requested
    last: tuple[tuple[DType, tuple[int, ...]], ...]  # the dtype and shape of each last state

    @classmethod
    def of(cls, recurrence: Recurrence) -> ResultForm:
        """Return the form of a recurrence's results."""
        r, D = recurrence, len(recurrence.directions)
        T, N, _ = r.X.shape
        Y = (T, D, N, *r.widths[0]) if r.wants_Y else None
        states = zip(r.dtypes, r.widths, strict=True)
        return cls(r.dtype, Y, tuple((dtype, (D, N, *width)) for dtype, width in states))

    def check(self, source: str, Y: Any, *last: Any) -> None:
        """Raise if a result has another form.

        Raises:
            TypeError: the number, dtype or shape of the arrays differs.
        """
        if len(last) != len(self.last):
            raise TypeError(f"{source} returned {len(last)} last states, not {len(self.last)}")
        of_Y = [(Y, self.dtype, self.Y)] * (self.Y is not None)
        of_last = ((state, *form) for state, form in zip(last, self.last, strict=True))
        for array, dtype, shape in (*of_last, *of_Y):
            actual = getattr(array, "dtype", None), getattr(array, "shape", None)
            if actual != (dtype.numpy, shape):
                expected = f"{dtype} {list(shape or ())}"
                raise TypeError(f"{source} returned {actual[0]} {actual[1]}, expected {expected}")
