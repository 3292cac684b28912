"""The report on a pack that was generated or checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.errors import worst_code
from rnncli.generating.generation import generate
from rnncli.generating.remade import check
from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rnncli.generating.batch import GeneratedCase
    from rnncli.generating.generation import GenerationPlan
    from rnncli.packs.manifest import Manifest


@dataclass(frozen=True, slots=True, repr=False)
class GenerationReport(Conclusion):
    """A pack that was written or checked.

    Attributes:
        folder: the pack's folder.
        cases: number of cases in the suite or its selection.
        manifest: the manifest written; None if cases failed, or the pack was only checked.
        reused: number of cases that an earlier run had finished.
        findings: findings of a check, (path, problem): missing, stale, altered or extra.
        failed: the cases that could not be made, with the reason and the exit code of each.
        warnings: messages for the user.
    """

    folder: Path
    cases: int
    manifest: Manifest | None = None
    reused: int = 0
    findings: tuple[tuple[str, str], ...] = ()
    failed: tuple[GeneratedCase, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli generate`: the worst failure's; 1 if a check found anything."""
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
    """Compare a pack on disk with the pack that its suite gives, see `remade.check`."""
    found = check(plan, folder, done)
    return GenerationReport(
        folder, found.cases, findings=tuple(found.findings), failed=tuple(found.failed)
    )
