"""The tasks of a batch: planned from targets and paths, run by workers, and their files written."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rnncli.backends.threads import allowed
from rnncli.errors import (
    Exhausted,
    InvalidRequest,
    NothingSelected,
    RnncliWarning,
    explain,
    worst_code,
)
from rnncli.files.formats import FOLDER, format_of, write_output
from rnncli.files.formats.format import DataSet, flatten
from rnncli.jobs.workers import in_order
from rnncli.limits import held, watched
from rnncli.models.exports import contradicted, export_faults
from rnncli.models.model import Model
from rnncli.models.tensor_values import external_files
from rnncli.numerics import says_nothing, warn_of_nan
from rnncli.running.execution import execute
from rnncli.running.request import (
    ListedTarget,
    Request,
    Run,
    RunReport,
    TargetReport,
    summarise,
)
from rnncli.running.target import cases_of, load_target, short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.cases.case import Case
    from rnncli.jobs.workers import Workers
    from rnncli.running.request import AgainstReport, ExpectedReport, Run


class Rival(Protocol):
    """An implementation that runs whole models, and its judge; it travels between processes."""

    def report(
        self, target: str, loaded: Model | Case, request: Request, run: Run
    ) -> AgainstReport:
        """Run a target on the inputs of a run of ours; compare the outputs.

        Raises:
            RnncliError: the target is not a model, or the implementation cannot run at all.
        """


class Judge(Protocol):
    """A judge of outputs that another program gave; it travels between processes."""

    def report(self, loaded: Model | Case, request: Request, run: Run) -> ExpectedReport:
        """Compare the outputs of a run with those that are expected of it."""


class Task(NamedTuple):
    """A target and the paths its files go to; "" for none."""

    target: str
    request: Request
    output: str = ""
    saved_inputs: str = ""
    steps: str = ""
    rival: Rival | None = None  # what runs the target as well
    judge: Judge | None = None  # of outputs that are expected


def all_targets(targets: Sequence[str], more: Iterable[str | ListedTarget]) -> list[ListedTarget]:
    """Return the targets given and those listed, without blank lines and comments.

    A suite stands for all of its valid cases.

    Raises:
        NothingSelected: there are none.
    """
    listed = []
    for each in (*targets, *more):
        if isinstance(each, ListedTarget):
            listed.append(each)
        elif (line := each.strip()) and not line.startswith("#"):
            listed.append(ListedTarget(line))
    if not listed:
        raise NothingSelected("no target: name a model or a config, or list some with --from")
    cases = [each._replace(target=case) for each in listed for case in cases_of(each.target)]
    if not cases:
        names = ", ".join(each.target for each in listed)
        raise NothingSelected(f"{names}: every case must be rejected; none can run")
    return cases


def plan(
    targets: Sequence[ListedTarget],
    request: Request,
    *,
    output: str = "",
    entry_format: str = "onnx",
    save_inputs: str = "",
    steps: str = "",
    rival: Rival | None = None,
    judge: Judge | None = None,
) -> list[Task]:
    """Return a task for each target, with the paths of its files.

    A single target writes to the paths given. Several targets write into the folder given, each to
    an entry of its own name: a folder for `entry_format` "onnx", otherwise a file with that
    extension.

    Raises:
        InvalidRequest: several targets, but a path is a file; or the signals of one target, but
            their path is a folder.
    """
    if as_path(steps).endswith("/") and len(targets) == 1:
        raise InvalidRequest(f"{steps}: signals of steps are written to one file: .npz or .h5")
    request = replace(request, steps=bool(steps), judged=rival is not None)
    if len(targets) == 1:
        (only,) = targets
        asked = only.asked(request)
        return [Task(only.target, asked, as_path(output), save_inputs, steps, rival, judge)]
    for path in filter(None, (output, save_inputs, steps)):
        if not as_path(path).endswith("/") or Path(path).is_file():
            raise InvalidRequest(f"{path}: several targets need a folder, not a single file")
        Path(path).mkdir(parents=True, exist_ok=True)
    names = short_names([each.target for each in targets])
    suffix = "/" if entry_format == "onnx" else f".{entry_format}"
    return [
        Task(
            each.target,
            each.asked(request),
            f"{Path(output) / name}{suffix}" if output else "",
            f"{Path(save_inputs) / name}.npz" if save_inputs else "",
            f"{Path(steps) / name}.npz" if steps else "",
            rival,
            judge,
        )
        for each, name in zip(targets, names, strict=True)
    ]


def run_all(tasks: Sequence[Task], workers: Workers) -> Iterator[TargetReport]:
    """Run tasks by workers; yield their reports in the tasks' order.

    Raises:
        InvalidRequest: a worker process was killed.
    """
    yield from in_order(workers.run(run_task, tasks))


def run_task(task: Task) -> TargetReport:
    """Run one target, write its files and return its report, also of a failure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RnncliWarning)
        try:
            request, limits = task.request, task.request.limits
            with (
                held(limits.max_memory, named=(task.target, *request.files)),
                watched(limits.timeout, task.target),
                allowed(limits.threads),
            ):
                runs = _run(task)
        except Exception as error:  # noqa: BLE001 -- one target's failure is not the next one's
            import traceback

            sentence, code = explain(error)
            if isinstance(error, Exhausted) and not sentence.startswith(task.target):
                sentence = f"{task.target}: {sentence}"
            report = TargetReport(
                task.target, error=sentence, exit_code=code, traceback=traceback.format_exc()
            )
        else:
            report = _judged(TargetReport(task.target, runs), request)
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    return report._replace(warnings=tuple(messages))


def _run(task: Task) -> tuple[RunReport, ...]:
    task.request.arithmetic.check()  # before reading a large model
    loaded = load_target(task.target, seed=task.request.seed)
    faults = export_faults(loaded).sentences if isinstance(loaded, Model) else ()
    for fault in faults:
        warnings.warn(f"{task.target}: {fault}", RnncliWarning, stacklevel=2)
    runs = list(execute(loaded, task.request))
    for sentence in contradicted(loaded, runs[0].outputs) if isinstance(loaded, Model) else ():
        if not any(fault.startswith(sentence[: sentence.index(":") + 1]) for fault in faults):
            warnings.warn(f"{task.target}: {sentence}", RnncliWarning, stacklevel=2)
    for run in runs:
        warn_of_nan(run.inputs.values(), run.outputs)
    if task.saved_inputs:
        write_inputs(task.saved_inputs, runs)
    if task.steps:
        write_steps(task.steps, runs)
    if task.output:
        write_outputs(task.output, loaded, runs)
    return tuple(_report(run, task, loaded) for run in runs)


def _judged(report: TargetReport, request: Request) -> TargetReport:
    """Give a report its exit code: where outputs are expected, those of each run are compared.

    They are expected if tolerances are given, unless those are for an implementation, or if another
    data set of the target has some.
    """
    if not all(output.agrees for run in report.runs for output in run.comparison):
        return report._replace(exit_code=1)
    codes = {run.against.exit_code for run in report.runs if run.against}
    if codes:
        return report._replace(exit_code=worst_code(codes))
    bare = [run.name for run in report.runs if not run.comparison]
    is_judged = not request.own_tolerances or len(bare) < len(report.runs)
    if not (bare and is_judged):
        return report
    place = f"{report.target} {bare[0]}".rstrip()
    sentence = f"{place}: no expected outputs to compare with"
    return report._replace(error=sentence, exit_code=NothingSelected.exit_code)


def _report(run: Run, task: Task, loaded: Model | Case) -> RunReport:
    """Compare the outputs with the expected ones, if any, and with an implementation's."""
    request = task.request
    summary = tuple(summarise(name, values) for name, values in run.outputs.items())
    report = RunReport(run.name, run.seconds, summary)
    if run.expected and task.judge:
        report = report._replace(**task.judge.report(loaded, request, run)._asdict())
        if why := says_nothing(run.expected.values()):
            place = f"{task.target} {run.name}".rstrip()
            sentence = f"{place}: what is expected shows nothing: {why}"
            warnings.warn(sentence, RnncliWarning, stacklevel=2)
    if task.rival is None:
        return report
    return report._replace(against=task.rival.report(task.target, loaded, request, run))


def as_path(output: str) -> str:
    """Mark a path without extension as a folder.

    Raises:
        InvalidRequest: it has an extension that belongs to no format, so it might be a typo.
    """
    if output and (not Path(output).suffix or _is_folder(output)):
        return f"{output.rstrip('/')}/"
    return output


def write_inputs(path: str, runs: Sequence[Run]) -> None:
    """Write the inputs of runs by name, prefixed by the data set if there are several.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails.
    """
    sets = [DataSet(inputs=run.inputs) for run in runs]
    if len(sets) == 1 and not _is_folder(path):
        write_output(path, sets[0].inputs)
    else:
        write_output(path, flatten(sets))


def write_outputs(path: str, loaded: Model | Case, runs: Sequence[Run]) -> None:
    """Write the outputs; a folder becomes an ONNX test case with model and inputs.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails.
    """
    if not _is_folder(path):
        write_output(path, flatten([DataSet(outputs=run.outputs) for run in runs]))
        return
    from rnncli.files.formats.onnx_folder import MODEL, write_test_case

    # The model and its external data stand beside the data sets.
    files: dict[str, bytes | Path] = {}
    if isinstance(loaded, Model):
        assert loaded.file is not None
        assert loaded.folder is not None
        files[MODEL] = loaded.file
        if loaded.file.suffix.lower() != ".onnx":
            files[MODEL] = loaded.proto.SerializeToString(deterministic=True)
        for name in external_files(loaded.proto):
            if name != loaded.file.name:
                files[name] = loaded.folder / name
    else:
        from rnncli.models.single_node import single_node_model  # imports all of onnx

        first, node = runs[0], (loaded.operator, loaded.attributes)
        model = single_node_model(*node, first.inputs, first.outputs)
        files[MODEL] = model.SerializeToString(deterministic=True)
    sets = [DataSet(inputs=run.inputs, outputs=run.outputs) for run in runs]
    write_test_case(Path(path), sets, files)


def write_steps(path: str, runs: Sequence[Run]) -> None:
    """Write the signals of every step by name, prefixed by the data set if there are several.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails, or
            no recurrent node has run.
    """
    found = {
        f"{run.name}/{name}" if len(runs) > 1 else name: values
        for run in runs
        for name, values in run.steps.items()
    }
    if not found:
        raise InvalidRequest(f"{path}: no recurrent node took a step, so there are no signals")
    write_output(path, found)


def _is_folder(path: str) -> bool:
    return FOLDER in format_of(path).extensions
