"""Self-contained pages, which fetch nothing and run only their own script.

Style, script and data are embedded; a content security policy forbids everything else.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import sys
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rnncli import __version__
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.judging.explaining.hypotheses import edit_of, sentence_of
from rnncli.reports.failures import excerpt
from rnncli.talk.installing import install_line
from rnncli.talk.words import counted, times, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment


NEEDED = ("jinja2", "matplotlib")
PLOT_NEEDS = ("matplotlib",)
RIGHT = "the share of the cases that pass or are acceptable, rounded down"
DATE = "SOURCE_DATE_EPOCH"
BACKEND = "MPLBACKEND"
PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def check_extra(what: str = "an HTML report", needed: Sequence[str] = ()) -> None:
    """Check that the packages for a page are installed, or those that something else needs.

    Raises:
        Unsupported: the extra `report` is not installed.
        InvalidRequest: the environment keeps Matplotlib from drawing.
    """
    missing = [name for name in needed or NEEDED if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs {' and '.join(missing)}; install it with: {install_line('report')}"
        )
    # Matplotlib reads the variable as a date, even for a file without one.
    seconds = os.environ.get(DATE, "")
    try:
        dt.datetime.fromtimestamp(int(seconds or 0), dt.UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f"environment variable {DATE} must be a date in seconds since 1970, got '{seconds:.80}'"
        ) from None
    if os.environ.get(BACKEND) and "matplotlib" not in sys.modules:
        _import_despite_backend()


def _import_despite_backend() -> None:
    """Import Matplotlib also where the variable names no backend: nothing here uses one."""
    try:
        import_module("matplotlib")
    except ValueError:
        named = os.environ.pop(BACKEND)
        for name in [each for each in sys.modules if each.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]  # a half of it
        try:
            import_module("matplotlib")
        finally:
            os.environ[BACKEND] = named


def check_plot(path: str) -> None:
    """Check that a plot can be written.

    Raises:
        InvalidRequest: the path's suffix is not that of an image format.
        Unsupported: the extra `report` is not installed.
    """
    suffix = PurePath(path).suffix
    if suffix.lower() not in PLOT_SUFFIXES:
        raise InvalidRequest(
            f"cannot write {path}: a plot is {', '.join(PLOT_SUFFIXES)}, not '{suffix}'"
        )
    check_extra("a plot", PLOT_NEEDS)


def rendered(name: str, **context: Any) -> str:
    """Return a page; the same context gives the same bytes.

    Args:
        name: the name of its parts in the folder `page`: NAME.html, and NAME.css and NAME.js after
            the shared ones.
        context: the values for the template; `data` is the script's data.
    """
    check_extra()
    from markupsafe import Markup

    style = Markup(shared_style(name))  # noqa: S704 -- ours
    return _page(name, ("shared", "drawn", name), style=style, **context)


def plain_page(name: str, **context: Any) -> str:
    """Return a page from a template of the folder `page`, without data; its style is a file."""
    check_extra("a site")
    return _page(name, ("shared",), **context)


def _page(name: str, scripts: Sequence[str], **context: Any) -> str:
    """Return a page with one script, which its policy names by the hash."""
    from markupsafe import Markup

    script = "".join(_part(f"{each}.js") for each in scripts)
    return (
        _environment()
        .get_template(f"{name}.html")
        .render(
            **context,
            script=Markup(script),  # noqa: S704 -- ours
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=__version__,
            right=RIGHT,
        )
    )


def shared_style(name: str) -> str:
    """Return the style of all pages, then that of some."""
    return "".join(_part(f"{each}.css") for each in ("shared", name))


@cache
def _environment() -> Environment:
    """Return the template environment; it escapes all text and makes it printable."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rnncli.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "times": times,
        "visible": visible,
        "meaning": sentence_of,
        "edit": edit_of,
        "excerpt": excerpt,
        "counted": counted,
    }
    return environment


def _part(name: str) -> str:
    return (files("rnncli.reports") / "page" / name).read_text(encoding="utf-8")
