"""The backends: built-in rows, families of them, and those that installed packages add."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.backends.backend import Backend

GROUP = "rnncli.backends"
BUILT_IN: Mapping[str, str] = {
    "numpy": "rnncli.backends.numpy_backend:NumPyBackend",
    "certified": "rnncli.backends.certified_backend:CertifiedBackend",
    "numba": "rnncli.backends.numba_backend:NumbaBackend",
}
# Prefix of names such as `mutant:ID` -> what makes a backend of the ID, and what they all are.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "mutant": (
        "rnncli.mutants.backend:MutantBackend",
        "a plausible kernel bug, on purpose; `rnncli mutants` lists the IDs",
    ),
}
# What a built-in row needs beyond the package itself.
EXTRAS: Mapping[str, str] = {"certified": "certified", "numba": "numba"}


@cache
def known_backends() -> Mapping[str, str]:
    """Name -> "module:attribute"; a package cannot replace a built-in row."""
    from importlib.metadata import entry_points  # takes as long as running a small model

    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**found, **BUILT_IN}


@cache
def backend_named(name: str) -> Backend:
    """Import and return a backend.

    Raises:
        InvalidRequest: there is none of that name.
        Unsupported: its package does not import.
    """
    family, _, member = name.partition(":")
    if family in FAMILIES:
        return cast("Backend", resolve_name(FAMILIES[family][0])(member))
    where = BUILT_IN.get(name) or known_backends().get(name)
    if where is None:
        known = known_backends()
        hint = did_you_mean(name, known)
        raise InvalidRequest(f"unknown backend '{name}'{hint} (installed: {', '.join(known)})")
    module, _, attribute = where.partition(":")
    try:
        return cast("Backend", getattr(import_module(module), attribute)())
    except ImportError as error:
        extra = EXTRAS.get(name)
        hint = f"; install it with: pip install 'rnncli[{extra}]'" if extra else ""
        raise Unsupported(f"backend '{name}' does not import: {error}{hint}") from error


def describe_backends() -> list[dict[str, str]]:
    """Return name, summary and origin of every backend, also of one that does not import."""
    rows = []
    for name, where in known_backends().items():
        try:
            summary = backend_named(name).summary
        except Unsupported as error:
            summary = f"unusable: {error}"
        rows.append({"backend": name, "summary": summary, "from": where})
    rows += [
        {"backend": f"{name}:ID", "summary": summary, "from": where}
        for name, (where, summary) in FAMILIES.items()
    ]
    return rows
