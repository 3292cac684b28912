"""What came of generating or checking a pack, for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.display import Displayed
from rnncli.errors import worst_code
from rnncli.packs.generating.checking import check
from rnncli.packs.generating.generation import generate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rnncli.packs.generating.batch import Made
    from rnncli.packs.generating.generation import GenerationPlan
    from rnncli.packs.manifest import Manifest


@dataclass(frozen=True, slots=True, repr=False)
class GenerationReport(Displayed):
    """A pack that was written, or checked.

    Attributes:
        folder: of the pack.
        cases: how many the suite, or its selection, has.
        manifest: of the pack that was written; None when cases failed, or it was only checked.
        reused: how many cases an earlier run had left whole.
        findings: of a check, (path, what is wrong): missing, stale, altered or extra.
        failed: the cases that could not be made, with the reason and the exit code of each.
        warnings: what the user should know.
    """

    folder: Path
    cases: int
    manifest: Manifest | None = None
    reused: int = 0
    findings: tuple[tuple[str, str], ...] = ()
    failed: tuple[Made, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the pack is what the suite gives."""
        return not self.exit_code

    @property
    def exit_code(self) -> int:
        """As of `rnncli generate`: that of the worst failure; 1 if a check found anything."""
        return worst_code({made.exit_code for made in self.failed}) or int(bool(self.findings))


def write_pack(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> GenerationReport:
    """Write a pack, see `generation.generate`."""
    made = generate(plan, folder, done)
    return GenerationReport(
        folder,
        len(plan.entries()),
        made.manifest,
        made.reused,
        failed=tuple(made.failed),
        warnings=tuple(made.warnings),
    )


def check_pack(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> GenerationReport:
    """Compare a pack on disk with what its suite gives, see `checking.check`."""
    found = check(plan, folder, done)
    return GenerationReport(
        folder, found.cases, findings=tuple(found.findings), failed=tuple(found.failed)
    )
