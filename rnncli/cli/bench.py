"""`rnncli bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rnncli.api import commands
from rnncli.cli.command import Command, command
from rnncli.cli.options import BACKENDS, SECONDS, Number, PathOrName, Written, names_in, row
from rnncli.jobs.workers import Workers
from rnncli.limits import OF_CONTESTS, Limits
from rnncli.models.evaluation_settings import HOSTS

if TYPE_CHECKING:
    from collections.abc import Mapping

# Benchmarks that are subcommands with their own options.
OTHERS = ("generation", "startup")


def workload_names() -> list[str]:
    """Return the names of workloads and of the other benchmarks."""
    from rnncli.bench.workloads import LINEAR, WORKLOADS

    return [*WORKLOADS, *LINEAR, *OTHERS]


TARGETS = PathOrName(f"{__name__}:workload_names")


class Names(click.ParamType[tuple[str, ...]]):
    """`one,two,three`; the last is completed by the shell, from a table that is imported on use."""

    name = "name[,...]"

    def __init__(self, table: str, *, is_ours: bool = False) -> None:
        self.table, self.is_ours = table, is_ours

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split at commas; "" gives no names."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name for each in value.split(",") if (name := each.strip())))
        known = names_in(self.table) if self.is_ours else names
        for name in names:
            if name not in known:
                self.fail(f"'{name}' is not one of {', '.join(known)}", param, ctx)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the known names after those already typed."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in names_in(self.table)
            if name.startswith(last) and name not in used
        ]


TWO = Workers(jobs=2)
ROUNDS = row(type=click.IntRange(1))


@command(
    cases=row(type=click.IntRange(30)),
    rounds=ROUNDS,
    workers=row(only=["jobs"]),
    scratch=row(type=click.Path(path_type=Path, exists=True, file_okay=False)),
)
def generation(
    *,
    cases: int = 6000,
    rounds: int = 3,
    workers: Workers = TWO,
    scratch: Path | None = None,
    as_json: bool = False,
) -> None:
    """Measure how many small vectors per second `rnncli generate` writes.

    The vectors are ONNX folders: with goldens in float64, the same in several processes, and
    certified. Rounds are interleaved, and medians are shown. The time of the files alone, which
    depends on the disk, is measured as well.

    Options:
        cases: How many.
        rounds: How often.
        scratch: Folder for temporary files.  [default: the system's]
    """
    from rnncli.bench.durations import WAYS, file_cost, measure_generation
    from rnncli.bench.machine import surroundings
    from rnncli.reports.contests import show_generation
    from rnncli.reports.progress import progress_bar

    with progress_bar(rounds * len(WAYS), "packs") as progress:
        measured = measure_generation(cases, rounds, workers.jobs, scratch, progress.advance)
    show_generation(measured, file_cost(scratch), surroundings(), as_json=as_json)


@command(rounds=ROUNDS)
def startup(*, rounds: int = 15, as_json: bool = False) -> None:
    """Measure whole processes, from start to end.

    `rnncli --help` is compared with a click program without commands, and `rnncli run` on a model
    with one tiny node with a program that runs the same model with ONNX Runtime, if installed.
    Rounds are interleaved, and medians are shown.

    Options:
        rounds: How often.
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
        if args and args[0] in COMMANDS:
            name = f"{info_name} {args[0]}"
            return COMMANDS[args[0]].make_context(name, args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@command(
    commands.stream,
    cls=BenchCommand,
    targets=row(type=TARGETS, nargs=-1, metavar="[WORKLOAD|TARGET]...", required=False),
    rivals=row("--vs", type=Names("rnncli.subjects.runtimes:known_subjects")),
    own=row("--backend", type=Names(BACKENDS)),
    operators=row("--op", type=Names("rnncli.bench.workloads:OPERATORS", is_ours=True)),
    dtype=row(type=click.Choice(["float32", "float64", "float16", "bfloat16"])),
    compute=row(type=click.Choice(["float64", "native"])),
    limits=row(only=["threads", "timeout"]),
    rounds=ROUNDS,
    seconds=row(type=SECONDS),
    clock=row(type=click.Choice(["wall", "cpu"])),
    statistic=row("--by", type=click.Choice(["median", "fastest"])),
    output=row("-o", type=Written("--json prints there"), metavar="FILE.json"),
    against=row(type=click.Path(path_type=Path), metavar="FILE.json"),
    max_slowdown=row(type=Number(0), metavar="PERCENT"),
)
def bench(
    targets: tuple[str, ...],
    *,
    rivals: tuple[str, ...] | None = None,
    own: tuple[str, ...] | None = None,
    operators: tuple[str, ...] | None = None,
    dtype: str | None = None,
    dims: Mapping[str, int] | None = None,
    compute: str = "native",
    host: str = HOSTS[0],
    limits: Limits = OF_CONTESTS,
    rounds: int = 15,
    seconds: float = 0.02,
    clock: str = "wall",
    statistic: str = "median",
    bound: bool = False,
    session: bool = False,
    nodes: bool = False,
    output: str | None = None,
    against: Path | None = None,
    max_slowdown: float | None = None,
    as_json: bool = False,
) -> int:
    """Measure speed, as ratios within one run.

    WORKLOAD is tiny, small, medium, large, long or xl, for each of LSTM, GRU and RNN; the default
    is all of them. Their GRU resets after the product with R, the only form that PyTorch supports.
    Or it is decode, decode_batch or prefill, a LinearAttention of 32 heads of 128 by 128, or
    conv_decode or conv_prefill, a CausalConvWithState; ONNX Runtime runs its own kernels of both.
    TARGET is a config, suite or model, as for `rnncli run`; a model runs on its first test data set
    or on generated inputs. Two subcommands have options of their own: `rnncli bench generation`
    measures the vectors generated per second, and `rnncli bench startup` the duration of whole
    processes.

    Backends and runtimes run in their own processes and take turns, so other load on the machine
    affects all alike; on a busy one, `--clock cpu --by fastest` varies least. Loading, compiling
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
    rnncli bench decode prefill --vs onnxruntime --bound
    rnncli bench --threads 2 --by fastest -o after.json --against before.json --max-slowdown 5
    rnncli bench lstm_14_peepholes --vs onnxruntime,onnx-reference --json
    rnncli bench model.onnx --dim batch=4 --nodes
    rnncli bench model.onnx --session --host onnxruntime

    Options:
        rivals: Runtimes to compare with: onnxruntime, openvino, torch, onnx-reference, tract, or
            one that a package adds; '' for none. Ratios refer to the first.  [default: onnxruntime,
            openvino and torch, those that are installed]
        own: Backends of rnncli.  [default: numpy, and numba where it is installed]
        operators: Operators of the built-in workloads.  [default: LSTM,GRU,RNN]
        dtype: Type of the tensors of the built-in workloads.  [default: float32]
        compute: Arithmetic of the backends of rnncli.
        rounds: Number of turns that each backend and runtime gets.
        seconds: Length of a turn in seconds; a longer call is a turn by itself.
        clock: Measure the time that passes, or the processor time of each process, which depends
            less on other load.
        statistic: Compare medians of all rounds, or the fastest rounds if the machine is busy.
        bound: Check the node and bind its tensors once, and time our backends alone. Otherwise each
            call is what `rnncli.evaluate` does.
        session: Time sessions from `rnncli.prepare`: of the operator with its weights, and of the
            one-node model that runtimes get.
        nodes: Time the nodes of models as well, by operator, in rnncli and ONNX Runtime.
        output: Store the times of all rounds in FILE.json.
        against: Compare the ratios with those of a run that -o stored.
        max_slowdown: With --against: exit with 1 if a backend of rnncli slowed down by more than
            this percentage, relative to the first runtime.
    """
    from rnncli.bench.contest import ContestPlan, ContestTerms, contests
    from rnncli.bench.contestants import backends, runtimes
    from rnncli.bench.machine import facts, notes
    from rnncli.bench.measurement import read_stored
    from rnncli.bench.workloads import LINEAR, OPERATORS, WORKLOADS, planned
    from rnncli.reports.contests import ContestPrinter, show_changes
    from rnncli.reports.verification import check_reports

    if max_slowdown is not None and against is None:
        raise click.UsageError("--max-slowdown PERCENT needs --against FILE.json")
    check_reports({"output": output})
    if bound and session:
        raise click.UsageError("--bound and --session exclude each other")
    call = "bound" if bound else "session" if session else "evaluate"
    contestants, missing = runtimes(rivals)
    contestants = [*contestants, *backends(own, compute, call, host)]
    if not contestants:
        raise click.UsageError("nothing to measure: name a runtime with --vs or a --backend")
    is_built_in = not targets or bool({*targets} & {*WORKLOADS, *LINEAR})
    if not is_built_in and (operators, dtype) != (None, None):
        raise click.UsageError("--op and --dtype are for built-in workloads, and none is named")
    if operators == ():
        raise click.UsageError("--op names no operator")
    workloads = planned(targets, operators or [*OPERATORS], dtype or "float32", dims or {})
    if nodes and not any(each.is_model for each in workloads):
        raise click.UsageError("--nodes is for models, and none is named")
    plan = ContestPlan(
        workloads=workloads,
        contestants=tuple(contestants),
        terms=ContestTerms(
            call=call,
            compute=compute,
            limits=limits,
            rounds=rounds,
            seconds=seconds,
            clock=clock,
            statistic=statistic,
            nodes=nodes,
        ),
        notes=tuple(f"{name} is not measured: {reason}" for name, reason in missing.items()),
    )

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
    return int(show_changes(stored, printer.records, max_slowdown, as_json=as_json))
