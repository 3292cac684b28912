"""Plug-ins: what installed packages add by entry points, found, loaded and called in one place.

Their code is not ours. Whatever it raises is told in one sentence that names the plug-in and its
package; errors of our own family, by which a plug-in refuses something, pass as they are.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, RnncliError, Unsupported, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What a package can add -> the group of entry points by which it does.
GROUPS: Mapping[str, str] = {
    "backend": "rnncli.backends",
    "format": "rnncli.formats",
    "runtime": "rnncli.subjects",
}


class PluginFailure(InvalidRequest):
    """The code of another package failed; the request to use it was wrong."""


class Plugin(NamedTuple):
    """What another package adds.

    Attributes:
        kind: a key of `GROUPS`.
        name: by which users ask for it.
        where: "module:attribute".
        package: the name of the distribution that brings it.
    """

    kind: str
    name: str
    where: str
    package: str

    def told(self, what: str) -> str:
        """Return the sentence that says what became of it."""
        return f"{self.kind} '{self.name}' {what}; it is {self.where} of the package {self.package}"


def plugins(kind: str) -> dict[str, Plugin]:
    """Return what installed packages add of a kind, by name."""
    from importlib import metadata  # takes as long as running a small model

    return {
        point.name: Plugin(kind, point.name, point.value, _package(point))
        for point in metadata.entry_points(group=GROUPS[kind])
    }


def _package(point: Any) -> str:
    """Return the distribution of an entry point, or the package of its module if none is known."""
    return str(point.dist.name) if point.dist else str(point.value).partition(":")[0].split(".")[0]


def load(plugin: Plugin) -> Any:
    """Import a plug-in and return the attribute that it names.

    Raises:
        Unsupported: something that it needs is not installed.
        PluginFailure: it fails otherwise.
    """
    from pkgutil import resolve_name

    with calling(plugin):
        try:
            return resolve_name(plugin.where)
        except ImportError as error:
            raise Unsupported(plugin.told(f"does not import: {shortened(str(error))}")) from error


@contextmanager
def calling(plugin: Plugin, subject: str = "") -> Iterator[None]:
    """Name the plug-in whose code runs in the body when that fails.

    Args:
        plugin: whose code it is.
        subject: what it works on, to stand before the sentence.

    Raises:
        PluginFailure: the body raised something that is none of our own errors.
    """
    try:
        yield
    except (RnncliError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        said = shortened(f"{type(error).__name__}: {error}")
        before = f"{subject}: " if subject else ""
        raise PluginFailure(before + plugin.told(f"failed: {said}")) from error
