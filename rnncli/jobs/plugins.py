"""Plug-ins: discovery, loading and calls of entry points of installed packages.

Their exceptions become one sentence that names the plug-in and its package; our own errors, by
which a plug-in refuses something, pass unchanged.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, RnncliError, Unsupported, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Kind of plug-in -> group of entry points.
GROUPS: Mapping[str, str] = {
    "backend": "rnncli.backends",
    "format": "rnncli.formats",
    "runtime": "rnncli.subjects",
}


class PluginFailure(InvalidRequest):
    """A plug-in failed; counts as an invalid request."""


class Plugin(NamedTuple):
    """A plug-in of an installed package; `where` is its "module:attribute"."""

    kind: str
    name: str
    where: str
    package: str

    @property
    def origin(self) -> str:
        """Where it comes from, the end of a sentence about it."""
        return f"it is {self.where} of the package {self.package}"

    def told(self, what: str) -> str:
        """Return a sentence about the plug-in."""
        return f"{self.kind} '{self.name}' {what}; {self.origin}"


def plugins(kind: str) -> dict[str, Plugin]:
    """Return the installed plug-ins of a kind by name."""
    from importlib import metadata  # takes as long as running a small model

    return {
        point.name: Plugin(
            *(kind, point.name, point.value),
            # Of an entry point without a distribution, the package of its module.
            package=point.dist.name if point.dist else point.module.partition(".")[0],
        )
        for point in metadata.entry_points(group=GROUPS[kind])
    }


def load(plugin: Plugin) -> Any:
    """Import a plug-in and return its attribute.

    Raises:
        Unsupported: a dependency is not installed.
        PluginFailure: it fails for another reason.
    """
    from pkgutil import resolve_name

    with calling(plugin):
        try:
            return resolve_name(plugin.where)
        except ImportError as error:
            raise Unsupported(plugin.told(f"does not import: {shortened(str(error))}")) from error


@contextmanager
def calling(plugin: Plugin, subject: str = "") -> Iterator[None]:
    """Convert failures of the body, a plug-in's code, into a sentence that names the plug-in.

    Raises:
        PluginFailure: the body raised something other than our own errors.
    """
    try:
        yield
    except (RnncliError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        said = shortened(f"{type(error).__name__}: {error}")
        before = f"{subject}: " if subject else ""
        raise PluginFailure(before + plugin.told(f"failed: {said}")) from error


def described(
    column: str, known: Mapping[str, str], summary: Callable[[str], str]
) -> list[dict[str, str]]:
    """Return name, summary and origin of what is built in or plugged in, even if it is unusable."""
    rows = []
    for name, where in known.items():
        try:
            about = summary(name)
        except RnncliError as error:
            about = f"unusable: {error}"
        rows.append({column: name, "summary": about, "from": where})
    return rows
