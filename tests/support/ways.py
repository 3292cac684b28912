"""What ways to a green run without an answer need: altered packs, rewritten runs."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from support.rivals import on_little_data
from support.small_suite import small_suite

from rnncli.api import commands
from rnncli.files.described import jsonable
from rnncli.files.formats import pb
from rnncli.files.reading import sha256
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.claim import Claim
from rnncli.judging.selected import Selected
from rnncli.packs.manifest import JOURNAL, Manifest
from rnncli.packs.pack import open_pack
from rnncli.reports.verification import case_record, run_record, summary_record
from rnncli.subjects.runtimes import RuntimeRow


def plus_one(vector):
    """Wrong outputs."""
    return {name: values + 1 for name, values in vector.answers.outputs.items()}


def plain(vector):
    """Return the expected outputs."""
    return vector.answers.outputs


def refuse(vector):
    """Refuse what is asked."""
    raise NotImplementedError(vector.id)


def keeping(patch, name):
    """Make a runtime of `second_calls` known as `keeping`."""
    row = RuntimeRow(f"support.second_calls:{name}", "keeps too much")
    patch.setattr("rnncli.subjects.runtimes.known_subjects", lambda: {"keeping": row})


def changed(pattern, number):
    """Put a number into all elements of some files; None is one more than each was."""
    for path in Path().glob(pattern):
        name, values = pb.read_named(path)
        made = values + 1 if number is None else np.full_like(values, number)
        path.write_bytes(pb.serialize(name, made))


def altered(pattern, number):
    """Make `altered`, a copy of `two` with a number in all elements of some files."""
    shutil.copytree("two", "altered")
    changed(f"altered/test_*/test_data_set_0/{pattern}", number)


def renamed(folder):
    """Leave one output of each case in results, under a name that was not asked for."""
    for path in Path(folder).glob("test_*/*/output_*.pb"):
        _, values = pb.read_named(path)
        path.unlink() if path.stem[-1] != "0" else path.write_bytes(pb.serialize("Z", values))


def claimed(cases, *require, pack="two"):
    """Make `claim.yaml` on a pack."""
    manifest = open_pack(pack).manifest
    claim = Claim("mine", manifest.header["suite"], manifest.digest, cases, [*require])
    Path("claim.yaml").write_text(claim.text)


def recorded(change=lambda lines: lines, kernel=plus_one, **options):
    """Make `run.jsonl`, the lines of a run, altered."""
    lines = change(lines_of(commands.verify("two", kernel, **options)))
    Path("run.jsonl").write_text("\n".join(lines))


def rewritten(change, kernel=plus_one):
    """Make `run.jsonl`, the lines of a run whose report is altered before it is counted."""
    Path("run.jsonl").write_text("\n".join(lines_of(change(commands.verify("two", kernel)))))


def lines_of(report):
    """Return the lines of a report, whose summary counts the cases as they are."""
    cases = (case_record(report, case) for case in report.cases)
    records = [run_record(report), *cases, summary_record(report)]
    return [json.dumps(jsonable(record)) for record in records]


def called(verdict):
    """Return what calls each case of a report so, and leaves its outputs as they are."""

    def change(report):
        cases = [
            case._replace(details=structs.replace(case.details, verdict=verdict))
            for case in report.cases
        ]
        return dataclasses.replace(report, cases=cases)

    return change


def cut(report):
    """Return a report without its last case."""
    return dataclasses.replace(report, cases=report.cases[:-1])


def shards(*settings):
    """Make `run.jsonl`, the shards of a run, each with other settings."""
    lines = []
    for k, about in enumerate(settings, 1):
        report = commands.verify("two", plain, cases=Selected(shard=f"{k}/{len(settings)}"))
        subject = structs.replace(report.subject, about=about)
        lines += lines_of(dataclasses.replace(report, subject=subject))
    Path("run.jsonl").write_text("\n".join(lines))


def unfinished():
    """Make `new`, in which all of `two` is made but not finished."""
    made = []

    def done(count):
        made.extend([None] * count)
        if len(made) == len(open_pack("two").manifest.cases):
            raise KeyboardInterrupt

    suite = small_suite(Path("two.yaml").read_text())
    with pytest.raises(KeyboardInterrupt):
        generate(GenerationPlan(suite=suite), Path("new"), done)


def journal_of_zeros():
    """Make `new`, a pack in the making that somebody altered together with its journal."""
    unfinished()
    journal = Path("new") / JOURNAL
    text = journal.read_text()
    for path in Path("new").glob("test_*/test_data_set_0/output_*.pb"):
        name, values = pb.read_named(path)
        before = sha256(path.read_bytes())
        path.write_bytes(pb.serialize(name, np.zeros_like(values)))
        text = text.replace(before, sha256(path.read_bytes()))
    journal.write_text(text)


def nothing_in_it():
    """Make `none`, a pack without cases."""
    Path("none").mkdir()
    for name, content in Manifest(open_pack("two").manifest.header, ()).contents().items():
        Path("none", name).write_bytes(content)


def measured(patch, *implementations, baseline):
    """Make `before.json`, a stored run of `bench`, in which none of these could run."""
    terms = {"baseline": baseline, "threads": 1, "compute": "native"}
    terms |= {"call": "evaluate", "clock": "wall", "statistic": "median"}
    key = {"workload": "tiny", "operator": "RNN", "sizes": "T 5, B 2, I 3, H 4, float32"}
    rows = [
        {**key, "implementation": name, "baseline": baseline, "ratio": None}
        for name in implementations
    ]
    Path("before.json").write_text(json.dumps({"terms": terms, "results": rows}))
    on_little_data(patch)
