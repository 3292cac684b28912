"""`rnncli bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.bench_options import OTHERS, TARGETS, measuring_options
from rnncli.cli.command import Command
from rnncli.cli.options import json_option, options_of
from rnncli.jobs.workers import Workers

if TYPE_CHECKING:
    from rnncli.bench.contest import ContestPlan


@click.command(cls=Command)
@click.option("--cases", type=click.IntRange(30), default=6000, show_default=True, help="How many.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often.")
@options_of(Workers, default=Workers(jobs=2), only=["jobs"])
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder for temporary files.  [default: the system's]",
)
@json_option
def generation(
    *, cases: int, rounds: int, workers: Workers, scratch: Path | None, as_json: bool
) -> None:
    """Measure how many small vectors per second `rnncli generate` writes.

    The vectors are ONNX folders: with goldens in float64, the same in several processes, and
    certified. Rounds are interleaved, and medians are shown. The time of the files alone, which
    depends on the disk, is measured as well.
    """
    from rnncli.bench.durations import WAYS, file_cost, measure_generation
    from rnncli.bench.machine import surroundings
    from rnncli.reports.contests import show_generation
    from rnncli.reports.progress import progress_bar

    with progress_bar(rounds * len(WAYS), "packs") as progress:
        measured = measure_generation(cases, rounds, workers.jobs, scratch, progress.advance)
    show_generation(measured, file_cost(scratch), surroundings(), as_json=as_json)


@click.command(cls=Command)
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="How often.")
@json_option
def startup(*, rounds: int, as_json: bool) -> None:
    """Measure whole processes, from start to end.

    `rnncli --help` is compared with a click program without commands, and `rnncli run` on a model
    with one tiny node with a program that runs the same model with ONNX Runtime, if installed.
    Rounds are interleaved, and medians are shown.
    """
    from rnncli.bench.durations import PROCESSES, measure_startup
    from rnncli.bench.machine import NO_PYC, notes
    from rnncli.reports.contests import show_startup
    from rnncli.reports.progress import progress_bar

    noted = notes([NO_PYC])  # before our own load
    with progress_bar(rounds * len(PROCESSES), "processes", still=True) as progress:
        measured = measure_startup(rounds, progress.advance)
    show_startup(measured, noted, as_json=as_json)


COMMANDS = dict(zip(OTHERS, (generation, startup), strict=True))


class BenchCommand(Command):
    """The command `bench`, with subcommands beside its workloads."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Pass the arguments after a subcommand's name to the subcommand."""
        command = COMMANDS.get(args[0]) if args else None
        if command is None:
            return super().make_context(info_name, args, parent, **extra)
        shared = [each for each in self.params if each.name == "traceback"]
        command.params += [each for each in shared if each not in command.params]
        return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)


@click.command(cls=BenchCommand)
@click.argument("targets", metavar="[WORKLOAD|TARGET]...", type=TARGETS, nargs=-1)
@measuring_options
@json_option
def bench(targets: tuple[str, ...], **options: Any) -> int:
    """Measure speed, as ratios within one run.

    WORKLOAD is tiny, small, medium, large, long or xl, for each of LSTM, GRU and RNN; the default
    is all of them. Their GRU resets after the product with R, the only form that PyTorch supports.
    TARGET is a config, suite or model, as for `rnncli run`; a model runs on its first test data set
    or on generated inputs. Two subcommands have options of their own: `rnncli bench generation`
    measures the vectors generated per second, and `rnncli bench startup` the duration of whole
    processes.

    Backends and runtimes run in their own processes and take turns, so other load on the machine
    affects all alike; on a busy one, `--clock cpu --by fastest` repeats best. Loading, compiling
    and warming up are not counted; call overhead is. Speed is the time of the first that runs
    divided by the time of the other. GFLOP/s and GB/s are compared with NumPy's BLAS and plain
    copying in a process beside them; bytes are those of inputs and outputs, and of the recurrent
    weights again in every step. The error is the largest absolute difference from float64; for it,
    a built-in workload with few outputs runs on up to 32 sets of data. Memory is the growth of a
    process while it loaded and ran.

    \b
    rnncli bench medium large --op LSTM
    rnncli bench tiny --vs onnxruntime --backend numpy --bound --rounds 50
    rnncli bench tiny small --session --clock cpu
    rnncli bench --threads 2 --by fastest -o after.json --against before.json --max-slowdown 5
    rnncli bench lstm_14_peepholes --vs onnxruntime,onnx-reference --json
    rnncli bench model.onnx --dim batch=4 --nodes
    rnncli bench model.onnx --session --host onnxruntime
    """
    from rnncli.bench.contest import contests
    from rnncli.bench.machine import facts, notes
    from rnncli.bench.measurement import read_stored
    from rnncli.reports.contests import ContestPrinter, show_changes
    from rnncli.reports.verification import check_reports

    output, against, most = (options.pop(n) for n in ("output", "against", "max_slowdown"))
    if most is not None and against is None:
        raise click.UsageError("--max-slowdown PERCENT needs --against FILE.json")
    as_json = options.pop("as_json")
    check_reports({"output": output})
    plan = _plan(targets, options)
    stored = read_stored(against, plan.header()) if against else None
    noted = [*plan.notes, *notes()]  # before our own load
    with ContestPrinter(plan.turns, plan.header(), facts(), as_json=as_json) as printer:
        for contest in contests(plan, printer.progress.advance):
            printer.show(contest)
            if output:  # each time, so that an interrupt loses at most one
                printer.store(Path(output))
    printer.close(noted)
    if stored is None:
        return 0
    return int(show_changes(stored, printer.records, most, as_json=as_json))


def _plan(targets: tuple[str, ...], options: dict[str, Any]) -> ContestPlan:
    """Return the benchmark that the arguments describe."""
    from rnncli.bench.contest import ContestPlan, ContestTerms
    from rnncli.bench.contestants import backends, runtimes
    from rnncli.bench.workloads import OPERATORS, WORKLOADS, planned

    is_bound, is_session = options.pop("bound"), options.pop("session")
    if is_bound and is_session:
        raise click.UsageError("--bound and --session exclude each other")
    call = "bound" if is_bound else "session" if is_session else "evaluate"
    rivals, missing = runtimes(options.pop("rivals"))
    own = backends(options.pop("own"), options["compute"], call, options.pop("host"))
    if not (rivals or own):
        raise click.UsageError("nothing to measure: name a runtime with --vs or a --backend")
    operators, dtype = options.pop("operators"), options.pop("dtype")
    is_built_in = not targets or bool({*targets} & {*WORKLOADS})
    if not is_built_in and (operators, dtype) != (None, None):
        raise click.UsageError("--op and --dtype are for built-in workloads, and none is named")
    if operators == ():
        raise click.UsageError("--op names no operator")
    workloads = planned(targets, operators or [*OPERATORS], dtype or "float32", options.pop("dims"))
    if options["nodes"] and not any(each.is_model for each in workloads):
        raise click.UsageError("--nodes is for models, and none is named")
    return ContestPlan(
        workloads=workloads,
        contestants=(*rivals, *own),
        terms=ContestTerms(call=call, **options),
        notes=tuple(f"{name} is not measured: {reason}" for name, reason in missing.items()),
    )
