"""A static site of conformance results: runtimes by features, and a page for each of their parts.

It fetches nothing but its style, works from a folder, and can be read without its script.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath, PureWindowsPath
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from rnncli.files.atomic import atomic_folder, put_file
from rnncli.judging.comparing.verdict import MEANINGS, Verdict
from rnncli.reports.blame import blames, cell
from rnncli.reports.failures import FailureGroup, diagnosed, reasons, refused_groups
from rnncli.reports.html import page
from rnncli.reports.pages import plain_page, shared_style
from rnncli.reports.result_files import whole_runs
from rnncli.reports.tables import markdown_row
from rnncli.talk.words import code, inline, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rnncli.judging.report import JudgedCase, VerificationReport
    from rnncli.reports.blame import Blame, TableCell

RESULTS = "results.json"
PACK = "PACK"
# What the words of a cell say of a feature.
MEANING = (
    "A case is wrong under the feature that fails in it; under its other features a cell names that"
    " one. Lossy is a matter of quality: ordinary numbers are right, but an overflow, a subnormal"
    " number, a NaN or the digits of a tail are lost."
)
LONGEST_NAME, LONGEST_VERSION = 60, 20


def file_name(text: str) -> str:
    """Return a safe name of a file for any text; different texts have different names.

    They differ where the file system takes capitals for small letters, too.
    """
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:LONGEST_NAME]
    if plain and plain == text == text.lower():
        return plain
    return f"{plain}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _sentences(report: VerificationReport, case: JudgedCase) -> list[str]:
    return [*reasons(case), *diagnosed(report, case)]


def short(version: str) -> str:
    """Return a version; a long one without what follows its first hyphen."""
    return version if len(version) <= LONGEST_VERSION else version.partition("-")[0]


class RunChange(NamedTuple):
    """The ids of cases that a run fixed, and broke, beside the run before it on the same cases."""

    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuntimeResults:
    """All runs of an implementation against a pack, the oldest first."""

    name: str
    runs: Sequence[VerificationReport]

    @property
    def newest(self) -> VerificationReport:
        """The report of the newest run."""
        return self.runs[-1]

    @property
    def version(self) -> str:
        """The version in the newest run, or ""; long ones without what follows a hyphen."""
        return short(self.newest.subject.about.get("version", ""))

    @property
    def file(self) -> str:
        """The name of its pages, without a suffix."""
        return file_name(self.name)

    @cached_property
    def by_id(self) -> Mapping[str, JudgedCase]:
        """The cases of the newest run."""
        return {case.id: case for case in self.newest.cases}

    @cached_property
    def by_flag(self) -> Mapping[str, Sequence[JudgedCase]]:
        """The cases of the newest run for each flag."""
        found: dict[str, list[JudgedCase]] = {}
        for case in self.newest.cases:
            for flag in case.record.flags:
                found.setdefault(flag, []).append(case)
        return found

    @cached_property
    def blames(self) -> Mapping[str, Blame]:
        """What fails in the cases of the newest run that differ."""
        return blames(self.newest)

    def cell(self, flag: str, case_id: str = "") -> TableCell:
        """Return what became of a feature's cases, or of one of them; of all cases for ""."""
        cases = self.by_flag.get(flag, ()) if flag else self.newest.cases
        some = [case for case in cases if case_id in {"", case.id}]
        return cell(some, self.blames, flag)

    @property
    def refusals(self) -> list[FailureGroup]:
        """The refused cases of the newest run, together if for a similar reason; most first."""
        return refused_groups(self.newest)

    @property
    def history(self) -> list[tuple[VerificationReport, RunChange]]:
        """Each run with what it changed, the newest first."""
        changes = [RunChange()]
        for old, new in pairwise(self.runs):
            before = {case.id: case.details.fails for case in old.cases}
            now = {case.id: case.details.fails for case in new.cases if case.id in before}
            fixed = tuple(case for case, fails in now.items() if before[case] and not fails)
            broken = tuple(case for case, fails in now.items() if fails and not before[case])
            changes.append(RunChange(fixed, broken))
        return [*zip(self.runs, changes, strict=True)][::-1]


@dataclass(frozen=True)
class PackResults:
    """The runs against one pack, of each implementation in order of appearance."""

    name: str
    runtimes: Sequence[RuntimeResults]

    @property
    def file(self) -> str:
        """The name of its folder."""
        return file_name(self.name)

    @property
    def has_placeholder(self) -> bool:
        """Whether a command of a newest run names the pack by `PACK`."""
        return any(runtime.newest.pack.folder == PACK for runtime in self.runtimes)

    @cached_property
    def newest(self) -> VerificationReport:
        """The newest run of all; its pack is the one that others are compared with."""
        return max((runtime.newest for runtime in self.runtimes), key=lambda run: run.date)

    @cached_property
    def notes(self) -> Mapping[str, str]:
        """Flag -> the bug that its cases find, for flags of cases that were judged."""
        known = self.newest.pack.notes
        found = {flag for runtime in self.runtimes for flag in runtime.by_flag}
        return {
            **{flag: note for flag, note in known.items() if flag in found},
            **dict.fromkeys(sorted(found - set(known)), ""),
        }

    @cached_property
    def cases(self) -> Mapping[str, JudgedCase]:
        """Every case of any newest run by its id, those of the newest run of all first."""
        found: dict[str, JudgedCase] = {}
        for run in (self.newest, *(runtime.newest for runtime in self.runtimes)):
            for case in run.cases:
                found.setdefault(case.id, case)
        return found

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of any newest run, in the order of tables."""
        totals = [runtime.newest.total.counts for runtime in self.runtimes]
        return [verdict for verdict in MEANINGS if any(counts[verdict] for counts in totals)]

    def of_flag(self, flag: str) -> list[JudgedCase]:
        """Return the cases of a flag."""
        return [case for case in self.cases.values() if flag in case.record.flags]


def results_of(reports: Iterable[VerificationReport]) -> list[PackResults]:
    """Group reports by pack and implementation, each in order of appearance.

    Raises:
        rnncli.errors.InvalidRequest: a shard of a run is missing, see `whole_runs`.
    """
    packs: dict[str, dict[str, list[VerificationReport]]] = {}
    for run in whole_runs(reports):
        report, folder = run, run.pack.folder
        # A path of the machine that judged is not published.
        if PurePosixPath(folder).is_absolute() or PureWindowsPath(folder).is_absolute():
            own = rf"(?<!\S){re.escape(shlex.quote(folder))}(?!\S)"
            report = replace(
                run,
                pack=structs.replace(run.pack, folder=PACK),
                command=re.sub(own, PACK, run.command),
            )
        # What an implementation calls itself, as a harness does, or what the user called it.
        called = report.subject.about.get("name") or report.subject.name
        packs.setdefault(report.pack.name, {}).setdefault(called, []).append(report)
    found = []
    for pack, named in packs.items():
        runs = {name: sorted(some, key=lambda run: run.date) for name, some in named.items()}
        found.append(PackResults(pack, [RuntimeResults(*each) for each in runs.items()]))
    return found


def badge(runtime: RuntimeResults) -> dict[str, Any]:
    """Return what shields.io draws: the passing cases among those of the newest run.

    The colour is bright green only if the whole pack passes by its rule; docs/howto/site.md says
    what each means.
    """
    run = runtime.newest
    label = visible(f"{runtime.name} on {run.pack.name}")
    message = visible(f"{run.total.right}/{run.total.cases}{_conceded(run)}")
    if not run.passed:
        colour = "red" if run.claim or run.total.counts[Verdict.DIFFERS] else "yellow"
    elif run.total.right < run.total.cases and not run.claim:
        colour = "yellow"
    else:
        colour = "blue" if run.concessions else "brightgreen"
    return {"schemaVersion": 1, "label": label, "message": message, "color": colour}


def _conceded(run: VerificationReport) -> str:
    conceded = f" with {' '.join(run.concessions)}" if run.concessions else ""
    return f", {run.adherence}" if run.claim else conceded


def as_markdown(packs: Sequence[PackResults]) -> str:
    """Return the tables of packs and of features by runtimes as a page of Markdown."""
    about = (
        "and written by `rnncli site`. A row is a feature of the pack, or a bug that its"
        f" cases look for. What is not named here is within the tolerances. {MEANING}"
    )
    lines = ["# What runtimes do"]
    if len(packs) > 1:
        every = dict.fromkeys(runtime.name for pack in packs for runtime in pack.runtimes)
        lines += ["", "## Packs", "", markdown_row(("pack", "cases", *map(inline, every)))]
        lines.append(markdown_row(("---", "---:", *("---" for _ in every))))
        for pack in packs:
            summaries = {each.name: each.newest.total.summary for each in pack.runtimes}
            words = (summaries.get(name, "-") for name in every)
            name = code(pack.name).replace("|", r"\|")
            lines.append(markdown_row((name, len(pack.cases), *words)))
    for pack in packs:
        named = f"Judged by `rnncli verify` against the pack {code(pack.name)}"  # on its own line
        lines += ["", f"## {inline(pack.name)}", "", named]
        lines += [fill(about, 100, break_on_hyphens=False), ""]

        names = [inline(runtime.name) for runtime in pack.runtimes]
        lines.append(markdown_row(("feature", "cases", *names)))
        lines.append(markdown_row(("---", "---:", *("---" for _ in names))))
        for flag in pack.notes:
            words = (runtime.cell(flag).words for runtime in pack.runtimes)
            lines.append(markdown_row((inline(flag), len(pack.of_flag(flag)), *words)))
        totals = [runtime.newest.total.summary for runtime in pack.runtimes]
        lines += [markdown_row(("all cases", len(pack.cases), *totals)), ""]

        # The newest runs: what was judged, when, and the command.
        for runtime in pack.runtimes:
            judged = " ".join(filter(None, (runtime.name, runtime.version)))
            run = runtime.newest
            line = f"- {inline(f'{judged} on {run.date[:10]}{_conceded(run)}')}"
            lines.append(f"{line}: {code(run.quoted_command)}" if run.command else line)
    return "\n".join([*lines, ""])


def write_site(folder: Path, packs: Sequence[PackResults]) -> int:
    """Write the site and return the number of its pages.

    Args:
        folder: a new or empty folder, or an older site, which is replaced.
        packs: the results.

    Raises:
        rnncli.errors.InvalidRequest: the folder has other content, or cannot be written.
        Unsupported: the extra `report` is not installed.
    """
    with atomic_folder(folder) as root:
        _put(root / "style.css", shared_style("site"))
        _put(root / "index.html", plain_page("site_index", packs=packs, up="", **_SHARED))
        # The counts of every run, for programs.
        runs = [
            {
                "pack": visible(pack.name),
                "digest": visible(run.pack.digest),
                "runtime": visible(runtime.name),
                "version": visible(run.subject.about.get("version", "")),
                "date": visible(run.date),
                "rule": visible(run.terms),
                "verdicts": {str(name): count for name, count in run.total.counts.items()},
            }
            for pack in packs
            for runtime in pack.runtimes
            for run in runtime.runs
        ]
        _put(root / RESULTS, json.dumps({"runs": runs}, indent=1) + "\n")
        written = 1
        for pack in packs:
            pages: dict[str, tuple[str, dict[str, Any]]] = {
                **{f"runtimes/{r.file}": ("site_runtime", {"runtime": r}) for r in pack.runtimes},
                **{f"features/{file_name(f)}": ("site_feature", {"flag": f}) for f in pack.notes},
                **{
                    f"cases/{file_name(c)}": ("site_case", {"case": v})
                    for c, v in pack.cases.items()
                },
            }
            for path, (template, own) in pages.items():
                text = plain_page(template, pack=pack, up="../../", **own, **_SHARED)
                _put(root / pack.file / f"{path}.html", text)
            for runtime in pack.runtimes:
                shield = json.dumps(badge(runtime)) + "\n"
                _put(root / pack.file / f"badges/{runtime.file}.json", shield)
                _put(root / pack.file / f"runs/{runtime.file}.html", page(runtime.newest))
            written += len(pages) + len(pack.runtimes)
    return written


def _put(path: Path, text: str) -> None:
    """Write a file of a folder that is synchronised as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    put_file(path.parent, path.name, text.encode())


_SHARED: dict[str, Any] = {
    "file_name": file_name,
    "sentences": _sentences,
    "short": short,
    "meanings": MEANINGS,
    "meaning": MEANING,
}
