"""Limits: what a computation may take, of time, memory and threads."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rnncli.options import OptionKind, check, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What each computation may take: a case of an implementation, a model, a call of a session.

    Attributes:
        threads: Threads of one evaluation, those of OpenBLAS included.
        timeout: Stop an evaluation, or what is judged, after so many seconds.
        max_memory: Stop what takes more bytes of memory, such as 512M or 2G. Without it, what a
            command computes in its own process may take 768M and 16 bytes for each byte of the
            files named.

    Raises:
        InvalidRequest: there are no threads, no seconds, or no bytes.
    """

    threads: int | None = option(
        None, kind=OptionKind.COUNT, least=1, metavar="N", variable="RNNCLI_THREADS"
    )
    timeout: float | None = option(None, kind=OptionKind.SECONDS, metavar="SECONDS")
    max_memory: int | None = option(None, kind=OptionKind.BYTES, metavar="SIZE")

    def __post_init__(self) -> None:
        check(self)

    def or_else(self, others: Limits) -> Limits:
        """Return these limits, and others where there are none."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return Limits(**{n: getattr(others, n) if v is None else v for n, v in own.items()})


UNLIMITED = Limits()
# Those of an implementation that is judged, where the user gives none.
OF_SUBJECTS = Limits(threads=1, timeout=60.0)
# Those of loading with warm-up, and of a turn, of what is measured.
OF_CONTESTS = Limits(threads=1, timeout=120.0)
# Those of a request to a harness of which nobody knows whether it is wired right.
OF_SMOKE = Limits(timeout=10.0)
