"""Options of `rnncli bench` and the types of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rnncli.cli.command import Written
from rnncli.cli.options import (
    BACKENDS,
    SECONDS,
    Number,
    PathOrName,
    dim_option,
    grouped,
    host_option,
    names_in,
    options_of,
)
from rnncli.limits import OF_CONTESTS, Limits

# Benchmarks that are subcommands with their own options.
OTHERS = ("generation", "startup")


def workload_names() -> list[str]:
    """Return the names of workloads and of the other benchmarks."""
    from rnncli.bench.workloads import WORKLOADS

    return [*WORKLOADS, *OTHERS]


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


TARGETS = PathOrName(f"{__name__}:workload_names")


measuring_options = grouped(
    click.option(
        "--vs",
        "rivals",
        type=Names("rnncli.subjects.runtimes:known_subjects"),
        help="Runtimes to compare with: onnxruntime, openvino, torch, onnx-reference, tract, or"
        " one that a package adds; '' for none. Ratios refer to the first.  [default:"
        " onnxruntime, openvino and torch, those that are installed]",
    ),
    click.option(
        "--backend",
        "own",
        type=Names(BACKENDS),
        help="Backends of rnncli.  [default: numpy, and numba where it is installed]",
    ),
    click.option(
        "--op",
        "operators",
        type=Names("rnncli.bench.workloads:OPERATORS", is_ours=True),
        help="Operators of the built-in workloads.  [default: LSTM,GRU,RNN]",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["float32", "float64", "float16", "bfloat16"]),
        help="Type of the tensors of the built-in workloads.  [default: float32]",
    ),
    dim_option,
    click.option(
        "--compute",
        type=click.Choice(["float64", "native"]),
        default="native",
        show_default=True,
        help="Arithmetic of the backends of rnncli.",
    ),
    host_option,
    options_of(Limits, default=OF_CONTESTS, only=["threads", "timeout"]),
    click.option(
        "--rounds",
        type=click.IntRange(1),
        default=15,
        show_default=True,
        help="Number of turns that each backend and runtime gets.",
    ),
    click.option(
        "--seconds",
        type=SECONDS,
        default=0.02,
        show_default=True,
        help="Length of a turn in seconds; a longer call is a turn by itself.",
    ),
    click.option(
        "--clock",
        type=click.Choice(["wall", "cpu"]),
        default="wall",
        show_default=True,
        help="Measure the time that passes, or the processor time of each process, which depends"
        " less on other load.",
    ),
    click.option(
        "--by",
        "statistic",
        type=click.Choice(["median", "fastest"]),
        default="median",
        show_default=True,
        help="Compare medians of all rounds, or the fastest rounds if the machine is busy.",
    ),
    click.option(
        "--bound",
        is_flag=True,
        help="Check the node and bind its tensors once, and time our backends alone. Otherwise"
        " each call is what `rnncli.evaluate` does.",
    ),
    click.option(
        "--session",
        is_flag=True,
        help="Time sessions from `rnncli.prepare`: of the operator with its weights, and of the"
        " one-node model that runtimes get.",
    ),
    click.option(
        "--nodes",
        is_flag=True,
        help="Time the nodes of models as well, by operator, in rnncli and ONNX Runtime.",
    ),
    click.option(
        "-o",
        "--output",
        type=Written("--json prints there"),
        metavar="FILE.json",
        help="Store the times of all rounds in FILE.json.",
    ),
    click.option(
        "--against",
        type=click.Path(path_type=Path),
        metavar="FILE.json",
        help="Compare the ratios with those of a run that -o stored.",
    ),
    click.option(
        "--max-slowdown",
        type=Number(0),
        metavar="PERCENT",
        help="With --against: exit with 1 if a backend of rnncli slowed down by more than this"
        " percentage, relative to the first runtime.",
    ),
)
