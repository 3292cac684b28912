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
from rnncli.talk.markup import code, inline
from rnncli.talk.words import visible

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
            for flag in case.record["flags"]:
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
        changes = [RunChange(), *(_change(old, new) for old, new in pairwise(self.runs))]
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
        return [case for case in self.cases.values() if flag in case.record["flags"]]


def _called(report: VerificationReport) -> str:
    """Return what an implementation calls itself, as a harness does, or what the user called it."""
    return report.subject.about.get("name") or report.subject.name


def _published(report: VerificationReport) -> VerificationReport:
    """Return a report whose pack is `PACK` if its path is one of the machine that judged."""
    folder = report.pack.folder
    if not (PurePosixPath(folder).is_absolute() or PureWindowsPath(folder).is_absolute()):
        return report
    return replace(
        report,
        pack=structs.replace(report.pack, folder=PACK),
        command=re.sub(rf"(?<!\S){re.escape(shlex.quote(folder))}(?!\S)", PACK, report.command),
    )


def results_of(reports: Iterable[VerificationReport]) -> list[PackResults]:
    """Group reports by pack and implementation, each in order of appearance.

    Raises:
        rnncli.errors.InvalidRequest: a shard of a run is missing, see `whole_runs`.
    """
    packs: dict[str, dict[str, list[VerificationReport]]] = {}
    for report in map(_published, whole_runs(reports)):
        packs.setdefault(report.pack.name, {}).setdefault(_called(report), []).append(report)
    return [
        PackResults(
            pack,
            [
                RuntimeResults(name, sorted(runs, key=lambda run: run.date))
                for name, runs in named.items()
            ],
        )
        for pack, named in packs.items()
    ]


def badge(runtime: RuntimeResults) -> dict[str, Any]:
    """Return what shields.io draws: the passing cases among those of the newest run."""
    run = runtime.newest
    label = visible(f"{runtime.name} on {run.pack.name}")
    message = visible(f"{run.total.right}/{run.total.cases}{_conceded(run)}")
    return {"schemaVersion": 1, "label": label, "message": message, "color": _colour(run)}


def _conceded(run: VerificationReport) -> str:
    conceded = f" with {' '.join(run.concessions)}" if run.concessions else ""
    return f", {run.adherence}" if run.claim else conceded


def _colour(run: VerificationReport) -> str:
    """Return the colour of a run's badge: bright green only if the whole pack passes by its rule.

    docs/howto/site.md says what each means.
    """
    if not run.passed:
        return "red" if run.claim or run.total.counts[Verdict.DIFFERS] else "yellow"
    if run.total.right < run.total.cases and not run.claim:
        return "yellow"
    return "blue" if run.concessions else "brightgreen"


def as_markdown(packs: Iterable[PackResults]) -> str:
    """Return the tables of runtimes by features as a page of Markdown."""
    return "# What runtimes do\n" + "".join(map(_markdown_of, packs))


def _markdown_of(pack: PackResults) -> str:
    names = [inline(runtime.name) for runtime in pack.runtimes]
    rows = [
        (inline(flag), len(pack.of_flag(flag)), *(r.cell(flag).words for r in pack.runtimes))
        for flag in pack.notes
    ]
    totals = [runtime.newest.total.summary for runtime in pack.runtimes]
    table = [
        ("feature", "cases", *names),
        ("---", "---:", *("---" for _ in names)),
        *rows,
        ("all cases", len(pack.cases), *totals),
    ]
    about = (
        "and written by `rnncli site`. A row is a flag of the pack: a feature, or a bug that its"
        f" cases look for. What is not named here is within the tolerances. {MEANING}"
    )
    named = f"Judged by `rnncli verify` against the pack {code(pack.name)}"  # stays on its line
    about = f"{named}\n{fill(about, 100, break_on_hyphens=False)}"
    lines = map(markdown_row, table)
    runs = map(_run, pack.runtimes)
    return "\n".join(["", f"## {inline(pack.name)}", "", about, "", *lines, "", *runs, ""])


def _run(runtime: RuntimeResults) -> str:
    """Return the newest run as a line of a list: what was judged, when, and the command."""
    judged = " ".join(filter(None, (runtime.name, runtime.version)))
    run = runtime.newest
    line = f"- {inline(f'{judged} on {run.date[:10]}{_conceded(run)}')}"
    return f"{line}: {code(run.quoted_command)}" if run.command else line


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
        _put(root / RESULTS, json.dumps(_summary(packs), indent=1) + "\n")
        return 1 + sum(_write_pack(root / pack.file, pack) for pack in packs)


def _write_pack(folder: Path, pack: PackResults) -> int:
    """Write the pages of a pack and return their number."""
    pages: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"runtimes/{r.file}": ("site_runtime", {"runtime": r}) for r in pack.runtimes},
        **{f"features/{file_name(f)}": ("site_feature", {"flag": f}) for f in pack.notes},
        **{f"cases/{file_name(c)}": ("site_case", {"case": v}) for c, v in pack.cases.items()},
    }
    for path, (template, own) in pages.items():
        text = plain_page(template, pack=pack, up="../../", **own, **_SHARED)
        _put(folder / f"{path}.html", text)
    for runtime in pack.runtimes:
        _put(folder / f"badges/{runtime.file}.json", json.dumps(badge(runtime)) + "\n")
        _put(folder / f"runs/{runtime.file}.html", page(runtime.newest))
    return len(pages) + len(pack.runtimes)


def _put(path: Path, text: str) -> None:
    """Write a file of a folder that is synchronised as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    put_file(path.parent, path.name, text.encode())


def _change(old: VerificationReport, new: VerificationReport) -> RunChange:
    before = {case.id: case.details.fails for case in old.cases}
    now = {c.id: c.details.fails for c in new.cases if c.id in before}
    return RunChange(
        tuple(case for case, fails in now.items() if before[case] and not fails),
        tuple(case for case, fails in now.items() if fails and not before[case]),
    )


def _summary(packs: Sequence[PackResults]) -> dict[str, Any]:
    """Return the counts of every run, for programs."""
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
    return {"runs": runs}


_SHARED: dict[str, Any] = {
    "file_name": file_name,
    "sentences": _sentences,
    "short": short,
    "meanings": MEANINGS,
    "meaning": MEANING,
}
