"""The table of backends: built-in ones, families, and those of installed packages."""

from __future__ import annotations

import os
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.jobs.plugins import described, plugins
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.backends.backend import Backend

BUILT_IN: Mapping[str, str] = {
    "reference": "rnncli.backends.reference:ReferenceBackend",
    "numpy": "rnncli.backends.numpy_backend:NumPyBackend",
    "certified": "rnncli.backends.certified_backend:CertifiedBackend",
    "numba": "rnncli.backends.numba_backend:NumbaBackend",
}
# Prefix of names such as `mutant:ID` -> factory of a backend from the ID, and summary.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "mutant": (
        "rnncli.mutants.catalogue:MutantBackend",
        "a deliberate, plausible kernel bug; `rnncli mutants` lists the IDs",
    ),
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
        return _built_in(name)
    if plugin := plugins("backend").get(name):
        from rnncli.backends.foreign_backends import PluggedBackend

        return PluggedBackend(plugin)
    known = known_backends()
    hint = did_you_mean(name, known)
    raise InvalidRequest(f"unknown backend '{name}'{hint} (installed: {', '.join(known)})")


def _built_in(name: str) -> Backend:
    try:
        return cast("Backend", resolve_name(BUILT_IN[name])())
    except ImportError as error:
        extra = EXTRAS.get(name)
        hint = f"; install it with: {install_line(extra)}" if extra else ""
        raise Unsupported(f"backend '{name}' does not import: {error}{hint}") from error
    except ValueError as error:  # a package that refuses its own settings
        settings = [each for each in os.environ if each.startswith(f"{name.upper()}_")]
        where = f" (environment: {', '.join(settings)})" if settings else ""
        raise Unsupported(f"backend '{name}' does not import: {error}{where}") from error


def describe_backends() -> list[dict[str, str]]:
    """Return name, summary and origin of every backend, even of unusable ones."""
    rows = described("backend", known_backends(), lambda name: backend_named(name).summary)
    return rows + [
        {"backend": f"{name}:ID", "summary": summary, "from": where}
        for name, (where, summary) in FAMILIES.items()
    ]
