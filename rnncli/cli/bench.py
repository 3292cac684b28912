"""`rnncli bench`, and `rnncli bench generation`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rnncli.cli.options import PathOrName, dim_option, json_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.benchmarks.contest import Plan

GENERATION = "generation"


def _workloads() -> Iterable[str]:
    from rnncli.benchmarks.workloads import WORKLOADS

    return [*WORKLOADS, GENERATION]


def _runtimes() -> Iterable[str]:
    from rnncli.benchmarks.contestants import runtime_names

    return runtime_names()


def _backends() -> Iterable[str]:
    from rnncli.backends import BACKENDS

    return BACKENDS


def _types() -> Iterable[str]:
    from rnncli.benchmarks.workloads import OPERATORS

    return OPERATORS


def _dtypes() -> Iterable[str]:
    from rnncli.benchmarks.workloads import OPSETS

    return OPSETS


class Names(click.ParamType[tuple[str, ...]]):
    """`one,two,three`; the last is completed by the shell, from a table that is imported on use."""

    name = "name[,...]"

    def __init__(self, known: Callable[[], Iterable[str]], *, strict: bool = False) -> None:
        self.known, self.strict = known, strict

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split at commas; nothing is no name."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name for each in value.split(",") if (name := each.strip())))
        known = list(self.known()) if self.strict else names
        for name in names:
            if name not in known:
                self.fail(f"'{name}' is none of {', '.join(known)}", param, ctx)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the known names after those that are written already."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self.known()
            if name.startswith(last) and name not in used
        ]


class BenchCommand(click.Command):
    """The command, whose first argument `generation` is a command of its own."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Hand the arguments after `generation` to that command."""
        if args[:1] != [GENERATION]:
            return super().make_context(info_name, args, parent, **extra)
        shared = [each for each in self.params if each.name == "traceback"]
        generation.params += [each for each in shared if each not in generation.params]
        return generation.make_context(f"{info_name} {GENERATION}", args[1:], parent, **extra)


@click.command(cls=BenchCommand)
@click.argument("targets", metavar="[WORKLOAD|TARGET]...", type=PathOrName(_workloads), nargs=-1)
@click.option(
    "--vs",
    "rivals",
    type=Names(_runtimes),
    help="Runtimes to compare with: onnxruntime, openvino, torch, onnx-reference, tract, or one"
    " that a package adds; '' for none. Ratios refer to the first.  [default: onnxruntime, openvino"
    " and torch, those that are installed]",
)
@click.option(
    "--backend",
    "own",
    type=Names(_backends),
    help="Backends of rnncli.  [default: numpy, and numba where it is installed]",
)
@click.option(
    "--op",
    "operators",
    type=Names(_types, strict=True),
    default="LSTM,GRU,RNN",
    show_default=True,
    help="Operators of the built-in workloads.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Of the built-in workloads.",
)
@dim_option
@click.option(
    "--compute",
    type=click.Choice(["float64", "native"]),
    default="native",
    show_default=True,
    help="The arithmetic of our backends.",
)
@click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Of each process."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=15, show_default=True, help="Turns of each."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=0.02,
    show_default=True,
    help="How long a turn lasts; a call that takes longer is a turn.",
)
@click.option(
    "--by",
    "statistic",
    type=click.Choice(["median", "fastest"]),
    default="median",
    show_default=True,
    help="The round that stands for all; the fastest, where others use the machine, too.",
)
@click.option(
    "--bound",
    is_flag=True,
    help="Check the node and bind its tensors once, and time our backends alone. Otherwise each"
    " call is what `rnncli.evaluate` does.",
)
@click.option(
    "--nodes",
    is_flag=True,
    help="Time the nodes of models as well, by operator, in rnncli and ONNX Runtime.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds for loading and warming up, and for a turn; then it is killed.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.json", help="Store all rounds."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Compare ratios with those of a stored run.",
)
@click.option(
    "--max-slowdown",
    type=click.FloatRange(0),
    metavar="PERCENT",
    help="With --against: exit 1 when a backend of ours takes longer by more, as a ratio to the"
    " first runtime.",
)
@json_option
@click.pass_context
def bench(ctx: click.Context, /, targets: tuple[str, ...], **options: Any) -> None:
    """Measure speed, as ratios within one run.

    WORKLOAD is tiny, small, medium, large, long or xl, for each of LSTM, GRU and RNN; all of them
    unless named. Their GRU has linear_before_reset 1, the only form that PyTorch knows. TARGET is a
    config, suite or model that `rnncli run` takes; a model runs on its first test data set or on
    generated inputs. `generation` measures `rnncli generate` and has options
    of its own: rnncli bench generation --help.

    Our backends and the runtimes run in processes of their own, in turns, so that what else the
    machine does hits all alike. Loading, compiling and warming up come before; call overhead
    counts. Speed is the time of the first runtime, divided. GFLOP/s and GB/s are held against what
    NumPy's BLAS and plain copying reach in a process beside them; bytes are those of inputs and
    outputs, and of the recurrent weights again in every step. The error is the largest absolute
    difference to float64. Memory is what a process grew by while it loaded and ran.

    \b
    rnncli bench medium large --op LSTM
    rnncli bench tiny --vs onnxruntime --backend numpy --bound --rounds 50
    rnncli bench --threads 2 --by fastest -o after.json --against before.json --max-slowdown 5
    rnncli bench lstm_14_peepholes --vs onnxruntime,onnx-reference --json
    rnncli bench model.onnx --dim batch=4 --nodes
    """
    from rnncli.benchmarks.contest import contests
    from rnncli.benchmarks.environment import facts, notes
    from rnncli.benchmarks.store import read_stored
    from rnncli.reports.contests import ContestPrinter, show_changes
    from rnncli.reports.verification import check_reports

    output, against, most = (options.pop(n) for n in ("output", "against", "max_slowdown"))
    if most is not None and against is None:
        raise click.UsageError("--max-slowdown PERCENT needs --against FILE.json")
    as_json = options.pop("as_json")
    check_reports({"output": output})
    plan = _plan(targets, options)
    stored = read_stored(against, plan.header()) if against else None
    with ContestPrinter(plan.turns, plan.header(), facts(), as_json=as_json) as printer:
        for contest in contests(plan, printer.progress.advance):
            printer.show(contest)
    printer.close([*plan.notes, *notes()])
    if output:
        printer.store(Path(output))
    slower = show_changes(stored, printer.records, most, as_json=as_json) if stored else False
    ctx.exit(1 if slower else 0)


def _plan(targets: tuple[str, ...], options: dict[str, Any]) -> Plan:
    """Decide what is measured, of what, and how."""
    from rnncli.benchmarks.contest import Plan, Terms
    from rnncli.benchmarks.contestants import backends, runtimes
    from rnncli.benchmarks.workloads import planned

    bound = options.pop("bound")
    rivals, missing = runtimes(options.pop("rivals"))
    own = backends(options.pop("own"), options["compute"], bound=bound)
    if not (rivals or own):
        raise click.UsageError("nothing to measure: name a runtime with --vs or a --backend")
    if not options["operators"]:
        raise click.UsageError("--op names no operator")
    workloads = planned(targets, *(options.pop(n) for n in ("operators", "dtype", "dims")))
    if options["nodes"] and not any(each.is_model for each in workloads):
        raise click.UsageError("--nodes is for models, and none is named")
    return Plan(
        workloads=workloads,
        contestants=(*rivals, *own),
        terms=Terms(bound=bound, **options),
        notes=tuple(f"{name} is not measured: {reason}" for name, reason in missing.items()),
    )


@click.command()
@click.option("--cases", type=click.IntRange(30), default=6000, show_default=True, help="How many.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often.")
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at most."
)
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where files are written and removed; the system's temporary folder unless given.",
)
@json_option
def generation(*, cases: int, rounds: int, jobs: int, scratch: Path | None, as_json: bool) -> None:
    """Measure how many small vectors a second `rnncli generate` makes.

    As ONNX folders: with goldens in float64, in several processes, and certified. Rounds are
    interleaved; what is shown are medians. The time of the files alone, which depends on the disk,
    is measured beside it.
    """
    from rnncli.benchmarks.environment import surroundings
    from rnncli.benchmarks.generation import WAYS, file_cost, measure_generation
    from rnncli.reports.benchmarks import show_generation
    from rnncli.reports.progress import progress_bar

    with progress_bar(rounds * len(WAYS), "packs") as progress:
        measured = measure_generation(cases, rounds, jobs, scratch, progress.advance)
    show_generation(measured, file_cost(scratch), surroundings(), as_json=as_json)
