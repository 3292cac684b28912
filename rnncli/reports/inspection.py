"""What there is, as records: the output of `rnncli inspect`, `list` and `generate`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rnncli.cases.config.config import describe
from rnncli.models.exports import export_faults
from rnncli.models.model import describe as describe_value
from rnncli.models.node_listing import recurrent_nodes, unevaluated_nodes
from rnncli.models.streams import streams_of
from rnncli.operators import operator_named
from rnncli.reports.tables import is_drawn, print_json_line, print_records, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rnncli.cases.suite.suite import Entry, Suite
    from rnncli.generating.generation import GenerationReport
    from rnncli.models.model import Model
    from rnncli.models.node_listing import RecurrentNode, UnevaluatedNode
    from rnncli.models.streams import FreeAxis
    from rnncli.packs.manifest import Manifest
    from rnncli.packs.pack import Pack
    from rnncli.running.native_models import NativeModel


def model_record(model: Model) -> dict[str, Any]:
    """Return a model's inputs, outputs, states, axes of time and batch, and recurrent nodes.

    Unsupported nodes and what is wrong with the states are included.
    """
    graph, streams, exported = model.proto.graph, streams_of(model), export_faults(model)
    producer = [*filter(None, (model.proto.producer_name, model.proto.producer_version))]
    unevaluated = [*unevaluated_nodes(model), *exported.unevaluated]

    def axes(found: Mapping[str, FreeAxis]) -> dict[str, Any]:
        return {name: {"axis": each.axis, "reason": each.reason} for name, each in found.items()}

    return {
        "model": model.name,
        **({"producer": " ".join(producer)} if producer else {}),
        "ir_version": model.proto.ir_version,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets.items()},
        "inputs": {value.name: describe_value(value) for value in model.inputs},
        "outputs": {value.name: describe_value(value) for value in graph.output},
        "data_sets": [folder.name for folder in model.data_sets],
        "states": [pair._asdict() for pair in streams.pairs],
        "time": axes(streams.time),
        "batch": axes(streams.batch),
        "recurrent_nodes": [_node_record(node) for node in recurrent_nodes(model)],
        "not_evaluated": [_unevaluated(node) for node in unevaluated],
        "warnings": [*exported.sentences, *streams.warnings],
    }


def native_record(native: NativeModel) -> dict[str, Any]:
    """Return the inputs, outputs and recurrent nodes of a model of OpenVINO or TFLite."""
    graph = native.interface.proto.graph
    return {
        "model": native.recurrent.name,
        "inputs": {value.name: describe_value(value) for value in graph.input},
        "outputs": {value.name: describe_value(value) for value in graph.output},
        "recurrent_nodes": [_node_record(node) for node in recurrent_nodes(native.recurrent)],
        "not_evaluated": [_unevaluated(node) for node in native.unevaluated],
    }


def _unevaluated(node: UnevaluatedNode) -> dict[str, str]:
    why = {"reason": node.reason} if node.reason else {}
    return {"node": node.name, "operator": node.operator, "where": " / ".join(node.path), **why}


def _node_record(node: RecurrentNode) -> dict[str, Any]:
    return {
        "node": node.name,
        "operator": node.operator.name,
        "where": str(node),
        "attributes": {k: v for k, v in node.attributes.items() if v is not None},
        "inputs": {name: None if s is None else list(s) for name, s in node.inputs.items()},
        "outputs": list(node.outputs),
        **({"quantise": node.unit.written} if node.unit else {}),
    }


def pack_record(pack: Pack) -> dict[str, Any]:
    """Return a pack's purpose, the needs of its cases and the errors in its files."""
    manifest, cases = pack.manifest, pack.cases
    needs = [case.requirements for case in cases]
    return {
        "pack": str(pack.folder),
        **{name: manifest.header[name] for name in ("suite", "summary", "seed", "layout")},
        "selection": manifest.header["selection"],
        "cases": len(cases),
        "operators": _counts(case.operator for case in cases),
        "dtypes": _counts(case.dtype for case in cases),
        "weights": _counts(case.weights for case in cases),
        "golden": _counts(case.golden.kind for case in cases),
        "profiles": _counts(case.profile for case in cases),
        "second calls": sum(case.later_calls is not UNSET for case in cases),
        "horizons": {c.id: c.horizon.measured for c in cases if c.horizon},
        "must be refused": sum(case.expect == "rejection" for case in cases),
        "activations": _counts(name for need in needs for name in need.activations),
        "largest size": max((need.largest_size for need in needs), default=0),
        "flags": _counts(flag for case in cases for flag in case.flags),
        "tags": _counts(tag for case in cases for tag in case.tags),
        **_score(manifest),
        "notes": manifest.header["notes"],
        "files": manifest.file_count,
        "digest": manifest.digest,
        "damaged": dict(pack.problems()),
    }


def _score(manifest: Manifest) -> dict[str, Any]:
    """Return the number of mutants of each cell killed by a scored pack, and the surviving ones."""
    kills: dict[str, set[str]] = {}
    for record in manifest.cases:
        cell = operator_named(record.operator).cell.name
        kills.setdefault(cell, set()).update(record.kills or ())
    found = {}
    for cell, names in manifest.header.get("mutants", {}).items():
        left = [name for name in names if name not in kills.get(cell, ())]
        count = len(kills.get(cell, ()))
        found[cell] = {"killed": count, "of": len(names), "not killed": left}
    return {"mutants": found} if found else {}


def _counts(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return what a suite says about a case, without reading the case."""
    return {
        "id": entry.id,
        "operator": entry.operator.name,
        "dtype": entry.dtype,
        "flags": list(entry.flags),
        "labels": {axis: label for axis, label in entry.labels.items() if label},
        "weights": entry.weights,
        "golden": entry.golden,
        "profile": entry.profile,
        "calls": entry.calls,
        "horizon": entry.horizon,
        "breaks": None if entry.breakage is None else entry.breakage.written,
    }


def case_record(suite: Suite, entry: Entry) -> dict[str, Any]:
    """Return a complete case, with what the suite says about it."""
    about = entry_record(entry)
    about |= {"suite": suite.name, "flags": {flag: suite.notes[flag] for flag in entry.flags}}
    return {"id": about.pop("id"), **describe(entry.case()), **about}


def show_packs(made: Iterable[tuple[Path, Manifest]], *, as_json: bool) -> None:
    """Print written packs: a line each, or an object."""
    records = [written_record(*each) for each in made]
    print_records(tuple(records[0]), records, as_json=as_json)


def written_record(folder: Path, manifest: Manifest, reused: int | None = None) -> dict[str, Any]:
    """Return the entries of a written pack's line.

    `reused` is the number of cases left by an earlier run; None if the format cannot reuse any.
    """
    return {
        "pack": str(folder),
        "suite": manifest.header["suite"],
        "layout": manifest.header["layout"],
        "cases": len(manifest.cases),
        **({} if reused is None else {"reused": reused}),
        "files": manifest.file_count,
        "digest": manifest.digest,
    }


def show_generation(
    report: GenerationReport, *, is_check: bool, as_json: bool, traceback: bool
) -> None:
    """Print the written pack or the findings of a check, and the failed cases."""
    for message in report.warnings:
        say(f"warning: {message}")
    for sentence in report.tailored.sentences if report.tailored else ():
        say(sentence)
    if report.manifest:
        record = written_record(report.folder, report.manifest, report.reused)
        print_records(tuple(record), [record], as_json=as_json)
    elif is_check and not report.failed:
        if as_json:
            for path, word in report.findings:
                print_json_line({"path": path, "finding": word})
        elif report.findings and is_drawn():  # a row for each folder, which is a case
            words: dict[str, Counter[str]] = {}
            for path, word in report.findings:
                words.setdefault(path.partition("/")[0], Counter())[word] += 1
            rows = [
                (name, ", ".join(f"{n} {word}" for word, n in found.items()))
                for name, found in words.items()
            ]
            print_table(("in", "files"), rows)
        elif report.findings:
            print_table(("finding", "path"), [(word, path) for path, word in report.findings])
        stale = counted(len(report.findings), "file is", "files are")
        because = f": {', '.join(report.apart)}" if report.apart else ""
        sentence = f"{stale} not as the suite has them{because}" if report.findings else "clean"
        say(f"{report.folder}: {counted(report.cases, 'case')}, {sentence}")
    for made in report.failed:
        click.echo(made.error, err=True)
        if traceback and made.traceback:
            click.echo(made.traceback, err=True)
    if report.failed:
        so = "nothing was compared" if is_check else "no pack was written"
        kept = "" if is_check else "; the others are kept, and the next run goes on with them"
        say(f"{counted(len(report.failed), 'case')} could not be made, so {so}{kept}")
