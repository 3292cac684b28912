"""Running many targets, in this process or several, with one report for each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

from rnncli.backends.threads import allowed
from rnncli.errors import Exhausted, NothingSelected, RnncliWarning, explain
from rnncli.jobs.workers import in_order
from rnncli.limits.budget import held
from rnncli.limits.deadline import watched
from rnncli.running.execution import execute
from rnncli.running.request import Request, Run, RunReport, TargetReport
from rnncli.running.summary import summarise
from rnncli.running.target import load_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.cases.case import Case
    from rnncli.jobs.workers import Workers
    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.models.model import Model


class Task(NamedTuple):
    """A target and the paths its files go to; "" for none."""

    target: str
    request: Request
    output: str = ""
    saved_inputs: str = ""
    steps: str = ""


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
    runs = list(execute(loaded, task.request))
    if task.saved_inputs or task.output or task.steps:
        _write(task, loaded, runs)
    return tuple(_report(run, task.request) for run in runs)


def _judged(report: TargetReport, request: Request) -> TargetReport:
    """Give a report its exit code: where outputs are expected, those of each run are compared.

    They are expected if tolerances are given, or if another data set of the target has some.
    """
    if not all(output.agrees for run in report.runs for output in run.comparison):
        return report._replace(exit_code=1)
    bare = [run.name for run in report.runs if not run.comparison]
    is_judged = not request.own_tolerances or len(bare) < len(report.runs)
    if not (bare and is_judged):
        return report
    place = f"{report.target} {bare[0]}".rstrip()
    sentence = f"{place}: no expected outputs to compare with"
    return report._replace(error=sentence, exit_code=NothingSelected.exit_code)


def _write(task: Task, loaded: Model | Case, runs: Sequence[Run]) -> None:
    from rnncli.running.written_runs import write_inputs, write_outputs, write_steps

    if task.saved_inputs:
        write_inputs(task.saved_inputs, runs)
    if task.steps:
        write_steps(task.steps, runs)
    if task.output:
        write_outputs(task.output, loaded, runs)


def _report(run: Run, request: Request) -> RunReport:
    outputs = tuple(summarise(name, values) for name, values in run.outputs.items())
    return RunReport(run.name, run.seconds, outputs, _comparison(run, request))


def _comparison(run: Run, request: Request) -> tuple[OutputComparison, ...]:
    """Compare the outputs with the expected ones, if any came with the target."""
    if not run.expected:
        return ()
    from rnncli.judging.comparing.comparison import compare

    elements = run.tolerances if request.own_tolerances else {}
    return compare(run.outputs, run.expected, request.tolerance._replace(elements=elements))
