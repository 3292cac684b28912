"""The runtimes, each a row: where it is, what it needs; and those that installed packages add.

A package adds one by an entry point of the group ``rnncli.subjects`` that names a `Runtime`: a
class made with (settings, threads). It is imported in the process of its own that it runs in.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.plugins import plugins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.subjects.isolation import IsolatedSubject


class RuntimeRow(NamedTuple):
    """One runtime.

    Attributes:
        where: "module:attribute" of its `Runtime`, imported in its own process.
        summary: one line for help.
        package: the module that must be there, or "".
        extra: which extra of this package brings it, or "".
        threads: whether the number of threads that it is made with makes a difference.
    """

    where: str
    summary: str
    package: str = ""
    extra: str = ""
    threads: bool = True


SUBJECTS: Mapping[str, RuntimeRow] = {
    "onnxruntime": RuntimeRow(
        "rnncli.subjects.runtimes.onnx_runtime:OnnxRuntime",
        "ONNX Runtime, on the CPU unless told otherwise",
        "onnxruntime",
        "runtimes",
    ),
    "openvino": RuntimeRow(
        "rnncli.subjects.runtimes.open_vino:OpenVino",
        "OpenVINO, on the CPU in float32 unless told otherwise",
        "openvino",
        "runtimes",
    ),
    "onnx-reference": RuntimeRow(
        "rnncli.subjects.runtimes.onnx_reference:OnnxReference",
        "the reference evaluator of the package onnx",
    ),
    "tract": RuntimeRow(
        "rnncli.subjects.runtimes.tract_runtime:Tract",
        "tract, on the CPU",
        "tract",
        "runtimes",
        threads=False,
    ),
}


@cache
def known_subjects() -> Mapping[str, RuntimeRow]:
    """Return ours and those of installed packages, which cannot replace ours."""
    others = {
        name: RuntimeRow(plugin.where, f"of the package {plugin.package}")
        for name, plugin in plugins("runtime").items()
    }
    return {**others, **SUBJECTS}


def subject_named(
    name: str,
    *,
    settings: Mapping[str, str] | None = None,
    threads: int = 1,
    timeout: float = 60.0,
    max_memory: int | None = None,
) -> IsolatedSubject:
    """Return a runtime, in a process of its own that starts when it is first asked.

    Args:
        name: of its row or entry point.
        settings: for the runtime, NAME -> VALUE; each runtime's class documents its own.
        threads: how many it may use.
        timeout: seconds for one vector.
        max_memory: bytes that it may have in memory; None for any number.

    Raises:
        InvalidRequest: there is none of that name.
        Unsupported: its package is not installed.
    """
    from rnncli.subjects.isolation import IsolatedSubject

    rows = known_subjects()
    if name not in rows:
        listed = ", ".join(rows)
        raise InvalidRequest(f"unknown runtime '{name}'{did_you_mean(name, rows)} ({listed})")
    row = rows[name]
    if reason := _missing(row):
        raise Unsupported(f"runtime '{name}' is not there: {reason}")
    return IsolatedSubject(
        name,
        row.where,
        settings=settings,
        threads=threads,
        timeout=timeout,
        max_memory=max_memory,
        extra=row.extra,
    )


def takes_threads(name: str) -> bool:
    """Whether the number of threads makes a difference to a runtime; True of unknown ones."""
    rows = known_subjects()
    return rows[name].threads if name in rows else True


def describe_subjects() -> list[dict[str, str]]:
    """Return name, summary and origin of every runtime, also of one that is not installed."""
    return [
        {
            "runtime": name,
            "summary": f"unusable: {reason}" if (reason := _missing(row)) else row.summary,
            "from": row.where,
        }
        for name, row in known_subjects().items()
    ]


def _missing(row: RuntimeRow) -> str:
    """Say what is not installed of what a row needs, without importing it; or ""."""
    if not row.package or find_spec(row.package):
        return ""
    return f"no package {row.package}; install it with: pip install 'rnncli[{row.extra}]'"
